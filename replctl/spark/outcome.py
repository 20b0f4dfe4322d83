"""What a run of changes makes of a target's rows: which rows go, which come, and what stands in the
way.

The outcome is computed as a whole before anything is written; writing it is merge.py's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from replctl.expr.nodes import Expr, Var
from replctl.spark.data_type import storage_type, text_of_wire, wire
from replctl.spark.delta_table import scan
from replctl.spark.expression import to_sql
from replctl.spark.partition import accepts_sql, leaf_number_sql
from replctl.spark.staging import Staged, StagedColumn
from replctl.spark.values import NEXT_VALUE, Leaf, Target, TargetColumn

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

#: How a row of an outcome finds the rows of the table that it changes: by the target's key; by the
#: columns that are sent (a D row stands for every row that is equal to it); by all columns before
#: (o<attnum>).
Matching: TypeAlias = Literal["key", "sent columns", "whole row"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The rows of a target that change.

    `rows` has a row for each: op (I insert, U update, D delete, C conflict), the position of its
    last change, old_leaf and new_leaf (indexes of the target's leaves), the key before (k1, k2,
    ...), the whole row after (w<attnum>), and where whole rows are matched the row before
    (o<attnum>).

    `moves_keys`: it changes values of the key.
    """

    target: Target
    rows: Staged
    matching: Matching = "key"
    moves_keys: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an outcome cannot be written.

    Attributes:
        position: of the first change that it concerns.
        kind: the row's key exists already; or a column must not be NULL (`number`: its attnum); or
            a check fails (`number`: its index in `checks_of`); or no partition takes the row; or a
            value of a unique index exists already (`number`: its index in the target's); or a
            foreign key is broken.
        leaf: index of the leaf that the row goes to.
        row: the new row as texts by attnum.
    """

    position: int
    kind: Literal["key", "not null", "check", "partition", "unique", "reference"]
    number: int
    leaf: int | None
    row: dict[int, str | None]


_CONTROL = (
    StagedColumn("op", "text"),
    StagedColumn("position", "int8"),
    StagedColumn("violation", "int4"),
    StagedColumn("old_leaf", "int4"),
    StagedColumn("new_leaf", "int4"),
)


def outcome_columns(target: Target, *, with_old: bool = False) -> list[StagedColumn]:
    """The columns of `finished_sql`."""
    keys = [target.column(attnum) for attnum in target.key]
    return [
        *_CONTROL,
        *(StagedColumn(f"k{i}", c.type, c.typmod) for i, c in enumerate(keys, start=1)),
        *(StagedColumn(f"w{c.attnum}", c.type, c.typmod) for c in target.columns),
        *(StagedColumn(f"o{c.attnum}", c.type, c.typmod) for c in target.columns if with_old),
    ]


def finished_sql(
    target: Target,
    joined: str,
    *,
    keep_unchanged: bool = False,
    is_new: bool = False,
    with_old: bool = False,
) -> str:
    """Add what follows from a row's other columns: generated ones, its partition, what it violates.

    Args:
        joined: a query of op, position, old_leaf, the keys unless `is_new`, w<attnum> of the
            columns that are not generated, c<attnum> before.
        keep_unchanged: updates that change nothing stay.
        is_new: all rows are new, and their keys are the new rows'.
        with_old: also the row before, as o<attnum>.
    """
    generated = [column for column in target.columns if column.generated is not None]
    computed = "".join(f", {_generated(column)} AS w{column.attnum}" for column in generated)
    complete = f"SELECT *{computed} FROM ({joined}) WHERE op IS NOT NULL"
    new_leaf = leaf_number_sql(target.leaves, lambda attnum: f"w{attnum}")
    keys = "".join(
        f", w{attnum} AS k{i}" if is_new else f", k{i}"
        for i, attnum in enumerate(target.key, start=1)
    )
    rows = "".join(f", w{column.attnum}" for column in target.columns)
    old = "".join(f", c{c.attnum} AS o{c.attnum}" for c in target.columns) if with_old else ""
    finished = (
        f"SELECT op, position, {_violation(target)} AS violation, old_leaf,"
        f" if(op IN ('I', 'U'), {new_leaf}, NULL) AS new_leaf{keys}{rows}{old} FROM ({complete})"
    )
    if keep_unchanged or is_new:
        return finished
    same = " AND ".join(f"w{c.attnum} <=> c{c.attnum}" for c in target.columns) or "TRUE"
    return f"{finished} WHERE NOT (op = 'U' AND {same})"


def default_sql(column: TargetColumn, place: str) -> str:
    """What a new row has in a column that nothing is said about.

    Args:
        place: SQL of the row's number among the new ones, from 1.
    """
    if column.default is None:
        return f"CAST(NULL AS {storage_type(column.type, column.typmod)})"

    def name(var: Var) -> str:
        if var.attnum != NEXT_VALUE or column.taken is None:
            return f"c{var.attnum}"
        return f"({column.taken.start}L + {column.taken.step}L * ({place} - 1L))"

    return to_sql(column.default, name).text


def first_problem(engine: Engine, outcome: Outcome) -> Problem | None:
    """The conflict or violation of the earliest change, or None if there is none.

    Unique indexes other than the key are uniqueness.py's.
    """
    rows = outcome.rows
    if rows.is_small and not _has_problem(rows):
        return None
    wrong = "op = 'C' OR violation IS NOT NULL OR (op IN ('I', 'U') AND new_leaf IS NULL)"
    found = earliest_row(engine, outcome, f"SELECT * FROM {rows.view} WHERE {wrong}")
    if found is None:
        return None
    values, texts = found
    position, leaf, violation = values["position"], values["new_leaf"], values["violation"]
    if values["op"] == "C":
        return Problem(position, "key", 0, leaf, texts)
    if leaf is None:
        return Problem(position, "partition", 0, None, texts)
    if violation > 0:
        return Problem(position, "not null", violation, leaf, texts)
    return Problem(position, "check", -violation - 1, leaf, texts)


def earliest_row(
    engine: Engine, outcome: Outcome, query: str
) -> tuple[dict[str, Any], dict[int, str | None]] | None:
    """The row of an outcome with the smallest position that a query has, with the texts of the new
    row."""
    columns = outcome.rows.columns
    sent = ", ".join(
        f"{wire(c.type, c.typmod).to_wire.format(c.name)} AS {c.name}" for c in columns
    )
    found = engine.rows(f"SELECT {sent} FROM ({query}) ORDER BY position, violation LIMIT 1")
    if not found:
        return None
    values = dict(zip((column.name for column in columns), found[0], strict=True))
    texts = {
        column.attnum: text_of_wire(column.type, values[f"w{column.attnum}"])
        for column in outcome.target.columns
    }
    return values, texts


def existing_rows_sql(target: Target, conditions: Sequence[str]) -> str:
    """The target's rows that satisfy a condition, with the number of their leaf."""
    where = " AND ".join(conditions) or "TRUE"
    return " UNION ALL ".join(
        f"SELECT * FROM (SELECT {number} AS leaf, * FROM ({scan(leaf.source)})) WHERE {where}"
        for number, leaf in enumerate(target.leaves)
    )


def literal_condition(name: str, rows: Staged, columns: Sequence[str]) -> str:
    """`name IN (...)` with all values of some columns of few rows, which reaches the scan of the
    files."""
    literals = {
        literal
        for column in columns
        for literal, value in zip(rows.literals(column), rows.values(column), strict=True)
        if value is not None
    }
    return f"{name} IN ({', '.join(sorted(literals))})" if literals else "FALSE"


def _has_problem(rows: Staged) -> bool:
    ops, violations, leaves = rows.values("op"), rows.values("violation"), rows.values("new_leaf")
    return any(
        op == "C" or violation is not None or (op in ("I", "U") and leaf is None)
        for op, violation, leaf in zip(ops, violations, leaves, strict=True)
    )


def _generated(column: TargetColumn) -> str:
    assert column.generated is not None
    return to_sql(column.generated, lambda var: f"w{var.attnum}").text


def checks_of(target: Target) -> list[tuple[str, Expr, Leaf | None]]:
    """All checks of a target: name, expression, and the leaf that alone has it."""
    own: list[tuple[str, Expr, Leaf | None]] = [
        (name, check, leaf) for leaf in target.leaves for name, check in leaf.checks
    ]
    return [*((name, check, None) for name, check in target.checks), *own]


def _violation(target: Target) -> str:
    """The number of the first constraint that a new row violates: its attnum for NOT NULL, -1, -2,
    ... for the checks; NULL if there is none."""

    def column(attnum: int) -> str:
        return f"w{attnum}"

    whens = [
        f"WHEN w{item.attnum} IS NULL THEN {item.attnum}"
        for item in target.columns
        if item.not_null
    ]
    for leaf in target.leaves:
        whens += [
            f"WHEN w{attnum} IS NULL AND {accepts_sql(leaf.rules, column)} THEN {attnum}"
            for attnum in leaf.not_null
        ]
    for number, (_name, check, only) in enumerate(checks_of(target), start=1):
        place = "" if only is None else f"{accepts_sql(only.rules, column)} AND "
        text = to_sql(check, lambda var: column(var.attnum)).text
        whens.append(f"WHEN {place}NOT {text} THEN -{number}")
    if not whens:
        return "CAST(NULL AS INT)"
    return f"if(op IN ('I', 'U'), CASE {' '.join(whens)} END, NULL)"
