"""information_schema: roles, their memberships and privileges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from replctl.catalog import schema
from replctl.catalog.acl import PUBLIC, AclItem, Privilege, decode_acl, default_acl
from replctl.catalog.aclchk import column_acls, function_acl, privileges_of, relation_acl
from replctl.catalog.pg_authid import memberships, role_names
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_proc import list_functions
from replctl.catalog.relation_kind import RelKind
from replctl.functions.function_context import FunctionContext
from replctl.query.information_schema.routines import routine_place
from replctl.query.information_schema.visibility import (
    COLUMN_RIGHTS,
    TABLE_RIGHTS,
    TABLES_AND_VIEWS,
    Row,
    collations,
    place,
    relations,
    yes_or_no,
)
from replctl.types.type_kind import TypeKind


def _enabled_roles(context: FunctionContext) -> Iterator[Row]:
    privileges = context.environment.privileges
    for oid, name in role_names(context.catalog).items():
        if privileges.acts_for(oid):
            yield {"role_name": name}


def _applicable_roles(context: FunctionContext) -> Iterator[Row]:
    """Yield the memberships of the current role, and of the roles whose privileges it has."""
    names, privileges = role_names(context.catalog), context.environment.privileges
    for membership in memberships(context.catalog):
        if privileges.acts_for(membership.member):
            yield {
                "grantee": names[membership.member],
                "role_name": names[membership.role],
                "is_grantable": yes_or_no(membership.is_admin),
            }


def _administrable_roles(context: FunctionContext) -> Iterator[Row]:
    return (row for row in _applicable_roles(context) if row["is_grantable"] == "YES")


def _relation_items(context: FunctionContext, relation: Relation) -> tuple[AclItem, ...]:
    acl = relation_acl(context.catalog, relation.oid)
    return default_acl("table", relation.owner) if acl is None else acl


def _granted(
    context: FunctionContext, owner: int, item: AclItem, privilege: Privilege
) -> Row | None:
    """Return the row of a privilege, without its object; None if the current role may not see it.

    The role sees privileges of PUBLIC.  It also sees the privileges whose grantor or grantee is the
    role itself, or a role whose privileges it has.
    """
    privileges, names = context.environment.privileges, role_names(context.catalog)
    is_public = item.grantee == PUBLIC
    if not is_public and not any(map(privileges.acts_for, (item.grantor, item.grantee))):
        return None
    grantee = privileges_of(context.environment.catalog, item.grantee)
    is_owner = not is_public and grantee.acts_for(owner)
    return {
        "grantor": names[item.grantor],
        "grantee": "PUBLIC" if is_public else names[item.grantee],
        "privilege_type": privilege.word,
        "is_grantable": yes_or_no(is_owner or privilege in item.options),
    }


def _table_privileges(context: FunctionContext) -> Iterator[Row]:
    for relation in relations(context, TABLES_AND_VIEWS):
        for item in _relation_items(context, relation):
            for letter in item.privileges:
                if letter not in TABLE_RIGHTS:
                    continue
                row = _granted(context, relation.owner, item, Privilege(letter))
                if row is not None:
                    yield {
                        **row, **place(context, relation),
                        "with_hierarchy": yes_or_no(letter == Privilege.SELECT),
                    }  # fmt: skip


def _column_privileges(context: FunctionContext) -> Iterator[Row]:
    for relation in relations(context, TABLES_AND_VIEWS):
        acls = column_acls(context.catalog, relation.oid)
        for column in relation.columns:
            seen = set()
            items = (*_relation_items(context, relation), *acls.get(column.attnum, ()))
            for item in items:
                for letter in item.privileges:
                    if letter not in COLUMN_RIGHTS:
                        continue
                    row = _granted(context, relation.owner, item, Privilege(letter))
                    key = () if row is None else tuple(row.values())
                    if row is not None and key not in seen:
                        seen.add(key)
                        yield {**row, **place(context, relation), "column_name": column.name}


def _routine_privileges(context: FunctionContext) -> Iterator[Row]:
    """Yield the privileges on user-defined functions."""
    for function in list_functions(context.catalog):
        acl = function_acl(context.catalog, function.oid)
        for item in default_acl("function", function.owner) if acl is None else acl:
            row = _granted(context, function.owner, item, Privilege.EXECUTE)
            if row is not None:
                yield {**row, **routine_place(context, function)}


def _udt_privileges(context: FunctionContext) -> Iterator[Row]:
    """Yield the privileges on composite types, also those of the rows of tables and views."""
    for type_, row in _type_privileges(context, TypeKind.COMPOSITE):
        yield {
            **row, "privilege_type": "TYPE USAGE", "udt_catalog": context.environment.database,
            "udt_schema": context.environment.schema_name(int(type_.typnamespace)),
            "udt_name": type_.typname,
        }  # fmt: skip


def _type_privileges(context: FunctionContext, kind: TypeKind) -> Iterator[tuple[Any, Row]]:
    """Yield each type of a kind, as a row of pg_type, with each visible privilege on it."""
    for type_ in context.catalog.select(schema.pg_type):
        if type_.typtype != kind:
            continue
        owner, acl = int(type_.typowner), decode_acl(type_.typacl)
        for item in default_acl("type", owner) if acl is None else acl:
            row = _granted(context, owner, item, Privilege.USAGE)
            if row is not None:
                yield type_, row


def _usage_privileges(context: FunctionContext) -> Iterator[Row]:
    """Yield the privileges on collations, which everybody may use, on domains and on sequences."""
    names = role_names(context.catalog)
    for collation in collations(context):
        yield {
            "grantor": names[collation.owner], "grantee": "PUBLIC", "privilege_type": "USAGE",
            "is_grantable": "NO",
            **_usable(context, "COLLATION", collation.schema_oid, collation.name),
        }  # fmt: skip
    for type_, row in _type_privileges(context, TypeKind.DOMAIN):
        yield {**row, **_usable(context, "DOMAIN", int(type_.typnamespace), type_.typname)}
    for relation in relations(context, [RelKind.SEQUENCE]):
        # PostgreSQL's view takes a sequence without an access list for a table without one
        for item in relation_acl(context.catalog, relation.oid) or ():
            found = _granted(context, relation.owner, item, Privilege.USAGE)
            if found is not None and Privilege.USAGE in item.privileges:
                yield {**found, **_usable(context, "SEQUENCE", relation.schema_oid, relation.name)}


def _usable(context: FunctionContext, kind: str, schema_oid: int, name: str) -> Row:
    return {
        "object_catalog": context.environment.database,
        "object_schema": context.environment.schema_name(schema_oid),
        "object_name": name,
        "object_type": kind,
    }


def _by_role(view: Callable[[FunctionContext], Iterator[Row]]) -> Callable[..., Iterator[Row]]:
    """Return a function that yields the privileges whose grantor or grantee is an enabled role."""

    def rows(context: FunctionContext) -> Iterator[Row]:
        roles = {row["role_name"] for row in _enabled_roles(context)}
        return (row for row in view(context) if roles & {row["grantor"], row["grantee"]})

    return rows


VIEWS = {
    "enabled_roles": _enabled_roles,
    "applicable_roles": _applicable_roles,
    "administrable_role_authorizations": _administrable_roles,
    "table_privileges": _table_privileges,
    "role_table_grants": _by_role(_table_privileges),
    "column_privileges": _column_privileges,
    "role_column_grants": _by_role(_column_privileges),
    "routine_privileges": _routine_privileges,
    "role_routine_grants": _by_role(_routine_privileges),
    "udt_privileges": _udt_privileges,
    "role_udt_grants": _by_role(_udt_privileges),
    "usage_privileges": _usage_privileges,
    "role_usage_grants": _by_role(_usage_privileges),
}
