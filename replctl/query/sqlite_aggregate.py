"""Aggregates in queries over catalogs: use an aggregate of SQLite if it equals PostgreSQL's. Else
collect the rows of the group, and compute the result with the evaluator's functions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, TypeAlias

from replctl.adt import arrayfuncs, comparison
from replctl.adt.functions import PLAIN
from replctl.errors import ArraySubscriptError, NullValueNotAllowed, NumericValueOutOfRange
from replctl.expr import nodes
from replctl.query.sqlite_value import (
    FLOATS,
    TEXTS,
    has_text_form,
    is_exact,
    is_ordered,
    loader,
    sort_key,
    storer,
)
from replctl.record import dataclass
from replctl.types import builtin

#: Computes an aggregate from the arguments of one or more rows, in the order of the rows.
Build: TypeAlias = Callable[[Sequence[tuple[Any, ...]]], Any]

_INTEGERS = ("int2", "int4", "int8")
_BITS = {"bit_and": operator.and_, "bit_or": operator.or_, "bit_xor": operator.xor}
_ADD = {
    "numeric": "numeric_add",
    "float4": "float4pl",
    "float8": "float8pl",
    "interval": "interval_pl",
}
_DIVIDE = {"numeric": "numeric_div", "interval": "interval_div"}
#: Type -> prefix of the type's functions for the larger and the smaller of two values, if this
#: prefix is not the type's name.
_EXTREMES = {"inet": "network_", "cidr": "network_", "float4": "float4", "float8": "float8"}


def native_aggregate(expr: nodes.Aggref) -> str | None:
    """Return the name of SQLite's equivalent of an aggregate; None if there is none."""
    if expr.within_group or (expr.order_by and expr.name in ("array_agg", "string_agg")):
        return None
    type_ = expr.args[0].type if expr.args else ""
    match expr.name:
        case "count":
            return "count"
        case "min" | "max" if is_ordered(type_) and is_exact(type_):
            return expr.name
        case "sum" if type_ in ("int2", "int4"):
            return "sum"
        case "bool_and" | "every":
            return "min"
        case "bool_or":
            return "max"
    return None


