"""Subcommands beside the SQL: `replctl sync [SUBSCRIPTION...] [--watch]`, read by typer."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Annotated

import typer

from replctl.psql.mainloop import ExitCode
from replctl.psql.options import Options
from replctl.psql.settings import PsqlSettings


@dataclass(frozen=True, slots=True)
class Sync:
    """What `replctl sync` is asked to do.

    Attributes:
        options: where to connect, and which Spark to use.
        subscriptions: their names; none for all.
        interval: seconds between two rounds; None to run once.
    """

    options: Options
    subscriptions: tuple[str, ...]
    interval: float | None


def parse_sync(argv: list[str]) -> Sync | int:
    """Read the arguments of `sync`; an exit code where they were wrong, or asked for help."""
    parsed: list[Sync] = []
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

    @app.command("sync", help="Apply what is committed on the publishers to subscriptions.")
    def sync(
        subscription: Annotated[
            list[str] | None, typer.Argument(help="Subscriptions to run; all if none is named.")
        ] = None,
        watch: Annotated[bool, typer.Option("--watch", help="Go on until Ctrl-C.")] = False,
        interval: Annotated[
            float, typer.Option(min=0.0, help="Seconds between two rounds of --watch.")
        ] = 1.0,
        database: Annotated[
            str | None, typer.Option("--dbname", "-d", help="Database to connect to.")
        ] = None,
        role: Annotated[str | None, typer.Option("--username", "-U", help="Role.")] = None,
        home: Annotated[str | None, typer.Option(help="The cluster's directory.")] = None,
        remote: Annotated[
            str | None, typer.Option(help="Spark Connect server, sc://HOST:PORT.")
        ] = os.environ.get("SPARK_REMOTE") or None,
        master: Annotated[str | None, typer.Option(help="Spark master.")] = None,
        conf: Annotated[
            list[str] | None, typer.Option(metavar="NAME=VALUE", help="Spark property.")
        ] = None,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
    ) -> None:
        properties = []
        for item in conf or ():
            name, separator, value = item.partition("=")
            if not separator:
                raise typer.BadParameter(f"{item!r} is not NAME=VALUE", param_hint="--conf")
            properties.append((name, value))
        options = Options(
            actions=[],
            variables=[("QUIET", "on")] if quiet else [],
            print_options=[],
            spark_properties=tuple(properties),
            database=database,
            role=role,
            home=home,
            remote=remote,
            master=master,
        )
        parsed.append(Sync(options, tuple(subscription or ()), interval if watch else None))

    try:
        app(argv, prog_name="replctl sync")
    except SystemExit as error:
        if error.code:
            return ExitCode.FAILURE
    return parsed[0] if parsed else ExitCode.SUCCESS


def run_sync(settings: PsqlSettings, sync: Sync) -> ExitCode:
    """Run subscriptions, once or until Ctrl-C.

    Returns:
        FAILURE if a subscription could not go on (with --watch: in the last round).
    """
    from replctl.psql.sync import sync_subscriptions

    code = ExitCode.SUCCESS
    try:
        while True:
            is_done = sync_subscriptions(settings, sync.subscriptions)
            code = ExitCode.SUCCESS if is_done else ExitCode.FAILURE
            if sync.interval is None:
                return code
            time.sleep(sync.interval)
    except KeyboardInterrupt:
        return code if sync.interval is not None else ExitCode.USER
