"""The row filter of an initial copy reaches the Delta scan: Spark does not open files that cannot
match, and does not read unneeded columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database, connect

from replctl.lake.publisher import LakePublisher
from replctl.relation_name import RelationName

if TYPE_CHECKING:
    from replctl.catalog.cluster import Cluster
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_FILES = 4


def _fill(database: Database) -> None:
    """Make table t.  File n has the ids 10 n to 10 n + 9, and the first day of month n + 1.  Spark
    reads the table."""
    database.run("SET replctl.small_table_rows = 0")
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY, region text, amount numeric(10,2), day date,"
        " other text)"
    )
    for n in range(_FILES):
        database.run(
            f"INSERT INTO t SELECT {10 * n} + g, chr(97 + {n}), {n} + 0.5, '2024-0{n + 1}-01', 'x'"
            " FROM generate_series(0, 9) g"
        )


@pytest.fixture(scope="module")
def filled(shared_cluster: Cluster, engine: Engine) -> Database:
    database = connect(shared_cluster, "test_pub", engine)
    _fill(database)
    return database


def _plan(database: Database, engine: Engine, where: str, columns: str) -> str:
    """Return the physical plan of the copy of t for a publication with WHERE (where)."""
    database.run(f"CREATE PUBLICATION p FOR TABLE t ({columns}) WHERE ({where})")
    publisher = LakePublisher(database.session)
    snapshot = publisher.tables.snapshot(RelationName("public", "t"))
    with publisher.tables.copy(["p"], RelationName("public", "t"), snapshot) as (_remote, rows):
        database.run("DROP PUBLICATION p")
        ((text,),) = engine.run(f"EXPLAIN FORMATTED {rows}")
    return str(text)


@pytest.mark.parametrize(
    ("where", "pushed"),
    [
        ("id > 25", "GreaterThan(id,25)"),
        ("region = 'c'", "EqualTo(region,c)"),
        ("amount BETWEEN 1.5 AND 20", "GreaterThanOrEqual(amount,1.50)"),
        ("day >= '2024-03-01'", "GreaterThanOrEqual(day,2024-03-01)"),
        ("region LIKE 'c%'", "StringStartsWith(region,c)"),
        ("id IN (3, 30) AND region IS NOT NULL", "Or(EqualTo(id,3),EqualTo(id,30))"),
        ("id IN (3, 30) AND region IS NOT NULL", "IsNotNull(region)"),
    ],
)
def test_filters_are_pushed_down(filled: Database, engine: Engine, where: str, pushed: str) -> None:
    plan = _plan(filled, engine, where, "id")
    (filters,) = re.findall(r"^PushedFilters: \[(.*)\]$", plan, re.MULTILINE)
    assert pushed in filters


def test_only_needed_columns_are_read(filled: Database, engine: Engine) -> None:
    plan = _plan(filled, engine, "day > '2024-02-01'", "id, amount")
    (schema,) = re.findall(r"^ReadSchema: struct<(.*)>$", plan, re.MULTILINE)
    assert "other" not in schema
    assert "region" not in schema
    assert "amount" in schema


def test_files_that_cannot_match_are_not_opened(publisher: Database, subscriber: Database) -> None:
    """All files are missing except the one with the rows."""
    _fill(publisher)
    filters = ["id BETWEEN 20 AND 29", "region = 'c'", "day = '2024-03-01' AND amount < 5"]
    for i, where in enumerate(filters):
        publisher.run(f"CREATE PUBLICATION p{i} FOR TABLE t (id, region) WHERE ({where})")
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, region text)")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p0, p1, p2")
    found = publisher.session.cluster.path.rglob("*.parquet")
    files = [path for path in found if "_delta_log" not in path.parts]
    assert len(files) == _FILES
    files.sort(key=lambda path: path.stat().st_mtime_ns)
    for path in (*files[:2], *files[3:]):
        path.unlink()
    assert [failure.error.detail for failure in subscriber.sync()] == []
    assert subscriber.rows("SELECT count(*), min(id), max(id) FROM t") == [("10", "20", "29")]
