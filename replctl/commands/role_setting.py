"""ALTER ROLE and ALTER DATABASE ... SET and RESET (AlterSetting() in pg_db_role_setting.c)."""

from __future__ import annotations

from replctl.catalog.aclchk import owner_of
from replctl.catalog.pg_authid import Role
from replctl.catalog.pg_db_role_setting import EVERY, put_settings, stored_settings
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.find_object import find_database_oid
from replctl.commands.role import is_admin, named_role
from replctl.commands.variable import joined
from replctl.errors import (
    FeatureNotSupported,
    InsufficientPrivilege,
    PostgresError,
    ReservedName,
    SqlSyntaxError,
)
from replctl.parser import ast
from replctl.session import Session
from replctl.session_setting import check_changeable
from replctl.types.guc import (
    ROLE_SETTINGS,
    Setting,
    find_setting,
    find_written_setting,
    is_custom,
    read_value,
)


def alter_role_set(session: Session, statement: ast.AlterRoleSet) -> str:
    """Change settings with which the sessions of a role, or of all roles, begin.

    Raises:
        UndefinedObject, InvalidCatalogName: there is no such role, setting or database.
        InsufficientPrivilege: the current role may not change these settings.
    """
    return carry_out(session, lambda ddl: _alter_role_set(ddl, statement))


def alter_database_set(session: Session, statement: ast.AlterDatabaseSet) -> str:
    """Change settings with which sessions in a database begin.

    Raises:
        PostgresError: see `alter_role_set`.
    """
    return carry_out(session, lambda ddl: _alter_database_set(ddl, statement))


def _alter_role_set(ddl: Ddl, statement: ast.AlterRoleSet) -> str:
    role = None
    if statement.role is not None:
        if statement.role.startswith("pg_"):
            raise ReservedName(
                f'role name "{statement.role}" is reserved', detail="Cannot alter reserved roles."
            )
        role = named_role(ddl, statement.role)
        _check_role(ddl, role)
    database = EVERY
    if statement.database is not None:
        database = find_database_oid(ddl, statement.database)
        if role is None:
            _check_database(ddl, database, statement.database)
    if role is None and statement.database is None and not ddl.privileges.is_superuser:
        raise InsufficientPrivilege(
            "permission denied to alter setting",
            detail="Only roles with the SUPERUSER attribute may alter settings globally.",
        )
    _change(ddl, database, EVERY if role is None else role.oid, statement.change)
    return "ALTER ROLE"


def _alter_database_set(ddl: Ddl, statement: ast.AlterDatabaseSet) -> str:
    oid = find_database_oid(ddl, statement.database)
    _check_database(ddl, oid, statement.database)
    _change(ddl, oid, EVERY, statement.change)
    return "ALTER DATABASE"


def _check_database(ddl: Ddl, oid: int, name: str) -> None:
    ddl.privileges.check_owner(owner_of(ddl.catalog, "pg_database", oid), "database", name)


def _check_role(ddl: Ddl, role: Role) -> None:
    privileges = ddl.privileges
    if privileges.is_superuser:
        return
    if role.is_superuser:
        raise InsufficientPrivilege(
            "permission denied to alter role",
            detail="Only roles with the SUPERUSER attribute may alter roles with the SUPERUSER"
            " attribute.",
        )
    may_alter = privileges.role.may_create_roles and is_admin(ddl, role.oid)
    if not may_alter and role.oid != privileges.role_oid:
        raise InsufficientPrivilege(
            "permission denied to alter role",
            detail="Only roles with the CREATEROLE attribute and the ADMIN option on role"
            f' "{role.name}" may alter this role.',
        )


def _change(ddl: Ddl, database: int, role: int, change: ast.VariableSet) -> None:
    if change.is_local or change.name == "transaction":
        raise SqlSyntaxError("SET LOCAL and SET TRANSACTION are not allowed here")
    if change.name == "session characteristics":  # PostgreSQL accepts it, and stores nothing
        raise FeatureNotSupported("SET SESSION CHARACTERISTICS of roles is not supported")
    if change.name in ROLE_SETTINGS:
        raise FeatureNotSupported(f'setting "{change.name}" of roles is not supported')
    settings = stored_settings(ddl.catalog, database, role)
    if change.name == "all":
        settings = {name: value for name, value in settings.items() if not _may_change(ddl, name)}
    else:
        setting = find_written_setting(change.name)
        _check_changeable(ddl, setting)
        if change.values:
            value = joined(setting, change)
            read_value(setting, value, ddl.session.on_notice)
            settings[setting.official_name] = value
        else:
            settings.pop(setting.official_name, None)
    put_settings(ddl.catalog, database, role, settings)


def _check_changeable(ddl: Ddl, setting: Setting) -> None:
    """Check that the current role may change a stored setting (validate_option_array_item).

    Raises:
        CantChangeRuntimeParam, InsufficientPrivilege: the role may not change it.
    """
    if is_custom(setting) and not ddl.privileges.is_superuser:
        raise InsufficientPrivilege(f'permission denied to set parameter "{setting.name}"')
    check_changeable(ddl.session, setting)


def _may_change(ddl: Ddl, name: str) -> bool:
    try:
        _check_changeable(ddl, find_setting(name))
    except PostgresError:  # RESET ALL keeps such a setting, as in PostgreSQL
        return False
    return True
