"""Compute the outcome of replicated changes: convert them to the target's columns, combine the
changes of each key, and join them with the target's rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING

from replctl.errors import DataError
from replctl.record import dataclass
from replctl.replication.composition import NetEffect
from replctl.replication.update_transformation import ROW_ACTIONS, Action
from replctl.spark.compact import net_effects_sql
from replctl.spark.data_type import quote, storage_type
from replctl.spark.key_path import existing_rows
from replctl.spark.net_changes import net_changes
from replctl.spark.normal_form import is_stored_alike, matches, matching_form, matching_values
from replctl.spark.outcome import (
    NO_COLUMNS,
    Outcome,
    default_sql,
    finished_sql,
    grouped,
    new_values_sql,
    outcome_columns,
    violation_sql,
)
from replctl.spark.spark_query import Query, reading
from replctl.spark.sql_value import SqlValue
from replctl.spark.staged import Staged, StagedColumn
from replctl.spark.staging import staged
from replctl.spark.text_conversion import replicate
from replctl.spark.values import IMAGES, SentColumn, Target, TargetColumn
from replctl.spark.whole_row import whole_row_sql

if TYPE_CHECKING:
    import pyarrow as pa

    from replctl.spark.engine import Engine


@contextmanager
def converted(
    engine: Engine,
    target: Target,
    sent: Sequence[SentColumn],
    changes: Staged,
    first: int,
    last: int,
) -> Iterator[Staged]:
    """Yield the changes from `first` to `last` with the target's columns and types: o<attnum>,
    n<attnum>.

    Old values outside of the replica identity are not sent in PostgreSQL.  Only `repeats_rows`
    reads them.  So they need no conversion of their own, which could fail.  See `_old_value`.
    """
    written = [column for column in target.columns if column.sent is not None]
    columns = [StagedColumn("position", "int8"), StagedColumn("action", "text")]
    columns += [StagedColumn(f"{i}{c.attnum}", c.type, c.typmod) for c in written for i in IMAGES]
    values = ["position", "action"]
    for column in written:
        values += [_old_value(sent, column), received(sent, column, "n")]
    shown = ", ".join(f"{value} AS {c.name}" for value, c in zip(values, columns, strict=True))
    query = reading(
        f"SELECT {shown} FROM {changes.view} WHERE position BETWEEN {first} AND {last}",
        changes.query,
    )
    known = {column.name: column for column in changes.columns}
    if all(
        known.get(value) == column._replace(name=value)
        for value, column in zip(values, columns, strict=True)
    ):  # nothing to convert
        yield Staged(query, tuple(columns), _between(changes, values, columns, first, last))
        return
    with staged(engine, query, columns, is_many=not changes.is_small) as rows:
        yield rows


def _between(
    changes: Staged,
    names: Sequence[str],
    columns: Sequence[StagedColumn],
    first: int,
    last: int,
) -> pa.Table | None:
    """Return renamed columns of the changes from `first` to `last`; None if the rows are not in
    this process.
    """
    if changes.rows is None:
        return None
    import pyarrow as pa

    is_wanted = [first <= position <= last for position in changes.values("position")]
    return (
        changes.rows.filter(pa.array(is_wanted, pa.bool_()))
        .select(names)
        .rename_columns([c.name for c in columns])
    )


@dataclass(frozen=True, slots=True)
class ChangeSummary:
    """The properties of converted changes that are known before the join with the target.

    Attributes:
        actions: the kinds of the changes.
        has_several_positions: the changes belong to several transactions.
        moves_keys: an update changes a key.
        repeats_keys: a key may have several changes.
        repeats_rows: an update changes none of the sent values.
        violating_positions: if a row may have several changes, the positions of changes whose new
            row violates a constraint.  The outcome may lack such a row, because it combines the
            changes of each key.
    """

    actions: frozenset[Action]
    has_several_positions: bool
    moves_keys: bool
    repeats_keys: bool
    repeats_rows: bool
    violating_positions: tuple[int, ...] = ()


def summary(engine: Engine, target: Target, changes: Staged) -> ChangeSummary:
    """Return the properties of converted changes.  Spark reads many changes in one pass."""
    moves = " OR ".join(
        f"NOT ({matches(c, f'o{c.attnum}', f'n{c.attnum}', '<=>')})" for c in target.key_columns
    )
    moves = moves or "FALSE"
    summarized = _summary_here if changes.is_small else _summary_there
    found = summarized(engine, target, changes, moves)
    if not (target.key and (found.repeats_keys or found.moves_keys)):
        return found
    return replace(found, violating_positions=_violating_positions(engine, target, changes))


def _summary_there(engine: Engine, target: Target, changes: Staged, moves: str) -> ChangeSummary:
    repeats = " AND ".join(
        is_stored_alike(c.type, f"o{c.attnum}", f"n{c.attnum}")
        for c in target.columns
        if c.sent is not None
    )
    repeats = repeats or "TRUE"
    keys = ", ".join(
        matching_form(c, f"coalesce(n{c.attnum}, o{c.attnum})") for c in target.key_columns
    )
    of_keys = (
        "SELECT bool_or(action = 'I') AS i, bool_or(action = 'U') AS u, bool_or(action = 'D') AS d,"
        " min(position) AS first, max(position) AS last,"
        f" bool_or(action = 'U' AND ({moves})) AS moves, count(*) AS changes,"
        f" bool_or(action = 'U' AND {repeats}) AS repeats"
        f" FROM {changes.view}{f' GROUP BY {keys}' if keys else ''}"
    )
    summarized = (
        "SELECT bool_or(i), bool_or(u), bool_or(d), min(first) < max(last), bool_or(moves),"
        f" max(changes) > 1, bool_or(repeats) FROM ({of_keys})"
    )
    ((*has_actions, has_several, moves_keys, repeats_keys, repeats_rows),) = engine.rows(
        reading(summarized, changes.query)
    )
    actions = frozenset(compress(ROW_ACTIONS, has_actions))
    return ChangeSummary(
        actions, bool(has_several), bool(moves_keys), bool(repeats_keys), bool(repeats_rows)
    )


def _summary_here(engine: Engine, target: Target, changes: Staged, moves: str) -> ChangeSummary:
    moves_keys = False
    if not _has_same_keys(changes, target.key_columns):
        query = f"SELECT 1 FROM {changes.view} WHERE action = 'U' AND ({moves}) LIMIT 1"
        moves_keys = bool(engine.rows(reading(query, changes.query)))
    return ChangeSummary(
        frozenset(map(Action, changes.values("action"))),
        len(set(changes.values("position"))) > 1,
        moves_keys,
        _repeats_keys(target, changes),
        _repeats_rows(target, changes),
    )


def _violating_positions(engine: Engine, target: Target, changes: Staged) -> tuple[int, ...]:
    sent = {column.attnum for column in target.columns if column.sent is not None}
    violation = violation_sql(target, "n", sent)
    if violation is None:
        return ()
    violating = (
        f"SELECT DISTINCT position FROM {changes.view} WHERE action <> 'D'"
        f" AND ({violation}) IS NOT NULL ORDER BY position"
    )
    found = engine.rows(reading(violating, changes.query))
    return tuple(int(position) for (position,) in found)


@contextmanager
def outcome(
    engine: Engine, target: Target, changes: Staged, summary: ChangeSummary
) -> Iterator[Outcome]:
    """Yield the outcome of converted changes for their target.

    If updates change keys, or the target has no key, the changes must belong to one transaction.
    """
    moves = not target.key or summary.moves_keys
    with ExitStack() as stack:
        existing, has_values = stack.enter_context(
            existing_rows(engine, target, changes, needs_values=moves or summary.repeats_rows)
        )
        missing, clash = "FALSE", "FALSE"
        if moves and (
            summary.has_several_positions or (target.key and _shares_keys(engine, target, changes))
        ):
            changes = stack.enter_context(net_changes(engine, target, changes, existing))
            missing, clash = "ch.is_missing", "ch.is_clash"
        if not target.key:
            chosen = _whole_row_outcome(engine, target, changes, missing)
        elif moves:
            chosen = _moving_outcome(engine, target, changes, existing, missing, clash)
        else:
            repeats_keys = summary.repeats_keys
            chosen = _keyed_outcome(
                engine, target, changes, existing, has_values=has_values, repeats_keys=repeats_keys
            )
        yield stack.enter_context(chosen)


@contextmanager
def copied(
    engine: Engine, target: Target, sent: Sequence[SentColumn], rows: Query
) -> Iterator[Outcome]:
    """Yield the outcome of an initial copy, in which every row is new.  Each job reads the rows
    again.

    Args:
        rows: a query for the published rows, with the sent columns n1, n2, ...
    """
    place = "row_number() OVER (ORDER BY monotonically_increasing_id())"
    values = ", ".join(
        f"{received(sent, column, 'n') if column.sent is not None else default_sql(column, place)}"
        f" AS w{column.attnum}"
        for column in target.columns
        if column.generated is None
    )
    values = values or NO_COLUMNS
    joined = (
        f"SELECT 'I' AS op, 0L AS position, CAST(NULL AS INT) AS old_leaf, {values} FROM ({rows})"
    )
    columns = outcome_columns(target)
    query = finished_sql(target, reading(joined, rows), is_new=True)
    with staged(engine, query, columns, is_repeatable=True) as finished:
        yield grouped(engine, target, finished, are_new=True)


def moving_positions(
    engine: Engine, changes: Staged, key: Sequence[int], first: int, last: int
) -> set[int]:
    """Return the positions of the updates that change a key.

    Args:
        key: positions (from 1) of the key's columns among the sent columns.
    """
    columns = [_sent_column(changes, number) for number in key]
    if _has_same_keys(changes, columns):
        return set()
    changed = " OR ".join(
        f"NOT ({matches(c, f'o{c.attnum}', f'n{c.attnum}', '<=>')})" for c in columns
    )
    moving = (
        f"SELECT DISTINCT position FROM {changes.view} WHERE action = 'U' AND ({changed})"
        f" AND position BETWEEN {first} AND {last}"
    )
    found = engine.rows(reading(moving, changes.query))
    return {int(position) for (position,) in found}


def _repeats_keys(target: Target, changes: Staged) -> bool:
    keys = zip(*(_values_of_key(changes, column) for column in target.key_columns), strict=True)
    return max(Counter(keys).values(), default=0) > 1


def _shares_keys(engine: Engine, target: Target, changes: Staged) -> bool:
    """Return whether several changes have the same old key, or the same new key.

    A publisher whose key differs from the target's may send such changes in one statement.
    """
    lacking = {"o": Action.INSERT, "n": Action.DELETE}  # the action without this image
    if changes.is_small:
        return any(_repeats_image(target, changes, *image) for image in lacking.items())
    repeated = []
    for image, action in lacking.items():
        names = [f"{image}{column.attnum}" for column in target.key_columns]
        forms = ", ".join(map(matching_form, target.key_columns, names))
        present = "".join(f" AND {name} IS NOT NULL" for name in names)
        repeated.append(
            f"SELECT 1 FROM {changes.view} WHERE action <> {quote(action.value)}{present}"
            f" GROUP BY {forms} HAVING count(*) > 1"
        )
    first = f"{' UNION ALL '.join(repeated)} LIMIT 1"
    return bool(engine.rows(reading(first, changes.query)))


def _repeats_image(target: Target, changes: Staged, image: str, lacking: Action) -> bool:
    """Return whether the images of a few changes have a key twice."""
    values = [matching_values(c, changes.values(f"{image}{c.attnum}")) for c in target.key_columns]
    keys = [
        key
        for key, action in zip(zip(*values, strict=True), changes.values("action"), strict=True)
        if action != lacking and None not in key
    ]
    return len(set(keys)) < len(keys)


def _values_of_key(changes: Staged, column: TargetColumn) -> list[Hashable]:
    """Return the values of a key column of the changes, in a form that is the same for equal
    values."""
    olds, news = (
        matching_values(column, changes.values(f"{image}{column.attnum}")) for image in IMAGES
    )
    actions = changes.values("action")
    return [
        o if action == Action.DELETE else n
        for o, n, action in zip(olds, news, actions, strict=True)
    ]


def failing_conversion(
    engine: Engine,
    target: Target,
    sent: Sequence[SentColumn],
    changes: Staged,
    position: int,
) -> tuple[Action, str] | None:
    """Find a value that cannot be converted in the changes at a position.  Return the change's kind
    and the column's name; None if there is none.

    Like PostgreSQL's apply worker, convert the old row first, columns in the target's order.
    """
    written = [column for column in target.columns if column.sent is not None]
    for action in ROW_ACTIONS:
        olds = [] if action is Action.INSERT else [(c, _old_value(sent, c)) for c in written]
        news = [] if action is Action.DELETE else [(c, received(sent, c, "n")) for c in written]
        for column, value in [*olds, *news]:
            try:
                engine.fetch(
                    reading(
                        f"SELECT {value} AS value FROM {changes.view}"
                        f" WHERE position = {position} AND action = '{action}'",
                        changes.query,
                    ),
                    [StagedColumn("value", column.type, column.typmod)],
                )
            except DataError:  # this is the value to report
                return action, column.name
    return None


def received(sent: Sequence[SentColumn], column: TargetColumn, image: str) -> str:
    """Return SQL of a sent column, converted to the target's storage type."""
    assert column.sent is not None
    source = sent[column.sent - 1]
    value = SqlValue(f"{image}{column.sent}", source.type, storage_type(source.type, source.typmod))
    return replicate(value, source.typmod, column.type, column.typmod, column.user_type).text


