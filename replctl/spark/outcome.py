"""Compute the outcome of a run of changes: the rows to remove, change and add in the target, and
the rows that cannot be written.

replctl computes the whole outcome before merge.py writes it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from replctl.expr.nodes import Expr, Var, walk
from replctl.record import dataclass
from replctl.replication.update_transformation import ROW_ACTIONS, Action
from replctl.spark.data_type import storage_type, text_of_wire, wire
from replctl.spark.generated_column import generated_sql
from replctl.spark.normal_form import is_stored_alike, matching_form
from replctl.spark.partition_sql import accepts_sql, leaf_number_sql
from replctl.spark.spark_query import Query, reading
from replctl.spark.staged import Staged, StagedColumn
from replctl.spark.stored_expression import stored_sql_of, used_columns
from replctl.spark.translation import to_sql
from replctl.spark.values import NEXT_VALUE, Leaf, StoredExpr, Target, TargetColumn

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

#: The way to find the table's rows for a row of an outcome.  "key": by the target's key.  "sent
#: columns": by these columns; a D row stands for all equal rows.  "whole row": by all old columns
#: (o<attnum>); equal rows stay equal.  "each row": likewise, but equal rows may become different.
Matching: TypeAlias = Literal["key", "sent columns", "whole row", "each row"]


class RowOp(StrEnum):
    """The effect of a row of an outcome on the target (the column op)."""

    INSERT = "I"
    UPDATE = "U"
    DELETE = "D"
    CONFLICT = "C"  # an INSERT of a key that the target has
    MISSING = "M"  # an UPDATE or DELETE that finds no row
    REPEATED = "R"  # another delete of a row that equals the row of a DELETE


#: The ops of rows that come into the target, and of those that would without a conflict.
COMING = (RowOp.INSERT, RowOp.UPDATE)
NEW = (*COMING, RowOp.CONFLICT)

#: Stands for the values of a row without columns.
NO_COLUMNS = "1 AS w0"
_INTEGERS = ("int2", "int4", "int8")

_IS_NEW = "op IN ('I', 'U', 'C')"
#: The SQL condition that a row cannot be written.
_IS_WRONG = f"op = 'C' OR violation IS NOT NULL OR ({_IS_NEW} AND new_leaf IS NULL)"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The rows of a target that change, and the replicated UPDATEs and DELETEs that find no row.

    `rows` has one row for each of them, with these columns:

    - op: see `RowOp`
    - position, action: the position and the kind of the row's last change
    - old_leaf, new_leaf: indexes of the target's leaf partitions; NULL if the row is in none
    - k1, k2, ...: the old key
    - w<attnum>: the whole new row
    - o<attnum>: the old row, if `matching` compares whole rows

    Attributes:
        groups: the number of rows of each kind.
        matching: how replctl finds the target's row of a change.
        moves_keys: an update changes key values.
        lacks_keys: the old key of a row contains NULL.  Only other programs write such rows.
        has_distinct_keys: all new keys are known to be distinct.
    """

    target: Target
    rows: Staged
    groups: tuple[OutcomeGroup, ...]
    matching: Matching = "key"
    moves_keys: bool = False
    lacks_keys: bool = False
    has_distinct_keys: bool = False

    @property
    def has_problem(self) -> bool:
        """Return whether a row of the outcome cannot be written.  This does not check unique
        indexes, except the key.
        """
        return any(group.has_problem for group in self.groups)

    @property
    def missing_rows(self) -> tuple[int, int]:
        """Return the number of UPDATEs and the number of DELETEs that found no row."""
        groups = self.groups
        return sum(g.missing_updates for g in groups), sum(g.missing_deletes for g in groups)

    @property
    def changed_rows(self) -> tuple[int, int, int]:
        """Return the numbers of inserted, updated and deleted rows."""
        counts = Counter[Action | None]()
        for group in self.groups:
            counts[group.effect] += group.count
        inserted, updated, deleted = (counts[action] for action in ROW_ACTIONS)
        return inserted, updated, deleted


