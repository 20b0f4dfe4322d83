"""Temporary relations.  Their schema belongs to the session, and replctl drops it at the end of
the session (namespace.c).
"""

from __future__ import annotations

from replctl.catalog.acl import Privilege
from replctl.catalog.initdb import BOOTSTRAP_SUPERUSER
from replctl.catalog.pg_namespace import find_schema, insert_temporary_schema, temporary_schemas
from replctl.catalog.pg_replication_slots import is_owner_alive
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.dependency import drop_objects
from replctl.commands.naming import Schema
from replctl.commands.object_address import Object
from replctl.errors import FeatureNotSupported, InsufficientPrivilege, InvalidTableDefinition
from replctl.parser import ast
from replctl.session import Session


def is_temporary(ddl: Ddl, statement: ast.CreateTable) -> bool:
    """Return whether a new relation is temporary, because of CREATE TEMPORARY or the schema
    pg_temp.
    """
    name = statement.relation.schema
    is_named = name is not None and name in ("pg_temp", ddl.session.temporary_schema)
    return statement.persistence == "temporary" or is_named


def temporary_place(ddl: Ddl, target: ast.RangeVar) -> Schema:
    """Return the schema for a temporary relation.  For the first temporary relation of a session,
    create the schema, and drop the temporary schemas of dead processes (InitTempTableNamespace).

    Raises:
        InvalidTableDefinition: the relation's name has another schema (42P16).
        InsufficientPrivilege: the role may not create temporary relations in the database.
    """
    session, catalog = ddl.session, ddl.catalog
    if target.schema not in (None, "pg_temp", session.temporary_schema):
        raise InvalidTableDefinition(
            "cannot create temporary relation in non-temporary schema", position=target.pos
        )
    if not ddl.privileges.is_superuser and not ddl.privileges.has_on_database(Privilege.TEMPORARY):
        raise InsufficientPrivilege(
            f'permission denied to create temporary tables in database "{session.database_name}"'
        )
    name = session.temporary_schema
    oid = None if name is None else find_schema(catalog, name)
    if name is None or oid is None:
        _drop_abandoned(ddl)
        name = insert_temporary_schema(catalog, session.key, BOOTSTRAP_SUPERUSER)
        oid = find_schema(catalog, name)
        assert oid is not None
        session.temporary_schema = catalog.temporary_schema = name
        if not session.at_end:
            session.at_end.append(lambda: drop_temporary_relations(session))
    return Schema(oid, name)


def check_on_commit(on_commit: str | None) -> None:
    """Refuse ON COMMIT options that remove rows or the table.

    Raises:
        FeatureNotSupported: the option would remove rows or the table at the end of a transaction.
    """
    if on_commit is not None and on_commit.upper() != "PRESERVE ROWS":
        raise FeatureNotSupported(f"ON COMMIT {on_commit.upper()} is not supported")


def _drop_abandoned(ddl: Ddl) -> None:
    for oid, owner in temporary_schemas(ddl.catalog).items():
        if not is_owner_alive(ddl.session.cluster, owner):
            _drop_schema(ddl, oid)


def drop_temporary_relations(session: Session) -> None:
    """Drop the temporary relations of a session (ResetTempTableNamespace)."""

    def drop(ddl: Ddl) -> None:
        for oid, owner in temporary_schemas(ddl.catalog).items():
            if owner == session.key:
                _drop_schema(ddl, oid)

    carry_out(session, drop)


def _drop_schema(ddl: Ddl, oid: int) -> None:
    """Drop a schema and its objects, without notices."""
    count = len(ddl.notices)
    drop_objects(ddl, [Object("schema", oid)], "cascade")
    del ddl.notices[count:]
