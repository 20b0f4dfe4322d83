"""replctl appends few rows to simple tables without Spark, in the same way as Spark."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from fix_lake import another_first, log_file, table_location
from golden_script import answer_of
from pyarrow.parquet import ParquetFile, read_table

from replctl.lake import small_commit
from replctl.lake.small_commit import SmallCommit
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_state import TableState
from replctl.session import Session
from replctl.spark import CommitNote, Leaf, TableColumn, TableSource

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

_TYPES = {
    "bool": ("true", "false"),
    "int2": ("-7", "8"),
    "int8": ("9000000000", "-1"),
    "numeric": ("1.50", "'NaN'"),
    "numeric(9,2)": ("1.5", "-0.01"),
    "numeric(38,10)": ("1234567890123456789012345678.0000000001", "0"),
    "float4": ("0.1", "1e30"),
    "float8": ("0.1", "-12345.678"),
    "text": ("'é\\\"'", "repeat('ü', 40)"),
    "varchar(40)": ("''", "repeat('z', 32)"),
    "bytea": ("'\\x00ff'", "''"),
    "date": ("'2024-02-29'", "'1582-10-15'"),
    "timestamp": ("'2024-02-29 12:00:00.000001'", "'1900-01-01'"),
    "timestamptz": ("'2024-02-29 12:00:00.123999+02'", "'9999-12-31 23:59:59.999999+00'"),
    "interval": ("'1 mon -2 days 03:04'", "'0'"),
    "jsonb": ("""'{"b": 1}'""", "'null'"),
    "int4[]": ("'{1,NULL}'", "'{}'"),
    "timestamptz[]": ("'{2024-01-01 00:00+00}'", "'{NULL}'"),
    "numeric(9,2)[]": ("'{1.5,2}'", "'{}'"),
    "date[]": ("'{2024-01-01,1999-01-01}'", "'{}'"),
}
_ROWS = [f"({', '.join(values[i] for values in _TYPES.values())}, {i})" for i in range(2)] + [
    f"({'NULL, ' * len(_TYPES)}2)"
]


def _actions(location: Path, version: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for line in log_file(location, version).read_text().splitlines():
        found |= json.loads(line)
    return found


def _is_ours(location: Path, version: int) -> bool:
    info = _actions(location, version)["commitInfo"]
    return str(info["engineInfo"]).startswith("replctl/")


# ---------------------------------------------------------------------------------------------
# With Spark


@pytest.fixture
def pair(spark_session: Session) -> tuple[Session, Path, Path]:
    """Return a session, and the locations of two equal tables.

    replctl appended to the first table, and Spark to the second.
    """
    columns = ", ".join(f"c{i} {type_}" for i, type_ in enumerate(_TYPES, start=1))
    locations = []
    for name, most in (("own", 1000), ("other", 0)):
        answer_of(spark_session, f"CREATE TABLE {name} ({columns}, id int PRIMARY KEY)")
        answer_of(spark_session, f"SET replctl.small_table_rows = {most}")
        rows = ", ".join(_ROWS)
        assert answer_of(spark_session, f"INSERT INTO {name} VALUES {rows}")[-1] == "INSERT 0 3"
        locations.append(table_location(spark_session, name))
    assert [_is_ours(location, 1) for location in locations] == [True, False]
    own, other = locations
    return spark_session, own, other


@pytest.mark.spark
def test_an_append_is_as_one_of_spark(pair: tuple[Session, Path, Path]) -> None:
    _session, own, other = pair
    ours, theirs = _actions(own, 1), _actions(other, 1)
    assert {*ours} == {*theirs}
    assert {*ours["add"]} == {*theirs["add"]}
    assert ours["domainMetadata"] == theirs["domainMetadata"]
    for name in ("baseRowId", "defaultRowCommitVersion", "partitionValues", "dataChange"):
        assert ours["add"][name] == theirs["add"][name]
    for name in ("operation", "operationParameters", "readVersion", "isBlindAppend"):
        assert ours["commitInfo"][name] == theirs["commitInfo"][name]
    assert {*ours["commitInfo"]} == {*theirs["commitInfo"]}


@pytest.mark.spark
def test_the_statistics_are_a_part_of_those_of_spark(pair: tuple[Session, Path, Path]) -> None:
    _session, own, other = pair
    ours, theirs = (json.loads(_actions(location, 1)["add"]["stats"]) for location in (own, other))
    assert ours["numRecords"] == theirs["numRecords"] == 3
    assert len(ours["minValues"]) >= 9
    for kind in ("minValues", "maxValues", "nullCount"):
        assert ours[kind] == {name: theirs[kind][name] for name in ours[kind]}


@pytest.mark.spark
def test_the_file_has_the_types_and_values_of_one_of_spark(
    pair: tuple[Session, Path, Path],
) -> None:
    _session, own, other = pair
    ours, theirs = (
        ParquetFile(location / _actions(location, 1)["add"]["path"]) for location in (own, other)
    )
    columns = range(len(theirs.schema.names))
    shown = [
        [(c.name, c.physical_type, str(c.logical_type), c.max_definition_level) for c in found]
        for found in ([file.schema.column(i) for i in columns] for file in (ours, theirs))
    ]
    assert shown[0] == shown[1]
    assert ours.read().to_pylist() == theirs.read().to_pylist()


@pytest.mark.spark
def test_all_read_the_same(pair: tuple[Session, Path, Path], engine: Engine) -> None:
    session, own, other = pair
    for most in (0, 1000):  # Spark and SQLite
        answer_of(session, f"SET replctl.small_table_rows = {most}")
        found = [
            answer_of(session, f"SELECT * FROM {name} ORDER BY id") for name in ("own", "other")
        ]
        assert found[0] == found[1]
        assert not found[0][0].startswith("ERROR")
    hidden = "id, _metadata.row_id, _metadata.row_commit_version"
    rows = [sorted(engine.rows(f"SELECT {hidden} FROM delta.`{at}`")) for at in (own, other)]
    assert rows[0] == rows[1]
    feeds = [
        engine.rows(
            f"SELECT id, _change_type, _commit_version FROM table_changes_by_path('{at}', 1, 1)"
            " ORDER BY id"
        )
        for at in (own, other)
    ]
    assert feeds[0] == feeds[1] == [(i, "insert", 1) for i in range(3)]
    by_delta_rs = [read_table(uri) for uri in DeltaTable(own).file_uris()]
    assert sum(table.num_rows for table in by_delta_rs) == 3


@pytest.mark.spark
def test_spark_skips_files_by_the_statistics(spark_session: Session, engine: Engine) -> None:
    columns = "id int, d date, x timestamptz, n numeric(5,2), v text"
    answer_of(spark_session, f"CREATE TABLE s ({columns})")
    for i in range(1, 4):
        row = f"{i}, '2024-01-0{i}', '2024-01-0{i} 00:00:00.0009+00', {i}.5, 'v{i}'"
        answer_of(spark_session, f"INSERT INTO s VALUES ({row})")
    location = table_location(spark_session, "s")
    for condition in (
        "id = 2",
        "d = DATE'2024-01-02'",
        "x = TIMESTAMP'2024-01-02 00:00:00.0009Z'",
        "n = 2.5",
        "v = 'v2'",
    ):
        found = engine.rows(
            f"SELECT id, _metadata.file_name FROM delta.`{location}` WHERE {condition}"
        )
        assert [row[0] for row in found] == [2], condition


@pytest.mark.spark
def test_spark_finds_zeros_of_both_signs_and_nan(spark_session: Session) -> None:
    answer_of(spark_session, "CREATE TABLE z (a float8, b float4)")
    answer_of(spark_session, "INSERT INTO z VALUES (0, '-0'), (0, '-0'), ('NaN', 'NaN'), (1, 1)")
    answer_of(spark_session, "INSERT INTO z VALUES ('-0', 0), ('-0', 0), ('NaN', 'NaN')")
    location = table_location(spark_session, "z")
    assert _is_ours(location, 1)
    assert _is_ours(location, 2)
    answer_of(spark_session, "SET replctl.small_table_rows = 0")
    for value, count in (("0", 4), ("-0", 4), ("NaN", 2), ("1", 1)):
        for name, type_ in (("a", "float8"), ("b", "float4")):
            query = f"SELECT count(*) FROM z WHERE {name} = '{value}'::{type_}"
            assert answer_of(spark_session, query)[0] == f"| {count}", query


@pytest.mark.spark
def test_spark_finds_the_checksums_right(spark_session: Session, engine: Engine) -> None:
    """Spark continues from replctl's checksums, and finds no fault when it checks them."""
    answer_of(spark_session, "CREATE TABLE c (id int PRIMARY KEY)")
    location = _location_after(spark_session, "INSERT INTO c VALUES (1)", "c")
    for statement in (
        "INSERT INTO c VALUES (2), (3)",
        "DELETE FROM c WHERE id = 2",
        "INSERT INTO c VALUES (4)",
        "UPDATE c SET id = 5 WHERE id = 1",
        "INSERT INTO c VALUES (6)",
    ):
        answer_of(spark_session, statement)
    assert [_is_ours(location, version) for version in range(1, 7)] == [
        *(True, True, True, True, False, True)
    ]
    written = json.loads(log_file(location, 6, "crc").read_text())
    files = [Path(uri) for uri in DeltaTable(location).file_uris()]
    size = sum(file.stat().st_size for file in files)
    assert (written["numFiles"], written["tableSizeBytes"]) == (len(files), size)
    assert {add["path"] for add in written["allFiles"]} == {file.name for file in files}
    (detail,) = engine.sql(f"DESCRIBE DETAIL delta.`{location}`").collect()
    assert (detail["numFiles"], detail["sizeInBytes"]) == (len(files), size)


