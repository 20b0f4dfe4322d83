"""Run the body of an SQL function, statement by statement, as a part of the calling statement
(functions.c).

The statements may change tables and the catalog, which needs separate transactions.  So replctl
runs a call before the query that contains it, and the call must be a column of this query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from replctl.adt.functions import arguments
from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_proc import UserFunction, get_function
from replctl.errors import FeatureNotSupported, StatementTooComplex
from replctl.expr import nodes
from replctl.expr.environment import Routine
from replctl.expr.value_text import input_value
from replctl.functions.function_context import FunctionContext
from replctl.parser import ast
from replctl.parser.parse import parse
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.inline_function import error_context, mismatch, result_as, user_call
from replctl.query.sqlite import run_query
from replctl.query.tree import Output, Query
from replctl.record import dataclass
from replctl.result import Result
from replctl.session import Session
from replctl.types.function_kind import Volatility
from replctl.types.type_kind import TypeKind

_MAX_DEPTH = 20
NULL = nodes.Const("unknown", None)
_QUERIES = (ast.SelectStmt, ast.Insert, ast.Update, ast.Delete)

#: Changes a query after its analysis.
Finish = Callable[[QueryAnalyzer, Query], Query]


@dataclass(frozen=True, slots=True)
class StatementRunner:
    """Runs the statements of functions.

    Attributes:
        run: runs a statement.
        select: runs a query, and changes it after its analysis.
        command_name: returns the name of a statement, such as CREATE TABLE.
    """

    run: Callable[[ast.Statement], Result]
    select: Callable[[ast.SelectStmt, Finish], Result]
    command_name: Callable[[ast.Statement], str]


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A column of a query that calls a function.

    Attributes:
        output: the index of the column.
        routine: the function's name and the values of its arguments.
    """

    output: int
    expr: nodes.FuncExpr
    function: UserFunction
    routine: Routine


def function_calls(query: Query, context: FunctionContext) -> list[FunctionCall]:
    """Return the function calls to run before a query. There are none if the query has FROM or
    other clauses, or subqueries.
    """
    environment = context.environment
    plain = Query(query.outputs)
    exprs = [output.expr for output in query.outputs]
    if query != plain or any(_reads(expr) for expr in exprs):
        return []
    found = []
    for i, expr in enumerate(exprs):
        call = user_call(environment, expr)
        if call is None:
            continue
        function = get_function(environment.catalog, call.function_oid)
        args = arguments(environment.function(function.oid), call.args)
        nested = any(user_call(environment, n) for arg in args for n in nodes.walk(arg))
        if function.language != "sql" or function.returns_set or nested:
            continue
        found.append(FunctionCall(i, call, function, _routine(context, function, args)))
    return found


def _reads(expr: nodes.Expr) -> bool:
    """Return whether an expression may read tables, which a function may change."""
    return any(isinstance(node, nodes.SubLink | nodes.Var) for node in nodes.walk(expr))


def _routine(
    context: FunctionContext, function: UserFunction, args: Sequence[nodes.Expr]
) -> Routine:
    """Compute the arguments of a function, and return its name with their values."""
    outputs = tuple(Output(f"a{i}", arg) for i, arg in enumerate(args))
    values = run_query(Query(outputs), context)[0] if args else []
    constants = [
        _constant(context.environment, arg.type, value, nodes.collation(arg))
        for arg, value in zip(args, values, strict=True)
    ]
    return Routine(function.name, tuple(zip(function.argument_names, constants, strict=True)))


def _constant(
    environment: CatalogEnvironment, type_: str, shown: str | None, collation: str | None
) -> nodes.Const:
    """Return a value of a query's result as a constant."""
    value = (
        None
        if shown is None
        else input_value(environment, environment.type(type_), shown, -1, None)
    )
    return nodes.Const(type_, value, -1, collation)


def with_results(query: Query, results: dict[int, nodes.Const]) -> Query:
    """Return a query with the results of calls in place of their columns."""
    outputs = tuple(
        replace(output, expr=results.get(i, output.expr)) for i, output in enumerate(query.outputs)
    )
    return replace(query, outputs=outputs)


