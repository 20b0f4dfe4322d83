"""Read and write sequences: their definitions, owners and current values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from threading import Lock
from typing import TypeAlias, TypeVar

from sqlalchemy import ColumnElement, Connection, delete, exists, insert, select, update

from replctl.catalog import schema, state_schema
from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_class import Relation, get_relation
from replctl.catalog.pg_type import type_name, type_oid
from replctl.catalog.relation_kind import DependencyType, RelKind
from replctl.catalog.transaction import Catalog
from replctl.errors import (
    FeatureNotSupported,
    InternalError,
    NumericValueOutOfRange,
    ObjectNotInPrerequisiteState,
    SequenceGeneratorLimitExceeded,
    TransactionInProgress,
    WrongObjectType,
)
from replctl.expr import nodes
from replctl.record import dataclass
from replctl.types import builtin

#: The state of a sequence: its last value and True, or its next value and False.
State: TypeAlias = tuple[int, bool]

_NEXTVAL = 1574  # nextval(regclass) in pg_proc
#: Maximum number of values that a query takes from a sequence in one transaction of the catalog.
_PORTION = 1024


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
    last, is_called = _state(catalog.connection, sequence.node)
    ahead = value - last if sequence.increment > 0 else last - value
    if ahead < 0 or (ahead == 0 and is_called):
        return False
    _put_state(catalog.connection, sequence.node, value, is_called=True)
    return True


def sequence_of_call(node: nodes.Node) -> int | None:
    """Return the OID of the sequence of a nextval() call; None for other nodes."""
    match node:
        case nodes.FuncExpr(function_oid=oid, args=(nodes.Const(value=str(value)),)):
            return int(value) if oid == _NEXTVAL else None
    return None


def sequences_of(expr: nodes.Expr) -> list[int]:
    """Return the OIDs of the sequences from which an expression takes values with nextval()."""
    found = map(sequence_of_call, nodes.walk(expr))
    return [oid for oid in found if oid is not None]


class NumberedCalls:
    """Replaces the calls of nextval() in the new values of rows by columns, one for each call.

    Args:
        first: the number of the first column.
        varno: the number of the columns' table; 0 without a table.

    Attributes:
        sequences: the OIDs of the sequences of the calls, in the order of the columns.
    """

    def __init__(self, first: int, varno: int = 0) -> None:
        self._first = first
        self._varno = varno
        self.sequences: list[int] = []

    @property
    def numbers(self) -> range:
        """Return the numbers of the columns."""
        return range(self._first, self._first + len(self.sequences))

    def with_columns(self, expr: nodes.Expr) -> nodes.Expr:
        """Return the expression with columns in place of the calls of nextval()."""

        def replaced(node: nodes.Node) -> nodes.Node | None:
            oid = sequence_of_call(node)
            if oid is None:
                return None
            self.sequences.append(oid)
            return nodes.Var(self.numbers[-1], "int8", varno=self._varno)

        result: nodes.Expr = nodes.transform(expr, replaced)
        return result

    def taken(self, take: Callable[[int, int], range], count: int) -> list[range]:
        """Return the values of each call for `count` rows (`taken_by_calls`)."""
        return taken_by_calls(self.sequences, take, count)


_Called = TypeVar("_Called", bound=Hashable)


def taken_by_calls(
    calls: Iterable[_Called], take: Callable[[_Called, int], range], count: int
) -> list[range]:
    """Return the values of each call of nextval() for `count` rows.  Within a row, several calls of
    one sequence take consecutive values.

    Args:
        calls: the sequence of each call.
        take: a function that takes values of a sequence, given the sequence and the number of
            values.
    """
    of_row = Counter(calls)
    values = {called: take(called, count * number) for called, number in of_row.items()}
    before: Counter[_Called] = Counter()
    found = []
    for called in calls:
        found.append(values[called][before[called] :: of_row[called]])
        before[called] += 1
    return found


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
        _put_state(catalog.connection, sequence.node, sequence.start, is_called=False)


def last_value(catalog: Catalog, relid: int) -> int | None:
    """Return the last value of a sequence; None if it has not produced one yet."""
    value, is_called = sequence_state(catalog, relid)
    return value if is_called else None


def sequence_state(catalog: Catalog, relid: int) -> State:
    """Return the state of a sequence: its value, and whether nextval() has already returned it."""
    return _state(catalog.connection, _sequence(catalog, relid)[1].node)


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


@dataclass
class _Portion:
    """Values that a query has taken from a sequence in advance.

    Attributes:
        node: the sequence's `node`.
        values: all values of the portion.  The last one is the sequence's last value in the
            catalog.
        given: the number of values used so far.
    """

    node: int
    values: range
    given: int = 0

    @property
    def is_used_up(self) -> bool:
        return self.given == len(self.values)


def _taken(
    catalog: Catalog, connection: Connection, relid: int, count: int, *, or_fewer: bool = False
) -> range:
    """Take the next values of a sequence, and return them.

    Args:
        connection: a transaction that writes the catalog.
        or_fewer: take fewer values, but at least one, if the sequence has not enough left.
    """
    relation, sequence = _sequence(catalog, relid)
    _check_unchanged(catalog, connection, sequence)
    state = _state(connection, sequence.node)
    while or_fewer and count > 1 and _values_after(sequence, *state, count) is None:
        count //= 2
    values = values_after(sequence, relation.name, *state, count)
    if values:
        _put_state(connection, sequence.node, values[-1], is_called=True)
    return values


def _check_unchanged(catalog: Catalog, connection: Connection, sequence: Sequence) -> None:
    """Check that no other transaction has given a sequence another state that `catalog` does not
    see.

    Raises:
        TransactionInProgress: there is such a transaction.
    """
    table = schema.pg_sequence
    query = select(table.c.xmin).where(
        table.c.dbid == catalog.database_oid,
        table.c.seqrelid == sequence.relid,
        table.c.node != sequence.node,
        table.c.xmax == 0,
        table.c.xmin.not_in(catalog.xids.all),
    )
    if others := set(connection.execute(query).scalars()):
        raise TransactionInProgress(others)


def values_after(
    sequence: Sequence, name: str, last_value: int, is_called: bool, count: int
) -> range:
    """Return the next values of a sequence with a given state.

    Args:
        name: the sequence's name, for errors.
        last_value, is_called: the sequence's state.

    Raises:
        SequenceGeneratorLimitExceeded: the sequence does not have enough values left (2200H).
        FeatureNotSupported: the sequence would cycle before it has produced all values (0A000).
    """
    values = _values_after(sequence, last_value, is_called, count)
    if values is None and sequence.cycles:
        raise FeatureNotSupported(
            f'more values than the sequence "{name}" has left before it cycles are not supported in'
            " one statement"
        )
    if values is None:
        end, limit = "maximum", sequence.maximum
        if sequence.increment < 0:
            end, limit = "minimum", sequence.minimum
        raise SequenceGeneratorLimitExceeded(
            f'nextval: reached {end} value of sequence "{name}" ({limit})'
        )
    return values


@dataclass
class SequenceValues:
    """Takes values from sequences for a session.  Taken values are used up even if the statement
    fails.

    Args:
        cluster: the cluster of the sequences.
    """

    cluster: Cluster
    _current: dict[int, int] = field(default_factory=dict, init=False)
    _last: int = field(default=0, init=False)  # the sequence of lastval()
    _portions: dict[int, _Portion] | None = field(default=None, init=False)  # None: no query

    @contextmanager
    def in_portions(self) -> Iterator[None]:
        """Let `take` fetch single values of a query in portions.  Each portion is up to twice as
        large as the one before.  The reason: a catalog transaction for each value takes some
        milliseconds.

        At the end the sequence gets unused values back, unless another session has taken values
        since.  Then the sequence has a gap, as after a crash.
        """
        if self._portions is not None:
            yield
            return
        self._portions = {}
        try:
            yield
        finally:
            portions, self._portions = self._portions, None
            for portion in portions.values():
                self._give_back(portion)

    def take(self, catalog: Catalog, relid: int, count: int = 1) -> range:
        """Return the next values of a sequence.

        Args:
            catalog: the session's view of the catalog.

        Raises:
            SequenceGeneratorLimitExceeded: the sequence does not have enough values left (2200H).
            TransactionInProgress: another transaction alters the sequence.
            WrongObjectType: the relation is not a sequence (42809).
        """
        if self._portions is not None and count == 1:
            values = self._of_portion(catalog, relid, self._portions)
        else:
            self._end_portion(relid)
            with self.cluster.begin(write=True) as connection:
                values = _taken(catalog, connection, relid, count)
        if values:
            self._current[relid] = values[-1]
            self._last = relid
        return values

    def _of_portion(self, catalog: Catalog, relid: int, portions: dict[int, _Portion]) -> range:
        """Return one value, in a range of length 1."""
        portion = portions.get(relid)
        if portion is None or portion.is_used_up:
            wanted = 1 if portion is None else min(2 * len(portion.values), _PORTION)
            with self.cluster.begin(write=True) as connection:
                values = _taken(catalog, connection, relid, wanted, or_fewer=True)
            portion = _Portion(_sequence(catalog, relid)[1].node, values)
            portions[relid] = portion
        portion.given += 1
        return portion.values[portion.given - 1 : portion.given]

    def _end_portion(self, relid: int) -> None:
        portion = (self._portions or {}).pop(relid, None)
        if portion is not None:
            self._give_back(portion)

    def _give_back(self, portion: _Portion) -> None:
        if portion.is_used_up:
            return
        state = state_schema.sequence_state
        of_portion = (state.c.node == portion.node, state.c.last_value == portion.values[-1])
        given = portion.values[portion.given - 1]
        with self.cluster.begin(write=True) as connection:
            connection.execute(update(state).where(*of_portion).values(last_value=given))

    def take_first(self, catalog: Catalog, relid: int, count: int) -> None:
        """Take the first values of a sequence that the transaction of `catalog` created."""
        sequence = get_sequence(catalog, relid)
        assert sequence is not None
        last = sequence.start + sequence.increment * (count - 1)
        _put_state(catalog.connection, sequence.node, last, is_called=True)
        self._current[relid] = last
        self._last = relid

    def upcoming(self, catalog: Catalog, relid: int, count: int) -> range:
        """Return the values that `take` would return, without taking them.

        Raises:
            SequenceGeneratorLimitExceeded, WrongObjectType: see `take`.
        """
        relation, sequence = _sequence(catalog, relid)
        with self.cluster.begin(write=False) as connection:
            return values_after(sequence, relation.name, *_state(connection, sequence.node), count)

    def current(self, catalog: Catalog, relid: int) -> int:
        """Return the value that this session last took from a sequence (currval).

        Raises:
            ObjectNotInPrerequisiteState: the session has taken none (55000).
            WrongObjectType: the relation is not a sequence (42809).
        """
        relation, _sequence_row = _sequence(catalog, relid)
        if relid not in self._current:
            raise ObjectNotInPrerequisiteState(
                f'currval of sequence "{relation.name}" is not yet defined in this session'
            )
        return self._current[relid]

    def last(self, catalog: Catalog) -> tuple[int, int]:
        """Return the sequence from which this session last took a value, and the value (lastval).

        Raises:
            ObjectNotInPrerequisiteState: the session has taken none, or the sequence was dropped
                (55000).
        """
        if self._last not in self._current or get_sequence(catalog, self._last) is None:
            raise ObjectNotInPrerequisiteState("lastval is not yet defined in this session")
        return self._last, self._current[self._last]

    def put(self, catalog: Catalog, relid: int, value: int, *, is_called: bool = True) -> int:
        """Set the state of a sequence (setval), and return `value`.

        Raises:
            NumericValueOutOfRange: the value is outside of the sequence's bounds (22003).
            WrongObjectType: the relation is not a sequence (42809).
        """
        relation, sequence = _sequence(catalog, relid)
        if not sequence.minimum <= value <= sequence.maximum:
            raise NumericValueOutOfRange(
                f'setval: value {value} is out of bounds for sequence "{relation.name}"'
                f" ({sequence.minimum}..{sequence.maximum})"
            )
        self._end_portion(relid)
        with self.cluster.begin(write=True) as connection:
            _check_unchanged(catalog, connection, sequence)
            _put_state(connection, sequence.node, value, is_called=is_called)
        if is_called:
            self._current[relid] = value
        return value


class RestartedSequences:
    """Takes values for an applied transaction that restarts sequences (TRUNCATE ... RESTART
    IDENTITY).  Other sessions see the restart when the transaction commits.

    Args:
        others: takes values from the sequences that do not restart.
        restarted: the sequences that restart.
    """

    def __init__(self, others: SequenceValues, restarted: Iterable[Sequence]) -> None:
        self._others = others
        self._states: dict[int, State] = {item.relid: (item.start, False) for item in restarted}
        self._lock = Lock()  # tables are applied in parallel, and may share a sequence

    def take(self, catalog: Catalog, relid: int, count: int) -> range:
        """Return the next values of a sequence (SequenceValues.take)."""
        if relid not in self._states:
            return self._others.take(catalog, relid, count)
        with self._lock:
            values = self.upcoming(catalog, relid, count)
            if values:
                self._states[relid] = (values[-1], True)
            return values

    def upcoming(self, catalog: Catalog, relid: int, count: int) -> range:
        """Return the values that `take` would return, without taking them."""
        if relid not in self._states:
            return self._others.upcoming(catalog, relid, count)
        relation, sequence = _sequence(catalog, relid)
        return values_after(sequence, relation.name, *self._states[relid], count)

    def put(self, catalog: Catalog) -> None:
        """Record the new states in the transaction of `catalog`."""
        for relid, (value, is_called) in self._states.items():
            _relation, sequence = _sequence(catalog, relid)
            _put_state(catalog.connection, sequence.node, value, is_called=is_called)


def _sequence(catalog: Catalog, relid: int) -> tuple[Relation, Sequence]:
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


def _values_after(sequence: Sequence, last_value: int, is_called: bool, count: int) -> range | None:
    """Return the next values; None if there are not enough.  A cycling sequence at its end
    continues from its other end.
    """
    step = sequence.increment
    starts = [last_value + step if is_called else last_value]
    if sequence.cycles and not sequence.minimum <= starts[0] <= sequence.maximum:
        starts.append(sequence.minimum if step > 0 else sequence.maximum)
    for start in starts:
        values = range(start, start + step * count, step)
        if not values or sequence.minimum <= min(values) <= max(values) <= sequence.maximum:
            return values
    return None


def _state(connection: Connection, node: int) -> State:
    state = state_schema.sequence_state
    row = connection.execute(select(state).where(state.c.node == node)).one()
    return int(row.last_value), bool(row.is_called)


def _put_state(connection: Connection, node: int, value: int, *, is_called: bool) -> None:
    """Set the value of a sequence.  All sessions see it after the SQLite transaction, and ROLLBACK
    does not revert it.
    """
    state = state_schema.sequence_state
    connection.execute(
        update(state).where(state.c.node == node).values(last_value=value, is_called=is_called)
    )
