"""Refuse GROUP BY, DISTINCT and set operations that would compare values of composite types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from replctl.expr import nodes
from replctl.expr.composite_text import check_no_rows
from replctl.expr.environment import Environment
from replctl.query.tree import Query, transform


def check_composite_keys(environment: Environment, query: Query) -> None:
    """Check that no part of a query compares rows by values of composite types.

    Raises:
        FeatureNotSupported: GROUP BY, DISTINCT or a set operation has such a value (0A000).
    """

    def check(node: Any) -> None:
        for expr in _compared(node) if isinstance(node, Query) else ():
            check_no_rows(environment, expr, "comparisons of")

    transform(query, check)


def _compared(query: Query) -> Iterator[nodes.Expr]:
    """Yield the expressions by whose values a query groups rows or removes duplicates."""
    yield from query.group_by
    operation = query.set_operation
    compares = operation is not None and (operation.op != "union" or not operation.all)
    is_distinct = query.distinct == () or compares
    for number, output in enumerate(query.outputs):
        if (is_distinct and not output.is_junk) or number in (query.distinct or ()):
            yield output.expr
