"""ALTER TABLE ... SET LOGGED and SET UNLOGGED (ATPrepChangePersistence() in tablecmds.c).

replctl stores the rows of unlogged tables like those of other tables.  Publications do not publish
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from replctl.catalog import schema
from replctl.catalog.heap import update_relation
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_publication import published_tables
from replctl.catalog.pg_sequence import owned_sequences
from replctl.catalog.relation_kind import ConstraintKind, RelPersistence
from replctl.commands.ddl import Ddl
from replctl.errors import (
    FeatureNotSupported,
    InvalidTableDefinition,
    ObjectNotInPrerequisiteState,
)
from replctl.parser import ast

_PERSISTENCE = {
    "set_logged": RelPersistence.PERMANENT,
    "set_unlogged": RelPersistence.UNLOGGED,
}


def check_persistence(
    ddl: Ddl, relation: Relation, commands: Sequence[ast.AlterTableCmd]
) -> RelPersistence | None:
    """Return the persistence that a table gets; None if it keeps its own.

    Raises:
        InvalidTableDefinition: the table is temporary, or a foreign key links it with a table of
            the other persistence.
        FeatureNotSupported: two actions change the persistence.
        ObjectNotInPrerequisiteState: the table is in a publication (55000).
    """
    chosen = None
    for command in commands:
        new = _PERSISTENCE.get(command.kind)
        if new is None:
            continue
        if chosen is not None:
            raise FeatureNotSupported("cannot change persistence setting twice")
        if relation.persistence == RelPersistence.TEMPORARY:
            raise InvalidTableDefinition(
                f'cannot change logged status of table "{relation.name}" because it is temporary',
                table=relation.relation_name,
            )
        if new != relation.persistence:
            _check_change(ddl, relation, new)
            chosen = new
    return chosen


def _check_change(ddl: Ddl, relation: Relation, new: RelPersistence) -> None:
    if new == RelPersistence.UNLOGGED and published_tables(ddl.catalog, relids=[relation.oid]):
        raise ObjectNotInPrerequisiteState(
            f'cannot change table "{relation.name}" to unlogged because it is part of a'
            " publication",
            detail="Unlogged relations cannot be replicated.",
        )
    word, other = (
        ("unlogged", "logged") if new == RelPersistence.UNLOGGED else ("logged", "unlogged")
    )
    for constraint, linked in _linked(ddl, relation, new):
        if linked.persistence != new:
            raise InvalidTableDefinition(
                f'could not change table "{relation.name}" to {word} because it references'
                f' {other} table "{linked.name}"',
                table=relation.relation_name,
                constraint=constraint,
            )


def _linked(ddl: Ddl, relation: Relation, new: RelPersistence) -> Iterator[tuple[str, Relation]]:
    """Yield the foreign keys that may forbid a change, each with the table at its other end.

    If the table becomes logged, these are its own foreign keys.  If it becomes unlogged, they are
    the foreign keys of other tables that reference it.
    """
    table = schema.pg_constraint
    own, other = (
        ("conrelid", "confrelid") if new == RelPersistence.PERMANENT else ("confrelid", "conrelid")
    )
    keys = ddl.catalog.select(
        table, table.c.contype == ConstraintKind.FOREIGN_KEY, table.c[own] == relation.oid
    )
    for row in sorted(keys, key=lambda row: str(row.conname)):
        linked = int(getattr(row, other))
        if linked != relation.oid:
            yield str(row.conname), ddl.relation(linked)


def set_persistence(ddl: Ddl, relation: Relation, new: RelPersistence) -> None:
    """Change the persistence of a table, its indexes and its sequences.  A partitioned table keeps
    its own, because it has no storage.
    """
    if relation.is_partitioned:
        return
    sequences = owned_sequences(ddl.catalog, relation.oid)
    oids = [index.oid for index in relation.indexes] + [item.relid for item in sequences]
    for member in (relation, *map(ddl.relation, oids)):
        update_relation(ddl.catalog, replace(member, persistence=new))
