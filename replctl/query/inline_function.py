"""Inline user-defined SQL functions: replace the call of a simple function by the function's
expression (inline_function in clauses.c).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from replctl.adt.functions import arguments
from replctl.catalog.aclchk import denied
from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_proc import UserFunction, get_function
from replctl.catalog.system_privilege import may_call_builtin
from replctl.errors import FeatureNotSupported, InvalidFunctionDefinition, PostgresError
from replctl.expr import nodes
from replctl.expr.coerce import ASSIGNMENT
from replctl.expr.context import ExprContext
from replctl.expr.environment import Routine
from replctl.parser import ast
from replctl.parser.parse import parse
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.range_table import FromScope
from replctl.query.tree import Query, is_volatile, transform, transform_parts
from replctl.types import builtin
from replctl.types.builtin import FIRST_USER_OID
from replctl.types.function_kind import Volatility


def inlined(
    environment: CatalogEnvironment, now: datetime, part: Any, within: tuple[int, ...] = ()
) -> Any:
    """Return a query, or a part of one, with inlined calls.  Check that the current role may call
    each function, also those in the bodies of functions (ExecInitFunc).

    Args:
        now: the time of literals like `now`.
        within: the functions whose bodies contain `part`.

    Raises:
        InsufficientPrivilege: the current role may not call a function (42501).
        PostgresError: the body of a function is wrong.
    """

    def replaced(node: Any) -> Any:
        call = user_call(environment, node)
        if call is not None:
            return _Inlining(environment, now, within).expression(call)
        if isinstance(node, nodes.OpExpr) and node.operator_oid >= FIRST_USER_OID:
            node = _built_in(environment, node)
            _check_built_in(environment, node)
            return transform_parts(node, replaced)
        if isinstance(node, nodes.ScalarArrayOpExpr) and node.operator_oid >= FIRST_USER_OID:
            return transform_parts(_over_array(environment, node), replaced)
        _check_built_in(environment, node)
        return None

    return transform(part, replaced)


def _check_built_in(environment: CatalogEnvironment, node: Any) -> None:
    """Check that the current role may call the built-in function of a node, if it is a call."""
    if isinstance(node, nodes.FuncExpr) and (
        not may_call_builtin(environment.privileges, node.function_oid)
    ):
        raise denied("function", node.name)


def _built_in(environment: CatalogEnvironment, expr: nodes.OpExpr) -> nodes.Expr:
    """Return a user's operator over a built-in function as a built-in operator or call."""
    function = environment.operator(expr.operator_oid).function_oid
    operator = _built_in_operator(function)
    if operator is not None:
        return replace(expr, operator_oid=operator.oid, name=operator.name)
    return _call_of(expr, function)


def _call_of(expr: nodes.OpExpr, function: int) -> nodes.FuncExpr:
    """Return a user's operator as a call of its function, whose OID is `function`."""
    return nodes.FuncExpr(
        function,
        expr.function,
        expr.type,
        expr.args,
        collation=expr.collation,
        input_collation=expr.input_collation,
        pos=expr.pos,
    )


def _over_array(
    environment: CatalogEnvironment, expr: nodes.ScalarArrayOpExpr
) -> nodes.ScalarArrayOpExpr:
    """Return ANY or ALL of an array with a built-in operator in place of a user's operator, if one
    has the same function.
    """
    operator = _built_in_operator(environment.operator(expr.operator_oid).function_oid)
    if operator is None:
        return expr
    return replace(expr, operator_oid=operator.oid, name=operator.name)


def _built_in_operator(function: int) -> builtin.Operator | None:
    operators = builtin.operator_by_oid().values()
    return next((item for item in operators if item.function_oid == function), None)


def user_call(environment: CatalogEnvironment, node: Any) -> nodes.FuncExpr | None:
    """Return a node as the call of a user-defined function, which may be an operator's function.
    Return None for other nodes."""
    match node:
        case nodes.FuncExpr(function_oid=oid) if oid >= FIRST_USER_OID:
            return node
        case nodes.OpExpr(operator_oid=oid) if oid >= FIRST_USER_OID:
            function = environment.operator(oid).function_oid
            return None if function < FIRST_USER_OID else _call_of(node, function)
    return None


def check_no_calls(environment: CatalogEnvironment, part: Any) -> None:
    """Refuse calls of user-defined functions.

    Raises:
        FeatureNotSupported: the part has such a call (0A000).
    """

    def check(node: Any) -> None:
        call = user_call(environment, node)
        if call is None:
            return
        function = get_function(environment.catalog, call.function_oid)
        if function.language != "sql":
            why = f"functions in language {function.language} are not supported in queries"
        elif function.returns_set:
            why = "functions of users that return sets are not supported in queries"
        else:
            why = (
                "a function that is not one expression, or would compute a volatile argument more"
                " than once, is supported only as a column of a SELECT without FROM"
            )
        raise FeatureNotSupported(f"function {function.name} cannot be called here: {why}")

    transform(part, check)


