"""Take values from sequences, and set them: nextval, currval, lastval and setval."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from threading import Lock

from sqlalchemy import Connection, select, update

from replctl.catalog import schema, state_schema
from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_sequence import (
    Sequence,
    State,
    get_sequence,
    open_sequence,
    put_state,
    read_state,
)
from replctl.catalog.transaction import Catalog
from replctl.errors import (
    FeatureNotSupported,
    NumericValueOutOfRange,
    ObjectNotInPrerequisiteState,
    SequenceGeneratorLimitExceeded,
    TransactionInProgress,
)
from replctl.record import dataclass

#: Maximum number of values that a query takes from a sequence in one transaction of the catalog.
_PORTION = 1024


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
    relation, sequence = open_sequence(catalog, relid)
    _check_unchanged(catalog, connection, sequence)
    state = read_state(connection, sequence.node)
    while or_fewer and count > 1 and _values_after(sequence, *state, count) is None:
        count //= 2
    values = values_after(sequence, relation.name, *state, count)
    if values:
        put_state(connection, sequence.node, values[-1], is_called=True)
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

    def forget(self) -> None:
        """Forget the values of currval() and lastval() (ResetSequenceCaches)."""
        self._current.clear()
        self._last = 0

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
            portion = _Portion(open_sequence(catalog, relid)[1].node, values)
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
        put_state(catalog.connection, sequence.node, last, is_called=True)
        self._current[relid] = last
        self._last = relid

    def upcoming(self, catalog: Catalog, relid: int, count: int) -> range:
        """Return the values that `take` would return, without taking them.

        Raises:
            SequenceGeneratorLimitExceeded, WrongObjectType: see `take`.
        """
        relation, sequence = open_sequence(catalog, relid)
        with self.cluster.begin(write=False) as connection:
            return values_after(
                sequence, relation.name, *read_state(connection, sequence.node), count
            )

    def current(self, catalog: Catalog, relid: int) -> int:
        """Return the value that this session last took from a sequence (currval).

        Raises:
            ObjectNotInPrerequisiteState: the session has taken none (55000).
            WrongObjectType: the relation is not a sequence (42809).
        """
        relation, _sequence_row = open_sequence(catalog, relid)
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
        relation, sequence = open_sequence(catalog, relid)
        if not sequence.minimum <= value <= sequence.maximum:
            raise NumericValueOutOfRange(
                f'setval: value {value} is out of bounds for sequence "{relation.name}"'
                f" ({sequence.minimum}..{sequence.maximum})"
            )
        self._end_portion(relid)
        with self.cluster.begin(write=True) as connection:
            _check_unchanged(catalog, connection, sequence)
            put_state(connection, sequence.node, value, is_called=is_called)
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
        relation, sequence = open_sequence(catalog, relid)
        return values_after(sequence, relation.name, *self._states[relid], count)

    def put(self, catalog: Catalog) -> None:
        """Record the new states in the transaction of `catalog`."""
        for relid, (value, is_called) in self._states.items():
            _relation, sequence = open_sequence(catalog, relid)
            put_state(catalog.connection, sequence.node, value, is_called=is_called)


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
