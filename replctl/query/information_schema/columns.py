"""information_schema: columns, and the properties of their types."""

from __future__ import annotations

from collections.abc import Iterator

from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.pg_domain import get_domain
from replctl.catalog.pg_sequence import owned_sequences
from replctl.catalog.pg_type import type_schema_oid
from replctl.catalog.relation_kind import TABLE_KINDS, RelKind
from replctl.catalog.ruleutils import get_expr
from replctl.expr import nodes
from replctl.functions.function_context import FunctionContext
from replctl.query.information_schema.visibility import (
    COLUMN_RIGHTS,
    TABLES_AND_VIEWS,
    Row,
    has_any,
    place,
    relations,
    yes_or_no,
)
from replctl.types.builtin import not_null_system_columns, system_relations_by_oid, types
from replctl.types.interval_field import FULL_PRECISION, RANGE_NAMES, range_and_precision

_BITS = {"int2": 16, "int4": 32, "int8": 64, "float4": 24, "float8": 53}
_OCTETS = 4  # longest character of UTF-8, in bytes
_ANY_LENGTH = 2**30


def _columns(context: FunctionContext) -> Iterator[Row]:
    privileges = context.environment.privileges
    for relation in relations(context, TABLES_AND_VIEWS):
        for number, column in _numbered(relation):
            if has_any(privileges, relation, (), COLUMN_RIGHTS, [column.attnum]):
                yield _column(context, relation, column, number)
    not_null = not_null_system_columns()
    for system in system_relations_by_oid().values():
        for number, (name, type_) in enumerate(system.columns, start=1):
            known = type_row(context, type_, -1) if type_ in types() else {}
            yield {
                **place(context, system), "column_name": name, "ordinal_position": number,
                "is_nullable": yes_or_no((system.oid, name) not in not_null), **known,
                "dtd_identifier": str(number), "is_self_referencing": "NO", "is_identity": "NO",
                "identity_cycle": "NO", "is_generated": "NEVER",
                "is_updatable": yes_or_no(system.kind == RelKind.TABLE),
            }  # fmt: skip


def _numbered(relation: Relation) -> Iterator[tuple[int, Column]]:
    return ((column.attnum, column) for column in relation.columns)


def _column(context: FunctionContext, relation: Relation, column: Column, number: int) -> Row:
    default = None
    if column.default is not None and not column.identity:
        default = get_expr(context.environment, relation, column.default)
    return {
        **place(context, relation),
        "column_name": column.name,
        "ordinal_position": number,
        "column_default": None if column.generated else default,
        "is_nullable": yes_or_no(not (column.not_null or forbids_null(context, column))),
        **declared_row(context, column),
        **collation_row(context, column.collation),
        "dtd_identifier": str(number),
        "is_self_referencing": "NO",
        "is_identity": yes_or_no(column.identity),
        **_identity(context, relation, column),
        "is_generated": "ALWAYS" if column.generated else "NEVER",
        "generation_expression": default if column.generated else None,
        "is_updatable": yes_or_no(relation.kind != RelKind.VIEW),
    }


def declared_row(context: FunctionContext, column: Column) -> Row:
    """Return the type of a column. For a domain, return its base type and the domain's name."""
    if not column.domain:
        return type_row(context, column.declared_type, column.typmod)
    domain = get_domain(context.catalog, column.domain)
    return {
        **type_row(context, domain.base, domain.typmod),
        **domain_place(context, column.domain),
    }


def forbids_null(context: FunctionContext, column: Column) -> bool:
    """Return whether the column's domain itself forbids NULL; domains below it do not count."""
    return column.domain != "" and get_domain(context.catalog, column.domain).not_null


def domain_place(context: FunctionContext, name: str) -> Row:
    """Return the columns `domain_catalog`, `domain_schema` and `domain_name` for a domain."""
    environment = context.environment
    return {
        "domain_catalog": environment.database,
        "domain_schema": environment.schema_name(type_schema_oid(context.catalog, name)),
        "domain_name": environment.type(name).sql_name,
    }


