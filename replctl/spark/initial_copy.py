"""The initial copy of a table: read a version, keep the rows that satisfy a row filter, convert and
append them."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.spark.delta_table import scan
from replctl.spark.spark_query import Query, reading, union_text
from replctl.spark.translation import to_sql
from replctl.spark.values import CopySource


def copied_sql(sources: Sequence[CopySource]) -> Query:
    """Return a query for the rows to copy, with the published columns n1, n2, ... in the types of
    the table.
    """
    parts = []
    for source in sources:
        columns = ", ".join(
            f"c{attnum} AS n{i}" for i, attnum in enumerate(source.published, start=1)
        )
        tests = [to_sql(item, lambda var: f"c{var.attnum}").text for item in source.filters]
        condition = " OR ".join(tests) or "TRUE"
        for policy in source.policies:
            test = to_sql(policy, lambda var: f"c{var.attnum}").text
            condition = f"({condition}) AND ({test})"
        rows = scan(source.source)
        text = f"SELECT {columns or '1 AS n0'} FROM ({rows}) WHERE {condition}"
        parts.append(reading(text, rows))
    return union_text(parts)
