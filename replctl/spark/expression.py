"""Typed expressions as Spark SQL with PostgreSQL's result for every row.

Each translation gives the text and the Spark type of its value: a numeric is a DECIMAL where its
precision is known and fits, else text that only functions of ours understand (python_functions.py).
Functions and operators are found by what implements them in PostgreSQL (pg_proc.prosrc): functions.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.spark import comparison, functions, numeric_sql, text_conversion
from replctl.spark.data_type import element_type, literal, storage_type
from replctl.spark.sql_value import SqlValue
from replctl.types import builtin

#: Gives the SQL of a column.
ColumnNamer: TypeAlias = Callable[[nodes.Var], str]


@dataclass(frozen=True, slots=True)
class Translation:
    """What one translation has at hand.

    Attributes:
        column: SQL of a column.
        case_operand: what Param(0) stands for, inside a CASE with an operand or an array cast.
        subquery: SQL of a subquery, where subqueries can be.
    """

    column: ColumnNamer
    case_operand: SqlValue | None = None
    subquery: Callable[[nodes.SubLink], SqlValue] | None = None


def to_sql(
    expr: nodes.Expr,
    column: ColumnNamer,
    subquery: Callable[[nodes.SubLink], SqlValue] | None = None,
) -> SqlValue:
    """The Spark SQL of an expression.

    Raises:
        FeatureNotSupported: there is no exact translation; the message names what has none.
    """
    return _translate(expr, Translation(column, subquery=subquery))


def untranslatable(expr: nodes.Expr) -> str | None:
    """Why an expression has no exact translation, or None if it has one."""
    try:
        to_sql(expr, lambda var: f"c{var.attnum}")
    except FeatureNotSupported as error:
        return error.message
    return None


def _translate(expr: nodes.Expr, context: Translation) -> SqlValue:
    match expr:
        case nodes.Var():
            if expr.attnum <= 0:
                raise FeatureNotSupported("system columns and whole rows are not supported")
            return SqlValue(context.column(expr), expr.type, storage_type(expr.type, expr.typmod))
        case nodes.Const():
            return _constant(expr)
        case nodes.Param():
            if expr.number != 0 or context.case_operand is None:
                raise FeatureNotSupported("parameters are not supported")
            return context.case_operand
        case nodes.OpExpr():
            args = [_translate(arg, context) for arg in expr.args]
            source = _source_of_operator(expr.operator_oid, expr.name)
            return functions.call(source, args, expr.type)
        case nodes.FuncExpr():
            return _function(expr, context)
        case nodes.DistinctExpr():
            left, right = (_translate(arg, context) for arg in expr.args)
            return comparison.is_distinct(left, right)
        case nodes.NullIfExpr():
            left, right = (_translate(arg, context) for arg in expr.args)
            equal = functions.call(
                _source_of_operator(expr.operator_oid, "="), [left, right], "bool"
            )
            text = f"CASE WHEN {equal.text} THEN NULL ELSE {left.text} END"
            return SqlValue(text, expr.type, left.spark)
        case nodes.ScalarArrayOpExpr():
            return _any_or_all(expr, context)
        case nodes.BoolExpr():
            return _boolean(expr, context)
        case nodes.NullTest():
            return _null_test(expr, context)
        case nodes.BooleanTest():
            return SqlValue(
                f"({_translate(expr.arg, context).text} IS {_boolean_test(expr.test)})",
                "bool",
                "BOOLEAN",
            )
        case nodes.CaseExpr():
            return _case(expr, context)
        case nodes.CoalesceExpr():
            args = comparison.same_type([_translate(arg, context) for arg in expr.args])
            return SqlValue(f"coalesce({_joined(args)})", expr.type, args[0].spark)
        case nodes.MinMaxExpr():
            args = comparison.same_type([_translate(arg, context) for arg in expr.args])
            return comparison.greatest_or_least(expr.op, args)
        case nodes.RowCompareExpr():
            return _row_comparison(expr, context)
        case nodes.RelabelType():
            return functions.relabel(_translate(expr.arg, context), expr.type)
        case nodes.CoerceViaIO():
            return text_conversion.convert(_translate(expr.arg, context), expr.type)
        case nodes.ArrayCoerceExpr():
            return _array_coercion(expr, context)
        case nodes.ArrayExpr():
            return _array(expr, context)
        case nodes.CollateExpr():
            if expr.collation not in ("C", "POSIX", "ucs_basic", "default", "pg_c_utf8"):
                raise FeatureNotSupported(f'collation "{expr.collation}" is not supported')
            return _translate(expr.arg, context)
        case nodes.SqlValueFunction():
            return functions.sql_value(expr.name, expr.type, expr.typmod)
        case nodes.SubscriptingRef():
            return _subscript(expr, context)
        case nodes.SubLink():
            if context.subquery is None:
                raise FeatureNotSupported("subqueries are not supported here")
            return context.subquery(expr)
        case nodes.Aggref():
            return functions.aggregate(expr, lambda arg: _translate(arg, context))
        case nodes.WindowFunc():
            return functions.window(expr, lambda arg: _translate(arg, context))
        case nodes.RowExpr() | nodes.FieldSelect():
            raise FeatureNotSupported("row values are not supported")
        case nodes.JsonIsPredicate():
            raise FeatureNotSupported("IS JSON is not supported")
        case nodes.NamedArgExpr():
            return _translate(expr.arg, context)
        case nodes.CoerceToDomain():
            raise FeatureNotSupported("domains are not supported")
        case nodes.JsonValueExpr():
            return _translate(expr.formatted, context)
        case nodes.GroupingFunc():
            raise FeatureNotSupported("GROUPING is not supported")
        case nodes.SetToDefault():
            raise FeatureNotSupported("DEFAULT is not supported here")
    assert_never(expr)


def _constant(expr: nodes.Const) -> SqlValue:
    """A constant; a numeric is as wide as its digits, so that comparisons stay exact."""
    if expr.type == "numeric" and expr.value is not None:
        return numeric_sql.numeric_literal(expr.value)
    if expr.type == "numeric":
        return SqlValue("CAST(NULL AS DECIMAL(1,0))", "numeric", "DECIMAL(1,0)")
    if expr.type == "unknown":
        return SqlValue(literal("text", -1, expr.value), "text", "STRING")
    return SqlValue(
        literal(expr.type, expr.typmod, expr.value), expr.type, storage_type(expr.type, expr.typmod)
    )


def _source_of_operator(operator_oid: int, name: str) -> str:
    for operator in builtin.operators().get(name, ()):
        if operator.oid == operator_oid:
            return builtin.function_by_oid()[operator.function_oid].source
    raise FeatureNotSupported(f"user-defined operator {name} is not supported")


def _function(expr: nodes.FuncExpr, context: Translation) -> SqlValue:
    function = builtin.function_by_oid().get(expr.function_oid)
    if function is None:
        raise FeatureNotSupported(f"user-defined function {expr.name} is not supported")
    if expr.is_variadic or expr.returns_set:
        raise FeatureNotSupported(f"function {expr.name} is not supported here")
    args = [_translate(arg, context) for arg in expr.args]
    constants = [arg if isinstance(arg, nodes.Const) else None for arg in expr.args]
    return functions.call(function.source, args, expr.type, constants, name=expr.name)


def _any_or_all(expr: nodes.ScalarArrayOpExpr, context: Translation) -> SqlValue:
    """`x = ANY (array)`: exists() and forall() have PostgreSQL's three values."""
    left, array = expr.args
    source = _source_of_operator(expr.operator_oid, expr.name)
    value = _translate(left, context)
    if isinstance(array, nodes.ArrayExpr) and not array.is_multidimensional:
        tests = [
            functions.call(source, [value, _translate(element, context)], "bool").text
            for element in array.elements
        ]
        glue = " OR " if expr.use_or else " AND "
        empty = "FALSE" if expr.use_or else "TRUE"
        return SqlValue(f"({glue.join(tests) or empty})", "bool", "BOOLEAN")
    translated = _translate(array, context)
    element = element_type(translated.type) or "text"
    item = SqlValue("x", element, translated.spark.removeprefix("ARRAY<").removesuffix(">"))
    test = functions.call(source, [value, item], "bool").text
    return SqlValue(
        f"{'exists' if expr.use_or else 'forall'}({translated.text}, x -> {test})",
        "bool",
        "BOOLEAN",
    )


