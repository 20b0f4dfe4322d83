"""Compute the difference between the published rows of a table and the subscriber's rows, and the
outcome that removes this difference.

The target's key matches published rows with target rows.  Without a key, rows match as a multiset
over the sent columns: of n equal published rows and m equal target rows, min(n, m) match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from replctl.expr.nodes import Expr
from replctl.spark.change_data_feed import inverse_sql
from replctl.spark.data_type import storage_type
from replctl.spark.delta_table import scan
from replctl.spark.normal_form import is_stored_alike, matching_form, normal_form, stored_form
from replctl.spark.outcome import Outcome, default_sql, finished_sql, grouped, outcome_columns
from replctl.spark.replicated_change import received
from replctl.spark.row_hash import in_buckets, key_bucket
from replctl.spark.spark_query import Query, key, new, query, reading, selected, union
from replctl.spark.spark_query import target as own
from replctl.spark.sql_value import SqlValue
from replctl.spark.staged import Staged, StagedColumn
from replctl.spark.staging import SMALL, staged
from replctl.spark.table_comparison import Sides, buckets_query
from replctl.spark.translation import to_sql
from replctl.spark.values import (
    ForeignChanges,
    Mending,
    SentColumn,
    Target,
    TargetColumn,
)

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

#: Number of buckets for the keys of a large table, and maximum number of differing buckets to read
#: separately.  If more differ, most rows would be read anyway.
BUCKETS = 65536
_MANY_BUCKETS = BUCKETS // 8

#: Returns the name of a column of a row, given its attnum.
_Image = Callable[[int], str]
#: Selects the rows of a side to compare.
_Narrowing = Callable[[Query, _Image], Query]


@contextmanager
def difference(
    engine: Engine, target: Target, sent: Sequence[SentColumn], rows: Query, mending: Mending
) -> Iterator[Staged]:
    """Yield the rows in which the target differs; Spark computes them only once.

    For large tables, Spark hashes both sides first.  Then it sorts and joins only the rows of
    differing buckets (row_hash.py).

    `leaf` is the row's leaf partition, NULL for I and C.  Each row has an `op`:

    - I: the row is missing.
    - U: the row has other values.
    - D: the row is not published.
    - C: the row is published, but another published row has the same key.
    - R, only without a key: another row that equals the row of a D.
    - K, only without a key: the row is published, but equals rows that a D removes.

    Args:
        rows: a query for the published rows, with the sent columns n1, n2, ...
    """
    is_many: bool | None = False
    found = _difference_sql(target, sent, rows, mending)
    if _is_large(engine, found):
        hashed = buckets_query(Sides(rows, tuple(sent), target), BUCKETS)
        ((_published, _stored, buckets),) = engine.rows(hashed)
        is_many = len(buckets) > SMALL or None  # each bucket has at least one differing row
        if len(buckets) <= _MANY_BUCKETS:
            found = _difference_sql(target, sent, rows, mending, _in_buckets(target, buckets))
    with staged(engine, found, _difference_columns(target), is_many=is_many) as rows_found:
        yield rows_found


def _is_large(engine: Engine, rows: Query) -> bool:
    """Return whether the tables are so large that hashing both sides first pays off."""
    return not engine.query_size.is_small(rows)


@contextmanager
def renewed_difference(
    engine: Engine,
    target: Target,
    sent: Sequence[SentColumn],
    rows: Query,
    mending: Mending,
    earlier: Staged,
    changes: Sequence[ForeignChanges],
) -> Iterator[Staged]:
    """Update a difference after other writers have changed rows of the target: compare only the
    keys of these rows again.

    Args:
        target: a target with a key.
        mending: the changes that are allowed now; they may include fewer deletes than before.
        earlier: the difference before these changes.
        changes: the changes of the other writers.
    """
    columns = [
        StagedColumn(key(i), target.column(k).type, target.column(k).typmod)
        for i, k in enumerate(target.key, start=1)
    ]
    with staged(engine, _changed_keys(target, changes), columns) as keys:
        known = [
            f"coalesce({new_value}, {own_value})"
            for new_value, own_value in zip(
                _matching_values(target, new), _matching_values(target, own), strict=True
            )
        ]
        is_extra = f"op = 'D' AND {new(target.key[0])} IS NULL"
        names = ", ".join(column.name for column in _difference_columns(target))
        found = query(
            f"SELECT {names} FROM unchanged UNION ALL SELECT {names} FROM compared",
            keys=keys.query,
            earlier=earlier.query,
            unchanged=f"SELECT * FROM earlier LEFT ANTI JOIN keys ON {_among(target, known)}"
            f" WHERE NOT ({is_extra}) OR ({_deletable(mending)})",
            compared=_difference_sql(target, sent, rows, mending, _with_keys(target, keys)),
        )
        with staged(engine, found, _difference_columns(target)) as rows_found:
            yield rows_found


def _changed_keys(target: Target, changes: Sequence[ForeignChanges]) -> Query:
    """Return a query for the keys of the rows that other writers have written or removed."""
    shown = selected((f"coalesce(o{k}, n{k})", key(i)) for i, k in enumerate(target.key, start=1))
    undone = [inverse_sql(item.source, version) for item in changes for version in item.versions]
    parts = [reading(f"SELECT {shown} FROM ({rows})", rows) for rows in undone]
    return query("SELECT DISTINCT * FROM changed", changed=union(parts))


def _among(target: Target, values: Sequence[str]) -> str:
    """Return the SQL condition that the table `keys` contains a key.

    Args:
        values: SQL of the values of the key, in normal form.
    """
    normal = [_normal(target.column(k), key(i)) for i, k in enumerate(target.key, start=1)]
    return " AND ".join(f"{a} <=> {b}" for a, b in zip(values, normal, strict=True))


def _all_rows(rows: Query, _image: _Image) -> Query:
    return rows


def _with_keys(target: Target, keys: Staged) -> _Narrowing:
    """Return a function that selects the rows with one of `keys`."""

    def narrowed(rows: Query, image: _Image) -> Query:
        return query(
            f"SELECT all_rows.* FROM all_rows LEFT SEMI JOIN keys"
            f" ON {_among(target, _matching_values(target, image))}",
            all_rows=rows,
            keys=keys.query,
        )

    return narrowed


def _in_buckets(target: Target, buckets: Sequence[int]) -> _Narrowing:
    """Return a function that selects the rows in one of `buckets`."""

    def narrowed(rows: Query, image: _Image) -> Query:
        bucket = key_bucket(target.key_columns, _sent_columns(target), image, BUCKETS)
        return in_buckets(rows, bucket, buckets)

    return narrowed


def _difference_sql(
    target: Target,
    sent: Sequence[SentColumn],
    rows: Query,
    mending: Mending,
    narrowed: _Narrowing = _all_rows,
) -> Query:
    """Return a query for the rows that differ.

    Args:
        narrowed: selects the rows of both sides to compare.  If rows match each other, or are equal
            in Spark, it selects all of them or none.
    """
    source, target_rows = _source(target, sent, rows, narrowed), _target_rows(target, narrowed)
    if target.key:
        matched = _matched_by_key(target, source, target_rows)
        ops = _ops_by_key(target, mending)
    else:
        matched = _matched_as_multiset(target, source, target_rows, mending)
        ops = _OPS_OF_MULTISET
    names = [column.name for column in _difference_columns(target)]
    return query(
        f"SELECT {', '.join(names)} FROM matched LATERAL VIEW explode({ops}) ops AS op",
        matched=matched,
    )


def _difference_columns(target: Target) -> list[StagedColumn]:
    return [
        StagedColumn("op", "text"),
        StagedColumn("leaf", "int4"),
        *(StagedColumn(new(c.attnum), c.type, c.typmod) for c in _sent_columns(target)),
        *(StagedColumn(own(c.attnum), c.type, c.typmod) for c in target.columns),
    ]


@contextmanager
def reconciled(engine: Engine, target: Target, found: Staged) -> Iterator[Outcome]:
    """Yield the outcome that makes a target equal to the published rows.

    Args:
        found: the difference between the two.
    """
    plain = [column for column in target.columns if column.generated is None]
    place = "0L"
    if any(column.taken for column in plain):
        is_new = "if(leaf IS NULL, 1L, 0L)"
        place = f"sum({is_new}) OVER (ORDER BY monotonically_increasing_id() {_RUNNING})"
    values = [(_new_value(column, place), f"w{column.attnum}") for column in plain]
    before = [(own(c.attnum), f"c{c.attnum}") for c in target.columns]
    keys = [
        (f"if(op IN ('I', 'C'), {new(k)}, {own(k)})", f"k{i}")
        for i, k in enumerate(target.key, start=1)
    ]
    control = [
        ("if(op = 'K', 'I', op)", "op"),
        ("if(op = 'K', 0L, 1L)", "position"),
        ("CASE WHEN op IN ('D', 'R') THEN 'D' WHEN op = 'U' THEN 'U' ELSE 'I' END", "action"),
        ("if(op IN ('I', 'C'), NULL, leaf)", "old_leaf"),
    ]
    shown = [*control, *keys, *(values or [("1", "w0")]), *before]
    joined = query(
        f"SELECT {selected(shown)} FROM difference",
        difference=found.query,
    )
    finished = finished_sql(target, joined, keep_unchanged=True, action="action")
    columns = outcome_columns(target)
    with staged(engine, finished, columns, is_many=not found.is_small) as outcome:
        if target.key:
            moves_keys = _moves_keys(engine, target, found)
            yield grouped(engine, target, outcome, moves_keys=moves_keys, may_lack_keys=True)
        else:
            yield grouped(engine, target, outcome, "sent columns")


def count_unpublished(
    engine: Engine,
    target: Target,
    sent: Sequence[SentColumn],
    rows: Query,
    scope: tuple[Expr, ...] | None,
) -> tuple[int, int]:
    """Return two numbers of target rows that are not published: those in a scope, and all of them.

    Args:
        scope: see `Mending.deletes`.
    """
    source, target_rows = _source(target, sent, rows), _target_rows(target)
    if target.key:
        matched = _matched_by_key(target, source, target_rows)
    else:
        matched = _matched_as_multiset(target, source, target_rows, Mending(True, scope))
    condition = _deletable(Mending(True, scope))
    found = query(
        f"SELECT coalesce(sum(if({condition}, 1L, 0L)), 0L), count(*) FROM matched"
        " WHERE NOT is_published",
        matched=matched,
    )
    ((in_scope, total),) = engine.rows(found)
    return int(in_scope), int(total)


def count_deleted(engine: Engine, target: Target, found: Staged) -> tuple[int, int]:
    """Return the number of unpublished target rows that a difference deletes, and the number of
    rows in the target.
    """
    is_deleted = "op IN ('D', 'R')"
    if target.key:  # a D with a published key only makes room for the published row
        is_deleted += f" AND {new(target.key[0])} IS NULL"
    stored = union([scan(leaf.source) for leaf in target.leaves])
    counts = query(
        f"SELECT count_if({is_deleted}), (SELECT count(*) FROM stored) FROM difference",
        difference=found.query,
        stored=query("SELECT 1 AS one FROM tables", tables=stored),
    )
    ((deleted, total),) = engine.rows(counts)
    return int(deleted), int(total)


_RUNNING = "ROWS UNBOUNDED PRECEDING"


def _source(
    target: Target, sent: Sequence[SentColumn], rows: Query, narrowed: _Narrowing = _all_rows
) -> Query:
    """Return a query for the published rows, with the columns new_<attnum> in the target's types.
    `occurrence` numbers rows that have equal matching values.
    """
    converted = selected(
        (received(sent, column, "n"), new(column.attnum)) for column in _sent_columns(target)
    )
    places = _places(target, new)
    place = ", ".join(places) or "1"
    return query(
        f"SELECT *, row_number() OVER (PARTITION BY {place} ORDER BY {place}) AS occurrence"
        " FROM placed",
        compared=narrowed(query(f"SELECT {converted} FROM published", published=rows), new),
        placed=f"SELECT {', '.join(['*', *_placed(target, new)])} FROM compared",
    )


def _target_rows(target: Target, narrowed: _Narrowing = _all_rows) -> Query:
    """Return a query for the target's rows, with the columns target_<attnum> and leaf (the leaf
    partition).

    With a key, `previous_leaf` and `next_leaf` are the leaves of other rows with the same key.
    `is_first` marks one of several rows of a leaf that a write finds by the same key.  Without a
    key, `target_occurrence` numbers equal rows from the oldest on, so that a reconcile deletes the
    rows that other writers have added.
    """
    is_keyed = bool(target.key)
    parts = []
    for number, leaf in enumerate(target.leaves):
        columns = [(f"{number}", "leaf")]
        columns += [(f"c{c.attnum}", own(c.attnum)) for c in target.columns]
        columns += [] if is_keyed else [(name, name) for name in ("row_version", "row_id")]
        stored = scan(leaf.source, with_row_id=not is_keyed)
        parts.append(query(f"SELECT {selected(columns)} FROM stored", stored=stored))
    place = ", ".join(_places(target, own)) or "1"
    if is_keyed:
        over = f"OVER (PARTITION BY {place} ORDER BY leaf)"
        is_first = f"coalesce(lag(leaf) {over} <> leaf, TRUE)"
        if not all(_has_one_form(target.column(k)) for k in target.key):
            forms = [matching_form(target.column(k), own(k)) for k in target.key]
            alike = ", ".join(["leaf", *forms])
            is_first = f"row_number() OVER (PARTITION BY {alike} ORDER BY leaf) = 1"
        numbers = (
            f"lag(leaf) {over} AS previous_leaf, lead(leaf) {over} AS next_leaf,"
            f" {is_first} AS is_first"
        )
    else:
        over = f"OVER (PARTITION BY {place} ORDER BY row_version, row_id)"
        numbers = f"row_number() {over} AS target_occurrence"
    return query(
        f"SELECT *, {numbers} FROM placed",
        compared=narrowed(union(parts), own),
        placed=f"SELECT {', '.join(['*', *_placed(target, own)])} FROM compared",
    )


def _matched_by_key(target: Target, source: Query, target_rows: Query) -> Query:
    """Return a query for the rows of both sides, joined by their keys.  Published keys are never
    NULL, so `=` suffices: with it Spark reuses the sort order of the windows.
    """
    pairs = zip(_places(target, new), _places(target, own), strict=True)
    same = " AND ".join(f"{published} = {stored}" for published, stored in pairs)
    return query(
        "SELECT *, occurrence IS NOT NULL AS is_published"
        f" FROM source FULL OUTER JOIN target ON {same}",
        source=source,
        target=target_rows,
    )


def _ops_by_key(target: Target, mending: Mending) -> str:
    """Return SQL of an array of the ops of a joined row.

    If other writers have added target rows with the same key, delete all of them, and insert the
    published row.
    """
    attnums = [column.attnum for column in _sent_columns(target)]
    differs = " OR ".join(_differs(target.column(a), new(a), own(a)) for a in attnums)
    is_double = "previous_leaf IS NOT NULL OR next_leaf IS NOT NULL"
    mends_doubles = "TRUE" if mending.updates and mending.deletes is not None else "FALSE"
    return (
        "CASE WHEN occurrence > 1 THEN array('C')"
        " WHEN leaf IS NULL THEN array('I')"
        f" WHEN NOT is_published THEN if(({_deletable(mending)}) AND is_first, array('D'), NULL)"
        f" WHEN {is_double} THEN CASE WHEN NOT {mends_doubles} THEN NULL"
        " WHEN previous_leaf IS NULL THEN if(is_first, array('D', 'I'), array('I'))"
        " WHEN is_first THEN array('D') END"
        f" WHEN {'TRUE' if mending.updates else 'FALSE'} AND ({differs}) THEN array('U') END"
    )


def _matched_as_multiset(
    target: Target, source: Query, target_rows: Query, mending: Mending
) -> Query:
    """Return a query for the rows of both sides, joined by all sent columns: of equal rows, the
    n-th row of one side matches the n-th row of the other side.

    `is_doomed` marks a target row if an equal row in the same leaf partition is deleted: MERGE
    would delete both.  Such rows have equal matching forms, such as 0.0 and -0.0.  `is_first` marks
    one of them.
    """
    pairs = zip(_places(target, new), _places(target, own), strict=True)
    equal = [f"{published} <=> {stored}" for published, stored in pairs]
    same = " AND ".join(["occurrence = target_occurrence", *equal])
    forms = [matching_form(column, own(column.attnum)) for column in _sent_columns(target)]
    place = ", ".join(["leaf", *forms])
    return query(
        f"SELECT *, max(is_extra) OVER (PARTITION BY {place}) AS is_doomed,"
        f" row_number() OVER (PARTITION BY {place}, is_extra ORDER BY target_occurrence) = 1"
        " AS is_first FROM marked",
        source=source,
        target=target_rows,
        paired="SELECT *, occurrence IS NOT NULL AS is_published"
        f" FROM source FULL OUTER JOIN target ON {same}",
        marked=f"SELECT *, coalesce(NOT is_published AND ({_deletable(mending)}), FALSE)"
        " AS is_extra FROM paired",
    )


_OPS_OF_MULTISET = (
    "CASE WHEN leaf IS NULL THEN array('I')"
    " WHEN is_extra THEN if(is_first, array('D'), array('R'))"
    " WHEN is_doomed THEN array('K') END"
)


def _deletable(mending: Mending) -> str:
    """Return the SQL condition that a reconcile may delete a row that is not published."""
    if mending.deletes is None:
        return "FALSE"
    tests = [to_sql(item, lambda var: own(var.attnum)).text for item in mending.deletes]
    return " OR ".join(tests) or "TRUE"


def _new_value(column: TargetColumn, place: str) -> str:
    """Return SQL of a column of the new row: the published value of a sent column.  Other columns
    keep the target's value, and have their default in inserted rows.
    """
    if column.sent is not None:
        return f"if(op IN ('I', 'U', 'C'), {new(column.attnum)}, {own(column.attnum)})"
    return f"if(leaf IS NULL, {default_sql(column, place)}, {own(column.attnum)})"


def _moves_keys(engine: Engine, target: Target, found: Staged) -> bool:
    """Return whether an update changes the stored form of a key, although the key stays equal."""
    several = [k for k in target.key if not _has_one_form(target.column(k))]
    if not several:
        return False
    differs = " OR ".join(_differs(target.column(k), new(k), own(k)) for k in several)
    moved = f"SELECT 1 FROM {found.view} WHERE op = 'U' AND ({differs}) LIMIT 1"
    return bool(engine.rows(reading(moved, found.query)))


def _matching_values(target: Target, image: _Image) -> list[str]:
    """Return SQL of the values that match rows: the key columns in normal form, or all sent columns
    in stored form.

    Args:
        image: returns the name of a column, given its attnum.
    """
    if not target.key:
        return [stored_form(column.type, image(column.attnum)) for column in _sent_columns(target)]
    return [_normal(target.column(k), image(k)) for k in target.key]


def _placed(target: Target, image: _Image) -> list[str]:
    """Return the SELECT items for those columns of `_places` that the row does not have.  Spark
    then computes them once for the window and the join."""
    values = _matching_values(target, image)
    return [
        f"{value} AS {place}"
        for value, place in zip(values, _places(target, image), strict=True)
        if value != place
    ]


def _places(target: Target, image: _Image) -> list[str]:
    """Return the columns that match rows: names, or SQL of sent columns in stored form."""
    if not target.key:
        return _matching_values(target, image)
    return [
        value if value == image(k) else f"{image(k)}_normal"
        for k, value in zip(target.key, _matching_values(target, image), strict=True)
    ]


def _normal(column: TargetColumn, name: str) -> str:
    value = SqlValue(name, column.type, storage_type(column.type, column.typmod))
    return normal_form(value).text


def _has_one_form(column: TargetColumn) -> bool:
    """Return whether equal values of a column are always stored identically."""
    return stored_form(column.type, "value") == _normal(column, "value") == "value"


def _differs(column: TargetColumn, left: str, right: str) -> str:
    """Return the SQL condition that two values are stored differently."""
    return f"NOT ({is_stored_alike(column.type, left, right)})"


def _sent_columns(target: Target) -> list[TargetColumn]:
    return [column for column in target.columns if column.sent is not None]