@dataclass(frozen=True, slots=True)
class OutcomeGroup:
    """The rows of an outcome that have the same op, effect and leaf partitions.

    Attributes:
        effect: the effect on a row of the target.  It is None if the row does not change, or if
            another row of the outcome represents the change.
    """

    op: RowOp
    effect: Action | None
    old_leaf: int | None
    new_leaf: int | None
    count: int
    missing_updates: int
    missing_deletes: int
    has_problem: bool

    @property
    def moves(self) -> bool:
        """Return whether the rows move to another leaf partition."""
        return self.op is RowOp.UPDATE and self.old_leaf != self.new_leaf


def grouped(
    engine: Engine,
    target: Target,
    rows: Staged,
    matching: Matching = "key",
    *,
    moves_keys: bool = False,
    counts_missing: bool = False,
    are_new: bool = False,
    may_lack_keys: bool = False,
) -> Outcome:
    """Count the rows of an outcome by groups in one pass, and return the outcome.

    Args:
        counts_missing: the rows have missing_u and missing_d, the numbers of UPDATEs and DELETEs
            that found no row.
        are_new: all rows are new.  If they are many, the same pass checks whether their keys are
            distinct.
        may_lack_keys: look for NULL in old keys.
    """
    may_lack_keys = may_lack_keys and matching == "key"
    if rows.is_small:
        groups = tuple(_groups_here(rows, matching, counts_missing))
        lacks_keys = may_lack_keys and _lacks_keys(target, rows)
        return Outcome(target, rows, groups, matching, moves_keys, lacks_keys)
    if are_new and target.key:
        groups, has_distinct_keys = _groups_of_keys(engine, target, rows)
        return Outcome(target, rows, groups, has_distinct_keys=has_distinct_keys)
    has_null = " OR ".join(f"{name} IS NULL" for name in _key_names(target))
    lacks_key = f"op IN ('U', 'D') AND ({has_null})" if may_lack_keys else ""
    groups, lacks_keys = _groups(engine, rows, matching, counts_missing, lacks_key)
    return Outcome(target, rows, groups, matching, moves_keys, lacks_keys)


def _key_names(target: Target) -> list[str]:
    return [f"k{i}" for i in range(1, len(target.key) + 1)]


def _lacks_keys(target: Target, rows: Staged) -> bool:
    """Return whether the old key of a row to update or delete contains NULL."""
    keys = zip(*map(rows.values, _key_names(target)), strict=True)
    return any(
        op in (RowOp.UPDATE, RowOp.DELETE) and None in key
        for op, key in zip(rows.values("op"), keys, strict=True)
    )


def _effect(matching: Matching, op: str, action: str, position: int) -> Action | None:
    """Return the effect of a row of an outcome on a row of the target.  `_effect_sql` does the same
    in SQL.

    If the sent columns identify rows, an update consists of a D and an I, and an I with position 0
    inserts an unchanged row again.
    """
    if matching != "sent columns":
        return Action(op) if op in ROW_ACTIONS else None
    is_last = op == RowOp.DELETE and action == Action.DELETE
    counts = op == RowOp.REPEATED or (op == RowOp.INSERT and position > 0) or is_last
    return Action(action) if counts else None


def _effect_sql(matching: Matching) -> str:
    if matching != "sent columns":
        return "if(op IN ('I', 'U', 'D'), op, '')"
    counts = "op = 'R' OR (op = 'I' AND position > 0) OR (op = 'D' AND action = 'D')"
    return f"if({counts}, action, '')"


def _groups_here(rows: Staged, matching: Matching, counts_missing: bool) -> Iterator[OutcomeGroup]:
    ops, actions, positions = (rows.values(name) for name in ("op", "action", "position"))
    effects = map(partial(_effect, matching), ops, actions, positions)
    olds, news, violations = (rows.values(name) for name in ("old_leaf", "new_leaf", "violation"))
    places: dict[tuple[str, Action | None, int | None, int | None], list[int]] = defaultdict(list)
    for row, key in enumerate(zip(ops, effects, olds, news, strict=True)):
        places[key].append(row)
    counts = [rows.values(name) if counts_missing else [0] * len(ops) for name in _MISSING]
    for (op, effect, old, new), chosen in places.items():
        missing = [sum(count[row] for row in chosen) for count in counts]
        is_violated = any(violations[row] is not None for row in chosen)
        has_problem = _is_wrong(op, new) or is_violated
        yield OutcomeGroup(
            RowOp(op), effect, old, new, len(chosen), missing[0], missing[1], has_problem
        )


