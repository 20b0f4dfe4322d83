"""Run queries over catalogs in SQLite, in the catalog's own database, without Spark."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, TypeAlias

from replctl.adt import arrayfuncs
from replctl.adt.fold import simplified
from replctl.adt.functions import arguments
from replctl.errors import (
    FeatureNotSupported,
    InvalidRowCountInLimitClause,
    InvalidRowCountInResultOffsetClause,
)
from replctl.expr import nodes
from replctl.expr.environment import Environment
from replctl.functions.function_context import FunctionContext
from replctl.functions.sql_functions import EVALUATED_BEFORE, SET_FUNCTIONS, series_of
from replctl.query.recursion import check_step_of_row
from replctl.query.sql import TABLEOID, TABLEOID_ATTNUM, QueryWriter, WriteQuery, column
from replctl.query.sqlite_expression import ExpressionWriter
from replctl.query.sqlite_function import (
    PythonCalls,
    as_json,
    as_records,
    implementation_of,
    with_lsns,
)
from replctl.query.sqlite_program import is_evaluated
from replctl.query.sqlite_value import FLOATS, NAN, is_exact, loader, shown_form, stored, storer
from replctl.query.tree import (
    FromFunction,
    FromSubquery,
    FromTable,
    Query,
    functions_of,
    is_volatile,
    lateral_subqueries,
    only_table,
    set_functions_of,
)
from replctl.query.view_catalog import catalog_columns, catalog_rows
from replctl.record import dataclass
from replctl.types.quote import quote_record, quote_string


@dataclass(frozen=True, slots=True)
class SmallTable:
    """The rows of a relation, in the order in which they were written, as SQLite's values.

    Attributes:
        names: the names of the columns in SQL.
    """

    names: tuple[str, ...]
    rows: list[list[Any]]


#: Small tables by OID and whether their children's rows are included.
SmallTables = dict[tuple[int, bool], SmallTable]


def is_answerable(query: Query, environment: Environment) -> bool:
    """Return whether SQLite can run a query, because all its functions are known here."""
    return all(_is_known(call, environment) for call in functions_of(query))


def _is_known(call: nodes.FuncExpr | nodes.SqlValueFunction, environment: Environment) -> bool:
    if isinstance(call, nodes.SqlValueFunction):
        return True
    function = environment.function(call.function_oid)
    if call.returns_set:
        return function.source in SET_FUNCTIONS or function.source in EVALUATED_BEFORE
    is_known = function.source in SET_FUNCTIONS or function.source == "pg_typeof"
    return is_known or implementation_of(function) is not None or is_evaluated(call)


#: The column of a small table with the number of each row.
_PLACE = "place"

#: Returns the conversion of a type's SQLite values to text.
_Form: TypeAlias = Callable[[Environment, str], Callable[[Any], str]]


def run_query(
    query: Query,
    context: FunctionContext,
    *,
    form: _Form = shown_form,
    tables: SmallTables | None = None,
) -> list[list[str | None]]:
    """Return the rows of a query of catalogs, and of small tables, as texts.  Without ORDER BY,
    rows of one table come in the order in which they were written.

    Args:
        tables: the rows of the tables.
        form: shown_form, the text form of the types; or canonical_form, which shows objects as
            OIDs.

    Raises:
        FeatureNotSupported: the query uses an unsupported feature.
        PostgresError: a function in it fails.
    """
    connection = context.catalog.connection
    driver: Any = connection.connection.driver_connection
    calls = PythonCalls(context, driver)
    writer = QueryWriter(_Dialect(context, driver, calls, query, tables or {}))
    statement = writer.write(query, is_outermost=True)
    with calls.raising(), context.sequences.in_portions():
        rows = context.catalog.driver_rows(statement)
    forms = [form(context.environment, result.type) for result in query.columns]
    return [
        [None if value is None else show(value) for show, value in zip(forms, row, strict=False)]
        for row in rows
    ]


def evaluated_rows(context: FunctionContext, item: FromFunction) -> list[list[str | None]]:
    """Return the rows, as texts, of a call in FROM that ran before the query."""
    assert isinstance(item.function, nodes.FuncExpr)
    rows = context.evaluated[item.function]
    is_record = item.columns[0].type == "record"  # in the SELECT list
    return [[quote_record(row)] for row in rows] if is_record else rows


class _Dialect:
    """SQLite's dialect (query.sql.Dialect)."""

    def __init__(
        self,
        context: FunctionContext,
        driver: sqlite3.Connection,
        calls: PythonCalls,
        query: Query,
        tables: SmallTables,
    ) -> None:
        self._context = context
        self._tables = tables
        self._driver = driver
        self._calls = calls
        functions = {item.varno: item for item in set_functions_of(query)}
        series = {n: _constant_series(context.environment, item) for n, item in functions.items()}
        self._series = {n: values for n, values in series.items() if values}
        self._set_functions = {n: item for n, item in functions.items() if n not in self._series}
        self._lateral = lateral_subqueries(query)
        self._filled: set[tuple[int, bool]] = set()  # relations whose rows are in SQLite's tables
        self._expressions = ExpressionWriter(context, calls, self._column)

    # -- FROM

    def table(self, item: FromTable, *, is_ordered: bool) -> str:
        relation = item.relation
        place = (relation.oid, item.inherit)
        name = f"temp.pg__{relation.oid}{'' if item.inherit else '_only'}"
        if place in self._filled:
            return f"SELECT * FROM {name}"
        self._filled.add(place)
        if item.is_catalog:
            width = len(catalog_columns(relation))
            names: Sequence[str] = [f"c{i}" for i in range(1, width + 1)]
            rows: Sequence[Sequence[Any]] = list(catalog_rows(self._context, relation))
        else:
            table = self._tables[place]
            names = (*table.names, _PLACE)
            rows = [(*row, number) for number, row in enumerate(table.rows)]
        self._driver.execute(f"DROP TABLE IF EXISTS {name}")
        self._driver.execute(f"CREATE TABLE {name} ({', '.join(names)})")
        marks = ", ".join("?" * len(names))
        self._driver.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        return f"SELECT * FROM {name}"

    def function(self, item: FromFunction, write: WriteQuery) -> str:
        """Return a set as JSON: json_each() may use columns of preceding relations.

        A series of constants is computed row by row, since it may be long.
        """
        if (series := self._series.get(item.varno)) is not None:
            return _counted(series)
        sets = [self._set(part, write) for part in item.parts]
        if len(sets) == 1:
            return f"json_each({sets[0]})"
        zipped = self._calls.function("zipped_sets", _zipped, is_strict=False)
        return f"json_each({zipped}({', '.join(sets)}))"

    def _set(self, item: FromFunction, write: WriteQuery) -> str:
        """Return the rows of a call as JSON."""
        call = item.function
        types = [column.type for column in item.columns]
        if not isinstance(call, nodes.FuncExpr):
            return self._value(call, write)
        if call in self._context.evaluated:
            rows = [
                [
                    None if value is None else stored(type_, value)
                    for value, type_ in zip(row, types, strict=False)
                ]
                for row in evaluated_rows(self._context, item)
            ]
            return quote_string(json.dumps(rows))
        function = self._context.environment.function(call.function_oid)
        if not call.returns_set and not function.columns:
            return self._value(call, write)
        args = ", ".join(self.expr(arg, write) for arg in arguments(function, call.args))
        name = f"set_{function.source}"
        set_function = with_lsns(function, SET_FUNCTIONS[function.source])
        if types[0] == "record":  # in the SELECT list
            name, set_function = f"records_{name}", as_records(function, set_function)
        elif function.source == "array_unnest":
            name, set_function = f"{name}_{types[0]}", _items(call.args[0].type, types[0])
        name = self._calls.catalog_function(
            name, as_json(set_function), is_strict=function.is_strict
        )
        return f"{name}({args})"

    def _value(self, expr: nodes.Expr, write: WriteQuery) -> str:
        """Return one value as a set of one row."""
        return f"json_array(json_array({self._json(self.expr(expr, write), expr.type)}))"

    def lateral(self, item: FromSubquery, query: str) -> str:
        """Return the rows as JSON, like those of a function, because a subquery in FROM cannot use
        its neighbours in SQLite.
        """
        columns = ", ".join(
            self._json(f"c{i}", column.type) for i, column in enumerate(item.query.columns, start=1)
        )
        return f"json_each((SELECT json_group_array(json_array({columns})) FROM {query} AS q))"

    # -- expressions

    def expr(self, expr: nodes.Expr, write: WriteQuery) -> str:
        return self._expressions.simplified(expr, write)

    def condition(self, expr: nodes.Expr, write: WriteQuery) -> str:
        return self._expressions.condition(expr, write)

    def join_condition(self, expr: nodes.Expr, write: WriteQuery) -> str:
        return self._expressions.condition(expr, write)

    def group_key(self, expr: nodes.Expr, write: WriteQuery) -> str:
        if not is_exact(expr.type):
            self._calls.define_any_value()  # the function that shows such groups
        return self._expressions.group_key(expr, write)

    def sort_key(
        self, key: nodes.SortKey, write: WriteQuery, source: nodes.SortKey | None = None
    ) -> str:
        if source is not None and not isinstance(key.expr, nodes.Var):
            key = source  # in an expression, SQLite prefers a column c1 of FROM to the output c1
        return self._expressions.sort_key(key, write)

    def is_shown_by_key(self, expr: nodes.Expr) -> bool:
        return is_exact(expr.type)

    # -- clauses

    def is_computed_once(self, query: Query) -> bool:
        return not is_volatile(self._context.environment, query)

    @property
    def has_all(self) -> bool:
        return False

    def recursive_side(self, query: Query, text: str) -> str:
        collates = (self._expressions.collate(column.type) for column in query.columns)
        columns = ", ".join(f"c{i}{collate} AS c{i}" for i, collate in enumerate(collates, start=1))
        return f"SELECT {columns} FROM ({text}) AS q"

    def check_recursive_step(self, query: Query) -> None:
        check_step_of_row(query)

    def row_order(self, query: Query) -> tuple[Sequence[str], Sequence[str]]:
        table = only_table(query)
        return ((), ()) if table is None else ((f"r{table.varno}.{_PLACE}",), (_PLACE,))

    def limit(self, limit: str | None, offset: str | None) -> str:
        """Return the clauses; NULL means no limit."""
        if limit is None and offset is None:
            return ""
        tail = " LIMIT -1" if limit is None else f" LIMIT {self._count('limit', limit, -1)}"
        return tail if offset is None else f"{tail} OFFSET {self._count('offset', offset, 0)}"

    def _count(self, clause: str, value: str, otherwise: int) -> str:
        if value.isdecimal():
            return value
        name = self._calls.function(clause, _CHECKS[clause])
        return f"coalesce({name}({value}), {otherwise})"

    def constants(self, rows: Sequence[Sequence[str]]) -> str:
        names = ", ".join(f"column{i} AS c{i}" for i in range(1, len(rows[0]) + 1))
        listed = (f"({', '.join(row)})" for row in rows)
        return f"SELECT {names} FROM (VALUES {', '.join(listed)})"

    def _column(self, var: nodes.Var) -> str:
        if var.attnum == TABLEOID_ATTNUM and self._tables:
            var = replace(var, attnum=TABLEOID)
        if var.attnum <= 0:
            raise FeatureNotSupported(
                "system columns and whole rows are not supported in a query of catalogs"
            )
        place = f"json_extract(r{var.varno}.value, '$[{var.attnum - 1}]')"
        item = self._set_functions.get(var.varno)
        if item is not None and item.with_ordinality and var.attnum == len(item.columns):
            return f"(r{var.varno}.key + 1)"
        if item is None and var.varno not in self._lateral:
            return column(var)
        if var.type in FLOATS:
            return f"{self._calls.function('from_json', _from_json)}({place})"
        return place

    def _json(self, value: str, type_: str) -> str:
        """Return a value for json_array(), which itself would keep only 15 digits of a float."""
        return f"{self._calls.function('to_json', str)}({value})" if type_ in FLOATS else value


