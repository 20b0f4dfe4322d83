"""Facts about calls of window functions that the engines need."""

from __future__ import annotations

from decimal import Decimal

from replctl.errors import InvalidArgumentForNthValue, InvalidArgumentForNtile, PostgresError
from replctl.expr import nodes

#: Window functions -> the index of the argument that is a number of rows or groups (windowfuncs.c).
#: The result is NULL if this argument is NULL.
COUNTS = {"lag": 1, "lead": 1, "ntile": 0, "nth_value": 1}
_ERRORS: dict[str, type[PostgresError]] = {
    "ntile": InvalidArgumentForNtile,
    "nth_value": InvalidArgumentForNthValue,
}


def count_error(name: str, count: int) -> PostgresError | None:
    """Return the error of a call with a number that is too small; None for other calls."""
    if name not in _ERRORS or count > 0:
        return None
    return _ERRORS[name](f"argument of {name} must be greater than zero")


def range_key(call: nodes.WindowFunc) -> nodes.SortKey | None:
    """Return the key to whose values RANGE adds numbers; None for other frames."""
    is_range = call.frame.startswith("RANGE") and bool(call.offsets)
    adds_numbers = is_range and all(offset.type != "interval" for offset in call.offsets)
    return call.order_by[0] if adds_numbers else None


def offset_scale(call: nodes.WindowFunc) -> int:
    """Return the largest number of digits that an offset of a frame has after the point."""
    scales = [0]
    for offset in call.offsets:
        for node in nodes.walk(offset):
            if isinstance(node, nodes.Const) and node.value is not None:
                exponent = Decimal(node.value).as_tuple().exponent
                scales.append(-exponent if isinstance(exponent, int) else 0)
    return max(scales)
