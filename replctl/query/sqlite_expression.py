"""Print expressions as SQL of SQLite.

SQLite itself computes columns, AND, OR, CASE, subqueries, and comparisons that agree with
PostgreSQL's.  It calls the evaluator (adt/interpret.py) for all other operators, functions and
casts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

from replctl.adt import fold
from replctl.adt.functions import arguments
from replctl.adt.interpret import relabelled
from replctl.errors import CardinalityViolation, FeatureNotSupported
from replctl.expr import nodes, object_identifier
from replctl.expr.node_name import sql_name
from replctl.expr.value_text import input_value
from replctl.expr.window_calls import (
    COUNTS,
    as_aggregate,
    count_error,
    over_clause,
    range_key,
    without_unused_frame,
)
from replctl.functions.function_context import FunctionContext
from replctl.functions.session_value import session_value
from replctl.functions.sql_functions import NOT_STRICT, SET_FUNCTIONS
from replctl.query.sql import WriteQuery
from replctl.query.sqlite_aggregate import collected_aggregate, native_aggregate
from replctl.query.sqlite_function import (
    PythonCalls,
    as_records,
    first_of,
    implementation_of,
    with_lsns,
)
from replctl.query.sqlite_program import Program, is_leaf, operand_as_text
from replctl.query.sqlite_value import (
    INFINITY,
    TEXTS,
    evaluated_type,
    has_text_form,
    is_native,
    is_ordered,
    shown_form,
    stored,
)
from replctl.query.tree import Query
from replctl.types import builtin, text

#: Window functions with the same name in SQLite.
_WINDOW_FUNCTIONS = frozenset(
    """row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value
    nth_value""".split()
)
#: Types to whose values SQLite adds the offsets of RANGE.
_RANGE_TYPES = frozenset(["int2", "int4", "int8", "float4", "float8"])
#: Maximum number of operands that one chain of AND or OR has in SQLite's SQL.
_CHAIN = 30
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


class ExpressionWriter:
    """Writes expressions in SQLite's SQL.

    Args:
        column: returns the SQL of a column.
    """

    def __init__(
        self, context: FunctionContext, calls: PythonCalls, column: Callable[[nodes.Var], str]
    ) -> None:
        self._context = context
        self._calls = calls
        self._column = column
        self._programs: dict[nodes.Expr, str] = {}
        self._aggregates = 0
        self._subqueries = _SubqueryWriter(self, calls)

    def simplified(self, expr: nodes.Expr, write: WriteQuery) -> str:
        """Return SQL of an expression, and fold its constants first."""
        return self.expr(fold.simplified(expr), write)

    def condition(self, expr: nodes.Expr, write: WriteQuery) -> str:
        """Return SQL of a condition for ON, WHERE or HAVING. There SQLite does not compute operands
        of AND and OR that it does not need."""
        return self._condition(fold.simplified(expr), write)

    def compared(self, expr: nodes.Expr, write: WriteQuery) -> str:
        """Return SQL by which SQLite sorts or groups the values of an expression like PostgreSQL.

        Raises:
            FeatureNotSupported: values of the expression's type have no order.
        """
        simple = fold.simplified(expr)
        if isinstance(simple, nodes.Const):
            return "NULL"  # SQLite takes a number as the position of an output column
        return self.expr(simple, write) + self.collate(expr.type)

    def group_key(self, expr: nodes.Expr, write: WriteQuery) -> str:
        """Return SQL by which to group. If values of the type have no order, this is the value
        itself: the expression may depend on a key in the same GROUP BY.
        """
        try:
            return self.compared(expr, write)
        except FeatureNotSupported:  # json, for example, has no order
            return self.simplified(expr, write)

    def collate(self, type_: str) -> str:
        """Return ` COLLATE ...` if SQLite does not sort the type like PostgreSQL, else ''."""
        return "" if is_ordered(type_) else f" COLLATE {self._calls.collation(type_)}"

    def sort_key(self, key: nodes.SortKey, write: WriteQuery) -> str:
        """Return an item of ORDER BY."""
        direction = "DESC" if key.descending else "ASC"
        nulls = "FIRST" if key.nulls_first else "LAST"
        return f"{self.compared(key.expr, write)} {direction} NULLS {nulls}"

    def expr(self, expr: nodes.Expr, write: WriteQuery) -> str:
        """Return SQL of an expression whose constants are already folded."""
        native = self._native(expr, write)
        if native is not None:
            return native
        program = Program.of(self._context.environment, expr)
        if program is None:
            raise unsupported(expr)
        if program.tree not in self._programs:
            self._programs[program.tree] = self._calls.function(
                f"expr_{len(self._programs)}", program.function(), is_strict=False
            )
        args = ", ".join(self.expr(operand, write) for operand in program.operands)
        return f"{self._programs[program.tree]}({args})"

    def _native(self, expr: nodes.Expr, write: WriteQuery) -> str | None:
        """Return SQL of an expression that SQLite itself computes; None if the evaluator must
        compute it.
        """
        match expr:
            case nodes.Var():
                return self._column(expr)
            case nodes.Const():
                return constant(expr)
            case nodes.OpExpr(args=(left, right)):
                return self._operator(expr, left, right, write)
            case nodes.FuncExpr():
                return self._function(expr, write)
            case nodes.DistinctExpr(args=(left, right)) if is_native("=", left.type, right.type):
                return f"({self.expr(left, write)} IS NOT {self.expr(right, write)})"
            case nodes.ScalarArrayOpExpr():
                return self._any_or_all(expr, write)
            case nodes.RelabelType(arg=arg) if arg.type in object_identifier.NAMED:
                raise FeatureNotSupported(f"casts of {arg.type} are not supported")
            case nodes.RelabelType(arg=arg) if relabelled(arg.type, expr.type) is None:
                return self.expr(arg, write)
            case nodes.CollateExpr() | nodes.NamedArgExpr():
                return self.expr(expr.arg, write)
            case nodes.CoerceViaIO() if expr.enum or is_leaf(self._context.environment, expr):
                return self._by_text(expr.arg, expr.type, write)
            case nodes.ArrayExpr() if is_leaf(self._context.environment, expr):
                return self._array(expr, write)
            case nodes.ArrayCoerceExpr() if is_leaf(self._context.environment, expr):
                return self.expr(expr.arg, write)
            case nodes.SubLink():
                return self._subqueries.sublink(expr, write)
            case nodes.Aggref():
                return self.aggregate(expr, write)
            case nodes.WindowFunc():
                return self._window(expr, write)
            case nodes.FieldSelect():
                return self._field(expr, write)
            case nodes.SqlValueFunction():
                value = session_value(self._context, expr)
                return None if value is None else self.simplified(value, write)
        return self._logic(expr, write)

    def _logic(self, expr: nodes.Expr, write: WriteQuery) -> str | None:
        """Return SQL of a logical or conditional expression, which may not need all its parts; None
        for other expressions, or if the evaluator must compute it."""
        match expr:
            case nodes.BoolExpr(op="not", args=(arg,)):
                return f"(NOT {self.expr(arg, write)})"
            case nodes.BoolExpr():
                return self._and_or(expr, write)
            case nodes.NullTest(is_row=False):
                word = "IS NULL" if expr.is_null else "IS NOT NULL"
                return f"({self.expr(expr.arg, write)} {word})"
            case nodes.BooleanTest():
                word = expr.test.upper().replace("UNKNOWN", "NULL")
                return f"({self.expr(expr.arg, write)} IS {word})"
            case nodes.CaseExpr():
                return self._case(expr, write)
            case nodes.CoalesceExpr():
                args = [self.expr(arg, write) for arg in expr.args]
                return f"coalesce({', '.join(args)})" if len(args) > 1 else args[0]
        return None

    def _and_or(self, expr: nodes.BoolExpr, write: WriteQuery) -> str | None:
        """Return AND or OR as a value; None if the evaluator must compute it.  For a value SQLite
        computes all operands; for a condition it may not.  This is harmless if no operand can fail.
        """
        if all(map(_is_safe, expr.args)):
            return self._condition(expr, write)
        if not is_leaf(self._context.environment, expr):
            return None
        test = self._condition(expr, write)
        return f"(CASE WHEN {test} THEN 1 WHEN NOT {test} THEN 0 END)"

    def _condition(self, expr: nodes.Expr, write: WriteQuery) -> str:
        if not isinstance(expr, nodes.BoolExpr):
            return self.expr(expr, write)
        args = [self._condition(arg, write) for arg in expr.args]
        return f"(NOT {args[0]})" if expr.op == "not" else f"({_chain(expr.op, args)})"

    def _operator(
        self, expr: nodes.OpExpr, left: nodes.Expr, right: nodes.Expr, write: WriteQuery
    ) -> str | None:
        is_concatenation = expr.name == "||" and left.type == right.type == "text"
        if not _is_native_comparison(expr) and not is_concatenation:
            return None
        return f"({self.expr(left, write)} {expr.name} {self.expr(right, write)})"

    def _function(self, expr: nodes.FuncExpr, write: WriteQuery) -> str | None:
        """Return the call of a function that uses the catalog or the session; None for others."""
        function = self._context.environment.function(expr.function_oid)
        if function.source == "pg_typeof":
            return str(self._context.environment.type(expr.args[0].type).oid)
        key = function.source or function.name
        implementation = implementation_of(function)
        if implementation is None and key in SET_FUNCTIONS:
            implementation = first_of(as_records(function, SET_FUNCTIONS[key]))
        if implementation is None:
            return None
        given = arguments(function, expr.args)
        args = [self.expr(arg, write) for arg in given]
        is_strict = key not in NOT_STRICT
        implementation = with_lsns(function, implementation)
        name = self._calls.catalog_function(key, implementation, is_strict=is_strict)
        return f"{name}({', '.join(args)})"

    def _any_or_all(self, expr: nodes.ScalarArrayOpExpr, write: WriteQuery) -> str | None:
        """Return `x = ANY (ARRAY[...])` as IN, and `x <> ALL` as NOT IN; None if SQLite does not
        compare the items like PostgreSQL, or if an item can fail.
        """
        left, right = expr.args
        if (expr.name, expr.use_or) not in (("=", True), ("<>", False)):
            return None
        if isinstance(right, nodes.ArrayExpr) and not right.is_multidimensional:
            items = list(right.elements)
        elif isinstance(right, nodes.Const) and right.value and has_text_form(right.type):
            items = _items(right)
        else:
            return self._membership(left, right, write) if expr.use_or else None
        if not items or not all(
            is_native("=", left.type, item.type) and _is_safe(item) for item in items
        ):
            return None
        listed = ", ".join(self.expr(item, write) for item in items)
        return f"({self.expr(left, write)} {'IN' if expr.use_or else 'NOT IN'} ({listed}))"

    def _membership(self, left: nodes.Expr, right: nodes.Expr, write: WriteQuery) -> str | None:
        """Return `x = ANY (array)` for a type whose values the evaluator cannot read, such as
        a user-defined type: compare the values as texts. None for other types."""
        if has_text_form(right.type) and has_text_form(left.type):
            return None
        name = self._calls.function("is_member", _is_member)
        return f"{name}({self._text_of(left, write)}, {self.expr(right, write)})"

    def _case(self, expr: nodes.CaseExpr, write: WriteQuery) -> str | None:
        """Return a CASE that repeats its operand for each WHEN.

        Return None if the operand is neither a column nor a constant, and the evaluator can compute
        the CASE: it computes the operand only once.
        """
        is_cheap = expr.arg is None or isinstance(expr.arg, nodes.Var | nodes.Const)
        if not is_cheap and not is_leaf(self._context.environment, expr):
            return None
        whens = " ".join(
            f"WHEN {self._condition(_with_operand(when.condition, expr.arg), write)}"
            f" THEN {self.expr(when.result, write)}"
            for when in expr.whens
        )
        return f"CASE {whens} ELSE {self.expr(expr.default, write)} END"

    # -- texts

    def _text_of(self, expr: nodes.Expr, write: WriteQuery) -> str:
        """Return an expression in the text form of its type."""
        return self._shown(self.expr(expr, write), expr.type)

    def _shown(self, value: str, type_: str) -> str:
        if type_ in TEXTS:
            return value
        show = shown_form(self._context.environment, type_)
        name = self._calls.function(f"out_{type_.strip('@')}", show)
        return f"{name}({value})"

    def _by_text(self, arg: nodes.Expr, target: str, write: WriteQuery) -> str:
        value = self._text_of(arg, write)
        if target in TEXTS:
            return value
        environment = self._context.environment
        type_ = environment.type(target)
        name = self._calls.function(
            f"in_{target.strip('@')}",
            lambda item: stored(target, input_value(environment, type_, item, -1, None)),
        )
        return f"{name}({value})"

    def _array(self, expr: nodes.ArrayExpr, write: WriteQuery) -> str:
        items = ", ".join(self._text_of(item, write) for item in expr.elements)
        name = self._calls.function(
            "array", lambda *args: text.render("_text", list(args)), is_strict=False
        )
        return f"{name}({items})"

    # -- groups and windows

    def aggregate(self, expr: nodes.Aggref, write: WriteQuery) -> str:
        """Return a call of an aggregate with simplified arguments."""
        condition = ""
        if expr.filter is not None:
            condition = f" FILTER (WHERE {self._condition(expr.filter, write)})"
        if expr.is_star:
            return f"count(*){condition}"
        name = native_aggregate(expr)
        if name is not None:
            (arg,) = expr.args
            value = self.expr(arg, write)
            if expr.is_distinct:
                value = f"DISTINCT {value}{self.collate(arg.type)}"
            return f"{name}({value}){condition}"
        if expr.name == "array_agg" and not has_text_form(expr.type):
            args = tuple(operand_as_text(arg) for arg in expr.args)
            expr = dataclasses.replace(expr, args=args, type="_text")
        compute = collected_aggregate(expr)
        if compute is None:
            raise unsupported(expr)
        self._aggregates += 1
        name = self._calls.aggregate(str(self._aggregates), compute)
        keys = (key.expr for key in expr.order_by)
        values = ", ".join(self.expr(arg, write) for arg in (*expr.args, *keys))
        return f"{name}({values}){condition}"

    def _window(self, expr: nodes.WindowFunc, write: WriteQuery) -> str:
        expr = without_unused_frame(expr)
        key = range_key(expr)
        if key is not None and key.expr.type not in _RANGE_TYPES:
            raise FeatureNotSupported(  # SQLite does not add to texts
                f"RANGE with an offset for type {key.expr.type} is not supported in a query of"
                " catalogs"
            )
        over = over_clause(
            expr,
            (self.compared(item, write) for item in expr.partition_by),
            (self.sort_key(key, write) for key in expr.order_by),
        )
        if expr.is_aggregate:
            called = as_aggregate(expr)
            if not expr.is_star and native_aggregate(called) is None:
                raise unsupported(expr)
            return self.aggregate(called, write) + over
        if expr.name not in _WINDOW_FUNCTIONS:
            raise unsupported(expr)
        args = [self.expr(arg, write) for arg in expr.args]
        place = COUNTS.get(expr.name, len(args))
        if place == len(args):
            return f"{expr.name}({', '.join(args)}){over}"
        counted = expr.args[place]
        if expr.name == "ntile" and not isinstance(counted, nodes.Const):
            raise unsupported(expr)  # SQLite decides by the first row, even if it has NULL
        count = args[place]
        if expr.name in ("ntile", "nth_value"):
            name = self._calls.function(f"count_{expr.name}", partial(_checked_count, expr.name))
            args[place] = f"coalesce({name}({count}), 1)"
        call = f"{expr.name}({', '.join(args)}){over}"
        is_known = isinstance(counted, nodes.Const) and counted.value is not None
        return call if is_known else f"(CASE WHEN {count} IS NOT NULL THEN {call} END)"

    def _field(self, expr: nodes.FieldSelect, write: WriteQuery) -> str:
        """Return SQL of `(f(x)).name` for a function that returns a row."""
        if isinstance(expr.arg, nodes.Const) and expr.arg.value is None:
            return "NULL"
        if not isinstance(expr.arg, nodes.FuncExpr):
            raise unsupported(expr)
        function = self._context.environment.function(expr.arg.function_oid)
        rows = SET_FUNCTIONS.get(function.source)
        if rows is None or function.returns_set:
            raise unsupported(expr)
        args = ", ".join(self.expr(arg, write) for arg in arguments(function, expr.arg.args))
        place = expr.field_number - 1

        def field(context: FunctionContext, *values: Any) -> Any:
            (row,) = rows(context, *values)
            return row[place]

        name = self._calls.catalog_function(f"field_{function.source}_{place}", field)
        return f"{name}({args})"


class _SubqueryWriter:
    """Writes subqueries as values."""

    def __init__(self, writer: ExpressionWriter, calls: PythonCalls) -> None:
        self._writer = writer
        self._calls = calls

    def sublink(self, expr: nodes.SubLink, write: WriteQuery) -> str:
        query = write(expr.query)
        match expr.kind:
            case "exists":
                return f"EXISTS ({query})"
            case "expr":
                return self._single("c1", expr.query, query)
            case "row_compare":
                assert expr.test is not None
                return self._single(
                    self._writer.simplified(_of_columns(expr.test), write), expr.query, query
                )
            case "any" | "all":
                return self._each(expr, query, write)
            case "array":
                (element,) = expr.query.columns
                var = nodes.Var(1, element.type, element.typmod, element.collation, 0)
                call = nodes.Aggref(0, "array_agg", expr.type, (var,))
                array = self._writer.aggregate(call, write)
                return f"(SELECT coalesce({array}, '{{}}') FROM ({query}) AS a)"

    def _single(self, value: str, query: Query, written: str) -> str:
        """Return SQL for the value of a query's only row; several rows cause an error."""
        limit = query.limit
        is_one = isinstance(limit, nodes.Const) and limit.value in ("0", "1")
        is_one |= query.is_aggregated and not query.group_by
        if is_one or not (query.from_ or query.set_operation or query.values):
            return f"({written})" if value == "c1" else f"(SELECT {value} FROM ({written}) AS q)"
        name = self._calls.function("several", _several)
        return (
            f"(SELECT CASE WHEN count(*) > 1 THEN {name}() ELSE max(c1) END"
            f" FROM (SELECT {value} AS c1 FROM ({written}) AS q LIMIT 2) AS q)"
        )

    def _each(self, expr: nodes.SubLink, query: str, write: WriteQuery) -> str:
        """Return SQL of `x op ANY (query)` or ALL: OR or AND over the comparisons with all rows."""
        test, is_any = expr.test, expr.kind == "any"
        assert test is not None
        if isinstance(test, nodes.OpExpr) and test.name == ("=" if is_any else "<>"):
            left, right = test.args
            if isinstance(right, nodes.Param) and is_native("=", left.type, right.type):
                word = "IN" if is_any else "NOT IN"
                return f"({self._writer.simplified(left, write)} {word} ({query}))"
        decided = "max(t)" if is_any else "NOT min(t)"
        tested = self._writer.simplified(_of_columns(test), write)
        return (
            f"(SELECT CASE WHEN {decided} THEN {is_any:d} WHEN count(*) > count(t) THEN NULL"
            f" ELSE {not is_any:d} END FROM (SELECT {tested} AS t FROM ({query}) AS q) AS q)"
        )