def _old_value(sent: Sequence[SentColumn], column: TargetColumn) -> str:
    """Return SQL of the old value of a sent column, in the target's storage type.

    A value outside of the replica identity is not converted, because it may not fit the target's
    type.  The SQL then returns the new value if both are stored alike at the publisher, else NULL.
    """
    assert column.sent is not None
    source, value = sent[column.sent - 1], received(sent, column, "o")
    old, new = f"o{column.sent}", f"n{column.sent}"
    if source.is_key or value == old:
        return value
    return f"if({is_stored_alike(source.type, old, new)}, {received(sent, column, 'n')}, NULL)"


def _sent_column(changes: Staged, number: int) -> TargetColumn:
    """Return a target column for the sent column with a number, in its type at the publisher."""
    _name, type_, typmod = next(c for c in changes.columns if c.name == f"n{number}")
    return TargetColumn(number, "", type_, typmod, not_null=False, sent=number)


def _has_same_keys(changes: Staged, key: Sequence[TargetColumn]) -> bool:
    """Return whether it is certain that no update changes a key: this process has all changes, and
    their keys stay equal."""
    if not changes.is_small:
        return False
    olds, news = (
        [matching_values(c, changes.values(f"{image}{c.attnum}")) for c in key] for image in IMAGES
    )
    return all(
        action != Action.UPDATE
        or all(old[row] == new[row] for old, new in zip(olds, news, strict=True))
        for row, action in enumerate(changes.values("action"))
    )


