"""The state that Spark keeps between statements."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, NoReturn, cast

import pytest

from replctl.errors import ConnectionFailure, OutOfMemory, PostgresError, UndefinedFile
from replctl.spark import FeedVersion, TableColumn, TableSource, scan
from replctl.spark.change_data_feed import inverse_sql
from replctl.spark.data_type import quote
from replctl.spark.s3_connector import S3Connector, files_on_s3
from replctl.spark.spark_query import Query
from replctl.spark.staged import StagedColumn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from replctl.spark.engine import Engine


@pytest.mark.spark
def test_a_change_feed_is_found_again_after_its_table_was_away(
    engine: Engine, tmp_path: Path
) -> None:
    table, hidden = tmp_path / "table", tmp_path / "hidden"
    engine.run(
        f"CREATE TABLE delta.`{table}` (id INT) USING delta"
        " TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    engine.run(f"INSERT INTO delta.`{table}` VALUES (1)")
    text, location = f"SELECT id FROM table_changes_by_path('{table}', 1, 1)", str(table)
    feed = Query(text, tables=frozenset({location}), feeds=frozenset({location}))
    assert engine.rows(feed) == [(1,)]
    for _attempt in range(2):
        table.rename(hidden)
        for _time in range(2):
            with pytest.raises(UndefinedFile, match=str(table)):
                engine.rows(feed)
        hidden.rename(table)
        assert engine.rows(feed) == [(1,)]


@pytest.mark.spark
def test_rows_take_no_more_memory_than_they_may(engine: Engine) -> None:
    query = "SELECT CAST(id AS STRING) AS c1 FROM range(300000)"
    columns = [StagedColumn("c1", "text")]
    with pytest.raises(OutOfMemory) as caught:
        engine.fetch(query, columns, max_kilobytes=16 * 1024)
    assert caught.value.detail == "The statement needs more than 16384kB in this process."
    assert len(engine.fetch(query, columns, max_kilobytes=512 * 1024)) == 300_000


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ConnectionFailure("no luck")])
def test_a_start_that_failed_is_forgotten(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyspark keeps the gateway to a JVM that has ended, and the next start would wait for it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from replctl.spark import SparkConf, java_start
    from replctl.spark.engine import Engine

    # Restore the session that other tests share afterwards
    for owner, name in (
        (SparkContext, "_jvm"),
        (SparkContext, "_active_spark_context"),
        (SparkSession, "_instantiatedSession"),
        (SparkSession, "_activeSession"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    given: list[dict[str, str]] = []

    def fail(properties: dict[str, str], *_arguments: object) -> NoReturn:
        given.append(properties)
        raise error

    monkeypatch.setattr(java_start, "gateway", fail)
    monkeypatch.setattr(SparkContext, "_gateway", object())
    legacy, own = ("spark.sql.legacy.sizeOfNull", "true"), ("spark.driver.memory", "1g")
    with pytest.raises(type(error)):
        Engine(SparkConf(properties=(legacy, own), scratch=tmp_path))
    assert SparkContext._gateway is None
    assert given[0]["spark.driver.memory"] == "1g"
    assert given[0]["spark.storage.blockManagerHeartbeatTimeoutMs"] == "3650d"  # clocks may jump
    assert legacy[0] not in given[0]
    # Without this setting, Spark would use the working directory
    assert given[0]["spark.sql.warehouse.dir"].startswith(str(tmp_path))


@pytest.mark.parametrize(
    ("location", "is_needed"), [("s3a://b/t", True), ("S3://b/t", True), ("/data/s3://b", False)]
)
def test_a_query_of_a_table_or_a_feed_on_s3_needs_the_connector(
    location: str, is_needed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = TableSource(location, (TableColumn(1, "int4", -1, "id"),))
    for query in (scan(source), inverse_sql(source, FeedVersion(1, 1))):
        added: list[object] = []
        connector = S3Connector(cast("SparkSession", None), {})
        with monkeypatch.context() as patch:
            patch.setattr(connector, "add", added.append)
            connector.provide_for(query.tables)
            connector.provide_for(query.tables)
        assert len(added) == is_needed


def test_files_on_s3_in_a_log_need_the_connector() -> None:
    name = "s3a://b/t/part-0.parquet"
    assert files_on_s3(f'{{"add":{{"path":"{name}"}}}}') == [name]
    assert files_on_s3('{"add":{"path":"part-s3a://0.parquet"}}') == []


@pytest.mark.spark
@pytest.mark.parametrize("name", ["${env:HOME}", "${spark.master}", "${hiveconf:x}"])
def test_spark_replaces_nothing_in_a_statement(engine: Engine, name: str) -> None:
    assert engine.rows(f"SELECT {quote(name)}") == [(name,)]


@pytest.mark.parametrize(
    ("message", "sqlstate", "expected"),
    [
        (
            "[NOT_SUPPORTED_IN_PLAN] The plan has\na part. SQLSTATE: 0A000;\nFilter a\n+- Scan b",
            "0A000",
            "Spark cannot do this",
        ),
        (
            "[UNSUPPORTED.FRAME] Wrong frame. SQLSTATE: 42K0E; line 1",
            "XX000",
            "Spark failed: [UNSUPPORTED.FRAME] Wrong frame. SQLSTATE: 42K0E; line 1",
        ),
        ("assertion failed", "XX000", "Spark failed: assertion failed"),
    ],
)
def test_explain_reports_an_error_of_spark(message: str, sqlstate: str, expected: str) -> None:
    from replctl.spark.engine import Engine

    lines = ["Error occurred during query planning: ", *message.split("\n")]
    answered = SimpleNamespace(rows=lambda _query: [(line,) for line in lines])
    with pytest.raises(PostgresError) as caught:
        Engine.plan(cast("Engine", answered), Query("SELECT 1"))
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, expected)
