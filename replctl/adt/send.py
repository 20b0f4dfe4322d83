"""Convert values to the protocol's binary format, like the *send functions of PostgreSQL's
types.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from replctl.adt.numeric_scale import scale
from replctl.adt.range_check import is_infinite_date, is_infinite_timestamp
from replctl.types.bit_string import bit_bytes
from replctl.types.character import char_byte
from replctl.types.numeric import base_10000
from replctl.types.uuid_ import uuid_bytes

_DAYS_TO_2000 = 10957
_MICROS_TO_2000 = _DAYS_TO_2000 * 86_400_000_000
#: The weight, sign and display scale of values without digits.
_SPECIAL_NUMBERS = {
    "NaN": (0, 0xC000, 0),
    "Infinity": (0, 0xD000, 32),
    "-Infinity": (0, 0xF000, 32),
}


def _packed(form: str) -> Callable[[Any], bytes]:
    return lambda value: struct.pack(f">{form}", value)


def _date(days: int) -> bytes:
    return struct.pack(">i", days if is_infinite_date(days) else days - _DAYS_TO_2000)


def _timestamp(micros: int) -> bytes:
    return struct.pack(">q", micros if is_infinite_timestamp(micros) else micros - _MICROS_TO_2000)


def _numeric(value: Decimal) -> bytes:
    """Return the number of digits, weight, sign, display scale, and the digits in base 10000."""
    digits: list[int] = []
    if not value.is_finite():
        weight, sign, places = _SPECIAL_NUMBERS[str(value)]
    else:
        if value:
            digits, weight = base_10000(value)
        else:
            weight = 0
        sign, places = 0x4000 if value < 0 else 0, scale(value)
    return struct.pack(f">HhHH{len(digits)}H", len(digits), weight, sign, places, *digits)


def _bits(value: str) -> bytes:
    return struct.pack(">i", len(value)) + bit_bytes(value)


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[[Any], bytes]] = {
    "boolsend": _packed("?"),
    "int2send": _packed("h"),
    "int4send": _packed("i"),
    "int8send": _packed("q"),
    "oidsend": _packed("I"),
    "float4send": _packed("f"),
    "float8send": _packed("d"),
    "numeric_send": _numeric,
    "charsend": lambda value: bytes([char_byte(value)]),
    "byteasend": lambda value: value,
    **dict.fromkeys(("textsend", "bpcharsend", "varcharsend", "namesend", "json_send"), str.encode),
    "jsonb_send": lambda value: b"\x01" + value.encode(),
    "uuid_send": uuid_bytes,
    **dict.fromkeys(("bit_send", "varbit_send"), _bits),
    "date_send": _date,
    "time_send": _packed("q"),
    "timetz_send": lambda value: struct.pack(">qi", *value),
    **dict.fromkeys(("timestamp_send", "timestamptz_send"), _timestamp),
    "interval_send": lambda value: struct.pack(">qii", *reversed(value)),
    "pg_lsn_send": _packed("Q"),
}
