"""Values of PostgreSQL's types as SQLite holds them, and their texts.

A boolean is 0 or 1; an integer, an OID of any kind, an LSN and a timestamp (microseconds since
1970) an int; a float a float; everything else its canonical text.
"""

from __future__ import annotations

from typing import Any

from replctl.expr import object_identifier
from replctl.expr.environment import Environment
from replctl.lsn import format_lsn, parse_lsn
from replctl.types import text

_NUMBERS = (
    frozenset(["int2", "int4", "int8", "oid", "xid", "xid8", "cid"]) | object_identifier.TYPES
)
_MICROS = frozenset({"timestamptz", "timestamp"})
_FLOATS = frozenset({"float4", "float8"})

#: SQLite has no such number; this text equals itself and is greater than all numbers, as NaN is.
_NAN = "NaN"
#: From this LSN on, which no integer of SQLite is, LSNs are texts: texts are greater than numbers.
_FIRST_LSN_TEXT = 2**63
INFINITY = "9e999"  # a literal beyond all numbers
TEXTS = frozenset(["text", "varchar", "name", "char", "bpchar", "unknown", "pg_node_tree"])

#: Types that SQLite compares as PostgreSQL does, in the form that they have here.
COMPARABLE = _NUMBERS | _MICROS | TEXTS | {"bool", "float4", "float8", "pg_lsn", "uuid"}


def stored_lsn(lsn: int) -> int | str:
    """Return an LSN as SQLite's value."""
    return lsn if lsn < _FIRST_LSN_TEXT else f"x{lsn:016x}"


def lsn_of(value: int | str) -> int:
    """Return the LSN that a value of SQLite is."""
    return int(value[1:], 16) if isinstance(value, str) else value


def shown(environment: Environment, type_name: str, value: Any) -> str | None:
    """Return a value of SQLite in the text form of its type."""
    if value is None:
        return None
    if type_name == "bool":
        return "t" if value else "f"
    if type_name == "pg_lsn":
        return format_lsn(lsn_of(value))
    if type_name in _FLOATS:
        return text.render(type_name, float(value))
    if type_name in _MICROS:
        return text.render(type_name, value)
    return environment.output(environment.type(type_name), str(value))


def canonical(environment: Environment, type_name: str, value: Any) -> str | None:
    """Return a value of SQLite in canonical text."""
    is_object = type_name in object_identifier.TYPES and value is not None
    return str(value) if is_object else shown(environment, type_name, value)


def stored(type_name: str, value: str) -> Any:
    """Return a canonical text as SQLite's value."""
    if type_name == "bool":
        return int(value == "t")
    if type_name in _NUMBERS:
        return int(value)
    if type_name == "pg_lsn":
        return stored_lsn(parse_lsn(value))
    if type_name in _FLOATS:
        return value if value == _NAN else text.parse(type_name, value)
    if type_name in _MICROS:
        return text.parse(type_name, value)
    return value