def _boolean(expr: nodes.BoolExpr, context: Translation) -> SqlValue:
    args = [_translate(arg, context).text for arg in expr.args]
    text = f"(NOT {args[0]})" if expr.op == "not" else f"({f' {expr.op.upper()} '.join(args)})"
    return SqlValue(text, "bool", "BOOLEAN")


def _null_test(expr: nodes.NullTest, context: Translation) -> SqlValue:
    """A row is null if all its fields are, and not null if none is."""
    args = expr.arg.args if expr.is_row and isinstance(expr.arg, nodes.RowExpr) else (expr.arg,)
    test = "IS NULL" if expr.is_null else "IS NOT NULL"
    tests = [f"({_translate(arg, context).text} {test})" for arg in args]
    return SqlValue(f"({' AND '.join(tests) or 'TRUE'})", "bool", "BOOLEAN")


def _boolean_test(test: str) -> str:
    return test.upper().replace("UNKNOWN", "NULL")


def _case(expr: nodes.CaseExpr, context: Translation) -> SqlValue:
    inner = context
    if expr.arg is not None:
        operand = _translate(expr.arg, context)
        inner = Translation(context.column, operand, context.subquery)
    conditions = [_translate(when.condition, inner).text for when in expr.whens]
    results = comparison.same_type(
        [_translate(when.result, context) for when in expr.whens]
        + [_translate(expr.default, context)]
    )
    whens = " ".join(
        f"WHEN {condition} THEN {result.text}"
        for condition, result in zip(conditions, results[:-1], strict=True)
    )
    return SqlValue(f"CASE {whens} ELSE {results[-1].text} END", expr.type, results[0].spark)


