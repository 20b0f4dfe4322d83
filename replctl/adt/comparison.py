"""What values of each type compare by: keys of Python whose order is that of PostgreSQL's
B-tree."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

from replctl.adt import arrayfuncs, float_, interval, jsonb, network, numeric, rangetypes, timestamp
from replctl.errors import FeatureNotSupported
from replctl.types import builtin

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


_KEYS: dict[str, Key] = {
    **dict.fromkeys(
        [
            "bool",
            "int2",
            "int4",
            "int8",
            "oid",
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
    "numeric": numeric.key,
    "bpchar": lambda value: value.rstrip(" "),
    "interval": interval.key,
    "timetz": lambda value: (value[0] + value[1] * 1_000_000, value[1]),
    "inet": network.key,
    "cidr": network.key,
    "jsonb": jsonb.key,
}


@cache
def key_of(type_name: str) -> Key:
    """The key of a type.

    Raises:
        FeatureNotSupported: values of the type are not compared.
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
    """A range type with its elements' key."""
    return rangetypes.RangeType(type_name, key_of(rangetypes.ELEMENTS[type_name]))


@cache
def operator_of_function(source: str, types: tuple[str, ...]) -> str | None:
    """The comparison that a function computes: int4lt -> <."""
    return _comparisons().get((source, types)) or _comparisons().get((source, ()))


@cache
def _comparisons() -> dict[tuple[str, tuple[str, ...]], str]:
    result: dict[tuple[str, tuple[str, ...]], str] = {}
    for name in OPERATORS:
        for item in builtin.operators()[name]:
            if item.left is not None and item.left not in (
                "record",
                "path",
                "box",
                "circle",
                "lseg",
            ):
                source = builtin.function_by_oid()[item.function_oid].source
                result[source, ()] = name
    return result


def compare(name: str, left: str, right: str) -> Callable[[Any, Any], bool]:
    """A comparison of values of two types."""
    test = OPERATORS[name]
    if {left, right} & {"date"} and {left, right} & {"timestamp", "timestamptz"}:
        keys: list[Key] = [
            timestamp.compare_key_of_date if item == "date" else _same for item in (left, right)
        ]
    elif left != right and "bpchar" in (left, right) and "text" in (left, right):
        keys = [_same, _same]
    else:
        keys = [key_of(left), key_of(right)]
    if keys[0] is _same and keys[1] is _same:
        return test
    first, second = keys
    return lambda a, b: test(first(a), second(b))
