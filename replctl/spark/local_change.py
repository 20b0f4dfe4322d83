"""Compute the outcome of a local statement: rows to insert, update and delete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from replctl.spark.outcome import Matching, Outcome, finished_sql, grouped, outcome_columns
from replctl.spark.staging import staged
from replctl.spark.uniqueness import duplicates_sql
from replctl.spark.values import Target, UniqueKey

if TYPE_CHECKING:
    from replctl.spark.engine import Engine


@contextmanager
def inserted(
    engine: Engine, target: Target, rows: str, place: str | None = None
) -> Iterator[Outcome]:
    """Yield the outcome of INSERT.

    Args:
        rows: SQL of the new rows, in their order.  Its columns are w<attnum> for each column that
            is not generated.
        place: the column of `rows` that numbers them; None: number the rows here.
    """
    joined = (
        f"SELECT 'I' AS op, {place or 'monotonically_increasing_id()'} AS position,"
        f" CAST(NULL AS INT) AS old_leaf, * FROM ({rows})"
    )
    query = finished_sql(target, joined, is_new=True)
    with staged(engine, query, outcome_columns(target)) as finished:
        yield grouped(engine, target, finished)


@contextmanager
def unconflicting(engine: Engine, proposed: Outcome, key: UniqueKey) -> Iterator[Outcome]:
    """Yield the outcome of an INSERT without conflicting rows.  The key of a conflicting row exists
    in the table or in an earlier row of the outcome.
    """
    columns = ", ".join(
        f"v.w{column.attnum}" for column in proposed.target.columns if column.generated is None
    )
    rows = (
        f"SELECT v.position AS q_position, {columns} FROM {proposed.rows.view} v LEFT ANTI JOIN"
        f" ({duplicates_sql(proposed, key)}) d ON v.position = d.position"
    )
    with inserted(engine, proposed.target, rows, "q_position") as outcome:
        yield outcome


@contextmanager
def changed(
    engine: Engine,
    target: Target,
    rows: str,
    *,
    op: str,
    moves_keys: bool = False,
    with_old: bool = False,
    has_own_values: bool = False,
) -> Iterator[Outcome]:
    """Yield the outcome of UPDATE (op U) or DELETE (D).

    Args:
        rows: SQL of the affected rows.  Its columns are leaf, row_version, row_id, the old values
            c<attnum>, and for an UPDATE w<attnum> for each column that is not generated.
        moves_keys: the UPDATE may change the target's key.
        with_old: foreign keys refer to columns that are not part of the target's key.
        has_own_values: rows that were equal may differ after the UPDATE.
    """
    keys = "".join(f", c{attnum} AS k{i}" for i, attnum in enumerate(target.key, start=1))
    plain = [column for column in target.columns if column.generated is None]
    gone = "".join(f", c{c.attnum} AS w{c.attnum}" for c in plain) if op == "D" else ""
    joined = (
        f"SELECT '{op}' AS op, monotonically_increasing_id() AS position, leaf AS old_leaf,"
        f" *{gone}{keys}"
        f" FROM (SELECT * FROM ({rows}) ORDER BY leaf, row_version, row_id)"
    )
    is_keyed = bool(target.key)
    with_old = with_old or not is_keyed
    query = finished_sql(target, joined, keep_unchanged=True, with_old=with_old)
    with staged(engine, query, outcome_columns(target, with_old=with_old)) as finished:
        of_rows: Matching = "each row" if has_own_values else "whole row"
        matching = "key" if is_keyed else of_rows
        yield grouped(engine, target, finished, matching, moves_keys=moves_keys)
