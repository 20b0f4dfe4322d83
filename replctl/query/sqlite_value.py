"""Values of PostgreSQL's types as SQLite holds them, their texts, and what SQLite compares.

A boolean is 0 or 1; an integer, an OID of any kind, an LSN and a timestamp (microseconds since
1970) an int; a float a float; everything else its canonical text.  An LSN or xid8 that SQLite has
no int for is a text of 20 digits, which is greater than all ints and ordered as they are.

The evaluator (adt/interpret.py) has the values of types/text.py: `loader` and `storer` lead there
and back.
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
    frozenset(["int2", "int4", "int8", "oid", "xid", "xid8", "cid"]) | object_identifier.TYPES
)
#: Types of ints that need 64 bits, without a sign.
WIDE = frozenset({"pg_lsn", "xid8"})
_MICROS = frozenset({"timestamptz", "timestamp"})
FLOATS = frozenset({"float4", "float8"})

#: SQLite has no such number; this text equals itself and is greater than all numbers, as NaN is.
NAN = "NaN"
INFINITY = "9e999"  # a literal beyond all numbers
TEXTS = frozenset(["text", "varchar", "name", "char", "bpchar", "unknown", "pg_node_tree"])

_WORDS = frozenset(["text", "varchar", "name", "unknown"])

#: Types whose values SQLite orders as PostgreSQL does, in the form that they have here; those of
#: one set with each other, too.
_ORDERED: dict[str, frozenset[str]] = {
    **dict.fromkeys(_NUMBERS, _NUMBERS),
    **dict.fromkeys(FLOATS, FLOATS),
    **dict.fromkeys(_WORDS, _WORDS),
    **{
        name: frozenset([name])
        for name in (*_MICROS, "bool", "pg_lsn", "uuid", "bytea", "bit", "varbit", "time")
    },
}
#: Types whose values are equal if their texts are, although texts are ordered otherwise.
_EQUAL_TEXTS = frozenset(
    """char date timetz int2vector oidvector _text _name _char _oid _int2 _int4 _int8""".split()
)
#: Types whose values are no texts for the evaluator; those of arrays are none either.
_PARSED = frozenset(
    ["numeric", "bytea", "date", "time", "timetz", "interval", "int2vector", "oidvector"]
)
#: The largest int of SQLite.
_LARGEST = 2**63 - 1


def is_native(operator: str, left: str, right: str) -> bool:
    """Return whether SQLite's own operator compares values of two types as PostgreSQL does."""
    if right in _ORDERED.get(left, ()):
        return True
    return left == right and left in _EQUAL_TEXTS and operator in ("=", "<>")


def is_ordered(type_name: str) -> bool:
    """Return whether SQLite sorts values of a type as PostgreSQL does."""
    return type_name in _ORDERED


def is_exact(type_name: str) -> bool:
    """Return whether equal values of a type look the same, and SQLite knows them as equal."""
    is_known = type_name in _ORDERED or type_name in _EQUAL_TEXTS
    return is_known and type_name not in FLOATS  # 0 = -0


def evaluated_type(type_name: str) -> str:
    """Return the type that the evaluator has for another one: names of objects, and arrays of them,
    are OIDs."""
    if type_name in object_identifier.TYPES:
        return "oid"
    if type_name.removeprefix("_") in object_identifier.TYPES:
        return "_oid"
    return type_name


def has_text_form(type_name: str) -> bool:
    """Return whether the evaluator has values of a type, and not only the catalog."""
    return text.is_supported(evaluated_type(type_name))


@cache
def sort_key(type_name: str) -> Callable[[Any], Any]:
    """Return the key of SQLite's values of a type: its order is PostgreSQL's.

    Raises:
        FeatureNotSupported: values of the type are not compared.
    """
    key, load = comparison.key_of(evaluated_type(type_name)), loader(type_name)
    return key if load is None else lambda value: key(load(value))


@cache
def loader(type_name: str) -> Callable[[Any], Any] | None:
    """Return what makes the evaluator's value of SQLite's; None if they are the same."""
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
    """Return what makes SQLite's value of the evaluator's; None if they are the same."""
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
    """Return what makes the text of a type of SQLite's values that are not NULL."""
    if type_name == "bool":
        return lambda value: "t" if value else "f"
    if type_name in WIDE:
        show = format_lsn if type_name == "pg_lsn" else str
        return lambda value: show(int(value))
    if type_name in FLOATS:
        return lambda value: text.render(type_name, float(value))
    if type_name in _MICROS:
        return lambda value: text.render(type_name, value)
    if evaluated_type(type_name) == type_name:
        return str
    type_ = environment.type(type_name)
    return lambda value: output_value(environment, type_, str(value))


def canonical_form(environment: Environment, type_name: str) -> Callable[[Any], str]:
    """Return what makes the canonical text of SQLite's values that are not NULL."""
    return str if type_name in object_identifier.TYPES else shown_form(environment, type_name)


def shown(environment: Environment, type_name: str, value: Any) -> str | None:
    """Return a value of SQLite in the text form of its type."""
    return None if value is None else shown_form(environment, type_name)(value)


def canonical(environment: Environment, type_name: str, value: Any) -> str | None:
    """Return a value of SQLite in canonical text."""
    return None if value is None else canonical_form(environment, type_name)(value)


def stored(type_name: str, value: str) -> Any:
    """Return a canonical text as SQLite's value."""
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
