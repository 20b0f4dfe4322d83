"""Compute the changes of one version, or of several successive versions, by comparing the rows
before and after.

Rows that are stored identically on both sides are no changes; each cancels out one row of the other
side.  If both sides have row ids, two rows with the same row id are the old and the new version of
a row.

If another program has dropped and restored a column, the old side lacks the column's values, but
subscribers still have them.  So no rows cancel out: the version sends all rows that it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from replctl.record import dataclass
from replctl.spark.data_type import quote, storage_type
from replctl.spark.delta_table import scan
from replctl.spark.normal_form import grouped_value, is_stored_alike, matches, stored_form
from replctl.spark.spark_query import Query, query, reading, selected
from replctl.spark.sql_value import raise_value_error_sql
from replctl.spark.values import FeedVersion, TableColumn, TableSource
from replctl.types.delta_type import is_native

#: Stands for the values of a row without columns.
_NO_VALUES = "1 AS c0"
#: The SQL condition that holds for no version.
_NONE = "FALSE"
#: The values of the column `side` in `FeedVersion.images`.
BEFORE, AFTER = -1, 1


def source_at(source: TableSource, version: int) -> TableSource:
    """Return a table at a version, where columns that were added later have `missing_value`."""
    columns = tuple(column.at(version) for column in source.columns)
    return replace(source, columns=columns, version=version, local=None)


def row_value(source: TableSource, alias: str = "") -> str:
    """Return SQL of a struct with all columns of a row."""
    prefix = f"{alias}." if alias else ""
    values = ", ".join(f"{prefix}c{c.attnum} AS c{c.attnum}" for c in source.columns)
    return f"struct({values or _NO_VALUES})"


def compared_sql(source: TableSource, version: FeedVersion, place: str) -> Query:
    """Return a query for the changed rows of a version: version, kind (insert or delete), place,
    and c<attnum>.

    Args:
        place: SQL of the place of a row in the version.
    """
    before, after = sides(source, version)
    shown = [("kind", "kind"), (place, "place"), *((f"c{c.attnum}",) * 2 for c in source.columns)]
    head = f"SELECT {version.version}L AS version, {selected(shown)}"
    if before is None or after is None:
        kind = quote("insert" if before is None else "delete")
        rows = after or before or scan(replace(source, location=None))
        return reading(f"{head} FROM (SELECT *, {kind} AS kind FROM ({rows}))", rows)
    found = _differences(
        source,
        query(f"SELECT {version.version}L AS version, * FROM side_rows", side_rows=before),
        query(f"SELECT {version.version}L AS version, * FROM side_rows", side_rows=after),
        _restoring(source, [version]),
    )
    return reading(f"{head} FROM ({found})", found)


def restores_columns(source: TableSource, version: FeedVersion) -> bool:
    """Return whether a compared version has a column again that was dropped before it."""
    return any(column.returns(version.before, version.version) for column in source.columns)


def _restoring(source: TableSource, versions: Iterable[FeedVersion]) -> str:
    """Return the SQL condition that `version` is a version that restores a column."""
    found = [str(v.version) for v in versions if restores_columns(source, v)]
    return f"version IN ({', '.join(found)})" if found else _NONE


@dataclass(frozen=True, slots=True)
class PairedVersions:
    """The changed rows of versions, of which some are paired by row id.

    Attributes:
        updated: the paired rows: version, place, kind U, o, n.
        others: the other rows, with the columns of `compared_sql`.
        keys: the keys of all these rows: version, c<attnum>, is_old, is_new.  An updated row
            has one key that is both, or two.
    """

    updated: Query
    others: Query
    keys: Query


def pairs_by_row_id(
    source: TableSource, versions: Sequence[FeedVersion], images: str, key: Sequence[int]
) -> PairedVersions:
    """Return the changed rows of versions, paired by row id.

    Args:
        images: the view with the rows of both sides of these versions (`FeedVersion.images`).
        key: attnums of the columns that identify a row.
    """
    columns, row = source.columns, row_value(source)
    restoring = _restoring(source, versions)
    is_changed = f"NOT ({_is_alike(columns)})"
    if restoring != _NONE:
        is_changed = f"({restoring} OR {is_changed})"
    shared_row = raise_value_error_sql(
        "XX001",
        f'Delta table "{source.location}" has several rows with one row ID in version ',
        "CAST(version AS STRING)",
        "",
    )
    numbers = ", ".join(str(version.version) for version in versions)
    rows = query(
        "SELECT version, row_id,"
        f" if(old_count > 1 OR new_count > 1, {shared_row}, o) AS o, n FROM counted",
        images=Query(
            f"SELECT version, side, row_id, {row} AS image FROM {images}"
            f" WHERE version IN ({numbers})",
            views=frozenset({images}),
        ),
        counted="SELECT version, row_id,"
        f" any_value(image) FILTER (WHERE side = {BEFORE}) AS o,"
        f" any_value(image) FILTER (WHERE side = {AFTER}) AS n,"
        f" count_if(side = {BEFORE}) AS old_count, count_if(side = {AFTER}) AS new_count"
        " FROM images GROUP BY version, row_id",
    )
    updated = query(
        "SELECT version, row_id AS place, 'U' AS kind, o, n FROM rows"
        f" WHERE o IS NOT NULL AND n IS NOT NULL AND {is_changed}",
        rows=rows,
    )
    others = query(
        "SELECT * FROM others",
        rows=rows,
        others=_differences(
            source,
            "SELECT version, o.* FROM rows WHERE n IS NULL",
            "SELECT version, n.* FROM rows WHERE o IS NULL",
            restoring,
        ),
    )
    shown = ["version", "kind", "0L AS place", *(f"c{column.attnum}" for column in columns)]
    single = f"SELECT {', '.join(shown)} FROM ({others})"
    paired = f"SELECT * FROM ({updated})"
    names = "".join(f"c{attnum}, " for attnum in key)
    keys = (
        f"SELECT version, inline({_keys_sql(source, key)}) FROM ({paired})"
        f" UNION ALL SELECT version, {names}kind = 'delete', kind = 'insert' FROM ({single})"
    )
    return PairedVersions(*(reading(text, rows) for text in (paired, single, keys)))


def _keys_sql(source: TableSource, key: Sequence[int]) -> str:
    """Return SQL of an array of the keys of an updated row (o, n)."""
    same = " AND ".join(
        matches(source.column(attnum), f"o.c{attnum}", f"n.c{attnum}", "<=>") for attnum in key
    )
    same = same or "TRUE"

    def entry(image: str, is_old: str, is_new: str) -> str:
        values = "".join(f"{image}.c{attnum} AS c{attnum}, " for attnum in key)
        return f"struct({values}{is_old} AS is_old, {is_new} AS is_new)"

    old, new = entry("o", "TRUE", "FALSE"), entry("n", "FALSE", "TRUE")
    return f"CASE WHEN {same} THEN array({entry('n', 'TRUE', 'TRUE')}) ELSE array({old}, {new}) END"


def _differences(
    source: TableSource, before: Query | str, after: Query | str, restoring: str
) -> Query:
    """Return a query for the rows that only one side has: version, kind (insert or delete) and
    c<attnum>.

    Args:
        before: the rows before the versions, with the column `version`.
        after: the rows after them.
        restoring: the SQL condition that all rows of both sides of a version count.
    """
    types = {f"c{column.attnum}": column.type for column in source.columns}
    forms = [stored_form(type_, name) for name, type_ in types.items()]
    by_side = [] if restoring == _NONE else [f"if({restoring}, side, 0)"]
    groups = ", ".join(["version", *forms, *by_side])
    kept = [(grouped_value(type_, name), name) for name, type_ in types.items()]
    names = ", ".join(types) or _NO_VALUES
    copies = "explode(array_repeat(0, abs(surplus))) copies AS copy"
    return query(
        f"SELECT version, kind, {names} FROM surpluses LATERAL VIEW {copies}",
        only_before=before,
        only_after=after,
        images=(
            f"SELECT version, {BEFORE} AS side, {names} FROM only_before"
            f" UNION ALL SELECT version, {AFTER} AS side, {names} FROM only_after"
        ),
        surpluses=(
            f"SELECT version, {selected([*kept, ('CAST(sum(side) AS INT)', 'surplus')])},"
            " if(sum(side) > 0, 'insert', 'delete') AS kind"
            f" FROM images GROUP BY {groups} HAVING sum(side) <> 0"
        ),
    )


def _is_alike(columns: Sequence[TableColumn]) -> str:
    """Return the SQL condition that two rows o and n are stored identically."""
    tests = [is_stored_alike(c.type, f"o.c{c.attnum}", f"n.c{c.attnum}") for c in columns]
    return " AND ".join(tests) or "TRUE"


def sides(
    source: TableSource, version: FeedVersion, *, with_row_id: bool = False
) -> tuple[Query | None, Query | None]:
    """Return queries for the rows before and after a version, of the whole table or only of the
    changed files. None means that a side has no rows.

    Both sides have the types of `source`, even if the version changes the types of the table.
    """
    files = version.files
    if version.images is not None:  # `pairs_by_row_id` reads the view with the row ids
        names = [f"c{column.attnum}" for column in source.columns] or [_NO_VALUES]
        kept = [
            Query(
                f"SELECT {', '.join(names)} FROM {version.images}"
                f" WHERE version = {version.version} AND side = {side}",
                views=frozenset({version.images}),
            )
            for side in (BEFORE, AFTER)
        ]
        return kept[0], kept[1]
    old, new = source_at(source, version.before), source_at(source, version.version)
    read: list[TableSource | None] = [old if version.before >= 0 else None, new]
    if files is not None:
        read = [
            None if place is None else replace(side, location=place, version=None)
            for side, place in ((old, files.before), (new, files.after))
        ]
    before, after = (
        None if side is None else _typed_rows(side, with_row_id=with_row_id) for side in read
    )
    return before, after


def _typed_rows(source: TableSource, *, with_row_id: bool) -> Query:
    """Return a query like `table_rows`, but with the columns in the types of `source`.

    A value is NULL if the column has an unsuitable type at that version.  Columns that decoding
    needs have suitable types (column_fault.py).
    """
    shown = []
    for column in source.columns:
        name, type_ = f"c{column.attnum}", storage_type(column.type, column.typmod)
        value = name if is_native(column.type) else f"try_cast({name} AS {type_})"
        shown.append((value, name))
    shown += [(name, name) for name in ("row_version", "row_id") if with_row_id]
    rows = scan(source, with_row_id=with_row_id)
    return query(f"SELECT {selected(shown)} FROM stored", stored=rows)