@pytest.mark.spark
def test_spark_writes_the_checkpoints(spark_session: Session) -> None:
    answer_of(spark_session, "CREATE TABLE fifty (id int PRIMARY KEY)")
    for i in range(52):
        assert answer_of(spark_session, f"INSERT INTO fifty VALUES ({i})")[-1] == "INSERT 0 1"
    location = table_location(spark_session, "fifty")
    assert [v for v in range(1, 53) if not _is_ours(location, v)] == [50]
    assert log_file(location, 50, "checkpoint.parquet").exists()
    answer_of(spark_session, "SET replctl.small_table_rows = 0")
    assert answer_of(spark_session, "SELECT count(*) FROM fifty")[0] == "| 52"


# ---------------------------------------------------------------------------------------------
# Without Spark

_NO_SPARK = "ERROR XX000: this session has no Spark"


@pytest.fixture
def simple(session: Session) -> tuple[Session, Path]:
    """Return a session, and the location of a table with one row."""
    answer_of(session, "CREATE TABLE t (id int PRIMARY KEY, v text)")
    assert answer_of(session, "INSERT INTO t VALUES (1, 'a')") == ("INSERT 0 1",)
    return session, table_location(session, "t")


def test_statements_about_few_rows_need_no_spark(simple: tuple[Session, Path]) -> None:
    session, location = simple
    for statement, answer in {
        "INSERT INTO t (v, id) VALUES ('b', 2), (NULL, 3)": ("INSERT 0 2",),
        "INSERT INTO t VALUES (4, 'x') ON CONFLICT DO NOTHING": ("INSERT 0 1",),
        "INSERT INTO t VALUES (NULL, 'x')": (
            'ERROR 23502: null value in column "id" of relation "t" violates not-null constraint',
            "DETAIL: Failing row contains (null, x).",
        ),
        "INSERT INTO t VALUES (5, 'x'), (3, 'y'), (5, 'z'), (NULL, 'w')": (
            'ERROR 23505: duplicate key value violates unique constraint "t_pkey"',
            "DETAIL: Key (id)=(3) already exists.",
        ),
        "INSERT INTO t VALUES (5, 'x'), (6, 'y'), (5, 'z')": (
            'ERROR 23505: duplicate key value violates unique constraint "t_pkey"',
            "DETAIL: Key (id)=(5) already exists.",
        ),
        "SELECT id FROM t ORDER BY id DESC LIMIT 1": ("| 4", "SELECT 1"),
    }.items():
        assert answer_of(session, statement) == answer
    assert all(_is_ours(location, version) for version in range(1, 4))


