"""Rewrite all rows of a small Delta table into one new data file, in this process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from replctl.spark.data_type import quote_name, stored_arrow, wire
from replctl.spark.file_columns import are_read_alike
from replctl.spark.key_lookup import GREGORIAN, view_of_rows
from replctl.spark.local_scan import (
    DataFile,
    FileReader,
    LeftToSpark,
    declining,
    has_known_calendar,
)
from replctl.spark.local_write import FIRST_TIME, WrittenFile, statistics, write_rows
from replctl.spark.values import TableColumn

if TYPE_CHECKING:
    import pyarrow as pa

    from replctl.spark.engine import Engine

_PLACE = "replctl place"  # no column of a table has that name


def rows_in_order(
    location: str,
    version: int,
    files: Sequence[DataFile],
    schema: str,
    hidden: tuple[str | None, str | None],
    most: int,
) -> pa.Table | None:
    """Return all rows of a version of a table as they are stored, in the order in which they were
    written.

    Args:
        location: the table's directory.
        files: the files of the version.
        schema: the table's columns, as JSON of Delta's log.
        hidden: see `FileReader.read`.
        most: the maximum number of rows.

    Returns:
        the rows; None if Spark has to rewrite the table, because it has more rows, or values that
        only Spark reads or writes.
    """
    import pyarrow as pa
    from deltalake import Schema

    wanted = pa.schema(Schema.from_json(schema).to_arrow())
    reader = FileReader(location, most)
    with declining():
        pieces, places = [], list[tuple[int, int]]()
        for file in files:
            read = reader.read(file, version, (), hidden)
            live = read.live()
            places += [row.place for row in live.values()]
            pieces.append(_stored(file.path, wanted).take(pa.array(live, pa.int64())))
        rows = pa.concat_tables(pieces) if pieces else wanted.empty_table()
        order = sorted(range(len(places)), key=places.__getitem__)
        found = rows.take(pa.array(order, pa.int64()))
        if not all(map(_is_written_alike, found.columns)):
            raise LeftToSpark
        return found
    return None


def _stored(path: str, wanted: pa.Schema) -> pa.Table:
    """Return the rows of a data file with the columns of a schema.

    Raises:
        LeftToSpark: Spark would read other values from the file.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as parquet:
        names = parquet.schema_arrow.names
        types = dict(zip(wanted.names, wanted.types, strict=True))
        if not has_known_calendar(parquet) or not are_read_alike(parquet.schema_arrow, types):
            raise LeftToSpark
        found = parquet.read([name for name in wanted.names if name in names])
        count = parquet.metadata.num_rows
    return pa.table(
        {
            field.name: found.column(field.name).cast(field.type)
            if field.name in names
            else pa.nulls(count, field.type)
            for field in wanted
        }
    )


def _is_written_alike(values: pa.ChunkedArray) -> bool:
    """Return whether readers find the same values, whether this module or Spark writes them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_list(values.type):
        return _is_written_alike(pc.list_flatten(values))
    if pa.types.is_struct(values.type):
        return all(
            _is_written_alike(pc.struct_field(values, i)) for i in range(values.type.num_fields)
        )
    if pa.types.is_map(values.type):
        return False
    if pa.types.is_date32(values.type):
        least = pc.min(values.cast(pa.int32())).as_py()
        return least is None or least >= GREGORIAN
    if pa.types.is_timestamp(values.type):
        least = pc.min(values.cast(pa.int64())).as_py()
        return least is None or least >= FIRST_TIME
    return True


def computed(
    engine: Engine, rows: pa.Table, columns: Sequence[TableColumn], values: Mapping[str, str]
) -> dict[str, Any] | None:
    """Compute new values for the columns of rows.

    Args:
        rows: the stored rows.
        columns: the columns with new values.
        values: Spark SQL of the new values, over the columns of `rows`, by name in storage.

    Returns:
        the values in the order of the rows, as Arrow stores them, by name in storage; None if
        replctl cannot send the rows to Spark, or there are none.
    """
    import pyarrow as pa

    if not rows.num_rows:  # Spark Connect cannot send them
        return None
    numbered = rows.append_column(_PLACE, pa.array(range(rows.num_rows), pa.int64()))
    with view_of_rows(engine, numbered) as view:
        if view is None:
            return None
        new = ", ".join(f"{values[c.storage_name or '']} AS n{i}" for i, c in enumerate(columns))
        sent = ", ".join(
            f"{wire(c.type, c.typmod).to_wire.format(f'n{i}')} AS n{i}"
            for i, c in enumerate(columns)
        )
        place = quote_name(_PLACE)
        table = engine.arrow(
            engine.sql(
                f"SELECT {sent} FROM (SELECT {place} AS place, {new} FROM {view}) ORDER BY place"
            )
        )
    return {
        c.storage_name or "": pa.chunked_array(
            [pa.array(table.column(f"n{i}").to_pylist(), wire(c.type, c.typmod).arrow)]
        ).cast(stored_arrow(c.type, c.typmod))
        for i, c in enumerate(columns)
    }


def write_rewritten(
    rows: pa.Table, columns: Sequence[TableColumn], path: str
) -> WrittenFile | None:
    """Write rows to a new data file.

    Args:
        rows: the rows as Arrow stores them.
        columns: the columns of the relation, by their names in storage, for statistics.

    Returns:
        the file; None if Spark has to write the rows.

    Raises:
        OSError: the file cannot be written.
    """
    if not all(map(_is_written_alike, rows.columns)):
        return None
    write_rows(rows, path)
    state = os.stat(path)
    known = [
        (c, rows.column(c.storage_name).cast(wire(c.type, c.typmod).arrow).to_pylist())
        for c in columns
    ]
    shown = statistics(rows.num_rows, known)
    return WrittenFile(rows.num_rows, state.st_size, state.st_mtime_ns // 1_000_000, shown)
