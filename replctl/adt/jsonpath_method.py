"""jsonpath's methods with one result: .type(), .double(), .decimal(4,1) and similar ones
(PostgreSQL's jsonpath_exec.c).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from replctl.adt import jsonb, numeric_arithmetic
from replctl.adt.range_check import integer
from replctl.errors import DataError, NonNumericJsonItem, NumericValueOutOfRange, PostgresError
from replctl.types import text
from replctl.types.jsonpath_node import Method
from replctl.types.numeric import numeric_out
from replctl.types.type_modifier import typmod_in

_SQL_NAMES = {
    "double": "double precision",
    "bigint": "bigint",
    "integer": "integer",
    "boolean": "boolean",
    "number": "numeric",
    "decimal": "numeric",
}


class Failure(Exception):
    """An error that is unknown to predicates, and that silent mode ignores."""

    def __init__(self, error: PostgresError) -> None:
        super().__init__(error.message)
        self.error = error


def call(method: Method, item: Any) -> Any:
    """Return the result of a method for an item.

    Raises:
        Failure: the method cannot be applied to the item.
    """
    name = method.name
    if name in _NUMERIC:
        if not isinstance(item, Decimal):
            raise _cannot(name, "a numeric value")
        return _NUMERIC[name](item)
    match name:
        case "type":
            return jsonb.type_name(item)
        case "boolean":
            return _boolean(item)
        case "string":
            return _string(item)
    if not isinstance(item, str | Decimal):
        raise _cannot(name, "a string or numeric value")
    shown = item if isinstance(item, str) else numeric_out(item)
    match name:
        case "double":
            return _double(item, shown)
        case "bigint" | "integer":
            return _integer(name, item, shown)
    return _decimal(method, shown)


_NUMERIC: dict[str, Callable[[Decimal], Decimal]] = {
    "abs": abs,
    "ceiling": lambda value: numeric_arithmetic.result(
        numeric_arithmetic.rounded(value, 0, ROUND_CEILING)
    ),
    "floor": lambda value: numeric_arithmetic.result(
        numeric_arithmetic.rounded(value, 0, ROUND_FLOOR)
    ),
}


def _cannot(name: str, what: str) -> Failure:
    return Failure(
        NonNumericJsonItem(f"jsonpath item method .{name}() can only be applied to {what}")
    )


def _read(name: str, type_name: str, shown: str, typmod: int = -1) -> Any:
    """Parse a text with the input function of a type."""
    try:
        return text.parse(type_name, shown, typmod)
    except DataError as error:
        raise Failure(
            NonNumericJsonItem(
                f'argument "{shown}" of jsonpath item method .{name}() is invalid for type'
                f" {_SQL_NAMES[name]}"
            )
        ) from error


def _not_finite(name: str) -> Failure:
    return Failure(
        NonNumericJsonItem(f"NaN or Infinity is not allowed for jsonpath item method .{name}()")
    )


def _double(item: str | Decimal, shown: str) -> Decimal:
    value = _read("double", "float8", shown)
    if not math.isfinite(value):
        raise _not_finite("double")
    if isinstance(item, Decimal):
        return item
    converted: Decimal = numeric_arithmetic.FUNCTIONS["float8_numeric"](value)
    return converted


def _integer(name: str, item: str | Decimal, shown: str) -> Decimal:
    """Round a number to an integer, or parse a string as an integer."""
    type_name = "int8" if name == "bigint" else "int4"
    if isinstance(item, Decimal):
        shown = numeric_out(numeric_arithmetic.rounded(item, 0))
        try:
            return Decimal(integer(int(shown), type_name))
        except NumericValueOutOfRange:  # `_read` reports it with the number before rounding
            shown = numeric_out(item)
    return Decimal(_read(name, type_name, shown))


def _boolean(item: Any) -> bool:
    if isinstance(item, bool):
        return item
    if isinstance(item, Decimal):
        return bool(_read("boolean", "int4", numeric_out(item)))
    if isinstance(item, str):
        return bool(_read("boolean", "bool", item))
    raise _cannot("boolean", "a boolean, string, or numeric value")


def _string(item: Any) -> str:
    if isinstance(item, str | Decimal | bool):
        return jsonb.as_text(item) or ""
    raise _cannot("string", "a boolean, string, numeric, or datetime value")


def _decimal(method: Method, shown: str) -> Decimal:
    """Implement .number() and .decimal(precision, scale)."""
    value: Decimal = _read(method.name, "numeric", shown)
    if not value.is_finite():
        raise _not_finite(method.name)
    if not method.arguments:
        return value
    modifiers = []
    for what, number in zip(("precision", "scale"), method.arguments, strict=False):
        assert isinstance(number, Decimal)
        if not -(2**31) <= number < 2**31:
            raise Failure(
                NonNumericJsonItem(
                    f"{what} of jsonpath item method .decimal() is out of range for type integer"
                )
            )
        modifiers.append(str(number))
    return _read("decimal", "numeric", shown, typmod_in("numeric", tuple(modifiers)))  # type: ignore[no-any-return]
