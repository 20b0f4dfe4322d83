"""Choose how to find and write rows: by their keys, or by a pass over the table.

Reading: for few changes, this process looks up the rows by their keys (`key_lookup`), or fetches
them with one query with literal keys.  For many changes, Spark joins the changes with the table.

Writing: replaceWhere with literal keys replaces few rows, MERGE writes many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from replctl.record import dataclass
from replctl.spark.comparison_sql import without_limits
from replctl.spark.data_type import storage_type
from replctl.spark.delta_table import column_sql, scan
from replctl.spark.key_lookup import found_rows, view_of_rows
from replctl.spark.normal_form import has_own_form, matching_form
from replctl.spark.outcome import Outcome
from replctl.spark.spark_query import Query, reading, union_text
from replctl.spark.staged import Staged, StagedColumn
from replctl.spark.staging import SMALL, staged
from replctl.spark.values import Target, TargetColumn

if TYPE_CHECKING:
    from replctl.spark.engine import Engine


@dataclass(frozen=True, slots=True)
class LeafChange:
    """The numbers of rows to remove, to change in place, and to add in a leaf partition."""

    deleted: int
    updated: int
    inserted: int

    @property
    def is_nothing(self) -> bool:
        return not (self.deleted or self.updated or self.inserted)


class WritePath(StrEnum):
    """The command that writes rows to a table."""

    APPEND = "append"
    REPLACE_WHERE = "replaceWhere"
    MERGE = "MERGE"


def write_path(outcome: Outcome, change: LeafChange) -> WritePath:
    """Return how to write an outcome to a leaf partition."""
    is_by_key = outcome.matching == "key" and not outcome.moves_keys
    is_by_key = is_by_key and not outcome.lacks_keys  # nothing is equal to NULL
    # replaceWhere would make Delta assign new identity values, and would lose the values of columns
    # that the relation leaves out.
    target = outcome.target
    has_identity = any(column.is_identity for column in target.columns)
    leaves_out = any(leaf.source.left_out for leaf in target.leaves)
    has_literals = all(map(has_own_form, target.key_columns))
    can_replace = is_by_key and has_literals and not has_identity and not leaves_out
    return _chosen_path(change, outcome.rows.is_small, can_replace)


def estimated_path(change: LeafChange, *, is_by_key: bool) -> WritePath:
    """Return how changes will probably be written, before their outcome is known.

    Args:
        is_by_key: a key identifies the rows, and does not change.
    """
    count = change.deleted + change.updated + change.inserted
    return _chosen_path(change, count <= SMALL, is_by_key)


def _chosen_path(change: LeafChange, is_small: bool, is_by_key: bool) -> WritePath:
    if not (change.deleted or change.updated):
        return WritePath.APPEND
    return WritePath.REPLACE_WHERE if is_small and is_by_key else WritePath.MERGE


@contextmanager
def existing_rows(
    engine: Engine, target: Target, changes: Staged, *, needs_values: bool
) -> Iterator[tuple[Query, bool]]:
    """Yield a query for the target rows that changes may affect, and whether it has all their
    values.

    This process looks up few rows itself, or Spark fetches them from a large table in one pass.

    Args:
        needs_values: the caller needs the values of sent columns, in addition to the keys and the
            columns that are not sent.  It needs them in two cases: keys change, or an update
            changes none of the sent values, so the row may already have the new values.
    """
    conditions = _key_conditions(target, changes)
    read = [
        column
        for column in target.columns
        if needs_values
        or column.attnum in target.key
        or (column.sent is None and column.generated is None)
    ]
    with ExitStack() as stack:
        found = None
        if conditions and any(leaf.source.local_view() is None for leaf in target.leaves):
            found = _looked_up_rows(engine, target, changes, read, stack)
        if found is not None:
            yield found, needs_values
            return
        query = existing_rows_sql(target, conditions)
        is_small = engine.query_size.is_small(query)
        if is_small or not conditions:
            yield query, is_small or needs_values
            return
        columns = [StagedColumn("leaf", "int4")]
        columns += [StagedColumn(f"c{c.attnum}", c.type, c.typmod) for c in read]
        rows = stack.enter_context(
            staged(engine, query, columns, is_repeatable=True, is_many=False)
        )
        values = [f"c{c.attnum}" if c in read else _null_as(c) for c in target.columns]
        text = f"SELECT {_named_values(target, values)} FROM {rows.view}"
        yield reading(text, rows.query), needs_values


def _looked_up_rows(
    engine: Engine,
    target: Target,
    changes: Staged,
    read: Sequence[TargetColumn],
    stack: ExitStack,
) -> Query | None:
    """Look up the rows with the keys of a few changes, in this process.  Return a query for them;
    None if Spark must read the table.
    """
    keys = {k: [*changes.values(f"o{k}"), *changes.values(f"n{k}")] for k in target.key}
    parts = []
    for number, leaf in enumerate(target.leaves):
        source = leaf.source
        view = None
        if source.location is not None:
            stored = [source.column(column.attnum) for column in read]
            rows = found_rows(source, stored, keys)
            if rows is None:
                return None
            if rows.num_rows:
                view = stack.enter_context(view_of_rows(engine, rows))
                if view is None:
                    return None
        if view is None:
            nothing = scan(replace(source, location=None))
            parts.append(f"SELECT {number} AS leaf, * FROM ({nothing})")
            continue
        values = [
            column_sql(source.column(c.attnum)) if c in read else _null_as(c)
            for c in target.columns
        ]
        parts.append(f"SELECT {_named_values(target, values, str(number))} FROM {view}")
    return Query(" UNION ALL ".join(parts))


def _named_values(target: Target, values: Sequence[str], leaf: str = "leaf") -> str:
    """Return the SELECT list of a row's leaf partition and values, with the names of
    `existing_rows_sql`."""
    named = [f"{value} AS c{c.attnum}" for c, value in zip(target.columns, values, strict=True)]
    return ", ".join([f"{leaf} AS leaf", *named])


def _null_as(column: TargetColumn) -> str:
    return f"CAST(NULL AS {storage_type(column.type, column.typmod)})"


def _key_conditions(target: Target, changes: Staged) -> list[str]:
    """Return conditions for the keys of few changes, with literals; [] for many changes.  The
    conditions match all rows with these keys, and may match other rows.
    """
    if not changes.is_small:
        return []
    return [literal_condition(f"c{k}", changes, [f"o{k}", f"n{k}"]) for k in target.key]


def existing_rows_sql(target: Target, conditions: Sequence[str]) -> Query:
    """Return a query for the target's rows that satisfy all conditions, with the indexes of their
    leaf partitions.
    """
    where = " AND ".join(conditions) or "TRUE"
    scans = [scan(leaf.source) for leaf in target.leaves]
    return union_text(
        [
            reading(f"SELECT * FROM (SELECT {number} AS leaf, * FROM ({rows})) WHERE {where}", rows)
            for number, rows in enumerate(scans)
        ]
    )


def literal_condition(name: str, rows: Staged, columns: Sequence[str]) -> str:
    """Return the condition `name IN (...)` with all values of `columns` in `rows`.  If equal values
    are stored identically, Spark pushes the condition into the scan of the files.

    Args:
        name: a column of the same type as `columns`.
        rows: a small number of rows.
    """
    typed = next(column for column in rows.columns if column.name == columns[0])
    literals = {
        matching_form(typed, literal)
        for column in columns
        for literal, value in zip(rows.literals(column), rows.values(column), strict=True)
        if value is not None
    }
    name = without_limits(matching_form(typed, name), typed.type)
    return f"{name} IN ({', '.join(sorted(literals))})" if literals else "FALSE"
