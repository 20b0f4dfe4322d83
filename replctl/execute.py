"""Execute statements: parse each one, and call its function (utility.c).

The module of a function is imported when a statement first needs it, so that a short command does
not load all modules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, assert_never

from replctl.catalog.pg_control import check_connectable
from replctl.errors import (
    PostgresError,
    ReadOnlySqlTransaction,
    SqlSyntaxError,
    TransactionInProgress,
    UnfinishedBatch,
)
from replctl.memory_limit import SETTING as MEMORY
from replctl.memory_limit import memory_limit
from replctl.parser import ast
from replctl.parser.parse import parse
from replctl.result import Result
from replctl.session import Session
from replctl.statement_timeout import statement_timeout
from replctl.transaction_block import check_not_failed

if TYPE_CHECKING:
    from replctl.query.sql_function import StatementRunner

#: Transaction statements that a failed block allows, statements that need no snapshot
#: (PlannedStmtRequiresSnapshot in pquery.c), and statements that a read-only transaction allows.
_ENDS = ("commit", "rollback", "rollback to")
_WITHOUT_SNAPSHOT = (ast.TransactionStmt, ast.VariableSet, ast.VariableShow, ast.Checkpoint)
_READING = (
    ast.SelectStmt,
    ast.VariableShow,
    ast.Explain,
    ast.VariableSet,
    ast.TransactionStmt,
    ast.AlterSystem,
    ast.Checkpoint,
    ast.Discard,
)


def execute(session: Session, text: str) -> Iterator[Result]:
    """Execute the statements of `text` in order as one transaction, unless they contain transaction
    control.

    Raises:
        QueryCanceled: a statement has taken longer than statement_timeout (57014).
        PostgresError: a statement failed; its transaction has no effect.
    """
    session.statement_start = datetime.now(UTC)
    with _bounded(session):
        statements = parse(text, session.report)
    for statement in statements:
        with _bounded(session):
            if session.block is None:
                session.transaction_start = session.statement_start
                if len(statements) > 1 or _is_in_steps(statement):
                    _begin_implicitly(session)
            _check_block(session, statement)
            with _naming_tables(session):
                result = _run_when_free(session, statement)
            if statement is statements[-1]:
                _commit_implicitly(session)
        try:
            yield result
        except GeneratorExit:  # the caller does not want the results of the other statements
            _roll_back_implicitly(session)
            raise


def describe(session: Session, text: str) -> list[tuple[str, str]]:
    """Return names and types of the result columns of the statement in `text`, without executing
    it.  The list is empty if the statement returns no rows.

    Raises:
        PostgresError: the analysis failed, or there is more than one statement.
    """
    from replctl.query import described_columns as query_describe

    session.statement_start = datetime.now(UTC)
    with _bounded(session):
        statements = parse(text, session.report)
        if len(statements) > 1:
            raise SqlSyntaxError("cannot insert multiple commands into a prepared statement")
        for statement in statements:
            if session.block is None:
                session.transaction_start = session.statement_start
            elif session.block.has_failed:
                _check_block(session, statement)
            return query_describe.describe(session, statement)
    return []


def _is_in_steps(statement: ast.Statement) -> bool:
    """Return whether a statement uses more than one transaction of the catalog."""
    match statement:
        case ast.CreateTableAs() | ast.RefreshMaterializedView():
            return True
        case ast.CreateSchema():
            return bool(statement.elements)
    return False


def _begin_implicitly(session: Session) -> None:
    from replctl.lake import block

    block.begin(session, is_implicit=True)


def _commit_implicitly(session: Session) -> None:
    if session.block is not None and session.block.is_implicit:
        from replctl.lake import block

        block.commit(session)


def _roll_back_implicitly(session: Session) -> None:
    if session.block is not None and session.block.is_implicit:
        from replctl.lake import block

        block.rollback(session)


@contextmanager
def _bounded(session: Session) -> Iterator[None]:
    """Run a statement or its analysis within the session's limits of time and memory.  After an
    error, the open block has failed."""
    time = statement_timeout(int(session.setting("statement_timeout")))
    with _failing_block(session), time, memory_limit(int(session.setting(MEMORY))):
        yield


@contextmanager
def _failing_block(session: Session) -> Iterator[None]:
    """Run a statement.  After an error, mark the open block as failed, and drop the session's
    temporary slots."""
    try:
        yield
    except BaseException:
        try:
            if session.block is not None:
                from replctl.lake import block

                block.fail(session)
        finally:
            session.drop_temporary_slots()
        raise


@contextmanager
def _naming_tables(session: Session) -> Iterator[None]:
    """Add the name of the table to Spark's errors about a file."""
    try:
        yield
    except PostgresError as error:
        if error.path is None:
            raise
        from replctl.lake.table_error import named

        named_error = named(session, error)
        if named_error is error:
            raise
        raise named_error from error