def _constant_series(environment: Environment, item: FromFunction) -> range | None:
    """Return the values of generate_series() with constant arguments; None for other calls."""
    call = item.function
    if not isinstance(call, nodes.FuncExpr) or item.with_ordinality or len(item.columns) != 1:
        return None
    source = environment.function(call.function_oid).source or ""
    if not source.startswith("generate_series") or call.type not in ("int4", "int8"):
        return None
    args = [simplified(arg) for arg in call.args]
    values = [int(a.value) for a in args if isinstance(a, nodes.Const) and a.value is not None]
    if len(values) < len(args) or values[2:] == [0]:
        return None
    return series_of(*values)


def _counted(values: range) -> str:
    """Return a query that counts through a range."""
    return (
        f"(WITH RECURSIVE series(c1) AS (SELECT {values[0]} UNION ALL SELECT c1 + {values.step}"
        f" FROM series WHERE c1 <> {values[-1]}) SELECT c1 FROM series)"
    )


def _items(array_type: str, type_: str) -> Callable[..., Sequence[Sequence[Any]]]:
    """Return a function like unnest() for arrays of any number of dimensions."""
    load, store = loader(array_type), storer(type_)
    if load is None:  # values of user-defined types are texts
        return SET_FUNCTIONS["array_unnest"]

    def items(context: FunctionContext, array: str) -> list[list[Any]]:
        return [
            [item if item is None or store is None else store(item)]
            for item in arrayfuncs.flat(load(array))
        ]

    return items


def _zipped(*sets: str | None) -> str:
    """Return sets of one column next to each other, with NULLs in the shorter ones.

    `'[[1], [2]]', '[[3]]'` becomes `'[[1, 3], [2, null]]'`.
    """
    rows = zip_longest(*(json.loads(rows or "[]") for rows in sets), fillvalue=(None,))
    return json.dumps([[item for (item,) in row] for row in rows])


def _from_json(value: str | float) -> float | str:
    """Return the float of a text; NaN stays a text."""
    return value if value == NAN else float(value)


def _checked_limit(value: int) -> int:
    if value < 0:
        raise InvalidRowCountInLimitClause("LIMIT must not be negative")
    return value


def _checked_offset(value: int) -> int:
    if value < 0:
        raise InvalidRowCountInResultOffsetClause("OFFSET must not be negative")
    return value


_CHECKS = {"limit": _checked_limit, "offset": _checked_offset}
