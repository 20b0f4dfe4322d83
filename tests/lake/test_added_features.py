"""Columns of some types need features of Delta that a table may lack.  ALTER TABLE adds them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fix_lake import log_file, table_location
from fix_replication import Database
from golden_script import answer_of
from long_tests import with_long

from replctl.session import Session

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

#: Statements that give the table t a column c of type timestamp.
_CHANGES = (
    "alter table t add c timestamp default '2024-02-29'",
    "alter table t add c timestamp default '2024-02-29'::timestamp + random() * interval '0'",
    "alter table t alter v type timestamp using '2024-02-29'; alter table t rename v to c",
    "alter table t add c timestamp; update t set c = '2024-02-29'",
)


def _protocol(location: Path) -> dict[str, Any]:
    """Return the newest protocol of a table's log."""
    logs = sorted((location / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    protocols: list[dict[str, Any]] = [a["protocol"] for a in actions if "protocol" in a]
    return protocols[-1]


@pytest.mark.parametrize("change", with_long(_CHANGES, 2))
@pytest.mark.parametrize("has_vectors", ["on", "off"])
def test_a_table_gets_the_feature_of_a_timestamp(
    spark_session: Session, engine: Engine, change: str, has_vectors: str
) -> None:
    for statement in (
        f"create table t (id int primary key, v text) with (deletion_vectors = {has_vectors})",
        "insert into t values (1, 'a')",
        *change.split("; "),
        "insert into t (id, c) values (2, '1999-12-31 23:59:59.999999')",
    ):
        answer = answer_of(spark_session, statement)
        assert not answer[-1].startswith("ERROR"), answer
    rows = ("| 1 | 2024-02-29 00:00:00", "| 2 | 1999-12-31 23:59:59.999999", "SELECT 2")
    assert answer_of(spark_session, "select id, c from t order by id") == rows
    location = table_location(spark_session, "t")
    protocol = _protocol(location)
    assert "timestampNtz" in protocol["readerFeatures"]
    assert "timestampNtz" in protocol["writerFeatures"]
    found = engine.rows(f"SELECT CAST(c AS STRING) FROM delta.`{location}` ORDER BY id")
    assert found == [("2024-02-29 00:00:00",), ("1999-12-31 23:59:59.999999",)]


def test_a_table_for_older_readers_says_that_its_protocol_changes(
    spark_session: Session, engine: Engine, tmp_path: Path
) -> None:
    place = tmp_path / "t"
    table = f"delta.`{place}`"
    engine.run(f"CREATE TABLE {table} (id INT) USING delta")
    engine.run(f"INSERT INTO {table} VALUES (1)")
    answer_of(spark_session, f"create table t using delta location '{place}'")
    assert _protocol(place)["minReaderVersion"] == 1
    answer_of(spark_session, "alter table t add c timestamp")
    answer = answer_of(spark_session, "insert into t values (2, '2024-02-29')")
    start = f'NOTICE 00000: property "minReaderVersion" of the Delta table at "{place}"'
    assert f"{start} is changed from 1 to 3" in answer
    assert answer[-1] == "INSERT 0 1"
    assert engine.rows(f"SELECT id, CAST(c AS STRING) FROM {table} ORDER BY id") == [
        (1, None),
        (2, "2024-02-29 00:00:00"),
    ]


def test_checksums_have_the_new_protocol(spark_session: Session, engine: Engine) -> None:
    for statement in (
        "create table t (id int primary key)",
        "insert into t values (1)",
        "alter table t add c timestamp",
        "insert into t values (2, '2024-02-29')",
    ):
        answer_of(spark_session, statement)
    location = table_location(spark_session, "t")
    checksum = json.loads(log_file(location, 3, "crc").read_text())
    assert checksum["protocol"] == _protocol(location)
    assert engine.rows(f"SELECT count(c) FROM delta.`{location}`") == [(1,)]


def test_a_subscriber_follows_columns_that_need_features(
    engine: Engine, source: Database, target: Database, tmp_path: Path
) -> None:
    place = tmp_path / "t"
    table = f"delta.`{place}`"
    engine.run(f"CREATE TABLE {table} (id INT) USING delta")
    engine.run(f"INSERT INTO {table} VALUES (1)")
    source.run(f"CREATE TABLE t (PRIMARY KEY (id)) USING delta LOCATION '{place}'")
    source.run("CREATE PUBLICATION p FOR TABLE t")
    target.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=source' PUBLICATION p"
        " WITH (create_tables = true, follow_schema = true)"
    )
    assert target.sync() == []
    features = "'delta.feature.timestampNtz' = 'supported'"
    engine.run(f"ALTER TABLE {table} SET TBLPROPERTIES ({features})")
    engine.run(f"ALTER TABLE {table} ADD COLUMNS (c TIMESTAMP_NTZ, v VARIANT)")
    engine.run(f"INSERT INTO {table} SELECT 2, TIMESTAMP_NTZ'2024-02-29 00:00:00', parse_json('1')")
    assert target.sync() == []
    rows = [("1", None, None), ("2", "2024-02-29 00:00:00", "1")]
    assert target.rows("SELECT * FROM t ORDER BY id") == rows
    source.run("INSERT INTO t (id, c) VALUES (3, '2024-03-01')")
    assert target.sync() == []
    assert target.rows("SELECT * FROM t WHERE id = 3") == [("3", "2024-03-01 00:00:00", None)]
