"""`replctl cluster backup | identify`: copy a cluster, and identify a copy."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from replctl.psql.command_group import (
    Incomplete,
    checked_directory,
    command_group,
    opened_cluster,
    run_command_group,
)
from replctl.psql.messages import Messages

if TYPE_CHECKING:
    from replctl.catalog.cluster import Cluster
    from replctl.lake.promotion_without_primary import FoundInStorage, FoundTable

#: The parts of a backup, with their descriptions.
_PARTS = (
    ("catalog.db", "the catalog, with the key that signs commits; it needs no -wal and no -shm"),
    ("base", "the tables that lie in the home"),
    ("postgresql.auto.conf", "the settings of ALTER SYSTEM"),
)

_Home = Annotated[str | None, typer.Option(help="The cluster's directory.")]


def run_cluster(argv: Sequence[str], messages: Messages) -> int:
    """Run `replctl cluster` with some arguments, and return the exit code."""
    app = command_group("Back up a cluster, and identify copies of its directory.")
    app.command("backup", help="Copy the cluster while it is in use.")(_backup)
    app.command("identify", help="Declare a directory as copied, moved or restored.")(_identify)
    return run_command_group(app, "cluster", argv, messages)


def _backup(
    directory: Annotated[str, typer.Argument(help="A new or empty directory.")],
    home: _Home = None,
) -> None:
    from replctl.lake.backup import back_up

    target = checked_directory(directory, "directory")
    with opened_cluster(home) as cluster:
        found = back_up(cluster, target)
    print(f"{found.tables} tables, {found.files} files")
    for name, what in _PARTS:
        if (target / name).exists():
            print(f"copied: {name}: {what}")
    for name, location in found.elsewhere:
        print(f"not copied: table {name} at {location}")
    print(
        "Keep these together, and put them back together:"
        " without a catalog.db-wal or catalog.db-shm of another time."
    )
    if found.problems:
        raise Incomplete(found.problems)


def _identify(
    home: _Home = None,
    copied: Annotated[
        bool, typer.Option("--copied", help="Make the copy an independent cluster.")
    ] = False,
    moved: Annotated[
        bool,
        typer.Option(
            "--moved", help="The cluster is now in this directory, and no longer in the other one."
        ),
    ] = False,
    restored: Annotated[
        bool,
        typer.Option(
            "--restored",
            help="The catalog was restored from a backup: add the tables' later commits to the"
            " commit log.",
        ),
    ] = False,
) -> None:
    if copied + moved + restored > 1:
        raise typer.BadParameter("--copied, --moved and --restored exclude each other")
    with opened_cluster(home, is_checked=not (copied or moved)) as cluster:
        if copied:
            _report_copied(cluster)
        elif restored:
            _report_restored(cluster)
        elif moved:
            _report_moved(cluster)
        else:
            print(f"system identifier: {cluster.system_identifier}\nhome: {cluster.path}")


def _report_moved(cluster: Cluster) -> None:
    from replctl.catalog.identify import identify_moved

    warning = identify_moved(cluster)
    if warning is not None:
        print(f"replctl: warning: {warning.message}", file=sys.stderr)
        print(f"replctl: detail: {warning.detail}", file=sys.stderr)
        print(f"replctl: hint: {warning.hint}", file=sys.stderr)


def _report_copied(cluster: Cluster) -> None:
    from replctl.lake.identify_copy import identify_copied

    found = identify_copied(cluster)
    print(f"system identifier: {found.system_identifier}")
    if found.ended:
        print(f"transactions ended: {found.ended}")
    for slot in found.slots:
        print(f"slot dropped: {slot}")
    for subscription in found.subscriptions:
        print(f"subscription disabled: {subscription}")
    for name, location in found.tables:
        print(f"table only read: {name} at {location}")
    for setting in found.settings:
        print(f"setting removed: {setting}")


def _report_restored(cluster: Cluster) -> None:
    from replctl.lake.promotion_without_primary import accept_restored_catalog

    found = accept_restored_catalog(cluster, without_tables=True)
    for table in found.tables:
        print(f"{table.database}: {table.name}: {_restored_state(table)}")
    report_found(found)


def report_found(found: FoundInStorage) -> None:
    """Print the sequences and the totals of a search for lost commits."""
    for sequence in found.sequences:
        state = f"set to {sequence.value}, the last value in the new rows of its column"
        if sequence.value is None:
            state = (
                "may give values again that it has given since: compare it with the columns that"
                " use it, and use setval()"
            )
        print(f"{sequence.database}: {sequence.name}: {state}")
    print(f"{found.entered} commits of tables entered, {found.undone} transactions to undo")


def _restored_state(table: FoundTable) -> str:
    """Return a text that says whether a table agrees with a restored catalog."""
    versions = (
        f"it has version {table.newest}, the catalog knew version"
        f" {'none' if table.known is None else table.known}"
    )
    if table.error is not None:
        return f"not readable: {table.error}; mend it and repeat the command, or drop the table"
    if table.newest is None:
        return "not there: put its directory back and repeat the command, or drop the table"
    if table.is_broken:
        kind = "older than" if table.newest < (table.known or 0) else "not the one of"
        return f"{kind} the catalog: {versions}; its subscriptions stop until it is reconciled"
    if table.is_as_known:
        return f"as the catalog knows it, version {table.newest}"
    done = f"{table.entered} commits entered, {table.undone} transactions to undo"
    return f"newer than the catalog: {versions}; {done}"
