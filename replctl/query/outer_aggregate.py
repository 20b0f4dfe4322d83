"""Aggregates that a subquery computes over the rows of an outer query.

The outer query computes them in a subquery of its FROM:

    SELECT (SELECT sum(x.a) FROM s LIMIT 1) FROM t x
    -> SELECT (SELECT q.c1 FROM s LIMIT 1) FROM (SELECT sum(x.a) AS c1 FROM t x) AS q

SQLite and Spark have other rules than PostgreSQL about the query to which an aggregate belongs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from replctl.expr import nodes
from replctl.query.tree import (
    FromSubquery,
    Output,
    Query,
    transform,
    transform_level_parts,
    transform_levels,
    transform_parts,
    walk_levels,
)


def with_own_aggregates(query: Query, varnos: Iterator[int]) -> Query:
    """Return a query in which no subquery has an aggregate of an outer query.

    Args:
        varnos: unused varnos.
    """

    def replaced(node: Any) -> Any:
        if not isinstance(node, Query):
            return None
        own = _apart(node, next(varnos)) if _has_outer_aggregates(node) else node
        return transform_parts(own, replaced)

    result: Query = transform(query, replaced)
    return result


def _has_outer_aggregates(query: Query) -> bool:
    """Return whether a subquery has an aggregate of `query`."""
    return query.is_aggregated and any(
        isinstance(node, nodes.Aggref) and node.levels_up == depth > 0
        for node, depth in walk_levels((query.outputs, query.having, query.windows))
    )


def _apart(query: Query, varno: int) -> Query:
    """Return a query that computes its groups and aggregates in a subquery of FROM."""
    exprs: list[nodes.Expr] = []

    def replaced(node: Any, depth: int) -> Any:
        is_aggregate = isinstance(node, nodes.Aggref) and node.levels_up == depth
        if not is_aggregate and depth > 0 and not isinstance(node, nodes.Var):
            return None
        expr = _shifted(node, -depth) if depth else node
        if not is_aggregate and expr not in query.group_by:
            return None
        if expr not in exprs:
            exprs.append(expr)
        number = exprs.index(expr) + 1
        typmod, collation = nodes.typmod(expr), nodes.collation(expr)
        return nodes.Var(number, expr.type, typmod, collation, varno, depth)

    outputs, having, windows = transform_levels(
        (query.outputs, query.having, query.windows), replaced
    )
    grouped = Query(
        tuple(Output(f"c{i}", expr) for i, expr in enumerate(exprs, start=1)),
        query.from_,
        query.where,
        query.group_by,
        is_aggregated=True,
    )
    return replace(
        query,
        outputs=outputs,
        from_=(FromSubquery(varno, _shifted(grouped, 1, own=1)),),
        where=having,
        group_by=(),
        having=None,
        is_aggregated=False,
        windows=windows,
    )


def _shifted(part: Any, levels: int, *, own: int = 0) -> Any:
    """Return an expression or a query for use `levels` deeper: references to queries outside of
    `part` lead further up.

    Args:
        own: 1 if `part` is a query, to which its references of level 0 lead.
    """

    def replaced(node: Any, depth: int) -> Any:
        levels_up = getattr(node, "levels_up", -1)
        if levels_up < depth + own:
            return None
        moved = replace(node, levels_up=levels_up + levels)
        return transform_level_parts(moved, replaced, depth)

    return transform_levels(part, replaced)
