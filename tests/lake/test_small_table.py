"""replctl reads a small table without Spark only if it reads the same values as Spark."""

from __future__ import annotations

import datetime
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from fix_lake import Lake
from golden_script import answer_of
from pyarrow import parquet

from replctl.lake.small_table import small_rows
from replctl.lake.table_folder import TableFolder
from replctl.spark import TableColumn, TableSource
from replctl.spark.key_lookup import found_rows

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "v": ["a", "b", None]})


def source(location: Path, *columns: TableColumn, version: int | None = None) -> TableSource:
    known = columns or (TableColumn(1, "int4", -1, "id"), TableColumn(2, "text", -1, "v"))
    return TableSource(str(location), known, version, has_row_tracking=False)


def values(source: TableSource, most: int = 100) -> list[tuple[str | None, ...]] | None:
    rows = small_rows(source, most)
    return None if rows is None else [row.values for row in rows]


def test_rows_are_texts(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS)
    assert values(source(tmp_path)) == [("1", "a"), ("2", "b"), ("3", None)]
    assert values(source(tmp_path), most=2) is None
    table = DeltaTable(tmp_path)
    table.delete("id = 2")
    assert values(source(tmp_path)) == [("1", "a"), ("3", None)]
    assert values(source(tmp_path, version=0)) is None  # not the newest
    assert values(source(tmp_path, version=1)) == [("1", "a"), ("3", None)]


def test_a_column_that_files_lack_is_null_or_has_its_missing_value(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS.select(["id"]))
    write_deltalake(tmp_path, ROWS.slice(0, 1), mode="append", schema_mode="merge")
    columns = (
        TableColumn(2, "text", -1, "v"),
        TableColumn(3, "int4", -1, None, missing_value="7"),
    )
    rows = values(source(tmp_path, *columns))
    assert rows is not None
    assert sorted(rows, key=str) == [("a", "7"), (None, "7"), (None, "7"), (None, "7")]


def test_files_come_from_a_checkpoint(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS)
    DeltaTable(tmp_path).create_checkpoint()
    write_deltalake(tmp_path, ROWS.slice(0, 1), mode="append")
    rows = values(source(tmp_path))
    assert rows is not None
    assert len(rows) == 4


def test_a_table_that_is_not_made_has_no_rows() -> None:
    assert small_rows(TableSource(None, ()), 10) == []


def _partitioned(path: Path) -> None:
    write_deltalake(path, ROWS, partition_by=["v"])


def _of_another_type(path: Path) -> None:
    write_deltalake(path, ROWS.set_column(0, "id", pa.array([1, 2, 3], pa.int64())))


def _without_a_file(path: Path) -> None:
    write_deltalake(path, ROWS)
    next(path.glob("*.parquet")).unlink()


def _with_a_broken_file(path: Path) -> None:
    write_deltalake(path, ROWS)
    next(path.glob("*.parquet")).write_bytes(b"PAR1")


def _with_a_file_elsewhere(path: Path) -> None:
    write_deltalake(path, ROWS)
    file = next(path.glob("*.parquet"))
    moved = file.rename(path.with_name("elsewhere.parquet"))
    _change_log(path, "add", lambda add: add.update(path=str(moved)))


def _with_a_pipe_for_a_file(path: Path) -> None:
    _without_a_file(path)
    log = path / "_delta_log" / f"{0:020d}.json"
    (name,) = (line["add"]["path"] for line in _lines(log) if "add" in line)
    os.mkfifo(path / str(name))


def _with_an_unknown_feature(path: Path) -> None:
    write_deltalake(path, ROWS)
    names = {kind: ["typeWidening"] for kind in ("readerFeatures", "writerFeatures")}
    versions = {"minReaderVersion": 3, "minWriterVersion": 7}
    _change_log(path, "protocol", lambda protocol: protocol.update(**versions, **names))


def _with_a_name_in_other_case(path: Path) -> None:
    _write_otherwise(path, ROWS.rename_columns(["ID", "v"]))


def _with_a_value_in_other_case(path: Path) -> None:
    _write_otherwise(path, ROWS.rename_columns(["id", "V"]))


def _with_a_name_twice(path: Path) -> None:
    _write_otherwise(path, ROWS.append_column("V", ROWS["v"]))


def _with_a_file_of_another_type(path: Path) -> None:
    _write_otherwise(path, ROWS.set_column(0, "id", pa.array([1.5, 2, 3])))


