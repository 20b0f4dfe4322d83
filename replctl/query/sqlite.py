"""Queries over catalogs, run by SQLite next to the catalog itself; Spark is not needed for them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, assert_never

from replctl.adt.case_mapping import is_ascii_collation
from replctl.adt.functions import arguments
from replctl.catalog.function_context import FunctionContext
from replctl.catalog.functions import (
    EVALUATED_BEFORE,
    FUNCTIONS_IN_C,
    NOT_STRICT,
    SET_FUNCTIONS,
    TAKES_TEXT,
)
from replctl.catalog.session_value import session_value
from replctl.errors import FeatureNotSupported, InternalError
from replctl.expr import nodes
from replctl.expr.environment import Environment
from replctl.query.sql import QueryWriter, WriteQuery, column
from replctl.query.sqlite_aggregate import Build, array_of, average, collector, distinct, joined
from replctl.query.sqlite_function import (
    PythonCalls,
    as_json,
    as_records,
    first_of,
    implementation_of,
    interpreter,
    is_member,
    with_lsns,
)
from replctl.query.sqlite_value import COMPARABLE, INFINITY, TEXTS, shown, stored
from replctl.query.tree import (
    FromFunction,
    FromSubquery,
    FromTable,
    Query,
    functions_of,
    lateral_subqueries,
    set_functions_of,
)
from replctl.query.view_catalog import catalog_columns, catalog_rows
from replctl.types import builtin, text
from replctl.types.builtin import Function
from replctl.types.quote import quote_record, quote_string


def is_answerable(query: Query, environment: Environment) -> bool:
    """Return whether SQLite can run a query: are all its functions known here?"""
    for call in functions_of(query):
        if isinstance(call, nodes.SqlValueFunction):
            continue
        function = environment.function(call.function_oid)
        if call.returns_set and function.source not in SET_FUNCTIONS.keys() | EVALUATED_BEFORE:
            return False
        is_known = function.source in SET_FUNCTIONS or function.source == "pg_typeof"
        is_known = is_known or implementation_of(function) is not None
        if not call.returns_set and not is_known and interpreter(call, []) is None:
            return False
    return True


#: How a value of SQLite of a type becomes text.
_Form: TypeAlias = Callable[[Environment, str, Any], str | None]


def run_query(
    query: Query, context: FunctionContext, *, form: _Form = shown
) -> list[list[str | None]]:
    """Return the rows of a query, as texts.

    Args:
        form: shown, the text form of the types; or canonical, in which objects are their OIDs.

    Raises:
        FeatureNotSupported: it uses what is not known here.
        PostgresError: what a function of it raises.
    """
    connection = context.catalog.connection
    driver: Any = connection.connection.driver_connection
    calls = PythonCalls(context, driver)
    writer = QueryWriter(_Dialect(context, driver, calls, query))
    statement = writer.write(query)
    try:
        with calls.ended_by_ctrl_c():
            rows = context.catalog.driver_rows(statement)
    except InternalError as error:
        raise calls.error or error from error
    types = [result.type for result in query.columns]
    return [
        [form(context.environment, *pair) for pair in zip(types, row, strict=False)] for row in rows
    ]


def evaluated_rows(context: FunctionContext, item: FromFunction) -> list[list[str | None]]:
    """Return the rows, as texts, of a call in FROM that was carried out before the query."""
    assert isinstance(item.function, nodes.FuncExpr)
    rows = context.evaluated[item.function]
    is_record = item.columns[0].type == "record"  # in the SELECT list
    return [[quote_record(row)] for row in rows] if is_record else rows


#: Those that SQLite has under the same name.
_WINDOW_FUNCTIONS = frozenset(
    """row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value
    nth_value""".split()
)


class _Dialect:
    """SQLite's way of writing (query.sql.Dialect)."""

    def __init__(
        self, context: FunctionContext, driver: sqlite3.Connection, calls: PythonCalls, query: Query
    ) -> None:
        self._context = context
        self._driver = driver
        self._calls = calls
        self._set_functions = {item.varno: item for item in set_functions_of(query)}
        self._compiled: list[nodes.Expr] = []
        self._lateral = lateral_subqueries(query)

    # -- FROM

    def table(self, item: FromTable) -> str:
        relation = item.relation
        assert item.is_catalog, relation
        width = len(catalog_columns(relation))
        columns = ", ".join(f"c{i}" for i in range(1, width + 1))
        table = f"pg__{relation.oid}"
        self._driver.execute(f"DROP TABLE IF EXISTS temp.{table}")
        self._driver.execute(f"CREATE TEMP TABLE {table} ({columns})")
        rows = catalog_rows(self._context, relation)
        marks = ", ".join("?" * width)
        self._driver.executemany(f"INSERT INTO temp.{table} VALUES ({marks})", list(rows))
        return f"SELECT * FROM temp.{table}"

    def function(self, item: FromFunction, write: WriteQuery) -> str:
        """Return a set as JSON: json_each() may use columns of the relations before it."""
        call = item.function
        if not isinstance(call, nodes.FuncExpr):
            return f"json_each(json_array(json_array({self.expr(call, write)})))"
        if call in self._context.evaluated:
            rows = [
                [
                    None if value is None else stored(column.type, value)
                    for value, column in zip(row, item.columns, strict=False)
                ]
                for row in evaluated_rows(self._context, item)
            ]
            return f"json_each({quote_string(json.dumps(rows))})"
        function = self._context.environment.function(call.function_oid)
        if call.returns_set or function.columns:
            args = ", ".join(self.expr(arg, write) for arg in arguments(function, call.args))
            name, set_function = f"set_{function.source}", SET_FUNCTIONS[function.source]
            if item.columns[0].type == "record":  # in the SELECT list
                name, set_function = f"records_{name}", as_records(function, set_function)
            name = self._calls.name_of(name, as_json(set_function))
            return f"json_each({name}({args}))"
        return f"json_each(json_array(json_array({self.expr(call, write)})))"

    def lateral(self, item: FromSubquery, query: str) -> str:
        """Return the rows as JSON, as a function's are: a subquery in FROM may not use what is next
        to it."""
        columns = ", ".join(f"c{i}" for i in range(1, len(item.query.columns) + 1))
        return f"json_each((SELECT json_group_array(json_array({columns})) FROM {query} AS q))"

    # -- expressions

    def expr(self, expr: nodes.Expr, write: WriteQuery) -> str:
        return self._expr(expr, write)

    def condition(self, expr: nodes.Expr, write: WriteQuery) -> str:
        return self._expr(expr, write)

    def group_key(self, expr: nodes.Expr, write: WriteQuery) -> str:
        return self._expr(expr, write)

    def is_shown_by_key(self, expr: nodes.Expr) -> bool:
        return True

    def sort_key(self, key: nodes.SortKey, write: WriteQuery) -> str:
        direction = "DESC" if key.descending else "ASC"
        nulls = "FIRST" if key.nulls_first else "LAST"
        return f"{self._sortable(key.expr, write)} {direction} NULLS {nulls}"

    def row_order(self, query: Query) -> tuple[Sequence[str], Sequence[str]]:
        return (), ()

    def limit(self, limit: str | None, offset: str | None) -> str:
        if limit is None and offset is None:
            return ""
        tail = f" LIMIT {-1 if limit is None else limit}"
        return tail if offset is None else f"{tail} OFFSET {offset}"

    def constants(self, rows: Sequence[Sequence[str]]) -> str:
        names = ", ".join(f"column{i} AS c{i}" for i in range(1, len(rows[0]) + 1))
        listed = (f"({', '.join(row)})" for row in rows)
        return f"SELECT {names} FROM (VALUES {', '.join(listed)})"

    def _sortable(self, expr: nodes.Expr, write: WriteQuery) -> str:
        value = self._expr(expr, write)
        if expr.type in COMPARABLE:
            return value
        if expr.type == "numeric":
            return f"CAST({value} AS REAL)"
        if expr.type in ("_text", "_name", "_char", "int2vector", "oidvector", "_oid", "_int2"):
            return value
        raise FeatureNotSupported(f"sorting catalogs by type {expr.type} is not supported")

    def _column(self, var: nodes.Var) -> str:
        if var.varno in self._lateral and not var.levels_up:
            return f"json_extract(r{var.varno}.value, '$[{var.attnum - 1}]')"
        item = self._set_functions.get(var.varno)
        if item is None or var.levels_up:
            return column(var)
        if item.with_ordinality and var.attnum == len(item.columns):
            return f"(r{var.varno}.key + 1)"
        return f"json_extract(r{var.varno}.value, '$[{var.attnum - 1}]')"

    def _expr(self, expr: nodes.Expr, write: WriteQuery) -> str:
        match expr:
            case nodes.Var():
                if expr.attnum <= 0 or (expr.varno == 0 and expr.attnum < 1):
                    raise FeatureNotSupported(
                        "system columns and whole rows are not supported in a query of catalogs"
                    )
                return self._column(expr)
            case nodes.Const():
                return self._constant(expr)
            case nodes.OpExpr():
                return self._operator(expr, write)
            case nodes.FuncExpr():
                return self._function(expr, write)
            case nodes.DistinctExpr(args=(left, right)):
                return f"({self._expr(left, write)} IS NOT {self._expr(right, write)})"
            case nodes.NullIfExpr(args=(left, right)):
                return f"nullif({self._expr(left, write)}, {self._expr(right, write)})"
            case nodes.ScalarArrayOpExpr():
                return self._any_or_all(expr, write)
            case nodes.BoolExpr():
                args = [self._expr(arg, write) for arg in expr.args]
                return f"(NOT {args[0]})" if expr.op == "not" else f"({f' {expr.op} '.join(args)})"
            case nodes.NullTest():
                word = "IS NULL" if expr.is_null else "IS NOT NULL"
                return f"({self._expr(expr.arg, write)} {word})"
            case nodes.BooleanTest():
                word = expr.test.upper().replace("UNKNOWN", "NULL")
                return f"({self._expr(expr.arg, write)} IS {word})"
            case nodes.CaseExpr():
                return self._case(expr, write)
            case nodes.CoalesceExpr():
                args = [self._expr(arg, write) for arg in expr.args]
                return f"coalesce({', '.join(args)})" if len(args) > 1 else args[0]
            case nodes.MinMaxExpr() if expr.type in COMPARABLE and len(expr.args) > 1:
                word = "max" if expr.op == "greatest" else "min"
                return f"{word}({', '.join(self._expr(arg, write) for arg in expr.args)})"
            case nodes.SqlValueFunction():
                value = session_value(self._context, expr)
                if value is None:
                    raise _unsupported(expr)
                return self._expr(value, write)
            case nodes.RelabelType() | nodes.CollateExpr() | nodes.NamedArgExpr():
                return self._expr(expr.arg, write)
            case nodes.CoerceViaIO():
                return self._by_text(expr.arg, expr.type, write)
            case nodes.ArrayCoerceExpr():
                return self._expr(expr.arg, write)
            case nodes.ArrayExpr():
                return self._array(expr, write)
            case nodes.SubLink():
                return self._sublink(expr, write)
            case nodes.Aggref():
                return self._aggregate(expr, write)
            case nodes.FieldSelect():
                return self._field(expr, write)
            case nodes.WindowFunc():
                return self._window(expr, write)
            case nodes.SubscriptingRef() | nodes.RowCompareExpr() | nodes.MinMaxExpr():
                return self._interpreted(expr, write)
            case (
                nodes.Param()
                | nodes.RowExpr()
                | nodes.CoerceToDomain()
                | nodes.JsonValueExpr()
                | nodes.JsonIsPredicate()
                | nodes.XmlIsDocument()
                | nodes.GroupingFunc()
                | nodes.SetToDefault()
            ):
                raise _unsupported(expr)
        assert_never(expr)

    def _constant(self, const: nodes.Const) -> str:
        if const.value is None:
            return "NULL"
        value = stored(const.type, const.value)
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        return repr(value).replace("inf", INFINITY)

    def _operator(self, expr: nodes.OpExpr, write: WriteQuery) -> str:
        args = [self._expr(arg, write) for arg in expr.args]
        types = {arg.type for arg in expr.args}
        if expr.name in ("=", "<>", "<", "<=", ">", ">=") and len(args) == 2:
            arrays = {"_text", "_name", "_oid", "_int2", "int2vector", "oidvector"}
            if types <= COMPARABLE or (types <= arrays and expr.name in ("=", "<>")):
                return f"({args[0]} {expr.name} {args[1]})"
        if expr.name == "||" and types <= TEXTS:
            return f"({args[0]} || {args[1]})"
        if expr.name == "||" and expr.type == "text":
            args = [self._text_of(arg, write) for arg in expr.args]
            return f"({args[0]} || {args[1]})"
        function = self._context.environment.function(
            self._context.environment.operator(expr.operator_oid).function_oid
        )
        if implementation_of(function) is None:
            return self._interpreted(expr, write)
        return self._called(function, args, expr)

    def _function(self, expr: nodes.FuncExpr, write: WriteQuery) -> str:
        function = self._context.environment.function(expr.function_oid)
        if function.source == "pg_typeof":
            return str(self._context.environment.type(expr.args[0].type).oid)
        if implementation_of(function) is None and function.source not in SET_FUNCTIONS:
            return self._interpreted(expr, write)
        is_any = function.variadic == "any" or "any" in function.argument_types
        is_any = is_any or function.source in TAKES_TEXT
        write_arg = self._text_of if is_any else self._expr
        args = [write_arg(arg, write) for arg in arguments(function, expr.args)]
        return self._called(function, args, expr)

    def _interpreted(self, expr: nodes.Expr, write: WriteQuery) -> str:
        """Return an expression that is computed as row filters are where Spark has nothing for it:
        its operands in SQLite, and what joins them in Python."""
        operands: list[nodes.Expr] = []
        compute = interpreter(expr, operands)
        if compute is None:
            raise _unsupported(expr)
        types, result = [operand.type for operand in operands], expr.type

        def call(context: FunctionContext, *args: Any) -> Any:
            shown_args = (
                shown(context.environment, type_, arg)
                for type_, arg in zip(types, args, strict=True)
            )
            row = [
                None if item is None else text.parse(type_, item)
                for type_, item in zip(types, shown_args, strict=True)
            ]
            value = compute(row)
            return None if value is None else stored(result, text.render(result, value))

        name = self._calls.name_of(f"expr_{len(self._compiled)}", call, is_strict=False)
        self._compiled.append(expr)
        return f"{name}({', '.join(self._expr(operand, write) for operand in operands)})"

    def _window(self, expr: nodes.WindowFunc, write: WriteQuery) -> str:
        over = expr.over(
            (self._sortable(item, write) for item in expr.partition_by),
            (self.sort_key(key, write) for key in expr.order_by),
        )
        if expr.is_aggregate:
            if not expr.is_star and expr.name not in ("count", "sum", "min", "max"):
                raise _unsupported(expr)
            return self._aggregate(expr.as_aggregate(), write) + over
        if expr.name not in _WINDOW_FUNCTIONS:
            raise _unsupported(expr)
        args = ", ".join(self._expr(arg, write) for arg in expr.args)
        return f"{expr.name}({args}){over}"

    def _field(self, expr: nodes.FieldSelect, write: WriteQuery) -> str:
        """`(f(x)).name`, f being a function that returns a row."""
        if not isinstance(expr.arg, nodes.FuncExpr):
            raise _unsupported(expr)
        function = self._context.environment.function(expr.arg.function_oid)
        rows = SET_FUNCTIONS.get(function.source)
        if rows is None or function.returns_set:
            raise _unsupported(expr)
        args = ", ".join(self._expr(arg, write) for arg in arguments(function, expr.arg.args))
        place = expr.field_number - 1

        def field(context: FunctionContext, *values: Any) -> Any:
            (row,) = rows(context, *values)
            return row[place]

        name = self._calls.name_of(f"field_{function.source}_{place}", field)
        return f"{name}({args})"

    def _called(
        self, function: Function, args: Sequence[str], expr: nodes.OpExpr | nodes.FuncExpr
    ) -> str:
        key = function.source or function.name
        implementation = implementation_of(function)
        if implementation is None and key in SET_FUNCTIONS:
            implementation = first_of(as_records(function, SET_FUNCTIONS[key]))
        if implementation is None:
            raise _unsupported(expr)
        is_strict = key not in NOT_STRICT
        if key in FUNCTIONS_IN_C and is_ascii_collation(expr.input_collation):
            key, implementation = f"{key}_in_c", FUNCTIONS_IN_C[key]
        implementation = with_lsns(function, implementation)
        name = self._calls.name_of(key, implementation, is_strict=is_strict)
        return f"{name}({', '.join(args)})"

    def _any_or_all(self, expr: nodes.ScalarArrayOpExpr, write: WriteQuery) -> str:
        left, right = expr.args
        value = self._expr(left, write)
        glue = " OR " if expr.use_or else " AND "
        if isinstance(right, nodes.ArrayExpr):
            items = [self._expr(item, write) for item in right.elements]
        elif isinstance(right, nodes.Const) and right.value is not None:
            element = builtin.types()[right.type].element or "text"
            parsed: Any = text.parse(right.type, right.value)
            items = [
                self._constant(
                    nodes.Const(element, None if item is None else text.render(element, item))
                )
                for item in parsed
            ]
        elif expr.name == "=" and expr.use_or:
            array = self._expr(right, write)
            name = self._calls.name_of("is_member", is_member)
            return f"{name}({self._text_of(left, write)}, {array})"
        else:
            raise _unsupported(expr)
        tests = [f"{value} {expr.name} {item}" for item in items]
        return f"({glue.join(tests) or ('0' if expr.use_or else '1')})"

    def _case(self, expr: nodes.CaseExpr, write: WriteQuery) -> str:
        operand = None if expr.arg is None else expr.arg

        def filled(node: Any) -> Any:
            return operand if isinstance(node, nodes.Param) and node.number == 0 else None

        whens = " ".join(
            f"WHEN {self._expr(nodes.transform(when.condition, filled), write)}"
            f" THEN {self._expr(when.result, write)}"
            for when in expr.whens
        )
        return f"CASE {whens} ELSE {self._expr(expr.default, write)} END"

    def _text_of(self, expr: nodes.Expr, write: WriteQuery) -> str:
        """Return an expression in the text form of its type."""
        return self._shown(self._expr(expr, write), expr.type)

    def _shown(self, value: str, type_: str) -> str:
        if type_ in TEXTS:
            return value
        environment = self._context.environment
        name = self._calls.name_of(
            f"out_{type_.strip('@')}", lambda context, item: shown(environment, type_, item)
        )
        return f"{name}({value})"

    def _by_text(self, arg: nodes.Expr, target: str, write: WriteQuery) -> str:
        value = self._text_of(arg, write)
        if target in TEXTS:
            return value
        environment = self._context.environment
        type_ = environment.type(target)
        name = self._calls.name_of(
            f"in_{target.strip('@')}",
            lambda context, item: stored(target, environment.input(type_, item, -1, None)),
        )
        return f"{name}({value})"

    def _array(self, expr: nodes.ArrayExpr, write: WriteQuery) -> str:
        items = ", ".join(self._text_of(item, write) for item in expr.elements)
        name = self._calls.name_of(
            "array", lambda context, *args: text.render("_text", list(args)), is_strict=False
        )
        return f"{name}({items})"

    def _sublink(self, expr: nodes.SubLink, write: WriteQuery) -> str:
        query = write(expr.query)
        match expr.kind:
            case "exists":
                return f"EXISTS ({query})"
            case "expr":
                return f"({query})"
            case "any" if isinstance(expr.test, nodes.OpExpr) and expr.test.name == "=":
                return f"({self._expr(expr.test.args[0], write)} IN ({query}))"
            case "all" if isinstance(expr.test, nodes.OpExpr) and expr.test.name == "<>":
                return f"({self._expr(expr.test.args[0], write)} NOT IN ({query}))"
            case "array":
                (element,) = expr.query.columns
                value = self._shown("c1", element.type)
                aggregate = self._calls.aggregate("array", collector(array_of, 1, ()))
                return f"(SELECT coalesce({aggregate}({value}), '{{}}') FROM ({query}) AS a)"
        raise _unsupported(expr)

    def _aggregate(self, expr: nodes.Aggref, write: WriteQuery) -> str:
        condition = ""
        if expr.filter is not None:
            condition = f" FILTER (WHERE {self._expr(expr.filter, write)})"
        if expr.is_star:
            return f"count(*){condition}"
        distinct = "DISTINCT " if expr.is_distinct else ""
        arg = expr.args[0]
        value = self._expr(arg, write)
        match expr.name:
            case "count":
                return f"count({distinct}{value}){condition}"
            case "min" | "max" if arg.type in COMPARABLE:
                return f"{expr.name}({value}){condition}"
            case "sum" if arg.type in ("int2", "int4", "int8"):
                return f"sum({distinct}{value}){condition}"
            case "bool_and" | "every":
                return f"min({value}){condition}"
            case "bool_or":
                return f"max({value}){condition}"
            case "avg" if arg.type in ("int2", "int4", "int8") and not expr.is_distinct:
                name = self._calls.aggregate("avg", collector(average, 1, ()))
                return f"{name}({value}){condition}"
            case "array_agg" | "string_agg":
                return self._collected(expr, write) + condition
        raise _unsupported(expr)

    def _collected(self, expr: nodes.Aggref, write: WriteQuery) -> str:
        """array_agg() and string_agg(), of texts."""
        args = [self._text_of(arg, write) for arg in expr.args]
        keys = [self._sortable(key.expr, write) for key in expr.order_by]
        directions = [(key.descending, key.nulls_first) for key in expr.order_by]
        if expr.is_distinct and not keys:
            keys, directions = [self._sortable(expr.args[0], write)], [(False, False)]
        build: Build = array_of if expr.name == "array_agg" else joined
        if expr.is_distinct:
            build = _once(build)
        flags = "".join(f"{descending:d}{first:d}" for descending, first in directions)
        aggregate = collector(build, len(args), directions)
        name = self._calls.aggregate(f"{expr.name}_{expr.is_distinct:d}_{flags}", aggregate)
        return f"{name}({', '.join([*args, *keys])})"


def _once(build: Build) -> Build:
    return lambda rows: build(distinct(rows))


def _unsupported(expr: nodes.Expr) -> FeatureNotSupported:
    name = getattr(expr, "name", "") or type(expr).__name__
    return FeatureNotSupported(f"{name} is not supported in a query of catalogs")