def _is_wrong(op: str, new_leaf: int | None) -> bool:
    """Return whether a row without violations cannot be written.  `_IS_WRONG` is this condition in
    SQL, and also covers rows with violations.
    """
    return op == RowOp.CONFLICT or (op in COMING and new_leaf is None)


def _groups(
    engine: Engine, rows: Staged, matching: Matching, counts_missing: bool, lacks_key: str
) -> tuple[tuple[OutcomeGroup, ...], bool]:
    """Return the groups of an outcome, and whether a row satisfies the condition `lacks_key`."""
    missing = ", ".join(f"sum({name})" if counts_missing else "0L" for name in _MISSING)
    lacks = f", bool_or({lacks_key})" if lacks_key else ""
    grouped_rows = (
        f"SELECT op, {_effect_sql(matching)} AS effect, old_leaf, new_leaf, count(*), {missing},"
        f" bool_or({_IS_WRONG}){lacks} FROM {rows.view} GROUP BY op, effect, old_leaf, new_leaf"
    )
    found = engine.rows(reading(grouped_rows, rows.query))
    if not lacks_key:
        return tuple(_group(*group) for group in found), False
    groups = tuple(_group(*group) for *group, _lacks_key in found)
    return groups, any(group[-1] for group in found)


def _group(op: str, effect: str, *facts: Any) -> OutcomeGroup:
    """Return a group of Spark's answer, in which the effect is empty instead of None."""
    return OutcomeGroup(RowOp(op), Action(effect) if effect else None, *facts)


