"""Convert values from and to PostgreSQL's text form.  These are the input and output functions of
PostgreSQL's types for TimeZone UTC, DateStyle ISO, MDY, IntervalStyle postgres, extra_float_digits
1 and bytea_output hex.

Types are given by their catalog names.  The Python values are:

    bool                               bool
    int2 int4 int8 oid xid xid8 cid    int
    pg_lsn                             int
    float4 float8                      float; float4 rounded to single precision
    numeric                            Decimal that keeps its scale: 1.10; NaN, Infinity, -Infinity
    bytea                              bytes
    date                               int, days since 1970-01-01; infinity 2147483647, -infinity
                                       -2147483648
    timestamp timestamptz              int, microseconds since 1970-01-01 (UTC); infinity 2**63 - 1,
                                       -infinity -2**63
    time                               int, microseconds of the day, 0 to 86400000000
    timetz                             (microseconds of the day, seconds west of UTC)
    interval                           (months, days, microseconds); infinity: the largest of each,
                                       -infinity: the smallest of each
    bit varbit                         str of 0 and 1
    int2vector oidvector               tuple of int
    arrays                             list of values and None, lists of lists for more dimensions;
                                       array_.BoundedArray where a lower bound is not 1
    every other type                   str: the canonical text
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from importlib import import_module
from typing import TypeAlias

from replctl.errors import FeatureNotSupported
from replctl.types.character import invalid_bytes
from replctl.types.text_form import TextForm
from replctl.types.type_modifier import format_type as format_type
from replctl.types.type_modifier import typmod_in as typmod_in

Value: TypeAlias = object

#: The types of each module.  A module is imported when a value of its types is first needed.
_MODULES = {
    "array_": "",
    "bit_string": "bit varbit",
    "boolean": "bool",
    "bytea": "bytea",
    "character": "text varchar bpchar name char unknown cstring refcursor",
    "date": "date time timetz",
    "floating": "float4 float8",
    "geometric": "point lseg box path polygon line circle",
    "inet": "inet cidr",
    "integer": "int2 int4 int8",
    "interval": "interval",
    "json_": "json jsonb",
    "jsonpath": "jsonpath",
    "macaddr": "macaddr macaddr8",
    "money": "money",
    "numeric": "numeric",
    "ranges": "int4range int8range numrange daterange tsrange tstzrange "
    "int4multirange int8multirange nummultirange datemultirange tsmultirange tstzmultirange",
    "system": "oid xid xid8 cid tid pg_lsn pg_snapshot txid_snapshot int2vector oidvector",
    "timestamp": "timestamp timestamptz",
    "tsquery": "tsquery",
    "tsvector": "tsvector",
    "uuid_": "uuid",
    "xml_": "xml",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}
_WITHOUT_ARRAY = frozenset({"unknown"})


def parse(type_name: str, text: str, typmod: int = -1, *, now: datetime | None = None) -> Value:
    """Parse like a type's input function: (numeric, ` 1.555 `, 655366) -> Decimal("1.56").

    Args:
        type_name: the catalog name of the type.
        typmod: the modifier, applied as in an assignment: only blanks are cut off a long text.
        now: the time of the transaction, for `now`, `today` and similar; default: the current time.

    Raises:
        DataError: `text` is not valid for the type.  SQLSTATE and message are PostgreSQL's.
        FeatureNotSupported: the type, or this text of it, is not implemented.
    """
    if "\0" in text:
        raise invalid_bytes(b"\0")
    return _form(type_name).parse(text, typmod, now)


def render(type_name: str, value: Value) -> str:
    """Return the text that the type's output function prints: (numeric, Decimal("1.50")) -> `1.50`.

    Raises:
        FeatureNotSupported: the type is not implemented.
    """
    return _form(type_name).render(value)


def canonical(type_name: str, text: str, typmod: int = -1, *, now: datetime | None = None) -> str:
    """Return the server's output for the input `text`: (bool, `yes`) -> `t`.

    Raises:
        DataError, FeatureNotSupported: see parse.
    """
    return render(type_name, parse(type_name, text, typmod, now=now))


def coerce_typmod(type_name: str, value: Value, typmod: int, *, explicit: bool) -> Value:
    """Apply a type's length coercion: (varchar, `abcd`, 7) -> `abc`.

    Args:
        typmod: the modifier; a negative modifier changes nothing.
        explicit: an explicit cast cuts strings and bit strings; an implicit one raises an error.

    Raises:
        DataError: the modifier does not allow the value.
        FeatureNotSupported: the type is not implemented.
    """
    return value if typmod < 0 else _form(type_name).coerce(value, typmod, explicit)


def is_supported(type_name: str) -> bool:
    """Return whether this module can parse and print the type."""
    element = type_name.removeprefix("_")
    return element in _MODULE_OF and (element == type_name or element not in _WITHOUT_ARRAY)


def unsupported(type_name: str) -> FeatureNotSupported:
    """Return the error for values of a type that this module does not support. It does not know
    the names of user-defined types.
    """
    shown = "user-defined types" if type_name.startswith("@") else f"type {type_name}"
    return FeatureNotSupported(f"values of {shown} are not supported")


@cache
def _form(type_name: str) -> TextForm:
    if type_name.startswith("@"):  # a user's enum, whose labels the catalog has checked
        return _form("text")
    if not is_supported(type_name):
        raise unsupported(type_name)
    if type_name in _MODULE_OF:
        module = import_module(f"replctl.types.{_MODULE_OF[type_name]}")
        form: TextForm = module.FORMS[type_name]
        return form
    element = type_name.removeprefix("_")
    array_form: TextForm = import_module("replctl.types.array_").array_form(
        _form(element), ";" if element == "box" else ","
    )
    return array_form
