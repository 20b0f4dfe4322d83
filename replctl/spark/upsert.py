"""INSERT ... ON CONFLICT DO UPDATE: find the row that each new row conflicts with, and join both
kinds of rows, the changed ones and the new ones, to one outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from replctl.spark.normal_form import matches, matching_form
from replctl.spark.outcome import Matching, Outcome, finished_sql, grouped, outcome_columns
from replctl.spark.spark_query import Query, reading
from replctl.spark.staged import Staged, StagedColumn
from replctl.spark.staging import staged
from replctl.spark.translation import to_sql
from replctl.spark.uniqueness import indexed_rows_sql, predicate_of
from replctl.spark.values import EXCLUDED, UniqueKey

if TYPE_CHECKING:
    from replctl.spark.engine import Engine


@contextmanager
def conflicting(engine: Engine, proposed: Outcome, key: UniqueKey) -> Iterator[Staged]:
    """Yield each proposed row with the row of the table that has the same key.  The columns are
    position, leaf, c<attnum> of the table's row, and c<EXCLUDED + attnum> of the proposed row.
    `leaf` is NULL if no row has the key.
    """
    columns, equals = proposed.target.columns, "<=>" if key.nulls_not_distinct else "="
    tests = [matches(proposed.target.column(a), f"v.w{a}", f"e.c{a}", equals) for a in key.attnums]
    enters = " AND ".join(predicate_of(key, "w")) or "TRUE"
    existing = "".join(f", e.c{c.attnum} AS c{c.attnum}" for c in columns)
    excluded = "".join(f", v.w{c.attnum} AS {_excluded(c.attnum)}" for c in columns)
    indexed = indexed_rows_sql(proposed, key)
    query = reading(
        f"SELECT v.position AS position, e.leaf AS leaf{existing}{excluded}"
        f" FROM (SELECT *, {enters} AS enters FROM {proposed.rows.view}) v"
        f" LEFT JOIN ({indexed}) e ON {' AND '.join(['v.enters', *tests])}",
        proposed.rows.query,
        indexed,
    )
    kept = [StagedColumn("position", "int8"), StagedColumn("leaf", "int4")]
    kept += [StagedColumn(f"c{c.attnum}", c.type, c.typmod) for c in columns]
    kept += [StagedColumn(_excluded(c.attnum), c.type, c.typmod) for c in columns]
    with staged(engine, query, kept) as pairs:
        yield pairs


@contextmanager
def upserted(
    engine: Engine,
    proposed: Outcome,
    pairs: Staged,
    changes: Query,
    *,
    moves_keys: bool,
    with_old: bool,
) -> Iterator[Outcome]:
    """Yield the outcome of ON CONFLICT DO UPDATE: a U for each changed row, and an I for each
    proposed row without a conflict.

    Args:
        pairs: the result of `conflicting`.
        changes: a query for the changed rows.  Its columns are leaf, position, the old values
            c<attnum>, and w<attnum> for each column that is not generated.
        moves_keys: the update may change the target's key.
        with_old: foreign keys refer to columns that are not part of the target's key.
    """
    target = proposed.target
    plain = [column for column in target.columns if column.generated is None]
    old = "".join(f", c{c.attnum}" for c in target.columns)
    new = "".join(f", w{c.attnum}" for c in plain)
    new_of_insert = "".join(f", {_excluded(c.attnum)} AS w{c.attnum}" for c in plain)
    keys = "".join(f", c{a} AS k{i}" for i, a in enumerate(target.key, start=1))
    keys_of_insert = "".join(f", {_excluded(a)} AS k{i}" for i, a in enumerate(target.key, start=1))
    joined = reading(
        f"SELECT 'U' AS op, position, leaf AS old_leaf{old}{new}{keys} FROM ({changes})"
        f" UNION ALL SELECT 'I', position, leaf{old}{new_of_insert}{keys_of_insert}"
        f" FROM {pairs.view} WHERE leaf IS NULL",
        changes,
        pairs.query,
    )
    with_old = with_old or not target.key
    query = finished_sql(target, joined, keep_unchanged=True, with_old=with_old)
    with staged(engine, query, outcome_columns(target, with_old=with_old)) as finished:
        matching: Matching = "key" if target.key else "whole row"
        yield grouped(engine, target, finished, matching, moves_keys=moves_keys, may_lack_keys=True)


def affects_twice(engine: Engine, outcome: Outcome, pairs: Staged, key: UniqueKey) -> bool:
    """Return whether a proposed row has the key of a row that the outcome inserts or changes for an
    earlier proposed row.

    Args:
        outcome, pairs: the results of `upserted` and `conflicting`.
    """
    acting = f"SELECT position FROM {outcome.rows.view}"
    entries = (
        f"SELECT p.position AS position, {_entry(outcome, key, _excluded)} AS entry,"
        f" o.position IS NOT NULL AS acts FROM {pairs.view} p LEFT JOIN ({acting}) o"
        " ON p.position = o.position"
    )
    before = (
        "count_if(acts) OVER (PARTITION BY entry ORDER BY position"
        " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    )
    numbered = f"SELECT {before} AS acted FROM ({entries}) WHERE entry IS NOT NULL"
    twice = f"SELECT 1 FROM ({numbered}) WHERE acted > 0 LIMIT 1"
    return bool(engine.rows(reading(twice, outcome.rows.query, pairs.query)))


def moves_to_proposed(engine: Engine, outcome: Outcome, pairs: Staged, key: UniqueKey) -> bool:
    """Return whether an update gives up or takes a key that another proposed row has.  Then the
    effect of that row depends on the order of the rows.

    Args:
        outcome, pairs: see `affects_twice`.
    """
    proposed = f"SELECT position, {_entry(outcome, key, _excluded)} AS entry FROM {pairs.view}"
    changed = (
        f"SELECT position, {_entry(outcome, key, 'w{}'.format)} AS entry"
        f" FROM {outcome.rows.view} WHERE op = 'U'"
    )
    moved = (
        "SELECT c.position AS position, explode(array(p.entry, c.entry)) AS entry"
        f" FROM ({changed}) c JOIN ({proposed}) p ON c.position = p.position"
        " WHERE NOT (c.entry <=> p.entry)"
    )
    met = (
        f"SELECT 1 FROM ({moved}) m JOIN ({proposed}) q ON m.entry = q.entry"
        " AND m.position <> q.position LIMIT 1"
    )
    return bool(engine.rows(reading(met, outcome.rows.query, pairs.query)))


def _excluded(attnum: int) -> str:
    """Return the name of a column of the proposed row."""
    return f"c{EXCLUDED + attnum}"


def _entry(outcome: Outcome, key: UniqueKey, name: Callable[[int], str]) -> str:
    """Return SQL of the form of a row's key in an index; NULL if no other row can have an equal
    key.

    Args:
        name: returns the name of a column of the row.
    """
    conditions = [] if key.nulls_not_distinct else [f"{name(a)} IS NOT NULL" for a in key.attnums]
    if key.condition is not None:
        conditions.append(f"({to_sql(key.condition, lambda var: name(var.attnum)).text})")
    forms = (
        f"{matching_form(outcome.target.column(a), name(a))} AS f{i}"
        for i, a in enumerate(key.attnums)
    )
    return f"if({' AND '.join(conditions) or 'TRUE'}, struct({', '.join(forms)}), NULL)"
