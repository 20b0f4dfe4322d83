"""Read the rows of small Delta tables from their files, and find rows by their keys, in this
process.

Even for one row, Spark needs a plan, three queries of Delta's log, and jobs.  A warm Spark takes
0.2 to 0.4 s for it, and a cold one several seconds more.  This module takes some milliseconds.

It leaves a file to Spark if Spark might read other values from it (`_values`).  Row ids and
deletion vectors follow Delta's protocol, sections "Reader Requirements for Row Tracking" and
"Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os.path import realpath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from replctl.record import dataclass
from replctl.spark.data_type import (
    element_type,
    storage_type,
    stored_arrow,
    text_of_wire,
    wire,
)
from replctl.spark.file_columns import are_read_alike
from replctl.spark.key_lookup import check_declined, is_found_by_delta_rs
from replctl.spark.local_write import WRITER
from replctl.spark.normal_form import has_own_form
from replctl.spark.values import TableColumn, TableSource

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

#: The entry in a file's metadata that names the version of Spark that wrote it.  Files of other
#: writers may follow another calendar.  So may files of a Spark before `_FIRST_KNOWN`, and files
#: with one of the entries below (DataSourceUtils.datetimeRebaseSpec).
_SPARK, _FIRST_KNOWN = b"org.apache.spark.version", b"3.0.0"
_OLD_CALENDARS = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_TIMES = frozenset(("date", "timestamp", "timestamptz"))


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file of a table's version.

    Attributes:
        path: its path in the file system.
        has_vector: some of its rows are deleted by a deletion vector.
        first_row_id, version: the row id of its first row, and the version that added the rows.
            They apply to rows whose ids are not in the file itself.  None without row tracking.
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


@dataclass(frozen=True, slots=True)
class FileRows:
    """The rows of a data file: all of them, and the positions of the deleted ones."""

    rows: Sequence[LocalRow]
    deleted: frozenset[int]

    def live(self) -> dict[int, LocalRow]:
        """Return the rows that are not deleted, by their positions."""
        return {i: row for i, row in enumerate(self.rows) if i not in self.deleted}


class LeftToSpark(Exception):
    """Raised for files that have too many rows, or values that only Spark reads."""


class FileReader:
    """Reads data files of one table.

    Args:
        location: the table's directory.
        most: the maximum number of live rows to read in total.
    """

    def __init__(self, location: str, most: int) -> None:
        self._location = location
        self._most = most
        self._kept: dict[int, dict[str, list[bool]]] = {}

    def read(
        self,
        file: DataFile,
        version: int,
        columns: Sequence[TableColumn],
        hidden: tuple[str | None, str | None] = (None, None),
    ) -> FileRows:
        """Return the rows of a file of a version of the table.

        Args:
            columns: the columns to return.
            hidden: the names of the two columns that hold the row version and the row id of rows
                that have moved between files; None without row tracking.

        Raises:
            LeftToSpark: Spark has to read the file.
        """
        rows = _rows_of_file(file, columns, hidden, self._most)
        found = FileRows(rows, self._deleted(file, version))
        self._most -= len(rows) - len(found.deleted)
        return found

    def _deleted(self, file: DataFile, version: int) -> frozenset[int]:
        if not file.has_vector:
            return frozenset()
        if version not in self._kept:
            self._kept[version] = _kept_rows(self._location, version)
        mask = self._kept[version].get(realpath(file.path))
        if mask is None:
            raise LeftToSpark
        # A mask ends with the last deleted row
        return frozenset(i for i, is_kept in enumerate(mask) if not is_kept)


@contextmanager
def declining() -> Iterator[None]:
    """End the `with` block without an error if Spark has to read a file, or will report an
    error about it."""
    import pyarrow as pa

    try:
        yield
    except (LeftToSpark, OSError, pa.ArrowException, UnicodeDecodeError):
        pass  # Spark will report the error, or accepts the file
    except Exception as error:  # Spark reads more files than delta-rs
        check_declined(error)


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
        hidden: see `FileReader.read`.
        most: the maximum number of rows.

    Returns:
        the rows; None if Spark has to read the table, because it has more rows, or values that only
        Spark reads.
    """
    reader = FileReader(location, most)
    with declining():
        read = [reader.read(file, version, columns, hidden) for file in files]
        found = [row for item in read for row in item.live().values()]
        return sorted(found, key=lambda row: row.place)
    return None


