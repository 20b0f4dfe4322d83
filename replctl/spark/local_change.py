"""Compute the outcome of a local statement: rows to insert, update and delete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from replctl.replication.update_transformation import Action
from replctl.spark.outcome import (
    Matching,
    Outcome,
    checks_of,
    finished_sql,
    grouped,
    outcome_columns,
)
from replctl.spark.spark_query import Query, reading
from replctl.spark.staged import Staged, StagedColumn
from replctl.spark.staging import SMALL, LocalRows, late_view, staged
from replctl.spark.uniqueness import are_new, duplicates_sql
from replctl.spark.values import Target, UniqueKey
from replctl.types.delta_type import is_native

if TYPE_CHECKING:
    import pyarrow as pa

    from replctl.spark.engine import Engine


@contextmanager
def inserted(
    engine: Engine, target: Target, rows: Query, place: str | None = None
) -> Iterator[Outcome]:
    """Yield the outcome of INSERT.

    Args:
        rows: a query for the new rows, in their order.  Its columns are w<attnum> for each column
            that is not generated.
        place: the column of `rows` that numbers them; None: number the rows here.
    """
    joined = (
        f"SELECT 'I' AS op, {place or 'monotonically_increasing_id()'} AS position,"
        f" CAST(NULL AS INT) AS old_leaf, * FROM ({rows})"
    )
    query = finished_sql(target, reading(joined, rows), is_new=True)
    with staged(engine, query, outcome_columns(target)) as finished:
        yield grouped(engine, target, finished)


@contextmanager
def inserted_values(
    engine: Engine, target: Target, rows: LocalRows, place: str | None = None
) -> Iterator[Outcome]:
    """Yield the outcome of INSERT of given rows.  Few rows need no Spark, if the target has no
    generated columns, checks or partitions.

    Args:
        rows: the new rows, with the columns that `inserted` describes.
        place: see `inserted`.
    """
    given = rows.table
    if given.num_rows > SMALL or not _is_plain(target, rows.columns):
        with (
            rows.view(engine) as view,
            inserted(engine, target, Query(f"SELECT * FROM {view}"), place) as outcome,
        ):
            yield outcome
        return
    table = _outcome_here(target, given, place)
    wanted = tuple(outcome_columns(target))
    with late_view(engine, table, wanted) as made:
        yield grouped(engine, target, Staged(made, wanted, table))


def _is_plain(target: Target, columns: Sequence[StagedColumn]) -> bool:
    """Return whether a target takes new rows unchanged, except rows with missing values."""
    given = {(column.name, column.type, column.typmod) for column in columns}
    return (
        len(target.leaves) == 1
        and not target.leaves[0].rules
        and not checks_of(target)
        and all((f"w{c.attnum}", c.type, c.typmod) in given for c in target.columns)
        and not any(is_native(column.type) for column in columns)
    )


def _outcome_here(target: Target, rows: pa.Table, place: str | None) -> pa.Table:
    """Add the columns of an outcome to new rows, as `finished_sql` does for a target without
    generated columns, checks and partitions."""
    import pyarrow as pa

    count = rows.num_rows
    control = {
        "op": pa.array([Action.INSERT.value] * count, pa.string()),
        "position": pa.array(range(count), pa.int64()) if place is None else rows.column(place),
        "action": pa.array([Action.INSERT.value] * count, pa.string()),
        "violation": pa.array(_missing_values(target, rows), pa.int32()),
        "old_leaf": pa.nulls(count, pa.int32()),
        "new_leaf": pa.array([0] * count, pa.int32()),
    }
    keys = {f"k{i}": rows.column(f"w{attnum}") for i, attnum in enumerate(target.key, start=1)}
    values = {f"w{c.attnum}": rows.column(f"w{c.attnum}") for c in target.columns}
    return pa.table(control | keys | values)


def _missing_values(target: Target, rows: pa.Table) -> list[int | None]:
    """Return for each row the first column that must have a value, but has none."""
    needed = [column.attnum for column in target.columns if column.not_null]
    needed += target.leaves[0].not_null
    found: list[int | None] = [None] * rows.num_rows
    for attnum in reversed(needed):
        for row, is_missing in enumerate(rows.column(f"w{attnum}").is_null().to_pylist()):
            if is_missing:
                found[row] = attnum
    return found


@contextmanager
def unconflicting(engine: Engine, proposed: Outcome, key: UniqueKey) -> Iterator[Outcome]:
    """Yield the outcome of an INSERT without conflicting rows.  The key of a conflicting row exists
    in the table or in an earlier row of the outcome.
    """
    if proposed.rows.is_small and are_new(proposed, key):
        yield proposed
        return
    columns = ", ".join(
        f"v.w{column.attnum}" for column in proposed.target.columns if column.generated is None
    )
    duplicates = duplicates_sql(proposed, key)
    rows = reading(
        f"SELECT v.position AS row_position, {columns} FROM {proposed.rows.view} v LEFT ANTI JOIN"
        f" ({duplicates}) d ON v.position = d.position",
        proposed.rows.query,
        duplicates,
    )
    with inserted(engine, proposed.target, rows, "row_position") as outcome:
        yield outcome


@contextmanager
def changed(
    engine: Engine,
    target: Target,
    rows: Query,
    *,
    action: Action,
    moves_keys: bool = False,
    with_old: bool = False,
    has_own_values: bool = False,
) -> Iterator[Outcome]:
    """Yield the outcome of UPDATE or DELETE.

    Args:
        rows: a query for the affected rows.  Its columns are leaf, row_version, row_id, the old
            values c<attnum>, and for an UPDATE w<attnum> for each column that is not generated.
        moves_keys: the UPDATE may change the target's key.
        with_old: foreign keys refer to columns that are not part of the target's key.
        has_own_values: rows that were equal may differ after the UPDATE.
    """
    keys = "".join(f", c{attnum} AS k{i}" for i, attnum in enumerate(target.key, start=1))
    plain = [column for column in target.columns if column.generated is None]
    gone = (
        "".join(f", c{c.attnum} AS w{c.attnum}" for c in plain) if action is Action.DELETE else ""
    )
    joined = reading(
        f"SELECT '{action}' AS op, monotonically_increasing_id() AS position, leaf AS old_leaf,"
        f" *{gone}{keys} FROM (SELECT * FROM ({rows}) ORDER BY leaf, row_version, row_id)",
        rows,
    )
    of_rows: Matching = "each row" if has_own_values else "whole row"
    with ExitStack() as stack:
        for matching in ("key", of_rows) if target.key else (of_rows,):
            old = with_old or matching != "key"
            query = finished_sql(target, joined, keep_unchanged=True, with_old=old)
            columns = outcome_columns(target, with_old=old)
            finished = stack.enter_context(staged(engine, query, columns))
            found = grouped(
                engine, target, finished, matching, moves_keys=moves_keys, may_lack_keys=True
            )
            if not found.lacks_keys:  # else the whole row identifies the rows
                break
        yield found
