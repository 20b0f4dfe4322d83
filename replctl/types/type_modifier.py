"""Type modifiers: convert `numeric(10,2)` to a typmod and back (the typmodin and typmodout
functions of PostgreSQL, and its format_type.c).

A precision above 6 of a time or an interval is reduced to 6, without PostgreSQL's WARNING.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from replctl.errors import InternalError, InvalidParameterValue, SqlSyntaxError
from replctl.types.character import TYPMOD_HEADER
from replctl.types.integer import int4in
from replctl.types.interval_field import (
    FULL_PRECISION,
    FULL_RANGE,
    RANGE_NAMES,
    interval_typmod,
    range_and_precision,
)
from replctl.types.numeric import numeric_typmod, precision_and_scale

if TYPE_CHECKING:
    from replctl.types.builtin import Type

MAX_LENGTH = 10485760  # MaxAttrSize in htup_details.h
MAX_PRECISION = 6  # MAX_TIMESTAMP_PRECISION; the same for times and intervals
_MAX_ALLOCATION = 0x3FFFFFFF  # MaxAllocSize in memutils.h
_MAX_BITS = 2**31 - 8  # the maximum length of a bit string

#: Types with a length: their name in messages, the largest length, and an addend.
_LENGTHS = {
    "varchar": ("varchar", MAX_LENGTH, TYPMOD_HEADER),
    "bpchar": ("char", MAX_LENGTH, TYPMOD_HEADER),
    "bit": ("bit", 8 * MAX_LENGTH, 0),
    "varbit": ("varbit", 8 * MAX_LENGTH, 0),
}

#: Types with a precision of seconds: the words before and after it in messages.
_PRECISIONS = {
    "time": ("TIME", ""),
    "timetz": ("TIME", " WITH TIME ZONE"),
    "timestamp": ("TIMESTAMP", ""),
    "timestamptz": ("TIMESTAMP", " WITH TIME ZONE"),
}


def typmod_in(type_name: str, modifiers: tuple[str, ...]) -> int:
    """Return a typmod: (numeric, ("10", "2")) -> 655366; (interval, ("8", "3")) -> 524291.

    Args:
        type_name: the catalog name; an array has the modifiers of its elements.
        modifiers: the written modifiers; the first modifier of an interval is a mask of fields.
            Without modifiers, the typmod is -1.

    Raises:
        SqlSyntaxError: the type has no modifiers.
        InvalidTextRepresentation, NumericValueOutOfRange: a modifier is not an int4.
        InvalidParameterValue: there are too many modifiers, or a number is not allowed.
    """
    if not modifiers:
        return -1
    name = type_name.removeprefix("_")
    if name not in {"numeric", "interval", *_LENGTHS, *_PRECISIONS}:
        raise SqlSyntaxError(f'type modifier is not allowed for type "{type_name}"')
    numbers = [int4in(modifier) for modifier in modifiers]
    if name == "numeric":
        return _numeric_typmod(numbers)
    if name == "interval":
        return _interval_typmod(numbers)
    if len(numbers) != 1:
        raise InvalidParameterValue("invalid type modifier")
    if name in _LENGTHS:
        return _length_typmod(*_LENGTHS[name], numbers[0])
    before, after = _PRECISIONS[name]
    return _precision(numbers[0], f"{before}({numbers[0]}){after}")


def is_wider(type_name: str, typmod: int, new_typmod: int) -> bool:
    """Return whether all values with one modifier fit another modifier unchanged, for example
    varchar(5) to varchar(9), numeric(5,2) to numeric(9,2) (varchar_support() and similar
    functions).

    Args:
        type_name: the common type; an array has the modifiers of its elements.
    """
    if new_typmod in (typmod, -1):
        return True
    if typmod < 0:
        return False
    match type_name.removeprefix("_"):
        case "varchar" | "varbit" | "time" | "timetz" | "timestamp" | "timestamptz":
            return new_typmod > typmod
        case "numeric":
            precision, scale = precision_and_scale(typmod)
            new_precision, new_scale = precision_and_scale(new_typmod)
            return new_scale == scale and new_precision >= precision
    return False


def coercion_typmod(type_name: str, typmod: int) -> int:
    """Return the effective modifier if a length coercion is called as a function; -1 if the
    coercion changes nothing (varchar() in varchar.c, timestamp_scale() in timestamp.c and similar
    functions).

    Raises:
        InvalidParameterValue, InternalError: the modifier is not valid.
    """
    match type_name:
        case "bpchar" if typmod > _MAX_ALLOCATION:
            raise InternalError(f"invalid memory alloc request size {typmod}")
        case "varchar" | "bpchar" | "numeric":
            return typmod if typmod >= TYPMOD_HEADER else -1
        case "bit" | "varbit":
            return typmod if 0 < typmod <= _MAX_BITS else -1
        case "time" | "timetz":
            return typmod if 0 <= typmod <= MAX_PRECISION else -1
        case "timestamp" | "timestamptz" if not -1 <= typmod <= MAX_PRECISION:
            raise InvalidParameterValue(
                f"timestamp({typmod}) precision must be between 0 and {MAX_PRECISION}"
            )
        case "interval" if typmod >= 0:
            fields, precision = typmod >> 16 & FULL_RANGE, typmod & FULL_PRECISION
            if fields not in RANGE_NAMES:
                raise InternalError(f"unrecognized interval typmod: {typmod}")
            if precision > MAX_PRECISION:  # the coercion rounds nothing (interval_support())
                return interval_typmod(fields, FULL_PRECISION)
    return typmod


def format_type(type_: Type, typmod: int | None = -1) -> str:
    """Return the SQL name: `numeric(10,2)` of numeric with 655366, `character varying(5)[]` of
    _varchar with 9, `bpchar` of bpchar with -1.

    Args:
        typmod: the modifier; None prints only the name of the type, like format_type(oid, NULL):
            `character`.

    Raises:
        InternalError: an interval cannot have the modifier.
    """
    if typmod is None:
        return type_.sql_name
    if type_.name.startswith("_") and type_.is_array:
        return _with_modifier(type_.name[1:], type_.sql_name.removesuffix("[]"), typmod) + "[]"
    return _with_modifier(type_.name, type_.sql_name, typmod)


def _with_modifier(name: str, sql_name: str, typmod: int) -> str:
    if typmod < 0:
        # Without a modifier, character and bit would mean a length of 1.
        return {"bpchar": "bpchar", "bit": '"bit"'}.get(name, sql_name)
    if name == "numeric":
        precision, scale = precision_and_scale(typmod)
        return f"{sql_name}({precision},{scale})"
    if name == "interval":
        fields, precision = range_and_precision(typmod)
        if fields not in RANGE_NAMES:
            raise InternalError(f"invalid INTERVAL typmod: 0x{typmod:x}")
        shown = "" if precision == FULL_PRECISION else f"({precision})"
        return sql_name + RANGE_NAMES[fields] + shown
    if name in _LENGTHS:
        return f"{sql_name}({typmod - _LENGTHS[name][2]})"
    if name in _PRECISIONS:
        first, _, rest = sql_name.partition(" ")
        return f"{first}({typmod}) {rest}"
    return sql_name


def _numeric_typmod(numbers: list[int]) -> int:
    if len(numbers) > 2:
        raise InvalidParameterValue("invalid NUMERIC type modifier")
    precision, scale = (*numbers, 0)[:2]
    if not 1 <= precision <= 1000:
        raise InvalidParameterValue(f"NUMERIC precision {precision} must be between 1 and 1000")
    if not -1000 <= scale <= 1000:
        raise InvalidParameterValue(f"NUMERIC scale {scale} must be between -1000 and 1000")
    return numeric_typmod(precision, scale)


def _interval_typmod(numbers: list[int]) -> int:
    if numbers[0] not in RANGE_NAMES or len(numbers) > 2:
        raise InvalidParameterValue("invalid INTERVAL type modifier")
    if len(numbers) == 2:
        precision = _precision(numbers[1], f"INTERVAL({numbers[1]})")
        return interval_typmod(numbers[0], precision)
    return -1 if numbers[0] == FULL_RANGE else interval_typmod(numbers[0], FULL_PRECISION)


def _length_typmod(shown: str, most: int, header: int, length: int) -> int:
    if length < 1:
        raise InvalidParameterValue(f"length for type {shown} must be at least 1")
    if length > most:
        raise InvalidParameterValue(f"length for type {shown} cannot exceed {most}")
    return length + header


def _precision(precision: int, shown: str) -> int:
    if precision < 0:
        raise InvalidParameterValue(f"{shown} precision must not be negative")
    return min(precision, MAX_PRECISION)