def _repeats_rows(target: Target, changes: Staged) -> bool:
    """Return whether an update changes none of the sent values."""
    sent = [column.attnum for column in target.columns if column.sent is not None]
    images = [(changes.values(f"o{attnum}"), changes.values(f"n{attnum}")) for attnum in sent]
    return any(
        action == Action.UPDATE and all(old[row] == new[row] for old, new in images)
        for row, action in enumerate(changes.values("action"))
    )


@contextmanager
def _keyed_outcome(
    engine: Engine,
    target: Target,
    changes: Staged,
    existing: Query,
    *,
    has_values: bool,
    repeats_keys: bool,
) -> Iterator[Outcome]:
    """Yield the outcome of changes that do not change keys."""
    image = [str(column.attnum) for column in target.columns if column.sent is not None]
    net = net_effects_sql(changes.view, target.key_columns, image, repeats_keys=repeats_keys)
    on = " AND ".join(
        matches(column, f"n.k{i}", f"e.c{column.attnum}")
        for i, column in enumerate(target.key_columns, start=1)
    )
    is_there = "e.leaf IS NOT NULL"
    missing_u, missing_d = (f"gone_{x} + if({is_there}, 0L, found_{x})" for x in ("u", "d"))
    effect = {effect: quote(effect.value) for effect in NetEffect}
    op = (
        "CASE WHEN conflict_at IS NOT NULL THEN 'C'"
        f" WHEN absent_at IS NOT NULL AND {is_there} THEN 'C'"
        f" WHEN effect = {effect[NetEffect.FOUND]} AND {is_there} THEN 'U'"
        f" WHEN effect = {effect[NetEffect.DELETED]} AND {is_there} THEN 'D'"
        f" WHEN effect = {effect[NetEffect.INSERTED]} THEN 'I'"
        f" WHEN effect = {effect[NetEffect.REPLACED]} THEN if({is_there}, 'U', 'I')"
        f" WHEN {missing_u} + {missing_d} > 0 THEN 'M' END"
    )
    # An INSERT conflicts with the existing row; if there is none, with the row that the run has
    # inserted.
    position = f"if(absent_at IS NOT NULL AND {is_there}, absent_at, conflict_at)"
    keeps_own = f"effect = {effect[NetEffect.FOUND]}"
    is_new = f"effect IN ({effect[NetEffect.INSERTED]}, {effect[NetEffect.REPLACED]})"
    keys = ", ".join(f"n.k{i} AS k{i}" for i in range(1, len(target.key) + 1))
    order = ", ".join(["last_position", *(f"n.k{i}" for i in range(1, len(target.key) + 1))])
    place = f"sum(if({is_new}, 1L, 0L)) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING)"
    new = new_values_sql(target, keeps_own, place, "n")
    joined = (
        f"SELECT {op} AS op, if({op} = 'C', {position}, last_position) AS position,"
        f" if({op} = 'C', 'I', last_action) AS action, e.leaf AS old_leaf,"
        f" {missing_u} AS missing_u, {missing_d} AS missing_d, {keys},"
        f" {new}{_old_values(target, 'e')}"
        f" FROM ({net}) n LEFT JOIN ({existing}) e ON {on}"
    )
    query = reading(joined, changes.query, existing)
    with _finished(engine, target, changes, query, keep_unchanged=not has_values) as rows:
        yield grouped(engine, target, rows, counts_missing=True)


