"""The hash by which PostgreSQL assigns rows to hash partitions (compute_partition_hash_value in
partbounds.c; Bob Jenkins' lookup3 in hashfn.c).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from replctl.errors import FeatureNotSupported
from replctl.types import text

_SEED = 0x7A5B22367996DCFD  # HASH_PARTITION_SEED
_MASK32, _MASK64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
_INITIAL = 0x9E3779B9 + 3923095
_DAYS_TO_2000 = 10957
_MICROS_TO_2000 = _DAYS_TO_2000 * 86_400_000_000


def partition_hash(types: Sequence[str], values: Sequence[str | None]) -> int:
    """(int4,), (`1`,) -> the 64-bit hash of a row's partition key, NULLs left out.

    Args:
        values: canonical texts.

    Raises:
        FeatureNotSupported: the hash of a type is not implemented.
    """
    row_hash = 0
    for type_, value in zip(types, values, strict=True):
        if value is None:
            continue
        function = _HASHES.get(type_)
        if function is None:
            raise FeatureNotSupported(f"hash partitioning by type {type_} is not supported")
        hashed = function(text.parse(type_, value))
        mixed = (hashed + 0x49A0F4DD15E5A8E3 + (row_hash << 54) + (row_hash >> 7)) & _MASK64
        row_hash ^= mixed
    return row_hash


def _rotated(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _MASK32


def _mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    for bits in (4, 6, 8, 16, 19, 4):
        a = ((a - c) & _MASK32) ^ _rotated(c, bits)
        c = (c + b) & _MASK32
        a, b, c = b, c, a
    return a, b, c


def _final(a: int, b: int, c: int) -> int:
    for bits in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - _rotated(b, bits)) & _MASK32
        a, b, c = b, c, a
    return (a << 32) | b  # seven steps have turned the names by one: these are b and c


def _start(length: int) -> tuple[int, int, int]:
    initial = (_INITIAL + length) & _MASK32
    return _mixed((initial + (_SEED >> 32)) & _MASK32, (initial + _SEED) & _MASK32, initial)


def _of_bytes(data: bytes) -> int:
    """hash_bytes_extended: blocks of 12 bytes; the last one leaves the low byte of c to the
    length."""
    a, b, c = _start(len(data))
    position = 0
    while len(data) - position >= 12:
        x, y, z = struct.unpack_from("<III", data, position)
        a, b, c = _mixed((a + x) & _MASK32, (b + y) & _MASK32, (c + z) & _MASK32)
        position += 12
    tail = data[position:]
    padded = tail[:8].ljust(8, b"\0") + b"\0" + tail[8:].ljust(3, b"\0")
    x, y, z = struct.unpack("<III", padded)
    return _final((a + x) & _MASK32, (b + y) & _MASK32, (c + z) & _MASK32)


def _of_uint32(value: int) -> int:
    a, b, c = _start(4)
    return _final((a + (value & _MASK32)) & _MASK32, b, c)


def _of_int8(value: int) -> int:
    low, high = value & _MASK32, (value >> 32) & _MASK32
    return _of_uint32(low ^ (high if value >= 0 else ~high & _MASK32))


def _of_float(value: float) -> int:
    if value == 0:
        return _SEED
    return _of_bytes(struct.pack("<d", math.nan if math.isnan(value) else value))


def _of_numeric(value: Decimal) -> int:
    """The significant digits in base 10000, and the weight of the first."""
    if not value.is_finite():
        return _SEED
    if not value:
        return (_SEED - 1) & _MASK64
    _sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    shown = "".join(map(str, digits)).lstrip("0")
    shown += "0" * (exponent % 4)
    groups_below = exponent // 4
    shown = shown.rjust(-(-len(shown) // 4) * 4, "0")
    groups = [int(shown[i : i + 4]) for i in range(0, len(shown), 4)]
    weight = len(groups) - 1 + groups_below
    while groups[-1] == 0:
        groups.pop()
    return _of_bytes(struct.pack(f"<{len(groups)}H", *groups)) ^ (weight & _MASK64)


def _of_interval(value: tuple[int, int, int]) -> int:
    months, days, micros = value
    span = (months * 30 + days) * 86_400_000_000 + micros
    return _of_int8(((span + 2**63) & _MASK64) - 2**63)


def _of_date(value: int) -> int:
    is_infinite = value in (2**31 - 1, -(2**31))
    return _of_uint32(value if is_infinite else value - _DAYS_TO_2000)


def _of_timestamp(value: int) -> int:
    is_infinite = value in (2**63 - 1, -(2**63))
    return _of_int8(value if is_infinite else value - _MICROS_TO_2000)


#: What hashes a parsed value (types.text), by type.
_HASHES: dict[str, Callable[[Any], int]] = {
    "bool": _of_uint32,
    "int2": _of_uint32,
    "int4": _of_uint32,
    "int8": _of_int8,
    "oid": _of_uint32,
    "float4": _of_float,
    "float8": _of_float,
    "numeric": _of_numeric,
    "text": lambda value: _of_bytes(value.encode()),
    "varchar": lambda value: _of_bytes(value.encode()),
    "bpchar": lambda value: _of_bytes(value.rstrip(" ").encode()),
    "bytea": _of_bytes,
    "uuid": lambda value: _of_bytes(bytes.fromhex(value.replace("-", ""))),
    "date": _of_date,
    "time": _of_int8,
    "timestamp": _of_timestamp,
    "timestamptz": _of_timestamp,
    "interval": _of_interval,
}
