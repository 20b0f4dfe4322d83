"""The shared parts of the views of information_schema: the relations that a role may see, and the
domain yes_or_no."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from replctl.catalog.acl import ALL_RIGHTS, Privilege
from replctl.catalog.aclchk import Privileges
from replctl.catalog.initdb import PG_CATALOG_NAMESPACE
from replctl.catalog.pg_class import Relation, load_relations, relation_oids
from replctl.catalog.pg_collation import UserCollation, list_collations
from replctl.catalog.relation_kind import TABLE_KINDS, RelKind
from replctl.functions.function_context import FunctionContext
from replctl.types import builtin

Row = dict[str, Any]


def yes_or_no(value: object) -> str:
    """Return a value of the domain yes_or_no."""
    return "YES" if value else "NO"


#: The privileges on tables and on columns that the SQL standard knows: all except MAINTAIN.
TABLE_RIGHTS = tuple(map(Privilege, ALL_RIGHTS["table"].replace(Privilege.MAINTAIN, "")))
COLUMN_RIGHTS = tuple(map(Privilege, ALL_RIGHTS["column"]))


#: The kinds of relations that are tables in the SQL standard.
TABLES_AND_VIEWS = (*TABLE_KINDS, RelKind.VIEW)


def relations(context: FunctionContext, kinds: Collection[RelKind]) -> list[Relation]:
    """Return the relations of these kinds, oldest first."""
    oids = relation_oids(context.catalog, kinds)
    return list(load_relations(context.catalog, oids).values())


def has_any(
    privileges: Privileges,
    relation: Relation,
    rights: Collection[Privilege],
    column_rights: Collection[Privilege] = (),
    attnums: Collection[int] = (),
) -> bool:
    """Return whether a role owns a relation, or has one of `rights` on the relation, or one of
    `column_rights` on one of its columns.

    Args:
        attnums: the columns; () for any column.
    """
    if privileges.acts_for(relation.owner):
        return True
    if any(privileges.has_on_relation(relation, right) for right in rights):
        return True
    return any(privileges.has_on_relation(relation, right, attnums) for right in column_rights)


def visible(
    context: FunctionContext,
    kinds: Collection[RelKind],
    rights: Collection[Privilege],
    column_rights: Collection[Privilege] = (),
) -> Iterator[Relation]:
    """Yield the relations that the current role owns or has privileges on (see `has_any`)."""
    privileges = context.environment.privileges
    for relation in relations(context, kinds):
        if has_any(privileges, relation, rights, column_rights):
            yield relation


def place(context: FunctionContext, relation: Any, prefix: str = "table") -> Row:
    """Return the columns `table_catalog`, `table_schema` and `table_name` for a relation."""
    return {
        f"{prefix}_catalog": context.environment.database,
        f"{prefix}_schema": relation.schema,
        f"{prefix}_name": relation.name,
    }


def collations(context: FunctionContext) -> list[UserCollation]:
    """Return all collations, those in every cluster first."""
    found = builtin.collations().items()
    fixed = [UserCollation(oid, name, PG_CATALOG_NAMESPACE, 10, name) for name, oid in found]
    return [*fixed, *list_collations(context.catalog)]
