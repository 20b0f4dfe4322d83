"""Read and write sequences: their definitions, owners and states."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from sqlalchemy import ColumnElement, Connection, delete, exists, insert, select, update

from replctl.catalog import schema, state_schema
from replctl.catalog.pg_class import Relation, get_relation
from replctl.catalog.pg_type import type_name, type_oid
from replctl.catalog.relation_kind import DependencyType, RelKind
from replctl.catalog.transaction import Catalog
from replctl.errors import (
    InternalError,
    WrongObjectType,
)
from replctl.record import dataclass
from replctl.types import builtin

#: The state of a sequence: its last value and True, or its next value and False.
State: TypeAlias = tuple[int, bool]


@dataclass(frozen=True, slots=True)
class Sequence:
    """A row of pg_sequence, with its rows of pg_depend.

    Attributes:
        owner_relid, owner_attnum: the column that owns the sequence, so that both are dropped
            together; 0 for none.
        node: the number of the sequence's state, like a relation's filenode.  ALTER SEQUENCE
            assigns another number, which ROLLBACK reverts.
    """

    relid: int
    type: str = "int8"
    start: int = 1
    increment: int = 1
    maximum: int = 2**63 - 1
    minimum: int = 1
    cache: int = 1
    cycles: bool = False
    owner_relid: int = 0
    owner_attnum: int = 0
    ownership: DependencyType = DependencyType.NONE
    node: int = 0


def insert_sequence(catalog: Catalog, sequence: Sequence, state: State) -> None:
    """Add a sequence with its state.  The caller has added its relation."""
    sequence = replace(sequence, node=sequence.relid)
    catalog.insert(schema.pg_sequence, seqrelid=sequence.relid, **_values_of(sequence))
    _insert_state(catalog.connection, sequence.node, state)


def update_sequence(catalog: Catalog, sequence: Sequence) -> None:
    """Replace the stored definition and owner of a sequence."""
    table = schema.pg_sequence
    catalog.update(table, table.c.seqrelid == sequence.relid, **_values_of(sequence))


def rewrite_sequence(catalog: Catalog, sequence: Sequence, state: State) -> Sequence:
    """Give a sequence another state, which ROLLBACK reverts, and return the changed sequence
    (AlterSequence).
    """
    sequence = replace(sequence, node=catalog.new_oid())
    _insert_state(catalog.connection, sequence.node, state)
    update_sequence(catalog, sequence)
    return sequence


def _insert_state(connection: Connection, node: int, state: State) -> None:
    last_value, is_called = state
    table = state_schema.sequence_state
    connection.execute(insert(table).values(node=node, last_value=last_value, is_called=is_called))


def _values_of(sequence: Sequence) -> dict[str, object]:
    return {
        "seqtypid": type_oid(sequence.type),
        "seqstart": sequence.start,
        "seqincrement": sequence.increment,
        "seqmax": sequence.maximum,
        "seqmin": sequence.minimum,
        "seqcache": sequence.cache,
        "seqcycle": sequence.cycles,
        "ownerrelid": sequence.owner_relid,
        "ownerattnum": sequence.owner_attnum,
        "ownership": sequence.ownership,
        "node": sequence.node,
    }


def get_sequence(catalog: Catalog, relid: int) -> Sequence | None:
    """Return the sequence with that OID; None if there is none."""
    table = schema.pg_sequence
    return next(iter(_select(catalog, table.c.seqrelid == relid)), None)


def owned_sequences(catalog: Catalog, relid: int, attnum: int | None = None) -> list[Sequence]:
    """Return the sequences that a table owns, or only those that one of its columns owns."""
    table = schema.pg_sequence
    found = _select(catalog, table.c.ownerrelid == relid)
    return [sequence for sequence in found if attnum in (None, sequence.owner_attnum)]


def list_sequences(catalog: Catalog) -> list[Sequence]:
    """Return the sequences of a database."""
    return _select(catalog)


def advance_sequence(catalog: Catalog, sequence: Sequence, value: int) -> bool:
    """Let a sequence continue after `value`.  Return False if its last value is there already."""
    last, is_called = read_state(catalog.connection, sequence.node)
    ahead = value - last if sequence.increment > 0 else last - value
    if ahead < 0 or (ahead == 0 and is_called):
        return False
    put_state(catalog.connection, sequence.node, value, is_called=True)
    return True


def delete_sequence(catalog: Catalog, relid: int) -> None:
    """Remove a sequence's definition.  Its state stays for ROLLBACK until VACUUM removes it
    (`trim_states`).
    """
    catalog.delete(schema.pg_sequence, schema.pg_sequence.c.seqrelid == relid)


def trim_states(connection: Connection) -> None:
    """Remove the states of sequences whose definitions no longer exist in any version."""
    state, table = state_schema.sequence_state, schema.pg_sequence
    is_there = exists().where(table.c.node == state.c.node)
    connection.execute(delete(state).where(~is_there))


def restart_sequence(catalog: Catalog, sequence: Sequence, *, in_block: bool) -> None:
    """Restart a sequence (TRUNCATE ... RESTART IDENTITY).

    Args:
        in_block: ROLLBACK must be able to revert the restart.
    """
    if in_block:
        rewrite_sequence(catalog, sequence, (sequence.start, False))
    else:
        put_state(catalog.connection, sequence.node, sequence.start, is_called=False)


def last_value(catalog: Catalog, relid: int) -> int | None:
    """Return the last value of a sequence; None if it has not produced one yet."""
    value, is_called = sequence_state(catalog, relid)
    return value if is_called else None


def sequence_state(catalog: Catalog, relid: int) -> State:
    """Return the state of a sequence: its value, and whether nextval() has already returned it."""
    return read_state(catalog.connection, open_sequence(catalog, relid)[1].node)


def _select(catalog: Catalog, *where: ColumnElement[bool]) -> list[Sequence]:
    table = schema.pg_sequence
    return [
        Sequence(
            int(row.seqrelid),
            type_name(int(row.seqtypid)),
            int(row.seqstart),
            int(row.seqincrement),
            int(row.seqmax),
            int(row.seqmin),
            int(row.seqcache),
            bool(row.seqcycle),
            int(row.ownerrelid),
            int(row.ownerattnum),
            DependencyType(row.ownership),
            int(row.node),
        )
        for row in catalog.select(table, *where, order_by=[table.c.seqrelid])
    ]


def open_sequence(catalog: Catalog, relid: int) -> tuple[Relation, Sequence]:
    """Return the relation with an OID, and its sequence.

    Raises:
        WrongObjectType: the relation is not a sequence (42809).
    """
    relation, sequence = get_relation(catalog, relid), get_sequence(catalog, relid)
    if relation is not None and sequence is not None:
        return relation, sequence
    other = relation or builtin.system_relations_by_oid().get(relid)
    if other is None:
        raise InternalError(f"could not open relation with OID {relid}")
    raise WrongObjectType(
        f'cannot open relation "{other.name}"',
        detail=f"This operation is not supported for {RelKind(other.kind).plural}.",
    )


def read_state(connection: Connection, node: int) -> State:
    """Return the state with a number (Sequence.node)."""
    state = state_schema.sequence_state
    row = connection.execute(select(state).where(state.c.node == node)).one()
    return int(row.last_value), bool(row.is_called)


def put_state(connection: Connection, node: int, value: int, *, is_called: bool) -> None:
    """Set the value of a sequence.  All sessions see it after the SQLite transaction, and ROLLBACK
    does not revert it.
    """
    state = state_schema.sequence_state
    connection.execute(
        update(state).where(state.c.node == node).values(last_value=value, is_called=is_called)
    )