def test_copied_rows_need_no_spark(simple: tuple[Session, Path]) -> None:
    session, location = simple
    session.on_copy_in = lambda: iter([b"2\tb\n3\t\\N\n"])
    assert answer_of(session, "COPY t FROM STDIN") == ("COPY 2",)
    assert _is_ours(location, 2)
    session.on_copy_in = lambda: iter([b"4\tb\n", b"\\N\tc\n"])
    assert answer_of(session, "COPY t FROM STDIN") == (
        'ERROR 23502: null value in column "id" of relation "t" violates not-null constraint',
        "DETAIL: Failing row contains (null, c).",
    )
    session.on_copy_in = lambda: iter([b"4\tb\n3\tc\n"])
    assert answer_of(session, "COPY t FROM STDIN") == (
        'ERROR 23505: duplicate key value violates unique constraint "t_pkey"',
        "DETAIL: Key (id)=(3) already exists.",
    )


def test_nothing_is_left_of_an_append_that_spark_has_to_do(simple: tuple[Session, Path]) -> None:
    session, location = simple
    before = sorted(location.iterdir())
    assert answer_of(session, "INSERT INTO t VALUES (2, 'b'), (3, 'c')")[0] == "INSERT 0 2"
    log_file(location, 2, "crc").unlink()
    assert answer_of(session, "INSERT INTO t VALUES (4, 'd')")[0] == _NO_SPARK
    assert len(sorted(location.iterdir())) == len(before) + 1


