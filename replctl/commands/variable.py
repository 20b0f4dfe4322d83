"""SET, RESET and SHOW (guc.c)."""

from __future__ import annotations

from replctl.commands import transaction
from replctl.errors import UndefinedObject
from replctl.parser import ast
from replctl.result import Result, ResultColumn
from replctl.session import DEFAULT_SETTINGS, Session


def set_variable(session: Session, statement: ast.VariableSet) -> str:
    """Change a setting of the session, or put it back.

    Raises:
        UndefinedObject: there is no such setting (42704).
    """
    tag = "RESET" if statement.reset else "SET"
    if statement.name == "transaction":
        _set_transaction(session, statement)
        return tag
    if statement.name == "all":
        session.settings.clear()
        return tag
    _check_name(statement.name)
    if statement.is_local and not _remember(session, statement.name):
        return tag
    value = ", ".join(statement.values) if statement.values else None
    session.put_setting(statement.name, value)
    return tag


def _set_transaction(session: Session, statement: ast.VariableSet) -> None:
    if session.block is None or session.block.is_implicit:
        _warn_of_no_block(session, "SET TRANSACTION")
    transaction.set_transaction(session, statement.values)


def _remember(session: Session, name: str) -> bool:
    """SET LOCAL: what the setting is after the block; False, and a warning, without a block."""
    if session.block is None or session.block.is_implicit:
        _warn_of_no_block(session, "SET LOCAL")
        return False
    session.block.local_settings.setdefault(name, session.settings.get(name))
    return True


def _warn_of_no_block(session: Session, what: str) -> None:
    session.notice(
        f"{what} can only be used in transaction blocks", severity="WARNING", sqlstate="25P01"
    )


def show(session: Session, statement: ast.VariableShow) -> Result:
    """The value of a setting, or of all.

    Raises:
        UndefinedObject: there is no such setting (42704).
    """
    if statement.name == "all":
        columns = tuple(ResultColumn(name, "text") for name in ("name", "setting"))
        rows = [(name, session.setting(name)) for name in sorted(DEFAULT_SETTINGS)]
        return Result("SHOW", columns, rows)
    _check_name(statement.name)
    return Result(
        "SHOW", (ResultColumn(statement.name, "text"),), [(session.setting(statement.name),)]
    )


def _check_name(name: str) -> None:
    if name not in DEFAULT_SETTINGS:
        raise UndefinedObject(f'unrecognized configuration parameter "{name}"')
