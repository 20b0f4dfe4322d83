"""`replctl standby create | sync | promote`: a cluster that follows another and can replace it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from replctl.errors import CannotConnectNow, ObjectNotInPrerequisiteState, PostgresError
from replctl.psql.cluster_command import report_found
from replctl.psql.command_group import (
    Incomplete,
    check_seconds,
    checked_directory,
    command_group,
    existing_home,
    home_directory,
    opened_cluster,
    run_command_group,
)
from replctl.psql.messages import Messages
from replctl.psql.stop_signals import StopSignals
from replctl.psql.variables import Variables
from replctl.standard_streams import outlasting_readers

if TYPE_CHECKING:
    from replctl.catalog.cluster import Cluster

_Home = Annotated[str | None, typer.Option(help="The standby's directory.")]


def run_standby(argv: Sequence[str], messages: Messages) -> int:
    """Run `replctl standby` with some arguments, and return the exit code."""
    app = command_group(
        "A standby follows another cluster's catalog, shares its tables, and can take its place."
    )
    app.command("create", help="Create a standby in a new directory.")(_create)
    app.command("sync", help="Copy new entries from the primary's catalog.")(_sync)
    app.command("promote", help="Make the standby the primary.")(_promote)
    return run_command_group(app, "standby", argv, messages)


def _create(
    primary: Annotated[str, typer.Option(help="The primary's directory.")],
    home: _Home = None,
    slot: Annotated[
        str,
        typer.Option(
            help="The physical replication slot to use.  The command creates a missing slot."
        ),
    ] = "standby",
) -> None:
    from replctl.catalog.standby import create_standby

    directory = checked_directory(primary, "--primary")
    create_standby(existing_home(directory), _directory(home), slot)


def _sync(
    home: _Home = None,
    watch: Annotated[bool, typer.Option("--watch", help="Run until interrupted.")] = False,
    interval: Annotated[
        float,
        typer.Option(
            min=0.0, callback=check_seconds, help="Seconds between two rounds of --watch."
        ),
    ] = 1.0,
) -> None:
    from replctl.catalog.standby import receive

    with opened_cluster(_directory(home)) as standby:
        if watch:
            with outlasting_readers(), StopSignals() as signals:
                _watch(standby, interval, signals)
            return
        problems = receive(standby)
    if problems:
        raise Incomplete(problems)


def _watch(standby: Cluster, interval: float, signals: StopSignals) -> None:
    """Follow the primary until a signal comes.  Report each problem once, and reconnect after it:
    the primary may come back, or its catalog was only busy.

    Raises:
        CannotConnectNow, ObjectNotInPrerequisiteState: the primary is gone.
        IoError, DiskFull: the standby's own home cannot be written at the start.
    """
    from replctl.catalog.standby import attached

    if standby.refusal is not None:  # unlike the primary, it is opened only once
        raise standby.refusal
    said: list[str] = []
    while not signals.has_come:
        try:
            with attached(standby) as receiver:
                while not signals.has_come:
                    said = _say(receiver.receive(), said)
                    signals.sleep(interval)
        except (CannotConnectNow, ObjectNotInPrerequisiteState):  # the primary is gone
            raise
        except PostgresError as error:
            said = _say([error], said)
            signals.sleep(interval)


def _say(problems: Sequence[PostgresError], said: Sequence[str]) -> list[str]:
    """Report problems that were not reported in the last round.  Return the messages of all
    problems.
    """
    messages = Messages(Variables())
    for problem in problems:
        if problem.message not in said:
            messages.report(problem)
    return [problem.message for problem in problems]


def _promote(
    home: _Home = None,
    wait: Annotated[
        float,
        typer.Option(
            min=0.0, callback=check_seconds, help="Seconds to wait for writers of the old primary."
        ),
    ] = 60.0,
    without_primary: Annotated[
        bool,
        typer.Option(
            "--without-primary",
            help="Recover the commits of a lost primary from the tables.",
        ),
    ] = False,
    without_tables: Annotated[
        bool,
        typer.Option(
            "--without-tables",
            help="With --without-primary: promote even if tables are missing or cannot be read.",
        ),
    ] = False,
) -> None:
    if without_tables and not without_primary:
        raise typer.BadParameter("it needs --without-primary", param_hint="--without-tables")
    with opened_cluster(_directory(home)) as standby:
        if without_primary:
            from replctl.lake.promotion_without_primary import promote_without_primary

            found = promote_without_primary(standby, without_tables=without_tables)
            for table in found.tables:
                if table.newest is None:
                    reason = table.error or "it is not there"
                    print(f"{table.database}: {table.name}: left out: {reason}")
            report_found(found)
        else:
            from replctl.catalog.promotion import promote

            promote(standby, wait)


def _directory(home: str | None) -> Path:
    chosen = home or os.environ.get("REPLCTL_HOME")
    if not chosen:
        raise typer.BadParameter("the standby's directory is wanted", param_hint="--home")
    return home_directory(chosen)
