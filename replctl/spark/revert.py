"""Taking back one commit where others have committed since: its inverse, as a commit of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replctl.spark import replicated_change
from replctl.spark.change_data_feed import inverse_sql
from replctl.spark.merge import changes_of_leaves, write_leaf
from replctl.spark.staging import StagedColumn, staged
from replctl.spark.values import CommitNote, Leaf, TableSource, Target, TargetColumn

if TYPE_CHECKING:
    from replctl.spark.engine import Engine


def revert(engine: Engine, source: TableSource, version: int, note: CommitNote) -> None:
    """Remove the rows that a commit has added and add those that it has removed."""
    stored = tuple(column for column in source.columns if column.storage_name is not None)
    columns = tuple(
        TargetColumn(
            column.attnum, f"c{column.attnum}", column.type, column.typmod, not_null=False, sent=i
        )
        for i, column in enumerate(stored, start=1)
    )
    table = TableSource(source.location, stored, None, source.has_row_tracking)
    leaf = Leaf(0, "", table)
    target = Target("", columns, (), (leaf,))
    kinds = [StagedColumn("position", "int8"), StagedColumn("action", "text")]
    kinds += [StagedColumn(f"{i}{c.attnum}", c.type, c.typmod) for c in columns for i in "on"]
    with staged(engine, inverse_sql(table, version), kinds) as changes:
        summary = replicated_change.summary(engine, target, changes)
        with replicated_change.outcome(engine, target, changes, summary) as outcome:
            (change,) = changes_of_leaves(outcome)
            if not change.is_nothing:
                write_leaf(engine, outcome, 0, leaf, change, note)
