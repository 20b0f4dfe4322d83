"""Run a statement: echo it, execute it, and print its result (SendQuery in psql's common.c)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from replctl.errors import PostgresError
from replctl.psql.command_no_begin import runs_without_begin
from replctl.psql.copy_data import CopyData
from replctl.psql.crosstabview import Crosstab, crosstab
from replctl.psql.output import Output
from replctl.psql.print_content import Alignment, PrintOptions, Table
from replctl.psql.psql_settings import PsqlSettings, TransactionStatus
from replctl.psql.reporting import reporting_errors, showing_progress
from replctl.psql.variables import PsqlError
from replctl.record import dataclass
from replctl.result import Result

#: Types with right-aligned columns (column_type_alignment in print.c).
_RIGHT_ALIGNED = frozenset(
    ("int2", "int4", "int8", "float4", "float8", "numeric", "oid", "xid", "xid8", "cid", "money")
)

_SAVEPOINT = "pg_psql_temporary_savepoint"

#: First words of the tags of statements that change nothing, after which AUTOSYNC does not run.
_READ_ONLY_TAGS = frozenset(
    "SELECT SHOW SET RESET DISCARD BEGIN START ROLLBACK SAVEPOINT RELEASE".split()
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """The use that a backslash command makes of the result of its query.

    Attributes:
        target: a file, or `|` and a program, instead of the usual output.
        print_options: the options to use instead of the session's.
        copy_input: returns the lines for COPY FROM STDIN (None at the end), instead of the script.
        copy_output: the target of COPY TO STDOUT, instead of the usual output.
        gset_prefix: store the values of the only row in variables whose names are this prefix and
            the name of the column (`\\gset`).
        crosstab: show the rows as a grid (`\\crosstabview`).
        describes: show only the columns of the query, without running it (`\\gdesc`).
        executes_values: run each value as a statement (`\\gexec`).
    """

    target: str | None = None
    print_options: PrintOptions | None = None
    copy_input: Callable[[], str | None] | None = None
    copy_output: Output | None = None
    gset_prefix: str | None = None
    crosstab: Crosstab | None = None
    describes: bool = False
    executes_values: bool = False


def send_query(settings: PsqlSettings, text: str, delivery: Delivery | None = None) -> bool:
    """Run the statements in `text`, print the results, and return whether all succeeded.

    Print errors, and set the variables ERROR, SQLSTATE, ROW_COUNT and LAST_ERROR_*.
    """
    if settings.session is None:
        settings.messages.error("You are currently not connected to a database.")
        return False
    if settings.variables.is_on("SINGLESTEP") and not _is_confirmed(settings, text):
        return True
    if settings.variables.choice("ECHO") == "queries":
        print(text, flush=True)
    if settings.log_file is not None:
        settings.log_file.write(
            f"/******** QUERY *********/\n{text}\n/************************/\n\n"
        )
        settings.log_file.flush()
    if not _begin_if_needed(settings, text):
        return False
    start = time.perf_counter()
    delivery = delivery or Delivery()
    run = _describe if delivery.describes else _run
    with _savepoint(settings):
        succeeded = run(settings, text, delivery)
    if settings.shows_timing:
        print(_timing((time.perf_counter() - start) * 1000), flush=True)
    return succeeded


def run_silently(settings: PsqlSettings, text: str) -> bool:
    """Run a statement of psql's own (BEGIN, COMMIT), which prints nothing unless it fails."""
    try:
        for _result in _results(settings, text):
            pass
    except PostgresError as error:  # the caller decides what follows
        settings.messages.report(error, text)
        return False
    return True


