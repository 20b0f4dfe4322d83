"""`replctl verify`: print whether the tables of subscriptions equal the published rows, as tables
or as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from replctl.lsn import format_lsn
from replctl.psql.print_content import Alignment, Table
from replctl.psql.print_table_name import published_fields, shown_table
from replctl.psql.reporting import reporting_errors, showing_progress
from replctl.psql.sync import with_subscription
from replctl.relation_name import RelationName
from replctl.spark import DIFFERENCE_KINDS

if TYPE_CHECKING:
    from replctl.psql.psql_settings import PsqlSettings
    from replctl.spark import Comparison, RowDifference
    from replctl.verify import VerifiedSubscription, VerifiedTable

_COLUMNS = (
    "Subscription", "Database", "Table", "LSN", "Published rows", "Rows", "Missing", "Extra",
    "Different", "Apart", "Result",
)  # fmt: skip
_ALIGNMENTS: tuple[Alignment, ...] = (
    "l", "l", "l", "l", "r", "r", "r", "r", "r", "r", "l",
)  # fmt: skip


class Verdict(IntEnum):
    """The exit codes of `replctl verify`."""

    EQUAL = 0
    DIFFERENT = 1
    UNKNOWN = 2  # something could not be compared


def show_verification(
    settings: PsqlSettings, name: str | None, table: str | None, limit: int, *, as_json: bool
) -> Verdict:
    """Compare tables, and print the differences.

    Args:
        name: the subscription; None for all subscriptions.
        table: the name of one of its tables, as in SQL; None for all tables.
        limit: maximum number of rows of each kind to print per table.
    """
    from replctl.types.quote import split_qualified_name
    from replctl.verify import verify

    assert settings.session is not None
    found: list[VerifiedSubscription] = []
    with reporting_errors(settings, None) as succeeded:
        parts = [] if table is None else split_qualified_name(table)
        with showing_progress(settings):
            found = verify(settings.session, name, parts, limit)
        if as_json:
            print(json.dumps([_fields(item) for item in found], indent=2, ensure_ascii=False))
        else:
            settings.print(Table(_COLUMNS, [row for item in found for row in _rows(item)],
                                 _ALIGNMENTS))  # fmt: skip
            for item in found:
                _print_differences(settings, item)
        for item in found:
            for error in item.errors:
                settings.messages.report(with_subscription(error, item.name))
    if not succeeded:
        return Verdict.UNKNOWN
    return verdict(found)


def verdict(found: Sequence[VerifiedSubscription]) -> Verdict:
    """Return the exit code.  A difference takes precedence over unknown results."""
    if any(table.result == "different" for item in found for table in item.tables):
        return Verdict.DIFFERENT
    return Verdict.UNKNOWN if any(item.errors for item in found) else Verdict.EQUAL


def _rows(found: VerifiedSubscription) -> Iterator[list[str | None]]:
    if not found.tables:
        result = "equal" if found.error is None else "unknown"
        yield [found.name, found.database, *[None] * 8, result]
    for table in found.tables:
        counts: list[int | None] = [None] * 6
        if (item := table.comparison) is not None:
            counts = [item.published_rows, item.target_rows]
            counts += [item.differences.get(kind, 0) for kind in DIFFERENCE_KINDS]
            counts.append(sum(item.apart.values()))
        shown = shown_table(RelationName(table.schema, table.name), table.published)
        numbers = [None if count is None else str(count) for count in counts]
        yield [found.name, found.database, shown, _lsn(table), *numbers, table.result]


def _print_differences(settings: PsqlSettings, found: VerifiedSubscription) -> None:
    """Print the first differing rows of each table."""
    for table in found.tables:
        comparison = table.comparison
        if comparison is None or not comparison.first:
            continue
        names = [name for name, _value in comparison.first[0].row]
        rows = [
            [row.kind, *(value for _name, value in row.row), ", ".join(row.columns) or None]
            for row in _in_order(comparison)
        ]
        title = f'Table "{table.schema}.{table.name}" of subscription "{found.name}"'
        if table.published != RelationName(table.schema, table.name):
            title += f', published as "{".".join(table.published)}"'
        settings.print(Table(("Row", *names, "Columns"), rows, title=title))


def _in_order(comparison: Comparison) -> list[RowDifference]:
    return sorted(comparison.first, key=lambda row: DIFFERENCE_KINDS.index(row.kind))


def _lsn(table: VerifiedTable) -> str | None:
    return None if table.lsn is None else format_lsn(table.lsn)


def _fields(found: VerifiedSubscription) -> dict[str, object]:
    """Return the comparison as JSON fields."""
    return {
        "subscription": found.name,
        "database": found.database,
        "tables": [_table_fields(table) for table in found.tables],
        "error": _error_fields(found.error),
    }


def _table_fields(table: VerifiedTable) -> dict[str, object]:
    fields: dict[str, Any] = {
        "schema": table.schema,
        "name": table.name,
        "published": published_fields(table.published),
        "result": table.result,
        "lsn": _lsn(table),
        "error": _error_fields(table.error),
    }
    comparison = table.comparison
    if comparison is None:
        return fields
    fields |= {"published_rows": comparison.published_rows, "rows": comparison.target_rows}
    for kind in DIFFERENCE_KINDS:
        rows: list[dict[str, object]] = []
        for row in comparison.first:
            if row.kind == kind:
                columns = {"columns": list(row.columns)} if kind == "different" else {}
                rows.append({"row": dict(row.row), **columns})
        fields[kind] = {"count": comparison.differences.get(kind, 0), "first": rows}
    fields["different"]["columns"] = comparison.columns
    fields["apart"] = {kind: comparison.apart.get(kind, 0) for kind in ("extra", "different")}
    return fields


def _error_fields(error: Any) -> dict[str, object] | None:
    if error is None:
        return None
    return {
        "sqlstate": error.sqlstate,
        "message": error.message,
        "detail": error.detail,
        "hint": error.hint,
    }
