"""Test whether a row is within RANGE ... PRECEDING or FOLLOWING of another one: in_range_* in
int.c, int8.c, float.c, numeric.c, date.c and timestamp.c.

Each function has the arguments value, base, offset, sub (subtract the offset) and less (test for
less or equal, else for greater or equal).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from replctl.adt import datetime_arithmetic, interval_arithmetic, timetz
from replctl.adt.numeric_scale import CONTEXT
from replctl.adt.range_check import integer
from replctl.errors import InvalidPrecedingOrFollowingSize, NumericValueOutOfRange
from replctl.types.date import TimeTz
from replctl.types.interval import INFINITY as INTERVAL_INFINITY
from replctl.types.interval import MINUS_INFINITY as INTERVAL_MINUS_INFINITY
from replctl.types.interval import Interval
from replctl.types.timestamp import INFINITY, MINUS_INFINITY

InRange: TypeAlias = Callable[[Any, Any, Any, bool, bool], bool]


def _check_size(*, is_valid: bool) -> None:
    if not is_valid:
        raise InvalidPrecedingOrFollowingSize(
            "invalid preceding or following size in window function"
        )


def _compared(value: Any, bound: Any, less: bool) -> bool:
    return bool(value <= bound) if less else bool(value >= bound)


def _integers(type_name: str) -> InRange:
    """Return the test for integers; a bound that the type cannot hold is beyond every value."""

    def in_range(value: int, base: int, offset: int, sub: bool, less: bool) -> bool:
        _check_size(is_valid=offset >= 0)
        try:
            bound = integer(base - offset if sub else base + offset, type_name)
        except NumericValueOutOfRange:  # the bound is beyond every value
            return less != sub
        return _compared(value, bound, less)

    return in_range


def _numbers(add: Callable[[Any, Any], Any], subtract: Callable[[Any, Any], Any]) -> InRange:
    """Return the test for numbers.  NaN is greater than all others.  If an infinite base and an
    infinite offset cancel out, all values except NaN are in range.
    """

    def in_range(value: Any, base: Any, offset: Any, sub: bool, less: bool) -> bool:
        _check_size(is_valid=offset == offset and offset >= 0)
        if value != value or base != base:
            return less if value == value else base != base or not less
        if base == (math.inf if sub else -math.inf) and offset == math.inf:
            return True
        return _compared(value, (subtract if sub else add)(base, offset), less)

    return in_range


def _timestamps(value: int, base: int, offset: Interval, sub: bool, less: bool) -> bool:
    _check_size(is_valid=interval_arithmetic.key(offset) >= 0)
    if offset == INTERVAL_INFINITY and base == (INFINITY if sub else MINUS_INFINITY):
        return True
    move = datetime_arithmetic.minus_interval if sub else datetime_arithmetic.plus_interval
    return _compared(value, move(base, offset), less)


def _dates(value: int, base: int, offset: Interval, sub: bool, less: bool) -> bool:
    first, second = (datetime_arithmetic.date_to_timestamp(item) for item in (value, base))
    return _timestamps(first, second, offset, sub, less)


def _intervals(value: Interval, base: Interval, offset: Interval, sub: bool, less: bool) -> bool:
    _check_size(is_valid=interval_arithmetic.key(offset) >= 0)
    far = INTERVAL_INFINITY if sub else INTERVAL_MINUS_INFINITY
    if offset == INTERVAL_INFINITY and base == far:
        return True
    bound = (interval_arithmetic.subtract if sub else interval_arithmetic.add)(base, offset)
    return _compared(interval_arithmetic.key(value), interval_arithmetic.key(bound), less)


def _time_bound(base: int, offset: Interval, sub: bool) -> int | None:
    """Return the bound, which does not wrap at midnight; None if it is beyond an int8."""
    _check_size(is_valid=offset[2] >= 0)
    bound = base - offset[2] if sub else base + offset[2]
    return bound if bound < 2**63 else None


def _times(value: int, base: int, offset: Interval, sub: bool, less: bool) -> bool:
    bound = _time_bound(base, offset, sub)
    return less if bound is None else _compared(value, bound, less)


def _times_with_zone(value: TimeTz, base: TimeTz, offset: Interval, sub: bool, less: bool) -> bool:
    bound = _time_bound(base[0], offset, sub)
    if bound is None:
        return less
    return _compared(timetz.key(value), timetz.key((bound, base[1])), less)


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, InRange] = {
    **{
        f"in_range_{type_name}_{offset}": _integers(type_name)
        for type_name in ("int2", "int4", "int8")
        for offset in ("int2", "int4", "int8")
    },
    **dict.fromkeys(
        ("in_range_float4_float8", "in_range_float8_float8"),
        _numbers(operator.add, operator.sub),
    ),
    "in_range_numeric_numeric": _numbers(CONTEXT.add, CONTEXT.subtract),
    **dict.fromkeys(("in_range_timestamp_interval", "in_range_timestamptz_interval"), _timestamps),
    "in_range_date_interval": _dates,
    "in_range_interval_interval": _intervals,
    "in_range_time_interval": _times,
    "in_range_timetz_interval": _times_with_zone,
}
