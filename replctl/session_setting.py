"""Change a session's settings: SET, set_config(), configuration files and ALTER ROLE (guc.c,
miscinit.c).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from replctl.catalog.aclchk import privileges_of
from replctl.catalog.auto_conf import read_auto_conf
from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_authid import find_role
from replctl.errors import (
    ActiveSqlTransaction,
    CantChangeRuntimeParam,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidParameterValue,
    Notice,
    PostgresError,
    UndefinedObject,
)
from replctl.types.guc import (
    ROLE_SETTINGS,
    UNLISTED,
    Setting,
    find_setting,
    find_written_setting,
    is_custom,
    read_value,
    settings,
    show_value,
)

if TYPE_CHECKING:
    from replctl.session import Session

#: Settings of a transaction, which RESET refuses (GUC_NO_RESET), with their values before SET
#: TRANSACTION.
TRANSACTION_SETTINGS = {
    "transaction_deferrable": "default_transaction_deferrable",
    "transaction_isolation": "default_transaction_isolation",
    "transaction_read_only": "default_transaction_read_only",
}
_ON_IN_RECOVERY = ("in_hot_standby", "transaction_read_only")
_REFUSALS = {
    "internal": "cannot be changed",
    "postmaster": "cannot be changed without restarting the server",
    "sighup": "cannot be changed now",
    "backend": "cannot be set after connection start",
    "superuser-backend": "cannot be set after connection start",
}


def setting_value(session: Session, name: str) -> str:
    """Return the value of a setting, in the setting's own unit.

    Raises:
        UndefinedObject: there is no such setting (42704).
    """
    key = name.lower()
    if key in _ON_IN_RECOVERY and session.cluster.is_in_recovery:
        return "on"
    if key == "transaction_read_only":
        return "on" if session.is_read_only else "off"
    if key in session.settings:
        return session.settings[key]
    if key in TRANSACTION_SETTINGS:
        return setting_value(session, TRANSACTION_SETTINGS[key])
    return reset_value(session, name)


def reset_value(session: Session, name: str) -> str:
    """Return the value of a setting after RESET.

    Raises:
        UndefinedObject: there is no such setting (42704).
    """
    key = name.lower()
    for values in (session.client_settings, session.role_settings, session.configured):
        if key in values:
            return values[key]
    known = settings().get(key) or UNLISTED.get(key)
    if key in session.custom_settings:
        return ""
    if known is None:
        raise UndefinedObject(f'unrecognized configuration parameter "{name}"')
    return known.boot_value


def shown_setting(session: Session, name: str) -> str:
    """Return the value of a setting as SHOW prints it.

    Raises:
        UndefinedObject: there is no such setting (42704).
    """
    match name.lower():
        case "role":
            return session.chosen_role[1] if "role" in session.settings else "none"
        case "session_authorization":
            return session.session_user[1]
        case "is_superuser":
            with session.read() as catalog:
                chosen = privileges_of(catalog, session.chosen_role[0])
                return "on" if chosen.is_superuser else "off"
        case "seed":
            return "unavailable"
    value = setting_value(session, name)
    return show_value(find_setting(name), value)


def change_setting(session: Session, name: str, value: str | None, *, is_local: bool) -> str:
    """Set or reset (None) a setting, and return the new value as printed by SHOW, even if SET LOCAL
    outside of a block has no effect.

    Args:
        is_local: only until the end of the open block; without a block nothing changes.

    Raises:
        UndefinedObject: there is no such setting (42704).
        InvalidParameterValue: the value is invalid (22023).
        CantChangeRuntimeParam, InsufficientPrivilege: the setting cannot be changed in this way, or
            not by this role.
    """
    key = name.lower()
    if key in ROLE_SETTINGS:
        _set_role(session, key, value, is_local=is_local)
        return shown_setting(session, key)
    setting = find_written_setting(name)
    check_changeable(session, setting)
    if is_custom(setting):
        session.custom_settings.add(key)
    if (key in TRANSACTION_SETTINGS or key == "seed") and value is None:
        raise FeatureNotSupported(f'parameter "{setting.name}" cannot be reset')
    read = None if value is None else _read(session, setting, value)
    if read is not None and key in TRANSACTION_SETTINGS:
        _set_characteristic(session, key, read)
        return read
    if session.block is not None or not is_local:
        _put(session, setting.key, read, is_local=is_local)
    return show_value(setting, reset_value(session, name) if read is None else read)


def begin_with(session: Session, requested: Mapping[str, str]) -> None:
    """Set the settings that a client requests for a new session; RESET restores them.

    Raises:
        PostgresError: see `change_setting`.  Settings that can be set only at the start are allowed
            here.
    """
    for name, value in requested.items():
        if name.lower() in ROLE_SETTINGS:
            change_setting(session, name, value, is_local=False)
            continue
        setting = find_written_setting(name)
        if setting.context not in ("backend", "superuser-backend"):
            check_changeable(session, setting)
        session.client_settings[setting.key] = _read(session, setting, value)


def _read(session: Session, setting: Setting, value: str) -> str:
    if setting.key not in settings():
        return read_value(setting, value, session.on_notice)
    return read_value(
        setting,
        value,
        session.on_notice,
        current=setting_value(session, setting.key),
        reset=reset_value(session, setting.key),
    )


def reset_all(session: Session) -> None:
    """Reset all settings, except the roles and the modes of the open transaction."""
    for name in session.settings.keys() - {*ROLE_SETTINGS, *TRANSACTION_SETTINGS}:
        _put(session, name, None, is_local=False)


def _put(session: Session, key: str, value: str | None, *, is_local: bool) -> None:
    """Change or reset (None) a setting.  A change that is not local ends an earlier local one, so
    that it stays after COMMIT (push_old_value in guc.c).
    """
    block = session.block
    if block is not None and is_local:
        block.local_settings.setdefault(key, session.settings.get(key))
    elif block is not None:
        block.local_settings.pop(key, None)
    session.put_setting(key, value)


def _set_characteristic(session: Session, key: str, value: str) -> None:
    """Run SET TRANSACTION for the open block only.

    Raises:
        ActiveSqlTransaction: the change must come earlier (25001).
        FeatureNotSupported: a standby cannot write (0A000).
    """
    check = {
        "transaction_read_only": _check_read_only,
        "transaction_isolation": _check_isolation,
        "transaction_deferrable": _check_deferrable,
    }[key]
    check(session, value)
    if session.block is None:
        return
    if key == "transaction_read_only":
        session.block.is_read_only = value == "on"
    else:
        _put(session, key, value, is_local=True)


def _check_read_only(session: Session, value: str) -> None:
    """Check that a read-only transaction may become read-write (check_transaction_read_only)."""
    block = session.block
    if value == "on" or setting_value(session, "transaction_read_only") == "off":
        return
    if block is not None and block.savepoints:
        raise ActiveSqlTransaction(
            "cannot set transaction read-write mode inside a read-only transaction"
        )
    if block is not None and block.has_snapshot:
        raise ActiveSqlTransaction("transaction read-write mode must be set before any query")
    if session.cluster.is_in_recovery:
        raise FeatureNotSupported("cannot set transaction read-write mode during recovery")


def _check_isolation(session: Session, value: str) -> None:
    """Check that the isolation level may change to another one (check_transaction_isolation)."""
    block, what = session.block, "SET TRANSACTION ISOLATION LEVEL"
    if block is None or value == setting_value(session, "transaction_isolation"):
        return
    if block.has_snapshot:
        raise ActiveSqlTransaction(f"{what} must be called before any query")
    if block.savepoints:
        raise ActiveSqlTransaction(f"{what} must not be called in a subtransaction")


def _check_deferrable(session: Session, _value: str) -> None:
    """Check that SET TRANSACTION [NOT] DEFERRABLE may run now (check_transaction_deferrable)."""
    block, what = session.block, "SET TRANSACTION [NOT] DEFERRABLE"
    if block is not None and block.savepoints:
        raise ActiveSqlTransaction(f"{what} cannot be called within a subtransaction")
    if block is not None and block.has_snapshot:
        raise ActiveSqlTransaction(f"{what} must be called before any query")


def _set_role(session: Session, what: str, name: str | None, *, is_local: bool) -> None:
    """Run SET ROLE, SET SESSION AUTHORIZATION, and their RESET.

    Raises:
        InvalidParameterValue: there is no such role (22023).
        InsufficientPrivilege: the session may not assume this role.
    """
    role = None if name is None or (what == "role" and name == "none") else name
    found = None if role is None else (_role_to_become(session, what, role), role)
    if is_local and session.block is None:
        return
    if what == "session_authorization":
        put_role(session, "role", None, is_local=is_local)
    put_role(session, what, found, is_local=is_local)


def put_role(
    session: Session, what: str, role: tuple[int, str] | None, *, is_local: bool = False
) -> None:
    """Change `role` or `session_authorization`; None resets it."""
    _put(session, what, None if role is None else f"{role[0]} {role[1]}", is_local=is_local)


def _role_to_become(session: Session, what: str, name: str) -> int:
    with session.read() as catalog:
        role = find_role(catalog, name)
        if role is None:
            raise InvalidParameterValue(f'role "{name}" does not exist')
        environment = session.environment(catalog)
        if what == "role":
            own = privileges_of(environment.catalog, session.session_user[0])
            if not own.may_become(role.oid):
                raise InsufficientPrivilege(f'permission denied to set role "{name}"')
        else:
            own = privileges_of(environment.catalog, session.login_oid)
            if role.oid != session.login_oid and not own.is_superuser:
                raise InsufficientPrivilege(
                    f'permission denied to set session authorization "{name}"'
                )
    return role.oid


def check_changeable(session: Session, setting: Setting) -> None:
    """Check that a session's role may change a setting now.

    Raises:
        CantChangeRuntimeParam, InsufficientPrivilege: the role may not change it now.
    """
    if setting.context in _REFUSALS:
        raise CantChangeRuntimeParam(f'parameter "{setting.name}" {_REFUSALS[setting.context]}')
    if setting.context == "superuser":
        with session.read() as catalog:
            if not session.privileges(catalog).is_superuser:
                raise InsufficientPrivilege(f'permission denied to set parameter "{setting.name}"')


def reload_configuration(session: Session) -> None:
    """Read the cluster's configuration again, except for settings that require a new connection."""
    found = configured_settings(session.cluster, session.on_notice)
    for name in session.configured.keys() | found.keys():
        if find_setting(name).context in ("postmaster", "internal"):
            continue
        if name in found:
            session.configured[name] = found[name]
        else:
            del session.configured[name]


def configured_settings(cluster: Cluster, on_notice: Callable[[Notice], None]) -> dict[str, str]:
    """Return the settings from the cluster's files, and settings that depend on its location."""
    return {
        "data_directory": str(cluster.path),
        **read_settings(read_auto_conf(cluster.path), on_notice),
    }


def read_settings(stored: Mapping[str, str], on_notice: Callable[[Notice], None]) -> dict[str, str]:
    """Return stored settings, by name in lower case, without those that have become invalid.  Each
    of these causes a WARNING."""
    found = {}
    for name, value in stored.items():
        try:
            setting = find_setting(name)
            found[setting.key] = read_value(setting, value, on_notice)
        except PostgresError as error:  # as PostgreSQL, connect without the setting
            on_notice(Notice("WARNING", error.message, error.sqlstate, error.detail, error.hint))
    return found
