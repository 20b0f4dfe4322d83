"""Find the number of decimal places of quotients and of functions' results (select_div_scale in
numeric.c).
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal

CONTEXT = Context(prec=20000, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_HALF_UP)
MAX_DISPLAY_SCALE = 1000  # NUMERIC_MAX_DISPLAY_SCALE
SIGNIFICANT_DIGITS = 16  # NUMERIC_MIN_SIG_DIGITS


def scale(value: Decimal) -> int:
    """Return the display scale, which is 2 for 1.10."""
    exponent = value.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def display_scale(places: int, *scales: int) -> int:
    """Return the largest of a number of decimal places and some scales, within limits."""
    return min(max(places, *scales, 0), MAX_DISPLAY_SCALE)


def division_scale(a: Decimal, b: Decimal) -> int:
    """Return the number of decimal places of a / b: enough for 16 significant digits, and for the
    scales of both operands.
    """
    (weight1, first1), (weight2, first2) = weight_of(a), weight_of(b)
    quotient_weight = weight1 - weight2 - (first1 <= first2)
    places = max(SIGNIFICANT_DIGITS - quotient_weight * 4, scale(a), scale(b), 0)
    return min(places, MAX_DISPLAY_SCALE)


def weight_of(value: Decimal) -> tuple[int, int]:
    """Return the exponent of the first digit in base 10000, and that digit."""
    value = abs(value)
    if not value:
        return 0, 0
    weight = value.adjusted() // 4
    return weight, int(value.scaleb(-4 * weight, CONTEXT).to_integral_value(ROUND_FLOOR))
