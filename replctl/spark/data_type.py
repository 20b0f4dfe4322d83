"""Map PostgreSQL's types to their storage in Delta tables, to Arrow types and to literals.

Wherever possible, Spark compares the stored values like PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from replctl.errors import FeatureNotSupported
from replctl.expr import object_identifier
from replctl.record import dataclass
from replctl.spark.native_form import json_text
from replctl.spark.sql_value import SqlValue, bound, raised_sql
from replctl.types import builtin, delta_type, text
from replctl.types.numeric import precision_and_scale

if TYPE_CHECKING:
    import pyarrow as pa

#: The column of a Delta table whose relation has no columns.
NO_COLUMN = "_"
_MAX_DECIMAL = 38
_SIMPLE = {
    "bool": "BOOLEAN",
    "int2": "SMALLINT",
    "int4": "INT",
    "int8": "BIGINT",
    "oid": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "bytea": "BINARY",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ",
    "timestamptz": "TIMESTAMP",
    "time": "BIGINT",
    "interval": "STRUCT<m: INT, d: INT, us: BIGINT>",
    "pg_lsn": "BIGINT",
}


def storage_type(type_name: str, typmod: int = -1) -> str:
    """Return the Spark type that stores a PostgreSQL type: DECIMAL(10,2) for numeric(10,2), STRING
    for text.
    """
    element = element_type(type_name)
    if element is not None:
        return f"ARRAY<{storage_type(element, typmod)}>"
    if type_name == "numeric":
        decimal = decimal_of(typmod)
        return "STRING" if decimal is None else f"DECIMAL({decimal[0]},{decimal[1]})"
    return delta_type.native_text(type_name) or _SIMPLE.get(type_name, "STRING")


def decimal_of(typmod: int) -> tuple[int, int] | None:
    """Return the precision and scale of a numeric type that fits Spark's DECIMAL; None if its
    values are stored as text.
    """
    if typmod < 0:
        return None
    precision, scale = precision_and_scale(typmod)
    return (precision, scale) if precision <= _MAX_DECIMAL and 0 <= scale <= precision else None


def element_type(type_name: str) -> str | None:
    """Return the element type of an array type, else None."""
    known = builtin.types().get(type_name)
    return known.element if known is not None and known.is_array else None


def quote(value: str) -> str:
    """Return a Spark string literal: `it's` -> `'it\\'s'`."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quote_name(name: str) -> str:
    """Return a Spark identifier: "a`b" -> "`a``b`"."""
    return "`" + name.replace("`", "``") + "`"


def table_name(location: str) -> str:
    """Return the SQL name of the Delta table at a location."""
    return f"delta.{quote_name(location)}"


def literal(type_name: str, typmod: int, value: str | None) -> str:
    """Return a canonical text as a Spark expression, in the storage type of its type."""
    stored = storage_type(type_name, typmod)
    if value is None:
        return f"CAST(NULL AS {stored})"
    if type_name.startswith("@") or type_name in object_identifier.TYPES:
        return quote(value)  # an enum's label, an object's OID
    return value_literal(type_name, typmod, text.parse(type_name, value))


def value_literal(type_name: str, typmod: int, value: Any) -> str:
    """Return a parsed value (types.text) as a Spark expression, in the storage type of its type."""
    stored = storage_type(type_name, typmod)
    if value is None:
        return f"CAST(NULL AS {stored})"
    element = element_type(type_name)
    if element is not None:
        if not isinstance(value, list) or any(isinstance(item, list) for item in value):
            raise FeatureNotSupported(
                "arrays of more than one dimension, or not beginning at 1, are not supported"
            )
        items = ", ".join(value_literal(element, typmod, item) for item in value)
        return f"CAST(array({items}) AS {stored})"
    match type_name:
        case "bool":
            return "TRUE" if value else "FALSE"
        case "pg_lsn":
            return f"CAST({quote(str(signed(value)))} AS {stored})"
        case "int2" | "int4" | "int8" | "oid" | "time":
            return (
                f"CAST({quote(str(value))} AS {stored})"
                if int(value) < 0
                else f"CAST({value} AS {stored})"
            )
        case "float4" | "float8":
            return f"CAST({quote(repr(float(value)))} AS {stored})"
        case "bytea":
            return f"X'{value.hex()}'"
        case "date":
            return f"date_from_unix_date({value})"
        case "timestamptz":
            return f"timestamp_micros({value})"
        case "timestamp":
            return f"CAST(timestamp_micros({value}) AS TIMESTAMP_NTZ)"
        case "interval":
            months, days, micros = value
            return f"named_struct('m', CAST({months} AS INT), 'd', CAST({days} AS INT), 'us', CAST({micros} AS BIGINT))"  # noqa: E501
    rendered = text.render(type_name, value)
    if stored.startswith("DECIMAL") and rendered == "NaN":
        raise not_stored(rendered)
    return quote(rendered) if stored == "STRING" else f"CAST({quote(rendered)} AS {stored})"


