"""Timestamps in partition columns are instants only if their texts have a zone, or if the owner
names one, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from deltalake import DeltaTable
from fix_cluster import relation_of
from fix_psql import Psql
from golden_script import answer_of
from owners_log import OwnersLog, field

from replctl.errors import FeatureNotSupported
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_read import enter_foreign_versions, table_source
from replctl.session import Session
from replctl.spark import PartitionZone, column_sql

_BARE, _OTHER_BARE = "2024-07-01 12:00:00", "2024-07-01 14:00:00"
_ZONED = "2024-07-01T12:00:00.000000Z"


def _write(folder: Path, texts: Sequence[str | None], kind: str = "timestamp") -> None:
    """Write a version that adds a file for each text of the partition column."""
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    version = len(list(log.glob("*.json")))
    fields = [
        {"name": "id", "type": "integer", "nullable": True, "metadata": {}},
        {
            "name": "At",
            "type": kind,
            "nullable": True,
            "metadata": {"delta.columnMapping.physicalName": "col-1"},
        },
    ]
    metadata = {
        "id": "an id",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["At"],
        "configuration": {},
    }
    actions: list[object] = [
        {
            "add": {
                "path": f"{version}-{number}.parquet",
                "partitionValues": {"col-1": text},
                "size": 1,
                "modificationTime": 1,
                "dataChange": True,
            }
        }
        for number, text in enumerate(texts)
    ]
    if version == 0:
        actions = [
            {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
            {"metaData": metadata},
            *actions,
        ]
    (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, actions)))


def _adopt(session: Session, folder: Path, zone: str | None = None) -> tuple[str, ...]:
    options = "" if zone is None else f" with (partition_timezone = '{zone}')"
    return answer_of(session, f"create table t using delta location '{folder}'{options}")


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        ([], "timestamp"),
        ([None, _ZONED, "2024-07-01 12:00:00+02:00"], "timestamp"),
        ([_BARE], "timestamp_ntz"),
        ([_BARE], "string"),
        (["2024-07-01"], "date"),
    ],
)
def test_values_that_need_no_zone(
    session: Session, tmp_path: Path, texts: list[str | None], kind: str
) -> None:
    _write(tmp_path, texts, kind)
    assert _adopt(session, tmp_path) == ("CREATE TABLE",)


def _needed(table: str, *, stored: str = "") -> tuple[str, ...]:
    return (
        'ERROR 0A000: partition column "At" of table "public.t" has values without a time zone',
        f'DETAIL: {stored}One of them is "{_BARE}", in the time zone of the session that wrote it.',
        "HINT: If the session that wrote the values used UTC, adopt the table with WITH"
        " (partition_timezone = 'UTC'), or use"
        f" ALTER TABLE {table} SET (partition_timezone = 'UTC'). Otherwise use the session's time"
        " zone instead of 'UTC'.",
    )


def test_values_that_need_a_zone_at_adoption(session: Session, tmp_path: Path) -> None:
    _write(tmp_path, [_ZONED, _BARE])
    assert _adopt(session, tmp_path) == _needed("public.t")
    assert _adopt(session, tmp_path, "UTC") == ("CREATE TABLE",)


def test_values_that_need_a_zone_later(session: Session, tmp_path: Path) -> None:
    _write(tmp_path, [_ZONED])
    assert _adopt(session, tmp_path) == ("CREATE TABLE",)
    _write(tmp_path, [_BARE])
    change = "alter table t replica identity full"
    place = f'Table "public.t" of database "postgres" is stored at "{tmp_path}". '
    assert answer_of(session, "select * from t") == _needed("public.t", stored=place)
    answer_of(session, change)
    assert answer_of(session, "alter table t set (partition_timezone = 'UTC')") == ("ALTER TABLE",)
    assert "without a time zone" not in answer_of(session, "select * from t")[0]


def test_values_that_cannot_be_distinguished(session: Session, tmp_path: Path) -> None:
    _write(tmp_path, [_BARE, "2024-07-01T14:00:00+02:00"])
    assert _adopt(session, tmp_path, "Europe/Zurich") == (
        'ERROR 0A000: partition column "At" of table "public.t" has values that cannot be'
        " distinguished",
        f'DETAIL: They are "{_BARE}", without a time zone, and "2024-07-01T14:00:00+02:00".',
    )
    assert _adopt(session, tmp_path, "UTC") == ("CREATE TABLE",)


@pytest.mark.parametrize("zone", ["nowhere", "3", ""])
def test_zones_that_there_are_not(session: Session, tmp_path: Path, zone: str) -> None:
    _write(tmp_path, [_BARE])
    error = f'ERROR 22023: invalid value for parameter "partition_timezone": "{zone}"'
    assert _adopt(session, tmp_path, zone) == (error,)


def test_only_adopted_tables_have_a_zone(session: Session) -> None:
    answer = answer_of(session, "create table o (a int) with (partition_timezone = 'UTC')")
    assert answer[0] == (
        'ERROR 42809: storage parameter "partition_timezone" is only for adopted tables'
    )


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("UTC", None),
        ("Etc/GMT", None),
        ("europe/zurich", PartitionZone("Europe/Zurich", (_ZONED,))),
    ],
)
def test_values_are_moved_when_they_are_read(
    session: Session, tmp_path: Path, zone: str, expected: PartitionZone | None
) -> None:
    _write(tmp_path, [_OTHER_BARE, _ZONED, None])
    assert _adopt(session, tmp_path, zone) == ("CREATE TABLE",)
    source = table_source(relation_of(session))
    assert [column.zone for column in source.columns] == [None, expected]
    assert source.version == (None if expected is None else 0)
    moved = "to_utc_timestamp(`At`, 'Europe/Zurich')"
    zoned = f"CASE WHEN `At` IN (CAST('{_ZONED}' AS TIMESTAMP)) THEN `At` ELSE {moved} END"
    assert column_sql(source.column(2)) == ("`At`" if expected is None else zoned)


def test_rows_are_not_written_where_values_are_moved(session: Session, tmp_path: Path) -> None:
    _write(tmp_path, [_BARE])
    assert _adopt(session, tmp_path, "Europe/Zurich") == ("CREATE TABLE",)
    assert answer_of(session, "delete from t") == (
        'ERROR 0A000: cannot write table "t", whose partition_timezone is "Europe/Zurich"',
        "DETAIL: Delta would write the rows of a changed file with other partition values.",
    )


def test_a_table_that_is_partitioned_by_bytes_is_only_read(
    session: Session, tmp_path: Path
) -> None:
    owner = OwnersLog(tmp_path / "t", is_mapped=False)
    fields = [field("id", type_="integer"), field("b", type_="binary")]
    owner.commit(fields, partitioned_by=["b"], added=[{"b": "x"}])
    assert _adopt(session, tmp_path / "t") == ("CREATE TABLE",)
    assert answer_of(session, "delete from t") == (
        'ERROR 0A000: cannot write table "t", which is partitioned by the binary column "b"',
        "DETAIL: Spark writes partition values as texts. An empty value becomes NULL, and bytes"
        " that are not UTF-8 change.",
    )


def test_a_dump_names_the_zone(psql: Psql, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    _write(folder, [_BARE])
    place = f"using delta location '{folder}' with (partition_timezone = 'Europe/Zurich')"
    assert psql("-c", f"create table t {place}").stderr == ""
    script = psql("dump", "-s").stdout
    own, _else, others = script.partition("\\else\n")
    assert "WITH (partition_timezone='Europe/Zurich');" in own
    assert "partition_timezone" not in others
    assert psql("-c", "drop table t").exit_code == 0
    assert psql("-v", "ON_ERROR_STOP=1", "-q", script=script).stderr == ""
    assert psql("dump", "-s").stdout == script


def _owned(folder: Path, *changes: tuple[str, bool]) -> OwnersLog:
    """Write a table with a value without a zone in each version that is partitioned.

    Args:
        changes: the name of the column in each version, and whether it is a partition column.
    """
    owner = OwnersLog(folder)
    for name, is_partition in changes:
        columns = [field("id", "c1", "integer"), field(name, "c2", "timestamp")]
        owner.commit(
            columns,
            partitioned_by=[name] if is_partition else [],
            added=[{"c2": _BARE} if is_partition else {}],
        )
    return owner


_ZURICH = PartitionZone("Europe/Zurich", ())


def test_a_version_before_a_renaming_has_the_zone(session: Session, tmp_path: Path) -> None:
    owner = _owned(tmp_path, ("ts", True))
    assert _adopt(session, tmp_path, "Europe/Zurich") == ("CREATE TABLE",)
    owner.commit(added=[{"c2": _BARE}])
    owner.commit(
        [field("id", "c1", "integer"), field("ts2", "c2", "timestamp")], partitioned_by=["ts2"]
    )
    enter_foreign_versions(session)
    relation = relation_of(session)
    for version, changed in ((0, []), (1, [1]), (2, []), (None, []), (2, [1, 2])):
        column = table_source(relation, version, changed).column(2)
        assert column.zone == _ZURICH
        assert all(column.at(number).zone == _ZURICH for number in (0, 1, 2))


def test_versions_with_another_partitioning(session: Session, tmp_path: Path) -> None:
    _owned(tmp_path, ("ts", True))
    assert _adopt(session, tmp_path, "Europe/Zurich") == ("CREATE TABLE",)
    _owned(tmp_path, ("ts", False), ("ts", False), ("ts", True))
    enter_foreign_versions(session)
    relation = relation_of(session)
    zones = {v: table_source(relation, v).column(2).zone for v in range(4)}
    assert zones == {0: _ZURICH, 1: None, 2: None, 3: _ZURICH}
    column = table_source(relation, 3, [1, 2, 3]).column(2)
    assert [column.at(v).zone for v in range(4)] == [_ZURICH, None, None, _ZURICH]


def test_versions_that_need_a_zone_before_the_newest(session: Session, tmp_path: Path) -> None:
    _owned(tmp_path, ("ts", False))
    assert _adopt(session, tmp_path) == ("CREATE TABLE",)
    _owned(tmp_path, ("ts", True), ("ts", False))
    enter_foreign_versions(session)
    relation = relation_of(session)
    assert table_source(relation, 2).column(2).zone is None
    for version, changed in ((1, []), (1, [1]), (2, [2])):
        with pytest.raises(FeatureNotSupported, match="values without a time zone"):
            table_source(relation, version, changed)


def test_texts_before_the_newest_checkpoint(session: Session, tmp_path: Path) -> None:
    """The checkpoint does not have the partition values of removed files."""
    owner = OwnersLog(tmp_path, is_mapped=False)
    columns = [field("id", type_="integer"), field("ts", type_="timestamp")]
    owner.commit(columns)
    assert _adopt(session, tmp_path, "Europe/Zurich") == ("CREATE TABLE",)
    owner.commit(columns, partitioned_by=["ts"], added=[{"ts": _OTHER_BARE}])
    owner.commit(added=[{"ts": _ZONED}])
    owner.commit(removed=["1-0.parquet", "2-0.parquet"])
    DeltaTable(tmp_path).create_checkpoint()
    enter_foreign_versions(session)
    zone = PartitionZone("Europe/Zurich", (_ZONED,))
    assert table_source(relation_of(session), 2).column(2).zone == zone


def test_unpartitioned_tables_list_the_log_once_for_all_versions(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = _owned(tmp_path, ("ts", False))
    assert _adopt(session, tmp_path) == ("CREATE TABLE",)
    for _version in range(1, 10):
        owner.commit(added=[{}])
    enter_foreign_versions(session)
    relation = relation_of(session)
    table_source(relation, 8, range(1, 9))
    calls: list[str] = []

    def counted(method: Callable[[TableFolder, str], object], name: str) -> None:
        def call(folder: TableFolder, path: str) -> object:
            calls.append(name)
            return method(folder, path)

        monkeypatch.setattr(TableFolder, name, call)

    counted(TableFolder.names, "names")
    counted(TableFolder.read, "read")
    assert table_source(relation, 8, range(1, 9)).column(2).zone is None
    assert calls == ["names"]
