"""Read the two sides of a compared version once, and reduce them to the rows that may differ.

The query for the changes needs both sides several times, to pair rows by row id and by key and to
check the keys.  Each read of a Delta table needs several queries of its log.

A program may rewrite all files of a table although few rows change. So replctl hashes the sides of
a large version first: it reads each once, and does not sort it. Then it reads only the rows of
differing buckets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from replctl.spark.compared_version import AFTER, BEFORE, restores_columns, sides
from replctl.spark.row_hash import differing_buckets, in_buckets, key_bucket, row_hash
from replctl.spark.spark_query import Query, query, selected, union
from replctl.spark.staged import StagedColumn
from replctl.spark.staging import SMALL, staged
from replctl.spark.values import ChangeSource, FeedVersion

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

#: Minimum number of changes for which hashing pays off.
_WORTH_HASHING = 100_000
_BUCKETS = 1 << 16
#: If more buckets differ, replctl compares all rows: a list of buckets would save little.
_MANY_BUCKETS = _BUCKETS // 4


@contextmanager
def narrowed(engine: Engine, change_source: ChangeSource, count: int) -> Iterator[ChangeSource]:
    """Yield a table's changes.  The rows of compared versions are read, and stay available until
    the end of the `with` block.

    Args:
        count: estimated number of changes.
    """
    found: dict[int, Query] = {}
    expected = 0
    for version in change_source.versions:
        compared = both_sides(change_source, version) if version.is_compared else None
        if compared is None:
            continue
        is_large = _is_large(engine, compared, count)
        # If columns return, all rows differ
        if is_large and not restores_columns(change_source.source, version):
            rows, number = _differing_rows(engine, change_source, version, compared)
        elif version.has_row_ids:
            rows, number = images_query(change_source, version, compared, None), count
        else:  # the query for the changes reads each side once
            continue
        found[version.version] = rows
        expected += number
    if not found:
        yield change_source
        return
    columns = [StagedColumn("version", "int8"), StagedColumn("side", "int4")]
    columns += [StagedColumn("row_id", "int8")]
    columns += [
        StagedColumn(_name(c.attnum), c.type, c.typmod) for c in change_source.source.columns
    ]
    is_many = True if expected > SMALL else None
    with staged(engine, union([*found.values()]), columns, is_many=is_many) as kept:
        versions = (
            replace(version, images=kept.view) if version.version in found else version
            for version in change_source.versions
        )
        yield replace(change_source, versions=tuple(versions))


def both_sides(change_source: ChangeSource, version: FeedVersion) -> tuple[Query, Query] | None:
    """Return queries for the rows before and after a version; None if a side has no rows."""
    source = replace(change_source.source, has_row_tracking=version.has_row_ids)
    before, after = sides(source, version, with_row_id=True)
    return None if before is None or after is None else (before, after)


def _is_large(engine: Engine, compared: tuple[Query, Query], count: int) -> bool:
    """Return whether hashing pays off.

    Args:
        count: estimated number of changes.  Their files may have many more rows.
    """
    return count >= _WORTH_HASHING or not all(engine.query_size.is_small(rows) for rows in compared)


def _differing_rows(
    engine: Engine,
    change_source: ChangeSource,
    version: FeedVersion,
    compared: tuple[Query, Query],
) -> tuple[Query, int]:
    """Return a query for the rows of a version that may differ (`images_query`), and their
    estimated number."""
    ((after_count, before_count, buckets),) = engine.rows(buckets_query(change_source, compared))
    expected = (after_count + before_count) * len(buckets) // _BUCKETS
    return images_query(change_source, version, compared, sorted(buckets)), expected


def buckets_query(change_source: ChangeSource, compared: tuple[Query, Query]) -> Query:
    """Return a query for one row: the number of rows after the version, the number before, and the
    buckets that differ."""
    before, after = compared
    bucket, columns = _bucket(change_source), change_source.source.columns
    return differing_buckets(after, [before], bucket, row_hash(columns, _name))


def images_query(
    change_source: ChangeSource,
    version: FeedVersion,
    compared: tuple[Query, Query],
    buckets: Sequence[int] | None,
) -> Query:
    """Return a query for the rows of both sides that may differ: version, side, row_id,
    c<attnum>.

    Args:
        buckets: the buckets that differ; None if all rows may differ.
    """
    names = selected(
        [("row_id", "row_id"), *((_name(c.attnum),) * 2 for c in change_source.source.columns)]
    )
    parts = [
        query(
            f"SELECT {version.version}L AS version, {side} AS side, {names} FROM side_rows",
            side_rows=rows,
        )
        for side, rows in zip((BEFORE, AFTER), compared, strict=True)
    ]
    if buckets is None or len(buckets) > _MANY_BUCKETS:
        return union(parts)
    return in_buckets(union(parts), _bucket(change_source), buckets)


def _bucket(change_source: ChangeSource) -> str:
    columns = change_source.source.columns
    key = [column for column in columns if column.attnum in change_source.key]
    return key_bucket(key, columns, _name, _BUCKETS)


def _name(attnum: int) -> str:
    return f"c{attnum}"
