"""Compare values of each type with Python keys that sort like PostgreSQL's B-tree."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

from replctl.adt import (
    arrayfuncs,
    datetime_arithmetic,
    float_,
    interval_arithmetic,
    jsonb,
    network,
    numeric_arithmetic,
    rangetypes,
    timetz,
)
from replctl.errors import FeatureNotSupported
from replctl.types import builtin
from replctl.types.bit_string import bit_bytes
from replctl.types.character import byte_difference, char_byte
from replctl.types.uuid_ import uuid_bytes

Key = Callable[[Any], Any]

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _same(value: Any) -> Any:
    return value


#: Types that are ordered by memcmp().
_BYTES: dict[str, Callable[[Any], bytes]] = {
    **dict.fromkeys(("text", "varchar", "name"), str.encode),
    "bpchar": lambda value: value.rstrip(" ").encode(),
    "bytea": _same,
    "uuid": uuid_bytes,
    **dict.fromkeys(("bit", "varbit"), bit_bytes),
}
_ORDERS: dict[str, Callable[[Any, Any], int]] = {
    "jsonb": lambda a, b: jsonb.compare(jsonb.load(a), jsonb.load(b)),
    "inet": network.compare,
}


_KEYS: dict[str, Key] = {
    **dict.fromkeys(
        [
            "bool",
            "int2",
            "int4",
            "int8",
            "oid",
            "xid",
            "xid8",
            "cid",
            "pg_lsn",
            "date",
            "time",
            "timestamp",
            "timestamptz",
            "text",
            "varchar",
            "name",
            "uuid",
            "bytea",
            "bit",
            "varbit",
            "macaddr",
            "macaddr8",
            "unknown",
        ],
        _same,
    ),
    "float4": float_.key,
    "float8": float_.key,
    "numeric": numeric_arithmetic.key,
    "bpchar": lambda value: value.rstrip(" "),
    "char": char_byte,
    "interval": interval_arithmetic.key,
    "timetz": timetz.key,
    "inet": network.key,
    "cidr": network.key,
    "jsonb": jsonb.key,
}


@cache
def key_of(type_name: str) -> Key:
    """Return the function that converts values of a type to sortable keys.

    Raises:
        FeatureNotSupported: replctl has no order for the type.
    """
    if type_name in _KEYS:
        return _KEYS[type_name]
    if type_name in rangetypes.ELEMENTS:
        return rangetypes.sort_key(range_type(type_name))
    known = builtin.types().get(type_name)
    if known is not None and known.is_array and known.element is not None:
        element = key_of(known.element)
        return lambda value: arrayfuncs.sort_key(value, element)
    raise FeatureNotSupported(f"comparison of values of type {type_name} is not supported")


def range_type(type_name: str) -> rangetypes.RangeType:
    """Return a range type with the key of its elements."""
    return rangetypes.RangeType(type_name, key_of(rangetypes.ELEMENTS[type_name]))


@cache
def operator_of_function(source: str, types: tuple[str, ...]) -> str | None:
    """Return the comparison operator that a function implements: `<` for int4lt."""
    return _comparisons().get((source, types)) or _comparisons().get((source, ()))


@cache
def _comparisons() -> dict[tuple[str, tuple[str, ...]], str]:
    result: dict[tuple[str, tuple[str, ...]], str] = {}
    for name in (*OPERATORS, "~<~", "~<=~", "~>~", "~>=~"):
        for item in builtin.operators()[name]:
            if item.left is not None and item.left not in (
                "record",
                "path",
                "box",
                "circle",
                "lseg",
            ):
                source = builtin.function_by_oid()[item.function_oid].source
                result[source, ()] = name.strip("~")  # ~<~ is < by bytes, like all our comparisons
    return result


def compare(name: str, left: str, right: str) -> Callable[[Any, Any], bool]:
    """Return a comparison of values of two types."""
    test = OPERATORS[name]
    first, second = _keys(left, right)
    if first is _same and second is _same:
        return test
    return lambda a, b: test(first(a), second(b))


def _keys(left: str, right: str) -> tuple[Key, Key]:
    """Return the keys for comparing values of two types with each other."""
    if {left, right} & {"date"} and {left, right} & {"timestamp", "timestamptz"}:
        first, second = (
            datetime_arithmetic.compare_key_of_date if item == "date" else _same
            for item in (left, right)
        )
        return first, second
    if (left, right) == ("xid", "int4"):  # xideqint4 of pg_proc: both are unsigned
        return _same, lambda value: value % 2**32
    if left != right and "bpchar" in (left, right) and "text" in (left, right):
        return _same, _same
    return key_of(left), key_of(right)


def order(left: str, right: str, collation: str | None = None) -> Callable[[Any, Any], int]:
    """Return the support function of a B-tree for two types.  It returns exactly PostgreSQL's
    numbers: negative, zero or positive.
    """
    if {left, right} == {"name"} and collation == "C":  # strncmp includes the byte 0 at the end
        return lambda a, b: byte_difference(a.encode() + b"\0", b.encode() + b"\0")
    if left in _BYTES and right in _BYTES:
        return _order_of_bytes(left, right)
    if left == right and left in ("bool", "int2", "char"):
        key = key_of(left)
        return lambda a, b: int(key(a)) - int(key(b))
    if left == right and left in _ORDERS:
        return _ORDERS[left]
    first, second = _keys(left, right)
    return lambda a, b: (first(a) > second(b)) - (first(a) < second(b))


def _order_of_bytes(left: str, right: str) -> Callable[[Any, Any], int]:
    first, second = _keys(left, right)
    encode, encode_other = _BYTES[left], _BYTES[right]

    def compare(a: Any, b: Any) -> int:
        difference = byte_difference(encode(a), encode_other(b))
        return difference or (first(a) > second(b)) - (first(a) < second(b))

    return compare