def _run(settings: PsqlSettings, text: str, delivery: Delivery) -> bool:
    has_changes = False
    with reporting_errors(settings, text) as succeeded:
        row_count = 0
        delivered = True
        pending: Result | None = None

        def print_pending() -> None:
            nonlocal pending
            shown, pending = pending, None
            if shown is not None:
                _print_result(settings, shown, Delivery(print_options=delivery.print_options))

        copied = CopyData(
            settings, delivery.copy_input, delivery.copy_output, delivery.target, print_pending
        )
        with copied.offered():
            try:
                for result in _results(settings, text):
                    if settings.variables.is_on("SHOW_ALL_RESULTS"):
                        print_pending()
                    is_shown = copied.takes_tag()
                    pending = None if is_shown else result
                    row_count = result.row_count
                    is_reading = is_shown or result.tag.split(" ", 1)[0] in _READ_ONLY_TAGS
                    has_changes |= not is_reading
            except PostgresError:  # still show the earlier results
                print_pending()
                raise
        delivered = not copied.has_failed
        if pending is not None:
            delivered &= _deliver(settings, pending, delivery)
        if delivered:
            settings.variables.record_success(row_count)
        else:
            settings.variables.record_unused()
    if (
        has_changes
        and settings.transaction_status is TransactionStatus.IDLE
        and settings.variables.is_on("AUTOSYNC")
    ):
        from replctl.psql.sync import sync_subscriptions

        sync_subscriptions(settings, ())
    return bool(succeeded) and delivered


def _describe(settings: PsqlSettings, text: str, delivery: Delivery) -> bool:
    """Print the columns that a query would return (`\\gdesc`); return whether that succeeded."""
    from replctl.execute import describe

    assert settings.session is not None
    with reporting_errors(settings, text) as succeeded:
        columns = describe(settings.session, text)
        settings.variables.record_success(len(columns))
        if columns:
            settings.print(Table(("Column", "Type"), columns), delivery.print_options)
        else:
            print(
                "The command has no result, or the result has no columns.",
                file=settings.output.stream,
                flush=True,
            )
    return bool(succeeded)


def _results(settings: PsqlSettings, text: str) -> Iterator[Result]:
    from replctl.execute import execute

    assert settings.session is not None
    with showing_progress(settings):
        yield from execute(settings.session, text)


def _begin_if_needed(settings: PsqlSettings, text: str) -> bool:
    """Begin a block if AUTOCOMMIT is off, unless the statement controls transactions or cannot run
    in a block.
    """
    if (
        settings.variables.is_on("AUTOCOMMIT")
        or settings.transaction_status is not TransactionStatus.IDLE
    ):
        return True
    if not text.strip() or runs_without_begin(text):
        return True
    return run_silently(settings, "BEGIN")


@contextmanager
def _savepoint(settings: PsqlSettings) -> Iterator[None]:
    """Set a savepoint in a block if ON_ERROR_ROLLBACK says so.  Then a failed statement undoes only
    its own changes."""
    choice = settings.variables.choice("ON_ERROR_ROLLBACK")
    if (
        settings.transaction_status is not TransactionStatus.IN_BLOCK
        or choice == "off"
        or (choice == "interactive" and not settings.is_interactive)
    ):
        yield
        return
    run_silently(settings, f"SAVEPOINT {_SAVEPOINT}")
    assert settings.session is not None
    begun = settings.session.block
    assert begun is not None
    savepoint = begun.savepoints[-1]
    yield
    block = settings.session.block
    if block is not None and block.has_failed:
        run_silently(settings, f"ROLLBACK TO {_SAVEPOINT}")
    elif (
        block is not None and savepoint in block.savepoints[-1:]
    ):  # otherwise the statement itself was about savepoints
        run_silently(settings, f"RELEASE {_SAVEPOINT}")


def _deliver(settings: PsqlSettings, result: Result, delivery: Delivery) -> bool:
    if result.columns is not None and delivery.gset_prefix is not None:
        return _store_variables(settings, result, delivery.gset_prefix)
    if result.columns is not None and delivery.crosstab is not None:
        return _print_crosstab(settings, result, delivery.crosstab)
    if result.columns is not None and delivery.executes_values:
        values = [value for row in result.rows for value in row if value is not None]
        outcomes = [_execute_value(settings, value) for value in values]
        return all(outcomes)
    if delivery.target is None or result.columns is None:
        return _print_result(settings, result, delivery)
    try:
        output = Output(delivery.target)
    except PsqlError as error:  # the file of \g cannot be opened
        settings.messages.error(str(error))
        return False
    usual, settings.output = settings.output, output
    try:
        return _print_result(settings, result, delivery)
    finally:
        settings.output = usual
        _close(settings, output)


