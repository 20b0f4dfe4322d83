"""Calls of window functions for the engines: their arguments, and the text of OVER."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from decimal import Decimal

from replctl.errors import (
    FeatureNotSupported,
    InvalidArgumentForNthValue,
    InvalidArgumentForNtile,
    InvalidPrecedingOrFollowingSize,
    PostgresError,
)
from replctl.expr import nodes

#: Window functions -> the index of the argument that is a number of rows or groups (windowfuncs.c).
#: The result is NULL if this argument is NULL.
COUNTS = {"lag": 1, "lead": 1, "ntile": 0, "nth_value": 1}
_ERRORS: dict[str, type[PostgresError]] = {
    "ntile": InvalidArgumentForNtile,
    "nth_value": InvalidArgumentForNthValue,
}

#: Window functions whose result does not depend on the frame.
RANKS = frozenset(["row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"])
_OFFSETS = frozenset(["lag", "lead"])


def without_unused_frame(call: nodes.WindowFunc) -> nodes.WindowFunc:
    """Return a call without its frame if the function ignores the frame.

    Raises:
        FeatureNotSupported, InvalidPrecedingOrFollowingSize: lag() or lead() has a wrong frame.
            PostgreSQL does not check the frames of the other functions.
    """
    if call.is_aggregate or call.name not in RANKS | _OFFSETS:
        return call
    if call.name in _OFFSETS:
        _frame_text(call)
    return dataclasses.replace(call, frame="", offsets=())


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


def as_aggregate(call: nodes.WindowFunc) -> nodes.Aggref:
    """Return a call as the call of an aggregate."""
    return nodes.Aggref(
        call.function_oid,
        call.name,
        call.type,
        call.args,
        is_star=call.is_star,
        filter=call.filter,
    )


def over_clause(
    call: nodes.WindowFunc,
    partition_by: Iterable[str],
    order_by: Iterable[str],
    max_rows: int | None = None,
) -> str:
    """Return the OVER clause for an engine, given the texts of PARTITION BY and ORDER BY items.

    Args:
        max_rows: the largest number of rows in a frame of the engine; None for no limit.

    Raises:
        FeatureNotSupported, InvalidPrecedingOrFollowingSize: the frame is wrong.
    """
    partition, order = ", ".join(partition_by), ", ".join(order_by)
    parts = (
        f"PARTITION BY {partition}" if partition else "",
        f"ORDER BY {order}" if order else "",
        _frame_text(call, max_rows),
    )
    return f" OVER ({' '.join(filter(None, parts))})"


def _frame_text(call: nodes.WindowFunc, max_rows: int | None = None) -> str:
    """Return the frame of a call for the engines, which know only numbers as offsets.

    Raises:
        FeatureNotSupported: an offset is an interval or infinite.
        InvalidPrecedingOrFollowingSize: an offset is negative or NaN.
    """
    mode, *_ = call.frame.split(" ")
    starts = "{}" in call.frame.partition(" AND ")[0]
    numbers = []
    for i, offset in enumerate(call.offsets):
        if offset.type == "interval":
            raise FeatureNotSupported("RANGE with an interval as offset is not supported")
        # An offset has one Const, because the grammar allows only a literal (frame_bound).
        (number,) = (node.value for node in nodes.walk(offset) if isinstance(node, nodes.Const))
        assert number is not None
        size = Decimal(number)
        if size.is_nan() or size < 0:
            bound = "starting" if starts and i == 0 else "ending"
            raise InvalidPrecedingOrFollowingSize(
                "invalid preceding or following size in window function"
                if mode == "RANGE"
                else f"frame {bound} offset must not be negative"
            )
        if size.is_infinite():
            raise FeatureNotSupported("RANGE with an infinite offset is not supported")
        is_too_large = mode == "ROWS" and max_rows is not None and size > max_rows
        numbers.append(str(max_rows) if is_too_large else number)
    return call.frame.format(*numbers)
