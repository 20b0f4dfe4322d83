"""Move set-returning calls of SELECT lists to FROM (ProjectSet, and split_pathtarget_at_srfs in
PostgreSQL's tlist.c).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.expr.coerce import returns_set
from replctl.expr.environment import Environment
from replctl.query.tree import (
    FromFunction,
    FromSubquery,
    Output,
    OutputColumn,
    Query,
    is_volatile,
    transform,
    transform_parts,
)


def with_sets_in_from(environment: Environment, query: Query, varnos: Iterator[int]) -> Query:
    """Return a query whose SELECT lists, even in subqueries, have no set-returning calls.

    `SELECT f(x) + 1, g(y) FROM t` becomes `SELECT r1.c1 + 1, r1.c2 FROM t, ROWS FROM (f(x), g(y))
    AS r1`. Calls that contain calls move last, to items of their own.

    Args:
        varnos: free varnos.

    Raises:
        FeatureNotSupported: a window definition has a set-returning call.
    """

    def replaced(part: Any) -> Any:
        if not isinstance(part, Query):
            return None
        return _Projection(environment, varnos).projected(transform_parts(part, replaced))

    result: Query = transform(query, replaced)
    return result


class _Projection:
    """Rewrites one query level."""

    def __init__(self, environment: Environment, varnos: Iterator[int]) -> None:
        self._environment = environment
        self._varnos = varnos

    def projected(self, query: Query) -> Query:
        exprs = [output.expr for output in query.outputs]
        has_windows = any(map(_has_windows, exprs))
        if any(map(_sorts_sets, exprs)):
            raise FeatureNotSupported(
                "set-returning functions in window definitions are not supported"
            )
        if any(map(returns_set, query.group_by)):
            query = self._with_sets_of_groups(query)
        if not any(returns_set(output.expr) for output in query.outputs):
            return query
        if query.is_aggregated or has_windows:
            query = self._after_groups(query)
        items, moved = self._moved([output.expr for output in query.outputs])
        return _with_outputs(replace(query, from_=(*query.from_, *items)), moved)

    def _with_sets_of_groups(self, query: Query) -> Query:
        """Return a query that calls the functions in GROUP BY before it groups."""
        items, keys = self._moved(query.group_by)
        after = dict(zip(query.group_by, keys, strict=True))
        outputs = [nodes.transform(output.expr, after.get) for output in query.outputs]
        query = replace(query, from_=(*query.from_, *items), group_by=tuple(keys))
        return _with_outputs(query, outputs)

    def _after_groups(self, query: Query) -> Query:
        """Return a query over a subquery that groups, aggregates, and computes windows."""
        varno = next(self._varnos)
        columns: dict[nodes.Expr, nodes.Var] = {}

        def column(node: Any) -> nodes.Var | None:
            is_key = node in query.group_by and not isinstance(node, nodes.Const)
            if not is_key and not _is_of_groups(node):
                return None
            found = nodes.Var(
                len(columns) + 1, node.type, nodes.typmod(node), nodes.collation(node), varno
            )
            return columns.setdefault(node, found)

        outputs = [nodes.transform(output.expr, column) for output in query.outputs]
        inner = Query(
            tuple(Output("", expr) for expr in columns),
            query.from_,
            query.where,
            query.group_by,
            query.having,
            query.is_aggregated,
        )
        outer = replace(
            query,
            from_=(FromSubquery(varno, _one_level_down(inner)),),
            where=None,
            group_by=(),
            having=None,
            is_aggregated=False,
        )
        return _with_outputs(outer, outputs)

    def _moved(
        self, exprs: Sequence[nodes.Expr]
    ) -> tuple[list[FromFunction], Sequence[nodes.Expr]]:
        """Return items of FROM for the set-returning calls in expressions, and the expressions with
        columns of these items. The calls of one level of nesting share an item.
        """
        items: list[FromFunction] = []
        while any(map(returns_set, exprs)):
            varno = next(self._varnos)
            if any(map(_field_calls, exprs)):
                item, exprs = self._with_fields(exprs, varno)
                items.append(item)
                continue
            calls: list[nodes.FuncExpr] = []

            def column(node: Any, varno: int = varno, calls: Any = calls) -> nodes.Var | None:
                if not isinstance(node, nodes.FuncExpr) or not node.returns_set:
                    return None
                if any(map(returns_set, node.args)):
                    return None
                if node not in calls or is_volatile(self._environment, node):
                    calls.append(node)
                number = len(calls) if calls[-1] is node else calls.index(node) + 1
                return nodes.Var(
                    number, node.type, nodes.typmod(node), nodes.collation(node), varno
                )

            exprs = [nodes.transform(expr, column) for expr in exprs]
            columns = tuple(OutputColumn(call.name, call.type) for call in calls)
            first, *others = calls
            items.append(FromFunction(varno, first, columns, is_lateral=True, others=tuple(others)))
        return items, exprs

    def _with_fields(
        self, exprs: Sequence[nodes.Expr], varno: int
    ) -> tuple[FromFunction, Sequence[nodes.Expr]]:
        """Return an item of FROM for `(f(x)).a` and `(f(x)).b`, and the expressions with columns of
        this item.

        Raises:
            FeatureNotSupported: another set-returning call is next to f.
        """
        call = next(call for expr in exprs for call in _field_calls(expr))

        def column(node: Any) -> nodes.Var | None:
            if not isinstance(node, nodes.FieldSelect) or node.arg != call:
                return None
            return nodes.Var(
                node.field_number, node.type, node.typmod, nodes.collation(node), varno
            )

        exprs = [nodes.transform(expr, column) for expr in exprs]
        if is_volatile(self._environment, call) or any(map(returns_set, exprs)):
            raise FeatureNotSupported(
                f"a field of {call.name}() next to another set-returning function is not supported"
            )
        columns = self._environment.function(call.function_oid).columns
        outputs = tuple(OutputColumn(name, type_) for name, type_ in columns)
        return FromFunction(varno, call, outputs, is_lateral=True), exprs


def _field_calls(expr: nodes.Expr) -> list[nodes.FuncExpr]:
    """Return the set-returning calls in `(f(x)).a`, if their arguments have no set-returning
    calls.
    """
    return [
        node.arg
        for node in nodes.walk(expr)
        if isinstance(node, nodes.FieldSelect)
        and isinstance(node.arg, nodes.FuncExpr)
        and node.arg.returns_set
        and not any(map(returns_set, node.arg.args))
    ]


def _with_outputs(query: Query, exprs: Sequence[nodes.Expr]) -> Query:
    pairs = zip(query.outputs, exprs, strict=True)
    return replace(query, outputs=tuple(replace(output, expr=expr) for output, expr in pairs))


def _has_windows(expr: nodes.Expr) -> bool:
    return any(isinstance(node, nodes.WindowFunc) for node in nodes.walk(expr))


def _sorts_sets(expr: nodes.Expr) -> bool:
    """Return whether an expression calls a window function over the rows of a set."""
    return any(
        isinstance(node, nodes.WindowFunc) and any(map(returns_set, nodes.children(node)))
        for node in nodes.walk(expr)
    )


def _is_of_groups(node: Any) -> bool:
    """Return whether a part of a SELECT list is computed from the rows of FROM."""
    match node:
        case nodes.Var(levels_up=0) | nodes.Aggref(levels_up=0) | nodes.GroupingFunc(levels_up=0):
            return True
    return isinstance(node, nodes.WindowFunc | nodes.SubLink)


def _one_level_down(query: Query) -> Query:
    """Return a query as a subquery of a new level: references to outer queries cross one level
    more.
    """

    def lowered(part: Any, depth: int) -> Any:
        def replaced(node: Any) -> Any:
            match node:
                case nodes.SubLink(test=test):
                    return replace(
                        node, query=lowered(node.query, depth + 1), test=lowered(test, depth)
                    )
                case FromSubquery():
                    return replace(node, query=lowered(node.query, depth + 1))
            if getattr(node, "levels_up", 0) < depth:
                return None
            return replace(transform_parts(node, replaced), levels_up=node.levels_up + 1)

        return transform(part, replaced)

    result: Query = lowered(query, 1)
    return result