def constant(const: nodes.Const) -> str:
    """Return a constant in SQLite's syntax."""
    if const.value is None:
        return "NULL"
    value = stored(const.type, const.value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value).replace("inf", INFINITY)


def unsupported(expr: nodes.Expr) -> FeatureNotSupported:
    """Return the error for an expression that neither SQLite nor the evaluator supports."""
    return FeatureNotSupported(f"{sql_name(expr)} is not supported in a query of catalogs")


def _is_native_comparison(expr: nodes.OpExpr) -> bool:
    """Return whether an operator is a comparison that gives the same result in SQLite."""
    return expr.name in _COMPARISONS and is_native(expr.name, *(arg.type for arg in expr.args))


def _is_safe(expr: nodes.Expr) -> bool:
    """Return whether SQLite computes an expression without calling Python: it then cannot fail."""
    match expr:
        case nodes.Var() | nodes.Const():
            return True
        case nodes.OpExpr(args=(left, right)):
            return _is_native_comparison(expr) and _is_safe(left) and _is_safe(right)
        case nodes.NullTest(is_row=False, arg=arg) | nodes.BooleanTest(arg=arg):
            return _is_safe(arg)
        case nodes.RelabelType(arg=arg):
            return relabelled(arg.type, expr.type) is None and _is_safe(arg)
        case nodes.BoolExpr(args=args):
            return all(map(_is_safe, args))
    return False


