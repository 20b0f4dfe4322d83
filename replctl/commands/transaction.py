"""BEGIN, COMMIT, ROLLBACK (xact.c): there are no blocks yet, so that every statement is a
transaction."""

from __future__ import annotations

from replctl.errors import FeatureNotSupported, NoActiveSqlTransaction
from replctl.parser import ast
from replctl.session import Session


def transaction(session: Session, statement: ast.TransactionStmt) -> str:
    """What a transaction statement means outside of a block.

    Raises:
        FeatureNotSupported: it would begin a block.
        NoActiveSqlTransaction: it is for use in a block alone.
    """
    match statement.kind:
        case "begin" | "start":
            raise FeatureNotSupported("transaction blocks are not supported")
        case "commit" | "rollback" if statement.chain:
            raise NoActiveSqlTransaction(
                f"{statement.kind.upper()} AND CHAIN can only be used in transaction blocks"
            )
        case "commit" | "rollback":
            session.notice(
                "there is no transaction in progress", severity="WARNING", sqlstate="25P01"
            )
            return statement.kind.upper()
        case "savepoint" | "release" | "rollback to":
            name = "RELEASE SAVEPOINT" if statement.kind == "release" else statement.kind.upper()
            name = "ROLLBACK TO SAVEPOINT" if statement.kind == "rollback to" else name
            raise NoActiveSqlTransaction(f"{name} can only be used in transaction blocks")