@dataclass(frozen=True, slots=True)
class SortBy:
    """Sorts the rows of a group by the argument with index `place`."""

    place: int
    key: Callable[[Any], Any]
    descending: bool = False
    nulls_first: bool = False

    def sorted(self, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        place, key = self.place, self.key
        nulls = [row for row in rows if row[place] is None]
        others = [row for row in rows if row[place] is not None]
        others.sort(key=lambda row: key(row[place]), reverse=self.descending)
        return [*nulls, *others] if self.nulls_first else [*others, *nulls]


def collected_aggregate(expr: nodes.Aggref) -> Build | None:
    """Return a function that computes an aggregate from the rows of a group.  A row has the
    arguments and then the sort keys, as SQLite's values.  None if the aggregate is not supported.
    """
    build = _build(expr)
    if build is None:
        return None
    types = [arg.type for arg in expr.args]
    order = [
        SortBy(i, sort_key(key.expr.type), key.descending, key.nulls_first)
        for i, key in enumerate(expr.order_by, start=len(types))
    ]
    keys = [sort_key(type_) for type_ in types] if expr.is_distinct else []
    order += [SortBy(i, key) for i, key in enumerate(keys)]
    loads, store = [loader(type_) for type_ in types], storer(expr.type)
    keeps_nulls = expr.name == "array_agg"

    def compute(rows: Sequence[tuple[Any, ...]]) -> Any:
        for item in reversed(order):
            rows = item.sorted(rows)
        if keys:
            rows = _distinct(rows, keys)
        if not keeps_nulls:
            rows = [row for row in rows if row[0] is not None]
        loaded = [
            tuple(
                value if load is None or value is None else load(value)
                for load, value in zip(loads, row, strict=False)
            )
            for row in rows
        ]
        result = build(loaded) if loaded else None
        return result if result is None or store is None else store(result)

    return compute


def _distinct(
    rows: Sequence[tuple[Any, ...]], keys: Sequence[Callable[[Any], Any]]
) -> list[tuple[Any, ...]]:
    """Return the first row of each run of rows with equal arguments."""
    found: list[tuple[Any, ...]] = []
    last: list[Any] | None = None
    for row in rows:
        key = [
            None if value is None else (key(value),) for key, value in zip(keys, row, strict=False)
        ]
        if key != last:
            found.append(row)
        last = key
    return found


def _build(expr: nodes.Aggref) -> Build | None:
    if expr.within_group or expr.is_variadic or not expr.args:
        return None
    type_ = expr.args[0].type
    match expr.name:
        case "sum" | "avg":
            return _sum_or_average(expr.name, type_)
        case "min" | "max":
            choose = _extreme(type_, "larger" if expr.name == "max" else "smaller")
            return None if choose is None else _reduced(choose)
        case "bit_and" | "bit_or" | "bit_xor" if type_ in _INTEGERS:
            return _reduced(_BITS[expr.name])
        case "any_value":
            return lambda rows: rows[0][0]
        case "string_agg" if type_ in TEXTS:
            return _joined
        case "array_agg" if has_text_form(expr.type):
            return _array_of_arrays if _is_array(type_) else lambda rows: [row[0] for row in rows]
    return None


def _is_array(type_: str) -> bool:
    known = builtin.types().get(type_)
    return known is not None and known.is_array


def _reduced(function: Callable[[Any, Any], Any]) -> Build:
    return lambda rows: reduce(function, (row[0] for row in rows))


def _extreme(type_: str, word: str) -> Callable[[Any, Any], Any] | None:
    if _is_array(type_):
        element = builtin.types()[type_].element
        assert element is not None
        return arrayfuncs.KEYED[f"array_{word}"](comparison.key_of(element))
    return PLAIN.get(f"{_EXTREMES.get(type_, f'{type_}_')}{word}")


def _sum_or_average(name: str, type_: str) -> Build | None:
    """Return the function for sum or avg.  An average of numerics has the digits of numeric
    division; an average of floats is a float8.
    """
    if type_ in _INTEGERS:
        return _sum_of_integers if name == "sum" else _average_of_integers
    if type_ not in _ADD:
        return None
    if name == "sum":
        return _reduced(PLAIN[_ADD[type_]])
    if type_ in FLOATS:
        return _average_of_floats
    total, divide = _reduced(PLAIN[_ADD[type_]]), PLAIN[_DIVIDE[type_]]
    number = Decimal if type_ == "numeric" else float
    return lambda rows: divide(total(rows), number(len(rows)))


def _average_of_floats(rows: Sequence[tuple[Any, ...]]) -> float:
    """Return the average. Raise an error if the sum of squares overflows: PostgreSQL also computes
    that sum (float8_accum).
    """
    total = squares = 0.0
    for count, (value, *_) in enumerate(rows, start=1):
        total += value
        if count > 1:
            part = value * count - total
            squares += part * part / (count * (count - 1))
            if math.isinf(total) or math.isinf(squares):
                if not any(math.isinf(row[0]) for row in rows[:count]):
                    raise NumericValueOutOfRange("value out of range: overflow")
                squares = math.nan
        elif not math.isfinite(value):
            squares = math.nan
    return total / len(rows)


def _array_of_arrays(rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return an array with one more dimension (accumArrayResultArr() in arrayfuncs.c)."""
    sizes = [None if array is None else arrayfuncs.dimensions(array) for array, *_ in rows]
    for size in sizes:
        if size is None:
            raise NullValueNotAllowed("cannot accumulate null arrays")
        if not size:
            raise ArraySubscriptError("cannot accumulate empty arrays")
        if size != sizes[0]:
            raise ArraySubscriptError("cannot accumulate arrays of different dimensionality")
    return [row[0] for row in rows]


def _sum_of_integers(rows: Sequence[tuple[Any, ...]]) -> Decimal:
    return Decimal(sum(row[0] for row in rows))


def _average_of_integers(rows: Sequence[tuple[Any, ...]]) -> Any:
    return PLAIN["numeric_div"](_sum_of_integers(rows), Decimal(len(rows)))


def _joined(rows: Sequence[tuple[Any, ...]]) -> str:
    """Join texts; each row is a pair of a text and the separator before it."""
    result: str = rows[0][0]
    for value, separator in rows[1:]:
        result += f"{separator or ''}{value}"
    return result
