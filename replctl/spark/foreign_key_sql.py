"""Check foreign keys: each new row must refer to an existing row, and no row may refer to a removed
row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from replctl.spark.comparison_sql import equality_operands
from replctl.spark.data_type import storage_type
from replctl.spark.delta_table import scan
from replctl.spark.key_path import literal_condition
from replctl.spark.normal_form import TypedColumn, matches
from replctl.spark.outcome import Outcome, Problem, RowOp, earliest_row
from replctl.spark.spark_query import Query, reading, union_text
from replctl.spark.sql_value import SqlValue
from replctl.spark.uniqueness import unchanged_rows_sql
from replctl.spark.values import Reference

if TYPE_CHECKING:
    from replctl.spark.engine import Engine


def first_orphan(engine: Engine, outcome: Outcome, reference: Reference) -> Problem | None:
    """Return the first new row that refers to no row of the other table; None if there is none."""
    names = [f"n.w{attnum}" for attnum in reference.columns]
    complete = " AND ".join(f"{name} IS NOT NULL" for name in names)
    new = f"SELECT n.* FROM {outcome.rows.view} n WHERE op IN ('I', 'U')"
    query = reading(f"{new} AND {complete}", outcome.rows.query)
    if reference.other:  # else no partition exists, and thus no row
        referenced = _rows_of(outcome, reference, "w")
        same = _same(outcome, reference, "n.w", "e.c")
        orphans = f"SELECT n.* FROM ({query}) n LEFT ANTI JOIN ({referenced}) e ON {same}"
        query = reading(orphans, query, referenced)
    if reference.match_full and len(names) > 1:
        some = " OR ".join(f"{name} IS NOT NULL" for name in names)
        query = reading(f"{query} UNION ALL {new} AND ({some}) AND NOT ({complete})", query)
    return _problem(engine, outcome, query)


def first_broken_reference(
    engine: Engine,
    outcome: Outcome,
    reference: Reference,
    *,
    acts: bool = False,
    restricts: bool = False,
) -> Problem | None:
    """Return the first removed row to which rows of the other table refer, with its old values.

    Args:
        acts: the foreign key has an action that changes referring rows (CASCADE, SET NULL).  Then
            neither a new row with the former key nor an UPDATE of the referring row helps.
        restricts: the action is RESTRICT.  Then a new row with the former key does not help.

    In the outcome, the old values of the target's key are k1, k2, ..., other old values o<attnum>.
    """
    if not reference.other:
        return None
    key, rows = outcome.target.key, outcome.rows
    old = {
        attnum: f"k{key.index(attnum) + 1}" if attnum in key else f"o{attnum}"
        for attnum in reference.columns
    }
    gone = ", ".join(f"{name} AS x{attnum}" for attnum, name in old.items())
    kept = " AND ".join(
        matches(outcome.target.column(n), f"a.w{n}", f"g.x{n}") for n in reference.columns
    )
    removed = f"SELECT g.* FROM (SELECT *, {gone} FROM {rows.view} WHERE op IN ('U', 'D')) g"
    if acts or restricts:
        as_before = " AND ".join(f"g.w{attnum} <=> g.x{attnum}" for attnum in reference.columns)
        removed += f" WHERE NOT (op = 'U' AND {as_before})"
    else:
        removed += f" LEFT ANTI JOIN (SELECT * FROM {rows.view} WHERE op IN ('I', 'U')) a ON {kept}"
    referring = _all_rows(reference)
    if reference.is_own:
        referring = _own_rows(outcome, reference, referring, gone="'D'" if acts else "'U', 'D'")
    same = _same(outcome, reference, "g.x", "r.c")
    shown_as = {f"w{attnum}": f"g.x{attnum} AS w{attnum}" for attnum in reference.columns}
    columns = ", ".join(shown_as.get(c.name, f"g.{c.name}") for c in rows.columns)
    shown = f"SELECT {columns} FROM ({removed}) g LEFT SEMI JOIN ({referring}) r ON {same}"
    return _problem(engine, outcome, reading(shown, rows.query, referring))


def _rows_of(outcome: Outcome, reference: Reference, image: str) -> Query:
    """Return a query for the other table's rows after the outcome.  If few rows change, read only
    rows that have one of their values.
    """
    rows = outcome.rows
    conditions = "TRUE"
    if rows.is_small:
        known = [
            literal_condition(f"c{other}", rows, [f"{image}{attnum}"])
            for attnum, other in zip(reference.columns, reference.other_columns, strict=True)
            if _takes_literals(outcome.target.column(attnum), _other_column(reference, other))
        ]
        conditions = " AND ".join(known) or "TRUE"
    if reference.is_own:
        return _own_rows(outcome, reference, _all_rows(reference, conditions))
    names = ", ".join(f"c{attnum}" for attnum in reference.other_columns)
    return _all_rows(reference, conditions, names)


def _all_rows(reference: Reference, conditions: str = "TRUE", columns: str = "*") -> Query:
    """Return a query for the other table's rows before the outcome."""
    return union_text(
        [
            reading(f"SELECT {columns} FROM ({rows}) WHERE {conditions}", rows)
            for rows in map(scan, reference.other)
        ]
    )


def _own_rows(
    outcome: Outcome, reference: Reference, existing: Query, *, gone: str = "'U', 'D'"
) -> Query:
    """Return a query for the other columns of a foreign key in the table to write, after the
    outcome.

    Args:
        existing: a query for the table's rows before the outcome.
        gone: the ops, as SQL, of the rows of the outcome whose old values do not count.
    """
    names = ", ".join(f"c{attnum}" for attnum in reference.other_columns)
    new = ", ".join(f"w{attnum} AS c{attnum}" for attnum in reference.other_columns)
    if {group.op for group in outcome.groups} != {RowOp.INSERT}:
        existing = unchanged_rows_sql(outcome, existing, gone=gone)
    return reading(
        f"SELECT {names} FROM ({existing}) UNION ALL"
        f" SELECT {new} FROM {outcome.rows.view} WHERE op IN ('I', 'U')",
        existing,
        outcome.rows.query,
    )


def _same(outcome: Outcome, reference: Reference, one: str, other: str) -> str:
    """Return the SQL condition that a row refers to another one.  The types of their columns may
    differ.

    Args:
        one, other: the prefixes of their columns, before the attnum.
    """
    tests = []
    for attnum, other_attnum in zip(reference.columns, reference.other_columns, strict=True):
        left = _value(outcome.target.column(attnum), f"{one}{attnum}")
        right = _value(_other_column(reference, other_attnum), f"{other}{other_attnum}")
        tests.append(" = ".join(equality_operands(left, right)))
    return " AND ".join(tests)


def _takes_literals(column: TypedColumn, other: TypedColumn) -> bool:
    """Return whether Spark can compare literals of `column` with `other` directly."""
    if (column.type, column.typmod) == (other.type, other.typmod):
        return True
    return equality_operands(_value(column, "a"), _value(other, "b")) == ("a", "b")


def _other_column(reference: Reference, attnum: int) -> TypedColumn:
    return reference.other[0].column(attnum)


def _value(column: TypedColumn, name: str) -> SqlValue:
    return SqlValue(name, column.type, storage_type(column.type, column.typmod))


def _problem(engine: Engine, outcome: Outcome, query: Query) -> Problem | None:
    found = earliest_row(engine, outcome, query)
    if found is None:
        return None
    values, texts = found
    return Problem(values["position"], "reference", 0, values["new_leaf"], texts, values["action"])
