"""Convert values through their text form: casts by I/O functions, and replication between columns
of different types.
"""

from __future__ import annotations

from replctl.errors import FeatureNotSupported
from replctl.spark import numeric_sql
from replctl.spark.data_type import (
    decimal_of,
    decimals_of_texts,
    element_type,
    quote,
    storage_type,
    wire,
)
from replctl.spark.received_row import row_definition
from replctl.spark.sql_value import SqlValue, bound, raise_error_sql, raise_value_error_sql
from replctl.spark.values import EnumType, RowType

_STRINGS = frozenset(["text", "varchar", "bpchar", "name", "json", "unknown"])
_BY_PYTHON = frozenset(
    [
        "bool",
        "float4",
        "float8",
        "date",
        "timestamp",
        "timestamptz",
        "time",
        "interval",
        "bytea",
        "json",
        "jsonb",
        "uuid",
        "int2",
        "int4",
        "int8",
    ]
)


_SHOWN_BY_SPARK = ("int2", "int4", "int8", "numeric", "uuid", "jsonb")


def convert(value: SqlValue, target: str, enum: EnumType | None = None) -> SqlValue:
    """Translate a cast through the output and input functions, without a type modifier, if Spark
    can do it without Python.

    Args:
        enum: the enum if `target` is one.

    Raises:
        FeatureNotSupported: Spark cannot do it.
    """
    if enum is not None and value.type in _STRINGS:
        text = bound([to_text(value)], lambda args: _label(args[0].text, enum))
        return SqlValue(f"({text})", target, "STRING")
    if (target in ("text", "varchar") and value.type in (*_STRINGS, *_SHOWN_BY_SPARK)) or (
        (value.type, target) == ("jsonb", "json")
    ):
        return SqlValue(to_text(value).text, target, "STRING")
    raise FeatureNotSupported(f"conversion of type {value.type} to {target} is not supported")


def replicate(
    value: SqlValue,
    source_typmod: int,
    target: str,
    typmod: int,
    user_type: EnumType | RowType | None = None,
) -> SqlValue:
    """Convert a replicated value to a target column's storage type.  If the types differ, convert
    it through its text form, with the target's type modifier.

    Args:
        user_type: the target's enum, the enum of the elements of its array, or its composite type.
            Spark always checks labels and rows, because two clusters may use the same OID for
            different types.

    Raises:
        FeatureNotSupported: there is no conversion.
    """
    if isinstance(user_type, RowType):
        read = f"replctl_row({to_text(value).text}, {quote(row_definition(user_type))})"
        return SqlValue(read, target, "STRING")
    if user_type is not None and element_type(target) is None:
        return SqlValue(_label(to_text(value).text, user_type), target, "STRING")
    if user_type is not None:
        array = replicate(value, source_typmod, target, typmod).text
        checked = f"transform({array}, item_ -> {_label('item_', user_type)})"
        return SqlValue(checked, target, storage_type(target))
    if (
        value.spark == storage_type(target, typmod)
        and value.type == target
        and typmod in (-1, source_typmod)
        and target not in ("varchar", "bpchar")
    ):
        return value
    return from_text(to_text(value), target, typmod)


def to_text(value: SqlValue) -> SqlValue:
    """Convert a value to a text with the type's output function."""
    if value.type in _STRINGS:
        return SqlValue(value.text, "text", "STRING")
    if value.type in ("int2", "int4", "int8", "oid"):
        return SqlValue(f"CAST({value.text} AS STRING)", "text", "STRING")
    if value.type == "numeric":
        return SqlValue(numeric_sql.as_text(value).text, "text", "STRING")
    if value.type in ("uuid", "jsonb"):
        return SqlValue(value.text, "text", "STRING")
    if value.type in _BY_PYTHON or element_type(value.type) is not None:
        sent = wire(value.type).to_wire.format(value.text)
        return SqlValue(f"replctl_out_{value.type}({sent})", "text", "STRING")
    if value.spark == "STRING":
        return SqlValue(value.text, "text", "STRING")
    raise FeatureNotSupported(f"the text form of type {value.type} is not supported")


def from_text(value: SqlValue, target: str, typmod: int) -> SqlValue:
    """Convert a text to a value with the type's input function."""
    spark = storage_type(target, typmod)
    if target in ("text", "name", "unknown"):
        return SqlValue(value.text, target, "STRING")
    if target in ("varchar", "bpchar"):
        return SqlValue(fitted_sql(value.text, target, typmod), target, "STRING")
    if target == "numeric":
        if typmod < 0:
            return SqlValue(f"replctl_numeric_canonical({value.text})", target, "STRING")
        checked = f"replctl_numeric_coerce({value.text}, {typmod})"
        if decimal_of(typmod) is None:
            return SqlValue(checked, target, "STRING")
        return SqlValue(f"CAST({checked} AS {spark})", target, spark)
    if target in _BY_PYTHON or element_type(target) is not None:
        received = wire(target).from_wire.format(f"replctl_in_{target}({value.text}, {typmod})")
        if element_type(target) == "numeric" and decimal_of(typmod) is not None:
            received = decimals_of_texts(SqlValue(received, target, "ARRAY<STRING>"), spark)
        return SqlValue(received, target, spark)
    raise FeatureNotSupported(f"conversion of text to type {target} is not supported")


def _label(text: str, enum: EnumType) -> str:
    """Return SQL of the text, with an error if it is not a label of the enum (enum_in)."""
    labels = ", ".join(map(quote, enum.labels))
    is_label = f"{text} IN ({labels})" if labels else "FALSE"
    error = raise_value_error_sql(
        "22P02", f'invalid input value for enum {enum.name}: "', text, '"'
    )
    return f"CASE WHEN {is_label} THEN {text} WHEN {text} IS NOT NULL THEN {error} END"


def fitted_sql(text: str, target: str, typmod: int, detail: str = "") -> str:
    """Return SQL that converts a text to varchar(n) or char(n).  A text that is too long causes an
    error unless only trailing blanks exceed the length.

    Args:
        detail: the DETAIL of the error.
    """
    if typmod < 0:
        return text
    length = typmod - 4
    shown = "character varying" if target == "varchar" else "character"
    error = raise_error_sql("22001", f"value too long for type {shown}({length})", detail)
    fitted = (
        f"substring({text}, 1, {length})" if target == "varchar" else f"rpad({text}, {length}, ' ')"
    )
    return (
        f"CASE WHEN length({text}) <= {length} OR length(rtrim({text})) <= {length} THEN {fitted}"
        f" WHEN {text} IS NOT NULL THEN {error} END"
    )
