"""replctl creates Delta tables without Spark, with the same content as Spark, at the right time."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from golden_script import answer_of

from replctl import spark
from replctl.catalog.pg_class import get_relation
from replctl.errors import IoError
from replctl.lake.located_table import make_tables
from replctl.lake.new_table import create_table
from replctl.lake.table_folder import TableFolder
from replctl.session import Session
from replctl.spark import TABLE_PROPERTIES, CommitNote, FileLayout, TableColumn
from replctl.types.numeric import numeric_typmod

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

_NOTE = CommitNote("a note")
_TYPES = (
    *("bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "bytea", "date"),
    *("time", "timetz", "timestamptz", "interval", "jsonb", "uuid", "pg_lsn", "int4range"),
    *("_int4", "_text", "_timestamptz", "_bool", "_bytea", "_numeric", "_interval"),
    "delta:STRUCT<a: INT, `b-c`: MAP<STRING, ARRAY<DATE>>>",
    "delta:ARRAY<VARIANT>",
)
_COLUMNS = [
    *(TableColumn(n, type_, -1, f"c{n}") for n, type_ in enumerate(_TYPES, start=1)),
    TableColumn(100, "numeric", numeric_typmod(10, 2), 'A_quoted_"é'),
    TableColumn(101, "_numeric", numeric_typmod(38, 38), "decimals"),
]


def _log(folder: Path) -> dict[str, Any]:
    """Return the actions of the first version and its checksum, without parts that differ between
    tables."""
    name = "_delta_log/00000000000000000000"
    found: dict[str, Any] = {}
    for line in (folder / f"{name}.json").read_text().splitlines():
        found |= json.loads(line)
    found["checksum"] = json.loads((folder / f"{name}.crc").read_text())
    for histogram in ("fileSizeHistogram", "deletedRecordCountsHistogramOpt"):
        found["checksum"].pop(histogram, None)
    for action in (found, found["checksum"]):
        metadata = action["metaData" if action is found else "metadata"]
        metadata["schemaString"] = json.loads(metadata["schemaString"])
        action["protocol"] = {
            key: sorted(value) if isinstance(value, list) else value
            for key, value in action["protocol"].items()
        }
    known = json.dumps(found, sort_keys=True)
    known = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID", known)
    known = re.sub(r'("createdTime"|"timestamp"): \d{13}', r"\1: 0", known)
    result = json.loads(known)
    assert isinstance(result, dict)
    return result


@pytest.mark.spark
@pytest.mark.parametrize("has_deletion_vectors", [True, False])
@pytest.mark.parametrize("columns", [_COLUMNS, [TableColumn(1, "timestamp", -1, "t")], []])
def test_the_table_is_as_spark_creates_it(
    spark_session: Session,
    engine: Engine,
    tmp_path: Path,
    columns: list[TableColumn],
    has_deletion_vectors: bool,
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    create_table(
        spark_session, str(ours), columns, _NOTE, has_deletion_vectors=has_deletion_vectors
    )
    vectors = {"delta.enableDeletionVectors": str(has_deletion_vectors).lower()}
    spark.jobs.create_table(engine, str(theirs), columns, TABLE_PROPERTIES | vectors, _NOTE)
    own, expected = _log(ours), _log(theirs)
    for part in ("metaData", "protocol"):
        assert own[part] == expected[part]
    assert own["commitInfo"]["userMetadata"] == "a note"
    # Delta's checksum has more parts: counts, which are 0 in every new table
    assert own["checksum"].items() <= {"allFiles": [], **expected["checksum"]}.items()
    assert engine.rows(f"SELECT count(*) FROM delta.`{ours}`") == [(0,)]


@pytest.mark.spark
@pytest.mark.parametrize(
    "layout",
    [FileLayout(partitions=("c8", "c10")), FileLayout(clusters=(("c8",), ('A_quoted_"é',)))],
)
def test_the_layout_is_as_spark_creates_it(
    spark_session: Session, engine: Engine, tmp_path: Path, layout: FileLayout
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    properties = {"delta.checkpointInterval": "20", "delta.dataSkippingNumIndexedCols": "-1"}
    create_table(
        spark_session,
        str(ours),
        _COLUMNS,
        _NOTE,
        has_deletion_vectors=True,
        layout=layout,
        properties=properties,
    )
    all_ = TABLE_PROPERTIES | {"delta.enableDeletionVectors": "true"} | properties
    spark.jobs.create_table(engine, str(theirs), _COLUMNS, all_, _NOTE, layout)
    own, expected = _log(ours), _log(theirs)
    for part in ("metaData", "protocol", "domainMetadata"):
        assert own.get(part) == expected.get(part)
    names = ("partitionBy", "clusterBy")
    assert [own["commitInfo"]["operationParameters"][name] for name in names] == [
        expected["commitInfo"]["operationParameters"][name].replace("`", "") for name in names
    ]
    assert own["checksum"].items() <= {"allFiles": [], **expected["checksum"]}.items()


def test_a_table_that_is_there_stays(session: Session, tmp_path: Path) -> None:
    for columns in (_COLUMNS, []):
        create_table(session, str(tmp_path), columns, _NOTE, has_deletion_vectors=True)
    assert len(_log(tmp_path)["metaData"]["schemaString"]["fields"]) == len(_COLUMNS)
    assert sorted(path.name[20:] for path in (tmp_path / "_delta_log").iterdir()) == [
        ".crc",
        ".json",
    ]


def test_a_folder_that_cannot_be_written(session: Session, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(IoError, match="could not create a Delta table"):
        create_table(session, f"{tmp_path}/file/t", [], _NOTE, has_deletion_vectors=True)


def _is_there(folder: Path) -> bool:
    return (folder / "_delta_log" / "00000000000000000000.json").exists()


def test_a_location_has_its_table_from_the_commit_on(session: Session, tmp_path: Path) -> None:
    made = "CREATE TABLE {0} (a int, b text) USING delta LOCATION '{1}/{0}'"
    assert answer_of(session, made.format("t", tmp_path)) == ("CREATE TABLE",)
    assert _is_there(tmp_path / "t")
    for end, is_there in (("ROLLBACK", False), ("COMMIT", True)):
        answer_of(session, "BEGIN")
        answer_of(session, made.format("u", tmp_path))
        assert not _is_there(tmp_path / "u")
        answer_of(session, end)
        assert _is_there(tmp_path / "u") == is_there


def test_a_location_takes_storage_parameters(session: Session, tmp_path: Path) -> None:
    made = f"CREATE TABLE t (a int) USING delta LOCATION '{tmp_path}/t' WITH"
    made += " (deletion_vectors = off, fillfactor = 70)"
    assert answer_of(session, made) == ("CREATE TABLE",)
    properties = _log(tmp_path / "t")["metaData"]["configuration"]
    assert properties["delta.enableDeletionVectors"] == "false"
    answer_of(session, "DROP TABLE t")
    (refused, *_) = answer_of(session, made)
    assert refused == (
        'ERROR 0A000: storage parameter "deletion_vectors" of an adopted table is not supported'
    )


def test_a_location_whose_table_could_not_be_created_is_made_later(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = f"CREATE TABLE t (a int) USING delta LOCATION '{tmp_path}/t'"
    with monkeypatch.context() as patch:
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        patch.setattr(TableFolder, "create", Mock(side_effect=full))
        told = answer_of(session, made)
    assert told[0] == 'WARNING 01000: the Delta table of "public.t" could not be created yet'
    assert told[-1] == "CREATE TABLE"
    with session.read() as catalog:
        oid = session.environment(catalog).relation_oid(None, "t")
    assert oid is not None
    make_tables(session, [oid])
    assert _is_there(tmp_path / "t")


def test_a_process_that_dies_after_it_has_created_a_table(session: Session, tmp_path: Path) -> None:
    made = f"CREATE TABLE t (a int, b text) USING delta LOCATION '{tmp_path}/t'"
    point = {"REPLCTL_INJECTION_POINT": "storage.after-create:kill"}
    killed = subprocess.run(
        [sys.executable, "-m", "replctl", "-X", "--home", str(session.cluster.path), "-c", made],
        env={**os.environ, **point},
        check=False,
        capture_output=True,
    )
    assert killed.returncode == -signal.SIGKILL
    assert _is_there(tmp_path / "t")
    with session.read() as catalog:
        oid = session.environment(catalog).relation_oid(None, "t")
    assert oid is not None
    make_tables(session, [oid])
    with session.read() as catalog:
        relation = get_relation(catalog, oid)
    assert relation is not None
    assert relation.storage is not None
    assert relation.storage.is_made
    assert [column.since_version for column in relation.storage.columns.values()] == [0, 0]