def stored_sql(value: SqlValue, type_name: str, typmod: int) -> str:
    """Cast an expression to the storage type of its PostgreSQL type.  A numeric without a precision
    becomes text.
    """
    stored = storage_type(type_name, typmod)
    if value.spark == stored:
        return value.text
    if stored.removeprefix("ARRAY<").startswith("DECIMAL") and value.decimal is None:
        return decimals_of_texts(value, stored)
    return f"CAST({value.text} AS {stored})"


def decimals_of_texts(value: SqlValue, stored: str) -> str:
    """Convert a numeric, or an array of numerics, from text to DECIMAL.  NaN causes an error,
    because DECIMAL has no NaN.
    """
    refused = raised_sql(not_stored("NaN"))
    if value.spark == "STRING":

        def build(args: Sequence[SqlValue]) -> str:
            text = args[0].text
            return f"CASE WHEN {text} = 'NaN' THEN {refused} ELSE CAST({text} AS {stored}) END"

        return f"({bound([value], build)})"
    item = f"if(item_ = 'NaN', {refused}, item_)"
    return f"CAST(transform({value.text}, item_ -> {item}) AS {stored})"


def not_stored(value: object) -> FeatureNotSupported:
    """Return the error for a special value, such as NaN, in a column of type numeric(p,s)."""
    return FeatureNotSupported(f"{value} cannot be stored in a numeric with a precision")


def signed(lsn: int) -> int:
    """Return the BIGINT with the same 64 bits as a pg_lsn; it is negative from 80000000/0 on."""
    return lsn if lsn < 2**63 else lsn - 2**64


def unsigned(value: int) -> int:
    """Return the pg_lsn with the same 64 bits as a BIGINT."""
    return value % 2**64


# ---------------------------------------------------------------------------------------------
# Values between Spark and this process


@dataclass(frozen=True, slots=True)
class Wire:
    """The wire form of a type: the form in which its values pass between Python and Spark.

    `arrow` is the Arrow type, `to_wire` encodes, and `from_wire` decodes.  A native value becomes
    JSON, and `from_wire` decodes it only if it is NULL.  Dates and timestamps become numbers,
    because Python's dates have no infinity and end with the year 9999.
    """

    arrow: pa.DataType
    to_wire: str  # a Spark expression over {0}
    from_wire: str


#: Stands for the value in SQL, until `_template` replaces it by {0}.
_PLACE = "\0"
_NATIVE_RECEIVED = FeatureNotSupported("sending native values to Spark is not supported")


def _template(sql: str) -> str:
    """Convert SQL over the placeholder to a format string over {0}."""
    return sql.replace("{", "{{").replace("}", "}}").replace(_PLACE, "{0}")


