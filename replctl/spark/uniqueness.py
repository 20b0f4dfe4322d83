"""Check unique indexes: find rows of an outcome that would duplicate a value."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from replctl.spark.data_type import wire
from replctl.spark.key_lookup import found_rows
from replctl.spark.key_path import existing_rows_sql, literal_condition
from replctl.spark.normal_form import (
    TypedColumn,
    has_own_form,
    is_stored_alike,
    matches,
    matching_form,
    matching_group,
    matching_values,
)
from replctl.spark.outcome import (
    NEW,
    Outcome,
    Problem,
    RowOp,
    earliest_problem,
    earliest_row,
    first_problem_of_rows,
    row_here,
)
from replctl.spark.spark_query import Query, reading
from replctl.spark.translation import to_sql
from replctl.spark.values import Target, TargetColumn, UniqueKey

if TYPE_CHECKING:
    from replctl.spark.engine import Engine


def first_problem(engine: Engine, outcome: Outcome, keys: Sequence[UniqueKey]) -> Problem | None:
    """Return the first problem of an outcome, in the order of its changes.

    Args:
        keys: the target's unique indexes that its rows may violate.
    """
    found = first_problem_of_rows(engine, outcome)
    others = _duplicates(engine, outcome, keys)
    return earliest_problem(others if found is None else [found, *others])


def _duplicates(engine: Engine, outcome: Outcome, keys: Sequence[UniqueKey]) -> list[Problem]:
    """Return, for each violated unique index, the earliest row of an outcome with a duplicate
    value.

    Args:
        keys: the target's indexes to check.
    """
    found: list[Problem] = []
    for key in keys:
        if _is_distinct(outcome, key):
            continue
        row = _earliest_duplicate(engine, outcome, key)
        if row is not None:
            found.append(_problem(*row, outcome.target.unique.index(key)))
    return found


def _earliest_duplicate(
    engine: Engine, outcome: Outcome, key: UniqueKey
) -> tuple[dict[str, Any], dict[int, str | None]] | None:
    """Return the earliest row of an outcome with a duplicate value in an index, in the form of
    `earliest_row`."""
    if outcome.rows.is_small:
        repeated = _repeated_rows(outcome, key)
        if repeated is not None:
            return row_here(outcome, repeated[0]) if repeated else None
    elif not engine.rows(_any_duplicate_sql(outcome, key)):
        return None
    return earliest_row(engine, outcome, duplicates_sql(outcome, key))


def first_collision(engine: Engine, outcome: Outcome, target: Target) -> Problem | None:
    """Return the first new row with a duplicate value of a unique index, after an outcome is
    written.
    """
    for number, key in enumerate(target.unique):
        columns = [target.column(attnum) for attnum in key.attnums]
        forms = ", ".join(matching_form(column, f"c{column.attnum}") for column in columns)
        values = ", ".join(matching_group(column, f"c{column.attnum}") for column in columns)
        present = " AND ".join(f"c{attnum} IS NOT NULL" for attnum in key.attnums)
        conditions = [*([] if key.nulls_not_distinct else [present]), *predicate_of(key, "c")]
        existing = existing_rows_sql(target, conditions)
        twice = f"SELECT {values} FROM ({existing}) GROUP BY {forms} HAVING count(*) > 1"
        same = " AND ".join(matches(c, f"n.w{c.attnum}", f"e.c{c.attnum}", "<=>") for c in columns)
        is_new = " AND ".join(["op IN ('I', 'U')", *predicate_of(key, "n.w")])
        query = (
            f"SELECT n.* FROM {outcome.rows.view} n LEFT SEMI JOIN ({twice}) e ON {same}"
            f" WHERE {is_new}"
        )
        row = earliest_row(engine, outcome, reading(query, outcome.rows.query, existing))
        if row is not None:
            return _problem(*row, number)
    return None


def predicate_of(key: UniqueKey, prefix: str) -> list[str]:
    """Return the conditions, in SQL, of the rows in a partial index.

    Args:
        prefix: the prefix of columns, before the attnum.
    """
    if key.condition is None:
        return []
    return [f"({to_sql(key.condition, lambda var: f'{prefix}{var.attnum}').text})"]


def _is_distinct(outcome: Outcome, key: UniqueKey) -> bool:
    """Return whether an index is already known to have no duplicates: it has the columns of the
    target's key, the new keys are distinct, and the target has no rows yet.
    """
    target = outcome.target
    is_empty = all(leaf.source.location is None for leaf in target.leaves)
    return is_empty and outcome.has_distinct_keys and set(key.attnums) == set(target.key)


def are_new(outcome: Outcome, key: UniqueKey) -> bool:
    """Return whether the values of a few new rows are certainly unique in an index.  False means:
    ask Spark.
    """
    return _repeated_rows(outcome, key) == []


def _repeated_rows(outcome: Outcome, key: UniqueKey) -> list[int] | None:
    """Return the numbers of the new rows with a duplicate value in an index: the table or an
    earlier new row has it.  The outcome must be small.

    delta-rs looks for the values in the table, in a tenth of the time that Spark takes.

    Returns:
        the numbers of the rows, the earliest position first; None: ask Spark.
    """
    columns = _columns(outcome, key)
    if not all(map(has_own_form, columns)):
        return None
    values = [outcome.rows.values(f"w{column.attnum}") for column in columns]
    ops = outcome.rows.values("op")
    entering = [(i, row) for i, row in enumerate(zip(*values, strict=True)) if ops[i] in NEW]
    known = [(i, row) for i, row in entering if None not in row]
    if key.nulls_not_distinct and len(known) < len(entering):
        return None
    present = _present_values(outcome, key, [row for _i, row in known])
    if present is None:
        return None
    forms, positions = _forms_here(columns, values), outcome.rows.values("position")
    repeated = []
    for i in sorted((i for i, _row in known), key=positions.__getitem__):
        if forms[i] in present:
            repeated.append(i)
        present.add(forms[i])
    # A row that leaves the table, or is not in the index, does not count
    is_exact = key.condition is None and key.leaf is None and set(ops) <= {RowOp.INSERT}
    return repeated if is_exact or not repeated else None


def _present_values(
    outcome: Outcome, key: UniqueKey, values: Sequence[tuple[Any, ...]]
) -> set[tuple[Hashable, ...]] | None:
    """Return the values of an index that the table has, and perhaps others, in the form of
    `_forms_here`; None if Spark has to find them.
    """
    present: set[tuple[Hashable, ...]] = set()
    wanted = dict(zip(key.attnums, zip(*values, strict=True), strict=False))
    for leaf in outcome.target.leaves:
        if leaf.source.location is None or not values:
            continue
        columns = [leaf.source.column(attnum) for attnum in wanted]
        found = found_rows(leaf.source, columns, wanted)
        is_whole = all(column.storage_name is not None for column in columns)
        if found is None or (found.num_rows and not is_whole):
            return None
        sent = [
            column.cast(wire(c.type, c.typmod).arrow).to_pylist()
            for c, column in zip(columns, found.columns, strict=True)
        ]
        present.update(_forms_here(columns, sent))
    return present


def _forms_here(
    columns: Sequence[TypedColumn], values: Sequence[Sequence[Any]]
) -> list[tuple[Hashable, ...]]:
    """Return values of an index in a form in which they are equal if PostgreSQL finds them equal.

    Args:
        values: for each column its values in wire form (data_type.wire).
    """
    return [*zip(*map(matching_values, columns, values), strict=True)]


def _problem(values: dict[str, Any], texts: dict[int, str | None], number: int) -> Problem:
    leaf, action = values["new_leaf"], values["action"]
    return Problem(values["position"], "unique", number, leaf, texts, action)


def _any_duplicate_sql(outcome: Outcome, key: UniqueKey) -> Query:
    """Return a query that yields a row if there are duplicates.  It reads only the index's
    columns.
    """
    columns = _columns(outcome, key)
    values = ", ".join(matching_group(column, f"w{column.attnum}") for column in columns)
    numbered = (
        f"SELECT {values}, count(*) AS occurrence FROM ({_entering_sql(outcome, key)})"
        f" GROUP BY {_forms(columns)}"
    )
    repeated = _repeated_sql(outcome, key, "1", numbered)
    return reading(f"{repeated} LIMIT 1", repeated)


def duplicates_sql(outcome: Outcome, key: UniqueKey) -> Query:
    """Return a query for the rows of an outcome that have the value of another new row, or of a row
    that stays in the table.
    """
    forms = _forms(_columns(outcome, key))
    numbered = (
        f"SELECT *, row_number() OVER (PARTITION BY {forms} ORDER BY position) AS occurrence"
        f" FROM ({_entering_sql(outcome, key)})"
    )
    return _repeated_sql(outcome, key, "n.*", numbered)


def _columns(outcome: Outcome, key: UniqueKey) -> list[TargetColumn]:
    return [outcome.target.column(attnum) for attnum in key.attnums]


def _forms(columns: Sequence[TargetColumn]) -> str:
    """Return SQL expressions that are equal exactly where the values of new rows are equal."""
    return ", ".join(matching_form(column, f"w{column.attnum}") for column in columns)


def _entering_sql(outcome: Outcome, key: UniqueKey) -> str:
    """Return SQL of the rows of an outcome that enter the index."""
    conditions = ["op IN ('I', 'U', 'C')", *predicate_of(key, "w")]
    if not key.nulls_not_distinct:
        conditions += [f"w{attnum} IS NOT NULL" for attnum in key.attnums]
    if key.leaf is not None:
        conditions.append(f"new_leaf = {key.leaf}")
    return f"SELECT * FROM {outcome.rows.view} WHERE {' AND '.join(conditions)}"


def _repeated_sql(outcome: Outcome, key: UniqueKey, shown: str, numbered: str) -> Query:
    """Return a query for entering rows that repeat another entering row or equal a row that stays
    in the table, each numbered among its equals.
    """
    equals = "<=>" if key.nulls_not_distinct else "="
    same = " AND ".join(
        matches(c, f"n.w{c.attnum}", f"e.c{c.attnum}", equals) for c in _columns(outcome, key)
    )
    staying = _staying_sql(outcome, key)
    return reading(
        f"SELECT {shown} FROM ({numbered}) n LEFT JOIN ({staying}) e ON {same}"
        " WHERE n.occurrence > 1 OR e.leaf IS NOT NULL",
        outcome.rows.query,
        staying,
    )


def indexed_rows_sql(outcome: Outcome, key: UniqueKey) -> Query:
    """Return a query for the indexed rows of the table that may equal new rows of the outcome."""
    rows = outcome.rows
    conditions = predicate_of(key, "c")
    if rows.is_small and not key.nulls_not_distinct:
        conditions += [literal_condition(f"c{a}", rows, [f"w{a}"]) for a in key.attnums]
    if key.leaf is not None:
        conditions.append(f"leaf = {key.leaf}")
    return existing_rows_sql(outcome.target, conditions)


def _staying_sql(outcome: Outcome, key: UniqueKey) -> Query:
    """Return a query for the table's rows that the outcome does not change, and that may equal new
    ones."""
    return unchanged_rows_sql(outcome, indexed_rows_sql(outcome, key))


def unchanged_rows_sql(outcome: Outcome, existing: Query, *, gone: str = "'U', 'D'") -> Query:
    """Return a query for the rows of `existing` that the outcome does not change.

    Args:
        existing: a query for rows of the target, with all columns.
        gone: the ops, as SQL, of the rows of the outcome to leave out.
    """
    match outcome.matching:
        case "key" if outcome.target.key:
            alike = [
                matches(c, f"t.c{c.attnum}", f"v.k{i}", "<=>")
                for i, c in enumerate(outcome.target.key_columns, start=1)
            ]
        case "sent columns":
            sent = [column for column in outcome.target.columns if column.sent is not None]
            alike = [matches(c, f"t.c{c.attnum}", f"v.w{c.attnum}", "<=>") for c in sent]
        case "whole row" | "each row":
            columns = outcome.target.columns
            alike = [is_stored_alike(c.type, f"t.c{c.attnum}", f"v.o{c.attnum}") for c in columns]
        case _:
            return existing
    changed = f"SELECT * FROM {outcome.rows.view} WHERE op IN ({gone})"
    return reading(
        f"SELECT t.* FROM ({existing}) t LEFT ANTI JOIN ({changed}) v ON {' AND '.join(alike)}",
        existing,
        outcome.rows.query,
    )
