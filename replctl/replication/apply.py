"""From a subscription's progress to the end of its publisher's log, group by group (worker.c).

A group is as many transactions as can be composed to one change per key: it ends before and after
one that truncates, that moves keys, or that changes a table without a key.  It is written as a
whole; what stops it is found first, so that everything before the failing transaction is applied,
and nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from replctl.catalog.pg_subscription import RelState, Subscription
from replctl.errors import PostgresError
from replctl.replication.conflict import (
    DecodingFailure,
    ReplicationConflict,
    decoding_context,
    error_context,
)
from replctl.replication.node import ChangeBatch, Publisher, RemoteTransaction, Subscriber


@dataclass(frozen=True, slots=True)
class _Group:
    """Transactions that are applied together."""

    transactions: tuple[RemoteTransaction, ...]

    @property
    def first(self) -> int:
        return self.transactions[0].first

    @property
    def last(self) -> int:
        return self.transactions[-1].last

    @property
    def to_lsn(self) -> int:
        return self.transactions[-1].commit_lsn


def apply_changes(
    publisher: Publisher,
    subscriber: Subscriber,
    subscription: Subscription,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> bool:
    """Apply everything that is committed on the publisher so far; whether there was any change to
    apply.

    Args:
        on_progress: called with what is done, how many transactions so far, and of how many.

    Raises:
        PostgresError: a transaction cannot be applied; those before it are.  Its CONTEXT names it.
    """
    assert subscription.slot_name is not None
    worker = _Worker(publisher, subscriber, subscription, on_progress)
    confirmed = publisher.slot_position(subscription.slot_name)
    start = max(subscriber.progress(), confirmed)
    has_applied = False
    unfinished = subscriber.unfinished_batch()
    if unfinished is not None:
        worker.replay(unfinished.from_lsn, unfinished.to_lsn)
        start, has_applied = unfinished.to_lsn, True
    end = publisher.current_lsn()
    if start < end:
        changes = publisher.definition_changes(subscription.publications, start, end)
        for segment_end in [*(lsn - 1 for lsn in changes if lsn - 1 > start), end]:
            has_applied |= worker.segment(start, segment_end)
            start = segment_end
        subscriber.advance(end)
    if confirmed < end:
        publisher.advance_slot(subscription.slot_name, end)
    return has_applied


class _Worker:
    def __init__(
        self,
        publisher: Publisher,
        subscriber: Subscriber,
        subscription: Subscription,
        on_progress: Callable[[str, int, int], None],
    ) -> None:
        self._publisher = publisher
        self._on_progress = on_progress
        self._subscriber = subscriber
        self._subscription = subscription

    def segment(self, from_lsn: int, to_lsn: int) -> bool:
        """Apply a range of the log in which definitions do not change; whether there was any
        change.

        Raises:
            PostgresError: a transaction cannot be sent or applied; those before it are applied.
        """
        try:
            return self._apply_segment(from_lsn, to_lsn)
        except DecodingFailure as failure:
            commits = self._publisher.commits(from_lsn, to_lsn)
            if len(commits) == 1:
                slot = self._subscription.slot_name or ""
                failure.error.context = decoding_context(slot, commits[0])
                raise failure.error from failure
            middle = commits[len(commits) // 2 - 1]
            has_applied = self.segment(from_lsn, middle)
            return self.segment(middle, to_lsn) or has_applied

    def _apply_segment(self, from_lsn: int, to_lsn: int) -> bool:
        with self._publisher.changes(
            self._subscription.publications,
            from_lsn,
            to_lsn,
            self._starts(),
            self._subscription.origin,
        ) as batch:
            if not batch.transactions:
                return False
            done, total = from_lsn, len(batch.transactions)
            applied = 0
            self._on_progress("applying transactions", applied, total)
            for group in self._groups(batch):
                self._apply(batch, group, done)
                done = group.to_lsn
                applied += len(group.transactions)
                self._on_progress("applying transactions", applied, total)
            return True

    def replay(self, from_lsn: int, to_lsn: int) -> None:
        """Finish what a crash has left half written: the same changes, in one group again."""
        with self._publisher.changes(
            self._subscription.publications,
            from_lsn,
            to_lsn,
            self._starts(),
            self._subscription.origin,
        ) as batch:
            transactions = self._wanted(batch)
            first = min((t.first for t in transactions), default=1)
            last = max((t.last for t in transactions), default=0)
            try:
                self._subscriber.apply(batch, first, last, from_lsn, to_lsn)
            except ReplicationConflict as conflict:
                raise self._error(batch, conflict) from conflict

    def _starts(self) -> dict[tuple[str, str], int]:
        """The tables that are synchronized, each with the LSN after which its changes count."""
        return {
            name: relation.lsn or 0
            for name, relation in self._subscriber.relations().items()
            if relation.state is RelState.READY
        }

    def _wanted(self, batch: ChangeBatch) -> list[RemoteTransaction]:
        """All transactions but the one to be skipped."""
        skipped = self._subscription.skip_lsn
        return [item for item in batch.transactions if item.commit_lsn != skipped]

    def _groups(self, batch: ChangeBatch) -> Iterator[_Group]:
        isolated = self._subscriber.isolated_positions(batch)
        isolated |= {truncation.position for truncation in batch.truncations}
        pending: list[RemoteTransaction] = []
        wanted = self._wanted(batch)
        for transaction in batch.transactions:
            is_skipped = transaction not in wanted
            positions = range(transaction.first, transaction.last + 1)
            is_alone = is_skipped or not isolated.isdisjoint(positions)
            if is_alone and pending:
                yield _Group(tuple(pending))
                pending = []
            if is_skipped:
                self._subscriber.clear_skip()
            elif is_alone:
                yield _Group((transaction,))
            else:
                pending.append(transaction)
        if pending:
            yield _Group(tuple(pending))

    def _apply(self, batch: ChangeBatch, group: _Group, from_lsn: int) -> None:
        """Apply a group; if that fails, what precedes the transaction that fails."""
        try:
            self._subscriber.apply(batch, group.first, group.last, from_lsn, group.to_lsn)
        except ReplicationConflict as conflict:
            before = tuple(t for t in group.transactions if t.last < conflict.position)
            if before:
                self._apply(batch, _Group(before), from_lsn)
            raise self._error(batch, conflict) from conflict
        except PostgresError as error:
            if len(group.transactions) == 1:
                (transaction,) = group.transactions
                error.context = error_context(self._origin, transaction)
                raise
            middle = len(group.transactions) // 2
            left, right = _Group(group.transactions[:middle]), _Group(group.transactions[middle:])
            self._apply(batch, left, from_lsn)
            self._apply(batch, right, left.to_lsn)

    @property
    def _origin(self) -> str:
        return self._subscription.origin_name

    def _error(self, batch: ChangeBatch, conflict: ReplicationConflict) -> PostgresError:
        """A conflict as PostgreSQL reports it."""
        transaction = _transaction_at(batch.transactions, conflict.position)
        conflict.error.context = error_context(
            self._origin, transaction, conflict.relation, conflict.message_type
        )
        return conflict.error


def _transaction_at(transactions: Sequence[RemoteTransaction], position: int) -> RemoteTransaction:
    for transaction in transactions:
        if position <= transaction.last:
            return transaction
    return transactions[-1]
