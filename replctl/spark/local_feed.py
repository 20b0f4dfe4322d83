"""Read the changes of versions of a small Delta table from their files, in this process.

Delta's protocol, sections "Change Data Files" and "Deletion Vectors": if a version has change data
files, these are its changes.  Otherwise its changes are the rows of the files that it adds and
removes.  If it only changes the deletion vector of a file, its changes are the rows that the new
vector deletes or restores.

With row tracking, an updated row keeps its row id (section "Row Tracking").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os.path import realpath

from replctl.record import dataclass
from replctl.spark.local_scan import DataFile, FileReader, LocalRow, declining
from replctl.spark.staged import StagedColumn
from replctl.spark.values import IMAGES, TableColumn, TableSource

_CHANGE_TYPE = TableColumn(0, "text", -1, "_change_type")


@dataclass(frozen=True, slots=True)
class VersionFiles:
    """The files with the changes of a version.

    Attributes:
        changes: change data files; if there are any, `feed_rows` reads only them.
        removed, added: data files before and after the version.
    """

    version: int
    changes: Sequence[DataFile]
    removed: Sequence[DataFile]
    added: Sequence[DataFile]


def feed_columns(source: TableSource) -> list[StagedColumn]:
    """Return the columns of a change data feed: version, kind and c<attnum>."""
    own = [StagedColumn(f"c{c.attnum}", c.type, c.typmod) for c in source.columns]
    return [StagedColumn("version", "int8"), StagedColumn("kind", "text"), *own]


def feed_rows(source: TableSource, files: VersionFiles, most: int) -> list[list[str | None]] | None:
    """Return the changes of a version as canonical texts, in the columns of `feed_columns`.

    Args:
        source: the table, with its location.
        most: the maximum number of rows in the files.

    Returns:
        the changes; None if Spark has to read them, because there are more, or values that only
        Spark reads.
    """
    assert source.location is not None
    columns = [column.at(files.version) for column in source.columns]
    reader = FileReader(source.location, most)
    with declining():
        found = (
            _recorded(reader, files, columns)
            if files.changes
            else _differences(reader, files, columns)
        )
        return [[str(files.version), *values] for values in found]
    return None


def update_columns(source: TableSource) -> list[StagedColumn]:
    """Return the columns of updated rows: version, row_id, and o<attnum> and n<attnum> for the old
    and the new row.
    """
    images = (
        StagedColumn(f"{i}{c.attnum}", c.type, c.typmod) for i in IMAGES for c in source.columns
    )
    return [StagedColumn("version", "int8"), StagedColumn("row_id", "int8"), *images]


def updated_rows(
    source: TableSource,
    files: VersionFiles,
    hidden: tuple[str | None, str | None],
    most: int,
) -> list[list[str | None]] | None:
    """Return the rows that a version updates as canonical texts, in the columns of
    `update_columns`.

    Args:
        source: the table, with its location and row tracking.
        hidden: see `FileReader.read`.
        most: the maximum number of rows in the files.

    Returns:
        the rows; None as for `feed_rows`.
    """
    assert source.location is not None
    if any(file.first_row_id is None for file in (*files.removed, *files.added)):
        return None
    reader = FileReader(source.location, most)
    with declining():
        before, after = (
            {
                row.place[1]: row
                for file in side
                for row in reader.read(
                    file, version, [column.at(version) for column in source.columns], hidden
                )
                .live()
                .values()
            }
            for side, version in (
                (files.removed, files.version - 1),
                (files.added, files.version),
            )
        )
        return [
            [str(files.version), str(row_id), *before[row_id].values, *row.values]
            for row_id, row in after.items()
            if row.place[0] == files.version and row_id in before
        ]
    return None


def _recorded(
    reader: FileReader, files: VersionFiles, columns: Sequence[TableColumn]
) -> list[tuple[str | None, ...]]:
    """Return the rows of change data files, each with its kind in front."""
    read = (reader.read(file, files.version, [_CHANGE_TYPE, *columns]) for file in files.changes)
    return [row.values for item in read for row in item.rows]


def _differences(
    reader: FileReader, files: VersionFiles, columns: Sequence[TableColumn]
) -> list[tuple[str | None, ...]]:
    """Return the rows that exist only before or only after a version, each with its kind in
    front."""
    before = _live_rows(reader, files.version - 1, files.removed, columns)
    after = _live_rows(reader, files.version, files.added, columns)
    found: list[tuple[str | None, ...]] = []
    for kind, own, other in (("delete", before, after), ("insert", after, before)):
        for path, rows in own.items():
            kept = other.get(path, {})
            found += [(kind, *row.values) for place, row in rows.items() if place not in kept]
    return found


def _live_rows(
    reader: FileReader, version: int, files: Sequence[DataFile], columns: Sequence[TableColumn]
) -> Mapping[str, Mapping[int, LocalRow]]:
    """Return the rows of files that are not deleted at a version, by path and position."""
    return {realpath(file.path): reader.read(file, version, columns).live() for file in files}