def _check_block(session: Session, statement: ast.Statement) -> None:
    """Check that the open block and the cluster allow a statement.

    Raises:
        InFailedSqlTransaction: the block has failed (25P02).
        ReadOnlySqlTransaction: the transaction is read-only, or the cluster is a standby (25006).
        CannotConnectNow: a promoted standby has replaced the cluster (57P03).
    """
    control = session.cluster.control()
    check_connectable(control)
    is_end = isinstance(statement, ast.TransactionStmt) and statement.kind in _ENDS
    if not is_end:
        check_not_failed(session.block)
    if session.block is not None and not isinstance(statement, _WITHOUT_SNAPSHOT):
        session.block.has_snapshot = True
    is_analyze = isinstance(statement, ast.Vacuum) and statement.is_analyze
    is_copy_to = isinstance(statement, ast.Copy) and not statement.is_from
    if isinstance(statement, _READING) or is_analyze or is_copy_to:
        return
    if isinstance(statement, ast.Vacuum) and control.is_in_recovery:
        raise ReadOnlySqlTransaction("cannot execute VACUUM during recovery")
    if isinstance(statement, ast.Vacuum):  # does not change rows (COMMAND_OK_IN_READ_ONLY_XACT)
        return
    if session.is_read_only or control.is_in_recovery:
        raise ReadOnlySqlTransaction(
            f"cannot execute {_command_name(statement)} in a read-only transaction"
        )