def _items(array: nodes.Const) -> list[nodes.Expr]:
    """Return the items of a one-dimensional array as constants; [] for other arrays."""
    element = builtin.types()[array.type].element or "text"
    parsed: Any = text.parse(evaluated_type(array.type), array.value or "")
    if any(isinstance(item, list) for item in parsed):
        return []
    return [
        nodes.Const(element, None if item is None else text.render(evaluated_type(element), item))
        for item in parsed
    ]


def _with_operand(condition: Any, operand: nodes.Expr | None) -> Any:
    """Return a condition of WHEN with Param(0) replaced by the operand of its CASE."""
    if operand is None:
        return condition

    def filled(node: Any) -> Any:
        match node:
            case nodes.Param(number=0):
                return operand
            case nodes.CaseExpr(arg=arg) if (
                arg is not None
            ):  # its conditions refer to its own operand
                whens = tuple(
                    dataclasses.replace(when, result=_with_operand(when.result, operand))
                    for when in node.whens
                )
                arg, default = (_with_operand(part, operand) for part in (arg, node.default))
                return dataclasses.replace(node, arg=arg, whens=whens, default=default)
            case nodes.ArrayCoerceExpr(arg=arg):
                return dataclasses.replace(node, arg=_with_operand(arg, operand))
        return None

    return nodes.transform(condition, filled)


def _of_columns(test: nodes.Expr) -> nodes.Expr:
    """Return a comparison with the columns of its subquery, c1, c2, ..., as its parameters."""

    def column(node: Any) -> nodes.Var | None:
        if not isinstance(node, nodes.Param) or not node.number:
            return None
        return nodes.Var(node.number, node.type, node.typmod, node.collation, varno=0)

    result: nodes.Expr = nodes.transform(test, column)
    return result


def _checked_count(name: str, count: int) -> int:
    error = count_error(name, count)
    if error is not None:
        raise error
    return count


def _several() -> None:
    raise CardinalityViolation("more than one row returned by a subquery used as an expression")


def _is_member(value: str, array: str) -> int | None:
    """Return 1 if the array has the text `value`, else None if the array has a NULL, else 0."""
    items: Any = text.parse("_text", array)
    if value in items:
        return 1
    return None if None in items else 0


def _chain(word: str, operands: list[str]) -> str:
    """Join operands of AND or OR; group long chains, because SQLite limits their depth."""
    while len(operands) > _CHAIN:
        groups = [operands[i : i + _CHAIN] for i in range(0, len(operands), _CHAIN)]
        operands = [f"({f' {word} '.join(group)})" for group in groups]
    return f" {word} ".join(operands)
