"""float4 and float8: PostgreSQL's float.c, and the shortest digits of its Ryu."""

from __future__ import annotations

import math
import re
import struct
from decimal import Context, Decimal

from replctl.errors import InvalidTextRepresentation, NumericValueOutOfRange
from replctl.types.text_form import BLANKS, text_form

# The syntax of strtod(), including hexadecimal numbers and a NaN with a payload.
_NUMBER = re.compile(
    r"[+-]?(?:"
    r"(?P<hex>0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?)"
    r"|(?P<decimal>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)"
    r"|(?P<infinity>infinity|inf)"
    r"|nan(?:\([0-9a-z_]*\))?)",
    re.IGNORECASE | re.ASCII,
)
_NONZERO_DIGIT = re.compile(r"[1-9a-f]", re.IGNORECASE)
_FLOAT4 = struct.Struct("<f")
_FLOAT8 = struct.Struct("<d")
_FLOAT8_BITS = struct.Struct("<Q")
_SMALLEST_NORMAL_FLOAT4 = 2.0**-126
_FLOAT4_BITS = struct.Struct("<I")
_EXACT = Context(prec=800)  # a double has at most 767 significant digits


def float8in(text: str) -> float:
    """Parse a float8: ` 1e3 `, `0x1p-2`, `-inf` -> 1000.0, 0.25, -inf.

    Raises:
        InvalidTextRepresentation: `text` is not a number.
        NumericValueOutOfRange: the number overflows, or underflows to zero.
    """
    value, end = float8_prefix(text, "double precision", text)
    if text[end:].strip(BLANKS):
        raise InvalidTextRepresentation(f'invalid input syntax for type double precision: "{text}"')
    return value


def float8_prefix(text: str, sql_name: str, whole: str) -> tuple[float, int]:
    """Return the number at the beginning of `text`, and its end; geometric types also use this.

    Args:
        sql_name, whole: the type and the whole literal, for a syntax error.

    Raises:
        InvalidTextRepresentation: `text` does not begin with a number.
        NumericValueOutOfRange: the number overflows, or underflows to zero.
    """
    match = _number(text, sql_name, whole)
    number = match[0]
    value = _strtod(match)
    if (math.isinf(value) and not match["infinity"]) or (value == 0 and _is_nonzero(match)):
        raise NumericValueOutOfRange(f'"{number}" is out of range for type double precision')
    return value, match.end()


def float4in(text: str) -> float:
    """Return the nearest single precision number as a double: `0.1` -> 0.10000000149011612.

    Raises:
        InvalidTextRepresentation: `text` is not a number.
        NumericValueOutOfRange: the number overflows, or underflows to zero.
    """
    match = _number(text, "real", text)
    number = match[0]
    double = _strtod(match)
    value = round_to_float4(_unlike_tie(double, number) if match["decimal"] else double)
    if (math.isinf(value) and not match["infinity"]) or (value == 0 and _is_nonzero(match)):
        raise NumericValueOutOfRange(f'"{number}" is out of range for type real')
    if text[match.end() :].strip(BLANKS):
        raise InvalidTextRepresentation(f'invalid input syntax for type real: "{text}"')
    return value


def round_to_float4(value: float) -> float:
    """Return the nearest single precision number as a double; an infinity if it is too large."""
    try:
        return float(_FLOAT4.unpack(_FLOAT4.pack(value))[0])
    except OverflowError:  # struct refuses what C rounds to infinity
        return math.copysign(math.inf, value)


def float8out(value: float) -> str:
    """Print a float8: 1e15, 0.1, -0.0 -> `1e+15`, `0.1`, `-0`."""
    if 1e-4 <= value < 1e15 or -1e15 < value <= -1e-4:
        text = repr(value)
        return text[:-2] if text.endswith(".0") else text
    if not math.isfinite(value):
        return _not_finite(value)
    digits, exponent = _decompose(repr(value))
    if abs(value) >= 2.0**53 and not _is_within_gap(digits, exponent, value, math.ulp(value)):
        digits, exponent = _shortest(value, math.ulp(value), 17)
    return _layout(value, digits, exponent, 15)


