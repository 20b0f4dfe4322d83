"""Reduce the two sides of a compared version to the rows that may differ.

A program may rewrite all files of a table although few rows change. So replctl hashes both sides
first: it reads each once, and does not sort it. Then it pairs only the rows of differing buckets.
It reads these rows once, and keeps them for later queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
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

#: Minimum number of compared rows for which hashing pays off.
_WORTH_HASHING = 100_000
_BUCKETS = 1 << 16
#: If more buckets differ, replctl compares all rows: a list of buckets would save little.
_MANY_BUCKETS = _BUCKETS // 4


@contextmanager
def narrowed(engine: Engine, change_source: ChangeSource, count: int) -> Iterator[ChangeSource]:
    """Yield a table's changes.  Compared versions are reduced to the rows that may differ, which
    stay available until the end of the `with` block.

    Args:
        count: estimated number of rows to compare or read.
    """
    if count < _WORTH_HASHING:
        yield change_source
        return
    with ExitStack() as stack:
        versions = []
        for version in change_source.versions:
            # If columns return, all rows differ
            is_worth = version.is_compared and not restores_columns(change_source.source, version)
            compared = both_sides(change_source, version) if is_worth else None
            if compared is not None:
                images = _images(engine, change_source, version, compared, stack)
                version = replace(version, images=images)
            versions.append(version)
        yield replace(change_source, versions=tuple(versions))


def both_sides(change_source: ChangeSource, version: FeedVersion) -> tuple[Query, Query] | None:
    """Return queries for the rows before and after a version; None if a side has no rows."""
    source = replace(change_source.source, has_row_tracking=version.has_row_ids)
    before, after = sides(source, version, with_row_id=True)
    return None if before is None or after is None else (before, after)


def _images(
    engine: Engine,
    change_source: ChangeSource,
    version: FeedVersion,
    compared: tuple[Query, Query],
    stack: ExitStack,
) -> str:
    """Return the name of a view of the rows that may differ: side, row_id, c<attnum>."""
    source = change_source.source
    columns = [StagedColumn("side", "int4"), StagedColumn("row_id", "int8")]
    columns += [StagedColumn(f"c{c.attnum}", c.type, c.typmod) for c in source.columns]
    ((after_count, before_count, buckets),) = engine.rows(
        str(buckets_query(change_source, compared))
    )
    rows = images_query(change_source, compared, sorted(buckets))
    expected = (after_count + before_count) * len(buckets) // _BUCKETS
    is_many = True if expected > SMALL else None
    kept = staged(engine, rows, columns, is_many=is_many)
    return stack.enter_context(kept).view


def buckets_query(change_source: ChangeSource, compared: tuple[Query, Query]) -> Query:
    """Return a query for one row: the number of rows after the version, the number before, and the
    buckets that differ."""
    before, after = compared
    bucket, columns = _bucket(change_source), change_source.source.columns
    return differing_buckets(after, [before], bucket, row_hash(columns, _name))


def images_query(
    change_source: ChangeSource, compared: tuple[Query, Query], buckets: Sequence[int]
) -> Query:
    """Return a query for the rows of both sides that may differ: side, row_id, c<attnum>.

    Args:
        buckets: the buckets that differ.
    """
    names = selected(
        [("row_id", "row_id"), *((_name(c.attnum),) * 2 for c in change_source.source.columns)]
    )
    parts = [
        query(f"SELECT {side} AS side, {names} FROM side_rows", side_rows=rows)
        for side, rows in zip((BEFORE, AFTER), compared, strict=True)
    ]
    if len(buckets) > _MANY_BUCKETS:
        return union(parts)
    return in_buckets(union(parts), _bucket(change_source), buckets)


def _bucket(change_source: ChangeSource) -> str:
    columns = change_source.source.columns
    key = [column for column in columns if column.attnum in change_source.key]
    return key_bucket(key, columns, _name, _BUCKETS)


def _name(attnum: int) -> str:
    return f"c{attnum}"
