"""numeric (PostgreSQL's numeric.c).

A value is a Decimal.  Its exponent is the negative display scale, so that 1.10 stays 1.10.  It is
never a negative zero, and its exponent is never positive.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal

from replctl.errors import InvalidTextRepresentation, NumericValueOutOfRange
from replctl.types.integer import decimal_int
from replctl.types.text_form import BLANKS, TextForm

MAX_WHOLE_DIGITS = 131072  # 4 * (NUMERIC_WEIGHT_MAX + 1) in numeric.c
MAX_SCALE = 16383  # NUMERIC_DSCALE_MAX
_MAX_EXPONENT = 2**31 // 2

_SPECIAL = {
    "nan": Decimal("NaN"),
    **{
        sign + word: Decimal(sign + "Infinity")
        for sign in ("", "+", "-")
        for word in ("inf", "infinity")
    },
}
_DIGITS = r"[0-9](?:_?[0-9])*"
_DECIMAL = re.compile(
    rf"[+-]?(?:(?:{_DIGITS})(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE]([+-]?{_DIGITS}))?", re.ASCII
)
_INTEGER = re.compile(r"([+-]?)(0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+)")
_UNLIMITED = Context(prec=1_000_000, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_HALF_UP)


def numeric_in(text: str, typmod: int = -1, now: datetime | None = None) -> Decimal:
    """Parse a number (numeric_in).

    ` 1_0.10 `, `1e3`  ->  Decimal("10.10"), Decimal(1000)
    `0x1F`, `-inf`  ->  Decimal(31), Decimal("-Infinity")

    Raises:
        InvalidTextRepresentation: `text` is not a number.
        NumericValueOutOfRange: the number has more digits than the modifier or a numeric allows.
    """
    value = _number(text)
    return _checked(value) if typmod < 0 else numeric(value, typmod, False)


def numeric_out(value: Decimal) -> str:
    """Print a number: Decimal("1E+3"), Decimal("1.10") -> `1000`, `1.10`."""
    return format(value, "f")


def base_10000(value: Decimal) -> tuple[list[int], int]:
    """Return the significant digits in base 10000, and the weight of the first digit.

    Decimal("12345.6") -> ([1, 2345, 6000], 1)

    Args:
        value: finite, not zero.
    """
    _sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    shown = "".join(map(str, digits)).lstrip("0") + "0" * (exponent % 4)
    shown = shown.rjust(-(-len(shown) // 4) * 4, "0")
    groups = [int(shown[i : i + 4]) for i in range(0, len(shown), 4)]
    weight = len(groups) - 1 + exponent // 4
    while groups[-1] == 0:
        groups.pop()
    return groups, weight


def numeric_uminus(value: Decimal) -> Decimal:
    """Negate a number exactly: Decimal("1.10") -> Decimal("-1.10"); 0 stays 0."""
    return value.copy_negate() if value else value


def numeric_typmod(precision: int, scale: int) -> int:
    """Return the modifier of precision and scale: (10, 2) -> 655366."""
    return ((precision << 16) | (scale & 0x7FF)) + 4


def precision_and_scale(typmod: int) -> tuple[int, int]:
    """Return precision and scale: 655366 -> (10, 2).  The scale has eleven bits and a sign."""
    packed = typmod - 4
    return packed >> 16, ((packed & 0x7FF) ^ 1024) - 1024


def numeric(value: Decimal, typmod: int, explicit: bool) -> Decimal:
    """Round half away from zero: (Decimal("1.555"), 655366) -> Decimal("1.56").

    Raises:
        NumericValueOutOfRange: too many digits remain before the point, or `value` is infinite.
    """
    if value.is_nan():
        return value
    precision, scale = precision_and_scale(typmod)
    if value.is_infinite():
        raise NumericValueOutOfRange(
            "numeric field overflow",
            detail=f"A field with precision {precision}, scale {scale} cannot hold an infinite "
            "value.",
        )
    whole_digits = precision - scale
    is_too_large = bool(value) and value.adjusted() >= whole_digits
    if not is_too_large:
        value = value.quantize(Decimal((0, (1,), -scale)), context=_UNLIMITED)
        is_too_large = bool(value) and value.adjusted() >= whole_digits
    if is_too_large:
        raise field_overflow(precision, scale)
    return _checked(value)


def field_overflow(precision: int, scale: int) -> NumericValueOutOfRange:
    """Return the error of a number with too many digits for numeric(precision, scale)."""
    bound = f"10^{precision - scale}" if precision != scale else "1"
    return NumericValueOutOfRange(
        "numeric field overflow",
        detail=f"A field with precision {precision}, scale {scale} must round to an absolute "
        f"value less than {bound}.",
    )


def _number(text: str) -> Decimal:
    """Return the written number, with any exponent."""
    stripped = text.strip(BLANKS)
    match = _DECIMAL.match(stripped)
    if match is not None:
        exponent = decimal_int((match[1] or "").replace("_", ""))
        if abs(exponent) > _MAX_EXPONENT:
            raise _overflow()
        if match.end() == len(stripped):
            return Decimal(stripped)
    special = _SPECIAL.get(stripped.lower())
    if special is not None:
        return special
    match = _INTEGER.fullmatch(stripped)
    if match is None:
        raise InvalidTextRepresentation(f'invalid input syntax for type numeric: "{text}"')
    sign, digits = match.groups()
    magnitude = Decimal(int(digits.replace("_", ""), 0))
    return numeric_uminus(magnitude) if sign == "-" else magnitude


def _checked(value: Decimal) -> Decimal:
    """Return `value` in the form that the module's docstring describes, if it fits."""
    exponent = value.as_tuple().exponent
    if isinstance(exponent, str):  # NaN and the infinities
        return value
    if exponent < -MAX_SCALE or (value and value.adjusted() >= MAX_WHOLE_DIGITS):
        raise _overflow()
    if exponent > 0:
        value = value.quantize(Decimal(1), context=_UNLIMITED) if value else Decimal(0)
    return value if value else value.copy_abs()


def _overflow() -> NumericValueOutOfRange:
    return NumericValueOutOfRange("value overflows numeric format")


FORMS = {"numeric": TextForm(numeric_in, numeric_out, numeric)}
