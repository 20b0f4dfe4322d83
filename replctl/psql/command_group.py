"""Subcommands that have subcommands: `replctl standby`, `replctl spark`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from replctl.errors import PostgresError, UndefinedFile
from replctl.psql.exit_code import ExitCode
from replctl.psql.messages import Messages

if TYPE_CHECKING:
    from replctl.catalog.cluster import Cluster

#: Options, with a value, that may stand before the command, too.
_VALUED = ("--home", "--master", "--conf")


class Incomplete(Exception):
    """A command has done what it could; what it could not is said."""

    def __init__(self, problems: Sequence[PostgresError]) -> None:
        super().__init__(problems)
        self.problems = problems


class NotConnected(Exception):
    """There is no cluster to work with, or it cannot be opened."""

    def __init__(self, error: PostgresError) -> None:
        super().__init__(error)
        self.error = error


def existing_home(home: str | Path | None) -> Path:
    """Return the directory of a cluster that is there: --home, $REPLCTL_HOME, or the user's.

    Raises:
        NotConnected: there is none in it; none is made.
    """
    from replctl.catalog.cluster import Cluster

    try:
        directory = Cluster.home(home)
        is_there = Cluster.exists(directory)
    except PostgresError as error:
        raise NotConnected(error) from error
    if not is_there:
        raise NotConnected(UndefinedFile(f'there is no cluster in "{directory}"'))
    return directory


@contextmanager
def opened_cluster(
    home: str | Path | None, *, is_made: bool = False, is_checked: bool = True
) -> Iterator[Cluster]:
    """Open a cluster, while the block runs.

    Args:
        home: as for `existing_home`.
        is_made: if it is not there.
        is_checked: it has to be at its own home.

    Raises:
        NotConnected: there is none, or it cannot be opened: it is a copy, or of another revision.
    """
    from replctl.catalog.open_cluster import open_cluster

    directory = home if is_made else existing_home(home)
    try:
        cluster = open_cluster(directory, is_checked=is_checked)
    except PostgresError as error:
        raise NotConnected(error) from error
    try:
        yield cluster
    finally:
        cluster.close()


def command_group(help_text: str) -> typer.Typer:
    """Commands that are going to be added."""
    return typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        help=help_text,
    )


def _command_first(argv: Sequence[str]) -> list[str]:
    """Put options that stand before the command after it.

    [`--home`, h, status, `--json`]  ->  [status, `--home`, h, `--json`]
    """
    count = 0
    while count < len(argv) and argv[count].partition("=")[0] in _VALUED:
        count += 1 if "=" in argv[count] else 2
    if argv[count : count + 1] and argv[count].startswith("-"):  # --help
        return list(argv[count:])
    return [*argv[count : count + 1], *argv[:count], *argv[count + 1 :]]


def run_command_group(app: typer.Typer, name: str, argv: Sequence[str], messages: Messages) -> int:
    """Do what the arguments of `replctl NAME` say; the exit code, which is FAILURE where they were
    wrong, or something could not be done, unless the command has one of its own."""
    try:
        app(_command_first(argv), prog_name=f"replctl {name}")
    except typer.Exit as own:
        return own.exit_code
    except SystemExit as error:
        return ExitCode.FAILURE if error.code == 2 else int(error.code or 0)
    except NotConnected as failure:
        messages.report(failure.error)
        return ExitCode.BAD_CONNECTION
    except PostgresError as error:
        messages.report(error)
        return ExitCode.FAILURE
    except Incomplete as incomplete:
        for problem in incomplete.problems:
            messages.report(problem)
        return ExitCode.FAILURE
    except KeyboardInterrupt:
        return ExitCode.SUCCESS
    return ExitCode.SUCCESS
