"""DISCARD (discard.c)."""

from __future__ import annotations

from replctl.commands.temporary import drop_temporary_relations
from replctl.parser import ast
from replctl.session import Session
from replctl.session_setting import reset_all
from replctl.transaction_block import prevent_in_block


def discard(session: Session, statement: ast.Discard) -> str:
    """Discard state of the session, and return the command tag.  There are no plans to discard.

    Raises:
        ActiveSqlTransaction: DISCARD ALL is in a transaction block (25001).
    """
    what = statement.what
    if what == "ALL":
        prevent_in_block(session.block, "DISCARD ALL")
        session.change_setting("session_authorization", None)
        reset_all(session)
    if what in ("ALL", "TEMP") and session.temporary_schema is not None:
        drop_temporary_relations(session)
    if what in ("ALL", "SEQUENCES"):
        session.sequences.forget()
    return f"DISCARD {what}"
