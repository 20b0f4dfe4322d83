"""SET, RESET and SHOW (guc.c)."""

from __future__ import annotations

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
    if statement.name == "all":
        session.settings.clear()
        return tag
    _check_name(statement.name)
    if statement.values:
        session.settings[statement.name] = ", ".join(statement.values)
    else:
        session.settings.pop(statement.name, None)
    return tag


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
