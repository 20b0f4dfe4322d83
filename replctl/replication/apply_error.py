"""Report errors that stop a subscription: changes that cannot be decoded, or that conflict with the
subscriber's data.

PostgreSQL's documentation, section 31.5, "Conflicts".
"""

from __future__ import annotations

from collections.abc import Callable

from replctl.catalog.pg_subscription import Subscription
from replctl.errors import ObjectNotInPrerequisiteState, PostgresError
from replctl.lsn import format_lsn
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.replication.conflict_type import ConflictType
from replctl.replication.node import RemoteTransaction
from replctl.replication.refresh_hint import offer_reconcile


@dataclass
class ReplicationConflict(Exception):
    """Raised if a change of a batch cannot be applied.

    Attributes:
        position: the position of the change in its batch.
        error: the error to report.
        relation: the target relation, `schema.name`; '' if there is no target.
        message_type: INSERT, UPDATE, DELETE or TRUNCATE; '' if unknown.
        column: the column whose value cannot be converted; '' for other errors.
        type: the kind of conflict; None for other errors.
        published_type: the SQL name of the published type of `column`, if it has more values than
            the type of the target's column; '' if not.
    """

    position: int
    error: PostgresError
    relation: str
    message_type: str = ""
    column: str = ""
    type: ConflictType | None = None
    published_type: str = ""


class ReplacedTable(ObjectNotInPrerequisiteState):
    """Raised if a published table no longer has the versions that must be read."""


class MissingIdentity(ObjectNotInPrerequisiteState):
    """Raised if the publisher does not send the old values that identify rows in the target.

    Attributes:
        unpublished: the names of those columns of the target's key that no publication sends.
    """

    unpublished: tuple[str, ...] = ()


class DecodingFailure(Exception):
    """Raised if a transaction cannot be sent.  For example, a row filter divides by zero, or the
    publications list different columns of a table.

    Args:
        error: the error to report.
        replaced: the name of the published table, if the reason is that another program has
            replaced its rows.
        hint: a function that returns the HINT for a subscription, if the error needs a special one.
        repair: the same, if the HINT also depends on the target: its second argument says whether
            a target's Delta table is replctl's own.
    """

    def __init__(
        self,
        error: PostgresError,
        replaced: RelationName | None = None,
        *,
        hint: Callable[[Subscription], str] | None = None,
        repair: Callable[[Subscription, Callable[[RelationName], bool]], str] | None = None,
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.replaced = replaced
        self.hint = hint
        self.repair = repair

    def reported(
        self,
        subscription: Subscription,
        is_own: Callable[[RelationName], bool] = lambda target: True,
    ) -> PostgresError:
        """Return the error for a subscription.  Its HINT is the statement with which the
        subscription can continue.

        Args:
            is_own: returns whether a target's Delta table is replctl's own (ColumnOrigins.is_own).
        """
        if self.replaced is not None:
            target = subscription.table_map.target(self.replaced)
            offer_reconcile(self.error, subscription, target)
        elif self.hint is not None:
            self.error.hint = self.hint(subscription)
        elif self.repair is not None:
            self.error.hint = self.repair(subscription, is_own)
        return self.error


def name_both(error: PostgresError, subscription: Subscription, published: RelationName) -> None:
    """Add the names of the published table and its target to the CONTEXT of an error of the table's
    synchronization, if the names differ.
    """
    target = subscription.table_map.target(published)
    if target != published and error.context is None:
        error.context = (
            f'synchronizing replication target relation "{target}" with published'
            f' relation "{published}"'
        )


def decoding_context(slot: str, commit_lsn: int) -> str:
    """Return the CONTEXT for an error of the output plugin (output_plugin_error_callback in
    logical.c).
    """
    return (
        f'slot "{slot}", output plugin "pgoutput", in the change callback, associated LSN'
        f" {format_lsn(commit_lsn)}"
    )


def error_context(
    origin: str,
    transaction: RemoteTransaction,
    relation: str = "",
    message_type: str = "",
    column: str = "",
    published: RelationName | None = None,
) -> str:
    """Return the CONTEXT for an error of the apply worker (apply_error_callback in worker.c).

    Args:
        published: the name of the published relation, if it differs from `relation`.
    """
    text = f'processing remote data for replication origin "{origin}"'
    if message_type:
        text += f' during message type "{message_type}"'
    if relation:
        text += f' for replication target relation "{relation}"'
    if published is not None:
        text += f' of published relation "{published}"'
    if column:
        text += f' column "{column}"'
    return (
        f"{text} in transaction {transaction.xid}, finished at {format_lsn(transaction.commit_lsn)}"
    )
