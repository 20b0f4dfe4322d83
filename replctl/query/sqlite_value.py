"""The form of PostgreSQL's values in SQLite, their texts, and the types that SQLite compares.

A boolean is 0 or 1.  An integer, an OID of any kind, an LSN and a timestamp (microseconds since
1970) are ints, and a float is a float.  All other values are their canonical texts.  An LSN or xid8
that is too large for SQLite's int is a text of 20 digits: such texts are greater than all ints and
sort correctly.

The evaluator (adt/interpret.py) uses the Python values of types/text.py: `loader` and `storer`
convert between these two forms.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from replctl.adt import arrayfuncs, comparison
from replctl.expr import object_identifier
from replctl.expr.environment import Environment
from replctl.expr.value_text import output_value
from replctl.lsn import format_lsn, parse_lsn
from replctl.types import builtin, text

_NUMBERS = (
    frozenset(["int2", "int4", "int8", "oid", "xid", "xid8", "cid"]) | object_identifier.NUMBERED
)
#: Unsigned types of 64 bits.
WIDE = frozenset({"pg_lsn", "xid8"})
_MICROS = frozenset({"timestamptz", "timestamp"})
FLOATS = frozenset({"float4", "float8"})

#: SQLite has no NaN. Like PostgreSQL's NaN, this text equals itself, and is greater than all
#: numbers.
NAN = "NaN"
INFINITY = "9e999"  # a literal larger than all numbers
TEXTS = frozenset(["text", "varchar", "name", "char", "bpchar", "unknown", "pg_node_tree"])

_WORDS = frozenset(["text", "varchar", "name", "unknown"])

#: Types whose values SQLite sorts like PostgreSQL. It also compares two different types of the same
#: set like PostgreSQL.
_ORDERED: dict[str, frozenset[str]] = {
    **dict.fromkeys(_NUMBERS, _NUMBERS),
    **dict.fromkeys(FLOATS, FLOATS),
    **dict.fromkeys(_WORDS, _WORDS),
    **{
        name: frozenset([name])
        for name in (*_MICROS, "bool", "pg_lsn", "uuid", "bytea", "bit", "varbit", "time")
    },
}
#: Types whose values are equal if and only if their texts are equal, but that sort differently.
_EQUAL_TEXTS = frozenset(
    """char date timetz int2vector oidvector _text _name _char _oid _int2 _int4 _int8""".split()
)
#: Types, in addition to arrays, whose values are not texts for the evaluator.
_PARSED = frozenset(
    ["numeric", "bytea", "date", "time", "timetz", "interval", "int2vector", "oidvector"]
)
#: The largest integer of SQLite.
_LARGEST = 2**63 - 1


def is_native(operator: str, left: str, right: str) -> bool:
    """Return whether SQLite's operator gives the same result as PostgreSQL's for two types."""
    if (left, right) == ("xid", "int4"):  # PostgreSQL compares both without a sign
        return False
    if right in _ORDERED.get(left, ()):
        return True
    return left == right and left in _EQUAL_TEXTS and operator in ("=", "<>")


def is_ordered(type_name: str) -> bool:
    """Return whether SQLite sorts values of a type like PostgreSQL."""
    return type_name in _ORDERED


def is_exact(type_name: str) -> bool:
    """Return whether values of a type are equal in PostgreSQL if and only if they are equal in
    SQLite and have the same text."""
    is_known = type_name in _ORDERED or type_name in _EQUAL_TEXTS
    return is_known and type_name not in FLOATS  # 0 = -0


def evaluated_type(type_name: str) -> str:
    """Return the type that the evaluator uses: oid for regclass, regtype and similar types, _oid
    for their arrays, and every other type for itself.
    """
    if type_name in object_identifier.NUMBERED:
        return "oid"
    if type_name.removeprefix("_") in object_identifier.NUMBERED:
        return "_oid"
    return type_name


def has_text_form(type_name: str) -> bool:
    """Return whether the evaluator can read and write the texts of a type without the catalog."""
    return text.is_supported(evaluated_type(type_name))


@cache
def sort_key(type_name: str) -> Callable[[Any], Any]:
    """Return a function that converts SQLite's values of a type to keys that sort like PostgreSQL.

    Raises:
        FeatureNotSupported: values of the type have no order.
    """
    key, load = comparison.key_of(evaluated_type(type_name)), loader(type_name)
    return key if load is None else lambda value: key(load(value))


@cache
def loader(type_name: str) -> Callable[[Any], Any] | None:
    """Return a function that converts SQLite's values to the evaluator's; None if no conversion is
    needed."""
    if type_name == "bool":
        return bool
    if type_name in FLOATS:
        return float
    if type_name in WIDE:
        return int
    type_name = evaluated_type(type_name)
    if not _is_parsed(type_name):
        return None
    return lambda value: arrayfuncs.plain(text.parse(type_name, value))


@cache
def storer(type_name: str) -> Callable[[Any], Any] | None:
    """Return a function that converts the evaluator's values to SQLite's; None if no conversion is
    needed."""
    if type_name == "bool":
        return int
    if type_name in FLOATS:
        return lambda value: NAN if value != value else value
    if type_name in WIDE:
        return _narrow
    type_name = evaluated_type(type_name)
    if not _is_parsed(type_name):
        return None
    return lambda value: text.render(type_name, value)


def _is_parsed(type_name: str) -> bool:
    known = builtin.types().get(type_name)
    is_array = known is not None and known.is_array
    return type_name in _PARSED or (is_array and text.is_supported(type_name))


def _narrow(value: int) -> int | str:
    return value if value <= _LARGEST else f"{value:020}"


def shown_form(environment: Environment, type_name: str) -> Callable[[Any], str]:
    """Return a function that converts SQLite's values, except NULL, to texts of their type."""
    if type_name == "bool":
        return lambda value: "t" if value else "f"
    if type_name in WIDE:
        show = format_lsn if type_name == "pg_lsn" else str
        return lambda value: show(int(value))
    if type_name in FLOATS:
        return lambda value: text.render(type_name, float(value))
    if type_name in _MICROS:
        return lambda value: text.render(type_name, value)
    if type_name in object_identifier.NAMED:
        return lambda value: object_identifier.name_of(environment, type_name, value)
    if evaluated_type(type_name) == type_name:
        return str
    type_ = environment.type(type_name)
    return lambda value: output_value(environment, type_, str(value))


def canonical_form(environment: Environment, type_name: str) -> Callable[[Any], str]:
    """Return a function that converts SQLite's values, except NULL, to canonical texts."""
    return str if type_name in object_identifier.TYPES else shown_form(environment, type_name)


def shown(environment: Environment, type_name: str, value: Any) -> str | None:
    """Convert SQLite's value to the text form of its type."""
    return None if value is None else shown_form(environment, type_name)(value)


def canonical(environment: Environment, type_name: str, value: Any) -> str | None:
    """Convert SQLite's value to canonical text."""
    return None if value is None else canonical_form(environment, type_name)(value)


def stored(type_name: str, value: str) -> Any:
    """Convert a canonical text to SQLite's value."""
    if type_name == "bool":
        return int(value == "t")
    if type_name == "pg_lsn":
        return _narrow(parse_lsn(value))
    if type_name in _NUMBERS:
        return _narrow(int(value))
    if type_name in FLOATS:
        return value if value == NAN else text.parse(type_name, value)
    if type_name in _MICROS:
        return text.parse(type_name, value)
    return value
