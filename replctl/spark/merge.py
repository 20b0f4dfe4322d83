"""Write an outcome to a table in one commit, which affects only the rows that change.

replaceWhere with literal keys replaces a few rows, and scans only the keys.  MERGE writes many
rows, and rows whose keys change.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress
from typing import TYPE_CHECKING

from replctl.spark import delta_table
from replctl.spark.comparison_sql import without_limits
from replctl.spark.data_type import quote_name, table_name, text_of_wire
from replctl.spark.delta_table import to_storage
from replctl.spark.key_path import LeafChange, WritePath, write_path
from replctl.spark.normal_form import (
    grouped_value,
    is_stored_alike,
    matches,
    stored_form,
)
from replctl.spark.outcome import Matching, Outcome, RowOp
from replctl.spark.spark_query import Query, reading, selected
from replctl.spark.staged import Staged
from replctl.spark.values import CommitNote, Leaf, TableColumn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from replctl.spark.engine import Engine


def leaf_changes(outcome: Outcome) -> list[LeafChange]:
    """Return the numbers of rows that an outcome changes in each leaf partition of the target."""
    result = []
    for leaf in range(len(outcome.target.leaves)):
        deleted = updated = inserted = 0
        for group in outcome.groups:
            leaves = group.old_leaf == leaf, group.new_leaf == leaf
            match group.op, leaves:
                case RowOp.UPDATE, (True, True):
                    updated += group.count
                case ((RowOp.UPDATE | RowOp.DELETE), (True, _)):
                    deleted += group.count
                case ((RowOp.UPDATE | RowOp.INSERT), (_, True)):
                    inserted += group.count
        result.append(LeafChange(deleted, updated, inserted))
    return result


def write_leaf(
    engine: Engine, outcome: Outcome, number: int, leaf: Leaf, change: LeafChange, note: CommitNote
) -> None:
    """Write an outcome's rows of one leaf partition, in one commit.

    Args:
        number: the leaf's index in the outcome's target.
        leaf: the leaf with its current storage.
    """
    location, columns = leaf.source.location, leaf.source.columns
    assert location is not None
    path = write_path(outcome, change)
    if path is WritePath.MERGE:
        merge = _MERGES[outcome.matching]
        text = merge(outcome, number, location, columns)
        delta_table.execute(engine, reading(text, outcome.rows.query, table=location), note)
        return
    comes = f"new_leaf = {number} AND op IN ('I', 'U')"
    if leaf.source.left_out:
        delta_table.execute(engine, _insertion(outcome, leaf, comes), note)
        return
    few = _new_rows(engine, outcome, leaf, comes)
    if path is WritePath.APPEND:
        delta_table.append(engine, location, few, note)
    else:
        predicate = key_predicate(outcome, number, columns)
        delta_table.replace_where(engine, location, predicate, few, note)


def replace_leaf(
    engine: Engine,
    outcome: Outcome,
    number: int,
    leaf: Leaf,
    note: CommitNote,
    *,
    is_clustered: bool = False,
) -> None:
    """Replace all rows of one leaf partition by an outcome's new rows, in one commit.

    Args:
        number, leaf: see `write_leaf`.
        is_clustered: the table is clustered.  It stays so unless the relation leaves columns out.
    """
    location, comes = leaf.source.location, f"new_leaf = {number}"
    assert location is not None
    if leaf.source.left_out:
        delta_table.execute(engine, _insertion(outcome, leaf, comes, "OVERWRITE"), note)
        return
    rows = _new_rows(engine, outcome, leaf, comes)
    delta_table.overwrite(engine, location, rows, note, is_clustered=is_clustered)


def _new_rows(engine: Engine, outcome: Outcome, leaf: Leaf, comes: str) -> DataFrame:
    """Return the rows of an outcome that a leaf partition gets, with the columns of its table.

    Args:
        comes: the condition of the rows.
    """
    rows, written = outcome.rows, _written(outcome, leaf.source.columns)
    new = f"SELECT {to_storage(written, 'w')} FROM {rows.view} WHERE {comes}"
    frame = engine.sql(reading(new, rows.query))
    few = _few_files(engine, frame, rows)
    return delta_table.as_stored(engine, leaf.source, few, written)


def _insertion(outcome: Outcome, leaf: Leaf, comes: str, word: str = "INTO") -> Query:
    """Return an INSERT of an outcome's rows.  Unlike the write of a data frame, it sets columns
    that the relation leaves out to their defaults.

    Args:
        comes: the condition of the rows.
        word: INTO, or OVERWRITE to replace all rows.
    """
    assert leaf.source.location is not None
    rows, written = outcome.rows, _written(outcome, leaf.source.columns)
    hint = "/*+ COALESCE(1) */ " if rows.is_small else ""
    names = ", ".join(map(_name, written))
    return reading(
        f"INSERT {word} {table_name(leaf.source.location)} ({names})"
        f" SELECT {hint}{to_storage(written, 'w')} FROM {rows.view} WHERE {comes}",
        rows.query,
        table=leaf.source.location,
    )


def _written(outcome: Outcome, columns: tuple[TableColumn, ...]) -> tuple[TableColumn, ...]:
    """Return the columns that a write must name, since Delta does not assign them to new rows."""
    assigned = {column.attnum for column in outcome.target.columns if column.is_assigned}
    return tuple(column for column in columns if column.attnum not in assigned)


def _few_files(engine: Engine, frame: DataFrame, rows: Staged) -> DataFrame:
    """Return rows in the same order.  Put few rows into one partition, so that Spark writes one
    file."""
    if not rows.is_small:
        return frame
    with engine.running():
        return frame.coalesce(1)


def key_predicate(outcome: Outcome, number: int, columns: tuple[TableColumn, ...]) -> str:
    """Return a condition on the table's columns, which the rows to replace and the new rows
    satisfy: the key is one of the outcome's keys.
    """
    rows, target = outcome.rows, outcome.target
    literals = [rows.literals(f"k{i}") for i in range(1, len(target.key) + 1)]
    tuples = list(compress(zip(*literals, strict=True), _concerns(outcome, number)))
    names = [
        without_limits(_stored_name(columns, attnum), target.column(attnum).type)
        for attnum in target.key
    ]
    if len(names) == 1:
        return f"{names[0]} IN ({', '.join(key for (key,) in tuples)})"
    bounds = [
        f"{name} IN ({', '.join(sorted({key[i] for key in tuples}))})"
        for i, name in enumerate(names)
    ]
    shown = ", ".join(f"struct({', '.join(key)})" for key in tuples)
    return f"{' AND '.join(bounds)} AND struct({', '.join(names)}) IN ({shown})"


def replaced_keys(outcome: Outcome, number: int) -> dict[int, list[str | None]]:
    """Return the keys of the rows that `key_predicate` accepts: for each key column its values in
    canonical text, by attnum."""
    rows, target = outcome.rows, outcome.target
    concerned = _concerns(outcome, number)
    return {
        column.attnum: [
            text_of_wire(column.type, value) for value in compress(rows.values(f"k{i}"), concerned)
        ]
        for i, column in enumerate(target.key_columns, start=1)
    }


def _concerns(outcome: Outcome, number: int) -> list[bool]:
    """Return for each row of an outcome whether it changes a leaf partition."""
    old, new = (outcome.rows.values(f"{image}_leaf") for image in ("old", "new"))
    return [number in leaves for leaves in zip(old, new, strict=True)]


def _merge(outcome: Outcome, number: int, location: str, columns: tuple[TableColumn, ...]) -> str:
    """Return a MERGE by key.  A row that moves to another leaf partition is deleted in the old one,
    and inserted in the new one."""
    target = outcome.target
    op = (
        f"CASE WHEN op = 'U' AND old_leaf = {number} AND new_leaf = {number} THEN 'U'"
        f" WHEN old_leaf = {number} THEN 'D' ELSE 'I' END"
    )
    source = (
        f"SELECT *, {op} AS leaf_op FROM {outcome.rows.view} WHERE old_leaf = {number} OR"
        f" new_leaf = {number}"
    )
    operator = "<=>" if outcome.lacks_keys else "="
    on = " AND ".join(
        matches(column, f"t.{_stored_name(columns, column.attnum)}", f"s.k{i}", operator)
        for i, column in enumerate(target.key_columns, start=1)
    )
    assignments = ", ".join(_assigned(outcome, columns))
    return (
        f"MERGE INTO {table_name(location)} t USING ({source}) s ON {on} AND s.leaf_op <> 'I'"
        " WHEN MATCHED AND s.leaf_op = 'D' THEN DELETE"
        f" WHEN MATCHED AND s.leaf_op = 'U' THEN UPDATE SET {assignments}"
        f" WHEN NOT MATCHED AND s.leaf_op = 'I' THEN {_insert(outcome, columns)}"
    )


def _multiset_merge(
    outcome: Outcome, number: int, location: str, columns: tuple[TableColumn, ...]
) -> str:
    """Return a MERGE by all sent columns: delete all rows that equal a D row, insert the I rows."""
    tests = [
        matches(c, f"t.{_stored_name(columns, c.attnum)}", f"s.w{c.attnum}", "<=>")
        for c in outcome.target.columns
        if c.sent is not None
    ]
    equal = " AND ".join(tests) or "TRUE"
    source = (
        f"SELECT * FROM {outcome.rows.view}"
        f" WHERE (op = 'D' AND old_leaf = {number}) OR (op = 'I' AND new_leaf = {number})"
    )
    return (
        f"MERGE INTO {table_name(location)} t USING ({source}) s ON s.op = 'D' AND {equal}"
        " WHEN MATCHED THEN DELETE"
        f" WHEN NOT MATCHED AND s.op = 'I' THEN {_insert(outcome, columns)}"
    )


def _whole_row_merge(
    outcome: Outcome, number: int, location: str, columns: tuple[TableColumn, ...]
) -> str:
    """Return a MERGE by all old columns.

    Rows that are stored identically get the same update.  The MERGE deletes rows that move to
    another leaf partition, and inserts each row that comes from one.  If equal rows may differ
    afterwards, it also deletes and inserts them, because a MERGE cannot distinguish them.
    """
    has_own_values = outcome.matching == "each row"
    view, own = outcome.rows.view, outcome.target.columns
    attnums = [column.attnum for column in own]
    forms = ", ".join(stored_form(c.type, f"o{c.attnum}") for c in own) or "1"
    names = [(grouped_value(c.type, f"o{c.attnum}"), f"o{c.attnum}") for c in own]
    before = selected(names) if names else "1"
    after = "".join(f", any_value(w{attnum}) AS w{attnum}" for attnum in attnums)
    both = "".join(f", {image}{attnum}" for image in ("o", "w") for attnum in attnums) or ", 1"
    leaf_op = "'D'" if has_own_values else f"if(op = 'U' AND new_leaf = {number}, 'U', 'D')"
    comes = "" if has_own_values else f" AND NOT (old_leaf <=> {number})"
    source = (
        f"SELECT {leaf_op} AS leaf_op, {before}{after} FROM {view} WHERE old_leaf = {number}"
        f" AND op <> 'I' GROUP BY {leaf_op}, {forms}"
        f" UNION ALL SELECT 'I'{both} FROM {view} WHERE new_leaf = {number}{comes}"
    )
    equal = " AND ".join(
        is_stored_alike(c.type, _stored_value(columns, c.attnum), f"s.o{c.attnum}") for c in own
    )
    equal = equal or "TRUE"
    assignments = ", ".join(_assigned(outcome, columns)) or "t.`_` = NULL"
    return (
        f"MERGE INTO {table_name(location)} t USING ({source}) s ON s.leaf_op <> 'I' AND {equal}"
        " WHEN MATCHED AND s.leaf_op = 'D' THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {assignments}"
        f" WHEN NOT MATCHED AND s.leaf_op = 'I' THEN {_insert(outcome, columns)}"
    )


_MERGES: dict[Matching, Callable[[Outcome, int, str, tuple[TableColumn, ...]], str]] = {
    "key": _merge,
    "sent columns": _multiset_merge,
    "whole row": _whole_row_merge,
    "each row": _whole_row_merge,
}


def _assigned(outcome: Outcome, columns: tuple[TableColumn, ...]) -> list[str]:
    """Return the assignments of an update, to all columns except Delta's identity columns."""
    identity = {column.attnum for column in outcome.target.columns if column.is_identity}
    return [
        f"t.{_name(column)} = s.w{column.attnum}"
        for column in columns
        if column.attnum not in identity
    ]


def _insert(outcome: Outcome, columns: tuple[TableColumn, ...]) -> str:
    columns = _written(outcome, columns)
    if not columns:
        return "INSERT (`_`) VALUES (NULL)"
    names = ", ".join(_name(column) for column in columns)
    values = ", ".join(f"s.w{column.attnum}" for column in columns)
    return f"INSERT ({names}) VALUES ({values})"


def _name(column: TableColumn) -> str:
    return quote_name(column.storage_name or "")


def _stored_name(columns: tuple[TableColumn, ...], attnum: int) -> str:
    return _name(next(column for column in columns if column.attnum == attnum))


def _stored_value(columns: tuple[TableColumn, ...], attnum: int) -> str:
    """Return SQL of a column of the target in the type that the relation's column has."""
    found = next(column for column in columns if column.attnum == attnum)
    return delta_table.column_sql(found, "t.") if found.is_wider else f"t.{_name(found)}"