def result_as(analyzer: QueryAnalyzer, query: Query, function: UserFunction, type_: str) -> Query:
    """Return the last query of a function with its column converted to the function's result type
    (check_sql_fn_retval).

    Raises:
        InvalidFunctionDefinition: the query does not have exactly one column, or the type of this
            column does not fit (42P13).
    """
    visible = [output.expr for output in query.outputs if not output.is_junk]
    if len(visible) != 1:
        raise mismatch(analyzer, function, "Final statement must return exactly one column.")
    (expr,) = visible
    inner = analyzer.analyzer(FromScope(), ExprContext.SELECT_TARGET)
    coerced = inner.coercion.to_target(expr, type_, -1, ASSIGNMENT)
    if coerced is None:
        actual = analyzer.environment.format_type(expr.type)
        raise mismatch(analyzer, function, f"Actual return type is {actual}.")
    return analyzer.with_outputs(query, [analyzer.finished(coerced)])


def mismatch(
    analyzer: QueryAnalyzer, function: UserFunction, detail: str
) -> InvalidFunctionDefinition:
    """Return the error of a function whose body does not return its declared type."""
    declared = analyzer.environment.format_type(function.result)
    return InvalidFunctionDefinition(
        f"return type mismatch in function declared to return {declared}", detail=detail
    )


@contextmanager
def error_context(line: str) -> Iterator[None]:
    """Add a line of CONTEXT to errors, and remove their position: it does not refer to the user's
    statement."""
    try:
        yield
    except PostgresError as error:
        error.context = line if error.context is None else f"{error.context}\n{line}"
        error.position = -1
        raise


class _Inlining:
    def __init__(
        self, environment: CatalogEnvironment, now: datetime, within: tuple[int, ...]
    ) -> None:
        self._environment = environment
        self._now = now
        self._within = within

    def expression(self, call: nodes.FuncExpr) -> nodes.Expr | None:
        """Return the expression that replaces a call; None if the call must stay."""
        environment = self._environment
        function = get_function(environment.catalog, call.function_oid)
        if not environment.privileges.has_on_function(function.oid):
            raise denied("function", function.name)
        if function.language != "sql" or function.returns_set or function.oid in self._within:
            return None
        given = arguments(environment.function(function.oid), call.args)
        args = [inlined(environment, self._now, arg, self._within) for arg in given]
        with error_context(f'SQL function "{function.name}" during inlining'):
            body = self._body(function, call, args)
            if body is None:
                return None
            body = inlined(environment, self._now, body, (*self._within, function.oid))
        if any(user_call(environment, node) is not None for node in nodes.walk(body)):
            return None
        return self._substituted(function, call, body, args)

    def _body(
        self, function: UserFunction, call: nodes.FuncExpr, args: Sequence[nodes.Expr]
    ) -> nodes.Expr | None:
        """Return the body of a function as an expression over Param(1), Param(2) ... Return None
        if the body is not a single expression that can be inlined."""
        statements = parse(function.body)
        if len(statements) != 1 or not isinstance(statements[0], ast.SelectStmt):
            return None
        if function.result == "void":
            return None
        params = tuple(
            (name, nodes.Param(i, arg.type, -1, self._collation(arg.type, call)))
            for i, (name, arg) in enumerate(zip(function.argument_names, args, strict=True), 1)
        )
        environment = self._environment.within(Routine(function.name, params))
        analyzer = QueryAnalyzer(environment, self._now)
        query = analyzer.query(statements[0])
        if not _is_expression(query):
            return None
        query = result_as(analyzer, query, function, call.type)
        body = query.outputs[0].expr
        if function.volatility != Volatility.VOLATILE and is_volatile(self._environment, body):
            return None
        return body

    def _substituted(
        self,
        function: UserFunction,
        call: nodes.FuncExpr,
        body: nodes.Expr,
        args: Sequence[nodes.Expr],
    ) -> nodes.Expr | None:
        """Return the body with its parameters replaced by the arguments. Return None if the result
        would not compute a volatile argument exactly once.
        """
        uses = Counter(node.number for node in nodes.walk(body) if isinstance(node, nodes.Param))
        tested = [arg for arg in args if function.is_strict and not _is_value(arg)]
        for number, arg in enumerate(args, 1):
            if uses[number] + (arg in tested) != 1 and is_volatile(self._environment, arg):
                return None

        def replaced(node: Any) -> Any:
            is_parameter = isinstance(node, nodes.Param) and node.number > 0
            return args[node.number - 1] if is_parameter else None

        result: nodes.Expr = transform(body, replaced)
        if call.collation is not None and nodes.collation(result) != call.collation:
            result = nodes.CollateExpr(result, call.collation, call.type)
        if not tested:
            return result
        tests: tuple[nodes.Expr, ...] = tuple(nodes.NullTest(arg, is_null=True) for arg in tested)
        condition = tests[0] if len(tests) == 1 else nodes.BoolExpr("or", tests)
        null = nodes.Const(call.type, None, -1, call.collation)
        when = nodes.CaseWhen(condition, null)
        return nodes.CaseExpr(call.type, None, (when,), result, call.collation)

    def _collation(self, type_: str, call: nodes.FuncExpr) -> str | None:
        own = self._environment.type(type_).collation
        return None if own is None else call.input_collation or own


def _is_expression(query: Query) -> bool:
    """Return whether a query is `SELECT expression`, without subqueries."""
    if len(query.outputs) != 1 or query != Query(query.outputs):
        return False
    apart = (nodes.SubLink, nodes.Aggref, nodes.WindowFunc)
    return not any(isinstance(node, apart) for node in nodes.walk(query.outputs[0].expr))


def _is_value(expr: nodes.Expr) -> bool:
    return isinstance(expr, nodes.Const) and expr.value is not None
