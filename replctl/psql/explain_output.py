"""`replctl sync --explain`: print the plan of a sync as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from replctl.lsn import format_lsn
from replctl.psql.print_content import Alignment, Table
from replctl.psql.print_table_name import published_fields, shown_table
from replctl.psql.reporting import reporting_errors, showing_progress
from replctl.psql.sync import report_failures
from replctl.relation_name import RelationName

if TYPE_CHECKING:
    from replctl.explain import SubscriptionPlan, TablePlan
    from replctl.psql.psql_settings import PsqlSettings

_COLUMNS = (
    "Subscription", "Database", "Table", "State", "Transactions", "Rows read", "Bytes read",
    "Inserts", "Updates", "Deletes", "Path",
)  # fmt: skip
_ALIGNMENTS: tuple[Alignment, ...] = (
    "l", "l", "l", "l", "r", "r", "r", "r", "r", "r", "l",
)  # fmt: skip


def show_plan(settings: PsqlSettings, names: Sequence[str], *, as_json: bool) -> bool:
    """Print the plan of a sync of subscriptions.

    Returns:
        True if nothing would stop the sync.
    """
    from replctl.explain import explain_sync
    from replctl.launcher import SyncFailure

    assert settings.session is not None
    with reporting_errors(settings, None) as succeeded:
        with showing_progress(settings):
            plans = explain_sync(settings.session, names)
        if as_json:
            print(json.dumps([_fields(plan) for plan in plans], indent=2, ensure_ascii=False))
        else:
            rows = [row for plan in plans for row in _rows(plan)]
            settings.print(Table(_COLUMNS, rows, _ALIGNMENTS))
        failures = [SyncFailure(plan.name, plan.error) for plan in plans if plan.error is not None]
        report_failures(settings, failures)
        if failures:
            succeeded.clear()
    return bool(succeeded)


def _rows(plan: SubscriptionPlan) -> list[list[str | None]]:
    """Return the rows of the printed table: one for each run of each table or, if there is nothing
    to do, one that says so.
    """
    if not plan.tables:
        nothing = "nothing to do" if plan.error is None else None
        return [[plan.name, plan.database, *[None] * 8, nothing]]
    return [[plan.name, plan.database, *row] for table in plan.tables for row in _runs(table)]


def _runs(table: TablePlan) -> list[list[str | None]]:
    read = [table.transactions, table.rows_read, table.bytes_read]
    shown = shown_table(RelationName(table.schema, table.name), table.published)
    first = [shown, table.state, *map(_number, read)]
    rows = []
    for number, run in enumerate(table.runs):
        place = first if number == 0 else [first[0], first[1], None, None, None]
        counts = map(_number, (run.inserts, run.updates, run.deletes))
        rows.append([*place, *counts, f"{run.path} (estimated)" if run.is_estimated else run.path])
    return rows or [[*first, None, None, None, None]]


def _number(value: int | None) -> str | None:
    return None if value is None else str(value)


def _fields(plan: SubscriptionPlan) -> dict[str, object]:
    """Return the plan as JSON fields."""
    error = plan.error
    return {
        "subscription": plan.name,
        "database": plan.database,
        "from_lsn": format_lsn(plan.from_lsn),
        "to_lsn": format_lsn(plan.to_lsn),
        "tables": [
            {
                "schema": table.schema,
                "name": table.name,
                "published": published_fields(table.published),
                "state": table.state,
                "transactions": table.transactions,
                "rows_read": table.rows_read,
                "bytes_read": table.bytes_read,
                "runs": [
                    {
                        "to_lsn": format_lsn(run.to_lsn),
                        "inserts": run.inserts,
                        "updates": run.updates,
                        "deletes": run.deletes,
                        "path": run.path,
                        "is_estimated": run.is_estimated,
                    }
                    for run in table.runs
                ],
            }
            for table in plan.tables
        ],
        "error": None if error is None else {"sqlstate": error.sqlstate, "message": error.message},
    }
