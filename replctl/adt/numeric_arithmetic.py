"""numeric: values are Decimals with their display scale (PostgreSQL's numeric.c)."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_UP,
    Context,
    Decimal,
)
from typing import Any

from replctl.adt import float_
from replctl.adt.numeric_scale import (
    CONTEXT,
    MAX_DISPLAY_SCALE,
    SIGNIFICANT_DIGITS,
    display_scale,
    division_scale,
    scale,
    weight_of,
)
from replctl.adt.range_check import integer
from replctl.errors import (
    DivisionByZero,
    FeatureNotSupported,
    InvalidArgumentForLogarithm,
    InvalidArgumentForPowerFunction,
    InvalidArgumentForWidthBucketFunction,
    NumericValueOutOfRange,
)
from replctl.types.numeric import MAX_SCALE, MAX_WHOLE_DIGITS

_NAN = Decimal("NaN")
_MAX_RESULT_SCALE = 2000  # NUMERIC_MAX_RESULT_SCALE


def key(value: Decimal) -> tuple[bool, Decimal]:
    """Return a key: NaN equals itself, and is greater than all other values."""
    return (True, Decimal(0)) if value.is_nan() else (False, value)


def result(value: Decimal) -> Decimal:
    """Convert a computed value to a numeric: remove a negative zero and a positive exponent, and
    refuse a value out of range.
    """
    if not value.is_finite():
        return value
    if value and value.adjusted() >= MAX_WHOLE_DIGITS:
        raise NumericValueOutOfRange("value overflows numeric format")
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    if exponent > 0:
        value = value.quantize(Decimal(1), context=_wide(value))
    if exponent < -MAX_SCALE:
        value = rounded(value, MAX_SCALE)
    return value if value else value.copy_abs()


def rounded(value: Decimal, places: int, rounding: str = ROUND_HALF_UP) -> Decimal:
    """Round to a number of decimal places, by default half away from zero."""
    if not value.is_finite():
        return value
    return value.quantize(Decimal(1).scaleb(-places), rounding, _wide(value, places))


def _wide(value: Decimal, places: int = 0) -> Context:
    digits = max(value.adjusted(), 0) + places + len(value.as_tuple().digits) + 5
    return CONTEXT if digits < CONTEXT.prec else Context(digits, Emax=MAX_EMAX, Emin=MIN_EMIN)


def _exactly(
    function: Callable[[Decimal, Decimal], Decimal],
) -> Callable[[Decimal, Decimal], Decimal]:
    """Return addition or subtraction; infinities that cancel out give NaN."""

    def calculate(a: Decimal, b: Decimal) -> Decimal:
        if a.is_nan() or b.is_nan():
            return _NAN
        if a.is_infinite() and b.is_infinite():
            try:
                return function(a, b)
            except ArithmeticError:  # Decimal raises an error for inf - inf
                return _NAN
        return result(function(a, b))

    return calculate


def multiply(a: Decimal, b: Decimal) -> Decimal:
    """Multiply exactly; infinity times zero is NaN."""
    if a.is_nan() or b.is_nan():
        return _NAN
    if a.is_infinite() or b.is_infinite():
        return CONTEXT.multiply(a, b) if a and b else _NAN
    return result(CONTEXT.multiply(a, b))


def _special(a: Decimal, b: Decimal) -> Decimal | None:
    """Return NaN if an operand is NaN or both are infinite; else None."""
    if a.is_nan() or b.is_nan() or (a.is_infinite() and b.is_infinite()):
        return _NAN
    return None


def divide(a: Decimal, b: Decimal) -> Decimal:
    """Divide with at least 16 significant digits, and at least the scale of both operands
    (select_div_scale).
    """
    special = _special_quotient(a, b)
    return result(_quotient(a, b, division_scale(a, b))) if special is None else special


def _special_quotient(a: Decimal, b: Decimal) -> Decimal | None:
    """Return a / b if an operand is NaN or infinite; else None.

    Raises:
        DivisionByZero: `b` is 0 (22012).
    """
    special = _special(a, b)
    if special is not None:
        return special
    if not b:
        raise DivisionByZero("division by zero")
    if a.is_infinite():
        return a if b > 0 else _negative(a)
    return Decimal(0) if b.is_infinite() else None


def _quotient(a: Decimal, b: Decimal, places: int) -> Decimal:
    """Return a / b with `places`, rounded half away from zero; use integers to round only once."""
    numerator, denominator = _ratio(a, b, places)
    quotient, rest = divmod(numerator, denominator)
    if rest * 2 >= denominator:
        quotient += 1
    sign = 1 if (a < 0) != (b < 0) and quotient else 0
    return Decimal((sign, Decimal(quotient).as_tuple().digits, -places))


def _ratio(a: Decimal, b: Decimal, places: int) -> tuple[int, int]:
    """Return |a| / |b| * 10**places as a fraction."""
    (_, digits_a, exponent_a), (_, digits_b, exponent_b) = a.as_tuple(), b.as_tuple()
    assert isinstance(exponent_a, int)
    assert isinstance(exponent_b, int)
    # Python refuses to convert texts of more than 4300 digits
    numerator, denominator = (int(Decimal((0, digits, 0))) for digits in (digits_a, digits_b))
    shift = exponent_a - exponent_b + places
    return (
        (numerator * 10**shift, denominator)
        if shift >= 0
        else (numerator, denominator * 10**-shift)
    )


def remainder(a: Decimal, b: Decimal) -> Decimal:
    """Return the remainder, with the sign of the dividend."""
    special = _special(a, b)
    if special is not None:
        return special
    if not b:
        raise DivisionByZero("division by zero")
    if a.is_infinite():
        return _NAN
    if b.is_infinite():
        return a
    places = max(scale(a), scale(b))
    return result(rounded(CONTEXT.remainder(a, b), places))


def _div_trunc(a: Decimal, b: Decimal) -> Decimal:
    special = _special_quotient(a, b)
    if special is not None:
        return special
    numerator, denominator = _ratio(a, b, 0)
    quotient = Decimal(numerator // denominator)
    return result(_negative(quotient) if (a < 0) != (b < 0) else quotient)


def shortened(rounding: str) -> Callable[..., Decimal]:
    """Return round() or trunc() to a number of decimal places, which may be negative."""

    def apply(value: Decimal, places: int = 0) -> Decimal:
        places = max(min(places, MAX_SCALE), -MAX_SCALE)
        if not value.is_finite():
            return value
        if places < 0 and value.adjusted() < -places - 1:
            return Decimal(0)
        short = rounded(value, places, rounding)
        return result(rounded(short, 0) if places < 0 else short)

    return apply


def _sign(value: Decimal) -> Decimal:
    return value if value.is_nan() else Decimal((value > 0) - (value < 0))


def to_integer(type_name: str) -> Callable[[Decimal], int]:
    """Return a cast to an integer type that rounds half away from zero."""
    names = {"int2": "smallint", "int4": "integer", "int8": "bigint"}

    def convert(value: Decimal) -> int:
        if not value.is_finite():
            shown = "NaN" if value.is_nan() else "infinity"
            raise FeatureNotSupported(f"cannot convert {shown} to {names[type_name]}")
        return integer(int(rounded(value, 0)), type_name)

    return convert


def from_float(digits: int) -> Callable[[float], Decimal]:
    """Return a cast from a float to a decimal with at most `digits` significant digits."""
    return lambda value: result(Decimal(f"{value:.{digits}g}"))


def to_float8(value: Decimal) -> float:
    converted = float(value)
    if math.isinf(converted) and not value.is_infinite():
        raise NumericValueOutOfRange(f'"{value:f}" is out of range for type double precision')
    if converted == 0 and value:
        raise NumericValueOutOfRange(f'"{value:f}" is out of range for type double precision')
    return converted


def to_float4(value: Decimal) -> float:
    converted = float_.to_float4(float(value))
    if (math.isinf(converted) and not value.is_infinite()) or (converted == 0 and value):
        raise NumericValueOutOfRange(f'"{value:f}" is out of range for type real')
    return converted


def _negative(value: Decimal) -> Decimal:
    return value.copy_negate() if value and not value.is_nan() else value


def _trim_scale(value: Decimal) -> Decimal:
    return rounded(value, _min_scale(value)) if value.is_finite() else value


def _min_scale(value: Decimal) -> int:
    if not value:
        return 0
    exponent = value.normalize(_wide(value)).as_tuple().exponent
    assert isinstance(exponent, int)
    return max(-exponent, 0)


def _only_finite(function: Callable[[Decimal], int]) -> Callable[[Decimal], int | None]:
    return lambda value: function(value) if value.is_finite() else None


def _gcd(a: Decimal, b: Decimal) -> Decimal:
    if not (a.is_finite() and b.is_finite()):
        return _NAN
    places = max(scale(a), scale(b))
    whole = math.gcd(*(int(value.scaleb(places, CONTEXT)) for value in (a, b)))
    return result(rounded(Decimal(whole).scaleb(-places, CONTEXT), places))


def _lcm(a: Decimal, b: Decimal) -> Decimal:
    if not (a.is_finite() and b.is_finite()):
        return _NAN
    places = max(scale(a), scale(b))
    whole = math.lcm(*(int(value.scaleb(places, CONTEXT)) for value in (a, b)))
    return result(rounded(Decimal(whole).scaleb(-places, CONTEXT), places))


def _factorial(number: int) -> Decimal:
    if number < 0:
        raise NumericValueOutOfRange("factorial of a negative number is undefined")
    if number > 32177:
        raise NumericValueOutOfRange("value overflows numeric format")
    return Decimal(math.factorial(number))


def _sqrt(value: Decimal) -> Decimal:
    if value.is_nan() or value == Decimal("Infinity"):
        return value
    if value < 0:
        raise InvalidArgumentForPowerFunction("cannot take square root of a negative number")
    weight, _ = weight_of(value)
    places = display_scale(SIGNIFICANT_DIGITS - ((weight + 1) * 2 - 1), scale(value))
    digits = max(value.adjusted() // 2, 0) + places + 30
    return rounded(Context(digits, Emax=MAX_EMAX, Emin=MIN_EMIN).sqrt(value), places)


def _exp(value: Decimal) -> Decimal:
    if value.is_nan():
        return value
    if value.is_infinite():
        return value if value > 0 else Decimal(0)
    magnitude = max(min(float(value) * 0.434294481903252, 2000), -2000)
    places = display_scale(SIGNIFICANT_DIGITS - int(magnitude), scale(value))
    if abs(value) >= 6000:
        if value > 0:
            raise NumericValueOutOfRange("value overflows numeric format")
        return rounded(Decimal(0), places)
    context = Context(places + max(int(magnitude), 0) + 30, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return result(rounded(context.exp(value), places))


def _ln_weight(value: Decimal) -> int:
    """Return the estimated number of digits of ln(value) before its point (estimate_ln_dweight)."""
    if value <= 0:
        return 0
    if Decimal("0.9") <= value <= Decimal("1.1"):
        difference = abs(value - 1)
        if not difference:
            return 0
        weight, first = weight_of(difference)
        return weight * 4 + int(math.log10(first))
    weight, first = weight_of(value)
    digits, weight4 = first, weight * 4
    second = int(value.scaleb(-4 * (weight - 1), CONTEXT).to_integral_value(ROUND_FLOOR)) % 10000
    if second or value != first * Decimal(10000) ** weight:
        digits, weight4 = first * 10000 + second, weight4 - 4
    logarithm = math.log(digits) + weight4 * 2.302585092994046
    return int(math.log10(abs(logarithm)))


def _check_logarithm(value: Decimal) -> None:
    if value == 0:
        raise InvalidArgumentForLogarithm("cannot take logarithm of zero")
    if value < 0:
        raise InvalidArgumentForLogarithm("cannot take logarithm of a negative number")


def _ln(value: Decimal) -> Decimal:
    if value.is_nan():
        return value
    _check_logarithm(value)
    if value.is_infinite():
        return value
    places = display_scale(SIGNIFICANT_DIGITS - _ln_weight(value), scale(value))
    return result(rounded(_precise_ln(value, places), places))


def _precise_ln(value: Decimal, places: int) -> Decimal:
    digits = places + 30 + abs(value.adjusted()).bit_length()
    return Context(max(digits, 40), Emax=MAX_EMAX, Emin=MIN_EMIN).ln(value)


def _log(base: Decimal, value: Decimal) -> Decimal:
    if base.is_nan() or value.is_nan():
        return _NAN
    for item in (base, value):
        _check_logarithm(item)
    if base.is_infinite():
        return _NAN if value.is_infinite() else Decimal(0)
    if value.is_infinite():
        return value
    places = display_scale(
        SIGNIFICANT_DIGITS - (_ln_weight(value) - _ln_weight(base)), scale(base), scale(value)
    )
    divisor = _precise_ln(base, places + 20)
    if not divisor:
        raise DivisionByZero("division by zero")
    context = Context(places + 60, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return result(rounded(context.divide(_precise_ln(value, places + 20), divisor), places))


def _power(base: Decimal, exponent: Decimal) -> Decimal:
    """Implement numeric_power: first POSIX's special values, then one method for each kind of
    exponent.
    """
    if base.is_nan():
        return Decimal(1) if exponent == 0 and not exponent.is_nan() else _NAN
    if exponent.is_nan():
        return Decimal(1) if base == 1 else _NAN
    if not base and exponent < 0:
        raise InvalidArgumentForPowerFunction("zero raised to a negative power is undefined")
    is_whole = exponent.is_infinite() or exponent == exponent.to_integral_value()
    if base < 0 and not is_whole:
        raise InvalidArgumentForPowerFunction(
            "a negative number raised to a non-integer power yields a complex result"
        )
    if base.is_infinite() or exponent.is_infinite():
        return _infinite_power(base, exponent)
    if is_whole and abs(exponent) < 2**31:
        return _whole_power(base, int(exponent), scale(exponent))
    if not base:
        return rounded(Decimal(0), SIGNIFICANT_DIGITS)
    weight = _ln_weight(abs(base))
    estimate = _ln_of_power(abs(base), exponent, max(8 - weight, 0))
    magnitude = float(estimate) * 0.434294481903252
    if abs(float(estimate)) > _MAX_RESULT_SCALE * 3.01:
        if magnitude > 0:
            raise NumericValueOutOfRange("value overflows numeric format")
        return rounded(Decimal(0), MAX_DISPLAY_SCALE)
    places = display_scale(SIGNIFICANT_DIGITS - int(magnitude), scale(base), scale(exponent))
    context = Context(places + max(int(magnitude), 0) + 40, Emax=MAX_EMAX, Emin=MIN_EMIN)
    precision = max(max(places + int(magnitude), 0) - weight + 8, 0)
    value = context.exp(_ln_of_power(abs(base), exponent, precision))
    is_odd = base < 0 and int(exponent) % 2
    return result(rounded(_negative(value) if is_odd else value, places))


def _ln_of_power(base: Decimal, exponent: Decimal, places: int) -> Decimal:
    """Return exponent * ln(base); round both the logarithm and the product."""
    return rounded(CONTEXT.multiply(exponent, rounded(_precise_ln(base, places), places)), places)


def _infinite_power(base: Decimal, exponent: Decimal) -> Decimal:
    """Return a power if the base or the exponent is infinite, by POSIX's rules."""
    if exponent.is_infinite():
        size = base.copy_abs()
        grows = (size > 1) == (exponent > 0)
        return result(Decimal(1) if size == 1 else Decimal("Infinity") if grows else Decimal(0))
    if exponent <= 0:
        return result(Decimal(0) if exponent else Decimal(1))
    is_odd = base < 0 and int(exponent) % 2
    return result(Decimal("-Infinity") if is_odd else Decimal("Infinity"))


