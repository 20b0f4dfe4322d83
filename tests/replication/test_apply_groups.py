"""A group of transactions fails.  The part that is already written decides how apply continues.
The tests run without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from replctl.catalog.apply_batch import ApplyBatch
from replctl.catalog.commit_digest import LogPosition
from replctl.catalog.pg_subscription import Subscription
from replctl.errors import IoError, PostgresError, UniqueViolation
from replctl.replication.apply import catch_up, groups
from replctl.replication.apply_error import ReplicationConflict
from replctl.replication.conflict_type import ConflictType
from replctl.replication.log_range import LogRange
from replctl.replication.node import (
    ChangeBatch,
    Publisher,
    RelationChanges,
    RemoteRelation,
    RemoteTransaction,
    RowCounts,
    Rows,
    Subscriber,
)
from replctl.replication.subscription_run import SubscriptionRun

_SUBSCRIPTION = Subscription(1, 5, "s", 10, "dbname=p", ("p",), "s")
#: The last of three transactions.  Each has one change, whose position is its LSN.
_LAST = 3


class _Publisher:
    """Three transactions of one table."""

    def __init__(self, *, has_other_writers: bool = False) -> None:
        self._table = RemoteRelation(
            "public", "t", (), ("id",), has_other_writers=has_other_writers
        )

    @property
    def slots(self) -> _Publisher:
        return self

    @property
    def decoding(self) -> _Publisher:
        return self

    @property
    def tables(self) -> _Publisher:
        return self

    def origin_change(self, _log: LogRange) -> None:
        return None

    def definition_changes(self, *_arguments: object) -> list[int]:
        return []

    def batch_ends(self, log: LogRange, _max_changes: int) -> list[int]:
        return [log.to_lsn]

    def digest_at(self, _lsn: int) -> None:
        return None

    @contextmanager
    def changes(self, log: LogRange, *_others: object) -> Iterator[Any]:
        start, end = log.from_lsn, log.to_lsn
        lsns = range(start + 1, end + 1)
        transactions = tuple(RemoteTransaction(700 + n, n, 0, n, n) for n in lsns)
        changes = RelationChanges(self._table, cast("Rows", None), tuple(lsns))
        yield ChangeBatch(start, end, transactions, (changes,), ())


class _Subscriber:
    """A subscriber whose next attempts to apply changes fail.

    Attributes:
        failures: for each of the next attempts, the error, and whether a part of the batch stays
            written.  Later attempts succeed.
        attempts: the first and the last position of each attempt.
        applied: the applied positions.
    """

    origin_name = "pg_1"
    max_batch_changes = max_parallel_tables = 0

    def __init__(self, *failures: tuple[Exception, bool]) -> None:
        self.failures = list(failures)
        self.attempts: list[tuple[int, int]] = []
        self.applied: list[int] = []
        self.batch: ApplyBatch | None = None
        self._progress = 0

    @property
    def state(self) -> _Subscriber:
        return self

    @property
    def changes(self) -> _Subscriber:
        return self

    def unfinished_batch(self) -> ApplyBatch | None:
        return self.batch

    def apply(
        self, _batch: object, first: int, last: int, from_lsn: int, to: LogPosition
    ) -> RowCounts:
        self.attempts.append((first, last))
        if self.failures:
            error, stays = self.failures.pop(0)
            self.batch = ApplyBatch(1, from_lsn, to.lsn, 9, ({},)) if stays else None
            raise error
        self.batch = None
        self.applied += range(first, last + 1)
        self._progress = to.lsn
        return RowCounts()

    def position(self) -> LogPosition:
        return LogPosition(self._progress)

    def advance(self, to: LogPosition) -> None:
        self._progress = max(self._progress, to.lsn)

    def isolated_positions(self, _batch: object) -> set[int]:
        return set()

    def applied_positions(self) -> dict[tuple[str, str], int]:
        return {}

    def has_target(self, _remote: object) -> bool:
        return True

    def joins(self, _remote: object) -> bool:
        return False

    def count_conflicts(self, _counts: object) -> None:
        pass


def _sync(subscriber: _Subscriber, publisher: _Publisher | None = None) -> PostgresError | None:
    """Apply all transactions, and return the error that stops this, or None."""
    try:
        run = SubscriptionRun(
            cast("Publisher", publisher or _Publisher()),
            cast("Subscriber", subscriber),
            _SUBSCRIPTION,
        )
        catch_up(run, _LAST)
    except PostgresError as error:
        return error
    return None


def _conflict(position: int) -> ReplicationConflict:
    error = UniqueViolation("duplicate key")
    kind = ConflictType.INSERT_EXISTS
    return ReplicationConflict(position, error, "public.t", "INSERT", type=kind)


def test_a_group_that_is_written_in_part_is_finished_as_a_whole() -> None:
    subscriber = _Subscriber((IoError("full"), True))
    assert _sync(subscriber) is not None
    assert subscriber.attempts == [(1, 3)]
    assert _sync(subscriber) is None
    assert subscriber.attempts == [(1, 3), (1, 3)]
    assert subscriber.applied == [1, 2, 3]


def test_a_group_of_which_nothing_is_written_is_halved() -> None:
    subscriber = _Subscriber((IoError("x"), False), (IoError("x"), False), (IoError("x"), False))
    error = _sync(subscriber)
    assert error is not None
    assert (error.context or "").endswith("in transaction 701, finished at 0/1")
    assert subscriber.attempts == [(1, 3), (1, 1)]


def test_what_precedes_a_conflict_is_applied() -> None:
    subscriber = _Subscriber((_conflict(2), False))
    error = _sync(subscriber)
    assert error is not None
    assert (error.context or "").endswith("in transaction 702, finished at 0/2")
    assert subscriber.attempts == [(1, 3), (1, 1)]
    assert subscriber.applied == [1]
    assert _sync(subscriber) is None
    assert subscriber.applied == [1, 2, 3]


def test_nothing_precedes_a_conflict_of_what_is_written_in_part() -> None:
    subscriber = _Subscriber((_conflict(2), True))
    assert _sync(subscriber) is not None
    assert (subscriber.attempts, subscriber.applied) == ([(1, 3)], [])
    assert _sync(subscriber) is None
    assert subscriber.applied == [1, 2, 3]


def test_a_batch_that_a_conflict_ends_is_applied_again() -> None:
    """The first attempt leaves a part of the batch written."""
    subscriber = _Subscriber((IoError("full"), True), (_conflict(2), False), (_conflict(2), False))
    assert _sync(subscriber) is not None
    error = _sync(subscriber)
    assert error is not None
    assert subscriber.attempts == [(1, 3), (1, 3), (1, 3), (1, 1)]
    assert subscriber.applied == [1]


@pytest.mark.parametrize("has_other_writers", [False, True])
def test_the_hint_of_a_key_that_is_there_twice(*, has_other_writers: bool) -> None:
    """PostgreSQL has no HINT for a conflict."""
    publisher = _Publisher(has_other_writers=has_other_writers)
    error = _sync(_Subscriber((_conflict(1), False)), publisher)
    assert error is not None
    expected = (
        "Give each row a key of its own at the publisher, then use ALTER SUBSCRIPTION s REFRESH"
        " TABLE public.t;"
    )
    assert error.hint == (expected if has_other_writers else None)


class _Isolating(_Subscriber):
    """A subscriber that applies some positions alone, and counts the requests for these
    positions."""

    def __init__(self, *isolated: int) -> None:
        super().__init__()
        self.isolated, self.asked = set(isolated), 0

    def isolated_positions(self, _batch: object) -> set[int]:
        self.asked += 1
        return set(self.isolated)


@pytest.mark.parametrize(
    ("last", "isolated", "grouped", "asked"),
    [
        (3, (), [[1, 2, 3]], 1),
        (3, (2,), [[1], [2], [3]], 1),
        (3, (3,), [[1, 2], [3]], 1),
        (1, (1,), [[1]], 0),  # a single transaction needs no check
    ],
)
def test_groups(last: int, isolated: tuple[int, ...], grouped: list[list[int]], asked: int) -> None:
    subscriber = _Isolating(*isolated)
    with _Publisher().changes(LogRange(0, last, (), {}, "any")) as batch:
        found = list(groups(cast("Subscriber", subscriber), batch))
    assert [[item.first for item in group.transactions] for group in found] == grouped
    assert subscriber.asked == asked
