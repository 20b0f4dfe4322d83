"""The locations of tables, and the effect of ALTER TABLE on existing rows."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from sqlalchemy import event

from replctl import spark
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.relation_kind import RelKind
from replctl.errors import (
    DatatypeMismatch,
    DuplicateObject,
    DuplicateTable,
    FeatureNotSupported,
    InvalidObjectDefinition,
    InvalidSchemaName,
    NotNullViolation,
    ObjectNotInPrerequisiteState,
    PostgresError,
    UndefinedColumn,
    UndefinedTable,
    UniqueViolation,
)
from replctl.execute import execute
from replctl.lake.table_folder import TableFolder
from replctl.session import Session


def _run(session: Session, *statements: str) -> list[list[str | None]]:
    """Return the rows of the last statement."""
    rows: list[list[str | None]] = []
    for statement in statements:
        for result in execute(session, statement):
            rows = [list(row) for row in result.rows]
    return rows


def test_column_names_are_made_fit_for_storage(session: Session) -> None:
    _run(session, 'create table t ("A b" int, "a_b" int, "a;b" int, _ int)')
    _run(session, 'alter table t drop column "a_b"', 'alter table t add column "a_b" int')
    with session.read() as catalog:
        from replctl.catalog.pg_class import load_relations, relation_oids

        (relation,) = load_relations(catalog, relation_oids(catalog, [RelKind.TABLE])).values()
    assert relation.storage is not None
    names = [relation.storage.columns[c.attnum].name for c in relation.columns]
    assert names == ["A_b", "a_b_2", "__1", "a_b_3"]


def test_each_column_of_a_table_takes_as_many_queries(session: Session) -> None:
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_others: Any) -> None:
        statements.append(statement)

    counts = []
    event.listen(session.cluster.engine, "before_cursor_execute", note)
    for count in (1, 50, 100, 150):
        statements.clear()
        _run(session, f"create table t{count} ({', '.join(f'c{i} int' for i in range(count))})")
        counts.append(len(statements))
    event.remove(session.cluster.engine, "before_cursor_execute", note)
    assert counts[3] - counts[2] == counts[2] - counts[1] == 50 * 2  # attribute, name in storage


def test_ddl_without_rows_needs_no_spark(session: Session) -> None:
    _run(
        session,
        "create table p (a int primary key, b text) partition by list (a)",
        "create table p1 partition of p for values in (1)",
        "create table d partition of p default",
        "create table p2 partition of p for values in (2)",
        "alter table p alter column b set not null, add check (a > 0), add column c int default 5",
        "alter table p detach partition p1",
        "alter table p attach partition p1 for values in (1)",
        "drop table p",
    )


def _foreign_table(path: Path) -> str:
    table = pa.table({"id": pa.array([1, 2], pa.int32()), "v": [1.5, None]})
    write_deltalake(path, table)
    return str(path)


def test_adopting_needs_a_table(session: Session, tmp_path: Path) -> None:
    with pytest.raises(UndefinedTable):
        _run(session, f"create table t using delta location '{tmp_path}/nothing'")


def test_an_adopted_table_has_no_partitions(session: Session) -> None:
    with pytest.raises(FeatureNotSupported):
        _run(session, "create table t (a int) partition by list (a) using delta location '/x'")


def test_a_new_table_needs_an_empty_directory(session: Session, tmp_path: Path) -> None:
    for name in ("absent", "empty/", "full", "file", "linked"):
        if name in ("empty/", "full"):
            (tmp_path / name).mkdir()
    (tmp_path / "full/letter.txt").write_text("x")
    (tmp_path / "file").write_text("x")
    (tmp_path / "linked").symlink_to(tmp_path / "full")
    create = "create table {} (a int) using delta location '{}'"
    places = [*(tmp_path / name for name in ("full", "file", "linked")), "/", "file:///"]
    for place in places:
        with pytest.raises(ObjectNotInPrerequisiteState, match="exists but is not empty"):
            _run(session, create.format("t", place))
    _run(session, create.format("t1", tmp_path / "absent"))
    _run(session, create.format("t2", f"{tmp_path}/empty/"))
    for taken in ("absent", "empty", "x/../absent", "absent/"):
        with pytest.raises(DuplicateObject, match="is relation"):
            _run(session, create.format("t", f"{tmp_path}/{taken}"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "absent",
        "cluster",
        "empty",
        "file",
        "full",
        "linked",
    ]


def test_a_table_lies_in_no_other_directory(session: Session, tmp_path: Path) -> None:
    _foreign_table(tmp_path / "foreign")
    open_cluster(tmp_path / "other").close()
    create = "create table t (a int) using delta location '{}'"
    adopt = "create table t using delta location '{}'"
    (tmp_path / "link").symlink_to(tmp_path / "foreign")
    cases = [
        (f"{session.cluster.path}/lake/t", "of the cluster"),
        (f"{tmp_path}/other/base/5/1", "of the cluster"),
        (f"{tmp_path}/other", "of the cluster|not empty"),
        (f"{tmp_path}/foreign/x/y", "of the Delta table"),
        (f"{tmp_path}/link/x", "of the Delta table"),
        (f"{tmp_path}/new/x", 'of table "n"'),
    ]
    _run(session, f"create table n (a int) using delta location '{tmp_path}/new'")
    for place, message in cases:
        with pytest.raises((InvalidObjectDefinition, ObjectNotInPrerequisiteState), match=message):
            _run(session, create.format(place))
    _foreign_table(tmp_path / "foreign/inner")
    with pytest.raises(InvalidObjectDefinition, match="of the Delta table"):
        _run(session, adopt.format(f"{tmp_path}/foreign/inner"))


class _Engine:
    """A stand-in for Spark, which finds no row or one row that violates a constraint."""

    def __init__(self, *rows: list[str | None]) -> None:
        self.rows = list(rows)
        self.looked = 0

    def fetch(
        self, query: str, columns: object, max_kilobytes: int | None = None
    ) -> list[list[str | None]]:
        self.looked += 1
        return self.rows


def _set_properties(
    _engine: object, location: str, properties: dict[str, str], _note: object
) -> None:
    """Set properties as Spark's job does, without Spark."""
    DeltaTable(location).alter.set_table_properties(properties)


