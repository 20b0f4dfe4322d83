"""Run the command: options, start-up file, scripts or a prompt, exit code (psql's startup.c)."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from replctl import __version__
from replctl.absolute_path import absolute_path
from replctl.conninfo import client_settings
from replctl.errors import ConnectionFailure, Notice, PostgresError
from replctl.private_file import keep_own_access
from replctl.psql.connect import Target, connection_failure, target_of
from replctl.psql.exit_code import ExitCode
from replctl.psql.messages import Messages, report_new
from replctl.psql.options import Action, Options, UsageError, find_subcommand, parse_options
from replctl.psql.output import Output
from replctl.psql.pset import set_option
from replctl.psql.psql_settings import PsqlSettings
from replctl.psql.reporting import reporting_errors
from replctl.psql.send_query import run_silently
from replctl.psql.variables import PsqlError, Variables
from replctl.recursion_limit import raise_recursion_limit
from replctl.standard_streams import discard, drop_unwritten, outlasting_readers, write_stderr

if TYPE_CHECKING:
    from replctl.catalog.cluster import Cluster
    from replctl.session import Session
    from replctl.spark import Engine, SparkConf


def run(argv: list[str]) -> int:
    """Run the command line, and return the exit code."""
    raise_recursion_limit()
    keep_own_access()
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed before this process started
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
        getattr(sys, name).reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
    try:
        code = _run(argv)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:  # no traceback for Ctrl-C
        return ExitCode.USER
    except BrokenPipeError:  # the reader of our output has exited (`| head`)
        code = ExitCode.BROKEN_PIPE
    except OSError as error:  # a full disk is not our bug
        if error.errno != errno.ENOSPC:
            raise
        write_stderr(f"replctl: error: could not write: {error.strerror}")
        code = ExitCode.FAILURE
    # Python must not fail at exit when it writes the rest of the output
    discard(sys.stdout.fileno())
    drop_unwritten(sys.stderr)
    return code


#: The variables with the version of psql as which replctl behaves.
_VERSION = {
    "VERSION": f"replctl {__version__} (as psql of PostgreSQL 17)",
    "VERSION_NAME": "17.0",
    "VERSION_NUM": "170000",
}


def _run(argv: list[str]) -> int:
    variables = Variables()
    for name, value in _VERSION.items():
        variables.set(name, value)
    messages = Messages(variables)
    try:
        subcommand = find_subcommand(argv)
        if subcommand is not None:
            return _subcommand(*subcommand, variables, messages)
        options = parse_options(argv)
    except UsageError as error:  # as in psql, with a hint at --help
        print(f"replctl: {error}", file=sys.stderr)
        print('replctl: hint: Try "replctl --help" for more information.', file=sys.stderr)
        return ExitCode.FAILURE
    if options.help_topic is not None:
        return _print_help(options.help_topic)
    if options.shows_version:
        print(f"replctl (psql of PostgreSQL 17) {__version__}")
        return ExitCode.SUCCESS
    try:
        settings = _settings(options, variables, messages)
        try:
            return _run_actions(settings, options)
        finally:
            _close(settings)
    except PsqlError as error:  # such as a wrong option: no traceback
        messages.error(str(error))
        return ExitCode.FAILURE


def _subcommand(name: str, argv: list[str], variables: Variables, messages: Messages) -> int:
    if name == "standby":
        from replctl.psql.standby_command import run_standby

        return run_standby(argv, messages)
    if name == "cluster":
        from replctl.psql.cluster_command import run_cluster

        return run_cluster(argv, messages)
    if name == "spark":
        from replctl.psql.spark import run_spark

        return run_spark(argv, messages)
    from replctl.psql.subcommand import parse_subcommand, run_subcommand

    parsed = parse_subcommand(name, argv)
    if isinstance(parsed, int):
        return parsed
    settings = _settings(parsed.options, variables, messages, makes_clusters=False)
    with outlasting_readers() if parsed.options.keeps_running else nullcontext():
        try:
            if not _connect(settings, parsed.options):
                return ExitCode.BAD_CONNECTION
            with reporting_errors(settings, None):
                return run_subcommand(settings, parsed)
            return ExitCode.FAILURE
        finally:
            _close(settings)


def _settings(
    options: Options, variables: Variables, messages: Messages, *, makes_clusters: bool = True
) -> PsqlSettings:
    """Return the settings for the options.

    Args:
        makes_clusters: create a missing cluster at the first connection.

    Raises:
        PsqlError: an option has an invalid value.
    """
    has_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    is_long = options.keeps_running or (has_terminal and not options.actions)
    connector = _Connector(
        options, variables, messages, is_long=is_long, makes_clusters=makes_clusters
    )
    settings = PsqlSettings(variables, messages, connector, has_terminal=has_terminal)
    for name, value in options.variables:
        if value is None:
            variables.unset(name)
        else:
            variables.set(name, value)
    for name, value in options.print_options:
        try:
            settings.print_options, _said = set_option(settings.print_options, name, value)
        except PsqlError as error:
            raise PsqlError(f'{error}\ncould not set printing parameter "{name}"') from error
    if options.output is not None:
        settings.output = Output(options.output)
    if options.log_file is not None:
        settings.log_file = _open_log(options.log_file)
    return settings


def _open_log(name: str) -> TextIO:
    try:
        return open(name, "a", encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise PsqlError(f'could not open log file "{name}": {error.strerror}') from error


class _Connector:
    """Opens sessions in clusters, with one Spark for all of them."""

    def __init__(
        self,
        options: Options,
        variables: Variables,
        messages: Messages,
        *,
        is_long: bool,
        makes_clusters: bool,
    ) -> None:
        self._options = options
        self._variables = variables
        self._is_long = is_long
        self._messages = messages
        self._makes_clusters = makes_clusters
        self._clusters: dict[str, Cluster] = {}
        self._spark: SparkConf | None = None
        self._parameters: Mapping[str, str] = {}
        self._downloads = ExitStack()

    def __call__(
        self, database: str, role: str, directory: str | None, parameters: Mapping[str, str]
    ) -> Session:
        """Open a session.  Without a connection string, the parameters of the last one apply."""
        from replctl.catalog.open_cluster import open_cluster
        from replctl.object_store import choose_properties
        from replctl.session import Session

        self._parameters = parameters or self._parameters
        path = directory or self._options.home
        key = "" if path is None else os.path.normpath(absolute_path(path))
        known = self._clusters.get(key)
        if known is None or known.refusal is not None:  # a read-only cluster may be writable now
            cluster = open_cluster(path, is_made=self._makes_clusters)
            self._clusters[key] = self._clusters[str(cluster.path)] = cluster
            report_new(cluster, path, self._messages)
        cluster = self._clusters[key]
        choose_properties(lambda: self._properties(cluster))
        return Session.connect(
            cluster,
            database,
            role,
            engine=lambda: self._engine(cluster),
            requested=client_settings(os.environ, self._parameters),
        )

    def _engine(self, cluster: Cluster) -> Engine:
        from replctl.spark import has_lost_spark, is_open, open_engine

        if self._spark is None or has_lost_spark(self._spark):
            self._spark = self._choose_spark(cluster)
        if is_open(self._spark) or self._variables.is_on("QUIET"):
            return open_engine(self._spark)
        from replctl.psql.progress import reporting_downloads, starting_spark

        self._downloads.enter_context(reporting_downloads())  # a table on S3 needs more files later
        with starting_spark():
            return open_engine(self._spark)

    def _properties(self, cluster: Cluster) -> dict[str, str]:
        """Return Spark's properties from the command line, else those of the cluster's server."""
        from replctl.spark import find_server

        options = self._options
        if options.remote or options.master or options.spark_properties:
            return dict(options.spark_properties)
        server = find_server(cluster.path)
        return {} if server is None else dict(server.conf.properties)

    def _choose_spark(self, cluster: Cluster) -> SparkConf:
        """Choose the Spark to use: the one that the command line names, else the cluster's own
        server if it is running, else a new one in this process.
        """
        from replctl.spark import SparkConf, attach_server

        options = self._options
        remote = options.remote
        if not (remote or options.master or options.spark_properties):
            try:
                server = attach_server(cluster.path)
            except ConnectionFailure as dead:  # then a Spark of this process does the work
                self._messages.report(
                    Notice("WARNING", dead.message, detail=dead.detail, hint=dead.hint)
                )
            else:
                remote = None if server is None else server.remote
        return SparkConf(
            remote,
            options.master,
            options.spark_properties,
            is_brief=remote is None and not self._is_long,
            scratch=cluster.path / "tmp",
        )

    def close(self) -> None:
        """Close the clusters."""
        self._downloads.close()
        for cluster in set(self._clusters.values()):
            cluster.close()


def _connect(settings: PsqlSettings, options: Options) -> bool:
    """Open the first session.  If that fails, print a message and return False."""
    target = Target()
    try:
        if options.database is not None:
            target = target_of(options.database)
        database = target.database or os.environ.get("PGDATABASE") or "postgres"
        if options.lists_databases and options.database is None:
            database = "postgres"
        role = options.role or target.role or os.environ.get("PGUSER") or "postgres"
        directory = target.directory or options.home
        settings.bind_session(settings.connect(database, role, directory, target.parameters))
    except PsqlError as error:  # psql has an exit code of its own for this
        settings.messages.error(str(error))
        return False
    except PostgresError as error:  # psql has an exit code of its own for this
        directory = target.directory or options.home or os.environ.get("REPLCTL_HOME") or "default"
        settings.messages.error(connection_failure(directory, error))
        return False
    return True


def _run_actions(settings: PsqlSettings, options: Options) -> int:
    for extra in options.extra_arguments:
        settings.messages.warning(f'extra command-line argument "{extra}" ignored')
    if options.is_single_transaction and not options.actions and settings.has_terminal:
        settings.messages.error("-1 can only be used in non-interactive mode")
        return ExitCode.FAILURE
    if not _connect(settings, options):
        return ExitCode.BAD_CONNECTION
    if options.lists_databases:
        from replctl.psql.describe_cluster import list_databases

        return ExitCode.SUCCESS if list_databases(settings, None) else ExitCode.FAILURE
    if not options.actions and settings.has_terminal:
        from replctl.psql.interactive import run_interactive

        settings.messages.is_terse = True
        if options.reads_startup_file:
            _run_startup_file(settings)
        return run_interactive(settings, has_editing=options.has_line_editing)
    if options.reads_startup_file:
        _run_startup_file(settings)
    return _run_scripts(settings, options)


def _run_scripts(settings: PsqlSettings, options: Options) -> int:
    """Run the scripts of `-c` and `-f` in their order, or stdin if there are none.  Stop at the
    first failure if ON_ERROR_STOP is set."""
    from replctl.psql.mainloop import run_command_string, run_file, run_stdin

    if options.is_single_transaction and not run_silently(settings, "BEGIN"):
        return ExitCode.FAILURE
    code = ExitCode.SUCCESS if options.actions else run_stdin(settings)
    for action, text in options.actions:
        match action:
            case Action.COMMAND:
                code = run_command_string(settings, text)
            case Action.FILE:
                code = run_file(settings, text)
        if code is not ExitCode.SUCCESS and settings.variables.is_on("ON_ERROR_STOP"):
            break
    if options.is_single_transaction and settings.session is not None:
        end = "COMMIT" if code is ExitCode.SUCCESS else "ROLLBACK"
        if not run_silently(settings, end) and code is ExitCode.SUCCESS:
            code = ExitCode.FAILURE
    return code


def _run_startup_file(settings: PsqlSettings) -> None:
    """Run `.replctlrc`, from $REPLCTLRC or the home directory."""
    named = os.environ.get("REPLCTLRC")
    path = Path(os.path.expanduser(named or "~/.replctlrc"))
    if os.access(path, os.R_OK) and path.is_file():  # like psql, ignore an unreadable file
        from replctl.psql.mainloop import run_file

        run_file(settings, str(path))


def _close(settings: PsqlSettings) -> None:
    settings.release_session()
    settings.output.close()
    if settings.log_file is not None:
        settings.log_file.close()
    assert isinstance(settings.connect, _Connector)
    settings.connect.close()


def _print_help(topic: str) -> int:
    from replctl.psql import help as texts

    match topic:
        case "commands":
            print(texts.slash_commands(None))
        case "variables":
            print(texts.VARIABLES)
        case _:
            print(texts.OPTIONS)
    return ExitCode.SUCCESS
