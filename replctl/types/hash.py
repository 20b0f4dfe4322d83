"""PostgreSQL's hash functions of values, and the hash that assigns rows to hash partitions
(hashfunc.c, Bob Jenkins' lookup3 in hashfn.c, compute_partition_hash_value in partbounds.c).

Each function returns 64 bits for a value and a seed.  The 32-bit hash is the lower half of the
result with seed 0.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from ipaddress import ip_address
from typing import Any, TypeAlias

from replctl.errors import FeatureNotSupported, UndefinedFunction
from replctl.types import builtin, text
from replctl.types.character import char_byte
from replctl.types.numeric import base_10000, numeric_in
from replctl.types.uuid_ import uuid_bytes

#: Returns 64 bits, unsigned, for a value and a seed.
Hash: TypeAlias = Callable[[Any, int], int]

_PARTITION_SEED = 0x7A5B22367996DCFD  # HASH_PARTITION_SEED
_MASK32, _MASK64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
_INITIAL = 0x9E3779B9 + 3923095
_DAYS_TO_2000 = 10957
_MICROS_TO_2000 = _DAYS_TO_2000 * 86_400_000_000
_ARRAY, _OBJECT = 0x4000000040000000, 0x2000000020000000  # JB_FARRAY, JB_FOBJECT, in both halves


def partition_hash(types: Sequence[str], values: Sequence[str | None]) -> int:
    """Return the 64-bit hash of a row's partition key, such as types (int4,) and values (`1`,).

    Args:
        values: canonical texts; None for NULL, which does not change the hash.

    Raises:
        FeatureNotSupported: the hash of a type is not implemented.
    """
    row_hash = 0
    for type_, value in zip(types, values, strict=True):
        if value is None:
            continue
        function = _known(type_)
        if function is None:
            raise FeatureNotSupported(f"hash partitioning by type {type_} is not supported")
        hashed = function(text.parse(type_, value), _PARTITION_SEED)
        mixed = (hashed + 0x49A0F4DD15E5A8E3 + (row_hash << 54) + (row_hash >> 7)) & _MASK64
        row_hash ^= mixed
    return row_hash


def hash_of(type_name: str) -> Callable[[Any], int]:
    """Return the function that hashes a value of a type to an int4.

    Raises:
        UndefinedFunction: the type has no hash function.
    """
    extended = hash_extended(type_name)
    return lambda value: _signed(extended(value, 0) & _MASK32, 32)


def hash_extended(type_name: str) -> Callable[[Any, int], int]:
    """Return the function that hashes a value of a type, with a seed, to an int8.

    Raises:
        UndefinedFunction: the type has no hash function.
        FeatureNotSupported: the type's hash function is not implemented.
    """
    function = _known(type_name)
    if function is None:
        element = builtin.types()[builtin.types()[type_name].element or type_name]
        if element.has_hash or element.kind.has_operator_classes:
            raise FeatureNotSupported(f"the hash of type {element.sql_name} is not supported")
        raise UndefinedFunction(f"could not identify a hash function for type {element.sql_name}")
    return lambda value, seed: _signed(function(value, seed & _MASK64), 64)


def _known(type_name: str) -> Hash | None:
    if type_name in _HASHES:  # oidvector is an array with a hash function of its own
        return _HASHES[type_name]
    known = builtin.types().get(type_name)
    if known is not None and known.is_array and known.element is not None:
        return _of_array(known.element)
    return None


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


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
    return (a << 32) | b  # seven steps have rotated the names: these are b and c


def _start(length: int, seed: int) -> tuple[int, int, int]:
    initial = (_INITIAL + length) & _MASK32
    if not seed:
        return initial, initial, initial
    return _mixed((initial + (seed >> 32)) & _MASK32, (initial + seed) & _MASK32, initial)


def _of_bytes(data: bytes, seed: int) -> int:
    """Implement hash_bytes_extended(), which mixes blocks of 12 bytes.  In the last block, the low
    byte of c is left for the length.
    """
    a, b, c = _start(len(data), seed)
    position = 0
    while len(data) - position >= 12:
        x, y, z = struct.unpack_from("<III", data, position)
        a, b, c = _mixed((a + x) & _MASK32, (b + y) & _MASK32, (c + z) & _MASK32)
        position += 12
    tail = data[position:]
    padded = tail[:8].ljust(8, b"\0") + b"\0" + tail[8:].ljust(3, b"\0")
    x, y, z = struct.unpack("<III", padded)
    return _final((a + x) & _MASK32, (b + y) & _MASK32, (c + z) & _MASK32)


def _of_uint32(value: int, seed: int) -> int:
    a, b, c = _start(4, seed)
    return _final((a + (value & _MASK32)) & _MASK32, b, c)


def _of_int8(value: int, seed: int) -> int:
    low, high = value & _MASK32, (value >> 32) & _MASK32
    return _of_uint32(low ^ (high if value >= 0 else ~high & _MASK32), seed)


def _of_text(value: str, seed: int) -> int:
    return _of_bytes(value.encode(), seed)


def _of_float(value: float, seed: int) -> int:
    if value == 0:
        return seed
    return _of_bytes(struct.pack("<d", math.nan if math.isnan(value) else value), seed)


def _of_numeric(value: Decimal, seed: int) -> int:
    """Hash the significant digits in base 10000, and the weight of the first digit."""
    if not value.is_finite():
        return seed
    if not value:
        return (seed - 1) & _MASK64
    groups, weight = base_10000(value)
    return _of_bytes(struct.pack(f"<{len(groups)}H", *groups), seed) ^ (weight & _MASK64)


def _of_interval(value: tuple[int, int, int], seed: int) -> int:
    months, days, micros = value
    span = (months * 30 + days) * 86_400_000_000 + micros
    return _of_int8(_signed(span & _MASK64, 64), seed)


def _of_date(value: int, seed: int) -> int:
    is_infinite = value in (2**31 - 1, -(2**31))
    return _of_uint32(value if is_infinite else value - _DAYS_TO_2000, seed)


def _of_timestamp(value: int, seed: int) -> int:
    is_infinite = value in (2**63 - 1, -(2**63))
    return _of_int8(value if is_infinite else value - _MICROS_TO_2000, seed)


def _of_timetz(value: tuple[int, int], seed: int) -> int:
    return _of_int8(value[0], seed) ^ _of_uint32(value[1], seed)


def _of_char(value: str, seed: int) -> int:
    return _of_uint32(_signed(char_byte(value), 8), seed)


def _of_inet(value: str, seed: int) -> int:
    """Hash the address family, the bits of the mask, and the address."""
    shown, _, bits = value.partition("/")
    address = ip_address(shown)
    header = bytes([2 if address.version == 4 else 3, int(bits or address.max_prefixlen)])
    return _of_bytes(header + address.packed, seed)


def _of_macaddr(value: str, seed: int) -> int:
    return _of_bytes(bytes.fromhex(value.replace(":", "")), seed)


@cache
def _of_array(element: str) -> Hash | None:
    function = _known(element)
    if function is None:
        return None

    def add(result: int, value: Any, seed: int) -> int:
        if isinstance(value, list):
            for item in value:
                result = add(result, item, seed)
            return result
        return (result * 31 + (0 if value is None else function(value, seed))) & _MASK64

    return lambda value, seed: add(1, value, seed)


_json = json.JSONDecoder(parse_int=numeric_in, parse_float=numeric_in)


def _of_jsonb(value: str, seed: int) -> int:
    """Hash keys, elements and scalars in sequence, and the kind of each container."""
    root = _json.decode(value)
    if root == [] or root == {}:
        return seed
    is_scalar = not isinstance(root, dict | list)
    return _mixed_jsonb(0, [root] if is_scalar else root, seed)


def _mixed_jsonb(result: int, value: Any, seed: int) -> int:
    if isinstance(value, dict):
        result ^= _OBJECT
        for key, item in value.items():
            result = _mixed_jsonb(_mixed_jsonb(result, key, seed), item, seed)
        return result
    if isinstance(value, list):
        result ^= _ARRAY
        for item in value:
            result = _mixed_jsonb(result, item, seed)
        return result
    rotated = (result << 1 & 0xFFFFFFFEFFFFFFFE) | (result >> 31 & 0x100000001)
    return rotated ^ _of_json_scalar(value, seed)


def _of_json_scalar(value: Any, seed: int) -> int:
    if value is None:
        return (seed + 1) & _MASK64
    if isinstance(value, bool):
        return _of_uint32(value, seed) if seed else (2 if value else 4)
    return _of_text(value, seed) if isinstance(value, str) else _of_numeric(value, seed)


#: The hash function of a type, for values parsed by types.text.
_HASHES: dict[str, Hash] = {
    **dict.fromkeys(("bool", "int2", "int4", "oid"), _of_uint32),
    **dict.fromkeys(("int8", "time"), _of_int8),
    "pg_lsn": lambda value, seed: _of_int8(_signed(value, 64), seed),
    **dict.fromkeys(("float4", "float8"), _of_float),
    "numeric": _of_numeric,
    **dict.fromkeys(("text", "varchar", "name"), _of_text),
    "bpchar": lambda value, seed: _of_text(value.rstrip(" "), seed),
    "char": _of_char,
    "bytea": _of_bytes,
    "oidvector": lambda value, seed: _of_bytes(struct.pack(f"<{len(value)}I", *value), seed),
    "uuid": lambda value, seed: _of_bytes(uuid_bytes(value), seed),
    "date": _of_date,
    "timetz": _of_timetz,
    **dict.fromkeys(("timestamp", "timestamptz"), _of_timestamp),
    "interval": _of_interval,
    "jsonb": _of_jsonb,
    **dict.fromkeys(("inet", "cidr"), _of_inet),
    **dict.fromkeys(("macaddr", "macaddr8"), _of_macaddr),
}
