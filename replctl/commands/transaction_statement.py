"""BEGIN, COMMIT, ROLLBACK, SAVEPOINT and similar statements; SET TRANSACTION (xact.c)."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.errors import FeatureNotSupported, NoActiveSqlTransaction
from replctl.lake import block
from replctl.parser import ast
from replctl.session import Session
from replctl.session_setting import TRANSACTION_SETTINGS

#: Modes of a transaction, with their settings and values.
_MODES = {
    "isolation level read committed": ("transaction_isolation", "read committed"),
    "isolation level read uncommitted": ("transaction_isolation", "read uncommitted"),
    "read only": ("transaction_read_only", "on"),
    "read write": ("transaction_read_only", "off"),
    "deferrable": ("transaction_deferrable", "on"),
    "not deferrable": ("transaction_deferrable", "off"),
}


def transaction(session: Session, statement: ast.TransactionStmt) -> str:
    """Run a transaction control statement, and return the command tag.

    Raises:
        NoActiveSqlTransaction: the statement requires a transaction block (25P01).
        InvalidSavepointSpecification: there is no such savepoint (3B001).
        FeatureNotSupported: the statement requests an unsupported isolation level (0A000).
    """
    match statement.kind:
        case "begin" | "start":
            return _begin(session, statement)
        case "commit" | "rollback":
            return _end(session, statement)
    name = {"release": "RELEASE SAVEPOINT", "rollback to": "ROLLBACK TO SAVEPOINT"}.get(
        statement.kind, "SAVEPOINT"
    )
    if session.block is None or session.block.is_implicit:
        raise NoActiveSqlTransaction(f"{name} can only be used in transaction blocks")
    savepoint = statement.name or ""
    match statement.kind:
        case "savepoint":
            block.savepoint(session, savepoint)
            return "SAVEPOINT"
        case "release":
            block.release(session, savepoint)
            return "RELEASE"
        case _:
            block.rollback_to(session, savepoint)
            return "ROLLBACK"


def set_transaction(session: Session, modes: Sequence[str]) -> None:
    """Set the modes of the open transaction.

    Raises:
        FeatureNotSupported: a mode is an isolation level other than READ COMMITTED, or READ WRITE
            on a standby (0A000).
        ActiveSqlTransaction: a mode must be set earlier (25001).
    """
    for name, value in _settings(modes):
        session.change_setting(name, value, is_local=True)


def set_session_characteristics(
    session: Session, modes: Sequence[str], *, is_local: bool = False
) -> None:
    """Set the default modes of the session's transactions.

    Raises:
        FeatureNotSupported: a mode is an isolation level other than READ COMMITTED (0A000).
    """
    for name, value in _settings(modes):
        session.change_setting(TRANSACTION_SETTINGS[name], value, is_local=is_local)


def _settings(modes: Sequence[str]) -> list[tuple[str, str]]:
    """Return the settings of modes, with their values."""
    for mode in _unsupported(modes):
        raise FeatureNotSupported(f"{mode.upper()} is not supported")
    return [_MODES[mode] for mode in modes]


def _unsupported(modes: Sequence[str]) -> list[str]:
    return [mode for mode in modes if mode not in _MODES]


def _begin(session: Session, statement: ast.TransactionStmt) -> str:
    modes = [option.name for option in statement.options]
    current = session.block or block.begin(session, is_implicit=True)
    if not current.is_implicit:
        session.notice(
            "there is already a transaction in progress", severity="WARNING", sqlstate="25001"
        )
    if _unsupported(modes):
        # PostgreSQL opens the block.  Statements in it must not commit here, so the block fails.
        current.is_implicit = False
    set_transaction(session, modes)
    current.is_implicit = False
    return "BEGIN" if statement.kind == "begin" else "START TRANSACTION"


def _end(session: Session, statement: ast.TransactionStmt) -> str:
    current, tag = session.block, statement.kind.upper()
    if current is None or current.is_implicit:
        if statement.chain:
            raise NoActiveSqlTransaction(f"{tag} AND CHAIN can only be used in transaction blocks")
        session.notice("there is no transaction in progress", severity="WARNING", sqlstate="25P01")
    if current is None:
        return tag
    commits = statement.kind == "commit" and not current.has_failed
    if not commits and current.savepoints:  # the characteristics are those before the savepoints
        current.is_read_only = current.savepoints[0].is_read_only
    characteristics = {name: session.setting(name) for name in TRANSACTION_SETTINGS}
    if commits:
        block.commit(session)
    else:
        tag = "ROLLBACK"
        block.rollback(session)
    if statement.chain:
        block.begin(session)
        for name, value in characteristics.items():
            session.change_setting(name, value, is_local=True)
    return tag