def _command_name(statement: ast.Statement) -> str:
    """Return the name of a statement: CREATE TABLE, TRUNCATE TABLE, DROP SCHEMA."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(statement).__name__).upper()
    match statement:
        case ast.Truncate():
            return "TRUNCATE TABLE"
        case ast.TransactionStmt(kind="start"):
            return "START TRANSACTION"
        case ast.TransactionStmt():
            return statement.kind.split()[0].upper()
        case ast.VariableShow():
            return "SHOW"
        case ast.VariableSet():
            return "RESET" if statement.reset else "SET"
        case ast.Drop():
            return f"DROP {statement.object_type.upper()}"
        case (
            ast.Rename()
            | ast.AlterOwner()
            | ast.AlterObjectSchema()
            | ast.AlterTable()
            | ast.AlterFunction()
        ):
            return f"ALTER {statement.object_type.upper()}"
        case ast.AddEnumValue() | ast.RenameEnumValue():
            return "ALTER TYPE"
        case ast.CreateEnum() | ast.CreateComposite():
            return "CREATE TYPE"
        case ast.AlterRoleSet():
            return "ALTER ROLE"
        case ast.AlterDatabaseSet():
            return "ALTER DATABASE"
        case ast.Copy():
            return "COPY FROM"
        case ast.Grant() | ast.GrantRole():
            return "GRANT" if statement.is_grant else "REVOKE"
        case ast.CreateTableAs(is_materialized_view=True):
            return "CREATE MATERIALIZED VIEW"
        case ast.Vacuum(is_analyze=True):
            return "ANALYZE"
    return name


def _run_when_free(session: Session, statement: ast.Statement) -> Result:
    """Execute a statement.  If other transactions block it, wait for their end and repeat it.

    That is safe: a blocked statement fails before it has effects that its failure does not undo.
    """
    session.finish_batches = partial(_finish_batches, session)
    kept, session.early_calls = session.early_calls, {}
    try:
        return _run(session, statement)
    except (TransactionInProgress, UnfinishedBatch) as blocked:
        # its writer may finish, or need help
        from replctl.lake.waiting import give_way, when_free

        give_way(session, blocked)
        return when_free(session, lambda: _run(session, statement))
    finally:
        session.early_calls = kept


def _run(session: Session, statement: ast.Statement) -> Result:
    match statement:
        case ast.SelectStmt():
            from replctl.query.select import select
            from replctl.query.settings_rewrite import shown_result

            return shown_result(session, select(session, statement, _function_runner(session)))
        case ast.Insert() | ast.Update() | ast.Delete() | ast.Truncate():
            from replctl.query.settings_rewrite import shown_result

            return shown_result(session, _change_rows(session, statement))
        case ast.Copy():
            from replctl.query.copy import copy

            return copy(session, statement)
        case ast.VariableShow():
            from replctl.commands.variable import show

            return show(session, statement)
        case ast.Explain():
            from replctl.commands.explain_query import explain

            return explain(session, statement)
        case _:
            return Result(_command(session, statement))


def _run_within(session: Session, statement: ast.Statement) -> Result:
    """Execute a statement of an SQL function, within the block of the calling statement."""
    _check_block(session, statement)
    return _run_when_free(session, statement)


def _function_runner(session: Session) -> StatementRunner:
    """Return the runner of the statements in SQL functions.  It runs them within the session's
    block.
    """
    from replctl.query.select import select
    from replctl.query.sql_function import Finish, StatementRunner

    def select_last(statement: ast.SelectStmt, finish: Finish) -> Result:
        return select(session, statement, _function_runner(session), finish)

    return StatementRunner(partial(_run_within, session), select_last, _command_name)


def _change_rows(
    session: Session, statement: ast.Insert | ast.Update | ast.Delete | ast.Truncate
) -> Result:
    from replctl.lake.retry import repeated
    from replctl.query import insert, modify, truncate

    def carry_out() -> Result:
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

    return repeated(carry_out)


def _finish_batches(session: Session, found: UnfinishedBatch) -> None:
    """Finish subscriptions' batches that are partly written into the tables of a statement."""
    from replctl.launcher import finish_batches

    finish_batches(session, found)


