"""Trigonometry in degrees (PostgreSQL's float.c).  Each quadrant is scaled by the library's own
value at 30, 45 and 60 degrees, so that exact results stay exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from replctl.errors import NumericValueOutOfRange

_RADIANS_PER_DEGREE = 0.0174532925199432957692
_SIN_30 = math.sin(30 * _RADIANS_PER_DEGREE)
_ONE_MINUS_COS_60 = 1 - math.cos(60 * _RADIANS_PER_DEGREE)
_ASIN_HALF, _ACOS_HALF, _ATAN_1 = math.asin(0.5), math.acos(0.5), math.atan(1.0)


def _sin_to_30(x: float) -> float:
    return math.sin(x * _RADIANS_PER_DEGREE) / _SIN_30 / 2


def _cos_to_60(x: float) -> float:
    return 1 - (1 - math.cos(x * _RADIANS_PER_DEGREE)) / _ONE_MINUS_COS_60 / 2


def _sin_to_90(x: float) -> float:
    return _sin_to_30(x) if x <= 30 else _cos_to_60(90 - x)


def _cos_to_90(x: float) -> float:
    return _cos_to_60(x) if x <= 60 else _sin_to_30(90 - x)


_TAN_45 = _sin_to_90(45) / _cos_to_90(45)
_COT_45 = _cos_to_90(45) / _sin_to_90(45)


def _first_quadrant(x: float) -> tuple[float, float, float]:
    """Return the angle in the first quadrant, and the signs of sine and cosine. 200.0 -> (20.0,
    -1.0, -1.0)
    """
    if math.isinf(x):
        raise NumericValueOutOfRange("input is out of range")
    x = math.fmod(x, 360)
    sine_sign = cosine_sign = 1.0
    if x < 0:
        x, sine_sign = -x, -sine_sign
    if x > 180:
        x, sine_sign = 360 - x, -sine_sign
    if x > 90:
        x, cosine_sign = 180 - x, -cosine_sign
    return x, sine_sign, cosine_sign


def _sind(x: float) -> float:
    x, sign, _ = _first_quadrant(x)
    return sign * _sin_to_90(x)


def _cosd(x: float) -> float:
    x, _, sign = _first_quadrant(x)
    return sign * _cos_to_90(x)


def _tand(x: float) -> float:
    x, sine_sign, cosine_sign = _first_quadrant(x)
    tangent = _quotient(_sin_to_90(x), _cos_to_90(x), _TAN_45)
    return sine_sign * cosine_sign * tangent + 0.0  # -0 becomes 0


def _cotd(x: float) -> float:
    x, sine_sign, cosine_sign = _first_quadrant(x)
    cotangent = _quotient(_cos_to_90(x), _sin_to_90(x), _COT_45)
    return sine_sign * cosine_sign * cotangent + 0.0


def _quotient(a: float, b: float, unit: float) -> float:
    return a / b / unit if b else math.copysign(math.inf, b)


def _asin_of_positive(x: float) -> float:
    if x <= 0.5:
        return math.asin(x) / _ASIN_HALF * 30
    return 90 - math.acos(x) / _ACOS_HALF * 60


def _acos_of_positive(x: float) -> float:
    if x <= 0.5:
        return 90 - math.asin(x) / _ASIN_HALF * 30
    return math.acos(x) / _ACOS_HALF * 60


def _asind(x: float) -> float:
    _check_unit(x)
    return _asin_of_positive(x) if x >= 0 else -_asin_of_positive(-x)


def _acosd(x: float) -> float:
    _check_unit(x)
    return _acos_of_positive(x) if x >= 0 else 90 + _asin_of_positive(-x)


def _check_unit(x: float) -> None:
    if not -1 <= x <= 1:
        raise NumericValueOutOfRange("input is out of range")


def _atan2d(y: float, x: float) -> float:
    return math.atan2(y, x) / _ATAN_1 * 45


def _of_number(function: Callable[[float], float]) -> Callable[[float], float]:
    """Return `function`, extended to map NaN to NaN."""
    return lambda x: x if math.isnan(x) else function(x)


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "dsind": _of_number(_sind),
    "dcosd": _of_number(_cosd),
    "dtand": _of_number(_tand),
    "dcotd": _of_number(_cotd),
    "dasind": _of_number(_asind),
    "dacosd": _of_number(_acosd),
    "datand": _of_number(lambda x: math.atan(x) / _ATAN_1 * 45),
    "datan2d": _atan2d,
}
