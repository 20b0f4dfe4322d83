"""Dump schemas, types, functions and operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from replctl.catalog import schema
from replctl.catalog.acl import ALL_RIGHTS, AclItem, Privilege, decode_acl
from replctl.catalog.aclchk import function_acl
from replctl.catalog.composite_type import composite_of_type
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_description import get_comment
from replctl.catalog.pg_domain import get_domain
from replctl.catalog.pg_proc import UserFunction, UserOperator, list_functions, list_operators
from replctl.catalog.pg_type import type_name
from replctl.catalog.type_definition import (
    composite_statement,
    domain_statements,
    enum_statement,
)
from replctl.dump.dumped_privilege import acl_entries
from replctl.dump.entry import Entry
from replctl.dump.source import Source, expression_keys, type_key
from replctl.errors import FeatureNotSupported
from replctl.types.quote import quote_identifier, quote_qualified_identifier
from replctl.types.type_kind import TypeKind

_DATABASE_OWNER = 6171
#: The initial access list of schema public (initdb.c).
_PUBLIC_ACL = (
    AclItem(_DATABASE_OWNER, _DATABASE_OWNER, ALL_RIGHTS["schema"]),
    AclItem(0, _DATABASE_OWNER, Privilege.USAGE),
)
_PUBLIC_COMMENT = "standard public schema"


def schemas(source: Source) -> Iterator[Entry]:
    """Yield all schemas; for `public` only what differs from initdb's schema (dumpNamespace)."""
    table = schema.pg_namespace
    for row in source.catalog.select(table, order_by=[table.c.nspname]):
        if row.nspname in ("pg_catalog", "information_schema"):
            continue
        name, oid, owner = quote_identifier(row.nspname), int(row.oid), int(row.nspowner)
        entry = Entry(
            "SCHEMA",
            row.nspname,
            f"CREATE SCHEMA {name};\n",
            owner=source.role_name(owner),
            owned=f"SCHEMA {name}",
            key=("pg_namespace", oid),
        )
        base = None
        if row.nspname == "public":
            entry = replace(entry, text="-- *not* creating schema, since initdb creates it\n")
            base = _PUBLIC_ACL
        is_initial = base is not None and owner == _DATABASE_OWNER
        if not is_initial or get_comment(source.catalog, "pg_namespace", oid) != _PUBLIC_COMMENT:
            entry = source.commented(entry, "pg_namespace", oid, "SCHEMA", name)
        if not is_initial or entry.comments:
            yield entry
        acl = decode_acl(row.nspacl)
        yield from acl_entries(source, "schema", acl, owner, name=name, like=entry, base=base)


def types(source: Source) -> Iterator[Entry]:
    """Yield user-defined types, except the row types of tables (dumpType).

    Raises:
        FeatureNotSupported: replctl cannot dump a type of this kind.
    """
    table = schema.pg_type
    for row in source.catalog.select(table, order_by=[table.c.oid]):
        composite = composite_of_type(source.catalog, type_name(int(row.oid)))
        if row.typelem or (row.typtype == TypeKind.COMPOSITE and composite is None):
            continue
        if composite is not None:
            entry = _composite(source, row, composite)
        elif row.typtype in (TypeKind.ENUM, TypeKind.DOMAIN):
            entry = _enum(source, row) if row.typtype == TypeKind.ENUM else _domain(source, row)
        else:
            raise FeatureNotSupported(f'dumping type "{row.typname}" is not supported')
        yield entry
        name = quote_qualified_identifier(entry.schema, row.typname)
        acl = decode_acl(row.typacl)
        yield from acl_entries(source, "type", acl, int(row.typowner), name=name, like=entry)


def _enum(source: Source, row: Any) -> Entry:
    return _created_type(source, row, enum_statement(source.environment, type_name(int(row.oid))))


def _composite(source: Source, row: Any, relation: Relation) -> Entry:
    """Return CREATE TYPE, with the comments on attributes (dumpCompositeType)."""
    statement = composite_statement(source.environment, type_name(int(row.oid)))
    entry = _created_type(source, row, statement)
    keys = (key for column in relation.columns for key in type_key(column.declared_type))
    entry = replace(entry, needs=frozenset(keys))
    for column in relation.columns:
        name = f"{relation.quoted_name}.{quote_identifier(column.name)}"
        number = column.attnum
        entry = source.commented(entry, "pg_class", relation.oid, "COLUMN", name, number)
    return entry


def _created_type(source: Source, row: Any, statement: str) -> Entry:
    oid, schema_name = int(row.oid), source.schema_name(int(row.typnamespace))
    name = quote_qualified_identifier(schema_name, row.typname)
    entry = Entry(
        "TYPE",
        row.typname,
        f"{statement};\n",
        schema_name,
        source.role_name(int(row.typowner)),
        f"TYPE {name}",
        key=("pg_type", oid),
        parts=(("pg_type", int(row.typarray)),),
    )
    return source.commented(entry, "pg_type", oid, "TYPE", name)


