"""BEGIN, COMMIT, ROLLBACK, SAVEPOINT and similar statements; SET TRANSACTION (xact.c)."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.errors import FeatureNotSupported, NoActiveSqlTransaction
from replctl.lake import block
from replctl.parser import ast
from replctl.session import Session

_READ_COMMITTED = ("isolation level read committed", "isolation level read uncommitted")
_ACCESS_MODES = {"read only": True, "read write": False}
_HARMLESS = ("deferrable", "not deferrable")


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
            on a standby.
    """
    _check(session, modes)
    for mode in modes:
        if mode in _ACCESS_MODES and session.block is not None:
            session.block.is_read_only = _ACCESS_MODES[mode]


def _check(session: Session, modes: Sequence[str]) -> None:
    for mode in modes:
        if mode == "read write" and session.cluster.is_in_recovery:
            raise FeatureNotSupported("cannot set transaction read-write mode during recovery")
        if mode not in (*_ACCESS_MODES, *_READ_COMMITTED, *_HARMLESS):
            raise FeatureNotSupported(f"{mode.upper()} is not supported")


def _begin(session: Session, statement: ast.TransactionStmt) -> str:
    tag = "BEGIN" if statement.kind == "begin" else "START TRANSACTION"
    modes = [option.name for option in statement.options]
    _check(session, modes)
    if session.block is None:
        block.begin(session)
    elif session.block.is_implicit:
        session.block.is_implicit = False
    else:
        session.notice(
            "there is already a transaction in progress", severity="WARNING", sqlstate="25001"
        )
    set_transaction(session, modes)
    return tag


def _end(session: Session, statement: ast.TransactionStmt) -> str:
    current, tag = session.block, statement.kind.upper()
    if current is None or current.is_implicit:
        if statement.chain:
            raise NoActiveSqlTransaction(f"{tag} AND CHAIN can only be used in transaction blocks")
        session.notice("there is no transaction in progress", severity="WARNING", sqlstate="25P01")
    if current is None:
        return tag
    if statement.kind == "commit" and not current.has_failed:
        block.commit(session)
    else:
        tag = "ROLLBACK"
        block.rollback(session)
    if statement.chain:
        block.begin(session).is_read_only = current.is_read_only
    return tag
