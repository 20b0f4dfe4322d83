"""SET, RESET, SHOW and ALTER SYSTEM (guc.c)."""

from __future__ import annotations

from replctl.catalog.auto_conf import check_has_one_line, read_auto_conf, write_auto_conf
from replctl.commands import transaction_statement
from replctl.errors import (
    CantChangeRuntimeParam,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidParameterValue,
)
from replctl.parser import ast
from replctl.result import Result, ResultColumn
from replctl.session import Session
from replctl.session_setting import TRANSACTION_SETTINGS, reset_all
from replctl.transaction_block import prevent_in_block
from replctl.types.guc import (
    ROLE_SETTINGS,
    Setting,
    check_readable,
    find_setting,
    find_written_setting,
    is_readable,
    read_value,
    settings,
)
from replctl.types.quote import quote_identifier
from replctl.types.text import parse, render
from replctl.types.type_modifier import typmod_in

#: Settings that a configuration file cannot contain (GUC_DISALLOW_IN_AUTO_FILE).
_NOT_IN_FILE = (
    "allow_alter_system", "config_file", "data_directory", "external_pid_file", "hba_file",
    "ident_file", "seed", *TRANSACTION_SETTINGS,
)  # fmt: skip


def set_variable(session: Session, statement: ast.VariableSet) -> str:
    """Set or reset a setting of the session.

    Raises:
        UndefinedObject: there is no such setting (42704).
        InvalidParameterValue: the setting cannot have that value (22023).
    """
    tag = "RESET" if statement.reset else "SET"
    if statement.name == "transaction":
        _set_transaction(session, statement)
        return tag
    if statement.name == "session characteristics":
        transaction_statement.set_session_characteristics(
            session, statement.values, is_local=statement.is_local
        )
        return tag
    if statement.name == "all":
        reset_all(session)
        return tag
    if statement.is_local and session.block is None:
        _warn_of_no_block(session, "SET LOCAL")
    value = next(iter(statement.values), None)
    if statement.values and statement.name.lower() not in ROLE_SETTINGS:
        value = joined(find_setting(statement.name), statement)
    session.change_setting(statement.name, value, is_local=statement.is_local)
    return tag


def joined(setting: Setting, change: ast.VariableSet) -> str:
    """Join the values of a setting to one text (flatten_set_variable_args).  Quote names if
    necessary.

    Raises:
        InvalidParameterValue: there are several values, but the setting is not a list.
        DataError: the value is not an interval, but should be one.
    """
    values = change.values
    if change.interval is not None:
        interval = parse("interval", values[0], typmod_in("interval", change.interval))
        return f"INTERVAL '{render('interval', interval)}'"
    if len(values) > 1 and not setting.is_list:
        raise InvalidParameterValue(f"SET {setting.name} takes only one argument")
    return (
        ", ".join(quote_identifier(value) for value in values)
        if setting.is_name_list
        else (", ".join(values))
    )


def _set_transaction(session: Session, statement: ast.VariableSet) -> None:
    if session.block is None:
        _warn_of_no_block(session, "SET TRANSACTION")
    transaction_statement.set_transaction(session, statement.values)


def _warn_of_no_block(session: Session, what: str) -> None:
    session.notice(
        f"{what} can only be used in transaction blocks", severity="WARNING", sqlstate="25P01"
    )


def alter_system(session: Session, statement: ast.AlterSystem) -> str:
    """Change the configuration of the cluster.  It applies to new sessions, and to existing
    sessions after pg_reload_conf().

    Raises:
        FeatureNotSupported: allow_alter_system is off (0A000).
        ActiveSqlTransaction: the statement is in a transaction block (25001).
        UndefinedObject: there is no such setting (42704).
        CantChangeRuntimeParam: the setting cannot be changed (55P02).
        InvalidParameterValue: the setting cannot have that value (22023).
    """
    prevent_in_block(session.block, "ALTER SYSTEM")
    if session.setting("allow_alter_system") == "off":
        raise FeatureNotSupported("ALTER SYSTEM is not allowed in this environment")
    change = statement.change
    path = session.cluster.path
    with session.read() as catalog:
        if not session.privileges(catalog).is_superuser:
            if change.name == "all":
                raise InsufficientPrivilege("permission denied to perform ALTER SYSTEM RESET ALL")
            raise InsufficientPrivilege(f'permission denied to set parameter "{change.name}"')
    with session.cluster.lock("postgresql.auto.conf"):  # or the changes of another session are lost
        values = {} if change.name == "all" else read_auto_conf(path)
        if change.name != "all":
            setting = _configurable(change.name)
            values.pop(setting.key, None)
            if change.values:
                values[setting.key] = _configured(session, setting, change)
        write_auto_conf(path, values)
    return "ALTER SYSTEM"


def _configurable(name: str) -> Setting:
    setting = find_written_setting(name)
    if setting.context == "internal" or setting.key in _NOT_IN_FILE:
        raise CantChangeRuntimeParam(f'parameter "{setting.name}" cannot be changed')
    return setting


def _configured(session: Session, setting: Setting, change: ast.VariableSet) -> str:
    given = joined(setting, change)
    value = read_value(setting, given, session.on_notice)
    check_has_one_line(given)
    return value


def show(session: Session, statement: ast.VariableShow) -> Result:
    """Return the value of a setting, or of all settings.

    Raises:
        UndefinedObject: there is no such setting (42704).
    """
    with session.read() as catalog:
        reads_all = session.privileges(catalog).reads_all_settings
    if statement.name == "all":
        columns = tuple(ResultColumn(name, "text") for name in ("name", "setting", "description"))
        rows = [
            (setting.name, session.shown_setting(key), setting.description)
            for key, setting in settings().items()
            if is_readable(setting, reads_all=reads_all)
        ]
        return Result("SHOW", columns, rows)
    if statement.name.lower() in ROLE_SETTINGS:
        shown = session.shown_setting(statement.name)
        return Result("SHOW", (ResultColumn(statement.name, "text"),), [(shown,)])
    value = session.shown_setting(statement.name)
    setting = find_setting(statement.name)
    check_readable(setting, reads_all=reads_all)
    return Result("SHOW", (ResultColumn(setting.name, "text"),), [(value,)])
