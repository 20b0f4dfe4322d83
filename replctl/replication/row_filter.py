"""Check the WHERE clause of a publication's table (documentation, section 31.3;
transformPubWhereClauses() and check_simple_rowfilter_expr() in publicationcmds.c).
"""

from __future__ import annotations

from datetime import datetime

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.expr.analyze import Analyzer
from replctl.expr.collate import assign_collations
from replctl.expr.context import ExprContext
from replctl.expr.environment import Environment, is_user_collation
from replctl.expr.error_location import expr_location
from replctl.expr.refused_dependency import check_dependencies
from replctl.expr.scope import Scope
from replctl.expr.sublinks import AnalyzeQuery, UnanalysedSubquery
from replctl.parser import ast
from replctl.types.builtin import FIRST_USER_OID, Function, Operator
from replctl.types.function_kind import Volatility

_ONLY_SIMPLE = (
    "Only columns, constants, built-in operators, built-in data types, built-in collations, and "
    "immutable built-in functions are allowed."
)
_NO_SYSTEM_COLUMNS = "System columns are not allowed."
_NO_USER_OPERATORS = "User-defined operators are not allowed."
_NO_USER_TYPES = "User-defined types are not allowed."
_NO_MUTABLE_FUNCTIONS = "User-defined or built-in mutable functions are not allowed."
_NO_USER_COLLATIONS = "User-defined collations are not allowed."


def analyze_row_filter(
    raw: ast.RawExpr,
    scope: Scope,
    environment: Environment,
    now: datetime | None = None,
    analyze_query: AnalyzeQuery | None = None,
) -> nodes.Expr:
    """Return the typed row filter of `WHERE (raw)` for the relation in scope.

    Args:
        now: the time for literals such as `today`, which are evaluated only once.
        analyze_query: analyses a subquery before replctl refuses it, so that its own errors come
            first; None to refuse subqueries immediately.

    Raises:
        DatatypeMismatch: the filter is not a boolean.
        FeatureNotSupported: the expression has parts that a row filter must not have (0A000).
        PostgresError: the expression is invalid.
    """
    analyzer = Analyzer(
        environment,
        scope,
        ExprContext.WHERE,
        now=now,
        analyze_query=analyze_query,
        is_row_filter=True,
    )
    try:
        expr = analyzer.boolean(raw, "PUBLICATION WHERE")
    except UnanalysedSubquery as error:
        raise _not_allowed(_ONLY_SIMPLE, error.position) from error
    expr = assign_collations(environment, expr)
    check_row_filter(expr, environment)
    check_dependencies(expr)
    return expr


def check_row_filter(expr: nodes.Expr, environment: Environment) -> None:
    """Check that a row filter is so simple that it can be evaluated without reading the catalog.

    Raises:
        FeatureNotSupported: the filter is not simple enough.  The error points at the first
            forbidden part.
    """
    for node in nodes.walk(expr):
        if isinstance(node, nodes.CaseWhen):
            continue
        detail = _forbidden(node, environment)
        if detail is not None:
            raise _not_allowed(detail, expr_location(node))


def _forbidden(node: nodes.Expr, environment: Environment) -> str | None:
    """Return a sentence that says why a node is not allowed; None if it is allowed."""
    operators: tuple[int, ...] = ()
    functions: tuple[int, ...] = ()
    match node:
        case nodes.Var(attnum=attnum):
            if attnum < 0:
                return _NO_SYSTEM_COLUMNS
        case (
            nodes.OpExpr(operator_oid=oid)
            | nodes.DistinctExpr(operator_oid=oid)
            | nodes.NullIfExpr(operator_oid=oid)
            | nodes.ScalarArrayOpExpr(operator_oid=oid)
        ):
            operators = (oid,)
        case nodes.RowCompareExpr(operator_oids=oids):
            operators = oids
        case nodes.FuncExpr(function_oid=oid):
            functions = (oid,)
        case (
            nodes.Const()
            | nodes.BoolExpr()
            | nodes.RelabelType()
            | nodes.CollateExpr()
            | nodes.CaseExpr()
            | nodes.ArrayExpr()
            | nodes.RowExpr()
            | nodes.CoalesceExpr()
            | nodes.MinMaxExpr()
            | nodes.NullTest()
            | nodes.BooleanTest()
            | nodes.XmlIsDocument()
        ):
            pass
        case nodes.Param(number=0):  # the operand of CASE
            pass
        case _:
            return _ONLY_SIMPLE
    if any(oid >= FIRST_USER_OID for oid in operators):
        return _NO_USER_OPERATORS
    if not environment.type(node.type).is_builtin:
        return _NO_USER_TYPES
    called: list[Function | Operator] = [
        *map(environment.operator, operators),
        *map(environment.function, functions),
    ]
    if any(
        item.oid >= FIRST_USER_OID or item.volatility != Volatility.IMMUTABLE for item in called
    ):
        return _NO_MUTABLE_FUNCTIONS
    collations = (nodes.collation(node), getattr(node, "input_collation", None))
    if any(map(is_user_collation, collations)):
        return _NO_USER_COLLATIONS
    return None


def _not_allowed(detail: str, position: int) -> FeatureNotSupported:
    return FeatureNotSupported(
        "invalid publication WHERE expression", detail=detail, position=position
    )
