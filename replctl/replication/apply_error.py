"""Errors that stop a subscription: changes that cannot be decoded, or do not fit the subscriber's
data, and how they are reported.

PostgreSQL's documentation, section 31.5, "Conflicts".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from replctl.catalog.pg_subscription import Subscription
from replctl.errors import ObjectNotInPrerequisiteState, PostgresError
from replctl.lsn import format_lsn
from replctl.replication.conflict_type import ConflictType
from replctl.replication.node import RemoteTransaction
from replctl.replication.refresh_hint import offer_reconcile


@dataclass
class ReplicationConflict(Exception):
    """An error that belongs to one change of a batch.

    Attributes:
        position: of the change in its batch.
        error: what is wrong.
        relation: the target relation, `schema.name`; '' if there is none that changes fit.
        message_type: INSERT, UPDATE, DELETE or TRUNCATE; '' if it is not known.
        column: whose value cannot be converted, or ''.
        type: the kind of conflict, None for what is none in PostgreSQL's sense.
    """

    position: int
    error: PostgresError
    relation: str
    message_type: str = ""
    column: str = ""
    type: ConflictType | None = None


class ReplacedTable(ObjectNotInPrerequisiteState):
    """A published table does not have the versions any more that are to be read."""


class DecodingFailure(Exception):
    """A transaction cannot be sent: a row filter fails for a row (division by zero, say), or the
    publications do not agree about columns.

    Args:
        error: why.
        replaced: schema and name of the published table, if the reason is that its rows are not
            those any more that it had before.
        hint: returns what helps a subscription, if that is something else.
    """

    def __init__(
        self,
        error: PostgresError,
        replaced: tuple[str, str] | None = None,
        *,
        hint: Callable[[Subscription], str] | None = None,
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.replaced = replaced
        self.hint = hint

    def reported(self, subscription: Subscription) -> PostgresError:
        """Return the error, with the statement that helps a subscription out of it."""
        if self.replaced is not None:
            offer_reconcile(self.error, subscription, *self.replaced)
        elif self.hint is not None:
            self.error.hint = self.hint(subscription)
        return self.error


def decoding_context(slot: str, commit_lsn: int) -> str:
    """Return the CONTEXT of an error of the output plugin (output_plugin_error_callback in
    logical.c)."""
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
) -> str:
    """Return the CONTEXT of an error of the apply worker (apply_error_callback in worker.c)."""
    text = f'processing remote data for replication origin "{origin}"'
    if message_type:
        text += f' during message type "{message_type}"'
    if relation:
        text += f' for replication target relation "{relation}"'
    if column:
        text += f' column "{column}"'
    return (
        f"{text} in transaction {transaction.xid}, finished at {format_lsn(transaction.commit_lsn)}"
    )