def _command(session: Session, statement: ast.UtilityStatement) -> str:
    """Execute a statement that is neither a query nor a change of rows, and return the command
    tag."""
    match statement:
        case ast.CreatePublication():
            from replctl.commands import publication

            return publication.create_publication(session, statement)
        case ast.AlterPublication():
            from replctl.commands import publication

            return publication.alter_publication(session, statement)
        case ast.CreateSubscription():
            from replctl.commands import subscription

            return subscription.create_subscription(
                session, statement, partial(_run_within, session)
            )
        case ast.AlterSubscription():
            from replctl.commands import subscription

            return subscription.alter_subscription(
                session, statement, partial(_run_within, session)
            )
        case ast.DropSubscription():
            from replctl.commands import subscription

            return subscription.drop_subscription(session, statement)
        case ast.CreateTable():
            from replctl.commands.create_table import create_table

            return create_table(session, statement)
        case ast.CreateTableAs(is_materialized_view=True):
            from replctl.commands import view

            return view.create_materialized_view(session, statement)
        case ast.CreateTableAs():
            from replctl.commands import table_as

            return table_as.create_table_as(session, statement)
        case ast.CreateView():
            from replctl.commands import view

            return view.create_view(session, statement)
        case ast.RefreshMaterializedView():
            from replctl.commands import view

            return view.refresh_materialized_view(session, statement)
        case ast.AlterTable():
            from replctl.commands import alter_table

            return alter_table.alter_table(session, statement)
        case ast.CreateIndex():
            from replctl.commands import index

            return index.create_index(session, statement)
        case ast.CreateSequence():
            from replctl.commands import sequence

            return sequence.create_sequence(session, statement)
        case ast.AttachIndex():
            from replctl.commands import attach_index

            return attach_index.attach_index(session, statement)
        case ast.AlterSequence():
            from replctl.commands import sequence

            return sequence.alter_sequence(session, statement)
        case ast.CreateSchema():
            from replctl.commands import create_schema

            return create_schema.create_schema(session, statement, partial(_run_within, session))
        case ast.CreateDatabase():
            from replctl.commands import database

            return database.create_database(session, statement)
        case ast.DropDatabase():
            from replctl.commands import database

            return database.drop_database(session, statement)
        case ast.CreateEnum():
            from replctl.commands import type

            return type.create_enum(session, statement)
        case ast.CreateComposite():
            from replctl.commands import composite

            return composite.create_composite(session, statement)
        case ast.CreateDomain():
            from replctl.commands import domain

            return domain.create_domain(session, statement)
        case ast.AlterDomain():
            from replctl.commands import domain

            return domain.alter_domain(session, statement)
        case ast.RenameEnumValue():
            from replctl.commands import type

            return type.rename_enum_value(session, statement)
        case ast.AddEnumValue():
            from replctl.commands import type

            return type.add_enum_value(session, statement)
        case ast.CreateFunction():
            from replctl.commands import function

            return function.create_function(session, statement)
        case ast.AlterFunction():
            from replctl.commands import function

            return function.alter_function(session, statement)
        case ast.CreateOperator():
            from replctl.commands import function

            return function.create_operator(session, statement)
        case ast.CreateCollation():
            from replctl.commands import collation

            return collation.create_collation(session, statement)
        case ast.Comment():
            from replctl.commands import comment

            return comment.comment(session, statement)
        case ast.CreateRole():
            from replctl.commands import role

            return role.create_role(session, statement)
        case ast.AlterRole():
            from replctl.commands import role

            return role.alter_role(session, statement)
        case ast.DropRole():
            from replctl.commands import role

            return role.drop_role(session, statement)
        case ast.CreatePolicy():
            from replctl.commands import policy

            return policy.create_policy(session, statement)
        case ast.AlterPolicy():
            from replctl.commands import policy

            return policy.alter_policy(session, statement)
        case ast.GrantRole():
            from replctl.commands import role

            return role.grant_role(session, statement)
        case ast.AlterRoleSet():
            from replctl.commands import role_setting

            return role_setting.alter_role_set(session, statement)
        case ast.AlterDatabaseSet():
            from replctl.commands import role_setting

            return role_setting.alter_database_set(session, statement)
        case ast.AlterDefaultPrivileges():
            from replctl.commands import default_acl

            return default_acl.alter_default_privileges(session, statement)
        case ast.DropOwned():
            from replctl.commands import owned

            return owned.drop_owned(session, statement)
        case ast.ReassignOwned():
            from replctl.commands import owned

            return owned.reassign_owned(session, statement)
        case ast.Grant():
            from replctl.commands import grant

            return grant.grant(session, statement)
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
            from replctl.commands import transaction_statement

            return transaction_statement.transaction(session, statement)
        case ast.VariableSet():
            from replctl.commands import variable

            return variable.set_variable(session, statement)
        case ast.AlterSystem():
            from replctl.commands import variable

            return variable.alter_system(session, statement)
        case ast.Checkpoint():
            from replctl.commands import vacuum

            return vacuum.checkpoint(session)
        case ast.Discard():
            from replctl.commands import discard

            return discard.discard(session, statement)
        case ast.Vacuum():
            from replctl.commands import vacuum

            if statement.is_analyze:
                return vacuum.analyze(session, statement)
            return vacuum.vacuum(session, statement)
    assert_never(statement)