def _with_engine(session: Session, engine: _Engine) -> list[str]:
    """Let an engine read all tables, and return the list of notices.

    Later notices of the session are added to the list.
    """
    _run(session, "set replctl.small_table_rows = 0")
    session.engine = lambda: cast(Any, engine)
    told: list[str] = []
    session.on_notice = lambda notice: told.append(f"{notice.severity}: {notice.message}")
    return told


def test_a_refused_adoption_writes_nothing(session: Session, tmp_path: Path) -> None:
    nested = pa.table({"id": pa.array([1], pa.int32()), "s": [{"a": 1}]})
    write_deltalake(tmp_path / "nested", nested)
    plain = _foreign_table(tmp_path / "plain")
    _run(session, "create table taken (a int)")
    engine = _Engine([None])
    told = _with_engine(session, engine)
    for statement, error in (
        (f"t (id int, s text) using delta location '{tmp_path}/nested'", DatatypeMismatch),
        (f"t (primary key (id)) using delta location '{plain}'", NotNullViolation),
        (f"t (primary key (nothing)) using delta location '{plain}'", UndefinedColumn),
        (f"taken using delta location '{plain}'", DuplicateTable),
        (f"nowhere.t using delta location '{plain}'", InvalidSchemaName),
    ):
        with pytest.raises(error):
            _run(session, f"create table {statement}")
    assert DeltaTable(plain).version() == DeltaTable(tmp_path / "nested").version() == 0
    engine.rows = [["1"]]
    with pytest.raises(UniqueViolation) as caught:
        _run(session, f"create table t (primary key (id)) using delta location '{plain}'")
    assert caught.value.detail == "Key (id)=(1) is duplicated."
    assert told == []
    _run(session, f"create table if not exists taken using delta location '{plain}'")
    assert DeltaTable(plain).version() == 0


def _contents(location: str) -> dict[str, tuple[int, bytes]]:
    """Return the name, time and content of each file."""
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes())
        for path in Path(location).rglob("*")
        if path.is_file()
    }


def test_an_adoption_only_reads(session: Session, tmp_path: Path) -> None:
    location = _foreign_table(tmp_path / "plain")
    before = _contents(location)
    engine = _Engine()
    told = _with_engine(session, engine)
    _run(session, f"create table t (primary key (id)) using delta location '{location}'")
    assert engine.looked == 1  # one query finds NULLs and duplicates
    _run(session, "create publication p for table t")
    assert told == []
    _run(session, "drop table t")
    assert told == [f'NOTICE: files of table "t" remain in "{location}"']
    assert _contents(location) == before