_FEATURES = ["appendOnly", "invariants", "rowTracking", "domainMetadata", "changeDataFeed"]
_LEAF = Leaf(
    1, "t", TableSource("", (TableColumn(1, "int4", -1, "id"), TableColumn(2, "text", -1, "v")))
)
_ID, _V = (
    {"name": name, "type": type_, "nullable": True, "metadata": {}}
    for name, type_ in (("id", "integer"), ("v", "string"))
)


@pytest.mark.parametrize(
    ("protocol", "metadata", "second", "is_simple"),
    [
        ({}, {}, {}, True),
        ({"minReaderVersion": 1, "minWriterVersion": 2, "writerFeatures": None}, {}, {}, True),
        ({}, {"configuration": {"delta.appendOnly": "true", "mine": "x"}}, {}, True),
        ({}, {}, {"metadata": {"comment": "x"}}, True),
        ({"writerFeatures": [*_FEATURES, "checkConstraints"]}, {}, {}, False),
        ({"writerFeatures": [*_FEATURES, "unheardOf"]}, {}, {}, False),
        ({"minWriterVersion": 4, "writerFeatures": None}, {}, {}, False),
        ({"minReaderVersion": 2}, {}, {}, False),
        ({}, {"configuration": {"delta.checkpointInterval": "3"}}, {}, False),
        ({}, {"configuration": {"delta.autoOptimize.autoCompact": "true"}}, {}, False),
        ({}, {"partitionColumns": ["v"]}, {}, False),
        ({}, {}, {"nullable": False}, False),
        ({}, {}, {"metadata": {"CURRENT_DEFAULT": "'x'"}}, False),
        ({}, {}, {"metadata": {"delta.invariants": "{}"}}, False),
        ({}, {}, {"type": "integer"}, False),
        ({}, {}, {"name": "V"}, False),
    ],
)
def test_which_tables_are_simple(
    protocol: Mapping[str, object],
    metadata: Mapping[str, object],
    second: Mapping[str, object],
    is_simple: bool,
) -> None:
    schema = {"type": "struct", "fields": [_ID, {**_V, **second}]}
    state = TableState(
        1,
        None,
        {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": _FEATURES, **protocol},
        {"schemaString": json.dumps(schema), "partitionColumns": [], **metadata},
    )
    commit = SmallCommit(TableFolder("", is_local=True), state, {}, CommitNote(""))
    has_types = commit.has_types(_LEAF.source.columns)
    assert (small_commit.is_simple(state) and has_types) == is_simple


_DOMAIN = {"domain": "delta.rowTracking", "removed": False}


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", '{"numFiles": 0}', "\udcff", "[" * 100_000, None),
        {"domainMetadata": None},
        {"numFiles": True},
        {"allFiles": {}},
        {"allFiles": [1]},
        {"allFiles": [{"path": "x"}]},
        {"setTransactions": [{"appId": "a"}]},
        {"protocol": {}},
        {"domainMetadata": [{**_DOMAIN, "configuration": "{}"}]},
        {"domainMetadata": [{**_DOMAIN, "configuration": '{"rowIdHighWaterMark":-9}'}]},
    ],
)
def test_spark_appends_if_there_is_no_usable_checksum(
    simple: tuple[Session, Path], text: str | Mapping[str, object] | None
) -> None:
    session, location = simple
    file = log_file(location, 1, "crc")
    if isinstance(text, Mapping):
        text = json.dumps({**json.loads(file.read_text()), **text})
    file.unlink() if text is None else file.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert answer_of(session, "INSERT INTO t VALUES (2, 'b')")[0] == _NO_SPARK


