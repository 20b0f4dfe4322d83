"""replctl finds the same rows by their keys as Spark."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import parquet

from replctl.spark import key_lookup
from replctl.spark.data_type import storage_type
from replctl.spark.key_lookup import found_rows, view_of_rows
from replctl.spark.values import TableColumn, TableSource

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_ROWS = 3000
_COLUMNS = (
    TableColumn(1, "int8", -1, "id"),
    TableColumn(2, "text", -1, 'a"name'),
    TableColumn(3, "date", -1, "day"),
    TableColumn(4, "timestamp", -1, "local_at"),
    TableColumn(5, "float8", -1, "score"),
    TableColumn(6, "int4", -1, "n"),
)
_VALUES = (
    "id, concat('it''s \\\\ ', id) AS `a\"name`, date_from_unix_date(id) AS day,"
    " CAST(timestamp_micros(id * 7000001) AS TIMESTAMP_NTZ) AS local_at, id / 8D AS score, 0 AS n"
)
#: For each possible key column, a function that returns the value of an id, in wire form.
_WIRE: dict[int, Callable[[int], object]] = {
    1: lambda i: i,
    2: lambda i: f"it's \\ {i}",
    3: lambda i: i,
    4: lambda i: i * 7000001,
}


def _source(location: Path | str, **changed: Any) -> TableSource:
    return TableSource(str(location), changed.get("columns", _COLUMNS), changed.get("version"))


def _write(engine: Engine, location: Path) -> None:
    """Write a table with replctl's properties, in one file of many row groups and pages."""
    engine.run(
        f'CREATE TABLE delta.`{location}` (id BIGINT, `a"name` STRING, day DATE,'
        " local_at TIMESTAMP_NTZ, score DOUBLE, n INT) USING delta TBLPROPERTIES"
        " ('delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true',"
        " 'delta.enableChangeDataFeed' = 'true')"
    )
    frame = engine.sql(f"SELECT {_VALUES} FROM range({_ROWS})").coalesce(1)
    small = {"parquet.block.size": "20000", "parquet.page.size": "1000"}
    small["parquet.block.size.row.check.min"] = "10"
    frame.write.format("delta").mode("append").options(**small).save(str(location))


def _by_spark(engine: Engine, source: TableSource, keys: Mapping[int, Sequence[int]]) -> list[Any]:
    ids = sorted({key for values in keys.values() for key in values})
    listed = ", ".join(map(str, ids))
    version = "" if source.version is None else f" VERSION AS OF {source.version}"
    return sorted(
        engine.rows(f"SELECT * FROM delta.`{source.location}`{version} WHERE id IN ({listed})")
    )


def _found(engine: Engine, source: TableSource, keys: Mapping[int, Sequence[int]]) -> list[Any]:
    wire = {attnum: [_WIRE[attnum](i) for i in ids] for attnum, ids in keys.items()}
    rows = found_rows(source, source.columns, wire)
    assert rows is not None
    if not rows.num_rows:
        return []
    with view_of_rows(engine, rows) as view:
        assert view is not None
        return sorted(engine.rows(f"SELECT * FROM {view}"))


def test_rows_of_a_table_that_changes(engine: Engine, tmp_path: Path) -> None:
    location, choice = tmp_path / "t", random.Random(1)
    _write(engine, location)
    for _round in range(5):
        ids = choice.sample(range(_ROWS), 40)
        gone, changed = (", ".join(map(str, part)) for part in (ids[:20], ids[20:]))
        engine.run(f"DELETE FROM delta.`{location}` WHERE id IN ({gone})")
        engine.run(f"UPDATE delta.`{location}` SET n = n + 1 WHERE id IN ({changed})")
        for attnum in _WIRE:
            asked = choice.sample(ids, 6) + [choice.randint(-9, _ROWS + 9) for _ in range(30)]
            for keys in ({attnum: asked}, {attnum: asked[:1]}, {1: asked, attnum: asked}):
                expected = _by_spark(engine, _source(location), keys)
                assert _found(engine, _source(location), keys) == expected
    before = _source(location, version=1)
    everything = {1: range(0, _ROWS, 7)}
    assert _found(engine, before, everything) == _by_spark(engine, before, everything)


