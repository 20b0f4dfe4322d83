"""Read all rows of a small Delta table as they are stored, and compute new values for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from replctl.spark.data_type import stored_arrow, wire
from replctl.spark.delta_table import PLACE, numbered_sql
from replctl.spark.file_columns import are_read_alike
from replctl.spark.key_lookup import view_of_rows
from replctl.spark.local_scan import (
    DataFile,
    FileReader,
    LeftToSpark,
    declining,
    has_known_calendar,
)
from replctl.spark.values import TableColumn

if TYPE_CHECKING:
    import pyarrow as pa

    from replctl.spark.engine import Engine


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
        only Spark reads.
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
        return rows.take(pa.array(order, pa.int64()))
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


def computed(
    engine: Engine,
    rows: pa.Table,
    columns: Sequence[TableColumn],
    values: Mapping[str, str],
    numbers: Mapping[str, range],
) -> dict[str, Any] | None:
    """Compute new values for the columns of rows, once per row.

    Args:
        rows: the stored rows.
        columns: the columns with new values.
        values: Spark SQL of the new values, over the columns of `rows`, by name in storage.
        numbers: see `rewrite_rows`.

    Returns:
        the values in the order of the rows, as Arrow stores them, by name in storage; None if
        replctl cannot send the rows to Spark, or there are none.
    """
    import pyarrow as pa

    if not rows.num_rows:  # Spark Connect cannot send them
        return None
    place = PLACE.strip("`")
    placed = rows.append_column(place, pa.array(range(rows.num_rows), pa.int64()))
    with view_of_rows(engine, placed) as view:
        if view is None:
            return None
        new = ", ".join(f"{values[c.storage_name or '']} AS n{i}" for i, c in enumerate(columns))
        sent = ", ".join(
            f"{wire(c.type, c.typmod).to_wire.format(f'n{i}')} AS n{i}"
            for i, c in enumerate(columns)
        )
        found = f"SELECT {PLACE} AS place, {new} FROM {numbered_sql(view, numbers)}"
        table = engine.arrow(engine.sql(f"SELECT {sent} FROM ({found}) ORDER BY place"))
    return {
        c.storage_name or "": pa.chunked_array(
            [pa.array(table.column(f"n{i}").to_pylist(), wire(c.type, c.typmod).arrow)]
        ).cast(stored_arrow(c.type, c.typmod))
        for i, c in enumerate(columns)
    }