def _domain(source: Source, row: Any) -> Entry:
    """Return CREATE DOMAIN, followed by the constraints that are not validated (dumpDomain)."""
    oid, schema_name = int(row.oid), source.schema_name(int(row.typnamespace))
    name = quote_qualified_identifier(schema_name, row.typname)
    domain = get_domain(source.catalog, type_name(oid))
    statements = domain_statements(source.environment, type_name(oid))
    text = "\n".join(f"{statement};\n" for statement in statements)
    checks = [item.check for item in domain.constraints]
    entry = Entry(
        "DOMAIN",
        row.typname,
        text,
        schema_name,
        source.role_name(int(row.typowner)),
        f"DOMAIN {name}",
        key=("pg_type", oid),
        parts=(("pg_type", int(row.typarray)),),
        needs=frozenset([*type_key(domain.base), *expression_keys([domain.default, *checks])]),
    )
    entry = source.commented(entry, "pg_type", oid, "DOMAIN", name)
    for item in domain.constraints:
        what = f"CONSTRAINT {quote_identifier(item.name)} ON DOMAIN"
        entry = source.commented(entry, "pg_constraint", item.oid, what, name)
    return entry


def functions(source: Source) -> Iterator[Entry]:
    """Yield the user-defined functions (dumpFunc)."""
    for function in list_functions(source.catalog):
        schema_name = source.schema_name(function.schema_oid)
        types_shown = ", ".join(map(source.environment.format_type, function.arguments))
        prefix = quote_qualified_identifier(schema_name, function.name)
        signature = f"{prefix}({_arguments(source, function)})"
        result = source.environment.format_type(function.result)
        returns = f"SETOF {result}" if function.returns_set else result
        entry = Entry(
            "FUNCTION",
            f"{function.name}({types_shown})",
            f"CREATE FUNCTION {signature} RETURNS {returns}\n"
            f"    LANGUAGE {quote_identifier(function.language)}{function.attributes}\n"
            f"    AS {dollar_quoted(function.body)};\n",
            schema_name,
            source.role_name(function.owner),
            f"FUNCTION {signature}",
            key=("pg_proc", function.oid),
            needs=frozenset(
                key for name in (function.result, *function.arguments) for key in type_key(name)
            ),
        )
        yield source.commented(entry, "pg_proc", function.oid, "FUNCTION", signature)
        acl = function_acl(source.catalog, function.oid)
        yield from acl_entries(source, "function", acl, function.owner, name=signature, like=entry)


def _arguments(source: Source, function: UserFunction) -> str:
    """Return a function's arguments: `a integer, text`."""
    shown = []
    for name, type_ in zip(function.argument_names, function.arguments, strict=True):
        formatted = source.environment.format_type(type_)
        shown.append(f"{quote_identifier(name)} {formatted}" if name else formatted)
    return ", ".join(shown)


def dollar_quoted(text: str) -> str:
    """Return a text with dollar quotes, such as `$$select 1$$`, and with a tag that the text does
    not contain (appendStringLiteralDQ).
    """
    delimiter, letters = "$", iter("_XXXXXXX" * (len(text) // 8 + 2))
    while delimiter in text:
        delimiter += next(letters)
    return f"{delimiter}${text}{delimiter}$"


def operators(source: Source) -> Iterator[Entry]:
    """Yield the user-defined operators (dumpOpr)."""
    for operator in list_operators(source.catalog):
        schema_name = source.schema_name(operator.schema_oid)
        function = source.environment.function(operator.function_oid)
        function_schema = source.environment.function(operator.function_oid).schema
        fields = [f"FUNCTION = {quote_qualified_identifier(function_schema, function.name)}"]
        for word, type_ in (("LEFTARG", operator.left), ("RIGHTARG", operator.right)):
            if type_:
                fields.append(f"{word} = {source.environment.format_type(type_)}")
        body = ",\n    ".join(fields)
        name = f"{quote_identifier(schema_name)}.{operator.name}"
        signature = f"{name} ({_operands(source, operator)})"
        entry = Entry(
            "OPERATOR",
            operator.name,
            f"CREATE OPERATOR {name} (\n    {body}\n);\n",
            schema_name,
            source.role_name(operator.owner),
            f"OPERATOR {signature}",
            key=("pg_operator", operator.oid),
            needs=frozenset(
                [
                    ("pg_proc", operator.function_oid),
                    *(key for name in (operator.left, operator.right) for key in type_key(name)),
                ]
            ),
        )
        yield source.commented(entry, "pg_operator", operator.oid, "OPERATOR", signature)


def _operands(source: Source, operator: UserOperator) -> str:
    left = source.environment.format_type(operator.left) if operator.left else "NONE"
    return f"{left}, {source.environment.format_type(operator.right)}"