def test_what_is_left_to_spark(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = tmp_path / "t"
    _write(engine, location)
    assert found_rows(_source(tmp_path / "nothing"), _COLUMNS, {1: [1]}) is None
    assert found_rows(_source("s3://bucket/t"), _COLUMNS, {1: [1]}) is None
    assert found_rows(_source(location), _COLUMNS, {5: [1.0]}) is None
    at = TableColumn(4, "timestamptz", -1, "at")
    assert found_rows(_source(location), (*_COLUMNS, at), {1: [1]}) is None
    assert found_rows(_source(location), _COLUMNS, {3: [-141428]}) is None
    lacking = (TableColumn(1, "int8", -1, None, "1"), *_COLUMNS[1:])
    assert found_rows(_source(location, columns=lacking), lacking, {1: [1]}) is None
    as_text = (_COLUMNS[0].as_text(), *_COLUMNS[1:])
    assert found_rows(_source(location, columns=as_text), as_text, {1: ["1"]}) is None
    monkeypatch.setattr(key_lookup, "_MOST_FOUND_ROWS", 2)
    assert found_rows(_source(location), _COLUMNS, {1: [1, 2, 3]}) is None
    monkeypatch.setattr(key_lookup, "_MOST_TABLE_ROWS", _ROWS - 1)
    assert found_rows(_source(location), _COLUMNS, {1: [1]}) is None


def test_renamed_columns_are_left_to_spark(engine: Engine, tmp_path: Path) -> None:
    location = tmp_path / "t"
    shown = f"delta.`{location}`"
    engine.run(
        f"CREATE TABLE {shown} (id BIGINT, n INT) USING delta TBLPROPERTIES"
        " (delta.columnMapping.mode = 'name', delta.enableDeletionVectors = false)"
    )
    engine.run(f"INSERT INTO {shown} VALUES (1, 2)")
    engine.run(f"ALTER TABLE {shown} RENAME COLUMN n TO m")
    columns = (_COLUMNS[0], TableColumn(6, "int4", -1, "m"))
    assert found_rows(_source(location, columns=columns), columns, {1: [1]}) is None


def test_a_file_that_is_not_there_is_spark_s_to_tell(engine: Engine, tmp_path: Path) -> None:
    location = tmp_path / "t"
    _write(engine, location)
    for file in location.glob("*.parquet"):
        file.unlink()
    assert found_rows(_source(location), _COLUMNS, {1: [1]}) is None


def test_dates_before_the_gregorian_calendar(engine: Engine, tmp_path: Path) -> None:
    location = tmp_path / "t"
    engine.run(
        f"CREATE TABLE delta.`{location}` (id BIGINT, day DATE, days ARRAY<DATE>) USING delta"
    )
    old = "DATE '1582-10-14'"
    engine.run(f"INSERT INTO delta.`{location}` VALUES (1, {old}, array({old})), (2, NULL, NULL)")
    for column in (_COLUMNS[2], TableColumn(3, "_date", -1, "days")):
        columns = (_COLUMNS[0], column)
        assert found_rows(_source(location, columns=columns), columns, {1: [1]}) is None
        assert found_rows(_source(location, columns=columns), columns, {1: [2]}) is not None


def test_delta_rs_reads_no_arrays_of_timestamps(engine: Engine, tmp_path: Path) -> None:
    location = tmp_path / "t"
    engine.run(f"CREATE TABLE delta.`{location}` (id BIGINT, a ARRAY<TIMESTAMP>) USING delta")
    engine.run(f"INSERT INTO delta.`{location}` VALUES (1, array(TIMESTAMP '2024-02-29 12:00'))")
    columns = (_COLUMNS[0], TableColumn(2, "_timestamptz", -1, "a"))
    assert found_rows(_source(location, columns=columns), columns, {1: [1]}) is None


def test_types_that_do_not_travel(engine: Engine, tmp_path: Path) -> None:
    location = tmp_path / "t"
    engine.run(f"CREATE TABLE delta.`{location}` (id BIGINT, a STRUCT<m: INT>) USING delta")
    engine.run(f"INSERT INTO delta.`{location}` VALUES (1, struct(1))")
    columns = (_COLUMNS[0], TableColumn(2, "interval", -1, "a"))
    rows = found_rows(_source(location, columns=columns), columns, {1: [1]})
    if rows is not None:
        with view_of_rows(engine, rows) as view:
            assert view is None


def test_arrays_travel(engine: Engine, tmp_path: Path) -> None:
    location = tmp_path / "t"
    types = ("_int4", "_text", "_date", "_timestamp", "_numeric", "_bytea", "_bool")
    columns = [_COLUMNS[0]]
    columns += [TableColumn(n, type_, -1, type_) for n, type_ in enumerate(types, start=2)]
    shown = ", ".join(f"`{c.storage_name}` {storage_type(c.type, c.typmod)}" for c in columns)
    engine.run(f"CREATE TABLE delta.`{location}` ({shown}) USING delta")
    times = "array(TIMESTAMP_NTZ '2024-02-29 12:00:00.000001', NULL)"
    values = f"array(1, NULL), array('a', ''), array(DATE '2024-02-29'), {times}"
    engine.run(
        f"INSERT INTO delta.`{location}` VALUES"
        f" (1, {values}, array('1.0', NULL), array(X'00FF'), array(true, NULL)),"
        " (2, array(), NULL, array(NULL), array(), NULL, NULL, array())"
    )
    source = _source(location, columns=tuple(columns))
    assert _found(engine, source, {1: [1, 2]}) == _by_spark(engine, source, {1: [1, 2]})


def test_files_of_spark_have_the_types_of_the_table(engine: Engine, tmp_path: Path) -> None:
    location = tmp_path / "t"
    types = ("int2", "int4", "bool", "float4", "float8", "numeric", "bytea", "varchar", "_text")
    columns = [_COLUMNS[0]]
    columns += [TableColumn(n, type_, -1, type_) for n, type_ in enumerate(types, start=2)]
    columns.append(TableColumn(20, "numeric", (12 << 16 | 2) + 4, "decimal"))
    shown = ", ".join(f"`{c.storage_name}` {storage_type(c.type, c.typmod)}" for c in columns)
    engine.run(f"CREATE TABLE delta.`{location}` ({shown}) USING delta")
    values = "1L, 2S, 3, true, 1F, 2D, '1', X'00', 'a', array('b'), 1.25"
    engine.run(f"INSERT INTO delta.`{location}` SELECT {values}")
    rows = found_rows(_source(location, columns=tuple(columns)), columns, {1: [1]})
    assert rows is not None
    assert rows.num_rows == 1


def test_spark_finds_keys_in_columns_with_names_in_other_case(
    engine: Engine, tmp_path: Path
) -> None:
    location = tmp_path / "t"
    engine.run(f"CREATE TABLE delta.`{location}` (id BIGINT, n INT) USING delta")
    engine.run(f"INSERT INTO delta.`{location}` VALUES (1, 2)")
    (file,) = location.glob("*.parquet")
    parquet.write_table(parquet.read_table(file).rename_columns(["ID", "n"]), file)
    log = location / "_delta_log" / f"{1:020d}.json"
    for checksum in location.rglob(".*.crc"):
        checksum.unlink()
    log.write_text(re.sub(r'"size":\d+', f'"size":{file.stat().st_size}', log.read_text()))
    source = _source(location, columns=(_COLUMNS[0], _COLUMNS[5]))
    assert _by_spark(engine, source, {1: [1]}) == [(1, 2)]
    assert found_rows(source, source.columns, {1: [1]}) is None