@contextmanager
def _moving_outcome(
    engine: Engine, target: Target, changes: Staged, existing: Query, missing: str, clash: str
) -> Iterator[Outcome]:
    """Yield the outcome of simultaneous changes, some of which change keys.

    Args:
        existing: a query for the rows that the changes may affect.
        missing: SQL condition: the change is already known to have no row.
        clash: SQL condition: the key of the new row is already known to exist.
    """
    keys = list(target.key)
    same_old = _same_key(target, "ch.o", "e.c")
    same_new = _same_key(target, "ch.n", "x.c")
    old_keys = ", ".join(f"o{k}" for k in keys)
    vacated = f"SELECT {old_keys} FROM {changes.view} WHERE action <> 'I'"
    is_vacated = _same_key(target, "t.c", "v.o")
    kept_keys = ", ".join(f"t.c{k}" for k in keys)
    staying = f"SELECT {kept_keys} FROM ({existing}) t LEFT ANTI JOIN ({vacated}) v ON {is_vacated}"
    is_clash = f"x.c{keys[0]} IS NOT NULL"
    is_missing = f"(e.leaf IS NULL AND NOT {clash})"
    op = (
        f"CASE WHEN {clash} THEN 'C'"
        f" WHEN ch.action = 'I' THEN if({is_clash}, 'C', 'I')"
        " WHEN e.leaf IS NULL THEN 'M'"
        f" WHEN ch.action = 'U' AND {is_clash} THEN 'C' ELSE ch.action END"
    )
    order = ", ".join(["ch.position", *(f"ch.n{k}" for k in keys)])
    place = f"sum(if(ch.action = 'I', 1L, 0L)) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING)"
    new = new_values_sql(target, f"ch.action <> 'I' AND NOT {clash}", place, "ch")
    shown_keys = ", ".join(
        f"coalesce(ch.o{k}, ch.n{k}) AS k{i}" for i, k in enumerate(keys, start=1)
    )
    joined = (
        f"SELECT {op} AS op, ch.position, ch.action, e.leaf AS old_leaf,"
        f" if(ch.action = 'U' AND {is_missing}, 1L, 0L) AS missing_u,"
        f" if(ch.action = 'D' AND {is_missing}, 1L, 0L) AS missing_d, {shown_keys},"
        f" {new}{_old_values(target, 'e')} FROM {changes.view} ch"
        f" LEFT JOIN ({existing}) e ON ch.action <> 'I' AND NOT {missing} AND {same_old}"
        f" LEFT JOIN ({staying}) x ON ch.action <> 'D' AND {same_new}"
    )
    with _finished(engine, target, changes, reading(joined, changes.query, existing)) as rows:
        yield grouped(engine, target, rows, moves_keys=True, counts_missing=True)


