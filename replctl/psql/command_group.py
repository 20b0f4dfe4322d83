"""Subcommands that have subcommands: `replctl standby`, `replctl spark`."""

from __future__ import annotations

import math
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

#: Options with a value that may also come before the command.
_VALUED = ("--home", "--master", "--conf")


def check_seconds(value: float | None) -> float | None:
    """Return the value of an option.  NaN is outside every range, but typer accepts it, and a wait
    of NaN seconds ends at once.

    Raises:
        BadParameter: the value is NaN.
    """
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not in the range x>=0.")
    return value


def checked_directory(value: str, name: str) -> Path:
    """Return the directory that an argument names.  Path("") would be the working directory.

    Args:
        name: the name of the argument.

    Raises:
        BadParameter: the value is empty, for example because a script's variable is not set.
    """
    if not value:
        raise typer.BadParameter("a directory is wanted", param_hint=name)
    return Path(value)


class Incomplete(Exception):
    """Raised if a command could do only a part of its work.  It has reported why."""

    def __init__(self, problems: Sequence[PostgresError]) -> None:
        super().__init__(problems)
        self.problems = problems


class NotConnected(Exception):
    """Raised if there is no cluster, or it cannot be opened."""

    def __init__(self, error: PostgresError) -> None:
        super().__init__(error)
        self.error = error


def home_directory(home: str | Path | None) -> Path:
    """Return the directory of a cluster: --home, $REPLCTL_HOME, or the user's directory.

    Raises:
        NotConnected: see the errors of Cluster.home.
    """
    from replctl.catalog.cluster import Cluster

    try:
        return Cluster.home(home)
    except PostgresError as error:
        raise NotConnected(error) from error


def existing_home(home: str | Path | None) -> Path:
    """Return the directory of an existing cluster.

    Args:
        home: see `home_directory`.

    Raises:
        NotConnected: the directory has no cluster.  It is not created.
    """
    from replctl.catalog.cluster import Cluster

    directory = home_directory(home)
    try:
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
    """Open a cluster while the `with` block runs.

    Args:
        home: see `home_directory`.
        is_made: create the cluster if it is missing.
        is_checked: require that the cluster is in its own home, and not a copy.

    Raises:
        NotConnected: there is no cluster, or it cannot be opened, for example because it is a copy
            or has another revision.
    """
    from replctl.catalog.open_cluster import open_cluster

    directory = home if is_made else existing_home(home)
    try:
        cluster = open_cluster(directory, is_made=is_made, is_checked=is_checked)
    except PostgresError as error:
        raise NotConnected(error) from error
    try:
        yield cluster
    finally:
        cluster.close()


def command_group(help_text: str) -> typer.Typer:
    """Return an empty group of commands."""
    return typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        help=help_text,
    )


def _command_first(argv: Sequence[str]) -> list[str]:
    """Move options that come before the command to the place after it.

    [`--home`, h, status, `--json`]  ->  [status, `--home`, h, `--json`]
    """
    count = 0
    while count < len(argv) and argv[count].partition("=")[0] in _VALUED:
        count += 1 if "=" in argv[count] else 2
    if argv[count : count + 1] and argv[count].startswith("-"):  # --help
        return list(argv[count:])
    return [*argv[count : count + 1], *argv[:count], *argv[count + 1 :]]


def raise_broken_pipe(error: SystemExit) -> None:
    """Raise BrokenPipeError if typer exits because of it: the exit code is that of SIGPIPE."""
    if isinstance(error.__context__, BrokenPipeError):
        raise error.__context__


def run_command_group(app: typer.Typer, name: str, argv: Sequence[str], messages: Messages) -> int:
    """Run `replctl NAME` with some arguments, and return the exit code.  For wrong arguments or
    errors this is FAILURE, unless the command has its own exit code.
    """
    try:
        app(_command_first(argv), prog_name=f"replctl {name}")
    except SystemExit as error:  # of typer, also after --help
        raise_broken_pipe(error)
        return ExitCode.FAILURE if error.code == 2 else int(error.code or 0)
    except NotConnected as failure:  # psql's exit code for this
        messages.report(failure.error)
        return ExitCode.BAD_CONNECTION
    except PostgresError as error:  # users need no traceback of it
        messages.report(error)
        return ExitCode.FAILURE
    except Incomplete as incomplete:  # the command has done what it could
        for problem in incomplete.problems:
            messages.report(problem)
        return ExitCode.FAILURE
    return ExitCode.SUCCESS
