"""Report failures and progress to the user."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from replctl.errors import DiskFull, InternalError, PostgresError, QueryCanceled
from replctl.psql.psql_settings import PsqlSettings
from replctl.psql.terminal import is_dumb
from replctl.psql.variables import PsqlError
from replctl.standard_streams import drop_unwritten


@contextmanager
def reporting_errors(settings: PsqlSettings, statement: str | None) -> Iterator[list[bool]]:
    """Report errors of the `with` block as errors of `statement`, or of a command if that is None.

    Unexpected exceptions, except those about a full disk, are reported as internal errors, and the
    cluster's log gets their tracebacks.

    Yields:
        A list: empty after a failure, else with the item True.
    """
    outcome = [True]
    try:
        yield outcome
    except PostgresError as error:  # ON_ERROR_STOP decides what follows
        _fail(settings, error, statement)
        outcome.clear()
    except KeyboardInterrupt:  # a user at the prompt continues
        _fail(settings, QueryCanceled("canceling statement due to user request"), statement)
        outcome.clear()
        if not settings.is_interactive:
            raise
    except PsqlError as error:  # it has no SQLSTATE to record
        settings.messages.error(str(error))
        outcome.clear()
    except BrokenPipeError:
        raise
    except Exception as error:  # our bug must not end the user's session
        if settings.session is None:
            raise
        _fail(settings, _unforeseen(settings, error), statement)
        outcome.clear()


@contextmanager
def showing_progress(settings: PsqlSettings) -> Iterator[None]:
    """Show Spark's progress on a terminal while the `with` block runs."""
    if not settings.has_terminal or settings.session is None or is_dumb():
        yield
        return
    from replctl.psql.progress import progress_bar

    with progress_bar(settings.session):
        yield


def _fail(settings: PsqlSettings, error: PostgresError, statement: str | None) -> None:
    settings.messages.report(error, statement)
    if statement is None:
        return
    if settings.variables.choice("ECHO") == "errors":
        settings.messages.write_report(f"STATEMENT:  {statement}")
    settings.variables.record_error(error)
    settings.last_error = (error, statement)


def _unforeseen(settings: PsqlSettings, error: Exception) -> PostgresError:
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        drop_unwritten(sys.stdout)
        file = f' to file "{error.filename}"' if error.filename else ""
        return DiskFull(f"could not write{file}: {error.strerror}")
    assert settings.session is not None
    cluster = settings.session.cluster
    cluster.log.report_fault(error)
    return InternalError(
        f"internal error: {type(error).__name__}: {error}",
        hint=f'This is a fault of replctl. The traceback is in "{cluster.log_file}".',
    )
