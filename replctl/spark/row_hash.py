"""Compare two sides of a table by the counts and the sums of row hashes in buckets of keys.  Spark
reads each side once and does not sort it.  It joins rows only in buckets that differ.

Equal keys are in the same bucket.  Rows that are stored identically have the same hash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from replctl.spark.data_type import element_type, storage_type
from replctl.spark.native_form import exact_text
from replctl.spark.normal_form import normal_form, stored_form
from replctl.spark.spark_query import Query, query, union
from replctl.spark.sql_value import SqlValue
from replctl.types.delta_type import is_native

_FLOATS = ("float4", "float8")
_BITS = 62


class HashedColumn(Protocol):
    """A column of a table to read or write."""

    @property
    def attnum(self) -> int: ...

    @property
    def type(self) -> str: ...

    @property
    def typmod(self) -> int: ...


def row_hash(columns: Sequence[HashedColumn], image: Callable[[int], str]) -> str:
    """Return SQL of a 64-bit hash of a row.

    Spark's hash ignores NULLs and the boundaries of arrays.  Therefore this hash includes the
    positions of NULLs and the lengths of arrays.  It also includes whether a float is -0.0: hashing
    floats as text would take longer than everything else.

    Args:
        image: returns the name of a column, given its attnum.
    """
    parts, nulls = [], []
    for column in columns:
        value = image(column.attnum)
        nulls.append(value)
        if column.type in _FLOATS:
            parts += [value, f"({value} = 0 AND CAST({value} AS STRING) LIKE '-%')"]
            continue
        if is_native(column.type):
            parts.append(exact_text(column.type, value))
            continue
        compared = stored_form(column.type, value)
        parts.append(compared)
        if element_type(column.type) is not None:
            parts += [f"transform({compared}, item_ -> item_ IS NULL)", f"size({compared})"]
    parts += [_null_bits(nulls[i : i + _BITS]) for i in range(0, len(nulls), _BITS)]
    return f"xxhash64({', '.join(parts) or '0'})"


def _null_bits(values: Sequence[str]) -> str:
    bits = [f"if({value} IS NULL, {1 << i}L, 0L)" for i, value in enumerate(values)]
    return " | ".join(bits)


def key_bucket(
    key: Sequence[HashedColumn],
    columns: Sequence[HashedColumn],
    image: Callable[[int], str],
    count: int,
) -> str:
    """Return SQL of the bucket of a row.  It depends on the key, or on all compared columns if
    there is no key.

    Rows that are equal in Spark are in the same bucket, even if they are stored differently, or in
    columns of different types: another program may have replaced the table.

    Args:
        key: the columns of the key.
        columns: the compared columns.
        image: returns the name of a column, given its attnum.
        count: the number of buckets.
    """
    values = []
    for column in key or columns:
        value, stored = image(column.attnum), storage_type(column.type, column.typmod)
        if not is_native(column.type):
            value = f"try_cast({value} AS {stored})"
        if key or is_native(column.type):
            value = normal_form(SqlValue(value, column.type, stored)).text
        values.append(value)
    return f"CAST(pmod(xxhash64({', '.join(values) or '0'}), {count}L) AS INT)"


def in_buckets(rows: Query, bucket: str, buckets: Sequence[int]) -> Query:
    """Return a query for the rows in some buckets.

    It uses a join instead of WHERE.  Spark derives conditions for later steps from the conditions
    on their sources.  Without a key the bucket depends on all columns, so each column would
    double the number of derived conditions.  The list of buckets is one literal, because Spark
    parses thousands of literals slowly.

    Args:
        bucket: SQL of a row's bucket.
    """
    if not buckets:
        return query("SELECT * FROM all_rows WHERE FALSE", all_rows=rows)
    return query(
        f"SELECT all_rows.* FROM all_rows LEFT SEMI JOIN differing ON differing.bucket = {bucket}",
        all_rows=rows,
        listed=f"SELECT explode(split('{','.join(map(str, buckets))}', ',')) AS bucket",
        differing="SELECT CAST(bucket AS INT) AS bucket FROM listed",
    )


def differing_buckets(published: Query, leaves: Sequence[Query], bucket: str, hashed: str) -> Query:
    """Return a query for one row: the number of rows of each side, and the buckets that differ.

    Args:
        published: the rows of one side.
        leaves: the rows of each leaf partition of the other side, with the same columns.
        bucket, hashed: SQL of a row's bucket and of its hash.
    """
    sums = ", ".join(f"sum({half}) AS {name}" for name, half in _HALVES)
    parts = []
    for sign, rows in (("1L", published), *(("-1L", leaf) for leaf in leaves)):
        summed = query(
            f"SELECT bucket, {sign} AS sign, count(*) AS row_count, {sums} FROM hashed"
            " GROUP BY bucket",
            side_rows=rows,
            hashed=f"SELECT {bucket} AS bucket, {hashed} AS row_hash FROM side_rows",
        )
        parts.append(summed)
    differs = " OR ".join(f"sum(sign * {name}) <> 0L" for name in ("row_count", *dict(_HALVES)))
    return query(
        "SELECT coalesce(sum(published_rows), 0L) AS published_rows,"
        " coalesce(sum(target_rows), 0L) AS target_rows,"
        " collect_list(bucket) FILTER (WHERE differs) AS differing FROM buckets",
        summed=union(parts),
        buckets="SELECT bucket, sum(if(sign > 0L, row_count, 0L)) AS published_rows,"
        " sum(if(sign < 0L, row_count, 0L)) AS target_rows,"
        f" ({differs}) AS differs FROM summed GROUP BY bucket",
    )


#: The two halves of a hash of 64 bits.  Their sums do not overflow.
_HALVES = (
    ("low_bits", "row_hash & 4294967295L"),
    ("high_bits", "shiftrightunsigned(row_hash, 32)"),
)