def _write_otherwise(path: Path, rows: pa.Table) -> None:
    write_deltalake(path, ROWS)
    file = next(path.glob("*.parquet"))
    parquet.write_table(rows, file)
    _change_log(path, "add", lambda add: add.update(size=file.stat().st_size))


def _with_a_text_that_is_not_utf8(path: Path) -> None:
    write_deltalake(path, ROWS.slice(0, 1))
    file = next(path.glob("*.parquet"))
    binary = pa.table({"id": ROWS["id"].slice(0, 1), "v": pa.array([b"\xff"])})
    text = binary["v"].combine_chunks().view(pa.string())
    parquet.write_table(binary.set_column(1, "v", text), file)


def _with_a_missing_vector(path: Path) -> None:
    write_deltalake(path, ROWS)
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1}
    vector |= {"sizeInBytes": 34, "cardinality": 1}
    _change_log(path, "add", lambda add: add.update(deletionVector=vector))
    _allow_vectors(path)


def _allow_vectors(path: Path) -> None:
    features = {"minReaderVersion": 3, "minWriterVersion": 7}
    names = {kind: ["deletionVectors"] for kind in ("readerFeatures", "writerFeatures")}
    _change_log(path, "protocol", lambda protocol: protocol.update(**features, **names))


def _change_log(path: Path, kind: str, change: Callable[[dict[str, object]], None]) -> None:
    log = path / "_delta_log" / f"{0:020d}.json"
    actions = _lines(log)
    for action in actions:
        if kind in action:
            change(action[kind])
    log.write_text("\n".join(map(json.dumps, actions)))


def _lines(log: Path) -> list[dict[str, dict[str, object]]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.mark.parametrize(
    "make",
    [
        _partitioned,
        _of_another_type,
        _without_a_file,
        _with_a_broken_file,
        _with_a_file_elsewhere,
        _with_a_pipe_for_a_file,
        _with_an_unknown_feature,
        _with_a_missing_vector,
        _with_a_name_in_other_case,
        _with_a_value_in_other_case,
        _with_a_name_twice,
        _with_a_file_of_another_type,
        _with_a_text_that_is_not_utf8,
    ],
    ids=lambda make: make.__name__.removeprefix("_"),
)
def test_spark_reads_other_tables(make: Callable[[Path], None], tmp_path: Path) -> None:
    place = tmp_path / "t"
    make(place)
    assert values(source(place)) is None


def _with_a_file_that_has_a_backslash(path: Path) -> None:
    _write_elsewhere(path, "a\\b.parquet", "a/b.parquet")


def _with_a_file_that_has_a_question_mark(path: Path) -> None:
    _write_elsewhere(path, "a?b.parquet", "a")


def _write_elsewhere(path: Path, name: str, other: str) -> None:
    """Write a table with a file of one row, and a file of the same size with another row."""
    write_deltalake(path, ROWS.slice(0, 1))
    file = next(path.glob("*.parquet")).rename(path / name)
    (path / other).parent.mkdir(exist_ok=True)
    parquet.write_table(ROWS.slice(0, 1), file)
    parquet.write_table(ROWS.slice(1, 1), path / other)
    _change_log(path, "add", lambda add: add.update(path=name, size=file.stat().st_size))
    assert file.stat().st_size == (path / other).stat().st_size


@pytest.mark.parametrize(
    "make",
    [
        _with_a_name_in_other_case,
        _with_a_value_in_other_case,
        _with_a_name_twice,
        _with_a_file_of_another_type,
        _with_a_file_that_has_a_backslash,
        _with_a_file_that_has_a_question_mark,
    ],
    ids=lambda make: make.__name__.removeprefix("_"),
)
def test_delta_rs_looks_up_no_keys_in_files_that_it_reads_otherwise(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path / "t")
    known = source(tmp_path / "t")
    assert found_rows(known, known.columns, {1: [1, 2]}) is None


def test_delta_rs_looks_up_keys_in_files_that_lack_columns(tmp_path: Path) -> None:
    rows = ROWS.append_column("p", pa.array(["x", "y", "y"]))
    write_deltalake(tmp_path, rows.select(["id", "p"]), partition_by=["p"])
    write_deltalake(tmp_path, rows.slice(0, 1), mode="append", schema_mode="merge")
    known = source(tmp_path, *source(tmp_path).columns, TableColumn(3, "text", -1, "p"))
    found = found_rows(known, known.columns, {1: [1, 2]})
    assert found is not None
    values = [tuple(row.values()) for row in found.to_pylist()]
    assert sorted(values, key=str) == [(1, "a", "x"), (1, None, "x"), (2, None, "y")]


#: Deletion vectors of one row in the log itself: of row 0 and of row 1.
_VECTORS = (
    "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg00000",
    "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg0rr91",
)


def test_files_in_different_folders_may_have_the_same_name(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS.slice(0, 2))
    file = next(tmp_path.glob("*.parquet"))
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    (add,) = (line["add"] for line in _lines(log) if "add" in line)
    with log.open("a") as log_file:
        for folder, inline in zip("ab", _VECTORS, strict=True):
            (tmp_path / folder).mkdir()
            shutil.copy(file, tmp_path / folder / "x.parquet")
            vector = {"storageType": "i", "pathOrInlineDv": inline, "sizeInBytes": 34}
            vector |= {"cardinality": 1}
            body = {**add, "path": f"{folder}/x.parquet", "deletionVector": vector}
            log_file.write("\n" + json.dumps({"add": body}))
    _allow_vectors(tmp_path)
    rows = values(source(tmp_path))
    assert rows is not None
    assert sorted(rows) == [("1", "a"), ("1", "a"), ("2", "b"), ("2", "b")]


@pytest.mark.parametrize(("name", "other"), [("t%41", "tA"), ("t\\u", "t/u")])
def test_delta_rs_must_not_read_the_log_of_another_table(
    tmp_path: Path, name: str, other: str
) -> None:
    write_deltalake(tmp_path / other, ROWS.slice(0, 2))
    shutil.copytree(tmp_path / other, tmp_path / name)
    keys = {1: [1, 2, 3]}
    known = source(tmp_path / other)
    found = found_rows(known, known.columns, keys)
    assert found is not None
    assert found.num_rows == 2
    copy = source(tmp_path / name)
    assert values(copy) == [("1", "a"), ("2", "b")]
    assert found_rows(copy, copy.columns, keys) is None


def test_spark_reads_a_log_that_another_program_shortens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(tmp_path, ROWS)
    DeltaTable(tmp_path).create_checkpoint()
    assert values(source(tmp_path)) is not None
    listed = [*os.listdir(tmp_path / "_delta_log")]
    next((tmp_path / "_delta_log").glob("*.checkpoint.parquet")).unlink()
    monkeypatch.setattr(TableFolder, "names", lambda _folder, _path: listed)
    assert values(source(tmp_path)) is None


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("date", datetime.date(2024, 2, 29)),
        ("timestamp", datetime.datetime(2024, 2, 29)),
        ("timestamptz", datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC)),
    ],
)
def test_spark_reads_dates_of_other_writers(type_: str, value: object, tmp_path: Path) -> None:
    """Other writers may use another calendar."""
    write_deltalake(tmp_path, pa.table({"d": [value]}))
    assert values(source(tmp_path, TableColumn(1, type_, -1, "d"))) is None


