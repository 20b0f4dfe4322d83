"""Spark SQL as a value: a query of named steps, which knows the tables and views that it reads.

    query(
        "SELECT * FROM matched WHERE NOT (new_2 <=> target_2)",
        source=table_rows(published),  # the rows of the publisher
        target=table_rows(own),  # the rows that the target has
        matched="SELECT s.c2 AS new_2, t.c2 AS target_2 FROM source s JOIN target t USING (c1)",
    )

becomes `WITH source AS (...), target AS (...), matched AS (...) SELECT ...`.

Columns of steps have the names below: the attribute number says which column of the relation they
hold, the prefix which image of the row.

Spark computes a step again for each step that reads it. `staging.staged` keeps what must be
computed once: its view is then a source of further queries (`view_rows`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import field

from replctl.record import dataclass
from replctl.spark.delta_table import scan
from replctl.spark.staged import Staged
from replctl.spark.values import TableSource

_STEP_NAME = re.compile(r"[a-z][a-z0-9_]*")


def new(attnum: int) -> str:
    """Return the name of a column of the row after a change."""
    return f"new_{attnum}"


def target(attnum: int) -> str:
    """Return the name of a column of the row that the target has."""
    return f"target_{attnum}"


def key(number: int) -> str:
    """Return the name of a column of the key, which are numbered from 1."""
    return f"key_{number}"


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT over named steps.

    Attributes:
        select: the SELECT itself, which reads tables, views and the steps by their names.
        steps: name and SELECT of each step; a step reads those before it.
        tables: the locations of the Delta tables that it reads.
        views: the names of the views of this session that it reads.
    """

    select: str
    steps: tuple[tuple[str, Query | str], ...] = ()
    tables: frozenset[str] = field(default=frozenset())
    views: frozenset[str] = field(default=frozenset())

    @property
    def sql(self) -> str:
        """The text for Spark; within another SELECT it stands in parentheses."""
        if not self.steps:
            return self.select
        named = ",\n".join(f"{name} AS (\n{text}\n)" for name, text in self.steps)
        return f"WITH {named}\n{self.select}"

    def __str__(self) -> str:
        return self.sql


def query(select: str, **steps: Query | str) -> Query:
    """Return a query of named steps.

    Args:
        select: the result, over the steps.
        steps: the steps in order; each reads those before it.  The steps of a query that is a step
            here stay inside it, and may read those of this query.

    Raises:
        ValueError: the name of a step is not in lower case.
    """
    for name in steps:
        if not _STEP_NAME.fullmatch(name):
            raise ValueError(f"step {name!r}")
    parts = [step for step in steps.values() if isinstance(step, Query)]
    return Query(
        select,
        tuple(steps.items()),
        tables=_union(part.tables for part in parts),
        views=_union(part.views for part in parts),
    )


def table_rows(source: TableSource, *, with_row_id: bool = False) -> Query:
    """Return the rows of a table, its columns named c<attnum> (`delta_table.scan`)."""
    tables = frozenset() if source.location is None else frozenset({source.location})
    return Query(scan(source, with_row_id=with_row_id), tables=tables)


def view_rows(rows: Staged) -> Query:
    """Return rows that were computed before."""
    return Query(f"SELECT * FROM {rows.view}", views=frozenset({rows.view}))


def union(parts: Sequence[Query]) -> Query:
    """Return the rows of several queries with the same columns, equal ones too.

    Args:
        parts: one at least.
    """
    if len(parts) == 1:
        return parts[0]
    steps = {f"part_{number}": part for number, part in enumerate(parts, start=1)}
    return query("\nUNION ALL\n".join(f"SELECT * FROM {name}" for name in steps), **steps)


def selected(columns: Iterable[tuple[str, str]]) -> str:
    """Return the list of a SELECT from expressions and their names.

    [("c1 + 1", "new_1"), ("c2", "c2")]  ->  "c1 + 1 AS new_1, c2"
    """
    shown = [
        name if expression == name else f"{expression} AS {name}" for expression, name in columns
    ]
    return ", ".join(shown) or "1 AS nothing"


def _union(parts: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*parts)
