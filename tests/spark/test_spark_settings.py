"""Every session must have the settings that affect values, on any server."""

from __future__ import annotations

from pathlib import Path

import pytest
from fix_spark import opened_engine

from replctl.errors import ObjectNotInPrerequisiteState
from replctl.spark import SparkConf
from replctl.spark.session_start import configure
from replctl.spark.spark_settings import (
    CATALOG,
    DELTA,
    EXTENSIONS,
    FORCED_SETTINGS,
    check_delta,
    check_forced_settings,
    for_session,
    has_value,
    unwanted,
    without_legacy,
)

#: Values of an installation that differ from those that replctl sets.
HOSTILE = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.charAsVarchar": "true",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.orderByOrdinal": "false",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.variable.substitute": "true",
    "spark.sql.session.timeZone": "America/Caracas",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.datetime.java8API.enabled": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.function.concatBinaryAsString": "true",
    "spark.sql.jsonGenerator.ignoreNullFields": "false",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.parquet.int96TimestampConversion": "true",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.sources.partitionOverwriteMode": "DYNAMIC",
    "spark.databricks.delta.schema.autoMerge.enabled": "true",
    "spark.databricks.delta.stalenessLimit": "1h",
    "spark.databricks.delta.write.utcTimestampPartitionValues": "false",
    "spark.sql.legacy.sizeOfNull": "true",
    "spark.sql.legacy.castComplexTypesToString.enabled": "true",
    "spark.databricks.delta.properties.defaults.appendOnly": "true",
}


def test_a_session_with_all_settings_is_taken() -> None:
    check_forced_settings(FORCED_SETTINGS)
    capitals = {name: value.upper() for name, value in FORCED_SETTINGS.items()}
    check_forced_settings(capitals)


@pytest.mark.parametrize(("name", "value"), sorted(HOSTILE.items()))
def test_a_server_with_another_setting_is_refused(name: str, value: str) -> None:
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        check_forced_settings(FORCED_SETTINGS | {name: value})
    assert caught.value.detail == f'Its "{name}" is "{value}", and sessions cannot change it.'
    wanted = f" with {name}={FORCED_SETTINGS[name]}" if name in FORCED_SETTINGS else f"out {name}"
    assert caught.value.hint == f"Start the server with{wanted.removeprefix(' with')}."


@pytest.mark.parametrize(
    ("found", "name", "expected"),
    [
        (None, "spark.sql.parquet.writeLegacyFormat", True),  # Spark's default is right
        (None, "spark.sql.parquet.outputTimestampType", False),  # Spark's default is INT96
        (None, "spark.sql.session.timeZone", False),  # the default is the machine's zone
        (None, "spark.sql.variable.substitute", False),
        ("timestamp_micros", "spark.sql.parquet.outputTimestampType", True),
        ("INT96", "spark.sql.parquet.outputTimestampType", False),
    ],
)
def test_has_value(found: str | None, name: str, expected: bool) -> None:
    assert has_value({name: found}, name, FORCED_SETTINGS[name]) is expected


def test_former_versions_are_not_brought_back() -> None:
    default = "spark.databricks.delta.properties.defaults.appendOnly"
    legacy, harmless = "spark.sql.legacy.x", "spark.sql.legacy.sessionInitWithConfigDefaults"
    found = {default: "true", legacy: "true", harmless: "false", "spark.sql.x": "1"}
    assert unwanted(found, ()) == [default, legacy]
    assert unwanted(found, (default, legacy)) == [legacy]
    assert without_legacy({legacy: "true", harmless: "false"}) == {harmless: "false"}


@pytest.mark.parametrize("missing", [EXTENSIONS, CATALOG])
def test_a_server_without_delta_is_refused(missing: str) -> None:
    check_delta(DELTA)
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        check_delta({name: value for name, value in DELTA.items() if name != missing})
    assert caught.value.detail == f'Its {missing} is "".'
    assert caught.value.hint == (
        "Start the server with spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension and"
        " spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog."
    )


@pytest.mark.spark
def test_a_session_takes_its_settings_back(tmp_path: Path) -> None:
    """replctl configures a session again, regardless of its earlier settings.  This applies to
    classic sessions and to sessions of a server."""
    engine = opened_engine()
    session = engine.new_session()
    for name, value in HOSTILE.items():
        session.conf.set(name, value)
    configure(session, SparkConf())
    found = {name: session.conf.get(name, None) for name in FORCED_SETTINGS}
    check_forced_settings(found)
    table = tmp_path / "t"
    session.sql(f"CREATE TABLE delta.`{table}` (t TIMESTAMP, d DATE) USING delta")
    session.sql(
        f"INSERT INTO delta.`{table}` VALUES"
        " (TIMESTAMP '2024-07-01 12:00:00.999999+00:00', DATE '1582-10-10')"
    )
    row = session.sql(f"SELECT CAST(t AS STRING), CAST(d AS STRING) FROM delta.`{table}`").collect()
    assert [tuple(found) for found in row] == [("2024-07-01 12:00:00.999999", "1582-10-10")]


def test_no_account_is_sent_to_a_server() -> None:
    chosen = {
        "spark.hadoop.fs.s3a.secret.key": "x",
        "spark.delta.logStore.s3.impl": "io.delta.storage.S3DynamoDBLogStore",
        "spark.sql.shuffle.partitions": "7",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
    }
    assert for_session(chosen) == {"spark.sql.shuffle.partitions": "7"}