def wire(type_name: str, typmod: int = -1) -> Wire:
    """Return the wire form of a type."""
    import pyarrow as pa

    element = element_type(type_name)
    if element is not None:
        inner = wire(element, typmod)
        if inner.to_wire == "{0}":
            return Wire(pa.list_(inner.arrow), "{0}", "{0}")
        return Wire(
            pa.list_(inner.arrow),
            f"transform({{0}}, x -> {inner.to_wire.format('x')})",
            f"transform({{0}}, x -> {inner.from_wire.format('x')})",
        )
    plain = {
        "bool": pa.bool_(),
        "int2": pa.int16(),
        "int4": pa.int32(),
        "int8": pa.int64(),
        "oid": pa.int64(),
        "pg_lsn": pa.int64(),
        "time": pa.int64(),
        "float4": pa.float32(),
        "float8": pa.float64(),
        "bytea": pa.binary(),
        "interval": pa.struct([("m", pa.int32()), ("d", pa.int32()), ("us", pa.int64())]),
    }
    if type_name in plain:
        return Wire(plain[type_name], "{0}", "{0}")
    match type_name:
        case "date":
            return Wire(pa.int32(), "unix_date({0})", "date_from_unix_date({0})")
        case "timestamptz":
            return Wire(pa.int64(), "unix_micros({0})", "timestamp_micros({0})")
        case "timestamp":
            return Wire(
                pa.int64(),
                "unix_micros(CAST({0} AS TIMESTAMP))",
                "CAST(timestamp_micros({0}) AS TIMESTAMP_NTZ)",
            )
    if delta_type.is_native(type_name):
        nothing = f"CAST(NULL AS {storage_type(type_name)})"
        only_null = f"if({_PLACE} IS NULL, {nothing}, {raised_sql(_NATIVE_RECEIVED)})"
        return Wire(pa.string(), _template(json_text(type_name, _PLACE)), _template(only_null))
    decimal = decimal_of(typmod) if type_name == "numeric" else None
    if decimal is not None:
        return Wire(pa.decimal128(*decimal), "{0}", "{0}")
    return Wire(pa.string(), "{0}", "{0}")


def stored_arrow(type_name: str, typmod: int = -1) -> pa.DataType:
    """Return the Arrow type of a PostgreSQL type's values in Spark's data files."""
    import pyarrow as pa

    element = element_type(type_name)
    if element is not None:
        return pa.list_(stored_arrow(element, typmod))
    times = {
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
        "timestamptz": pa.timestamp("us", "UTC"),
    }
    return times.get(type_name) or wire(type_name, typmod).arrow


def to_wire_value(type_name: str, typmod: int, value: Any) -> Any:
    """Convert a parsed value (types.text) to its wire form."""
    if value is None:
        return None
    element = element_type(type_name)
    if element is not None:
        if not isinstance(value, list) or any(isinstance(item, list) for item in value):
            raise FeatureNotSupported(
                "arrays of more than one dimension, or not beginning at 1, are not supported"
            )
        return [to_wire_value(element, typmod, item) for item in value]
    if type_name == "interval":
        months, days, micros = value
        return {"m": months, "d": days, "us": micros}
    if type_name == "pg_lsn":
        return signed(value)
    if type_name == "numeric" and decimal_of(typmod) is not None:
        if not value.is_finite():
            raise not_stored(value)
        return value
    if storage_type(type_name, typmod) == "STRING":
        return text.render(type_name, value)
    return value


def wire_of_text(type_name: str, typmod: int, value: str | None) -> Any:
    """Convert a canonical text to the wire form of its value."""
    if value is None or storage_type(type_name, typmod) == "STRING":
        return value
    return to_wire_value(type_name, typmod, text.parse(type_name, value))


def text_of_wire(type_name: str, value: Any) -> str | None:
    """Convert a value from its wire form to the text form of its type."""
    if value is not None and delta_type.is_native(type_name):
        return text.canonical(delta_type.SHOWN_AS, value)
    if value is None or isinstance(value, str):
        return value
    return text.render(type_name, _parsed(type_name, value))


def _parsed(type_name: str, value: Any) -> Any:
    element = element_type(type_name)
    if value is None:
        return None
    if element is not None:
        return [_parsed(element, item) for item in value]
    if type_name == "interval":
        return (value["m"], value["d"], value["us"])
    if type_name == "pg_lsn":
        return unsigned(value)
    return text.parse(type_name, value) if isinstance(value, str) else value
