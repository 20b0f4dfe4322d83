"""EXISTS reads only whether its query has a row (simplify_EXISTS_query in subselect.c)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from replctl.adt.fold import simplified
from replctl.expr import nodes
from replctl.query.tree import Output, Query, transform, transform_parts


def with_plain_exists(query: Query) -> Query:
    """Return a query without the parts that EXISTS need not compute.

    `EXISTS (SELECT DISTINCT 1 / a FROM t ORDER BY a LIMIT 1)` becomes
    `EXISTS (SELECT 1 FROM t)`.
    """

    def replaced(node: Any) -> Any:
        if not isinstance(node, nodes.SubLink) or node.kind != "exists":
            return None
        return transform_parts(replace(node, query=_plain(node.query)), replaced)

    result: Query = transform(query, replaced)
    return result


def _plain(query: Query) -> Query:
    if not _needs_only_rows(query):
        return query
    one = Output("?column?", nodes.Const("int4", "1"))
    return replace(
        query,
        outputs=(one,),
        group_by=(),
        is_aggregated=False,
        distinct=None,
        order_by=(),
        limit=None,
        windows=(),
    )


def _needs_only_rows(query: Query) -> bool:
    """Return whether the SELECT list, GROUP BY, DISTINCT, ORDER BY and LIMIT of a query do not
    decide whether it has a row.
    """
    if query.set_operation is not None or query.values or query.having is not None:
        return False
    if query.offset is not None or not _allows_rows(query.limit):
        return False
    parts = [output.expr for output in query.outputs]
    return not any(_changes_rows(node) for part in parts for node in nodes.walk(part)) and (
        bool(query.group_by) or not query.is_aggregated
    )


def _allows_rows(limit: nodes.Expr | None) -> bool:
    if limit is None:
        return True
    known = simplified(limit)
    return isinstance(known, nodes.Const) and (known.value is None or int(known.value) > 0)


def _changes_rows(node: nodes.Node) -> bool:
    if isinstance(node, nodes.FuncExpr):
        return node.returns_set
    return isinstance(node, nodes.WindowFunc) or (
        isinstance(node, nodes.Aggref) and not node.levels_up
    )
