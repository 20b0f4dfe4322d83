"""information_schema: roles, their memberships and privileges."""

from __future__ import annotations

from collections.abc import Iterator

from replctl.catalog.acl import PUBLIC, AclItem, Privilege, default_acl
from replctl.catalog.aclchk import column_acls, privileges_of, relation_acl
from replctl.catalog.pg_authid import memberships, role_names
from replctl.catalog.pg_class import Relation
from replctl.functions.function_context import FunctionContext
from replctl.query.information_schema.visibility import (
    COLUMN_RIGHTS,
    TABLE_RIGHTS,
    TABLES_AND_VIEWS,
    Row,
    place,
    relations,
    yes_or_no,
)


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
    context: FunctionContext, relation: Relation, item: AclItem, privilege: Privilege
) -> Row | None:
    """Return the row of a privilege; None if the current role may not see it.

    The role sees privileges of PUBLIC.  It also sees the privileges whose grantor or grantee is the
    role itself, or a role whose privileges it has.
    """
    privileges, names = context.environment.privileges, role_names(context.catalog)
    is_public = item.grantee == PUBLIC
    if not is_public and not any(map(privileges.acts_for, (item.grantor, item.grantee))):
        return None
    grantee = privileges_of(context.environment.catalog, item.grantee)
    is_owner = not is_public and grantee.acts_for(relation.owner)
    return {
        "grantor": names[item.grantor],
        "grantee": "PUBLIC" if is_public else names[item.grantee],
        **place(context, relation),
        "privilege_type": privilege.word,
        "is_grantable": yes_or_no(is_owner or privilege in item.options),
    }


def _table_privileges(context: FunctionContext) -> Iterator[Row]:
    for relation in relations(context, TABLES_AND_VIEWS):
        for item in _relation_items(context, relation):
            for letter in item.privileges:
                if letter not in TABLE_RIGHTS:
                    continue
                row = _granted(context, relation, item, Privilege(letter))
                if row is not None:
                    yield {**row, "with_hierarchy": yes_or_no(letter == Privilege.SELECT)}


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
                    row = _granted(context, relation, item, Privilege(letter))
                    key = () if row is None else tuple(row.values())
                    if row is not None and key not in seen:
                        seen.add(key)
                        yield {**row, "column_name": column.name}


def _role_table_grants(context: FunctionContext) -> Iterator[Row]:
    return (row for row in _table_privileges(context) if row["grantee"] != "PUBLIC")


def _role_column_grants(context: FunctionContext) -> Iterator[Row]:
    return (row for row in _column_privileges(context) if row["grantee"] != "PUBLIC")


VIEWS = {
    "enabled_roles": _enabled_roles,
    "applicable_roles": _applicable_roles,
    "administrable_role_authorizations": _administrable_roles,
    "table_privileges": _table_privileges,
    "role_table_grants": _role_table_grants,
    "column_privileges": _column_privileges,
    "role_column_grants": _role_column_grants,
}
