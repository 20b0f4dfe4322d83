"""One statement in, its result out: parse, then the function that the statement belongs to
(utility.c).

The functions are imported when their statement is seen: a command that asks one thing of the
catalog should not load everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import assert_never

from replctl.catalog.pg_subscription import list_apply_batches
from replctl.errors import InFailedSqlTransaction, ReadOnlySqlTransaction
from replctl.parser import ast
from replctl.parser.parse import parse
from replctl.result import Result
from replctl.session import Session

#: What a block that has failed takes, and what a block that is read only takes.
_ENDS = ("commit", "rollback", "rollback to")
_READING = (ast.SelectStmt, ast.VariableShow, ast.VariableSet, ast.TransactionStmt)


def execute(session: Session, text: str) -> Iterator[Result]:
    """Carry out the statements of `text`, one after the other, as one transaction, unless they say
    where transactions begin and end.

    Raises:
        PostgresError: what is wrong; nothing of its transaction has happened.
    """
    with _failing_block(session):
        statements = parse(text)
    for statement in statements:
        with _failing_block(session):
            if session.block is None:
                session.transaction_start = datetime.now(UTC)
                if len(statements) > 1:
                    _begin_implicitly(session)
            _check_block(session, statement)
            result = _run(session, statement)
        yield result
    if session.block is not None and session.block.is_implicit:
        from replctl.lake import block

        block.commit(session)


def _begin_implicitly(session: Session) -> None:
    from replctl.lake import block

    block.begin(session, is_implicit=True)


@contextmanager
def _failing_block(session: Session) -> Iterator[None]:
    """What goes wrong makes the open block fail."""
    try:
        yield
    except BaseException:
        if session.block is not None:
            from replctl.lake import block

            block.fail(session)
        raise


def _check_block(session: Session, statement: ast.Statement) -> None:
    """Whether the open block takes a statement.

    Raises:
        InFailedSqlTransaction: it has failed (25P02).
        ReadOnlySqlTransaction: it may change nothing (25006).
    """
    block = session.block
    if block is None:
        return
    is_end = isinstance(statement, ast.TransactionStmt) and statement.kind in _ENDS
    if block.has_failed and not is_end:
        raise InFailedSqlTransaction(
            "current transaction is aborted, commands ignored until end of transaction block"
        )
    if block.is_read_only and not isinstance(statement, _READING):
        raise ReadOnlySqlTransaction(
            f"cannot execute {_command_name(statement)} in a read-only transaction"
        )


def _command_name(statement: ast.Statement) -> str:
    """The statement's own words: CREATE TABLE, TRUNCATE TABLE, DROP SCHEMA."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(statement).__name__).upper()
    match statement:
        case ast.Truncate():
            return "TRUNCATE TABLE"
        case ast.Drop():
            return f"DROP {statement.object_type.upper()}"
        case ast.Rename() | ast.AlterOwner() | ast.AlterObjectSchema():
            return f"ALTER {statement.object_type.upper()}"
        case ast.CreateEnum():
            return "CREATE TYPE"
    return name


def _run(session: Session, statement: ast.Statement) -> Result:
    match statement:
        case ast.SelectStmt():
            from replctl.query.select import select

            return select(session, statement)
        case ast.Insert() | ast.Update() | ast.Delete() | ast.Truncate():
            return _change_rows(session, statement)
        case ast.VariableShow():
            from replctl.commands.variable import show

            return show(session, statement)
        case _:
            return Result(_command(session, statement))


def _change_rows(
    session: Session, statement: ast.Insert | ast.Update | ast.Delete | ast.Truncate
) -> Result:
    from replctl.query import insert, modify, truncate

    _finish_batches(session)
    match statement:
        case ast.Insert():
            return insert.insert(session, statement)
        case ast.Update():
            return modify.update(session, statement)
        case ast.Delete():
            return modify.delete(session, statement)
        case ast.Truncate():
            return truncate.truncate(session, statement)
    assert_never(statement)


def _finish_batches(session: Session) -> None:
    """What an apply worker that died has left half written is finished before others write its
    tables."""
    with session.read() as catalog:
        is_finished = not list_apply_batches(catalog)
    if not is_finished:
        from replctl.launcher import finish_batches

        finish_batches(session)


def _command(session: Session, statement: ast.UtilityStatement) -> str:
    """Carry out what is neither a query nor a change of rows; the command tag."""
    match statement:
        case ast.CreatePublication():
            from replctl.commands import publication

            return publication.create_publication(session, statement)
        case ast.AlterPublication():
            from replctl.commands import publication

            return publication.alter_publication(session, statement)
        case ast.CreateSubscription():
            from replctl.commands import subscription

            return subscription.create_subscription(session, statement)
        case ast.AlterSubscription():
            from replctl.commands import subscription

            return subscription.alter_subscription(session, statement)
        case ast.DropSubscription():
            from replctl.commands import subscription

            return subscription.drop_subscription(session, statement)
        case ast.CreateTable():
            from replctl.commands import table

            return table.create_table(session, statement)
        case ast.CreateTableAs():
            from replctl.commands import table_as

            return table_as.create_table_as(session, statement)
        case ast.AlterTable():
            from replctl.commands import alter_table

            return alter_table.alter_table(session, statement)
        case ast.CreateIndex():
            from replctl.commands import index

            return index.create_index(session, statement)
        case ast.CreateSequence():
            from replctl.commands import sequence

            return sequence.create_sequence(session, statement)
        case ast.CreateSchema():
            from replctl.commands import schema

            return schema.create_schema(session, statement)
        case ast.CreateDatabase():
            from replctl.commands import database

            return database.create_database(session, statement)
        case ast.DropDatabase():
            from replctl.commands import database

            return database.drop_database(session, statement)
        case ast.CreateEnum():
            from replctl.commands import type

            return type.create_enum(session, statement)
        case ast.CreateFunction():
            from replctl.commands import function

            return function.create_function(session, statement)
        case ast.CreateOperator():
            from replctl.commands import function

            return function.create_operator(session, statement)
        case ast.Drop():
            from replctl.commands import drop

            return drop.drop(session, statement)
        case ast.Rename():
            from replctl.commands import alter_object

            return alter_object.rename(session, statement)
        case ast.AlterOwner():
            from replctl.commands import alter_object

            return alter_object.alter_owner(session, statement)
        case ast.AlterObjectSchema():
            from replctl.commands import alter_object

            return alter_object.alter_schema(session, statement)
        case ast.TransactionStmt():
            from replctl.commands import transaction

            return transaction.transaction(session, statement)
        case ast.VariableSet():
            from replctl.commands import variable

            return variable.set_variable(session, statement)
    assert_never(statement)
