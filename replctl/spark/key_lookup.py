"""Look up few rows of a Delta table by their keys in this process, with delta-rs.

Spark needs a plan, Delta's queries of its log (three, if files have deletion vectors), and jobs,
even for a few rows.  Measured in benchmarks/small.py and incremental.py:

    rows                          delta-rs   Spark
    10 of 1,000                   0.03 s     0.5 to 0.8 s
    keys of 1,000 of 10,000,000   0.3 s      2 to 4 s

Spark reads a table in these cases:

- delta-rs cannot read the table, or reads values that differ from Spark's (`_has_own_files`).
- The table is not on a disk of this machine.
- The table is so large that a cluster is faster.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from replctl.delta_path import canonical_path
from replctl.spark.data_type import quote_name, storage_type
from replctl.spark.file_columns import are_read_alike
from replctl.spark.normal_form import has_own_form
from replctl.spark.staging import named_view
from replctl.spark.values import TableColumn, TableSource

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

    from replctl.spark.engine import Engine

#: Maximum number of rows of a table that delta-rs reads: there a deletion vector takes one byte for
#: each row of its file.
_MOST_TABLE_ROWS = 50_000_000
#: Maximum number of files of a table that delta-rs reads.  This process reads the schema of each,
#: in 0.12 ms.
_MOST_FILES = 10_000
#: Maximum number of rows that delta-rs reads: conditions on several key columns match more rows
#: than the keys.
_MOST_FOUND_ROWS = 20_000
#: The first day of the Gregorian calendar, in days since 1970.  In files of old writers, earlier
#: dates belong to another calendar, which only Spark detects.
GREGORIAN = -141427
#: Storage types that delta-rs compares like Spark -> function that writes a literal.
_LITERALS: Mapping[str, Callable[[Any], str]] = {
    **dict.fromkeys(("SMALLINT", "INT", "BIGINT"), str),
    "STRING": lambda value: "'" + value.replace("'", "''") + "'",
    "DATE": lambda value: f"arrow_cast({value}, 'Date32')",
    "TIMESTAMP_NTZ": lambda value: f"arrow_cast({value}, 'Timestamp(Microsecond, None)')",
}


def found_rows(
    source: TableSource, columns: Sequence[TableColumn], keys: Mapping[int, Sequence[Any]]
) -> pa.Table | None:
    """Return the rows of a table that have given values in each key column.  The result may have
    other rows, too.

    Args:
        source: a table with a location.
        columns: the columns to read, by their names in storage.
        keys: the values for each key column, in wire form (data_type.wire), by attnum.

    Returns:
        the columns as stored, in Arrow's types; None if Spark must read the table.
    """
    import pyarrow as pa
    from deltalake import QueryBuilder

    conditions = [
        f"{_quoted(column.storage_name)} IN ({', '.join(literals)})"
        for column in (source.column(attnum) for attnum in keys)
        if (literals := _literals(column, keys[column.attnum]))
    ]
    names = [column.storage_name for column in columns if column.storage_name is not None]
    can_be_read = conditions and names and not any(map(_is_timestamp, columns))
    read = {*names, *(source.column(attnum).storage_name for attnum in keys)}
    table = _opened(source, read) if can_be_read else None
    if table is None:
        return None
    query = (
        f"SELECT {', '.join(map(_quoted, names))} FROM t WHERE {' AND '.join(conditions)}"
        f" LIMIT {_MOST_FOUND_ROWS + 1}"
    )
    try:
        found = pa.table(QueryBuilder().register("t", table).execute(query).read_all())
    except Exception as error:  # delta-rs has no error classes of its own; see check_declined
        check_declined(error)
        return None
    if found.num_rows > _MOST_FOUND_ROWS or any(map(_has_old_dates, found.columns)):
        return None
    return found


@contextmanager
def view_of_rows(engine: Engine, rows: pa.Table) -> Iterator[str | None]:
    """Yield the name of a view of the rows, with the table's columns.  Yield None if replctl cannot
    send a type to Spark.
    """
    import pyarrow as pa

    types = [_travelling(field.type) for field in rows.schema]
    if None in types:
        yield None
        return
    known = [(type_, back) for type_, back in filter(None, types)]
    columns = [
        column.cast(type_) for column, (type_, _back) in zip(rows.columns, known, strict=True)
    ]
    places = [f"x{i}" for i in range(len(columns))]
    frame = engine.frame(pa.table(dict(zip(places, columns, strict=True))))
    received = [
        f"{back.format(place)} AS {quote_name(field.name)}"
        for place, field, (_type, back) in zip(places, rows.schema, known, strict=True)
    ]
    with engine.running():
        frame = frame.selectExpr(*received)
    with named_view(engine, frame) as view:
        yield view


_MAPPING_MODE = "delta.columnMapping.mode"
#: In the path of a data file, delta-rs takes a backslash for a slash, and cuts the path at others.
_MISREAD = {*"\\?#:"}


def _opened(source: TableSource, names: Collection[str | None]) -> DeltaTable | None:
    """Open a table with delta-rs; return None if Spark must read it.

    Args:
        names: the names in storage of the columns to read.
    """
    from deltalake import DeltaTable

    assert source.location is not None
    parts = urlsplit(source.location)
    if parts.scheme not in ("", "file"):
        return None
    path = unquote(parts.path) if parts.scheme else source.location
    if not is_found_by_delta_rs(path):
        return None
    try:
        table = DeltaTable(path, version=source.version)
        mapping = table.metadata().configuration.get(_MAPPING_MODE, "none")
        # delta-rs silently reads NULL from renamed columns
        return table if mapping == "none" and _has_own_files(table, path, names) else None
    except Exception as error:  # Spark reads more tables than delta-rs
        check_declined(error)
        return None


def _has_own_files(table: DeltaTable, location: str, names: Collection[str | None]) -> bool:
    """Return whether delta-rs reads the same values as Spark from few enough files."""
    import pyarrow as pa

    files = pa.table(table.get_add_actions(flatten=True))
    counts = files.column("num_records").to_pylist()
    if len(counts) > _MOST_FILES or None in counts or sum(counts) > _MOST_TABLE_ROWS:
        return False
    parted = table.metadata().partition_columns
    wanted = tuple(
        (field.name, field.type)
        for field in pa.schema(table.schema().to_arrow())
        if field.name in names and field.name not in parted
    )
    listed = ("path", "size_bytes", "modification_time")
    return all(
        not _MISREAD & {*uri}
        and uri == canonical_path(uri)  # delta-rs takes two forms of a path for two files
        and _is_own_file(os.path.join(location, unquote(uri)), *state, wanted)
        for uri, *state in zip(*(files.column(name).to_pylist() for name in listed), strict=True)
    )


@lru_cache(maxsize=10_000)
def _is_own_file(
    path: str, size: int, modified: int, wanted: tuple[tuple[str, pa.DataType], ...]
) -> bool:
    """Return whether delta-rs reads the same values as Spark from columns of a data file.

    Args:
        size, modified: the file's state in the log.  A file with the same name and state keeps its
            columns.
    """
    from pyarrow import ArrowException
    from pyarrow.parquet import read_schema

    try:
        return os.path.isfile(path) and are_read_alike(read_schema(path), dict(wanted))
    except (OSError, ArrowException, UnicodeDecodeError):
        return False  # Spark will report the error, or accepts the file


def is_found_by_delta_rs(path: str) -> bool:
    """Return whether delta-rs reads the log in a table's directory.  In the names of log files, it
    decodes `%41`, and takes a backslash for a slash, so it may read the log of another table.
    """
    return not {"%", "\\"} & {*path}


def check_declined(error: Exception) -> None:
    """Raise an error again unless it comes from delta-rs.  If it does, Spark reads the table, or
    reports why it cannot.  For files, delta-rs mostly raises a plain Exception.
    """
    from deltalake.exceptions import DeltaError

    if type(error) is not Exception and not isinstance(error, DeltaError):
        raise error


def _is_timestamp(column: TableColumn) -> bool:
    """Return whether other Spark jobs may store a column as INT96, which delta-rs cannot read for
    all years."""
    type_, typmod = column.text_of or (column.type, column.typmod)
    return storage_type(type_, typmod) in ("TIMESTAMP", "ARRAY<TIMESTAMP>")


def _has_old_dates(values: pa.ChunkedArray) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        return _has_old_dates(pc.list_flatten(values))
    if not pa.types.is_date32(values.type):
        return False
    first = pc.min(values.cast(pa.int32())).as_py()
    return first is not None and first < GREGORIAN


def _literals(column: TableColumn, values: Sequence[Any]) -> list[str]:
    """Return the values of a column as DataFusion literals.  Return [] if the type has no literals,
    or if equal values may be stored differently.
    """
    is_as_stored = column.text_of is None and has_own_form(column)
    if column.storage_name is None or not is_as_stored:
        return []
    stored = storage_type(column.type, column.typmod)
    if stored not in _LITERALS:
        return []
    known = sorted({value for value in values if value is not None})
    if stored == "DATE" and known and known[0] < GREGORIAN:
        return []
    literal = _LITERALS[stored]
    return [literal(value) for value in known] or ["NULL"]


def _travelling(arrow: pa.DataType) -> tuple[pa.DataType, str] | None:
    """Return the Arrow type in which to send values to Spark, and the Spark expression over {0}
    that decodes them, like data_type.wire for storage types.  None: replctl cannot send the type.
    """
    import pyarrow as pa

    if pa.types.is_list(arrow):
        element = _travelling(arrow.value_type)
        if element is None:
            return None
        type_, back = element
        is_same = back == "{0}"
        return pa.list_(type_), back if is_same else f"transform({{0}}, x -> {back.format('x')})"
    if pa.types.is_timestamp(arrow) and arrow.unit == "us" and arrow.tz in (None, "UTC"):
        at = "timestamp_micros({0})"
        return pa.int64(), at if arrow.tz else f"CAST({at} AS TIMESTAMP_NTZ)"
    if pa.types.is_date32(arrow):
        return pa.int32(), "date_from_unix_date({0})"
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or arrow == pa.string_view():
        return pa.string(), "{0}"
    if pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow) or arrow == pa.binary_view():
        return pa.binary(), "{0}"
    if (
        pa.types.is_boolean(arrow)
        or pa.types.is_signed_integer(arrow)
        or pa.types.is_float32(arrow)
        or pa.types.is_float64(arrow)
        or pa.types.is_decimal128(arrow)
    ):
        return arrow, "{0}"
    return None


def _quoted(name: str | None) -> str:
    """Quote a column's name in storage for DataFusion."""
    return '"' + (name or "").replace('"', '""') + '"'
