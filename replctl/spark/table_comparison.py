"""Compare a published table with its copy, row by row.

Spark joins rows by the key in normal form, and compares them in stored form.  It compares floats by
their text, because it treats -0.0 as 0.0.

First, Spark counts the rows and sums the row hashes of both sides in buckets of keys (row_hash.py).
Then it joins only the rows of differing buckets.  It counts equal rows, so that a duplicate row is
a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from replctl.expr.nodes import Expr
from replctl.record import dataclass
from replctl.spark.data_type import storage_type
from replctl.spark.delta_table import scan
from replctl.spark.native_form import exact_form
from replctl.spark.normal_form import normal_form, stored_form
from replctl.spark.row_hash import differing_buckets, in_buckets, key_bucket, row_hash
from replctl.spark.spark_query import Query, key, query, reading, selected, union
from replctl.spark.sql_value import SqlValue
from replctl.spark.staged import Staged, StagedColumn
from replctl.spark.staging import staged
from replctl.spark.text_conversion import replicate
from replctl.spark.translation import to_sql
from replctl.spark.values import SentColumn, Target, TargetColumn
from replctl.types.delta_type import is_native

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

#: Number of buckets for the keys of a table.
BUCKETS = 4096
#: Maximum number of differing buckets to read separately.  If more differ, most rows would be read
#: anyway.
_MANY_BUCKETS = BUCKETS // 2

MISSING, EXTRA, DIFFERENT = "missing", "extra", "different"
#: The kinds of differences, in the order of output.
DIFFERENCE_KINDS = (MISSING, EXTRA, DIFFERENT)


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides to compare.

    Attributes:
        rows: SQL of the published rows, with the columns n1, n2, ... in the publisher's types.
        sent: the columns of `rows`.
        target: the copy, with each leaf partition at the version to read.
        counts_different: different rows count as differences.  If false, they are counted
            separately.
        owned: the conditions under which extra rows count as differences; () for all, None for
            none.
    """

    rows: Query
    sent: tuple[SentColumn, ...]
    target: Target
    counts_different: bool = True
    owned: tuple[Expr, ...] | None = ()

    @property
    def columns(self) -> tuple[TargetColumn, ...]:
        """Return the columns to compare."""
        return tuple(column for column in self.target.columns if column.sent is not None)

    @property
    def shown(self) -> tuple[TargetColumn, ...]:
        """Return the columns that identify a row: the key, or all compared columns."""
        return tuple(map(self.target.column, self.target.key)) or self.columns


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that differs.

    Attributes:
        kind: missing, extra or different.
        row: the names of the identifying columns (`Sides.shown`), with their values as texts.
        columns: the names of the columns that differ.
    """

    kind: str
    row: tuple[tuple[str, str | None], ...]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing two sides.

    Attributes:
        published_rows, target_rows: the number of rows of each side.
        differences: the number of missing, extra and different rows, by kind.
        apart: the number of such rows that do not count as differences, by kind.
        columns: the number of rows in which a column differs, by the column's name.
        first: the first rows of each kind.
    """

    published_rows: int
    target_rows: int
    differences: dict[str, int] = field(default_factory=dict)
    apart: dict[str, int] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)
    first: tuple[RowDifference, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Return whether there are no differences.  Rows that are counted separately are
        ignored."""
        return not any(self.differences.values())


def compare(engine: Engine, sides: Sides, limit: int) -> Comparison:
    """Compare two sides.  This writes nothing.

    Args:
        limit: maximum number of rows of each kind to return.

    Raises:
        PostgresError: rows cannot be read, or a value does not fit the target's type.
    """
    ((published, copied, differing),) = engine.rows(buckets_query(sides))
    if not differing:
        return Comparison(int(published), int(copied))
    columns = difference_columns(sides)
    with staged(engine, differences_query(sides, sorted(differing)), columns) as found:
        text = f"SELECT kind, counts, count(*) FROM {found.view} GROUP BY kind, counts"
        counts = engine.rows(reading(text, found.query))
        return Comparison(
            int(published),
            int(copied),
            {str(kind): int(count) for kind, counted, count in counts if counted},
            {str(kind): int(count) for kind, counted, count in counts if not counted},
            _column_counts(engine, sides, found),
            tuple(_first_rows(engine, sides, found, limit)),
        )


def buckets_query(sides: Sides, count: int = BUCKETS) -> Query:
    """Return a query for one row: the number of rows of each side, and the buckets that differ.

    Args:
        count: the number of all buckets.
    """
    return differing_buckets(
        _published(sides, []),
        _leaves(sides, []),
        key_bucket(sides.target.key_columns, sides.columns, _name, count),
        row_hash(sides.columns, _name),
    )


def differences_query(sides: Sides, buckets: Sequence[int]) -> Query:
    """Return a query for the rows that differ, with the columns `difference_columns`.

    Args:
        buckets: the differing buckets, one or more.
    """
    compared = [f"v{column.attnum}" for column in sides.columns]
    shown = [f"s{i}" for i, _ in enumerate(sides.shown, start=1)]
    keys = [key(i) for i, _ in enumerate(sides.target.key, start=1)]
    steps: dict[str, Query | str] = {
        "sides": _sides_in_buckets(sides, buckets),
        "valued": f"SELECT {_valued(sides)} FROM sides",
        "surplus": f"SELECT {_joined([*keys, *compared])}"
        f"{_joined([f'any_value({name}) AS {name}' for name in shown])}"
        " bool_and(is_owned) AS is_owned, sum(if(is_published, 1L, -1L)) AS surplus FROM valued"
        f"{_grouped_by([*keys, *compared])} HAVING sum(if(is_published, 1L, -1L)) <> 0",
        "each": "SELECT *, explode(sequence(1L, abs(surplus))) AS copy FROM surplus",
    }
    if not keys:
        kind = f"if(surplus > 0, '{MISSING}', '{EXTRA}')"
        steps["met"] = (
            f"SELECT {kind} AS kind, {_joined(shown)} is_owned,"
            " CAST(array() AS ARRAY<INT>) AS differing FROM each"
        )
        return query(_counted(sides, shown), **steps)
    row = f"struct({', '.join([*shown, *compared])})"
    side, order = ", ".join([*keys, "surplus > 0"]), ", ".join([*compared, "copy"])
    steps["numbered"] = (
        f"SELECT *, row_number() OVER (PARTITION BY {side} ORDER BY {order}) AS number FROM each"
    )
    steps["paired"] = (
        f"SELECT any_value({row}) FILTER (WHERE surplus > 0) AS p,"
        f" any_value({row}) FILTER (WHERE surplus < 0) AS t,"
        f" bool_and(is_owned) AS is_owned FROM numbered GROUP BY {', '.join(keys)}, number"
    )
    differing = ", ".join(
        f"if(p.v{column.attnum} <=> t.v{column.attnum}, NULL, {column.attnum})"
        for column in sides.columns
    )
    either = _joined([f"coalesce(p.{name}, t.{name}) AS {name}" for name in shown])
    steps["met"] = (
        f"SELECT CASE WHEN t IS NULL THEN '{MISSING}' WHEN p IS NULL THEN '{EXTRA}'"
        f" ELSE '{DIFFERENT}' END AS kind, {either} is_owned,"
        " if(p IS NULL OR t IS NULL, CAST(array() AS ARRAY<INT>),"
        f" array_compact(array({differing}))) AS differing FROM paired"
    )
    return query(_counted(sides, shown), **steps)


def difference_columns(sides: Sides) -> list[StagedColumn]:
    """Return the columns of `differences_query`."""
    return [
        StagedColumn("kind", "text"),
        StagedColumn("counts", "bool"),
        StagedColumn("differing", "_int4"),
        *(StagedColumn(f"s{i}", c.type, c.typmod) for i, c in enumerate(sides.shown, start=1)),
    ]


# ---------------------------------------------------------------------------------------------
# The two sides


def _sides(sides: Sides) -> Query:
    """Return a query for the rows of both sides. Its columns are is_published, is_owned and
    c<attnum>, in the target's storage types.
    """
    published = [("TRUE", "is_published"), ("TRUE", "is_owned")]
    own = [("FALSE", "is_published"), (_is_owned(sides), "is_owned")]
    return union([_published(sides, published), *_leaves(sides, own)])


def _published(sides: Sides, control: Sequence[tuple[str, str]]) -> Query:
    """Return a query for the published rows, with the columns c<attnum> in the target's storage
    types.

    Args:
        control: SQL and names of further columns.
    """
    values = [(_received(sides, column), _name(column.attnum)) for column in sides.columns]
    return reading(f"SELECT {selected([*control, *values])} FROM ({sides.rows})", sides.rows)


def _leaves(sides: Sides, control: Sequence[tuple[str, str]]) -> list[Query]:
    """Return a query like `_published` for the rows of each leaf partition of the target."""
    values = [(_name(column.attnum), _name(column.attnum)) for column in sides.columns]
    shown = selected([*control, *values])
    return [
        query(f"SELECT {shown} FROM stored", stored=scan(leaf.source))
        for leaf in sides.target.leaves
    ]


def _name(attnum: int) -> str:
    return f"c{attnum}"


def _received(sides: Sides, column: TargetColumn) -> str:
    assert column.sent is not None
    sent = sides.sent[column.sent - 1]
    value = SqlValue(f"n{column.sent}", sent.type, storage_type(sent.type, sent.typmod))
    return replicate(value, sent.typmod, column.type, column.typmod, column.user_type).text


def _is_owned(sides: Sides) -> str:
    if sides.owned is None:
        return "FALSE"
    tests = [to_sql(item, lambda var: f"c{var.attnum}").text for item in sides.owned]
    return f"coalesce({' OR '.join(tests)}, FALSE)" if tests else "TRUE"


def _stored(column: TargetColumn) -> SqlValue:
    return SqlValue(f"c{column.attnum}", column.type, storage_type(column.type, column.typmod))


def _compared(column: TargetColumn) -> str:
    """Return SQL of a form that is the same for two values if and only if they are stored
    identically.
    """
    return stored_form(column.type, f"c{column.attnum}")


def _valued(sides: Sides) -> str:
    """Return the SELECT list of a row: key_<i> in normal form, v<attnum> to compare, s<i> to
    show."""
    keys = enumerate(map(sides.target.column, sides.target.key), start=1)
    return selected(
        [
            ("is_published", "is_published"),
            ("is_owned", "is_owned"),
            *((normal_form(_stored(column)).text, key(i)) for i, column in keys),
            *((_compared(column), f"v{column.attnum}") for column in sides.columns),
            *((f"c{c.attnum}", f"s{i}") for i, c in enumerate(sides.shown, start=1)),
        ]
    )


def _sides_in_buckets(sides: Sides, buckets: Sequence[int]) -> Query:
    """Return a query for the rows of both sides in some buckets."""
    if len(buckets) > _MANY_BUCKETS:
        return _sides(sides)
    bucket = key_bucket(sides.target.key_columns, sides.columns, _name, BUCKETS)
    return in_buckets(_sides(sides), bucket, buckets)


# ---------------------------------------------------------------------------------------------
# The results


def _counted(sides: Sides, shown: Sequence[str]) -> str:
    different = "TRUE" if sides.counts_different else "FALSE"
    counts = (
        f"CASE kind WHEN '{EXTRA}' THEN is_owned WHEN '{DIFFERENT}' THEN {different} ELSE TRUE END"
    )
    return f"SELECT kind, {counts} AS counts, {_joined(shown)} differing FROM met"


def _column_counts(engine: Engine, sides: Sides, found: Staged) -> dict[str, int]:
    counts = (
        f"SELECT attnum, count(*) FROM (SELECT explode(differing) AS attnum FROM {found.view}"
        " WHERE counts) GROUP BY attnum ORDER BY attnum"
    )
    counted = engine.rows(reading(counts, found.query))
    return {sides.target.column(attnum).name: int(count) for attnum, count in counted}


def _first_rows(engine: Engine, sides: Sides, found: Staged, limit: int) -> list[RowDifference]:
    names = [column.name for column in sides.shown]
    shown = [(column.type, f"s{i}") for i, column in enumerate(sides.shown, start=1)]
    order = ", ".join(exact_form(t, name) if is_native(t) else name for t, name in shown) or "kind"
    numbered = (
        f"SELECT *, row_number() OVER (PARTITION BY kind ORDER BY {order}) AS place"
        f" FROM {found.view} WHERE counts"
    )
    columns = [column for column in found.columns if column.name != "counts"]
    first = f"SELECT * FROM ({numbered}) WHERE place <= {limit} ORDER BY kind, place"
    rows = engine.fetch(reading(first, found.query), columns)
    return [
        RowDifference(
            str(kind),
            tuple(zip(names, row, strict=True)),
            tuple(sides.target.column(attnum).name for attnum in _numbers(differing or "{}")),
        )
        for kind, differing, *row in rows
    ]


def _numbers(array: str) -> tuple[int, ...]:
    """Parse the text of an array of numbers: `{2,3}` -> (2, 3)."""
    return tuple(int(item) for item in array.strip("{}").split(",") if item)


def _grouped_by(columns: Sequence[str]) -> str:
    return f" GROUP BY {', '.join(columns)}" if columns else ""


def _joined(parts: Sequence[str]) -> str:
    """Join items, each with a comma after it, so that another item can follow."""
    return "".join(f"{part}, " for part in parts)
