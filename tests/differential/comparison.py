"""Evaluates expressions with replctl, and finds the results that differ from a server's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from replctl.adt import fold, interpret
from replctl.errors import FeatureNotSupported, PostgresError
from replctl.expr import nodes
from replctl.expr.analyze import Analyzer
from replctl.expr.builtin_environment import BuiltinEnvironment
from replctl.expr.collate import assign_collations
from replctl.expr.context import ExprContext
from replctl.expr.deparse import DeparseContext, deparse
from replctl.expr.environment import Column
from replctl.expr.refused_dependency import check_dependencies
from replctl.expr.scope import RelationScope
from replctl.parser import ast
from replctl.parser.parse import parse_statement
from replctl.replication.row_filter import analyze_row_filter
from replctl.spark import untranslatable
from replctl.types import text

from .rows import TABLE, typed_columns
from .server import Server, Verdict

_ENVIRONMENT = BuiltinEnvironment()


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between replctl and the server.

    Attributes:
        what: filter, check, or the way of evaluation.
        row: the number of the row.
    """

    what: str
    expression: str
    server: object
    replctl: object
    row: int = 0


@dataclass(frozen=True)
class Replctl:
    """replctl's side of the table."""

    columns: tuple[Column, ...]

    @cached_property
    def _scope(self) -> RelationScope:
        return RelationScope(TABLE, self.columns, "record", "public")

    def row_filter(self, expression: str) -> Verdict:
        """Use an expression as a row filter, as `Server.row_filter` does."""
        start = f"CREATE PUBLICATION p FOR TABLE {TABLE} WHERE ("
        try:
            statement = parse_statement(f"{start}{expression})")
            assert isinstance(statement, ast.CreatePublication)
            (item,) = statement.objects
            assert isinstance(item, ast.PublicationTable)
            assert item.where is not None
            return self._printed(analyze_row_filter(item.where, self._scope, _ENVIRONMENT))
        except PostgresError as error:
            return _said(error, len(start))

    def check(self, expression: str) -> tuple[Verdict, nodes.Expr | None]:
        """Use an expression in a CHECK constraint, as `Server.check` does.

        Returns:
            the verdict, and the typed expression; None if replctl refuses it.
        """
        start = "SELECT (("
        try:
            statement = parse_statement(f"{start}{expression}) IS NULL)")
            assert isinstance(statement, ast.SelectStmt)
            (target,) = statement.targets
            assert target.value is not None
            analyzer = Analyzer(_ENVIRONMENT, self._scope, ExprContext.CHECK)
            expr = assign_collations(_ENVIRONMENT, analyzer.boolean(target.value, "CHECK"))
            check_dependencies(expr)
        except PostgresError as error:
            return _said(error, len(start)), None
        return self._printed(expr), expr.arg if isinstance(expr, nodes.NullTest) else None

    def _printed(self, expr: nodes.Expr) -> Verdict:
        return Verdict(
            "00000", deparse(expr, DeparseContext.of_relation(_ENVIRONMENT, self._scope))
        )


def _said(error: PostgresError, start: int) -> Verdict:
    position = error.position - start if error.position >= 0 else -1
    return Verdict(error.sqlstate, error.message, error.detail, error.hint, position)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An expression that both sides accept, with the server's value or SQLSTATE for each row."""

    expression: str
    expr: nodes.Expr
    results: tuple[str, ...]


@dataclass
class Comparison:
    """A run over one table, with the differences and the numbers of compared expressions."""

    server: Server
    rows: list[list[str | None]]
    differences: list[Difference] = field(default_factory=list)
    #: The expressions that replctl accepts but does not evaluate, and the reasons.
    refused: dict[str, str] = field(default_factory=dict)
    compared: int = 0
    evaluated: int = 0

    def __post_init__(self) -> None:
        self._replctl = Replctl(typed_columns(self.server.typmods()))
        self.columns = columns = self._replctl.columns
        self._values = [
            [
                None if item is None else text.parse(column.type, item)
                for column, item in zip(columns, row, strict=True)
            ]
            for row in self.rows
        ]

    def texts(self, expressions: Iterable[str]) -> list[Evaluated]:
        """Compare texts and errors, and return the expressions with values."""
        comparable = filter(self.server.is_comparable, expressions)
        return [item for item in map(self._text, comparable) if item is not None]

    def _text(self, expression: str) -> Evaluated | None:
        self.compared += 1
        expected = self.server.row_filter(expression)
        same = self._compare("filter", expression, expected, self._replctl.row_filter(expression))
        verdict, expr = self._replctl.check(expression)
        if not expected.is_accepted:
            same &= self._compare("check", expression, self.server.check(expression), verdict)
        if expr is None or not same or _is_of_the_moment(expr):
            return None
        results = self.server.values(expression)
        if results is None:
            return None
        self.evaluated += 1
        return Evaluated(expression, expr, tuple(results))

    def _compare(self, what: str, expression: str, expected: Verdict, actual: Verdict) -> bool:
        if actual != expected:
            self.differences.append(Difference(what, expression, expected, actual))
        return actual == expected

    def supported(self, items: Iterable[Evaluated]) -> list[Evaluated]:
        """Return the expressions that replctl does not refuse before the first row."""
        for item in items:
            reason = untranslatable(item.expr)
            if reason is not None:
                self.refused[item.expression] = reason
        return [item for item in items if item.expression not in self.refused]

    def values_in_python(self, items: Iterable[Evaluated]) -> None:
        """Compare the values that Python can compute."""
        for item in items:
            self._value_in_python(item)

    def _value_in_python(self, item: Evaluated) -> None:
        try:
            function = _function(item.expr)
        except FeatureNotSupported:  # only Spark can evaluate it
            return
        for number, (row, expected) in enumerate(
            zip(self._values, item.results, strict=True), start=1
        ):
            actual = _result(function, row, item.expr.type)
            if actual != expected:
                self.differences.append(
                    Difference("python", item.expression, expected, actual, number)
                )


def _is_of_the_moment(expr: nodes.Expr) -> bool:
    return any(
        isinstance(node, nodes.FuncExpr) and node.name in ("now", "random")
        for node in nodes.walk(expr)
    )


def _function(expr: nodes.Expr) -> Callable[[list[Any]], Any]:
    try:
        expr = fold.simplified(expr)
    except PostgresError as error:
        return _failing(error)
    return interpret.compiled(nodes.transform(expr, _as_parameter))


def _result(function: Callable[[list[Any]], Any], row: list[Any], type_: str) -> str:
    try:
        value = function(row)
        return "NULL" if value is None else f"={text.render(type_, value)}"
    except PostgresError as error:
        return f"!{error.sqlstate}"
    except Exception as error:  # also a difference
        return f"!{error!r}"


def _failing(error: PostgresError) -> Callable[[list[Any]], Any]:
    def fail(row: list[Any]) -> Any:
        raise error

    return fail


def _as_parameter(node: nodes.Node) -> nodes.Node | None:
    if isinstance(node, nodes.Var):
        return nodes.Param(node.attnum, node.type, node.typmod, node.collation)
    return None
