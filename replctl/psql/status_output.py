"""`replctl status`: print subscriptions and their tables as a table or as JSON, and check them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from replctl.lsn import format_lsn
from replctl.psql.describe_replication import changed_lines
from replctl.psql.print_content import Alignment, Table
from replctl.psql.print_table_name import published_fields, shown_table
from replctl.psql.retention_lines import retention_lines
from replctl.record import dataclass
from replctl.relation_name import RelationName

if TYPE_CHECKING:
    from replctl.psql.psql_settings import PsqlSettings
    from replctl.status import Lag, SubscriptionStatus, TableStatus

_SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86400}
_BYTES = {"B": 1, "kB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}
_COUNTS = ("rows", "transactions")
_LIMIT = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")

_COLUMNS = (
    "Subscription", "Database", "Table", "Enabled", "State", "PID", "Lag (bytes)", "Transactions",
    "Rows", "Seconds", "Verified at", "Verified LSN", "Last error",
)  # fmt: skip
_ALIGNMENTS: tuple[Alignment, ...] = (
    "l", "l", "l", "l", "l", "r", "r", "r", "r", "r", "l", "l", "l",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limit:
    """The maximum lag of a subscription.

    Attributes:
        measure: the name of an attribute of Lag.
    """

    measure: str
    most: float

    @staticmethod
    def parse(text: str) -> Limit:
        """Parse a limit such as `30s`, `5min`, `16MB`, `1000rows` or `10transactions`.

        Raises:
            ValueError: the text does not have such a form."""
        match = _LIMIT.fullmatch(text.strip())
        number, unit = match.groups() if match else ("0", "")
        if unit in _SECONDS:
            return Limit("seconds", float(number) * _SECONDS[unit])
        if unit in _BYTES:
            return Limit("size", float(number) * _BYTES[unit])
        if unit in _COUNTS:
            return Limit(unit, float(number))
        units = ", ".join((*_SECONDS, *_BYTES, *_COUNTS))
        raise ValueError(f'"{text}" is no limit: it needs a number and one of {units}')

    def is_exceeded(self, lag: Lag) -> bool:
        """Return whether a lag exceeds the limit; an unknown lag does not."""
        value = getattr(lag, self.measure)
        return value is not None and value > self.most


def show_status(
    settings: PsqlSettings, names: Sequence[str], limits: Sequence[Limit], *, as_json: bool
) -> bool:
    """Print the state of subscriptions.

    Returns:
        True if no subscription is broken, and all enabled ones are within the limits.

    Raises:
        UndefinedObject: one of the subscriptions does not exist.
    """
    from replctl.status import subscription_status

    assert settings.session is not None
    found = subscription_status(settings.session, names)
    if as_json:
        print(json.dumps([_fields(status) for status in found], indent=2, ensure_ascii=False))
    else:
        rows = [row for status in found for row in _rows(status)]
        lines = [line for status in found for line in (*_retention(status), *_changed(status))]
        settings.print(Table(_COLUMNS, rows, _ALIGNMENTS, notes=lines))
    return not any(
        status.state == "broken"
        or (status.enabled and any(limit.is_exceeded(status.lag) for limit in limits))
        for status in found
    )


def _rows(status: SubscriptionStatus) -> list[list[str | None]]:
    error = None if status.error is None else status.error.message
    first = [status.name, status.database, None, "t" if status.enabled else "f", status.state]
    pid = None if status.pid is None else str(status.pid)
    rows = [[*first, pid, *_lag(status.lag), None, None, error]]
    for table in status.tables:
        shown = shown_table(RelationName(table.schema, table.name), table.published)
        rows.append(
            [
                status.name,
                status.database,
                shown,
                None,
                table.state,
                None,
                *_lag(table.lag),
                *_verified(table),
                None,
            ]
        )
    return rows


def _retention(status: SubscriptionStatus) -> list[str]:
    found = [
        (RelationName(table.schema, table.name), table.retention)
        for table in status.tables
        if table.retention is not None
    ]
    return retention_lines(status.name, found, is_enabled=status.enabled)


def _changed(status: SubscriptionStatus) -> list[str]:
    """Return lines for the tables whose row filter or column list has changed since their copy."""
    changed = [
        RelationName(table.schema, table.name) for table in status.tables if table.is_changed
    ]
    return changed_lines(status.name, changed)


def _verified(table: TableStatus) -> list[str | None]:
    found = table.verified
    return [None, None] if found is None else [_time(found.time), format_lsn(found.lsn)]


def _lag(lag: Lag) -> list[str | None]:
    seconds = None if lag.seconds is None else f"{lag.seconds:.1f}"
    counts = (lag.size, lag.transactions, lag.rows)
    return [*(None if count is None else str(count) for count in counts), seconds]


def _fields(status: SubscriptionStatus) -> dict[str, object]:
    """Return the status as JSON fields."""
    fields: dict[str, object] = {
        "subscription": status.name,
        "database": status.database,
        "enabled": status.enabled,
        "state": status.state,
        "pid": status.pid,
        "lag": asdict(status.lag),
        "last_error": None,
        "tables": [_table_fields(table) for table in status.tables],
    }
    if status.error is not None:
        fields["last_error"] = {
            "time": _time(status.error.time),
            "sqlstate": status.error.sqlstate,
            "message": status.error.message,
        }
    return fields


def _table_fields(table: TableStatus) -> dict[str, object]:
    at, lsn = _verified(table)
    return {
        "schema": table.schema,
        "name": table.name,
        "published": published_fields(table.published),
        "state": table.state,
        "lag": asdict(table.lag),
        "retention": None if table.retention is None else asdict(table.retention),
        "verified_at": at,
        "verified_lsn": lsn,
    }


def _time(microseconds: int) -> str:
    """Return a time of the catalog in ISO 8601: 2024-02-29T12:00:00.000+00:00."""
    at = datetime.fromtimestamp(microseconds / 1_000_000, UTC)
    return at.isoformat(timespec="milliseconds")
