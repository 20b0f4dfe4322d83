"""Set-returning functions that compute only with their arguments (numeric.c, timestamp.c,
jsonfuncs.c and jsonpath_exec.c).

Each function takes and returns texts, except that timestamps are microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from replctl.adt import interval_arithmetic, jsonb
from replctl.adt.datetime_arithmetic import plus_in_zone, plus_interval
from replctl.adt.numeric_scale import CONTEXT
from replctl.errors import InvalidParameterValue
from replctl.types.interval import interval_in
from replctl.types.numeric import numeric_in, numeric_out

Rows = list[list[str | None]]


def _series(start: str, stop: str, step: str = "1") -> Rows:
    """Return the values of generate_series(numeric, numeric, numeric)."""
    bounds = [numeric_in(text) for text in (start, stop, step)]
    for what, bound in zip(("start", "stop", "step size"), bounds, strict=True):
        word = "value " if what != "step size" else ""
        if bound.is_nan():
            raise InvalidParameterValue(f"{what} {word}cannot be NaN")
        if bound.is_infinite():
            raise InvalidParameterValue(f"{what} {word}cannot be infinity")
    value, last, increment = bounds
    if not increment:
        raise InvalidParameterValue("step size cannot equal zero")
    rows: Rows = []
    while value <= last if increment > 0 else value >= last:
        rows.append([numeric_out(value)])
        value = _sum(value, increment)
    return rows


def _sum(left: Decimal, right: Decimal) -> Decimal:
    return CONTEXT.add(left, right)


def _times(start: int, stop: int, step: str, zone: str | None = None) -> list[list[int]]:
    """Return the values of generate_series() for timestamps.

    Args:
        zone: the time zone of days and months; None for UTC, and for timestamps without a zone.
    """
    increment = interval_in(step)
    direction = interval_arithmetic.key(increment)
    if direction == 0:
        raise InvalidParameterValue("step size cannot equal zero")
    if interval_arithmetic.is_infinite(increment):
        raise InvalidParameterValue("step size cannot be infinite")
    rows, value = [], start
    while value <= stop if direction > 0 else value >= stop:
        rows.append([value])
        if zone is None:
            value = plus_interval(value, increment)
        else:
            value = plus_in_zone(value, increment, zone)
    return rows


def _path_query(value: str, path: str, variables: str, silent: bool) -> Rows:
    """Return the items that jsonb_path_query() finds."""
    from replctl.adt.jsonpath_exec import found_items  # few queries need it

    return [[jsonb.dump(item)] for item in found_items(value, path, variables, silent)]


def _members(function: str, text: str) -> dict[str, object]:
    value = jsonb.load(text)
    if not isinstance(value, dict):
        raise InvalidParameterValue(f"cannot call {function} on a non-object")
    return value


def _each(text: str) -> Rows:
    return [[key, jsonb.dump(value)] for key, value in _members("jsonb_each", text).items()]


def _each_text(text: str) -> Rows:
    members = _members("jsonb_each_text", text)
    return [[key, jsonb.as_text(value)] for key, value in members.items()]


def _keys(text: str) -> Rows:
    value = jsonb.load(text)
    if not isinstance(value, dict):
        what = "an array" if isinstance(value, list) else "a scalar"
        raise InvalidParameterValue(f"cannot call jsonb_object_keys on {what}")
    return [[key] for key in value]


def _elements(text: str) -> list[object]:
    value = jsonb.load(text)
    if not isinstance(value, list):
        what = "an object" if isinstance(value, dict) else "a scalar"
        raise InvalidParameterValue(f"cannot extract elements from {what}")
    return value


#: The functions by their names in pg_proc.prosrc.
VALUE_SETS: dict[str, Callable[..., Sequence[Sequence[int | str | None]]]] = {
    "generate_series_numeric": _series,
    "generate_series_step_numeric": _series,
    "generate_series_timestamp": _times,
    "generate_series_timestamptz": _times,
    "generate_series_timestamptz_at_zone": _times,
    "jsonb_path_query": _path_query,
    "jsonb_each": _each,
    "jsonb_each_text": _each_text,
    "jsonb_object_keys": _keys,
    "jsonb_array_elements": lambda text: [[jsonb.dump(item)] for item in _elements(text)],
    "jsonb_array_elements_text": lambda text: [[jsonb.as_text(item)] for item in _elements(text)],
}
