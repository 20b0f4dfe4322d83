"""Normal forms: two values are equal in PostgreSQL if and only if their normal forms are equal in
Spark.

The type's btree or hash operator class defines equality: 1.0 = 1.00, '30 days' = '1 mon', 'a ' =
'a' for char(n), -0 = 0.  For most types, the stored value is its own normal form (data_type.py).
Normal forms serve to compare, group and hash values, not to show them.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from replctl.errors import FeatureNotSupported, UndefinedFunction
from replctl.expr import object_identifier
from replctl.spark.data_type import element_type, quote, storage_type
from replctl.spark.native_form import equal_form, exact_form
from replctl.spark.sql_value import SqlValue, bound
from replctl.types import builtin
from replctl.types.delta_type import is_native

#: Types whose equal values are stored identically, or as numbers that are equal in Spark (-0.0 =
#: 0.0 and NaN = NaN, also in joins, groups and hashes).  Two values of timetz are equal only if
#: both their times and their zones are equal.
_OWN_FORM = frozenset(
    [
        *("bool", "int2", "int4", "int8", "oid", "float4", "float8", "money"),
        *("text", "varchar", "name", "char", "bytea", "uuid", "bit", "varbit"),
        *("date", "time", "timetz", "timestamp", "timestamptz"),
        *("inet", "cidr", "macaddr", "macaddr8"),
        *("pg_lsn", "xid", "xid8", "cid", "tid", "tsvector", "aclitem"),
        *("int4range", "int8range", "daterange", "tsrange", "tstzrange"),
        *("int4multirange", "int8multirange", "datemultirange", "tsmultirange", "tstzmultirange"),
    ]
)

_FLOATS = ("float4", "float8")
MICROSECONDS_OF_DAY = 86_400_000_000

#: Matches the sign of a zero, and the trailing zeros of a fraction, in the text of a number.  A
#: group captures the rest of the fraction.  The texts of numeric have no exponents.
_NUMBER = (
    "-(?=0(?:[.]0+)?(?![.0-9]))"  # -0.00 -> 0.00
    "|([.][0-9]*[1-9])0++(?![0-9])"  # 1.50 -> 1.5
    "|[.]0++(?![0-9])"  # 1.00 -> 1
)
#: Matches and captures a JSON string.  It is possessive, so that Java needs no stack for long
#: strings.
_STRING = r'("(?:[^"\\]++|\\.)*+")'
#: Matches a lexeme of a tsquery with its weights and `*`, which equality ignores; captures the
#: lexeme.
_LEXEME = "('(?:[^']++|'')*+'):[*A-D]++"


def normal_form(value: SqlValue) -> SqlValue:
    """Return the normal form of a stored value: `1.5` for the numeric `1.50`, NULL for NULL.

    Raises:
        UndefinedFunction: PostgreSQL has no equality for the type (json, xml, point).
        FeatureNotSupported: the type's equality has no translation (record).
    """
    element = element_type(value.type)
    if element is not None:
        return _array(value, element)
    if is_native(value.type):
        return replace(value, text=equal_form(value.type, value.text))
    if value.type in _OWN_FORM or value.type in object_identifier.TYPES or _is_enum(value.type):
        return value
    match value.type:
        case "bpchar":
            return replace(value, text=f"rtrim({value.text})")
        case "interval":
            key = bound([value], lambda args: interval_key(args[0].text))
            return SqlValue(key, value.type, "DECIMAL(38,0)")
        case "numeric" if value.decimal is not None:
            return value
        case "numeric" | "numrange" | "nummultirange":
            return _replaced(value, _NUMBER, "$1")
        case "jsonb":  # the keys are already sorted
            return _replaced(value, f"{_STRING}|{_NUMBER}", "$1$2")
        case "tsquery":  # CompareTSQ: lexemes and operators
            return _replaced(value, _LEXEME, "$1")
    known = builtin.types().get(value.type)
    if known is not None and (known.has_btree or known.has_hash):
        raise FeatureNotSupported(f"equality of type {known.sql_name} is not supported")
    shown = value.type if known is None else known.sql_name
    raise UndefinedFunction(f"could not identify an equality operator for type {shown}")


class TypedColumn(Protocol):
    """A column of a table or of staged rows."""

    @property
    def type(self) -> str: ...

    @property
    def typmod(self) -> int: ...


def has_own_form(column: TypedColumn) -> bool:
    """Return whether the values of a column are their own matching forms."""
    return matching_form(column, "c") == "c"


def matching_form(column: TypedColumn, value: str) -> str:
    """Return SQL of the form in which a look-up of rows compares the values of a column.

    This is the stored value if equal values are stored identically (as for char(n), which is stored
    with all its blanks), or if the type has no equality.  In all other cases it is the
    normal form.

    Args:
        value: SQL of the stored value.
    """
    if (element_type(column.type) or column.type) == "bpchar" and column.typmod >= 0:
        return value
    stored = storage_type(column.type, column.typmod)
    return grouping_form(SqlValue(value, column.type, stored))


def matches(column: TypedColumn, one: str, other: str, operator: str = "=") -> str:
    """Return the SQL condition that two values of a column are equal in PostgreSQL.

    Args:
        operator: `=`, or `<=>`, for which NULL equals NULL.
    """
    return f"{matching_form(column, one)} {operator} {matching_form(column, other)}"


def matching_group(column: TypedColumn, name: str) -> str:
    """Return the SELECT item for a column in a query that groups by the column's matching form."""
    is_own = matching_form(column, name) == name
    return name if is_own else f"any_value({name}) AS {name}"


