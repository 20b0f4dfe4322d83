"""Build Spark SQL as a query of named steps, which knows the tables and views that it reads.

    query(
        "SELECT * FROM matched WHERE NOT (new_2 <=> target_2)",
        source=table_rows(published),  # the rows of the publisher
        target=table_rows(own),  # the rows that the target has
        matched="SELECT s.c2 AS new_2, t.c2 AS target_2 FROM source s JOIN target t USING (c1)",
    )

becomes `WITH source AS (...), target AS (...), matched AS (...) SELECT ...`.

The functions below return the names of columns in steps: the number is the attnum of the column in
the relation, and the prefix says which image of the row the column belongs to.

Spark computes a step again for each step that reads it. `staging.staged` computes rows only once;
other queries can read its view (`view_rows`).
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
    """Return the name of a column of the new row."""
    return f"new_{attnum}"


def target(attnum: int) -> str:
    """Return the name of a column of the target's row."""
    return f"target_{attnum}"


def key(number: int) -> str:
    """Return the name of a column of the key.  These columns are numbered from 1."""
    return f"key_{number}"


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT over named steps.

    Attributes:
        select: the SELECT itself, which reads tables, views and the steps by their names.
        steps: the name and the SELECT of each step.  A step may read the steps before it.
        tables: the locations of the Delta tables that the query reads.
        views: the names of the session's views that the query reads.
    """

    select: str
    steps: tuple[tuple[str, Query | str], ...] = ()
    tables: frozenset[str] = field(default=frozenset())
    views: frozenset[str] = field(default=frozenset())

    @property
    def sql(self) -> str:
        """Return the SQL for Spark.  Within another SELECT it needs parentheses."""
        if not self.steps:
            return self.select
        named = ",\n".join(f"{name} AS (\n{text}\n)" for name, text in self.steps)
        return f"WITH {named}\n{self.select}"

    def __str__(self) -> str:
        return self.sql


def query(select: str, **steps: Query | str) -> Query:
    """Return a query of named steps.

    Args:
        select: the SELECT of the result, which reads the steps.
        steps: the steps in their order; each may read the steps before it.  If a step is a query
            with steps of its own, these stay inside it.  They may also read the steps here.

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
    """Return a query for the rows of a table, with the columns c<attnum> (`delta_table.scan`)."""
    tables = frozenset() if source.location is None else frozenset({source.location})
    return Query(scan(source, with_row_id=with_row_id), tables=tables)


def view_rows(rows: Staged) -> Query:
    """Return a query for rows that are already computed."""
    return Query(f"SELECT * FROM {rows.view}", views=frozenset({rows.view}))


def union(parts: Sequence[Query]) -> Query:
    """Return the UNION ALL of queries with the same columns.

    Args:
        parts: one or more queries.
    """
    if len(parts) == 1:
        return parts[0]
    steps = {f"part_{number}": part for number, part in enumerate(parts, start=1)}
    return query("\nUNION ALL\n".join(f"SELECT * FROM {name}" for name in steps), **steps)


def selected(columns: Iterable[tuple[str, str]]) -> str:
    """Return a SELECT list of expressions and their names.

    [("c1 + 1", "new_1"), ("c2", "c2")]  ->  "c1 + 1 AS new_1, c2"
    """
    shown = [
        name if expression == name else f"{expression} AS {name}" for expression, name in columns
    ]
    return ", ".join(shown) or "1 AS nothing"


def _union(parts: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*parts)