def type_row(context: FunctionContext, name: str, typmod: int) -> Row:
    """Return data_type, udt_*, and the length and precision columns of a type."""
    environment = context.environment
    type_ = environment.type(name)
    is_builtin = type_.is_builtin
    if type_.is_array:
        data_type = "ARRAY"
    else:
        data_type = environment.format_type(name) if is_builtin else "USER-DEFINED"
    place_ = 11 if is_builtin else type_schema_oid(context.catalog, name)
    row: Row = {
        "data_type": data_type,
        "udt_catalog": environment.database,
        "udt_schema": environment.schema_name(place_),
        "udt_name": type_.sql_name if not is_builtin else type_.name,
    }
    return row | _sizes(name, typmod)


def _sizes(name: str, typmod: int) -> Row:
    match name:
        case "varchar" | "bpchar" | "text":
            length = typmod - 4 if typmod >= 0 and name != "text" else None
            octets = _ANY_LENGTH if length is None else length * _OCTETS
            return {"character_maximum_length": length, "character_octet_length": octets}
        case "bit" | "varbit":
            return {"character_maximum_length": None if typmod < 0 else typmod}
        case "int2" | "int4" | "int8":
            return {
                "numeric_precision": _BITS[name], "numeric_precision_radix": 2, "numeric_scale": 0,
            }  # fmt: skip
        case "float4" | "float8":
            return {"numeric_precision": _BITS[name], "numeric_precision_radix": 2}
        case "numeric":
            row: Row = {"numeric_precision_radix": 10}
            if typmod >= 0:
                row["numeric_precision"] = (typmod - 4) >> 16 & 0xFFFF
                row["numeric_scale"] = typmod - 4 & 0xFFFF
            return row
        case "date":
            return {"datetime_precision": 0}
        case "time" | "timetz" | "timestamp" | "timestamptz":
            return {"datetime_precision": 6 if typmod < 0 else typmod}
        case "interval":
            fields, digits = range_and_precision(typmod)
            has_digits = digits != FULL_PRECISION
            words = RANGE_NAMES[fields].strip().upper()
            return {
                "datetime_precision": digits if has_digits else 6,
                "interval_type": f"{words}({digits})" if words and has_digits else words or None,
            }
    return {}


def collation_row(context: FunctionContext, collation: str | None) -> Row:
    if collation in (None, "default"):
        return {}
    return {
        "collation_catalog": context.environment.database,
        "collation_schema": "pg_catalog",
        "collation_name": collation,
    }


def _identity(context: FunctionContext, relation: Relation, column: Column) -> Row:
    row: Row = {"identity_cycle": "NO"}
    if not column.identity:
        return row
    row["identity_generation"] = column.identity.clause
    for sequence in owned_sequences(context.catalog, relation.oid, column.attnum):
        row |= {
            "identity_start": str(sequence.start),
            "identity_increment": str(sequence.increment),
            "identity_maximum": str(sequence.maximum),
            "identity_minimum": str(sequence.minimum),
            "identity_cycle": yes_or_no(sequence.cycles),
        }
    return row


def _column_column_usage(context: FunctionContext) -> Iterator[Row]:
    """Yield each generated column with each column that its expression uses."""
    privileges = context.environment.privileges
    for relation in relations(context, TABLE_KINDS):
        for column in relation.columns:
            if not column.generated or column.default is None:
                continue
            used = {n.attnum for n in nodes.walk(column.default) if isinstance(n, nodes.Var)}
            for attnum in sorted(used):
                if privileges.acts_for(relation.owner):
                    yield {
                        **place(context, relation),
                        "column_name": relation.column_at(attnum).name,
                        "dependent_column": column.name,
                    }


VIEWS = {
    "columns": _columns,
    "column_column_usage": _column_column_usage,
}
