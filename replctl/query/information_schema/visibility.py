"""The shared parts of the views of information_schema: relations that a role may see, YES and
NO."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from replctl.catalog.aclchk import Privileges
from replctl.catalog.pg_class import Relation, load_relations, relation_oids
from replctl.functions.function_context import FunctionContext

Row = dict[str, Any]


def yes_or_no(value: object) -> str:
    """Return the domain yes_or_no."""
    return "YES" if value else "NO"


def relations(context: FunctionContext, kinds: str) -> list[Relation]:
    """Return the relations of some kinds, in their order of creation."""
    oids = relation_oids(context.catalog, kinds)
    return list(load_relations(context.catalog, oids).values())


def has_any(
    privileges: Privileges,
    relation: Relation,
    letters: str,
    column_letters: str = "",
    attnums: Collection[int] = (),
) -> bool:
    """Return whether a role owns a relation, or has one of some privileges on it, or on a column.

    Args:
        attnums: the columns; () for any.
    """
    if privileges.acts_for(relation.owner):
        return True
    if any(privileges.has_on_relation(relation, letter) for letter in letters):
        return True
    return any(privileges.has_on_relation(relation, letter, attnums) for letter in column_letters)


def visible(
    context: FunctionContext, kinds: str, letters: str, column_letters: str
) -> Iterator[Relation]:
    """Yield the relations that the current role may see by one of some privileges."""
    privileges = context.environment.privileges
    for relation in relations(context, kinds):
        if has_any(privileges, relation, letters, column_letters):
            yield relation


def place(context: FunctionContext, relation: Any, prefix: str = "table") -> Row:
    """`table_catalog`, `table_schema`, `table_name`"""
    return {
        f"{prefix}_catalog": context.environment.database,
        f"{prefix}_schema": relation.schema,
        f"{prefix}_name": relation.name,
    }
