"""The Spark SQL of jobs, for fixed tables: data/sql_shapes.txt.

The file shows the effect of a change to a builder.  Write it again with
`REPLCTL_WRITE_SHAPES=1 python -m pytest tests/spark/test_sql_shapes.py`, and read the difference.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
from query_facts import named_feeds, named_tables
from recorder import Recorder, Stop
from sql_layout import lines

from replctl.catalog.pg_class import PartitionBound
from replctl.expr.nodes import BoolExpr, Const, Expr, NullTest, OpExpr, Var
from replctl.replication.update_transformation import ROW_ACTIONS, Action
from replctl.spark import (
    ChangeSource,
    CommitNote,
    CopySource,
    EnumType,
    FeedVersion,
    Leaf,
    PartitionRule,
    Reference,
    SentColumn,
    SparkQuery,
    StagedColumn,
    TableColumn,
    TableSource,
    Target,
    TargetColumn,
    UniqueKey,
    accepts_sql,
    copied_sql,
    merge,
    narrowed_version,
    replicated_change,
    scan,
    uniqueness,
)
from replctl.spark.change_data_feed import (
    changes_sql,
    inverse_sql,
    ordered_changes_sql,
    paired_columns_sql,
    pairs_of_columns_sql,
    pairs_sql,
    without_own_sql,
)
from replctl.spark.compact import net_effects_sql
from replctl.spark.foreign_key_sql import first_broken_reference, first_orphan
from replctl.spark.key_path import LeafChange, existing_rows_sql
from replctl.spark.outcome import (
    Outcome,
    finished_sql,
    outcome_columns,
    violation_sql,
)
from replctl.spark.partition_sql import leaf_number_sql
from replctl.spark.replicated_change import ChangeSummary
from replctl.spark.staged import Staged
from replctl.spark.table_comparison import Sides, buckets_query, differences_query
from replctl.spark.values import IMAGES, ChangedFiles
from replctl.types import builtin

_FILE = Path(__file__).parent / "data" / "sql_shapes.txt"


def operator(name: str, left: Expr, right: Expr) -> OpExpr:
    """Return the operator expression `left name right`, for values of one type."""
    found = next(
        item
        for item in builtin.operators()[name]
        if (item.left, item.right) == (left.type, right.type)
    )
    return OpExpr(
        found.oid, name, builtin.function_by_oid()[found.function_oid].name, "bool", (left, right)
    )


# Orders: id, region, amount with two digits, paid, note.
ID, REGION, AMOUNT = Var(1, "int4"), Var(2, "text"), Var(3, "numeric", 655366)
COLUMNS = (
    TableColumn(1, "int4", -1, "id"),
    TableColumn(2, "text", -1, "region"),
    TableColumn(3, "numeric", 655366, "amount"),
    TableColumn(4, "timestamptz", -1, "paid at"),
)
ORDERS = TableSource("/lake/orders", COLUMNS)
ADDED = TableColumn(5, "int4", -1, "priority", "7", since_version=6)
IN_EUROPE = operator("=", REGION, Const("text", "it's EU"))
IS_LARGE = operator(">", AMOUNT, Const("numeric", "99.50"))
HAS_ID = NullTest(ID, is_null=False)
VERSIONS = (FeedVersion(3, 1), FeedVersion(4, 2), FeedVersion(6, 3))


def change_source(
    *,
    source: TableSource = ORDERS,
    versions: tuple[FeedVersion, ...] = VERSIONS,
    has_key: bool = True,
    published: tuple[int, ...] = (1, 2, 3, 4),
    filters: dict[Action, tuple[Expr, ...]] | None = None,
) -> ChangeSource:
    rows = (Action.INSERT, Action.UPDATE, Action.DELETE)
    every: dict[Action, tuple[Expr, ...]] = dict.fromkeys(rows, ())
    key, names = ((1,), ("id",)) if has_key else ((), ())
    return ChangeSource(
        "public.orders",
        source,
        versions,
        key,
        names,
        published,
        every if filters is None else filters,
    )


def target_column(attnum: int, name: str, type_: str, **more: Any) -> TargetColumn:
    given = {"typmod": -1, "not_null": False, "sent": attnum}
    return TargetColumn(attnum, name, type_, **{**given, **more})


#: A version that wrote all files again.
REWRITTEN = FeedVersion(7, 1, is_compared=True, has_row_ids=True)


def rewritten() -> tuple[ChangeSource, FeedVersion, Any]:
    source = change_source(versions=(REWRITTEN,))
    compared = narrowed_version.both_sides(source, REWRITTEN)
    return source, REWRITTEN, compared


PLAIN = Target(
    "public.orders",
    (
        target_column(1, "id", "int4", not_null=True),
        target_column(2, "region", "text"),
        target_column(3, "amount", "numeric", typmod=655366),
        target_column(4, "paid at", "timestamptz"),
    ),
    (1,),
    (Leaf(16400, "public.orders", ORDERS),),
    unique=(UniqueKey("orders_pkey", (1,)),),
)
KEYLESS = Target("public.orders", PLAIN.columns, (), PLAIN.leaves)

# The same table with columns of its own, constraints, and two partitions by region.
_KEYS, _TYPES = (2,), (("text", -1),)
EUROPE = PartitionBound("list", values=("EU", None))
LEAVES = (
    Leaf(
        16410,
        "public.orders_eu",
        TableSource("/lake/orders_eu", COLUMNS, 12),
        (PartitionRule(_KEYS, _TYPES, EUROPE),),
        not_null=(4,),
    ),
    Leaf(
        16420,
        "public.orders_rest",
        TableSource(None, COLUMNS),
        (PartitionRule(_KEYS, _TYPES, None, (EUROPE,)),),
        checks=(("rest_is_large", IS_LARGE),),
    ),
)
RICH = Target(
    "public.orders",
    (
        *PLAIN.columns[:3],
        target_column(4, "paid at", "timestamptz", sent=None),
        target_column(5, "status", "@16500", user_type=EnumType("public.status", ("new", "done"))),
        target_column(6, "copied_by", "text", sent=None, default=Const("text", "replctl")),
        target_column(7, "is_large", "bool", sent=None, generated=IS_LARGE),
    ),
    (1,),
    LEAVES,
    checks=(("has_region", NullTest(REGION, is_null=False)),),
    unique=(
        UniqueKey("orders_pkey", (1,)),
        UniqueKey("orders_region_amount", (2, 3), nulls_not_distinct=True),
    ),
)


def range_rule(lower: str, upper: str) -> PartitionRule:
    return PartitionRule(
        (1, 2),
        (("int4", -1), ("text", -1)),
        PartitionBound(
            "range",
            lower=(("value", lower), ("minvalue", None)),
            upper=(("value", upper), ("value", "m")),
        ),
    )


HASHED = PartitionRule(
    (1, 3), (("int4", -1), ("numeric", 655366)), PartitionBound("hash", modulus=4, remainder=3)
)


def many_changes(target: Target) -> Staged:
    """Return converted changes whose rows stay in Spark because there are too many."""
    columns = [StagedColumn("position", "int8"), StagedColumn("action", "text")]
    columns += [
        StagedColumn(f"{image}{c.attnum}", c.type, c.typmod)
        for c in target.columns
        if c.sent is not None
        for image in IMAGES
    ]
    return Staged("changes", tuple(columns), None)


def many_rows(target: Target, **more: Any) -> Outcome:
    """Return an outcome whose rows stay in Spark because there are too many."""
    columns = tuple(outcome_columns(target, with_old=True))
    return Outcome(target, Staged("outcome", columns, None), (), **more)


def few_rows() -> Outcome:
    """Return an outcome of PLAIN with an update and an insert."""
    import pyarrow as pa

    columns = (
        StagedColumn("old_leaf", "int4"),
        StagedColumn("new_leaf", "int4"),
        StagedColumn("k1", "int4"),
    )
    rows = pa.table({"old_leaf": pa.array([0, None], pa.int32()), "new_leaf": [0, 0], "k1": [7, 8]})
    return Outcome(PLAIN, Staged("outcome", columns, rows), ())


def recorded(*answers: list[tuple[Any, ...]], job: Callable[[Any], object]) -> str:
    """Return the statements of a job."""
    recorder = Recorder(*answers)
    job(recorder)
    return ";\n".join(recorder.statements)


def outcome_shape(
    target: Target,
    *,
    has_several_positions: bool = False,
    moves_keys: bool = False,
    repeats_keys: bool = False,
) -> str:
    """Return the query of the outcome of many replicated changes.  If they move keys, another query
    comes before it."""
    recorder = Recorder(stops_after=2 if moves_keys else 1)
    summary = ChangeSummary(
        frozenset(ROW_ACTIONS), has_several_positions, moves_keys, repeats_keys, repeats_rows=False
    )
    with (
        suppress(Stop),
        replicated_change.outcome(cast(Any, recorder), target, many_changes(target), summary),
    ):
        pass
    return ";\n".join(recorder.statements)


JOINED = SparkQuery("SELECT * FROM joined")
NOTE = CommitNote("note", "subscription 16390 of 16400", 5)
BOTH = LeafChange(1, 1, 1)

#: Functions that return the SQL, by name.
SHAPES: dict[str, Callable[[], str | SparkQuery]] = {
    # reading
    "scan": lambda: scan(ORDERS),
    "scan of a version with row ids": lambda: scan(
        TableSource("/lake/or'd`ers", COLUMNS, 7), with_row_id=True
    ),
    "scan of a table without row tracking": lambda: scan(
        TableSource("/lake/orders", COLUMNS[:2], None, has_row_tracking=False), with_row_id=True
    ),
    "scan of a relation without storage": lambda: scan(TableSource(None, COLUMNS)),
    "scan with a column that the table lacks, and one as text": lambda: scan(
        TableSource(
            "/lake/orders",
            (COLUMNS[0].as_text(), TableColumn(5, "int4", -1, None, "7")),
        )
    ),
    # decoding
    "changes by key": lambda: changes_sql(change_source()),
    "changes without a key": lambda: changes_sql(change_source(has_key=False)),
    "changes of publications with filters of their own": lambda: changes_sql(
        change_source(
            filters={
                Action.INSERT: (IN_EUROPE, IS_LARGE),
                Action.UPDATE: (BoolExpr("and", (IN_EUROPE, HAS_ID)),),
                Action.DELETE: (HAS_ID,),
            }
        )
    ),
    "changes of which only inserts are published": lambda: changes_sql(
        change_source(filters={Action.INSERT: (IN_EUROPE,)})
    ),
    "changes of which nothing is published": lambda: changes_sql(change_source(filters={})),
    "changes with a column list": lambda: changes_sql(change_source(published=(3, 1))),
    "changes of keys, by row id": lambda: changes_sql(
        change_source(versions=(FeedVersion(3, 1), FeedVersion(4, 2, changes_keys=True)))
    ),
    "changes without a key, by row id": lambda: changes_sql(
        change_source(has_key=False, versions=(FeedVersion(4, 1, changes_keys=True),))
    ),
    "changes of versions that are compared": lambda: changes_sql(
        change_source(
            versions=(
                FeedVersion(0, 1, is_compared=True),
                FeedVersion(3, 2),
                FeedVersion(5, 3, is_compared=True),
                FeedVersion(6, 4),
            )
        )
    ),
    "changes found from files": lambda: changes_sql(
        change_source(
            source=TableSource("/lake/orders", (*COLUMNS[:2], TableColumn(7, "float8", -1, "f"))),
            versions=(
                FeedVersion(3, 1, is_compared=True, files=ChangedFiles("/tmp/b", "/tmp/a")),
                FeedVersion(4, 2, is_compared=True, files=ChangedFiles(None, "/tmp/a")),
            ),
            published=(1, 2, 7),
        )
    ),
    "buckets of a rewritten table that differ": lambda: narrowed_version.buckets_query(
        *rewritten()[::2]
    ),
    "rows of a rewritten table in buckets that differ": lambda: narrowed_version.images_query(
        *rewritten(), [3, 9]
    ),
    "changes of a rewritten table": lambda: changes_sql(
        change_source(versions=(replace(REWRITTEN, images="images"),))
    ),
    "changes before and after the metadata changed": lambda: changes_sql(
        change_source(
            versions=(FeedVersion(3, 1), FeedVersion(5, 2, run=1), FeedVersion(6, 3, run=1))
        )
    ),
    "changes of keys with a column added later": lambda: changes_sql(
        change_source(
            source=TableSource("/lake/orders", (*COLUMNS[:2], ADDED)),
            versions=(FeedVersion(6, 1, changes_keys=True),),
            published=(1, 2, 5),
        )
    ),
    "changes from pairs that others have read": lambda: changes_sql(
        change_source(), pairs_of_columns_sql(ORDERS, "shared_pairs")
    ),
    "pairs for others": lambda: paired_columns_sql(ORDERS, pairs_sql(change_source())),
    "changes in order": lambda: ordered_changes_sql(change_source()),
    "changes that undo a commit": lambda: inverse_sql(ORDERS, FeedVersion(4, 1)),
    "changes that undo commits between those of others": lambda: without_own_sql(
        ORDERS, (1,), (FeedVersion(4, 1), FeedVersion(6, 1)), (FeedVersion(5, 1),)
    ),
    "initial copy": lambda: copied_sql([CopySource(ORDERS, (1, 2, 3, 4), ())]),
    "initial copy of partitions with filters, a column list and policies": lambda: copied_sql(
        [
            CopySource(LEAVES[0].source, (1, 3), (IN_EUROPE, IS_LARGE), (HAS_ID,)),
            CopySource(LEAVES[1].source, (1, 3), (IN_EUROPE, IS_LARGE), (HAS_ID,)),
        ]
    ),
    # applying
    "net effects": lambda: net_effects_sql("changes", PLAIN.key_columns, ["1", "2", "3"]),
    "net effects of keys that change once": lambda: net_effects_sql(
        "changes", PLAIN.key_columns, ["1", "2", "3"], repeats_keys=False
    ),
    "existing rows": lambda: existing_rows_sql(PLAIN, ["c1 IN (7, 8)"]),
    "existing rows of partitions": lambda: existing_rows_sql(RICH, []),
    "violations": lambda: violation_sql(RICH, "w") or "",
    "violations as far as columns are known": lambda: violation_sql(RICH, "n", {1, 2}) or "",
    "finished rows": lambda: finished_sql(PLAIN, JOINED),
    "finished new rows of partitions": lambda: finished_sql(RICH, JOINED, is_new=True),
    "outcome by key": lambda: outcome_shape(PLAIN),
    "outcome by key of keys that change several times": lambda: outcome_shape(
        RICH, repeats_keys=True, has_several_positions=True
    ),
    "outcome of changes of keys": lambda: outcome_shape(PLAIN, moves_keys=True),
    "outcome without a key": lambda: outcome_shape(KEYLESS),
    # partitions
    "rows of a range": lambda: accepts_sql((range_rule("1", "10"),), lambda attnum: f"w{attnum}"),
    "rows of a remainder": lambda: accepts_sql((HASHED,), lambda attnum: f"w{attnum}"),
    "number of the partition": lambda: leaf_number_sql(LEAVES, lambda attnum: f"w{attnum}"),
    # writing
    "MERGE by key": lambda: recorded(
        job=lambda e: merge.write_leaf(e, many_rows(PLAIN), 0, PLAIN.leaves[0], BOTH, NOTE)
    ),
    "MERGE by the columns that are sent": lambda: recorded(
        job=lambda e: merge.write_leaf(
            e, many_rows(KEYLESS, matching="sent columns"), 0, KEYLESS.leaves[0], BOTH, NOTE
        )
    ),
    "MERGE by whole rows": lambda: recorded(
        job=lambda e: merge.write_leaf(
            e, many_rows(KEYLESS, matching="whole row"), 0, KEYLESS.leaves[0], BOTH, NOTE
        )
    ),
    "append": lambda: recorded(
        job=lambda e: merge.write_leaf(
            e, many_rows(PLAIN), 0, PLAIN.leaves[0], LeafChange(0, 0, 1), NOTE
        )
    ),
    "few rows by replaceWhere": lambda: recorded(
        job=lambda e: merge.write_leaf(e, few_rows(), 0, PLAIN.leaves[0], BOTH, NOTE)
    ),
    "replacement of a partition": lambda: recorded(
        job=lambda e: merge.replace_leaf(e, many_rows(RICH), 0, RICH.leaves[0], NOTE)
    ),
    # constraints
    "unique index": lambda: recorded(
        [(1,)],
        job=lambda e: uniqueness.first_problem(e, many_rows(RICH), RICH.unique[1:]),
    ),
    "unique index after the write": lambda: recorded(
        job=lambda e: uniqueness.first_collision(e, many_rows(PLAIN), PLAIN)
    ),
    "foreign key of new rows": lambda: recorded(
        job=lambda e: first_orphan(e, many_rows(PLAIN), Reference((2,), (ORDERS,), (2,)))
    ),
    "foreign key, MATCH FULL, to the table itself": lambda: recorded(
        job=lambda e: first_orphan(
            e,
            many_rows(PLAIN),
            Reference((2, 3), (ORDERS,), (2, 3), is_own=True, match_full=True),
        )
    ),
    "rows that are referred to": lambda: recorded(
        job=lambda e: first_broken_reference(
            e, many_rows(PLAIN), Reference((1,), (LEAVES[0].source,), (1,))
        )
    ),
    "RESTRICT of rows in the table itself": lambda: recorded(
        job=lambda e: first_broken_reference(
            e,
            many_rows(PLAIN),
            Reference((1,), (ORDERS,), (1,), is_own=True),
            restricts=True,
        )
    ),
    "rows that are referred to in a table without a key": lambda: recorded(
        job=lambda e: first_broken_reference(
            e,
            many_rows(KEYLESS, matching="whole row"),
            Reference((1,), (ORDERS,), (1,), is_own=True),
        )
    ),
    # comparison
    "buckets that differ": lambda: buckets_query(sides(PLAIN)),
    "buckets that differ, of partitions without deletes": lambda: buckets_query(
        sides(RICH, owned=None)
    ),
    "rows that differ": lambda: differences_query(sides(PLAIN, owned=(IN_EUROPE,)), [3, 9]),
    "rows that differ without a key": lambda: differences_query(
        sides(KEYLESS, counts_different=False), range(4096)
    ),
    # conversion
    "conversion of changes": lambda: conversion_shape(),
}


SENT = (
    SentColumn("id", "int8", -1),
    SentColumn("region", "varchar", 24),
    SentColumn("amount", "numeric", -1, is_key=False),
    SentColumn("paid at", "timestamp", -1, is_key=False),
    SentColumn("status", "text", -1, is_key=False),
)


def sides(target: Target, **more: Any) -> Sides:
    """Return a comparison of a target with rows of other types."""
    return Sides(SparkQuery("SELECT * FROM published"), SENT, target, **more)


def conversion_shape() -> str:
    """Return the conversion of changes whose values have other types than the target's columns."""
    changes = Staged("sent", (), None)
    recorder = Recorder(stops_after=1)
    with (
        suppress(Stop),
        replicated_change.converted(cast(Any, recorder), RICH, SENT, changes, 1, 9),
    ):
        pass
    return ";\n".join(recorder.statements)


