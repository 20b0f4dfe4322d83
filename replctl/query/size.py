"""Sizes of relations and databases (dbsize.c): the size of the current files of Delta tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from replctl.catalog import schema
from replctl.catalog.acl import Privilege
from replctl.catalog.pg_authid import READ_ALL_STATS
from replctl.catalog.pg_class import Relation, get_relation, load_relations, relation_oids
from replctl.catalog.relation_kind import WITH_DELTA_TABLE
from replctl.catalog.transaction import Catalog
from replctl.errors import (
    InsufficientPrivilege,
    InvalidCatalogName,
    InvalidParameterValue,
    IoError,
    ObjectNotInPrerequisiteState,
)
from replctl.functions.function_context import FunctionContext

_FORKS = ("main", "fsm", "vm", "init")


def relation_size(relation: Relation) -> int | None:
    """Return the size of a relation's rows in bytes; None if its Delta log cannot be read."""
    from replctl.lake.delta_files import table_size  # most queries do not need tables

    if relation.storage is None:
        return 0
    try:
        return table_size(relation.storage.location)
    except (IoError, ObjectNotInPrerequisiteState):  # as for a dropped relation in PostgreSQL
        return None


def database_size(catalog: Catalog, oid: int) -> int:
    """Return the size in bytes of all readable tables of a database.

    Args:
        catalog: the catalog of any database of the same cluster.
    """
    other = Catalog(catalog.connection, oid)
    tables = load_relations(other, relation_oids(other, WITH_DELTA_TABLE)).values()
    return sum(relation_size(table) or 0 for table in tables)


def _of_relation(context: FunctionContext, oid: int, fork: str = "main") -> int | None:
    if fork not in _FORKS:
        raise InvalidParameterValue(
            "invalid fork name",
            hint='Valid fork names are "main", "fsm", "vm", and "init".',
        )
    relation = get_relation(context.catalog, oid)
    if relation is None:
        return None
    return relation_size(relation) if fork == "main" else 0


def _of_indexes(context: FunctionContext, oid: int) -> int | None:
    return None if get_relation(context.catalog, oid) is None else 0


def _of_database(context: FunctionContext, oid: int) -> int | None:
    table = schema.pg_database
    row = context.catalog.first(table, table.c.oid == oid)
    return None if row is None else _permitted_size(context, oid, str(row.datname))


def _of_named_database(context: FunctionContext, name: str) -> int:
    table = schema.pg_database
    row = context.catalog.first(table, table.c.datname == name)
    if row is None:
        raise InvalidCatalogName(f'database "{name}" does not exist')
    return _permitted_size(context, int(row.oid), name)


def _permitted_size(context: FunctionContext, oid: int, name: str) -> int:
    """Return the size of a database. The role needs the CONNECT privilege, or the privileges of
    pg_read_all_stats.
    """
    privileges = context.session.privileges(context.catalog)
    if not privileges.acts_for(READ_ALL_STATS) and not privileges.has_on_database(
        Privilege.CONNECT, oid
    ):
        raise InsufficientPrivilege(f"permission denied for database {name}")
    return database_size(context.catalog, oid)


#: prosrc of a function -> Python function, like functions.sql_functions.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pg_relation_size": _of_relation,
    "pg_table_size": _of_relation,
    "pg_total_relation_size": _of_relation,
    "pg_indexes_size": _of_indexes,
    "pg_database_size_oid": _of_database,
    "pg_database_size_name": _of_named_database,
}
