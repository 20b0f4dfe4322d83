"""Aggregates and window functions in Spark SQL, with PostgreSQL's results."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes, window_calls
from replctl.spark import numeric_sql
from replctl.spark.comparison_sql import is_comparable
from replctl.spark.data_type import storage_type
from replctl.spark.normal_form import grouping_form
from replctl.spark.order_by import Translate, comparable, sort_key, sortable
from replctl.spark.sql_value import SqlValue, check_lambda, raised_sql


def aggregate(expr: nodes.Aggref, translate: Translate, over: str = "") -> SqlValue:
    """Translate an aggregate call.

    Args:
        over: ` OVER (...)` of a window.  It follows each aggregate in the translation.

    Raises:
        FeatureNotSupported: the call has no exact translation.
    """
    args = [translate(arg) for arg in expr.args]
    condition = "" if expr.filter is None else f" FILTER (WHERE {translate(expr.filter).text})"
    suffix = condition + over
    if expr.is_star:
        return SqlValue(f"count(*){suffix}", "int8", "BIGINT")
    if expr.within_group or expr.is_variadic:
        raise FeatureNotSupported(f"aggregate function {expr.name} is not supported")
    distinct = "DISTINCT " if expr.is_distinct else ""
    value = args[0]
    match expr.name:
        case "count":
            counted = grouping_form(value) if expr.is_distinct else value.text
            return SqlValue(f"count({distinct}{counted}){suffix}", "int8", "BIGINT")
        case "any_value":
            return SqlValue(f"any_value({value.text}, TRUE){suffix}", value.type, value.spark)
        case "min" | "max" if is_comparable(value):
            return _extreme(expr.name, value, suffix)
        case "sum" | "avg":
            return numeric_sql.sum_or_average(expr, value, distinct, suffix)
        case "bool_and" | "every":
            return SqlValue(f"bool_and({value.text}){suffix}", "bool", "BOOLEAN")
        case "bool_or":
            return SqlValue(f"bool_or({value.text}){suffix}", "bool", "BOOLEAN")
        case "bit_and" | "bit_or" | "bit_xor" if value.type in ("int2", "int4", "int8"):
            return SqlValue(f"{expr.name}({distinct}{value.text}){suffix}", expr.type, value.spark)
        case "string_agg" if value.spark == "STRING":
            return _string_agg(expr, translate, args, suffix)
        case "array_agg" if not value.spark.startswith("ARRAY<"):
            collected = _collected(expr, translate, value, suffix)
            text = f"nullif(transform({collected}, item_ -> item_.v), array())"
            spark = storage_type(expr.type)
            return SqlValue(
                text, expr.type, spark if value.decimal is None else f"ARRAY<{value.spark}>"
            )
    raise FeatureNotSupported(f"aggregate function {expr.name} is not supported")


def _extreme(name: str, value: SqlValue, suffix: str) -> SqlValue:
    """Translate min() and max().  If Spark does not sort the stored values like PostgreSQL, use the
    value with the smallest or largest sort key.
    """
    key = sortable(value)
    call = f"{name}({key})" if key == value.text else f"{name}_by({value.text}, {key})"
    return SqlValue(f"{call}{suffix}", value.type, value.spark)


def _string_agg(
    expr: nodes.Aggref, translate: Translate, args: Sequence[SqlValue], suffix: str
) -> SqlValue:
    """Translate string_agg(): it ignores NULLs, and returns NULL if there are no values."""
    value, delimiter = args
    if not isinstance(expr.args[1], nodes.Const):
        raise FeatureNotSupported(
            "string_agg with a delimiter that is not a constant is not supported"
        )
    collected = _collected(expr, translate, value, suffix)
    present = f"filter(transform({collected}, item_ -> item_.v), item_ -> item_ IS NOT NULL)"
    joined = f"array_join({present}, coalesce({delimiter.text}, ''))"
    return SqlValue(
        f"CASE WHEN count({value.text}){suffix} > 0 THEN {joined} END", "text", "STRING"
    )


def _collected(expr: nodes.Aggref, translate: Translate, value: SqlValue, suffix: str) -> str:
    """Return SQL of an array of structs. Their fields v are the values, including NULLs, in the
    order of ORDER BY.

    DISTINCT values are sorted, because PostgreSQL sorts values to remove duplicates.
    """
    keys = [
        (sortable(comparable(translate(key.expr))), key.descending, key.nulls_first)
        for key in expr.order_by
    ]
    if expr.is_distinct:
        if expr.order_by and [key.expr for key in expr.order_by] != [expr.args[0]]:
            raise FeatureNotSupported("DISTINCT with ORDER BY another expression is not supported")
        keys = keys or [(sortable(comparable(value)), False, False)]
        if any(key != value.text for key, _, _ in keys):
            raise FeatureNotSupported(f"DISTINCT values of type {value.type} are not supported")
    fields = "".join(f", 'k{i}', {key}" for i, (key, _, _) in enumerate(keys))
    function = "collect_set" if expr.is_distinct else "collect_list"
    collected = f"{function}(named_struct('v', {value.text}{fields})){suffix}"
    if not keys:
        return collected
    order = "0"
    for i, (_, descending, nulls_first) in reversed(list(enumerate(keys))):
        a, b = f"a_.k{i}", f"b_.k{i}"
        null, less = (-1, 1) if nulls_first else (1, -1), (1, -1) if descending else (-1, 1)
        order = (
            f"CASE WHEN {a} <=> {b} THEN {order} WHEN {a} IS NULL THEN {null[0]}"
            f" WHEN {b} IS NULL THEN {null[1]} WHEN {a} < {b} THEN {less[0]} ELSE {less[1]} END"
        )
    check_lambda(order)
    return f"array_sort({collected}, (a_, b_) -> {order})"


def window(expr: nodes.WindowFunc, translate: Translate) -> SqlValue:
    """Translate a window function call."""
    expr = window_calls.without_unused_frame(expr)  # Spark refuses it
    for word in ("GROUPS", "EXCLUDE"):
        if word in expr.frame:
            raise FeatureNotSupported(f"{word} in a window over tables is not supported")
    order_by = [_window_key(expr, key, translate) for key in expr.order_by]
    if not order_by and (expr.name in _ORDERED or expr.frame.startswith("RANGE")):
        order_by = ["NULL"]  # all rows are peers, as without ORDER BY
    over = window_calls.over_clause(
        expr, (grouping_form(translate(item)) for item in expr.partition_by), order_by, _MAX_INT
    )
    if expr.is_aggregate:
        return aggregate(window_calls.as_aggregate(expr), translate, over)
    if expr.name not in _WINDOW_FUNCTIONS:
        raise FeatureNotSupported(f"window function {expr.name} is not supported")
    args = [translate(arg) for arg in expr.args]
    # row_number() and similar functions return BIGINT in PostgreSQL, INT in Spark.
    counted = expr.name in window_calls.RANKS
    spark = storage_type(expr.type) if counted or not args else args[0].spark
    place = window_calls.COUNTS.get(expr.name, len(args))
    if place < len(args):
        count = _constant_count(expr, place)
        if count is None:
            return SqlValue(f"CAST(NULL AS {spark})", expr.type, spark)
        error = window_calls.count_error(expr.name, count)
        if error is not None:  # only if there are rows
            return SqlValue(f"CAST({raised_sql(error)} AS {spark})", expr.type, spark)
        args[place] = SqlValue(str(max(-_MAX_INT, min(count, _MAX_INT))), "int4", "INT")
    text = f"{expr.name}({', '.join(arg.text for arg in args)}){over}"
    return SqlValue(f"CAST({text} AS {spark})" if counted else text, expr.type, spark)


def _constant_count(expr: nodes.WindowFunc, place: int) -> int | None:
    """Return the number of rows or groups in a call, which must be a constant in Spark; None for
    NULL.
    """
    arg = expr.args[place]
    if not isinstance(arg, nodes.Const):
        raise FeatureNotSupported(
            f"{expr.name} with an argument that is not a constant is not supported over tables"
        )
    return None if arg.value is None else int(arg.value)


def _window_key(expr: nodes.WindowFunc, key: nodes.SortKey, translate: Translate) -> str:
    """Return an item of a window's ORDER BY.  If RANGE adds offsets to the item, the item has a
    type that holds the sums.

    Raises:
        FeatureNotSupported: Spark cannot add the offsets to values of the type.
    """
    if window_calls.range_key(expr) is None:
        return sort_key(key, translate)
    return sort_key(key, lambda arg: _summand(translate(arg), expr))


def _summand(value: SqlValue, expr: nodes.WindowFunc) -> SqlValue:
    """Return a value to which Spark adds the offsets of RANGE exactly, and without overflow."""
    if value.type in ("float4", "float8"):
        spark = "DOUBLE"
    elif value.type in ("int2", "int4", "int8"):
        spark = "DECIMAL(20,0)"
    elif value.decimal is not None:
        precision, own_scale = value.decimal
        scale = max(own_scale, window_calls.offset_scale(expr))
        if precision - own_scale + scale >= 38:
            raise FeatureNotSupported(
                "RANGE with an offset for values of more than 37 digits is not supported"
            )
        spark = f"DECIMAL(38,{scale})"
    else:
        raise FeatureNotSupported(
            f"RANGE with an offset for type {value.type} is not supported over tables"
        )
    return SqlValue(f"CAST({value.text} AS {spark})", value.type, spark)


_MAX_INT = 2**31 - 1
#: Window functions for which Spark requires ORDER BY, as it does for RANGE.
_ORDERED = window_calls.RANKS | {"lag", "lead", "nth_value"}
_WINDOW_FUNCTIONS = _ORDERED | {"first_value", "last_value"}
