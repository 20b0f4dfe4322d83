"""Record the error of a subscription's last attempt."""

from __future__ import annotations

import time
from dataclasses import asdict, replace

from sqlalchemy import Connection, delete, insert, select

from replctl.catalog import state_schema
from replctl.errors import LockWait, PostgresError
from replctl.record import dataclass

_DETAIL = "DETAIL:  "


@dataclass(frozen=True, slots=True)
class SubscriptionError:
    """The error that stopped a subscription.

    Attributes:
        time: microseconds since 1970.
        message: the message with its DETAIL and CONTEXT.
        stops_apply: the error stopped the apply of changes, not only the copy of a table.
    """

    time: int
    sqlstate: str
    message: str
    stops_apply: bool = False

    @staticmethod
    def of(error: PostgresError, *, stops_apply: bool = False) -> SubscriptionError:
        """Return the record of an error that occurred now."""
        lines = [error.message]
        lines += [f"{_DETAIL}{error.detail}"] if error.detail else []
        lines += [f"CONTEXT:  {error.context}"] if error.context else []
        return SubscriptionError(
            time.time_ns() // 1000, error.sqlstate, "\n".join(lines), stops_apply
        )

    @property
    def is_wait(self) -> bool:
        """Return whether the subscription only waits for other processes (LockWait)."""
        return self.sqlstate == LockWait.sqlstate and self.message.startswith(LockWait.PREFIX)

    def without_rows(self) -> SubscriptionError:
        """Return the error with its message up to the DETAIL, so without values of rows."""
        return replace(self, message=self.message.partition(f"\n{_DETAIL}")[0])


def subscription_error(connection: Connection, subscription_oid: int) -> SubscriptionError | None:
    """Return the error of a subscription's last attempt; None if the attempt succeeded."""
    table = state_schema.subscription_error
    row = connection.execute(select(table).where(table.c.subid == subscription_oid)).first()
    if row is None:
        return None
    return SubscriptionError(int(row.time), row.sqlstate, row.message, bool(row.stops_apply))


def put_subscription_error(
    connection: Connection,
    subscription_oid: int,
    error: PostgresError | None,
    *,
    stops_apply: bool = False,
) -> None:
    """Record the error of a subscription's last attempt; None if the attempt succeeded."""
    table = state_schema.subscription_error
    connection.execute(delete(table).where(table.c.subid == subscription_oid))
    if error is not None:
        noted = SubscriptionError.of(error, stops_apply=stops_apply)
        connection.execute(insert(table).values(subid=subscription_oid, **asdict(noted)))
