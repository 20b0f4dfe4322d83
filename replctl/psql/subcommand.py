"""The subcommands `replctl sync`, `replctl status`, `replctl verify`, `replctl vacuum`, `replctl
dump` and `replctl schema`, parsed by typer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import IntEnum
from typing import Annotated

import typer

from replctl.psql.command_group import check_seconds, raise_broken_pipe
from replctl.psql.exit_code import ExitCode
from replctl.psql.options import Options
from replctl.psql.psql_settings import PsqlSettings
from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class Subcommand:
    """A parsed subcommand.

    Attributes:
        options: the connection and the Spark to use.
        run: runs the subcommand, and returns whether it succeeded, or the exit code.
    """

    options: Options
    run: Callable[[PsqlSettings], bool | IntEnum]


_Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[SUBSCRIPTION]...", help="Names of subscriptions; default: all."),
]
_Database = Annotated[str | None, typer.Option("--dbname", "-d", help="Database to connect to.")]
_Role = Annotated[str | None, typer.Option("--username", "-U", help="Role.")]
Home = Annotated[str | None, typer.Option(help="The cluster's directory.")]
_Remote = Annotated[str | None, typer.Option(help="Spark Connect server, sc://HOST:PORT.")]
Master = Annotated[str | None, typer.Option(help="Spark master.")]
Conf = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="A property of Spark; may be given several times."),
]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]


def parse_subcommand(name: str, argv: list[str]) -> Subcommand | int:
    """Parse the arguments of a subcommand.  For wrong arguments or --help, return an exit code."""
    parsed: list[Subcommand] = []
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    _ADD[name](app, parsed)
    try:
        app(argv, prog_name=f"replctl {name}")
    except SystemExit as error:  # typer exits, also after --help
        raise_broken_pipe(error)
        if error.code:
            return _USAGE_FAILURES.get(name, ExitCode.FAILURE)
    return parsed[0] if parsed else ExitCode.SUCCESS


def run_subcommand(settings: PsqlSettings, subcommand: Subcommand) -> int:
    """Run a subcommand, and return the exit code: FAILURE after an error."""
    result = subcommand.run(settings)
    if isinstance(result, IntEnum):
        return int(result)
    return ExitCode.SUCCESS if result else ExitCode.FAILURE


def _add_sync(app: typer.Typer, parsed: list[Subcommand]) -> None:
    @app.command("sync", help="Apply the commits of publishers to subscriptions.")
    def sync(
        subscription: _Names = None,
        watch: Annotated[bool, typer.Option("--watch", help="Run until interrupted.")] = False,
        interval: Annotated[
            float | None,
            typer.Option(
                min=0.0,
                callback=check_seconds,
                help="Seconds between two rounds of --watch (default: 1).",
            ),
        ] = None,
        metrics_port: Annotated[
            int | None,
            typer.Option(
                min=0, max=65535, help="With --watch: the port at which Prometheus reads metrics."
            ),
        ] = None,
        metrics_address: Annotated[
            str, typer.Option(help="With --metrics-port: the address of that port.")
        ] = "127.0.0.1",
        explain: Annotated[
            bool, typer.Option("--explain", help="Show the plan without applying it.")
        ] = False,
        as_json: Annotated[
            bool,
            typer.Option(
                "--json",
                help="Print JSON.  With --watch: one line for each round with changes or errors.",
            ),
        ] = False,
        max_batch_changes: Annotated[
            str | None,
            typer.Option(metavar="N", help="Apply about N changed rows at a time; 0: no limit."),
        ] = None,
        database: _Database = None,
        role: _Role = None,
        home: Home = None,
        remote: _Remote = None,
        master: Master = None,
        conf: Conf = None,
        quiet: _Quiet = False,
    ) -> None:
        for option, value in (("--interval", interval), ("--metrics-port", metrics_port)):
            if value is not None and not watch:
                raise typer.BadParameter("it requires --watch", param_hint=option)
        if explain and watch:
            raise typer.BadParameter("it cannot be combined with --watch", param_hint="--explain")
        options = _options(database, role, home, is_quiet=quiet)
        options.keeps_running = watch
        _choose_spark(options, remote, master, conf)
        names = tuple(subscription or ())

        def run(settings: PsqlSettings) -> bool:
            from replctl.psql.sync import sync_subscriptions, watch_subscriptions
            from replctl.psql.sync_report import SyncReport

            if max_batch_changes is not None:
                assert settings.session is not None
                settings.session.change_setting("replctl.max_batch_changes", max_batch_changes)
            if explain:
                from replctl.psql.explain_output import show_plan

                return show_plan(settings, names, as_json=as_json)
            report = SyncReport(settings, as_json=as_json)
            if not watch:
                return sync_subscriptions(settings, names, report)
            metrics = None if metrics_port is None else (metrics_address, metrics_port)
            return watch_subscriptions(
                settings, names, 1.0 if interval is None else interval, report, metrics
            )

        parsed.append(Subcommand(options, run))


def _add_status(app: typer.Typer, parsed: list[Subcommand]) -> None:
    @app.command("status", help="Show the state and lag of subscriptions.")
    def status(
        subscription: _Names = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
        max_lag: Annotated[
            list[str] | None,
            typer.Option(
                help="Exit with code 1 if a subscription lags more than this, such as 30s, 5min,"
                " 16MB, 1000rows or 10transactions; may be given several times."
            ),
        ] = None,
        database: _Database = None,
        role: _Role = None,
        home: Home = None,
    ) -> None:
        from replctl.psql.status_output import Limit, show_status

        try:
            limits = [Limit.parse(text) for text in max_lag or ()]
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--max-lag") from error

        def run(settings: PsqlSettings) -> bool:
            return show_status(settings, tuple(subscription or ()), limits, as_json=as_json)

        parsed.append(Subcommand(_options(database, role, home), run))


def _add_verify(app: typer.Typer, parsed: list[Subcommand]) -> None:
    @app.command(
        "verify",
        help="Compare subscriptions' tables with the published rows. Exit code 0: equal,"
        " 1: different, 2: something could not be compared.",
    )
    def verify(
        subscription: Annotated[
            str | None,
            typer.Argument(metavar="[SUBSCRIPTION", help="Name of a subscription; default: all."),
        ] = None,
        table: Annotated[
            str | None,
            typer.Argument(metavar="[TABLE]]", help="One of its tables, as in SQL; default: all."),
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
        limit: Annotated[
            int,
            typer.Option(
                min=0,
                metavar="N",
                help="Print up to N rows of each kind: missing, extra, different.",
            ),
        ] = 10,
        database: _Database = None,
        role: _Role = None,
        home: Home = None,
        remote: _Remote = None,
        master: Master = None,
        conf: Conf = None,
    ) -> None:
        options = _options(database, role, home, is_quiet=as_json)
        _choose_spark(options, remote, master, conf)

        def run(settings: PsqlSettings) -> IntEnum:
            from replctl.psql.verify_output import show_verification

            return show_verification(settings, subscription, table, limit, as_json=as_json)

        parsed.append(Subcommand(options, run))


def _add_vacuum(app: typer.Typer, parsed: list[Subcommand]) -> None:
    @app.command(
        "vacuum", help="Remove versions that no slot, copy, transaction or recent reader needs."
    )
    def vacuum(
        table: Annotated[
            list[str] | None,
            typer.Argument(metavar="[TABLE]...", help="Names of tables, as in SQL; default: all."),
        ] = None,
        full: Annotated[
            bool, typer.Option("--full", "-f", help="Combine small files into large ones first.")
        ] = False,
        verbose: Annotated[
            bool,
            typer.Option("--verbose", "-v", help="Print the number of removed files."),
        ] = False,
        database: _Database = None,
        role: _Role = None,
        home: Home = None,
        remote: _Remote = None,
        master: Master = None,
        conf: Conf = None,
    ) -> None:
        options = _options(database, role, home, is_quiet=True)
        _choose_spark(options, remote, master, conf)
        words = ["VACUUM", *(["FULL"] if full else []), *(["VERBOSE"] if verbose else [])]

        def run(settings: PsqlSettings) -> bool:
            from replctl.psql.reporting import reporting_errors
            from replctl.psql.send_query import send_query
            from replctl.types.quote import quote_identifier, split_qualified_name

            statement = " ".join(words)
            with reporting_errors(settings, None) as succeeded:
                names = [map(quote_identifier, split_qualified_name(name)) for name in table or ()]
                statement += " " + ", ".join(map(".".join, names))
            return bool(succeeded) and send_query(settings, statement)

        parsed.append(Subcommand(options, run))


def _add_dump(app: typer.Typer, parsed: list[Subcommand]) -> None:
    @app.command("dump", help="Write a database as SQL that creates it again.")
    def dump(
        publications: Annotated[
            bool, typer.Option("--publications", help="Dump only publications.")
        ] = False,
        subscriptions: Annotated[
            bool,
            typer.Option(
                "--subscriptions",
                help="Dump only subscriptions, or, with --publications, only both.",
            ),
        ] = False,
        schema_only: Annotated[
            bool, typer.Option("--schema-only", "-s", help="Write no rows; this needs no Spark.")
        ] = False,
        file: Annotated[
            str | None, typer.Option("--file", "-f", help="File to write, instead of stdout.")
        ] = None,
        database: _Database = None,
        role: _Role = None,
        home: Home = None,
        remote: _Remote = None,
        master: Master = None,
        conf: Conf = None,
    ) -> None:
        options = _options(database, role, home, is_quiet=True)
        _choose_spark(options, remote, master, conf)

        def run(settings: PsqlSettings) -> bool:
            from replctl.dump.dumped_database import DumpOptions
            from replctl.psql.dump import write_dump

            return write_dump(settings, DumpOptions(publications, subscriptions, schema_only), file)

        parsed.append(Subcommand(options, run))


def _add_schema(app: typer.Typer, parsed: list[Subcommand]) -> None:
    @app.command(
        "schema",
        help="Print CREATE statements for the published tables that the database lacks.",
    )
    def schema(
        conninfo: Annotated[
            str,
            typer.Argument(
                metavar="CONNINFO", help="Connection string, as in CREATE SUBSCRIPTION."
            ),
        ],
        publication: Annotated[
            list[str],
            typer.Option("--publication", help="A publication; may be given several times."),
        ],
        table_map: Annotated[
            str,
            typer.Option(metavar="MAP", help="Names of targets: 'public.t = schema.name, ...'."),
        ] = "",
        table_options: Annotated[
            str, typer.Option(metavar="OPTIONS", help="Storage parameters: 'name = value, ...'.")
        ] = "",
        database: _Database = None,
        role: _Role = None,
        home: Home = None,
    ) -> None:
        def run(settings: PsqlSettings) -> bool:
            from replctl.psql.schema_command import show_schema

            return show_schema(settings, conninfo, tuple(publication), table_map, table_options)

        parsed.append(Subcommand(_options(database, role, home, is_quiet=True), run))


_ADD: dict[str, Callable[[typer.Typer, list[Subcommand]], None]] = {
    "sync": _add_sync,
    "status": _add_status,
    "verify": _add_verify,
    "vacuum": _add_vacuum,
    "dump": _add_dump,
    "schema": _add_schema,
}


#: Exit codes for wrong arguments, for subcommands in which FAILURE has another meaning.
_USAGE_FAILURES = {"verify": ExitCode.BAD_CONNECTION}


def spark_properties(conf: list[str] | None) -> tuple[tuple[str, str], ...]:
    """Split the values NAME=VALUE of `--conf`.

    Raises:
        BadParameter: a value has no =.
    """
    properties = []
    for item in conf or ():
        name, separator, value = item.partition("=")
        if not (name and separator):
            raise typer.BadParameter(f"{item!r} is not NAME=VALUE", param_hint="--conf")
        properties.append((name, value))
    return tuple(properties)


def _choose_spark(
    options: Options, remote: str | None, master: str | None, conf: list[str] | None
) -> None:
    options.spark_properties = spark_properties(conf)
    options.remote = remote or os.environ.get("SPARK_REMOTE") or None
    options.master = master


def _options(
    database: str | None, role: str | None, home: str | None, *, is_quiet: bool = False
) -> Options:
    return Options(
        actions=[],
        variables=[("QUIET", "on")] if is_quiet else [],
        print_options=[],
        database=database,
        role=role,
        home=home,
    )
