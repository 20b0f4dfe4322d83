"""Build Spark SQL as a query of named steps, which knows the tables and views that it reads.

    query(
        "SELECT * FROM matched WHERE NOT (new_2 <=> target_2)",
        source=scan(published),  # the rows of the publisher
        target=scan(own),  # the rows that the target has
        matched="SELECT s.c2 AS new_2, t.c2 AS target_2 FROM source s JOIN target t USING (c1)",
    )

becomes `WITH source AS (...), target AS (...), matched AS (...) SELECT ...`.  If the SQL of a query
is inside the text of another one, `reading` returns the outer query.

The functions below return the names of columns in steps: the number is the attnum of the column in
the relation, and the prefix says which image of the row the column belongs to.

Spark computes a step again for each step that reads it. `staging.staged` computes rows only once;
other queries can read its view (`Staged.query`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from replctl.record import dataclass

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
    """A SELECT over named steps, or a statement that changes tables.

    Attributes:
        select: the SELECT itself, which reads tables, views and the steps by their names.
        steps: the name and the SELECT of each step.  A step may read the steps before it.
        tables: the locations of the Delta tables that the query reads or writes.
        feeds: the locations of those tables whose change data feed the query reads.
        views: the names of the views of kept rows (`Staged`) that the query reads.
    """

    select: str
    steps: tuple[tuple[str, Query | str], ...] = ()
    tables: frozenset[str] = frozenset()
    feeds: frozenset[str] = frozenset()
    views: frozenset[str] = frozenset()

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
    return replace(reading(select, *steps.values()), steps=tuple(steps.items()))


def reading(select: str, *parts: Query | str, table: str | None = None) -> Query:
    """Return a query that has all its SQL in one text.

    Args:
        parts: the queries whose SQL is in the text, or that read the same tables and views.  Texts
            read none.
        table: the location of a table that the text names itself.
    """
    queries = [part for part in parts if isinstance(part, Query)]
    own = frozenset() if table is None else frozenset({table})
    return Query(
        select,
        tables=own.union(*(part.tables for part in queries)),
        feeds=frozenset().union(*(part.feeds for part in queries)),
        views=frozenset().union(*(part.views for part in queries)),
    )


def union(parts: Sequence[Query]) -> Query:
    """Return the UNION ALL of queries with the same columns.

    Args:
        parts: one or more queries.
    """
    if len(parts) == 1:
        return parts[0]
    steps = {f"part_{number}": part for number, part in enumerate(parts, start=1)}
    return query("\nUNION ALL\n".join(f"SELECT * FROM {name}" for name in steps), **steps)


def union_text(parts: Sequence[Query]) -> Query:
    """Return a query like `union`, but with the SQL of its parts in one text."""
    return reading(" UNION ALL ".join(map(str, parts)), *parts)


def selected(columns: Iterable[tuple[str, str]]) -> str:
    """Return a SELECT list of expressions and their names.

    [("c1 + 1", "new_1"), ("c2", "c2")]  ->  "c1 + 1 AS new_1, c2"
    """
    shown = [
        name if expression == name else f"{expression} AS {name}" for expression, name in columns
    ]
    return ", ".join(shown) or "1 AS nothing"