def _close(settings: PsqlSettings, output: Output) -> None:
    exit_code = output.close()
    if exit_code is not None:
        settings.variables.record_shell_exit(exit_code)


def _execute_value(settings: PsqlSettings, value: str) -> bool:
    if settings.variables.choice("ECHO") == "all":
        print(value, flush=True)
    return send_query(settings, value)


def _print_result(settings: PsqlSettings, result: Result, delivery: Delivery) -> bool:
    if result.columns is not None:
        options = delivery.print_options or settings.print_options
        try:
            settings.print(_table(result), options)
        except PsqlError as error:  # the output cannot be written
            settings.messages.error(str(error))
            return False
    if not settings.is_quiet and (result.columns is None or _is_change(result.tag)):
        print(result.tag, file=settings.output.stream, flush=True)
        if settings.log_file is not None:
            print(result.tag, file=settings.log_file, flush=True)
    return True


def _is_change(tag: str) -> bool:
    return tag.split(" ", 1)[0] in ("INSERT", "UPDATE", "DELETE", "MERGE")


def _table(result: Result) -> Table:
    assert result.columns is not None
    alignments: list[Alignment] = [
        "r" if column.type in _RIGHT_ALIGNED else "l" for column in result.columns
    ]
    return Table([column.name for column in result.columns], result.rows, alignments)


def _print_crosstab(settings: PsqlSettings, result: Result, said: Crosstab) -> bool:
    try:
        settings.print(crosstab(said, _table(result), settings.print_options.null))
    except PsqlError as error:  # such as duplicate pairs: the session continues
        settings.messages.error(str(error))
        return False
    return True


def _store_variables(settings: PsqlSettings, result: Result, prefix: str) -> bool:
    """Store each value of the only row in a variable (`\\gset`); NULL unsets it."""
    assert result.columns is not None
    if len(result.rows) != 1:
        count = "no rows" if not result.rows else "more than one row"
        settings.messages.error(f"{count} returned for \\gset")
        return False
    for column, value in zip(result.columns, result.rows[0], strict=True):
        name = prefix + column.name
        if settings.variables.is_special(name):
            settings.messages.warning(
                f'attempt to \\gset into specially treated variable "{name}" ignored'
            )
        elif value is None:
            settings.variables.unset(name)
        else:
            try:
                settings.variables.set(name, value)
            except PsqlError as error:  # no name of a variable, or a wrong value
                settings.messages.error(str(error))
                return False
    return True


#: The number of characters of stdin that psql reads as an answer; stdin may also be the script.
_ANSWER_LENGTH = 2


def _is_confirmed(settings: PsqlSettings, text: str) -> bool:
    print(
        "/**(Single step mode: verify command)******************************************/\n"
        f"{text}\n"
        "/**(press return to proceed or enter x and return to cancel)*******************/",
        flush=True,
    )
    is_typed = settings.has_terminal
    answer = sys.stdin.readline() if is_typed else sys.stdin.readline(_ANSWER_LENGTH)
    return not answer.startswith("x")  # the end of stdin counts as yes


def _timing(milliseconds: float) -> str:
    """Return the text of `\\timing`: `Time: 61234.568 ms (01:01.235)` (PrintTiming)."""
    text = f"Time: {milliseconds:.3f} ms"
    seconds = milliseconds / 1000
    if seconds < 1:
        return text
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{text} ({minutes:02.0f}:{seconds:06.3f})"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{text} ({hours:02.0f}:{minutes:02.0f}:{seconds:06.3f})"
    days, hours = divmod(hours, 24)
    return f"{text} ({days:.0f} d {hours:02.0f}:{minutes:02.0f}:{seconds:06.3f})"
