"""Aggregates that SQLite has not, for queries over catalogs: array_agg and string_agg with DISTINCT
and any ORDER BY, and averages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from replctl.adt.functions import PLAIN
from replctl.types import text

#: What is computed of the values in their order; None where there was no row.
Build = Callable[[list[tuple[Any, ...]]], Any]


def collector(build: Build, width: int, directions: Sequence[tuple[bool, bool]]) -> type:
    """Return a class as sqlite3 wants aggregates: of `width` values and the keys to sort by.

    Args:
        directions: (descending, nulls first) of each key.
    """

    class Collector:
        def __init__(self) -> None:
            self.rows: list[tuple[Any, ...]] = []

        def step(self, *args: Any) -> None:
            self.rows.append(args)

        def finalize(self) -> Any:
            rows = self.rows
            for i, (descending, nulls_first) in reversed(list(enumerate(directions, start=width))):
                rows = _sorted(rows, i, descending=descending, nulls_first=nulls_first)
            return build([row[:width] for row in rows]) if rows else None

    return Collector


def _sorted(
    rows: list[tuple[Any, ...]], place: int, *, descending: bool, nulls_first: bool
) -> list[tuple[Any, ...]]:
    nulls = [row for row in rows if row[place] is None]
    others = [row for row in rows if row[place] is not None]
    others.sort(key=lambda row: row[place], reverse=descending)
    return [*nulls, *others] if nulls_first else [*others, *nulls]


def distinct(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return each row once, sorted as PostgreSQL finds them unless they are sorted already."""
    return list(dict.fromkeys(rows))


def array_of(rows: list[tuple[Any, ...]]) -> str:
    """Texts of elements as the text of an array."""
    return text.render("_text", [None if row[0] is None else str(row[0]) for row in rows])


def joined(rows: list[tuple[Any, ...]]) -> str | None:
    """(value, separator before it), without those that are NULL."""
    result: str | None = None
    for value, separator in rows:
        if value is not None:
            result = str(value) if result is None else f"{result}{separator or ''}{value}"
    return result


def average(rows: list[tuple[Any, ...]]) -> str | None:
    """Of integers, with the digits that numeric division has."""
    values = [row[0] for row in rows if row[0] is not None]
    if not values:
        return None
    total, count = (text.parse("numeric", str(n)) for n in (sum(values), len(values)))
    return text.render("numeric", PLAIN["numeric_div"](total, count))