def shown(name: str) -> str:
    """Return a shape in the form of the file."""
    parts = str(SHAPES[name]()).split(";\n")
    return "\n".join(line for part in parts for line in [*lines(part), ";"])


@cache
def kept() -> dict[str, str]:
    """Return the shapes of the file, by name."""
    parts = _FILE.read_text(encoding="utf-8").split("\n-- # ")
    named = (part.rstrip("\n").partition("\n") for part in parts[1:])
    return {name: shape for name, _, shape in named}


def written() -> str:
    """Return the text that the file must have."""
    head = "-- Spark SQL of jobs; tests/spark/test_sql_shapes.py says how this file is written.\n"
    return head + "".join(f"\n-- # {name}\n{shown(name)}\n" for name in SHAPES)


if os.environ.get("REPLCTL_WRITE_SHAPES"):
    _FILE.write_text(written(), encoding="utf-8")


@pytest.mark.parametrize("name", SHAPES)
def test_shape(name: str) -> None:
    assert shown(name).splitlines() == kept().get(name, "").splitlines()


@pytest.mark.parametrize("name", SHAPES)
def test_a_query_knows_the_tables_that_it_reads(name: str) -> None:
    query = SHAPES[name]()
    if isinstance(query, SparkQuery):
        assert query.tables == named_tables(query.sql)
        assert query.feeds == named_feeds(query.sql)


def test_the_file_has_no_other_shapes() -> None:
    assert list(kept()) == list(SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_layout_changes_white_space_alone(name: str) -> None:
    sql = str(SHAPES[name]())
    laid_out = "".join("".join(lines(part)) + ";" for part in sql.split(";\n"))
    assert "".join(laid_out.split()) == "".join(f"{sql};".replace(";\n", ";").split())