@pytest.mark.parametrize(
    ("written", "is_known"),
    [
        ({"version": "4.2.0"}, True),
        ({"version": "3.0.0"}, True),
        ({"version": "2.4.8"}, False),  # it wrote dates of the Julian calendar
        ({"version": "3.5.1", "legacyDateTime": ""}, False),
    ],
)
def test_spark_reads_dates_of_old_calendars(
    tmp_path: Path, written: Mapping[str, str], *, is_known: bool
) -> None:
    days = pa.table({"d": [datetime.date(1500, 1, 1)]})
    write_deltalake(tmp_path, days)
    entries = {f"org.apache.spark.{name}": value for name, value in written.items()}
    parquet.write_table(days.replace_schema_metadata(entries), next(tmp_path.glob("*.parquet")))
    found = values(source(tmp_path, TableColumn(1, "date", -1, "d")))
    assert found == ([("1500-01-01",)] if is_known else None)


def test_spark_reads_a_table_with_a_name_in_its_catalogs(lake: Lake) -> None:
    """Only Spark knows which table has the name.  The same applies to the name of a child table."""
    lake.run("create table root (id int, v text)")
    lake.run("alter table t inherit root")
    rows = ("| 1 | a", "| 2 | b", "| 3 | c", "SELECT 3")
    assert answer_of(lake.session, "table root") == rows
    lake.run("alter table t set (catalog_table = 'gold.t')")
    for query in ("table root", "table t"):
        (error,) = answer_of(lake.session, query)
        assert error.endswith("this session has no Spark")
    assert answer_of(lake.session, "select * from only root")[-1] == "SELECT 0"