def _same_key(target: Target, one: str, other: str) -> str:
    """Return the SQL condition that two rows have the same key.

    Args:
        one, other: the prefixes of their columns, before the attnum.
    """
    return " AND ".join(
        matches(column, f"{one}{column.attnum}", f"{other}{column.attnum}")
        for column in target.key_columns
    )


@contextmanager
def _whole_row_outcome(
    engine: Engine, target: Target, changes: Staged, missing: str
) -> Iterator[Outcome]:
    """Yield the outcome of simultaneous changes for a target without a key."""
    with _finished(engine, target, changes, whole_row_sql(target, changes, missing)) as rows:
        yield grouped(engine, target, rows, "sent columns", counts_missing=True)


def _finished(
    engine: Engine,
    target: Target,
    changes: Staged,
    joined: Query,
    *,
    keep_unchanged: bool = False,
) -> AbstractContextManager[Staged]:
    query = finished_sql(
        target, joined, action="action", counts_missing=True, keep_unchanged=keep_unchanged
    )
    columns = outcome_columns(target, counts_missing=True)
    return staged(engine, query, columns, is_many=not changes.is_small)


def _old_values(target: Target, alias: str) -> str:
    return "".join(f", {alias}.c{c.attnum} AS c{c.attnum}" for c in target.columns)
