"""int2, int4 and int8 (PostgreSQL's int.c, int8.c and numutils.c)."""

from __future__ import annotations

import re
from functools import partial

from replctl.errors import InvalidTextRepresentation, NumericValueOutOfRange
from replctl.types.text_form import BLANKS, text_form

_DECIMAL = r"[0-9](?:_?[0-9])*+"
_PREFIXED = r"0[xX](?:_?[0-9a-fA-F])++|0[oO](?:_?[0-7])++|0[bB](?:_?[01])++"
_INTEGER = re.compile(rf"([+-]?)({_PREFIXED}|{_DECIMAL})")
_BASES = {"x": 16, "o": 8, "b": 2}


def parse_integer(text: str, bits: int, sql_name: str) -> int:
    """Parse an integer of any signed type: ` -0x1_F ` -> -31.

    Args:
        bits: the width of the type, which limits the value.
        sql_name: the type's name in messages.

    Raises:
        InvalidTextRepresentation: `text` is not an integer.
        NumericValueOutOfRange: the type cannot hold it.
    """
    limit = 1 << (bits - 1)
    stripped = text.strip(BLANKS)
    match = _INTEGER.match(stripped)
    if match is None:
        raise InvalidTextRepresentation(f'invalid input syntax for type {sql_name}: "{text}"')
    sign, digits = match.groups()
    base = _BASES.get(digits[1:2].lower(), 10)
    digits = digits.replace("_", "")
    magnitude = decimal_int(digits) if base == 10 else int(digits, base)
    # The server multiplies digit by digit, so it reports an overflow before junk after the digits.
    if match.end() < len(stripped) and magnitude // base <= limit // base:
        raise InvalidTextRepresentation(f'invalid input syntax for type {sql_name}: "{text}"')
    value = -magnitude if sign == "-" else magnitude
    if not -limit <= value < limit or match.end() < len(stripped):
        raise NumericValueOutOfRange(f'value "{text}" is out of range for type {sql_name}')
    return value


def decimal_int(text: str) -> int:
    """Parse digits like int(), without a limit for their number: `-007`, `` -> -7, 0.

    Only the first hundred digits are used.  Types that use this function cannot hold more.
    """
    magnitude = int(text.lstrip("+-0")[:100] or "0")
    return -magnitude if text[:1] == "-" else magnitude


int2in = partial(parse_integer, bits=16, sql_name="smallint")
int4in = partial(parse_integer, bits=32, sql_name="integer")
int8in = partial(parse_integer, bits=64, sql_name="bigint")

FORMS = {
    "int2": text_form(int2in, str),
    "int4": text_form(int4in, str),
    "int8": text_form(int8in, str),
}