@dataclass(frozen=True, slots=True)
class MatchedFile:
    """A data file, and the positions of some of its rows.

    Attributes:
        rows: the number of its rows, including deleted ones.
        deleted: the positions of the rows that a deletion vector has deleted.
        matching: the positions of the other rows that have one of the keys.
    """

    rows: int
    deleted: frozenset[int]
    matching: frozenset[int]


def matched_files(
    source: TableSource,
    files: Sequence[DataFile],
    keys: Mapping[int, Sequence[str | None]],
    most: int,
) -> list[MatchedFile] | None:
    """Find the rows of a version of a table that have given keys.

    Args:
        source: the table, with its location and the version.
        files: the files of the version.
        keys: the values of the keys in canonical text, by attnum of the column.
        most: the maximum number of rows in all files.

    Returns:
        the files, in the same order; None if Spark has to find the rows, because there are more
        rows, or values that only Spark reads or compares.
    """
    assert source.location is not None
    assert source.version is not None
    columns = [source.column(attnum) for attnum in keys]
    if not all(map(_is_compared_as_text, columns)):
        return None
    wanted = {key for key in zip(*keys.values(), strict=True) if None not in key}
    reader = FileReader(source.location, most)
    with declining():
        return [
            MatchedFile(
                len(read.rows),
                read.deleted,
                frozenset(i for i, row in read.live().items() if row.values in wanted),
            )
            for read in (reader.read(file, source.version, columns) for file in files)
        ]
    return None


def _is_compared_as_text(column: TableColumn) -> bool:
    """Return whether two values of a stored column are equal if and only if their canonical texts
    are equal.  For floating-point numbers, 0 equals -0.
    """
    stored = storage_type(column.type, column.typmod)
    return (
        column.storage_name is not None
        and has_own_form(column)
        and element_type(column.type) is None
        and stored not in ("FLOAT", "DOUBLE")
    )


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
) -> list[LocalRow]:
    """Return all rows of a file, including deleted ones.

    Raises:
        LeftToSpark: Spark has to read the file.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    with ParquetFile(file.path) as parquet:
        count = parquet.metadata.num_rows
        if count > most:
            raise LeftToSpark
        names = parquet.schema_arrow.names
        wanted = {name: pa.int64() for name in hidden if name is not None} | {
            column.storage_name: stored_arrow(column.type, column.typmod)
            for column in columns
            if column.storage_name is not None
        }
        if not are_read_alike(parquet.schema_arrow, wanted):
            raise LeftToSpark
        table = parquet.read(sorted(wanted.keys() & {*names}))
        is_known = has_known_calendar(parquet)
    values: list[list[str | None]] = []
    for column in columns:
        if column.storage_name is None:
            values.append([column.missing_value] * count)
        elif column.storage_name not in names:
            values.append([None] * count)
        else:
            texts = _values(table.column(column.storage_name), column, is_known)
            if texts is None:
                raise LeftToSpark
            values.append(texts)
    places = _places(table, file, hidden, count)
    rows = zip(*values, strict=True) if values else iter([()] * count)
    return [LocalRow(place, row) for place, row in zip(places, rows, strict=True)]


def _places(
    table: pa.Table, file: DataFile, hidden: tuple[str | None, str | None], count: int
) -> list[tuple[int, int]]:
    """Return the place of each of the `count` rows of a file."""

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


def has_known_calendar(parquet: ParquetFile) -> bool:
    """Return whether the dates and timestamps of a file follow the Gregorian calendar."""
    written = parquet.metadata.metadata or {}
    if any(name in written for name in _OLD_CALENDARS):
        return False
    return WRITER in written or written.get(_SPARK, b"") >= _FIRST_KNOWN


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