def _whole_power(base: Decimal, exponent: int, exponent_scale: int) -> Decimal:
    """Implement power_var_int, which chooses the scale for 16 significant digits."""
    if not base and exponent == 0:
        return rounded(Decimal(1), SIGNIFICANT_DIGITS)
    weight, _ = weight_of(base)
    estimate = (
        math.log10(abs(float(base.scaleb(-4 * weight, CONTEXT)))) + weight * 4 if base else 0.0
    )
    magnitude = exponent * estimate
    if magnitude > (32767 + 1) * 4:
        raise NumericValueOutOfRange("value overflows numeric format")
    if magnitude + 1 < -MAX_DISPLAY_SCALE:
        return rounded(Decimal(0), MAX_DISPLAY_SCALE)
    places = display_scale(SIGNIFICANT_DIGITS - int(magnitude), scale(base), exponent_scale)
    if exponent in (0, 1, -1, 2):
        simple = {0: lambda: Decimal(1), 1: lambda: base, 2: lambda: CONTEXT.multiply(base, base)}
        if exponent == -1:
            return result(_quotient(Decimal(1), base, places))
        return result(rounded(simple[exponent](), places))
    if not base:
        return rounded(Decimal(0), places)
    context = Context(places + max(int(magnitude), 0) + 40, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return result(rounded(context.power(base, exponent), places))


def _width_bucket(operand: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    error = InvalidArgumentForWidthBucketFunction
    if count <= 0:
        raise error("count must be greater than zero")
    if operand.is_nan() or low.is_nan() or high.is_nan():
        raise error("operand, lower bound, and upper bound cannot be NaN")
    if low.is_infinite() or high.is_infinite():
        raise error("lower and upper bounds must be finite")
    if low == high:
        raise error("lower bound cannot equal upper bound")
    if low > high:
        operand, low, high = (_negative(item) for item in (operand, low, high))
    if operand < low:
        return 0
    if operand >= high:
        return integer(count + 1, "int4")
    numerator, denominator = _ratio(
        CONTEXT.multiply(CONTEXT.subtract(operand, low), Decimal(count)),
        CONTEXT.subtract(high, low),
        0,
    )
    return numerator // denominator + 1


def _ceil(value: Decimal) -> Decimal:
    return result(rounded(value, 0, ROUND_CEILING))


def _floor(value: Decimal) -> Decimal:
    return result(rounded(value, 0, ROUND_FLOOR))


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "numeric_add": _exactly(CONTEXT.add),
    "numeric_sub": _exactly(CONTEXT.subtract),
    "numeric_mul": multiply,
    "numeric_div": divide,
    "numeric_mod": remainder,
    "numeric_div_trunc": _div_trunc,
    "numeric_uminus": _negative,
    "numeric_uplus": lambda value: value,
    "numeric_abs": lambda value: value.copy_abs(),
    "numeric_sign": _sign,
    "numeric_ceil": _ceil,
    "numeric_floor": _floor,
    "numeric_round": shortened(ROUND_HALF_UP),
    "numeric_trunc": shortened(ROUND_DOWN),
    "round(numeric)": shortened(ROUND_HALF_UP),
    "trunc(numeric)": shortened(ROUND_DOWN),
    "numeric_larger": lambda a, b: a if key(a) > key(b) else b,
    "numeric_smaller": lambda a, b: a if key(a) < key(b) else b,
    "numeric_inc": lambda value: result(CONTEXT.add(value, Decimal(1))),
    "numeric_scale": _only_finite(scale),
    "numeric_min_scale": _only_finite(_min_scale),
    "numeric_trim_scale": _trim_scale,
    "numeric_gcd": _gcd,
    "numeric_lcm": _lcm,
    "numeric_fac": _factorial,
    "numeric_sqrt": _sqrt,
    "numeric_exp": _exp,
    "numeric_ln": _ln,
    "numeric_log": _log,
    "log(numeric)": lambda value: _log(Decimal(10), value),
    "log10(numeric)": lambda value: _log(Decimal(10), value),
    "numeric_power": _power,
    "width_bucket_numeric": _width_bucket,
    **dict.fromkeys(("int2_numeric", "int4_numeric", "int8_numeric"), Decimal),
    "float4_numeric": from_float(6),
    "float8_numeric": from_float(15),
    "numeric_int2": to_integer("int2"),
    "numeric_int4": to_integer("int4"),
    "numeric_int8": to_integer("int8"),
    "numeric_float4": to_float4,
    "numeric_float8": to_float8,
}


def total(values: list[Decimal]) -> Decimal | None:
    """Implement sum()."""
    if not values:
        return None
    add, answer = FUNCTIONS["numeric_add"], values[0]
    for value in values[1:]:
        answer = add(answer, value)
    return answer


def average(values: list[Decimal]) -> Decimal | None:
    """Implement avg()."""
    answer = total(values)
    return None if answer is None else divide(answer, Decimal(len(values)))