def float4out(value: float) -> str:
    """Print a float4: 0.10000000149011612 -> `0.1`.  `value` has single precision."""
    if not math.isfinite(value):
        return _not_finite(value)
    if value == 0:
        return _layout(value, "0", 0, 6)
    # In this range, six digits survive the conversion to float4 and back, and ties have more
    # digits.
    if 1e-37 < abs(value) < 2.0**24 and not _is_power_of_two(value):
        for precision in range(5, 9):
            text = f"{value:.{precision}e}"
            if round_to_float4(float(text)) == value:
                return _layout(value, *_decompose(text), 6)
    return _layout(value, *_shortest(value, _float4_ulp(value), 9), 6)


def _number(text: str, sql_name: str, whole: str) -> re.Match[str]:
    match = _NUMBER.match(text, len(text) - len(text.lstrip(BLANKS)))
    if match is None:
        raise InvalidTextRepresentation(f'invalid input syntax for type {sql_name}: "{whole}"')
    return match


def _strtod(match: re.Match[str]) -> float:
    if match["hex"]:
        try:
            return float.fromhex(match[0])
        except OverflowError:  # the caller refuses an infinity like C's strtod
            return math.inf
    if match["decimal"] or match["infinity"]:
        return float(match[0])
    return math.nan


def _is_nonzero(match: re.Match[str]) -> bool:
    mantissa = re.split("p" if match["hex"] else "[eE]", match["hex"] or match["decimal"])[0]
    return _NONZERO_DIGIT.search(mantissa.lower().removeprefix("0x")) is not None


def _unlike_tie(double: float, number: str) -> float:
    """Return `double`.  Move it by one step if it is halfway between two single precision numbers,
    and `number` is not.
    """
    if abs(double) < _SMALLEST_NORMAL_FLOAT4:
        is_tie = abs(double) * 2.0**150 % 2 == 1  # singles are multiples of 2**-149 in this range
    else:
        is_tie = _FLOAT8_BITS.unpack(_FLOAT8.pack(double))[0] & 0x1FFFFFFF == 0x10000000
    if not is_tie:
        return double
    exact, tie = Decimal(number), Decimal(double)
    if exact == tie:
        return double
    return math.nextafter(double, math.inf if exact > tie else -math.inf)


def _float4_ulp(value: float) -> float:
    bits = _FLOAT4_BITS.unpack(_FLOAT4.pack(abs(value)))[0]
    return math.ldexp(1.0, max(bits >> 23, 1) - 150)


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _decompose(text: str) -> tuple[str, int]:
    """Return digits without sign and point, and the exponent: `-1.25e-07` -> ("125", -7)."""
    mantissa, _, power = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = int(power or 0) + len(whole) - 1 - (len(whole + fraction) - len(digits))
    return digits.rstrip("0") or "0", exponent if digits else 0


def _shortest(value: float, ulp: float, most: int) -> tuple[str, int]:
    """Return the shortest digits that identify `value`, and the exponent of the first digit."""
    for precision in range(1, most):
        nearest = f"{abs(value):.{precision - 1}e}"
        # At a power of two, the gap above is wider: it may contain the second nearest candidate.
        for candidate in (nearest, str(Decimal(nearest).next_plus(Context(prec=precision)))):
            digits, exponent = _decompose(candidate.lower())
            if _is_within_gap(digits, exponent, value, ulp):
                return digits, exponent
    return _decompose(f"{value:.{most - 1}e}")


def _is_within_gap(digits: str, exponent: int, value: float, ulp: float) -> bool:
    """Return whether a number is nearer to `value` than to the neighbours of `value`; False for a
    tie: PostgreSQL's Ryu does not assume that readers round ties to even.
    """
    number = Decimal(f"{digits}e{exponent - len(digits) + 1}")
    difference = _EXACT.subtract(number, Decimal(abs(value)))
    # The gap below a power of two is half as wide, unless both sides are subnormal.
    is_narrow = _is_power_of_two(value) and difference < 0 and ulp > 2.0**-149
    return _EXACT.multiply(difference.copy_abs(), Decimal(4 if is_narrow else 2)) < Decimal(ulp)


def _is_power_of_two(value: float) -> bool:
    return abs(math.frexp(value)[0]) == 0.5


def _layout(value: float, digits: str, exponent: int, most_whole_digits: int) -> str:
    sign = "-" if math.copysign(1, value) < 0 else ""
    if -4 <= exponent < most_whole_digits:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        fraction = digits[exponent + 1 :]
        return f"{sign}{whole}.{fraction}" if fraction else sign + whole
    point = "." if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{point}{digits[1:]}e{exponent:+03d}"


FORMS = {"float4": text_form(float4in, float4out), "float8": text_form(float8in, float8out)}