def matching_values(column: TypedColumn, values: Sequence[Any]) -> list[Hashable]:
    """Return keys for values of a column in this process.  Keys are equal if the matching forms of
    the values are equal.

    Args:
        values: the values in their wire form (data_type.wire).
    """
    return [_matching_value(column.type, column.typmod, value) for value in values]


def _matching_value(type_name: str, typmod: int, value: Any) -> Hashable:
    element = element_type(type_name)
    if value is None or (type_name == "bpchar" and typmod >= 0):
        return None if value is None else str(value)
    if element is not None:
        return tuple(_matching_value(element, typmod, item) for item in value)
    form: Hashable = value
    match type_name:
        case "float4" | "float8":
            form = repr(float(value) + 0.0)  # NaN is equal to itself, and -0 to 0
        case "bpchar":
            form = value.rstrip(" ")
        case "interval":
            form = (value["m"] * 30 + value["d"]) * MICROSECONDS_OF_DAY + value["us"]
        case "numeric" | "numrange" | "nummultirange" if isinstance(value, str):
            form = re.sub(_NUMBER, r"\1", value)
        case "jsonb":
            form = re.sub(f"{_STRING}|{_NUMBER}", r"\1\2", value)
        case "tsquery":
            form = re.sub(_LEXEME, r"\1", value)
    return form


def interval_key(text: str) -> str:
    """Return SQL of an interval's sort key, for which a month is 30 days and a day is 24 hours."""
    days = f"(({text}).m * 30L + ({text}).d)"
    return f"(CAST({days} AS DECIMAL(38,0)) * {MICROSECONDS_OF_DAY}BD + ({text}).us)"


def grouping_form(value: SqlValue) -> str:
    """Return SQL of a GROUP BY item: the normal form of the value.  For a type without equality it
    is the value itself, since such a column may depend on a grouped key.
    """
    try:
        return normal_form(value).text
    except UndefinedFunction:  # types without equality are compared as stored
        return value.text


def is_shown_by_form(value: SqlValue) -> bool:
    """Return whether Spark shows the stored values if it groups by normal forms.  It does not for
    floats: it shows a group of -0 as 0.
    """
    return grouping_form(value) == value.text and stored_form(value.type, value.text) == value.text


def stored_form(type_name: str, value: str) -> str:
    """Return SQL of a form that differs in `<=>` and GROUP BY if values are stored differently.
    For a float this is its text, because Spark treats -0.0 as 0.0.

    Args:
        value: SQL of a stored value.
    """
    if type_name in _FLOATS:
        return f"CAST({value} AS STRING)"
    if element_type(type_name) in _FLOATS:
        return f"CAST({value} AS ARRAY<STRING>)"
    if is_native(type_name):
        return exact_form(type_name, value)
    return value


def grouped_value(type_name: str, value: str) -> str:
    """Return SQL of a value in a query that groups by its stored form.  All values of a group are
    stored identically.
    """
    return value if stored_form(type_name, value) == value else f"any_value({value})"


def is_stored_alike(type_name: str, one: str, other: str) -> str:
    """Return the SQL condition that two values are stored identically, or are both NULL."""
    return f"{stored_form(type_name, one)} <=> {stored_form(type_name, other)}"


def _array(value: SqlValue, element: str) -> SqlValue:
    """Return the normal form of an array: the array of the elements' normal forms.  Spark and
    PostgreSQL both compare arrays element by element, with NULL equal to NULL.
    """
    item = SqlValue("item_", element, value.spark.removeprefix("ARRAY<").removesuffix(">"))
    normal = normal_form(item)
    if normal == item:
        return value
    text = f"transform({value.text}, item_ -> {normal.text})"
    return SqlValue(text, value.type, f"ARRAY<{normal.spark}>")


def _replaced(value: SqlValue, pattern: str, by: str) -> SqlValue:
    return replace(value, text=f"regexp_replace({value.text}, {quote(pattern)}, {quote(by)})")


def _is_enum(type_name: str) -> bool:
    """Return whether a stored type is an enum; its values are stored as text.  Columns have no
    other user-defined types here: a domain is stored as its base type.
    """
    return type_name.startswith("@")
