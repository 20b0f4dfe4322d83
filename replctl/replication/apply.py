"""Apply the publisher's log from a subscription's progress to the end, group by group (worker.c).

A group is a run of transactions whose changes can be composed to one change for each key.  A
transaction that truncates, changes keys, or changes a table without a key is a group of its own.
The subscriber writes a group as a whole.  It finds conflicts before it writes.  So everything
before a failing transaction is applied, and nothing of that transaction.  If a publisher only knows
the net effect of several transactions (ChangeBatch.is_joined), the batch is one group.  If this
group cannot be applied, the publisher decodes the batch again, transaction by transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from replctl.catalog.commit_digest import LogPosition
from replctl.catalog.pg_subscription import RelState, Subscription, TwoPhaseState
from replctl.errors import (
    ConnectionFailure,
    LockWait,
    Notice,
    PostgresError,
    QueryCanceled,
)
from replctl.injection_point import injection_point
from replctl.lsn import format_lsn
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.apply_error import (
    DecodingFailure,
    MissingIdentity,
    ReplicationConflict,
    decoding_context,
    error_context,
)
from replctl.replication.conflict_type import ConflictType
from replctl.replication.node import (
    ChangeBatch,
    RemoteTransaction,
    Subscriber,
)
from replctl.replication.refresh_hint import (
    identity_hint,
    offer_reconcile,
    unique_key_hint,
    widening_hint,
)
from replctl.replication.subscription_run import SubscriptionRun

#: Conflicts that a duplicate key of the published table can cause.
_EXISTS = (
    ConflictType.INSERT_EXISTS,
    ConflictType.UPDATE_EXISTS,
    ConflictType.MULTIPLE_UNIQUE_CONFLICTS,
)


@dataclass(frozen=True, slots=True)
class Group:
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

    def before(self, position: int) -> Group | None:
        """Return the group of the transactions before the one with the change at `position`; None
        if the change is in the first transaction.
        """
        earlier = tuple(t for t in self.transactions if t.last < position)
        return Group(earlier) if earlier else None


def apply_changes(run: SubscriptionRun) -> bool:
    """Apply all changes that the publisher has committed so far, and return whether there were any.

    Raises:
        PostgresError: a transaction cannot be applied.  The CONTEXT names it, and all transactions
            before it are applied.  Or another program has replaced the rows of a target.
    """
    publisher, subscriber, slot_name = run.publisher, run.subscriber, run.subscription.slot_name
    assert slot_name is not None
    _enable_two_phase(run, slot_name)
    confirmed = publisher.slots.position(slot_name)
    worker = _Worker(run, confirm=lambda lsn: publisher.slots.advance(slot_name, lsn))
    try:
        has_applied = worker.finish_batch()
    except PostgresError:
        subscriber.state.check_targets()  # a table's fault is the better report
        raise
    subscriber.state.check_targets()
    progress = subscriber.state.position().lsn
    end = publisher.slots.sendable_lsn(slot_name, subscriber.state.applied_positions())
    has_applied |= worker.run(max(progress, confirmed), end)
    if confirmed < end:
        publisher.slots.advance(slot_name, end)
    return has_applied


def _enable_two_phase(run: SubscriptionRun, slot_name: str) -> None:
    """Enable two-phase commit, if the subscription has requested it, as soon as all tables are
    synchronized (AllTablesyncsReady).
    """
    state = run.subscriber.state
    states = {relation.state for relation in state.relations().values()}
    if run.subscription.two_phase_state == TwoPhaseState.PENDING and states == {RelState.READY}:
        run.publisher.slots.alter(slot_name, two_phase=True)
        state.enable_two_phase()


def catch_up(run: SubscriptionRun, to_lsn: int) -> int:
    """Apply changes up to `to_lsn` to the one table that is being synchronized.  Return the LSN
    that the table has reached: `to_lsn`, or a greater one if it had already passed `to_lsn`.

    Raises:
        PostgresError: see `apply_changes`.
    """
    worker = _Worker(run)
    worker.finish_batch()
    start = run.subscriber.state.position().lsn
    worker.run(start, to_lsn)
    return max(start, to_lsn)


def batch_ends(run: SubscriptionRun, start: int, end: int) -> Iterator[list[int]]:
    """Yield the ends of the batches into which a range of the log is cut: one list for each part in
    which definitions do not change.  The subscriber limits the size of batches.
    """
    decoding, state = run.publisher.decoding, run.subscriber.state
    changes = decoding.definition_changes(run.subscription.publications, start, end)
    for segment_end in [*(lsn - 1 for lsn in changes if lsn - 1 > start), end]:
        yield decoding.batch_ends(run.log_range(start, segment_end), state.max_batch_changes)
        start = segment_end


def changes_between(
    run: SubscriptionRun, from_lsn: int, to_lsn: int, *, may_join: bool = False
) -> AbstractContextManager[ChangeBatch]:
    """Return the changes for a subscriber in a range of the log in which definitions do not change.

    Args:
        may_join: the net effect of several transactions suffices (ChangeBatch.is_joined).

    Raises:
        PostgresError: see Decoding.changes.
    """
    subscriber = run.subscriber
    return run.publisher.decoding.changes(
        run.log_range(from_lsn, to_lsn),
        subscriber.changes.has_target,
        subscriber.state.max_parallel_tables,
        subscriber.changes.joins if may_join else None,
    )


def is_applicable(subscriber: Subscriber, batch: ChangeBatch) -> bool:
    """Return whether a batch with joined transactions can be applied as a whole.  This is so unless
    a table with changes of several transactions has a change that must be applied separately.
    """
    several = tuple(item for item in batch.changes if len(item.positions) > 1)
    return not subscriber.changes.isolated_positions(replace(batch, changes=several))


def groups(subscriber: Subscriber, batch: ChangeBatch, *, skip_lsn: int = 0) -> Iterator[Group]:
    """Cut the transactions of a batch into groups, and yield the groups in order.

    Args:
        skip_lsn: the LSN of the transaction to skip; 0 for none.  Only the first transaction of the
            batch can have this LSN.
    """
    if len(batch.transactions) == 1:  # a single transaction is one group: do not read its rows
        yield Group(batch.transactions)
        return
    isolated = subscriber.changes.isolated_positions(batch)
    isolated |= {truncation.position for truncation in batch.truncations}
    pending: list[RemoteTransaction] = []
    for transaction in batch.transactions:
        positions = range(transaction.first, transaction.last + 1)
        may_be_skipped = skip_lsn and transaction is batch.transactions[0]
        if isolated.isdisjoint(positions) and not may_be_skipped:
            pending.append(transaction)
            continue
        if pending:
            yield Group(tuple(pending))
            pending = []
        yield Group((transaction,))
    if pending:
        yield Group(tuple(pending))


class _Worker:
    """Applies the changes of a run up to some position in the log.

    Args:
        confirm: called with an LSN when all changes up to it are written.
    """

    def __init__(
        self, run: SubscriptionRun, confirm: Callable[[int], None] = lambda lsn: None
    ) -> None:
        self._run = run
        self._publisher, self._subscriber = run.publisher, run.subscriber
        self._subscription = run.subscription
        self._confirm = confirm
        self._skip_lsn = run.subscription.skip_lsn

    def finish_batch(self) -> bool:
        """Finish a batch that a crash left unfinished, and return whether there was one."""
        unfinished = self._subscriber.state.unfinished_batch()
        if unfinished is None:
            return False
        try:
            self._replay(unfinished.from_lsn, unfinished.to_lsn)
        except DecodingFailure as failure:
            raise self._reported(failure) from failure
        return True

    def run(self, start: int, end: int) -> bool:
        """Apply a range of the log, and return whether there was any change.

        Raises:
            ObjectNotInPrerequisiteState: see `_check_columns` (55000).
            PostgresError: see `segment`.
        """
        if start >= end:
            return False
        self._check_columns(start, end)
        has_applied = False
        changes = self._run.schema_changes(start, end)
        for change in changes:
            assert self._run.follow_schema is not None
            # The commit may have changed rows, too: record only the progress before it
            has_applied |= self._between(start, change.lsn - 1)
            start = change.lsn - 1
            self._subscriber.state.advance(self._position(start))
            self._run.follow_schema(self._run, change)
        has_applied |= self._between(start, end)
        self._subscriber.state.advance(self._position(end))
        if changes:  # perhaps no row has changed since then
            self._subscriber.change_columns()
        return has_applied

    def _check_columns(self, start: int, end: int) -> None:
        """Check that the values in the targets' columns come from the columns that are published
        now (replaced_column.py).

        Raises:
            ObjectNotInPrerequisiteState: a column or its table was replaced, or the target was
                copied without the values of a restored column (55000).
        """
        change = self._publisher.tables.origin_change(self._run.log_range(start, end))
        if change is None:
            return
        is_followed = self._run.follow_schema is not None
        lacking = self._subscriber.origins.follow(change, is_followed=is_followed)
        for name, found in lacking.items():
            error = found.error(name)
            offer_reconcile(error, self._subscription, self._subscription.table_map.target(name))
            known = self._publisher.tables.relations(self._subscription.publications)
            remote = next((item for item in known if item.relation_name == name), None)
            added = "" if remote is None else self._subscriber.origins.adding_statements(remote)
            error.hint = " ".join(filter(None, [added, error.hint]))
            raise error

    def _between(self, start: int, end: int) -> bool:
        """Apply a range of the log, without recording progress at its end."""
        has_applied = False
        for ends in batch_ends(self._run, start, end) if start < end else ():
            has_applied |= self._batches(start, ends)
            start = ends[-1]
        return has_applied

    def _batches(self, start: int, ends: Sequence[int]) -> bool:
        """Apply a range of the log in which definitions do not change, in batches, and record the
        progress after each batch.  Return whether there was any change.

        Raises:
            PostgresError: see `segment`.
        """
        has_applied = False
        for number, batch_end in enumerate(ends, start=1):
            has_applied |= self.segment(start, batch_end)
            start = batch_end
            if number == len(ends):
                break
            self._subscriber.state.advance(self._position(batch_end))
            injection_point("batches.between")
            self._confirm(batch_end)
            self._subscriber.state.report(
                Notice(
                    "LOG",
                    f'subscription "{self._subscription.name}" has applied batch {number} of'
                    f" {len(ends)}, up to {format_lsn(batch_end)}",
                )
            )
            self._run.on_progress("applying batches", number, len(ends))
        return has_applied

    def _reported(self, failure: DecodingFailure) -> PostgresError:
        return failure.reported(self._subscription, self._subscriber.origins.is_own)

    def segment(self, from_lsn: int, to_lsn: int) -> bool:
        """Apply a range of the log in which definitions do not change, and return whether there was
        any change.

        Raises:
            PostgresError: a transaction cannot be sent or applied.  All transactions before it are
                applied.
        """
        try:
            return self._apply_segment(from_lsn, to_lsn, may_join=not self._skip_lsn)
        except DecodingFailure as failure:  # halve the range to find the transaction
            commits = self._publisher.decoding.commits(from_lsn, to_lsn)
            if len(commits) == 1:
                slot = self._subscription.slot_name or ""
                failure.error.context = decoding_context(slot, commits[0])
                raise failure.reported(
                    self._subscription, self._subscriber.origins.is_own
                ) from failure
            middle = commits[len(commits) // 2 - 1]
            has_applied = self.segment(from_lsn, middle)
            return self.segment(middle, to_lsn) or has_applied

    def _apply_segment(self, from_lsn: int, to_lsn: int, *, may_join: bool) -> bool:
        with changes_between(self._run, from_lsn, to_lsn, may_join=may_join) as batch:
            total = len(batch.transactions)
            if not total:
                return False
            self._run.on_progress("applying transactions", 0, total)
            if not batch.is_joined:
                self._apply_groups(batch)
                return True
            if self._apply_joined(batch):
                self._run.on_progress("applying transactions", total, total)
                return True
        return self._apply_segment(from_lsn, to_lsn, may_join=False)

    def _apply_groups(self, batch: ChangeBatch) -> None:
        """Apply a batch, group by group."""
        done, applied = batch.from_lsn, 0
        for group in groups(self._subscriber, batch, skip_lsn=self._skip_lsn):
            self._finish(batch, group, done)
            done = group.to_lsn
            applied += len(group.transactions)
            self._run.on_progress("applying transactions", applied, len(batch.transactions))

    def _apply_joined(self, batch: ChangeBatch) -> bool:
        """Apply a batch with joined transactions as a whole.  Return False if this fails and
        nothing is applied.  Then the transactions must be applied separately.

        Raises:
            PostgresError: a part of the batch is written, and the rest cannot be written.
        """
        if not is_applicable(self._subscriber, batch):
            return False
        whole = Group(batch.transactions)
        try:
            rows = self._subscriber.changes.apply(
                batch, whole.first, whole.last, batch.from_lsn, self._position(whole.to_lsn)
            )
        except (QueryCanceled, LockWait, ConnectionFailure):
            raise
        except ReplicationConflict as conflict:
            if self._subscriber.state.unfinished_batch() is None:
                return False
            raise self._error(batch, conflict) from conflict
        except PostgresError as error:
            if self._subscriber.state.unfinished_batch() is None:
                return False
            error.context = error_context(self._origin, whole.transactions[-1])
            raise
        self._run.on_applied(whole.transactions, rows)
        return True

    def _replay(self, from_lsn: int, to_lsn: int, *, may_join: bool = True) -> None:
        """Finish a partly written batch: apply the same changes again in one group, with
        transactions joined as before.
        """
        with changes_between(self._run, from_lsn, to_lsn, may_join=may_join) as batch:
            if not batch.is_joined or is_applicable(self._subscriber, batch):
                first = min((t.first for t in batch.transactions), default=1)
                last = max((t.last for t in batch.transactions), default=0)
                try:
                    to = self._position(to_lsn)
                    rows = self._subscriber.changes.apply(batch, first, last, from_lsn, to)
                except ReplicationConflict as conflict:  # single transactions show which one fails
                    if self._subscriber.state.unfinished_batch() is None:
                        return  # the batch was undone, so the run applies its transactions again
                    if not batch.is_joined:
                        raise self._error(batch, conflict) from conflict
                else:
                    self._run.on_applied(batch.transactions, rows)
                    return
        self._replay(from_lsn, to_lsn, may_join=False)

    def _finish(self, batch: ChangeBatch, group: Group, from_lsn: int) -> None:
        """Apply a group, unless it is the transaction to skip.

        The first transaction after ALTER SUBSCRIPTION ... SKIP clears the LSN to skip, even if it
        is not the skipped one.
        """
        skip_lsn, transaction = self._skip_lsn, group.transactions[0]
        if skip_lsn == transaction.commit_lsn:
            self._skip(transaction)
        else:
            self._apply(batch, group, from_lsn)
            if skip_lsn:
                self._subscriber.state.clear_skip(None)
                self._report(
                    transaction,
                    "COMMIT",
                    "WARNING",
                    f'skip-LSN of subscription "{self._subscription.name}" cleared',
                    "Remote transaction's finish WAL location (LSN)"
                    f" {format_lsn(transaction.commit_lsn)} did not match skip-LSN"
                    f" {format_lsn(skip_lsn)}.",
                )
        self._skip_lsn = 0

    def _skip(self, transaction: RemoteTransaction) -> None:
        lsn = format_lsn(transaction.commit_lsn)
        started = f"logical replication starts skipping transaction at LSN {lsn}"
        self._report(transaction, "BEGIN", "LOG", started)
        self._subscriber.state.clear_skip(self._position(transaction.commit_lsn))
        completed = f"logical replication completed skipping transaction at LSN {lsn}"
        self._report(transaction, "COMMIT", "LOG", completed)

    def _report(
        self,
        transaction: RemoteTransaction,
        message_type: str,
        severity: str,
        message: str,
        detail: str | None = None,
    ) -> None:
        context = error_context(self._origin, transaction, message_type=message_type)
        sqlstate = "01000" if severity == "WARNING" else "00000"
        self._subscriber.state.report(
            Notice(severity, message, sqlstate, detail=detail, context=context)
        )

    def _apply(self, batch: ChangeBatch, group: Group, from_lsn: int) -> None:
        """Apply a group.  If this fails, apply only the transactions before the failing one.

        Raises:
            PostgresError: a transaction cannot be applied.  Or a part of the group is written, and
                the rest cannot be written.  Then a later run must finish the whole group.
        """
        try:
            to = self._position(group.to_lsn)
            rows = self._subscriber.changes.apply(batch, group.first, group.last, from_lsn, to)
        except ReplicationConflict as conflict:
            before = group.before(conflict.position)
            if before is not None and self._subscriber.state.unfinished_batch() is None:
                self._apply(batch, before, from_lsn)
            raise self._error(batch, conflict) from conflict
        except (QueryCanceled, LockWait):
            raise
        except PostgresError as error:  # halve the group to find the transaction
            if (
                len(group.transactions) == 1
                or self._subscriber.state.unfinished_batch() is not None
            ):
                error.context = error_context(self._origin, group.transactions[-1])
                raise
            middle = len(group.transactions) // 2
            left, right = Group(group.transactions[:middle]), Group(group.transactions[middle:])
            self._apply(batch, left, from_lsn)
            self._apply(batch, right, left.to_lsn)
        else:
            self._run.on_applied(group.transactions, rows)

    @property
    def _origin(self) -> str:
        return self._subscriber.state.origin_name

    def _position(self, lsn: int) -> LogPosition:
        """Return a position in the publisher's log in the form that the subscriber records."""
        return LogPosition(lsn, self._publisher.slots.digest_at(lsn))

    def _error(self, batch: ChangeBatch, conflict: ReplicationConflict) -> PostgresError:
        """Count a conflict, and return the error that PostgreSQL reports for it."""
        if conflict.type is not None:
            self._subscriber.state.count_conflicts({conflict.type: 1})
        error = conflict_error(self._origin, self._subscription, batch, conflict)
        published = self._foreign_table(batch, conflict)
        if error.hint is None and published is not None:
            self._explain(error, conflict, published)
        return error

    def _foreign_table(
        self, batch: ChangeBatch, conflict: ReplicationConflict
    ) -> RelationName | None:
        """Return the name of the published table of a conflict if other programs write the table.
        They do not enforce its key, and nobody refuses their changes."""
        for item in batch.changes:
            remote = item.relation
            target = ".".join(self._subscription.table_map.target(remote.relation_name))
            if remote.has_other_writers and target == conflict.relation:
                return remote.relation_name
        return None

    def _explain(
        self, error: PostgresError, conflict: ReplicationConflict, published: RelationName
    ) -> None:
        """Add the HINT to an error that a change of another program may have caused."""
        if conflict.type in _EXISTS:
            error.hint = unique_key_hint(self._subscription, published)
        elif isinstance(error, MissingIdentity):
            error.hint = identity_hint(self._subscription, published, error.unpublished)
            if not error.unpublished:
                error.reconciles = (self._subscription.table_map.target(published),)
        elif conflict.published_type:
            target = self._subscription.table_map.target(published)
            if self._subscriber.origins.is_own(target):  # an adopted table has its owner's types
                column = (conflict.column, conflict.published_type)
                error.hint = widening_hint(self._subscription, target, *column)


def conflict_error(
    origin: str, subscription: Subscription, batch: ChangeBatch, conflict: ReplicationConflict
) -> PostgresError:
    """Return the error that PostgreSQL reports for a conflict, with the transaction in its
    CONTEXT.
    """
    transaction = _transaction_at(batch.transactions, conflict.position)
    conflict.error.context = error_context(
        origin,
        transaction,
        conflict.relation,
        conflict.message_type,
        conflict.column,
        subscription.table_map.named(conflict.relation),
    )
    return conflict.error


def _transaction_at(transactions: Sequence[RemoteTransaction], position: int) -> RemoteTransaction:
    for transaction in transactions:
        if position <= transaction.last:
            return transaction
    return transactions[-1]
