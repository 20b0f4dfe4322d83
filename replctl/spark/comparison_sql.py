"""Translate comparisons so that each type has PostgreSQL's order and equality."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from replctl.errors import FeatureNotSupported, UndefinedFunction
from replctl.spark import numeric_sql
from replctl.spark.data_type import element_type
from replctl.spark.normal_form import interval_key, normal_form
from replctl.spark.sql_value import SqlValue

#: Types whose stored values Spark compares like PostgreSQL.
_DIRECT = frozenset(
    [
        "bool",
        "int2",
        "int4",
        "int8",
        "oid",
        "float4",
        "float8",
        "text",
        "varchar",
        "name",
        "uuid",
        "bytea",
        "date",
        "timestamp",
        "timestamptz",
        "time",
        "unknown",
    ]
)
#: The days and microseconds since 1970-01-01 that represent infinity, and those for -infinity.
INFINITE_DATES = ((2147483647, 9223372036854775807), (-2147483648, -9223372036854775808))
#: The last day (since 1970-01-01) whose midnight Spark has as a timestamp, and Spark's last
#: timestamp.
_LAST_DAY = 106751991
_LAST_TIMESTAMP = "CAST(timestamp_micros(9223372036854775806) AS TIMESTAMP_NTZ)"


def is_comparable(value: SqlValue) -> bool:
    """Return whether Spark can compare values of this type like PostgreSQL."""
    element = element_type(value.type)
    if element is not None:
        return element in _DIRECT
    return value.type in _DIRECT or value.type in ("bpchar", "interval", "numeric", "pg_lsn")


def comparison(operator: str, left: SqlValue, right: SqlValue) -> SqlValue:
    """Return `left operator right`, for =, <>, <, <=, >, >=.

    Raises:
        FeatureNotSupported: the types have no exact comparison in Spark.
    """
    if operator in ("=", "<>"):
        a, b = equality_operands(left, right)
    elif left.type == "numeric" or right.type == "numeric":
        a, b = numeric_sql.comparison_operands(left, right)
    else:
        a, b = _operands(left, right)
    return SqlValue(f"({a} {operator} {b})", "bool", "BOOLEAN")


def is_distinct(left: SqlValue, right: SqlValue) -> SqlValue:
    """Return `left IS DISTINCT FROM right`, for which NULL equals NULL."""
    a, b = equality_operands(left, right)
    return SqlValue(f"(NOT ({a} <=> {b}))", "bool", "BOOLEAN")


def equality_operands(left: SqlValue, right: SqlValue) -> tuple[str, str]:
    """Return SQL of two values that are equal in Spark if and only if `left` and `right` are equal
    in PostgreSQL.

    Raises:
        FeatureNotSupported: the types have no exact equality in Spark.
    """
    if "numeric" in (left.type, right.type):
        left, right = numeric_sql.from_integer(left), numeric_sql.from_integer(right)
    types = {left.type, right.type}
    if types == {"numeric"} and None not in (left.decimal, right.decimal):
        with suppress(FeatureNotSupported):  # too wide for one DECIMAL
            return numeric_sql.comparison_operands(left, right)
    if types == {"numeric"}:
        left, right = numeric_sql.as_text(left), numeric_sql.as_text(right)
    elif len(types) > 1 or types <= _DIRECT or types == {"bpchar"}:
        return _operands(left, right)
    try:
        return normal_form(left).text, normal_form(right).text
    except UndefinedFunction as error:  # the type has no operator class with =
        raise FeatureNotSupported(f"comparison of {left.type} is not supported") from error


def greatest_or_least(op: str, args: Sequence[SqlValue]) -> SqlValue:
    """Translate GREATEST or LEAST; both ignore NULLs."""
    if len(args) == 1:
        return args[0]
    first = args[0]
    if first.type not in _DIRECT and any(arg.decimal is None for arg in args):
        raise FeatureNotSupported(f"{op.upper()} of type {first.type} is not supported")
    return SqlValue(f"{op}({', '.join(arg.text for arg in args)})", first.type, first.spark)


def same_type(args: Sequence[SqlValue], *, by_value: bool = False) -> list[SqlValue]:
    """Convert values of one PostgreSQL type to one Spark type: numerics to one DECIMAL type.

    Raises:
        FeatureNotSupported: no Spark type can represent all values exactly.
    """
    if len({arg.spark for arg in args}) <= 1 or args[0].type != "numeric":
        return list(args)
    return numeric_sql.same_type(args, by_value=by_value)


def date_as_timestamp(value: SqlValue, beyond: str) -> str:
    """Convert a date to TIMESTAMP_NTZ; infinite dates become infinite timestamps.

    Args:
        beyond: SQL of the result for a finite date after the last timestamp.
    """
    whens = " ".join(
        f"WHEN {value.text} = date_from_unix_date({days}) THEN CAST(timestamp_micros({micros}) AS TIMESTAMP_NTZ)"  # noqa: E501
        for days, micros in INFINITE_DATES
    )
    late = f"unix_date({value.text}) > {_LAST_DAY}"
    return f"(CASE {whens} WHEN {late} THEN {beyond} ELSE CAST({value.text} AS TIMESTAMP_NTZ) END)"


def lsn_key(text: str) -> str:
    """Return SQL of a sort key for an LSN, which is stored as 64 unsigned bits in a signed
    BIGINT."""
    return f"({text} ^ CAST('-9223372036854775808' AS BIGINT))"


def _operands(left: SqlValue, right: SqlValue) -> tuple[str, str]:
    types = {left.type, right.type}
    if types <= {"text", "varchar", "name", "unknown"}:
        return left.text, right.text
    if "bpchar" in types and types <= {"bpchar", "text", "varchar", "unknown"}:
        return f"rtrim({left.text})", f"rtrim({right.text})"
    if types == {"interval"}:
        return interval_key(left.text), interval_key(right.text)
    if types == {"date", "timestamp"}:
        return tuple(  # type: ignore[return-value]
            date_as_timestamp(value, _LAST_TIMESTAMP) if value.type == "date" else value.text
            for value in (left, right)
        )
    if types == {"pg_lsn"}:
        return lsn_key(left.text), lsn_key(right.text)
    numbers = {"int2", "int4", "int8", "oid"}
    if (len(types) == 1 and types <= _DIRECT) or types <= numbers or types <= {"float4", "float8"}:
        return without_limits(left.text, left.type), without_limits(right.text, right.type)
    raise FeatureNotSupported(f"comparison of {left.type} with {right.type} is not supported")


def without_limits(text: str, type_: str) -> str:
    """Return SQL of a value.  For a float, Spark and Delta do not compare the SQL with the minimum
    and maximum of files: these leave out NaN, which is greater than the maximum.
    """
    return f"({text} + 0F)" if type_ in ("float4", "float8") else text
