"""Write few rows of an outcome into a data file of a Delta table, in this process.

To write a data file, Spark makes a plan and runs jobs and a task.  This takes 0.3 to 0.8 s, and
several seconds the first time.  This module takes some milliseconds.

The file has the types and the statistics that Spark would write.  Delta's protocol, section
"Per-file Statistics", describes them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from itertools import compress
from typing import TYPE_CHECKING, Any

import replctl
from replctl.record import dataclass
from replctl.spark.data_type import NO_COLUMN, storage_type, stored_arrow, wire
from replctl.spark.key_lookup import GREGORIAN
from replctl.spark.outcome import COMING, Outcome
from replctl.spark.values import TableColumn
from replctl.types.delta_type import is_native

if TYPE_CHECKING:
    import pyarrow as pa

#: The entry in the metadata of a file that names the version of replctl that wrote it.
WRITER = b"replctl.version"
#: The first microsecond of 1900, since 1970.  Old readers convert earlier timestamps to the Julian
#: calendar.  They also convert dates before the start of the Gregorian calendar.
_FIRST_TIME = -2_208_988_800_000_000
#: The last day of the year 9999, and the microsecond after it.  Later texts have five digits.
_LAST_DAY, _LAST_TIME = 2_932_896, 253_402_300_800_000_000
#: Maximum number of columns with statistics, and of characters of a text in them.
_MOST_COLUMNS, _MOST_CHARACTERS = 32, 32
#: Arguments of `ParquetWriter`.  Parquet's own statistics omit NaN, and its dictionaries may
#: have only one of 0 and -0.  With them, Spark would not look for these values in the file.
_FORMAT: dict[str, Any] = {
    "compression": "snappy",
    "use_dictionary": False,
    "write_statistics": False,
    "store_schema": False,
    "store_decimal_as_integer": True,
}
_DAY_ZERO = date(1970, 1, 1)
_TIME_ZERO = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A data file that was written: its numbers of rows and bytes, the time of its last change in
    milliseconds since 1970, and its statistics as JSON."""

    rows: int
    size: int
    modified: int
    statistics: str


def write_file(
    outcome: Outcome, number: int, columns: Sequence[TableColumn], path: str
) -> WrittenFile | None:
    """Write the new rows of one leaf partition to a data file.

    Args:
        outcome: an outcome with few rows.
        number: the leaf's index in the outcome's target.
        columns: the columns to write.
        path: the path of the new file, on a local disk.

    Returns:
        The file; None if Spark has to write the rows, because other writers could store them
        differently.

    Raises:
        OSError: the file cannot be written.
    """
    import pyarrow as pa

    rows = outcome.rows
    comes = [
        new_leaf == number and op in COMING
        for op, new_leaf in zip(rows.values("op"), rows.values("new_leaf"), strict=True)
    ]
    if any(is_native(column.type) for column in columns):
        return None
    arrays = {
        c.storage_name or "": pa.chunked_array(
            [
                pa.array(
                    [*compress(rows.values(f"w{c.attnum}"), comes)], wire(c.type, c.typmod).arrow
                )
            ]
        ).cast(stored_arrow(c.type, c.typmod))
        for c in columns
    }
    arrays = arrays or {NO_COLUMN: pa.nulls(sum(comes), pa.bool_())}
    return write_rows(pa.table(arrays), columns, path)


def write_rows(rows: pa.Table, columns: Sequence[TableColumn], path: str) -> WrittenFile | None:
    """Write rows to a new data file.

    Args:
        rows: the rows as Arrow stores them.
        columns: the columns of the relation, by their names in storage, for statistics.
        path: the path of the new file, on a local disk.

    Returns:
        the file; None if Spark has to write the rows, because other writers could store them
        differently.

    Raises:
        OSError: the file cannot be written.
    """
    from pyarrow.parquet import ParquetWriter

    if not all(map(_is_written_alike, rows.columns)):
        return None
    with open(path, "xb") as file, ParquetWriter(file, rows.schema, **_FORMAT) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({WRITER: replctl.__version__.encode()})
    state = os.stat(path)
    shown = _statistics(
        rows.num_rows,
        [
            (c, rows.column(c.storage_name).cast(wire(c.type, c.typmod).arrow).to_pylist())
            for c in columns
        ],
    )
    return WrittenFile(rows.num_rows, state.st_size, state.st_mtime_ns // 1_000_000, shown)


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
        return least is None or least >= _FIRST_TIME
    return True


# ---------------------------------------------------------------------------------------------
# Statistics


def _statistics(count: int, columns: Sequence[tuple[TableColumn, Sequence[Any]]]) -> str:
    """Return the statistics of a file as JSON.  The minimum and maximum of a column are absent if
    readers do not need them, or if JSON or Delta has no text for them."""
    least, greatest, nulls = [], [], []
    for column, values in columns[:_MOST_COLUMNS]:
        stored = storage_type(column.type, column.typmod)
        if stored.startswith("STRUCT"):
            continue
        name = json.dumps(column.storage_name)
        nulls.append(f"{name}:{sum(value is None for value in values)}")
        known = [value for value in values if value is not None]
        shown = _LIMITS.get(stored.partition("(")[0])
        limits = shown(known) if shown is not None and known else None
        if limits is not None:
            least.append(f"{name}:{limits[0]}")
            if limits[1] is not None:
                greatest.append(f"{name}:{limits[1]}")
    return (
        f'{{"numRecords":{count},"minValues":{{{",".join(least)}}}'
        f',"maxValues":{{{",".join(greatest)}}},"nullCount":{{{",".join(nulls)}}}'
        ',"tightBounds":true}'
    )


def _numbers(values: Sequence[Any]) -> tuple[str, str]:
    return str(min(values)), str(max(values))


def _decimals(values: Sequence[Any]) -> tuple[str, str]:
    return f"{min(values):f}", f"{max(values):f}"


def _texts(values: Sequence[str]) -> tuple[str, str | None]:
    least, greatest = min(values)[:_MOST_CHARACTERS], max(values)
    is_short = len(greatest) <= _MOST_CHARACTERS
    return json.dumps(least), json.dumps(greatest) if is_short else None


def _days(values: Sequence[int]) -> tuple[str, str] | None:
    if max(values) > _LAST_DAY:
        return None
    least, greatest = (_DAY_ZERO + timedelta(days=day) for day in (min(values), max(values)))
    return f'"{least.isoformat()}"', f'"{greatest.isoformat()}"'


def _times(values: Sequence[int], suffix: str) -> tuple[str, str] | None:
    """Return the minimum and maximum in whole milliseconds, rounded down.  Readers add one
    millisecond to the maximum.
    """
    if max(values) >= _LAST_TIME:
        return None
    least, greatest = (
        (_TIME_ZERO + timedelta(microseconds=value)).isoformat(timespec="milliseconds")
        for value in (min(values), max(values))
    )
    return f'"{least}{suffix}"', f'"{greatest}{suffix}"'


#: The function that writes the minimum and maximum of a column as JSON, by the storage type
#: without arguments.
_LIMITS: dict[str, Callable[[Sequence[Any]], tuple[str, str | None] | None]] = {
    **dict.fromkeys(("SMALLINT", "INT", "BIGINT"), _numbers),
    "DECIMAL": _decimals,
    "STRING": _texts,
    "DATE": _days,
    "TIMESTAMP": lambda values: _times(values, "Z"),
    "TIMESTAMP_NTZ": lambda values: _times(values, ""),
}