def _row_comparison(expr: nodes.RowCompareExpr, context: Translation) -> SqlValue:
    """(a, b) < (c, d): NULL as soon as a column that decides is."""
    pairs = [
        (_translate(left, context), _translate(right, context))
        for left, right in zip(expr.left, expr.right, strict=True)
    ]
    strict_operator = expr.name.rstrip("=")
    opposite = {"<": ">", ">": "<"}[strict_operator]
    text = comparison.comparison(expr.name, *pairs[-1]).text
    for left, right in reversed(pairs[:-1]):
        before = comparison.comparison(strict_operator, left, right).text
        after = comparison.comparison(opposite, left, right).text
        equal = comparison.comparison("=", left, right).text
        text = f"CASE WHEN {before} THEN TRUE WHEN {after} THEN FALSE WHEN {equal} THEN {text} END"
    return SqlValue(f"({text})", "bool", "BOOLEAN")


def _array(expr: nodes.ArrayExpr, context: Translation) -> SqlValue:
    if expr.is_multidimensional:
        raise FeatureNotSupported("arrays of more than one dimension are not supported")
    items = comparison.same_type([_translate(element, context) for element in expr.elements])
    inner = items[0].spark if items else storage_type(expr.element_type)
    return SqlValue(
        f"CAST(array({_joined(items)}) AS ARRAY<{inner}>)", expr.type, f"ARRAY<{inner}>"
    )


def _array_coercion(expr: nodes.ArrayCoerceExpr, context: Translation) -> SqlValue:
    array = _translate(expr.arg, context)
    item = SqlValue("x", element_type(array.type) or "text", array.spark[len("ARRAY<") : -1])
    inner = _translate(expr.element, Translation(context.column, item, context.subquery))
    return SqlValue(
        f"transform({array.text}, x -> {inner.text})", expr.type, f"ARRAY<{inner.spark}>"
    )


def _subscript(expr: nodes.SubscriptingRef, context: Translation) -> SqlValue:
    """array[i] is NULL outside the array, as get() is with an index from 0."""
    array = _translate(expr.arg, context)
    if (
        expr.lower is not None
        or len(expr.upper) != 1
        or expr.upper[0] is None
        or not array.spark.startswith("ARRAY<")
    ):
        raise FeatureNotSupported(
            "slices, and subscripts of other types than arrays, are not supported"
        )
    index = _translate(expr.upper[0], context)
    return SqlValue(
        f"get({array.text}, {index.text} - 1)", expr.type, array.spark[len("ARRAY<") : -1]
    )


def _joined(values: list[SqlValue]) -> str:
    return ", ".join(value.text for value in values)
