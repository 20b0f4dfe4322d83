"""Print when the retention of published tables removes changes that a subscription must still
apply: lines below a table.
"""

from __future__ import annotations

from collections.abc import Sequence

from replctl.lake.retention_outlook import shown
from replctl.relation_name import RelationName
from replctl.replication.node import TableRetention
from replctl.replication.refresh_hint import refresh_statement
from replctl.types.timestamp import timestamptz_out


def retention_lines(
    subscription: str, tables: Sequence[tuple[RelationName, TableRetention]], *, is_enabled: bool
) -> list[str]:
    """Return a heading that names the subscription, and a line for each table; nothing if there are
    no tables.

    Args:
        tables: the names of the tables at the subscriber, with the effect of the retention.
    """
    if not tables:
        return []
    return [f'Retention of changes that subscription "{subscription}" needs:'] + [
        f'    "{name}" {_sentence(subscription, name, table, is_enabled)}' for name, table in tables
    ]


def _sentence(
    subscription: str, name: RelationName, table: TableRetention, is_enabled: bool
) -> str:
    if table.is_lost or table.until is None:
        statement = refresh_statement(subscription, name, is_off=not is_enabled)
        return f"lost: the owner has removed some. Use {statement}"
    until = timestamptz_out(table.until // 1_000_000 * 1_000_000)
    return f"until {until} ({table.setting} is {shown(table.retention)})"