def carry_out(session: Session, call: FunctionCall, runner: StatementRunner) -> nodes.Const:
    """Call a function within the calling statement's transaction, and return its result.

    Raises:
        PostgresError: a statement of the function fails. CONTEXT names the function.
    """
    function = call.function
    null = nodes.Const(call.expr.type, None, -1, call.expr.collation)
    values = [expr for _name, expr in call.routine.parameters if isinstance(expr, nodes.Const)]
    if function.is_strict and any(value.value is None for value in values):
        return null
    if session.function_depth >= _MAX_DEPTH:
        raise StatementTooComplex("stack depth limit exceeded")
    if session.block is None:
        from replctl.lake import block

        block.begin(session, is_implicit=True).is_of_function = True
    result = null
    with _inside(session):
        with error_context(f'SQL function "{function.name}" during startup'):
            statements = parse(function.body)
            _check(session, call, statements, runner)
        for number, statement in enumerate(statements, 1):
            with error_context(f'SQL function "{function.name}" statement {number}'):
                session.routine = call.routine if isinstance(statement, _QUERIES) else None
                is_last = number == len(statements)
                if is_last and function.result != "void" and isinstance(statement, ast.SelectStmt):
                    result = _last(session, call, statement, runner)
                else:
                    runner.run(statement)
    return result


def _last(
    session: Session, call: FunctionCall, statement: ast.SelectStmt, runner: StatementRunner
) -> nodes.Const:
    """Run the last query of a function, and return the value of its first row."""

    def finish(analyzer: QueryAnalyzer, query: Query) -> Query:
        return result_as(analyzer, query, call.function, call.expr.type)

    rows = runner.select(statement, finish).rows
    with session.read() as catalog:
        value = rows[0][0] if rows else None
        type_, collation = call.expr.type, call.expr.collation
        return _constant(session.environment(catalog), type_, value, collation)


@contextmanager
def _inside(session: Session) -> Iterator[None]:
    """Run the statements inside the `with` block as those of a function."""
    outer = session.routine
    session.function_depth += 1
    try:
        yield
    finally:
        session.function_depth -= 1
        session.routine = outer


def _check(
    session: Session,
    call: FunctionCall,
    statements: Sequence[ast.Statement],
    runner: StatementRunner,
) -> None:
    """Check a function before its first statement runs (init_execution_state).

    Raises:
        FeatureNotSupported: a statement is not allowed in a function (0A000).
        InvalidFunctionDefinition: the result does not have the declared type.
        PostgresError: a query is wrong.
    """
    function = call.function
    for statement in statements:
        name = runner.command_name(statement)
        if isinstance(statement, ast.TransactionStmt):
            raise FeatureNotSupported(f"{name} is not allowed in an SQL function")
        if isinstance(statement, ast.Copy) and statement.file is None:
            raise FeatureNotSupported("cannot COPY to/from client in an SQL function")
        if function.volatility != Volatility.VOLATILE and not isinstance(statement, ast.SelectStmt):
            raise FeatureNotSupported(f"{name} is not allowed in a non-volatile function")
    with session.read() as catalog:
        environment = session.environment(catalog).within(call.routine)
        analyzer = QueryAnalyzer(environment, session.transaction_start)
        queries = [
            analyzer.query(statement)
            for statement in statements
            if isinstance(statement, ast.SelectStmt)
        ]
        if function.result == "void":
            return
        if environment.type(call.expr.type).kind in (TypeKind.PSEUDO, TypeKind.COMPOSITE):
            raise FeatureNotSupported("functions of users that return rows are not supported")
        last = statements[-1] if statements else None
        if isinstance(last, ast.Insert | ast.Update | ast.Delete) and last.returning:
            raise FeatureNotSupported("RETURNING in functions is not supported")
        if not isinstance(last, ast.SelectStmt):
            detail = (
                "Function's final statement must be SELECT or INSERT/UPDATE/DELETE/MERGE RETURNING."
            )
            raise mismatch(analyzer, function, detail)
        result_as(analyzer, queries[-1], function, call.expr.type)
