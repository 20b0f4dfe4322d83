"""Undo commits although other writers have committed since: write the inverse as a new commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from replctl.errors import ObjectNotInPrerequisiteState
from replctl.spark import replicated_change
from replctl.spark.change_data_feed import UndoRule, inverse_sql, without_own_sql
from replctl.spark.data_type import quote
from replctl.spark.merge import leaf_changes, write_leaf
from replctl.spark.spark_query import reading
from replctl.spark.staged import Staged, StagedColumn
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
            leaves out columns of the Delta table; or other writers have inserted the same key, and
            the rows of the two writers cannot be distinguished (55000).
    """
    stored = tuple(column for column in source.columns if column.storage_name is not None)
    table = replace(source, columns=stored, version=None)
    columns = _target_columns(table)
    kinds = [StagedColumn("position", "int8"), StagedColumn("action", "text")]
    kinds += [StagedColumn(f"{i}{c.attnum}", c.type, c.typmod) for c in columns for i in IMAGES]
    if not key:
        (version,) = own
        with staged(engine, inverse_sql(table, version), kinds) as changes:
            _write(engine, source, table, (), changes, note)
        return
    kinds.append(StagedColumn("rule", "text"))
    with staged(engine, without_own_sql(table, key, own, foreign), kinds) as changes:
        rules = _rules(engine, changes)
        by_row = UndoRule.WHOLE_ROW in rules
        if UndoRule.REFUSED in rules or (by_row and source.left_out):
            raise _rows_mixed(engine, source, key, changes)
        # The old image of a change by key is a whole row, too
        _write(engine, source, table, () if by_row else key, changes, note)


def _rules(engine: Engine, changes: Staged) -> set[UndoRule]:
    if changes.is_small:
        return set(map(UndoRule, changes.values("rule")))
    found = engine.rows(reading(f"SELECT DISTINCT rule FROM {changes.view}", changes.query))
    return {UndoRule(rule) for (rule,) in found}


def _write(
    engine: Engine,
    source: TableSource,
    table: TableSource,
    key: Sequence[int],
    changes: Staged,
    note: CommitNote,
) -> None:
    """Write changes into a table, if there are any.

    Args:
        table: `source` without the columns that the Delta table lacks.
    """
    leaf = Leaf(0, "", table)
    target = Target("", _target_columns(table), tuple(key), (leaf,))
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


def _rows_mixed(
    engine: Engine, source: TableSource, key: Sequence[int], changes: Staged
) -> ObjectNotInPrerequisiteState:
    names = ", ".join(str(source.column(attnum).storage_name) for attnum in key)
    values = ", ".join(f"CAST(o{attnum} AS STRING)" for attnum in key)
    mixed = (
        f"SELECT {values} FROM {changes.view} WHERE rule <> {quote(UndoRule.KEY.value)}"
        f" ORDER BY {values} LIMIT 1"
    )
    (found, *_others) = engine.rows(reading(mixed, changes.query))
    return ObjectNotInPrerequisiteState(
        f'the insertion of rows into the Delta table "{source.location}" cannot be undone',
        detail=f"Another program has also inserted a row with the key ({names})="
        f"({', '.join(found)}). The rows of the two programs cannot be distinguished.",
        hint="Delete all rows with this key in the other program.",
    )
