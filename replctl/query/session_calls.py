"""Queries whose SELECT list calls functions of the session: nextval(), setval(), set_config(), ...

Spark has no such functions, and SQLite calls them before it sorts.  So an engine computes the rows
without the calls, and replctl then makes the calls row by row.  PostgreSQL makes them after ORDER
BY and LIMIT, but before DISTINCT and before a sort by a call's result (make_sort_input_target in
planner.c).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from replctl.adt.fold import simplified
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.expr.environment import Environment
from replctl.functions.function_context import FunctionContext
from replctl.functions.sql_functions import FUNCTIONS, WITHOUT_SESSION
from replctl.query.catalog_part import query_of_rows
from replctl.query.sqlite import is_answerable, run_query
from replctl.query.tree import (
    FromSubquery,
    Output,
    Query,
    is_closed,
    is_volatile,
    tables_of,
    transform,
)
from replctl.record import dataclass
from replctl.types.function_kind import Volatility

_VARNO = 1


@dataclass(frozen=True, slots=True)
class DividedQuery:
    """A query whose SELECT list calls functions of the session.

    Attributes:
        rows: the query that an engine runs first.
        rest: the query that makes the calls for these rows. It has no FROM; its columns have
            varno 0.
        skipped: the number of rows at the beginning to omit after the calls (OFFSET).
    """

    rows: Query
    rest: Query
    skipped: int = 0

    def answer(
        self, context: FunctionContext, rows: list[list[str | None]]
    ) -> list[list[str | None]]:
        """Return the rows of the whole query as texts.

        Args:
            rows: the result of the query `self.rows`, as texts.

        Raises:
            FeatureNotSupported: the SELECT list calls a function that only Spark has.
            PostgresError: a call fails.
        """
        source = FromSubquery(_VARNO, query_of_rows(self.rows, rows))
        query = replace(self.rest, from_=(source,))
        if not is_answerable(query, context.environment):
            raise FeatureNotSupported(
                "a SELECT list with functions of the session and of Spark is not supported"
            )
        return run_query(query, context)[self.skipped :]

    @property
    def exprs(self) -> list[nodes.Expr]:
        """Return the SELECT list as expressions over the columns of `rows`.

        Raises:
            FeatureNotSupported: the query must sort or skip rows after the calls.
        """
        if self.skipped or self.rest != Query(self.rest.outputs):
            raise FeatureNotSupported(
                "calls of nextval() with DISTINCT, OFFSET or in ORDER BY are not supported in a"
                " query whose rows are written"
            )
        return [output.expr for output in self.rest.outputs if not output.is_junk]


def is_session_call(environment: Environment, node: Any) -> bool:
    """Return whether a node calls a volatile function that Spark does not have."""
    if not isinstance(node, nodes.FuncExpr) or node.returns_set:
        return False
    function = environment.function(node.function_oid)
    source = function.source or ""
    return (
        function.volatility == Volatility.VOLATILE
        and source in FUNCTIONS
        and source not in WITHOUT_SESSION
    )


def divided(query: Query, environment: Environment) -> DividedQuery | None:
    """Divide a query into one for the rows and one that makes the calls for each row.  Return None
    if its SELECT list has no calls of session functions.

    Raises:
        FeatureNotSupported: some calls come before a sort, and some after it.
    """
    with_calls = [i for i, o in enumerate(query.outputs) if _has_calls(environment, o.expr)]
    if not with_calls:
        return None
    sorts = [*(item.output for item in query.order_by), *(query.distinct or ())]
    is_sorted_after = query.distinct == () or not set(sorts).isdisjoint(with_calls)
    if query.distinct and not query.order_by:
        is_sorted_after = True
    if is_sorted_after and query.distinct != () and not set(with_calls) <= set(sorts):
        raise FeatureNotSupported(
            "calls of nextval() both in ORDER BY or DISTINCT ON and outside of it are not supported"
        )
    columns = _Columns(query, environment)
    outputs = tuple(replace(o, expr=columns.found(o.expr)) for o in query.outputs)
    if is_sorted_after:
        tail: dict[str, Any] = {
            name: getattr(query, name) for name in ("distinct", "order_by", "limit", "offset")
        }
        rows = replace(query, distinct=None, order_by=(), limit=None, offset=None)
        return DividedQuery(columns.of(rows), Query(outputs, **tail))
    sorted_ = {i: columns.number(query.outputs[i].expr) for i in sorts}
    limit, skipped = _limit(query)
    rows = replace(
        query,
        distinct=None if query.distinct is None else tuple(sorted_[i] for i in query.distinct),
        order_by=tuple(replace(item, output=sorted_[item.output]) for item in query.order_by),
        limit=limit,
        offset=None,
    )
    return DividedQuery(columns.of(rows), Query(outputs), skipped)


class _Columns:
    """The columns of the rows that an engine computes."""

    def __init__(self, query: Query, environment: Environment) -> None:
        self._query = query
        self._environment = environment
        self._exprs: list[nodes.Expr] = []

    def of(self, query: Query) -> Query:
        """Return a query that computes these columns, or one unused column if there are none."""
        exprs = self._exprs or [nodes.Const("int4", "1")]
        return replace(query, outputs=tuple(Output("", expr) for expr in exprs))

    def number(self, expr: nodes.Expr) -> int:
        """Return the index of the column for an expression; add the column if it is missing."""
        if expr not in self._exprs or is_volatile(self._environment, expr):
            self._exprs.append(expr)
            return len(self._exprs) - 1
        return self._exprs.index(expr)

    def found(self, expr: nodes.Expr) -> nodes.Expr:
        """Return an expression with columns in place of the parts that the engine computes."""
        if not _has_calls(self._environment, expr):
            return self._column(expr)
        result: nodes.Expr = nodes.transform(expr, self._replaced)
        return result

    def _replaced(self, node: Any) -> nodes.Expr | None:
        if isinstance(node, nodes.SubLink) and self._asks_session(node):
            return node
        is_column = isinstance(
            node, nodes.Var | nodes.Aggref | nodes.WindowFunc | nodes.GroupingFunc | nodes.SubLink
        )
        return self._column(node) if is_column or node in self._query.group_by else None

    def _column(self, expr: Any) -> nodes.Expr:
        number = self.number(expr) + 1
        return nodes.Var(number, expr.type, nodes.typmod(expr), nodes.collation(expr), varno=0)

    def _asks_session(self, link: nodes.SubLink) -> bool:
        """Return whether a subquery has session calls and reads no table. It is computed once."""
        has_calls = _has_calls(self._environment, link)
        return has_calls and is_closed(link.query) and not any(tables_of(link.query))


def _has_calls(environment: Environment, part: Any) -> bool:
    found = False

    def note(node: Any) -> None:
        nonlocal found
        found = found or is_session_call(environment, node)

    transform(part, note)
    return found


def _limit(query: Query) -> tuple[nodes.Expr | None, int]:
    """Return a LIMIT for the rows for which PostgreSQL makes the calls, and the number of rows that
    OFFSET skips. The LIMIT includes the skipped rows.
    """
    if query.offset is None:
        return query.limit, 0
    offset = simplified(query.offset)
    limit = None if query.limit is None else simplified(query.limit)
    if not isinstance(offset, nodes.Const) or not isinstance(limit, nodes.Const | None):
        raise FeatureNotSupported("calls of nextval() with this OFFSET are not supported")
    skipped = max(int(offset.value or 0), 0)
    if limit is None or limit.value is None:
        return None, skipped
    return replace(limit, value=str(int(limit.value) + skipped)), skipped


def check_no_calls(environment: Environment, node: Any) -> None:
    """Refuse a call of a session function in a part of a query that Spark computes.

    Raises:
        FeatureNotSupported: the node is such a call.
    """
    if is_session_call(environment, node):
        raise FeatureNotSupported(
            f"{node.name}() outside of the SELECT list of a query over tables is not supported"
        )
