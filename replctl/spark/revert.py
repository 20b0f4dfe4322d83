"""Undo commits although other writers have committed since: write the inverse as a new commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from replctl.errors import ObjectNotInPrerequisiteState
from replctl.spark import replicated_change
from replctl.spark.change_data_feed import inverse_sql, without_own_sql
from replctl.spark.merge import leaf_changes, write_leaf
from replctl.spark.staged import StagedColumn
from replctl.spark.staging import staged
from replctl.spark.values import (
    IMAGES,
    CommitNote,
    FeedVersion,
    Leaf,
    TableSource,
    Target,
    TargetColumn,
)

if TYPE_CHECKING:
    from replctl.spark.engine import Engine


def revert(
    engine: Engine,
    source: TableSource,
    key: Sequence[int],
    own: Sequence[FeedVersion],
    foreign: Sequence[FeedVersion],
    note: CommitNote,
) -> None:
    """Undo the effect of commits on a table's rows.  Keep the later changes of other writers.

    Make no commit if nothing is left to undo.

    Args:
        key: attnums of the columns that identify a row; () if only the whole row does.  In the
            second case `own` must be a single version, and only rows that still exist are reverted.
        own: the versions to undo.
        foreign: the versions of the other writers.

    Raises:
        ObjectNotInPrerequisiteState: deleted rows would have to be inserted again, but the relation
            leaves out columns of the Delta table (55000).
    """
    stored = tuple(column for column in source.columns if column.storage_name is not None)
    table = replace(source, columns=stored, version=None)
    leaf, columns = Leaf(0, "", table), _target_columns(table)
    target = Target("", columns, tuple(key), (leaf,))
    if key:
        inverse = without_own_sql(table, key, own, foreign)
    else:
        (version,) = own
        inverse = inverse_sql(table, version)
    kinds = [StagedColumn("position", "int8"), StagedColumn("action", "text")]
    kinds += [StagedColumn(f"{i}{c.attnum}", c.type, c.typmod) for c in columns for i in IMAGES]
    with staged(engine, inverse, kinds) as changes:
        summary = replicated_change.summary(engine, target, changes)
        with replicated_change.outcome(engine, target, changes, summary) as outcome:
            (change,) = leaf_changes(outcome)
            if change.inserted and source.left_out:
                raise _values_lost(source)
            if not change.is_nothing:
                write_leaf(engine, outcome, 0, leaf, change, note)


def _target_columns(table: TableSource) -> tuple[TargetColumn, ...]:
    return tuple(
        TargetColumn(c.attnum, f"c{c.attnum}", c.type, c.typmod, not_null=False, sent=i)
        for i, c in enumerate(table.columns, start=1)
    )


def _values_lost(source: TableSource) -> ObjectNotInPrerequisiteState:
    return ObjectNotInPrerequisiteState(
        f'the deletion of rows of the Delta table "{source.location}" cannot be undone',
        detail=f'The values of its column "{source.left_out[0]}", which the relation leaves out,'
        " would be lost.",
    )