@pytest.mark.parametrize(
    ("own", "of_checksum", "is_other"),
    [("a", "b", True), ("a", "a", False), (None, "b", True), ("a", None, False)],
)
def test_spark_appends_if_the_checksum_is_of_another_commit(
    simple: tuple[Session, Path], own: str | None, of_checksum: str | None, *, is_other: bool
) -> None:
    """A removed version with the same number may have left the checksum.  Its greatest row id is
    wrong."""
    session, location = simple
    info = {"operation": "OPTIMIZE", "txnId": own}
    log_file(location, 2).write_text(json.dumps({"commitInfo": info}))
    checksum = json.loads(log_file(location, 1, "crc").read_text())
    log_file(location, 2, "crc").write_text(json.dumps({**checksum, "txnId": of_checksum}))
    found = answer_of(session, "INSERT INTO t VALUES (2, 'b')")[0]
    assert found == (_NO_SPARK if is_other else "INSERT 0 1")


def test_spark_appends_if_the_checksum_cannot_be_read(simple: tuple[Session, Path]) -> None:
    session, location = simple
    file = log_file(location, 1, "crc")
    file.unlink()
    file.mkdir()
    assert answer_of(session, "INSERT INTO t VALUES (2, 'b')")[0] == _NO_SPARK


def test_a_checksum_has_only_parts_that_are_right(simple: tuple[Session, Path]) -> None:
    """Other parts of the previous checksum, such as histograms of the files, are outdated."""
    session, location = simple
    file = log_file(location, 1, "crc")
    before = json.loads(file.read_text())
    others = {"numDeletedRecordsOpt": 0, "fileSizeHistogram": {}, "inCommitTimestampOpt": 7}
    others |= {"histogramOpt": {"sortedBinBoundaries": [0], "fileCounts": [1], "totalBytes": [9]}}
    file.write_text(json.dumps({**before, **others, "allFiles": None}))
    assert answer_of(session, "INSERT INTO t VALUES (2, 'b')") == ("INSERT 0 1",)
    after = json.loads(log_file(location, 2, "crc").read_text())
    assert {*after} == {*before, "numDeletedRecordsOpt"} - {"allFiles"}
    assert after["numFiles"] == 2


def test_a_checksum_of_a_removed_version_is_replaced(session: Session) -> None:
    answer_of(session, "CREATE TABLE t (id int)")
    location = _location_after(session, "INSERT INTO t VALUES (1)", "t")
    stale = log_file(location, 1, "crc").read_text()
    log_file(location, 2, "crc").write_text(stale)
    check_sums = [location / "_delta_log" / f".{2:020d}.{ending}.crc" for ending in ("json", "crc")]
    for check_sum in check_sums:
        check_sum.write_bytes(b"crc")
    assert answer_of(session, "INSERT INTO t VALUES (2)") == ("INSERT 0 1",)
    assert json.loads(log_file(location, 2, "crc").read_text())["numFiles"] == 2
    assert not any(check_sum.exists() for check_sum in check_sums)