def test_one_table_is_one_relation(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = _foreign_table(tmp_path / "a b")
    (tmp_path / "link").symlink_to(location)
    monkeypatch.chdir(tmp_path)
    _run(session, f"create table first using delta location '{location}'")
    encoded = location.replace(" ", "%20")
    for spelling in (
        location, f"{location}/", f"{tmp_path}/./a b//", "a b", "../" + tmp_path.name + "/a b",
        f"file:{encoded}", f"file://{encoded}/", f"FILE:///{encoded}", "file:a%20b",
        f"{tmp_path}/link", f"file:{tmp_path}/link",
    ):  # fmt: skip
        with pytest.raises(DuplicateObject) as caught:
            _run(session, f"create table second using delta location '{spelling}'")
        assert caught.value.message.endswith('is relation "first" already'), spelling
    _run(session, "create database d")
    other = Session.connect(session.cluster, "d", "postgres")
    _run(other, f"create table first using delta location 'file:{tmp_path}/link/'")
    shown = _run(other, "select pg_relation_filepath('first')")
    assert shown == [[f"{tmp_path}/link"]]  # Spark would not decode a path after file:


@pytest.mark.parametrize(
    "spelling", ["s3://b/t", "s3a://b/t", "s3n://b/t/", "S3A://b/t//", "s3://b/t/"]
)
def test_schemes_of_one_storage_are_one(spelling: str) -> None:
    assert TableFolder.of(spelling).canonical() == "s3://b/t"


def test_the_owner_is_trusted_about_a_key(session: Session, tmp_path: Path) -> None:
    location = _foreign_table(tmp_path / "plain")
    place = f"using delta location '{location}'"
    engine = _Engine(["1"])
    _with_engine(session, engine)
    _run(session, f"create table t (primary key (id) not enforced) {place}")
    assert engine.looked == 0
    keys = "select conname from pg_constraint where conrelid = 't'::regclass and contype = 'p'"
    assert _run(session, keys) == [["t_pkey"]]
    _run(session, "drop table t")
    for statement, message in (
        ("create table u (a int, primary key (a) not enforced)", "where a table is adopted"),
        ("create table u (a int, check (a > 0) not enforced)", "cannot be marked NOT ENFORCED"),
        ("create table u (a int, primary key (a) not there)", 'at or near "there"'),
    ):
        with pytest.raises(PostgresError, match=message):
            _run(session, statement)


def test_the_owner_switches_the_change_feed_on(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.jobs, "set_properties", _set_properties)
    location = _foreign_table(tmp_path / "plain")
    told = _with_engine(session, _Engine())
    _run(session, f"create table t using delta location '{location}'")
    _run(session, "alter table t set (delta.enableChangeDataFeed = true, fillfactor = 70)")
    changed = f'of the Delta table at "{location}" is changed from'
    assert told == [
        f'NOTICE: property "delta.enableChangeDataFeed" {changed} unset to true',
        f'NOTICE: property "minWriterVersion" {changed} 2 to 4',
    ]
    told.clear()
    _run(session, "alter table t set (delta.enablechangedatafeed)")  # already on
    assert (told, DeltaTable(location).version()) == ([], 1)
    _run(session, "alter table t set (delta.enableChangeDataFeed = off)")
    assert told == [f'NOTICE: property "delta.enableChangeDataFeed" {changed} true to false']
    options = _run(session, "select reloptions from pg_class where relname = 't'")
    assert options == [["{fillfactor=70}"]]


@pytest.mark.parametrize(
    ("table", "action", "sqlstate"),
    [
        ("own", "set (delta.enableChangeDataFeed = true)", "42809"),
        ("t", "set (delta.appendOnly = true)", "22023"),
        ("t", "set (delta.enableChangeDataFeed = maybe)", "22023"),
        ("t", "set (delta.enableChangeDataFeed, delta.enablechangedatafeed)", "22023"),
        ("t", "reset (delta.enableChangeDataFeed)", "42601"),
    ],
)
def test_other_properties_of_delta_are_refused(
    session: Session, tmp_path: Path, table: str, action: str, sqlstate: str
) -> None:
    location = _foreign_table(tmp_path / "plain")
    _run(session, f"create table t using delta location '{location}'", "create table own (a int)")
    with pytest.raises(PostgresError) as caught:
        _run(session, f"alter table {table} {action}")
    assert caught.value.sqlstate == sqlstate
    assert DeltaTable(location).version() == 0


def test_where_the_files_of_a_dropped_database_are(session: Session, tmp_path: Path) -> None:
    location = _foreign_table(tmp_path / "plain")
    told = _with_engine(session, _Engine())
    _run(session, "create database d")
    other = Session.connect(session.cluster, "d", "postgres", engine=session.engine)
    _run(other, f"create table t using delta location '{location}'")
    told.clear()
    _run(session, "drop database d")
    assert told == [f'NOTICE: files of table "t" remain in "{location}"']


@pytest.mark.spark
def test_adopts_a_table_of_others(spark_session: Session, tmp_path: Path) -> None:
    location = _foreign_table(tmp_path / "foreign")
    _run(spark_session, f"create table t (primary key (id)) using delta location '{location}'")
    assert _run(spark_session, "select pg_relation_filepath('t')") == [[location]]
    assert _run(spark_session, "select * from t order by id") == [["1", "1.5"], ["2", None]]
    _run(spark_session, "insert into t values (3, 3)")
    with pytest.raises(UniqueViolation):
        _run(spark_session, "insert into t values (3, 4)")
    _run(spark_session, "drop table t")
    assert (Path(location) / "_delta_log").exists()


@pytest.mark.spark
def test_rows_keep_the_default_of_a_column_added_later(spark_session: Session) -> None:
    _run(
        spark_session,
        "create table t (a int)",
        "insert into t values (1)",
        "alter table t add column b int default 7, add column c text",
    )
    assert _run(spark_session, "select * from t") == [["1", "7", None]]
    _run(spark_session, "alter table t alter column b set default 8", "insert into t values (2)")
    assert _run(spark_session, "select * from t order by a") == [
        ["1", "7", None],
        ["2", "8", None],
    ]
    _run(
        spark_session,
        "alter table t drop column b",
        "alter table t add column b text default 'new'",
        "update t set c = 'x' where a = 1",
    )
    assert _run(spark_session, "select * from t order by a") == [
        ["1", "x", "new"],
        ["2", None, "new"],
    ]


@pytest.mark.spark
def test_a_table_without_deletion_vectors(spark_session: Session) -> None:
    rows = "select i, 'row' from generate_series(1, 20) i"
    for name, options in (("plain", ""), ("readable", " with (deletion_vectors = off)")):
        _run(
            spark_session,
            f"create table {name} (id int primary key, v text){options}",
            f"insert into {name} {rows}",
            f"update {name} set v = 'x' where id = 5",
            f"delete from {name} where id = 6",
        )
        found = _run(spark_session, f"select count(*), count(*) filter (where v = 'x') from {name}")
        assert found == [["19", "1"]]
    assert _has_deletion_vectors(spark_session, "plain")
    assert not _has_deletion_vectors(spark_session, "readable")
    with pytest.raises(FeatureNotSupported) as raised:
        _run(spark_session, "alter table readable set (deletion_vectors = on)")
    assert raised.value.hint == "Make a new table with this option, and copy the rows."
    _run(
        spark_session,
        "create table again (like readable including all) with (deletion_vectors = on)",
        "insert into again select * from readable",
        "delete from again where id = 7",
    )
    assert _has_deletion_vectors(spark_session, "again")
    _run(spark_session, "alter table readable set (fillfactor = 70)")


def _has_deletion_vectors(session: Session, table: str) -> bool:
    ((location,),) = _run(session, f"select pg_relation_filepath('{table}')")
    log = Path(str(location), "_delta_log")
    return any('"deletionVector":{' in path.read_text() for path in log.glob("*.json"))


@pytest.mark.spark
def test_vacuum_full_clusters_by_the_key(spark_session: Session) -> None:
    _run(
        spark_session,
        "create table t (v text, id int primary key)",
        *(
            f"insert into t select 'row', (i * 7919) % 1000 from generate_series({low}, {high}) i"
            for low, high in ((1, 500), (501, 999))
        ),
    )
    conf = spark_session.engine().session.conf
    before = conf.get(_MAX_FILE_SIZE)
    assert before is not None
    conf.set(_MAX_FILE_SIZE, "2000")
    try:
        _run(spark_session, "vacuum full t")
    finally:
        conf.set(_MAX_FILE_SIZE, before)
    ((location,),) = _run(spark_session, "select pg_relation_filepath('t')")
    ranges = sorted(_key_ranges(Path(str(location))))
    assert len(ranges) > 1
    assert all(one[1] < next_[0] for one, next_ in pairwise(ranges))
    assert _run(spark_session, "select count(*), sum(id) from t") == [["999", "499500"]]


_MAX_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"


def _key_ranges(location: Path) -> list[tuple[int, int]]:
    """Return the smallest and the largest id of each file that the newest version has added."""
    entry = max((location / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in entry.read_text("utf-8").splitlines()]
    stats = [json.loads(action["add"]["stats"]) for action in actions if "add" in action]
    return [(item["minValues"]["id"], item["maxValues"]["id"]) for item in stats]
