"""Read the rows of small Delta tables from their files, in this process.

Even for one row, Spark needs a plan, three queries of Delta's log, and jobs.  A warm Spark takes
0.2 to 0.4 s for it, and a cold one several seconds more.  This module takes some milliseconds.

It leaves a file to Spark if Spark might read other values from it (`_values`).  Row ids and
deletion vectors follow Delta's protocol, sections "Reader Requirements for Row Tracking" and
"Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Sequence
from os.path import realpath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from replctl.record import dataclass
from replctl.spark.data_type import element_type, stored_arrow, text_of_wire, wire
from replctl.spark.file_columns import are_read_alike
from replctl.spark.key_lookup import check_declined, is_found_by_delta_rs
from replctl.spark.local_write import WRITER
from replctl.spark.values import TableColumn

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

#: The entries in a file's metadata with the version of the Spark, or of the replctl, that wrote it.
#: Dates and timestamps of other writers may be of another calendar.  So may those of a Spark that
#: wrote one of the other entries.
_WRITERS = (b"org.apache.spark.version", WRITER)
_OLD_CALENDARS = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_TIMES = frozenset(("date", "timestamp", "timestamptz"))


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file of a table's version.

    Attributes:
        path: its path in the file system.
        has_vector: some of its rows are deleted by a deletion vector.
        first_row_id, version: the row id of its first row, and the version that added the rows.
            They hold for rows without ids in the file itself.  None without row tracking.
    """

    path: str
    has_vector: bool
    first_row_id: int | None
    version: int | None


@dataclass(frozen=True, slots=True)
class LocalRow:
    """A row: its values in canonical text, and its place in the order in which rows were written.

    Attributes:
        place: the version that wrote it, and its row id.
    """

    place: tuple[int, int]
    values: tuple[str | None, ...]


def rows_of_files(
    location: str,
    version: int,
    files: Sequence[DataFile],
    columns: Sequence[TableColumn],
    hidden: tuple[str | None, str | None],
    most: int,
) -> list[LocalRow] | None:
    """Return the rows of a version of a table, in the order in which they were written.

    Args:
        location: the table's directory.
        files: the files of the version.
        columns: the columns to return.
        hidden: the names of the two columns that hold the row version and the row id of rows that
            have moved between files; None without row tracking.
        most: the maximum number of rows.

    Returns:
        the rows; None if Spark has to read the table, because it has more rows, or values that only
        Spark reads.
    """
    import pyarrow as pa

    found: list[LocalRow] = []
    try:
        kept = _kept_rows(location, version) if any(file.has_vector for file in files) else {}
        for file in files:
            rows = _rows_of_file(file, columns, hidden, most - len(found))
            mask = kept.get(realpath(file.path)) if file.has_vector else []
            if rows is None or mask is None:
                return None
            # A mask ends with the last deleted row
            found += [row for i, row in enumerate(rows) if i >= len(mask) or mask[i]]
    except (OSError, pa.ArrowException, UnicodeDecodeError):
        return None  # Spark will report the error, or accepts the file
    except Exception as error:
        check_declined(error)
        return None
    return sorted(found, key=lambda row: row.place)


def _kept_rows(location: str, version: int) -> dict[str, list[bool]]:
    """Return a mask of the rows that still exist, for each file with a deletion vector, by its
    path; no mask if delta-rs cannot read the log.
    """
    from deltalake import DeltaTable

    if not is_found_by_delta_rs(location):
        return {}
    vectors = DeltaTable(location, version=version).deletion_vectors().read_all()
    paths = (realpath(unquote(urlsplit(uri).path)) for uri in vectors["filepath"].to_pylist())
    return dict(zip(paths, vectors["selection_vector"].to_pylist(), strict=True))


def _rows_of_file(
    file: DataFile,
    columns: Sequence[TableColumn],
    hidden: tuple[str | None, str | None],
    most: int,
) -> list[LocalRow] | None:
    """Return all rows of a file, including deleted ones; None if Spark has to read it."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    with ParquetFile(file.path) as parquet:
        count = parquet.metadata.num_rows
        if count > most:
            return None
        names = parquet.schema_arrow.names
        wanted = {name: pa.int64() for name in hidden if name is not None} | {
            column.storage_name: stored_arrow(column.type, column.typmod)
            for column in columns
            if column.storage_name is not None
        }
        if not are_read_alike(parquet.schema_arrow, wanted):
            return None
        table = parquet.read(sorted(wanted.keys() & {*names}))
        has_known_calendar = _has_known_calendar(parquet)
    values: list[list[str | None]] = []
    for column in columns:
        if column.storage_name is None:
            values.append([column.missing_value] * count)
        elif column.storage_name not in names:
            values.append([None] * count)
        else:
            texts = _values(table.column(column.storage_name), column, has_known_calendar)
            if texts is None:
                return None
            values.append(texts)
    places = _places(table, file, hidden, count)
    rows = zip(*values, strict=True) if values else iter([()] * count)
    return [LocalRow(place, row) for place, row in zip(places, rows, strict=True)]


def _places(
    table: pa.Table, file: DataFile, hidden: tuple[str | None, str | None], count: int
) -> list[tuple[int, int]]:
    def own(name: str | None) -> list[int | None]:
        is_there = name is not None and name in table.column_names
        return table.column(name).to_pylist() if is_there else [None] * count

    versions, row_ids = map(own, hidden)
    return [
        (
            version if version is not None else file.version or 0,
            row_id if row_id is not None else (file.first_row_id or 0) + i,
        )
        for i, (version, row_id) in enumerate(zip(versions, row_ids, strict=True))
    ]


def _has_known_calendar(parquet: ParquetFile) -> bool:
    written = parquet.metadata.metadata or {}
    return any(name in written for name in _WRITERS) and not any(
        name in written for name in _OLD_CALENDARS
    )


def _values(
    values: pa.ChunkedArray, column: TableColumn, has_known_calendar: bool
) -> list[str | None] | None:
    """Return a column's values in canonical text; None if Spark might read other values from the
    file.
    """
    if (element_type(column.type) or column.type) in _TIMES and not has_known_calendar:
        return None
    sent = values.cast(wire(column.type, column.typmod).arrow).to_pylist()
    return [text_of_wire(column.type, value) for value in sent]