def test_rows_are_numbered_even_if_row_tracking_is_off(simple: tuple[Session, Path]) -> None:
    """The feature of the table requires row ids, even if the property is off."""
    session, location = simple
    metadata = _actions(location, 0)["metaData"]
    metadata["configuration"]["delta.enableRowTracking"] = "false"
    commit = [{"commitInfo": {"operation": "SET TBLPROPERTIES"}}, {"metaData": metadata}]
    log_file(location, 2).write_text("\n".join(map(json.dumps, commit)))
    checksum = json.loads(log_file(location, 1, "crc").read_text())
    checksum |= {"metadata": metadata, "txnId": None}
    log_file(location, 2, "crc").write_text(json.dumps(checksum))
    assert answer_of(session, "INSERT INTO t VALUES (2, 'b'), (3, 'c')") == ("INSERT 0 2",)
    written = _actions(location, 3)
    assert (written["add"]["baseRowId"], written["add"]["defaultRowCommitVersion"]) == (1, 3)
    assert json.loads(written["domainMetadata"]["configuration"])["rowIdHighWaterMark"] == 2


def test_new_files_have_the_permissions_of_the_version_before(
    simple: tuple[Session, Path],
) -> None:
    """Otherwise other users could not read a version of a table that they may read."""
    session, location = simple
    log_file(location, 1).chmod(0o664)
    before = {*location.rglob("*")}
    mask = os.umask(0o077)
    try:
        assert answer_of(session, "INSERT INTO t VALUES (2, 'b')") == ("INSERT 0 1",)
    finally:
        os.umask(mask)
    written = {*location.rglob("*")} - before
    assert len(written) == 3
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o664}


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("date", "'1582-10-14'"),
        ("timestamp", "'1899-12-31 23:59:59'"),
        ("timestamptz[]", "'{1800-01-01 00:00+00}'"),
        ("date", "'-infinity'"),
    ],
)
def test_spark_writes_values_that_readers_could_take_for_others(
    session: Session, type_: str, value: str
) -> None:
    answer_of(session, f"CREATE TABLE old (v {type_})")
    assert answer_of(session, f"INSERT INTO old VALUES ({value})")[0] == _NO_SPARK


def test_spark_appends_if_it_is_set_so(session: Session) -> None:
    answer_of(session, "CREATE TABLE t (id int)")
    answer_of(session, "SET replctl.small_table_rows = 1")
    assert answer_of(session, "INSERT INTO t VALUES (1)") == ("INSERT 0 1",)
    assert answer_of(session, "INSERT INTO t VALUES (2), (3)")[0] == _NO_SPARK


def test_another_writer_may_come_first(session: Session) -> None:
    answer_of(session, "CREATE TABLE t (id int)")
    answer_of(session, "INSERT INTO t VALUES (1)")
    location = table_location(session, "t")
    with another_first(location, 2) as others:
        assert answer_of(session, "INSERT INTO t VALUES (2)") == ("INSERT 0 1",)
    assert others
    assert _actions(location, 3)["add"]["baseRowId"] == 1
    assert _actions(location, 3)["add"]["defaultRowCommitVersion"] == 3
    assert len(list(location.glob("*.parquet"))) == 2


def test_a_step_is_not_repeated() -> None:
    checksum = {"setTransactions": [{"appId": "a", "version": 3}]}
    repeated = {
        (application, step): small_commit.is_repeated(checksum, CommitNote("", application, step))
        for application in ("a", "b", None)
        for step in (2, 3, 4)
    }
    assert [key for key, is_repeated in repeated.items() if is_repeated] == [("a", 2), ("a", 3)]


def _location_after(session: Session, statement: str, name: str) -> Path:
    answer_of(session, statement)
    return table_location(session, name)


@pytest.mark.parametrize(("point", "is_done"), [("after-file", False), ("after-version", True)])
def test_an_append_is_done_as_a_whole_or_not_at_all(
    simple: tuple[Session, Path], point: str, *, is_done: bool
) -> None:
    session, location = simple
    killed = subprocess.run(
        [sys.executable, "-m", "replctl", "-X", "-c", "INSERT INTO t VALUES (2, 'b')"],
        env={
            **os.environ,
            "REPLCTL_HOME": str(session.cluster.path),
            "REPLCTL_INJECTION_POINT": f"small.{point}:kill",
        },
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(list(location.glob("*.parquet"))) == 2
    expected = ("| 1", "| 2") if is_done else ("| 1",)
    assert answer_of(session, "SELECT id FROM t ORDER BY id")[:-1] == expected
    # Spark writes after a version without checksum
    following = _NO_SPARK if is_done else "INSERT 0 1"
    assert answer_of(session, "INSERT INTO t VALUES (3, 'c')")[0] == following
