"""The state that Spark keeps between statements."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, NoReturn, cast

import pytest

from replctl.errors import ConnectionFailure, OutOfMemory, PostgresError, UndefinedFile
from replctl.spark.data_type import quote
from replctl.spark.feed_name import feeds_in
from replctl.spark.staged import StagedColumn

if TYPE_CHECKING:
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
    feed = f"SELECT id FROM table_changes_by_path('{table}', 1, 1)"
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


def test_feeds_in_a_statement() -> None:
    names = ["/a/b", "s3://x/o'clock", "a\\b"]
    calls = [f"SELECT * FROM table_changes_by_path({quote(name)}, 1, 2)" for name in names]
    assert feeds_in(" UNION ALL ".join(calls)) == names


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
    answered = SimpleNamespace(rows=lambda _text: [(line,) for line in lines])
    with pytest.raises(PostgresError) as caught:
        Engine.plan(cast("Engine", answered), "SELECT 1")
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, expected)