def _groups_of_keys(
    engine: Engine, target: Target, rows: Staged
) -> tuple[tuple[OutcomeGroup, ...], bool]:
    """Return the groups of new rows, and whether all keys are distinct.

    Each integer key sets one bit in a word for 64 neighbouring keys.  If keys are dense, Spark has
    to sort and send few words between tasks.
    """
    columns = target.key_columns
    keys = [matching_form(column, f"k{i}") for i, column in enumerate(columns, start=1)]
    differing = "count(*) = 1"
    i = next((i for i, column in enumerate(columns) if column.type in _INTEGERS), None)
    if i is not None:
        bit = f"shiftleft(1L, CAST({keys[i]} & 63 AS INT))"
        differing = f"count(*) = bit_count(bit_or({bit}))"
        keys[i] = f"shiftright(CAST({keys[i]} AS BIGINT), 6)"
    of_keys = (
        f"SELECT new_leaf, count(*) AS rows, bool_or({_IS_WRONG}) AS is_wrong, {differing} AS"
        f" is_distinct FROM {rows.view} GROUP BY new_leaf, {', '.join(keys)}"
    )
    of_leaves = (
        "SELECT 'I', 'I', NULL, new_leaf, sum(rows), 0L, 0L, bool_or(is_wrong),"
        f" bool_and(coalesce(is_distinct, FALSE)) FROM ({of_keys}) GROUP BY new_leaf"
    )
    found = engine.rows(reading(of_leaves, rows.query))
    groups = tuple(_group(*group) for *group, _is_distinct in found)
    return groups, all(is_distinct for *_group, is_distinct in found)


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason why an outcome cannot be written.

    Attributes:
        position: the position of the first change with the problem.
        kind: the rule that the row violates.

            - "key": the row's key already exists.
            - "not null": a column must not be NULL.
            - "check": a check fails.
            - "partition": no partition accepts the row.
            - "unique": the row's key already exists in another unique index.
            - "reference": a foreign key is violated.
        number: for "not null" the attnum.  For "check" the index in `checks_of`.  For "key" and
            "unique" the index in the target's `unique`.
        leaf: index of the row's leaf partition.
        row: the texts of the new row, by attnum.
        action: the letter of the change's `Action`.
        broken_keys: the number of unique indexes of the target that the row violates.
    """

    position: int
    kind: Literal["key", "not null", "check", "partition", "unique", "reference"]
    number: int
    leaf: int | None
    row: dict[int, str | None]
    action: str = ""
    broken_keys: int = 0


def earliest_problem(problems: Sequence[Problem]) -> Problem | None:
    """Return the problem that PostgreSQL would report.  PostgreSQL checks a row's indexes last, in
    the order of their OIDs.
    """

    def place(problem: Problem) -> tuple[int, bool, int]:
        is_key = problem.kind in ("key", "unique")
        return problem.position, is_key, problem.number if is_key else 0

    found = min(problems, key=place, default=None)
    if found is None:
        return None
    same_row = [p for p in problems if (p.position, p.row) == (found.position, found.row)]
    return replace(found, broken_keys=sum(p.kind in ("key", "unique") for p in same_row))


_CONTROL = (
    StagedColumn("op", "text"),
    StagedColumn("position", "int8"),
    StagedColumn("action", "text"),
    StagedColumn("violation", "int4"),
    StagedColumn("old_leaf", "int4"),
    StagedColumn("new_leaf", "int4"),
)


_MISSING = ("missing_u", "missing_d")


def outcome_columns(
    target: Target, *, with_old: bool = False, counts_missing: bool = False
) -> list[StagedColumn]:
    """Return the columns that `finished_sql` selects."""
    keys = [target.column(attnum) for attnum in target.key]
    return [
        *_CONTROL,
        *(StagedColumn(name, "int8") for name in _MISSING if counts_missing),
        *(StagedColumn(f"k{i}", c.type, c.typmod) for i, c in enumerate(keys, start=1)),
        *(StagedColumn(f"w{c.attnum}", c.type, c.typmod) for c in target.columns),
        *(StagedColumn(f"o{c.attnum}", c.type, c.typmod) for c in target.columns if with_old),
    ]


def finished_sql(
    target: Target,
    joined: Query,
    *,
    keep_unchanged: bool = False,
    is_new: bool = False,
    with_old: bool = False,
    action: str = "op",
    counts_missing: bool = False,
) -> Query:
    """Return a query that adds the columns that depend on others: generated columns, the partition,
    and violated constraints.

    Args:
        joined: a query with the columns op, position, old_leaf, the keys (unless `is_new`), the new
            values w<attnum> (except generated columns), and the old values c<attnum>.
        keep_unchanged: keep updates that change nothing.
        is_new: all rows are new, and the new rows contain their keys.
        with_old: also return the old row as o<attnum>.
        action: SQL of the kind of the row's last change.
        counts_missing: `joined` has the columns missing_u and missing_d.
    """
    generated = [column for column in target.columns if column.generated is not None]
    computed = "".join(
        f", {generated_sql(target, column)} AS w{column.attnum}" for column in generated
    )
    complete = f"SELECT *{computed} FROM ({joined}) WHERE op IS NOT NULL"
    new_leaf = leaf_number_sql(target.leaves, lambda attnum: f"w{attnum}")
    keys = "".join(
        f", w{attnum} AS k{i}" if is_new else f", k{i}"
        for i, attnum in enumerate(target.key, start=1)
    )
    counts = "".join(f", {name}" for name in _MISSING if counts_missing)
    rows = "".join(f", w{column.attnum}" for column in target.columns)
    old = "".join(f", c{c.attnum} AS o{c.attnum}" for c in target.columns) if with_old else ""
    violation = violation_sql(target, "w") or "CAST(NULL AS INT)"
    finished = (
        f"SELECT op, position, {action} AS action,"
        f" if({_IS_NEW}, {violation}, NULL) AS violation, old_leaf,"
        f" if({_IS_NEW}, {new_leaf}, NULL) AS new_leaf{counts}{keys}{rows}{old} FROM ({complete})"
    )
    if keep_unchanged or is_new:
        return reading(finished, joined)
    same = [is_stored_alike(c.type, f"w{c.attnum}", f"c{c.attnum}") for c in target.columns]
    changes = f"NOT (op = 'U' AND {' AND '.join(same) or 'TRUE'})"
    return reading(f"{finished} WHERE {changes}", joined)


def default_sql(column: TargetColumn, place: str) -> str:
    """Return SQL of a column's value in a new row that does not set the column.

    Args:
        place: SQL of the row's number among the new rows, from 1.
    """
    if column.default is None:
        return f"CAST(NULL AS {storage_type(column.type, column.typmod)})"

    def name(var: Var) -> str:
        if var.attnum < NEXT_VALUE:
            return f"c{var.attnum}"
        values = column.taken[var.attnum - NEXT_VALUE]
        return f"({values.start}L + {values.step}L * ({place} - 1L))"

    return to_sql(column.default, name).text


def new_values_sql(
    target: Target, keeps_own: str, place: str, sent: str, stored: str | None = "e"
) -> str:
    """Return the SELECT list of the new row.  Columns that are not sent keep the target's value; in
    an inserted row they get their default.

    Args:
        keeps_own: the SQL condition that the row keeps the target's values.
        place: see `default_sql`.
        sent, stored: the aliases of the sent row and of the target's row; None if there is none.
    """
    values = ", ".join(
        f"{_new_value(column, keeps_own, place, sent, stored)} AS w{column.attnum}"
        for column in target.columns
        if column.generated is None
    )
    return values or NO_COLUMNS


def _new_value(
    column: TargetColumn, keeps_own: str, place: str, sent: str, stored: str | None
) -> str:
    if column.sent is not None:
        return f"{sent}.n{column.attnum}"
    default = default_sql(column, place)
    return default if stored is None else f"if({keeps_own}, {stored}.c{column.attnum}, {default})"


def first_problem_of_rows(engine: Engine, outcome: Outcome) -> Problem | None:
    """Return the conflict or violation of the earliest change; None if there is none.

    uniqueness.py checks the unique indexes other than the key.
    """
    if not outcome.has_problem:
        return None
    if outcome.rows.is_small:
        found: _FoundRow | None = _earliest_wrong_row(outcome)
    else:
        wrong = f"SELECT * FROM {outcome.rows.view} WHERE {_IS_WRONG}"
        found = earliest_row(engine, outcome, reading(wrong, outcome.rows.query))
    assert found is not None
    values, texts = found
    position, leaf, violation = values["position"], values["new_leaf"], values["violation"]
    action = values["action"]
    # PostgreSQL checks the bound of a partition that is itself the target of INSERT last.
    is_last = outcome.target.is_leaf and action == Action.INSERT
    if leaf is None and not (is_last and violation is not None):
        return Problem(position, "partition", 0, None, texts, action)
    if violation is None:
        keys = [
            set(key.attnums) if key.condition is None else set() for key in outcome.target.unique
        ]
        number = keys.index(set(outcome.target.key))
        return Problem(position, "key", number, leaf, texts, action)
    if violation > 0:
        return Problem(position, "not null", violation, leaf, texts, action)
    return Problem(position, "check", -violation - 1, leaf, texts, action)


#: The values of a row of an outcome, and the texts of its new row by attnum.
_FoundRow: TypeAlias = tuple[dict[str, Any], dict[int, str | None]]


def earliest_row(engine: Engine, outcome: Outcome, query: Query) -> _FoundRow | None:
    """Return the row with the smallest position in a query of an outcome; None if there is no
    row."""
    columns = outcome.rows.columns
    sent = ", ".join(
        f"{wire(c.type, c.typmod).to_wire.format(c.name)} AS {c.name}" for c in columns
    )
    first = f"SELECT {sent} FROM ({query}) ORDER BY position, violation LIMIT 1"
    found = engine.rows(reading(first, query))
    if not found:
        return None
    values = dict(zip((column.name for column in columns), found[0], strict=True))
    return values, _texts_of(outcome, values)


def _earliest_wrong_row(outcome: Outcome) -> _FoundRow:
    """Return the same as `earliest_row` for the rows of a small outcome that cannot be written."""
    names = ("op", "new_leaf", "violation", "position")
    rows = enumerate(zip(*(outcome.rows.values(name) for name in names), strict=True))
    wrong = [
        (position, violation is not None, violation, i)  # like Spark, NULL comes first
        for i, (op, new_leaf, violation, position) in rows
        if _is_wrong(op, new_leaf) or violation is not None
    ]
    return row_here(outcome, min(wrong)[-1])


def row_here(outcome: Outcome, number: int) -> _FoundRow:
    """Return a row of a small outcome in the form of `earliest_row`."""
    assert outcome.rows.rows is not None
    (values,) = outcome.rows.rows.slice(number, 1).to_pylist()
    return values, _texts_of(outcome, values)


def _texts_of(outcome: Outcome, values: Mapping[str, Any]) -> dict[int, str | None]:
    """Return the values of the new row in a row of an outcome, as texts by attnum."""
    return {
        column.attnum: text_of_wire(column.type, values[f"w{column.attnum}"])
        for column in outcome.target.columns
    }


def checks_of(target: Target) -> list[tuple[str, Expr | StoredExpr, Leaf | None]]:
    """Return all checks of a target: the name, the expression, and the only leaf partition to which
    the check applies, or None."""
    own: list[tuple[str, Expr | StoredExpr, Leaf | None]] = [
        (name, check, leaf) for leaf in target.leaves for name, check in leaf.checks
    ]
    tests = [(test.constraint or "", test.condition, None) for test in target.domain_tests]
    return [*tests, *((name, check, None) for name, check in target.checks), *own]


def violation_sql(target: Target, image: str, known: Container[int] | None = None) -> str | None:
    """Return SQL of the number of the first constraint that a new row violates: the attnum for NOT
    NULL, and -1, -2, ... for the checks; NULL if there is none.  Return None if the target has no
    constraints.

    Args:
        image: the prefix of the row's columns, before the attnum.
        known: check only constraints on these columns.
    """

    def column(attnum: int) -> str:
        return f"{image}{attnum}"

    def is_known(attnums: Iterable[int]) -> bool:
        return known is None or all(attnum in known for attnum in attnums)

    checks = list(enumerate(checks_of(target), start=1))
    domain_tests = len(target.domain_tests)  # PostgreSQL checks domains first, on input
    whens = [
        f"WHEN NOT {_check_sql(check, column)} THEN -{number}"
        for number, (_name, check, _only) in checks[:domain_tests]
        if is_known(_check_attnums(check))
    ]
    whens += [
        f"WHEN {column(item.attnum)} IS NULL THEN {item.attnum}"
        for item in target.columns
        if item.not_null and is_known([item.attnum])
    ]
    for leaf in target.leaves:
        place = accepts_sql(leaf.rules, column)
        whens += [
            f"WHEN {column(attnum)} IS NULL AND {place} THEN {attnum}"
            for attnum in leaf.not_null
            if is_known([attnum, *_rule_attnums(leaf)])
        ]
    for number, (_name, check, only) in checks[domain_tests:]:
        attnums = _check_attnums(check)
        if not is_known(attnums + ([] if only is None else _rule_attnums(only))):
            continue
        place = "" if only is None else f"{accepts_sql(only.rules, column)} AND "
        whens.append(f"WHEN {place}NOT {_check_sql(check, column)} THEN -{number}")
    return f"CASE {' '.join(whens)} END" if whens else None


def _check_attnums(check: Expr | StoredExpr) -> list[int]:
    if isinstance(check, StoredExpr):
        return [attnum for _name, attnum in used_columns(check)]
    return [node.attnum for node in walk(check) if isinstance(node, Var)]


def _check_sql(check: Expr | StoredExpr, column: Callable[[int], str]) -> str:
    """Return SQL of a check's condition.  For Delta's own conditions NULL counts as false
    (CheckDeltaInvariant).
    """
    if isinstance(check, StoredExpr):
        return f"coalesce({stored_sql_of(check, column)}, FALSE)"
    return to_sql(check, lambda var: column(var.attnum)).text


def _rule_attnums(leaf: Leaf) -> list[int]:
    return [attnum for rule in leaf.rules for attnum in rule.keys]
