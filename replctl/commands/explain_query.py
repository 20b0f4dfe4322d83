"""EXPLAIN: show whether SQLite or Spark runs a query, Spark's plan, and the expressions that run in
Python.
"""

from __future__ import annotations

from collections.abc import Iterator

from replctl.commands.define import get_boolean, get_string
from replctl.errors import FeatureNotSupported, InvalidParameterValue, SqlSyntaxError
from replctl.expr import nodes
from replctl.functions.function_context import FunctionContext, function_context
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.catalog_part import with_answers
from replctl.query.deparse_query import deparse_part
from replctl.query.lake import LakeDialect
from replctl.query.permission import check_query
from replctl.query.query_rewrite import rewritten
from replctl.query.select import is_of_catalogs
from replctl.query.session_calls import divided
from replctl.query.small_tables import SETTING, small_tables
from replctl.query.sql import QueryWriter, WriteQuery
from replctl.query.tree import Query, tables_of
from replctl.result import Result, ResultColumn
from replctl.session import Session
from replctl.spark import SparkQuery, SqlValue, reading, uses_python

#: Boolean options.  replctl refuses options that need more than the plan.
_SWITCHES = frozenset(
    {
        "analyze", "verbose", "costs", "buffers", "settings", "generic_plan", "wal", "timing",
        "summary", "memory",
    }
)  # fmt: skip
_REFUSED = frozenset({"analyze", "buffers", "settings", "generic_plan", "memory"})
_NEED_ANALYZE = ("wal", "timing")
_FORMATS = frozenset({"text", "xml", "json", "yaml"})
_SERIALIZATIONS = frozenset({"off", "none", "text", "binary"})


def explain(session: Session, statement: ast.Explain) -> Result:
    """Return the plan of a query as rows of text, without running the query.

    If the query reads only catalogs, the plan names the tables that SQLite reads.  For other
    queries it is Spark's physical plan (with VERBOSE, its formatted plan), and then the expressions
    that run in Python.  If SQLite runs the query instead, because the tables are small, a last
    line says so.

    Raises:
        SqlSyntaxError, InvalidParameterValue: an option is wrong (42601, 22023).
        FeatureNotSupported: an option is not supported (0A000).
        PostgresError: the query is not valid.
    """
    is_verbose = _read_options(statement)
    with session.read() as catalog:
        context = function_context(session, catalog)
        analyzer = QueryAnalyzer(context.environment, session.transaction_start)
        query = analyzer.query(statement.query)
        check_query(context.environment, query)
        query = rewritten(context, query)
        if is_of_catalogs(query, context):
            return _result(_catalog_lines(query))
        parts = divided(query, context.environment)
        spark_query, in_python = _spark_sql(query if parts is None else parts.rows, context)
        is_small = small_tables(query, context) is not None
    plan = session.engine().plan(spark_query, is_formatted=is_verbose)
    lines = [line.rstrip() for line in plan.strip().splitlines()]
    if in_python:
        lines += ["", "Evaluated in Python:", *(f"  {shown}" for shown in in_python)]
    if is_small:
        lines += ["", f"Small tables: SQLite runs the query, without Spark ({SETTING})."]
    return _result(lines)


def _result(lines: list[str]) -> Result:
    return Result("EXPLAIN", (ResultColumn("QUERY PLAN", "text"),), [[line] for line in lines])


def _catalog_lines(query: Query) -> list[str]:
    names = dict.fromkeys(table.relation.name for table in tables_of(query))
    return ["Catalog Query (SQLite, without Spark)", *(f"  ->  Catalog {name}" for name in names)]


# ---------------------------------------------------------------------------------------------
# Expressions in Python


def _spark_sql(query: Query, context: FunctionContext) -> tuple[SparkQuery, list[str]]:
    """Return the query for Spark, and the text of each expression that runs in Python."""
    query = with_answers(query, context)
    dialect = _NotingDialect(context)
    text = QueryWriter(dialect).write(query, is_outermost=True)
    in_python = [deparse_part(context.environment, query, expr) for expr in dialect.in_python]
    return reading(text, *dialect.read), in_python


class _NotingDialect(LakeDialect):
    """A dialect that records the expressions that run in Python."""

    def __init__(self, context: FunctionContext) -> None:
        super().__init__(context)
        self.in_python: dict[nodes.Expr, None] = {}

    def value(self, expr: nodes.Expr, write: WriteQuery) -> SqlValue:
        value = super().value(expr, write)
        if uses_python(value.text):
            self.in_python.update(dict.fromkeys(self._parts(expr, write)))
        return value

    def _parts(self, expr: nodes.Expr, write: WriteQuery) -> Iterator[nodes.Expr]:
        """Yield the smallest parts of AND, OR and NOT that run in Python."""
        if isinstance(expr, nodes.BoolExpr):
            for part in expr.args:
                yield from self._parts(part, write)
        elif uses_python(super().value(_without_queries(expr), write).text):
            yield expr


def _without_queries(expr: nodes.Expr) -> nodes.Expr:
    """Replace the subqueries in an expression by NULL.  Their expressions are listed separately."""

    def replaced(node: nodes.Node) -> nodes.Node | None:
        if not isinstance(node, nodes.SubLink):
            return None
        return nodes.Const(node.type, None, typmod=nodes.typmod(node))

    result: nodes.Expr = nodes.transform(expr, replaced)
    return result


# ---------------------------------------------------------------------------------------------
# Options


def _read_options(statement: ast.Explain) -> bool:
    """Check the options, and return whether VERBOSE is on (ParseExplain in explain.c)."""
    given: dict[str, bool] = {}
    refused = None
    for option in statement.options:  # like ExplainResultDesc: first the format, then all others
        if option.name == "format":
            get_string(option)
    for option in statement.options:
        if option.name in _SWITCHES:
            given[option.name] = get_boolean(option)
        elif option.name == "format":
            if _choice(option, _FORMATS) != "text":
                refused = f"format {option.value}"
        elif option.name == "serialize":
            given["serialize"] = _choice(option, _SERIALIZATIONS) in ("text", "binary")
        else:
            raise SqlSyntaxError(
                f'unrecognized EXPLAIN option "{option.name}"', position=option.pos
            )
    for name in (*_NEED_ANALYZE, "serialize"):
        if given.get(name) and not given.get("analyze"):
            raise InvalidParameterValue(f"EXPLAIN option {name.upper()} requires ANALYZE")
    if given.get("generic_plan") and given.get("analyze"):
        raise InvalidParameterValue(
            "EXPLAIN options ANALYZE and GENERIC_PLAN cannot be used together"
        )
    refused = refused or next((name for name in sorted(_REFUSED) if given.get(name)), None)
    if refused is not None:
        raise FeatureNotSupported(f"EXPLAIN with {refused.upper()} is not supported")
    return given.get("verbose", False)


def _choice(option: ast.DefElem, choices: frozenset[str]) -> str:
    value = "text" if option.value is None and option.name == "serialize" else get_string(option)
    if value not in choices:
        raise InvalidParameterValue(
            f'unrecognized value for EXPLAIN option "{option.name}": "{value}"',
            position=option.pos,
        )
    return value
