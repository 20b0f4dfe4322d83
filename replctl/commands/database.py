"""CREATE DATABASE and DROP DATABASE (dbcommands.c)."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.catalog import schema, schema_table
from replctl.catalog.initdb import initial_comments, initial_schemas
from replctl.catalog.pg_class import load_relations, relation_oids
from replctl.catalog.pg_database import find_database, is_template
from replctl.catalog.pg_db_role_setting import delete_settings_of_database
from replctl.catalog.pg_replication_slots import delete_slot, list_slots
from replctl.catalog.pg_subscription import list_subscriptions
from replctl.catalog.relation_kind import RelKind
from replctl.catalog.transaction import BlockXids, Catalog
from replctl.catalog.worker import live_walsenders
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.dependency import report_files
from replctl.commands.role import role_oid
from replctl.errors import (
    DuplicateDatabase,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidCatalogName,
    ObjectInUse,
    SqlSyntaxError,
    WrongObjectType,
)
from replctl.parser import ast
from replctl.session import Session
from replctl.transaction_block import prevent_in_block

#: The options of CREATE DATABASE in PostgreSQL.
_OPTIONS = frozenset(
    {
        "allow_connections", "builtin_locale", "collation_version", "connection_limit", "encoding",
        "icu_locale", "icu_rules", "is_template", "lc_collate", "lc_ctype", "locale",
        "locale_provider", "location", "oid", "owner", "strategy", "tablespace", "template",
    }
)  # fmt: skip
#: Options and the values that replctl accepts, because they state the default.
_HARMLESS = {
    "encoding": ("utf8", "utf-8"),
    "connection limit": ("-1",),
    "connection_limit": ("-1",),
    "allow_connections": ("true", "on"),
    "is_template": ("false", "off"),
}


def create_database(session: Session, statement: ast.CreateDatabase) -> str:
    """Create a database with its initial schemas.

    Raises:
        DuplicateDatabase: the database exists.
        InvalidCatalogName: the template does not exist (3D000).
        FeatureNotSupported: replctl does not support an option or its value.
    """
    prevent_in_block(session.block, "CREATE DATABASE")
    return carry_out(session, lambda ddl: _create_database(ddl, statement))


def _create_database(ddl: Ddl, statement: ast.CreateDatabase) -> str:
    owner, template = ddl.session.role_oid, ast.DefElem("template", "template1")
    _check_options(statement.options)
    for option in statement.options:
        if option.value is None:  # DEFAULT
            continue
        if option.name == "owner":
            owner = role_oid(ddl.session, ddl.catalog, option.value)
        elif option.name == "template":
            template = option
        elif option.value.lower() not in _HARMLESS.get(option.name, ()):
            raise _unsupported(option)
    privileges = ddl.privileges
    if not privileges.is_superuser and not privileges.role.may_create_databases:
        raise InsufficientPrivilege("permission denied to create database")
    privileges.check_become(owner, ddl.environment.role_name(owner) or "")
    _check_template(ddl, template)
    if find_database(ddl.catalog, statement.name) is not None:
        raise DuplicateDatabase(f'database "{statement.name}" already exists')
    oid = ddl.catalog.new_oid()
    ddl.catalog.insert(schema.pg_database, oid=oid, datname=statement.name, datdba=owner)
    for row in initial_schemas(oid):
        ddl.catalog.insert(schema.pg_namespace, **row)
    for row in initial_comments(oid):
        ddl.catalog.insert(schema.pg_description, **row)
    return "CREATE DATABASE"


def _check_options(options: Sequence[ast.DefElem]) -> None:
    """Check that all options exist, and that none is repeated (createdb)."""
    names: set[str] = set()
    for option in options:
        name = option.name.replace(" ", "_")
        if name not in _OPTIONS:
            raise SqlSyntaxError(f'option "{option.name}" not recognized', position=option.pos)
        if name in names:
            raise SqlSyntaxError("conflicting or redundant options", position=option.pos)
        names.add(name)


def _check_template(ddl: Ddl, option: ast.DefElem) -> None:
    """Check that a new database can be like the database that `option` names.  Templates have only
    the objects that a new database has anyway.
    """
    oid = find_database(ddl.catalog, option.value or "")
    if oid is None:
        raise InvalidCatalogName(f'template database "{option.value}" does not exist')
    if not is_template(ddl.catalog, oid):
        raise _unsupported(option)


def _unsupported(option: ast.DefElem) -> FeatureNotSupported:
    return FeatureNotSupported(
        f'option "{option.name}" of CREATE DATABASE is not supported', position=option.pos
    )


def drop_database(session: Session, statement: ast.DropDatabase) -> str:
    """Drop a database with all its objects.

    Raises:
        InvalidCatalogName: there is no such database.
        WrongObjectType: the database is a template (42809).
        ObjectInUse: the session is connected to the database, a slot in it is active, or it has
            subscriptions.
    """
    prevent_in_block(session.block, "DROP DATABASE")
    return carry_out(session, lambda ddl: _drop_database(ddl, statement))


def _drop_database(ddl: Ddl, statement: ast.DropDatabase) -> str:
    name = statement.name
    oid = find_database(ddl.catalog, name)
    if oid is None:
        if not statement.missing_ok:
            raise InvalidCatalogName(f'database "{name}" does not exist')
        ddl.notice(f'database "{name}" does not exist, skipping')
        return "DROP DATABASE"
    row = ddl.catalog.first(schema.pg_database, schema.pg_database.c.oid == oid)
    assert row is not None
    ddl.privileges.check_owner(int(row.datdba), "database", name)
    if row.datistemplate:
        raise WrongObjectType("cannot drop a template database")
    if oid == ddl.session.database_oid:
        raise ObjectInUse("cannot drop the currently open database")
    connection = ddl.catalog.connection
    slots = [slot.name for slot in list_slots(connection) if slot.database_oid == oid]
    active = live_walsenders(ddl.session.cluster, connection).keys() & set(slots)
    if active:
        verb, noun = ("is", "slot") if len(active) == 1 else ("are", "slots")
        raise ObjectInUse(
            f'database "{name}" is used by an active logical replication slot',
            detail=f"There {verb} {len(active)} active {noun}.",
        )
    subscriptions = [
        s for s in list_subscriptions(ddl.catalog, all_databases=True) if s.database_oid == oid
    ]
    if subscriptions:
        verb, noun = ("is", "") if len(subscriptions) == 1 else ("are", "s")
        raise ObjectInUse(
            f'database "{name}" is being used by logical replication subscription',
            detail=f"There {verb} {len(subscriptions)} subscription{noun}.",
        )
    for slot in slots:
        delete_slot(connection, slot)
    inside = Catalog(connection, oid)
    for relation in load_relations(inside, relation_oids(inside, [RelKind.TABLE])).values():
        report_files(ddl, relation)
    _empty(ddl, oid)
    delete_settings_of_database(ddl.catalog, oid)
    ddl.catalog.delete(schema.pg_database, schema.pg_database.c.oid == oid)
    return "DROP DATABASE"


def _empty(ddl: Ddl, oid: int) -> None:
    """Remove the definitions of a database.  VACUUM removes its Delta files later."""
    catalog = ddl.catalog
    inside = Catalog(
        catalog.connection, oid, backend=catalog.backend, block=BlockXids([[catalog.xid]])
    )
    for table in schema_table.metadata.sorted_tables:
        if table.info.get("versioned") and not table.info["shared"]:
            inside.delete(table)
