"""Connect: `\\c`, `\\conninfo`, and database names or connection strings on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from replctl.conninfo import parse_conninfo
from replctl.errors import PostgresError
from replctl.psql.command_context import CommandContext, CommandResult, CommandStatus
from replctl.psql.scan_slash import Argument, SlashScanner
from replctl.psql.variables import PsqlError
from replctl.session import Session


class Target(NamedTuple):
    """The target of a connection.  None as a name means the current value, or the default.

    Attributes:
        parameters: the parameters of the connection string, if one was given.
    """

    database: str | None = None
    role: str | None = None
    directory: str | None = None
    parameters: Mapping[str, str] = MappingProxyType({})


def target_of(name: str) -> Target:
    """Return the target for a database's name or, as in libpq, for a connection string.

    Raises:
        PsqlError: the connection string is invalid, or leads to a PostgreSQL server.
    """
    if "=" not in name and not name.startswith(("postgresql://", "postgres://")):
        return Target(name)
    try:
        parameters = parse_conninfo(name)
    except PostgresError as error:
        raise PsqlError(error.message) from error
    return Target(
        parameters.get("dbname"),
        parameters.get("user"),
        _directory(parameters.get("host"), parameters.get("port")),
        parameters,
    )


def _directory(host: str | None, port: str | None) -> str | None:
    if host is None or host == "" or (host in ("localhost", "127.0.0.1", "::1") and port is None):
        return None
    if host.startswith("/"):
        return host
    raise PsqlError(f'connection to server at "{host}" failed: replctl opens clusters, not servers')


def connection_failure(directory: str, error: PostgresError) -> str:
    """Return the message for a failed connection."""
    text = f'connection to server on directory "{directory}" failed: FATAL:  {error.message}'
    text += f"\nDETAIL:  {error.detail}" if error.detail else ""
    return text + (f"\nHINT:  {error.hint}" if error.hint else "")


def connect(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\c [DATABASE|- [ROLE|- [DIRECTORY|-]]]` or `\\c CONNECTION-STRING`."""
    words: list[str | None] = []
    while (
        len(words) < 4
        and (word := slash.argument(Argument.VERBATIM_IDENTIFIER, strip_semicolons=True))
        is not None
    ):
        words.append(None if word in ("", "-") else word)
    words += [None] * (4 - len(words))
    database, role, host, port = words
    if database is not None and ("=" in database or "://" in database):
        target = target_of(database)
    else:
        target = Target(database, role, _directory(host, port))
    settings = context.settings
    old = settings.session
    try:
        session = _open(context, target, old)
    except PostgresError as error:
        directory = target.directory or (str(old.cluster.path) if old else "")
        failure = connection_failure(directory, error)
        if settings.is_interactive:
            settings.messages.error(failure)
            if old is not None:
                settings.messages.error("Previous connection kept")
            return CommandStatus.ERROR
        # After a failed \c, a script must not continue in the old database.
        settings.release_session()
        raise PsqlError(f"\\connect: {failure}") from error
    settings.bind_session(session)
    settings.say(
        f'You are now connected to database "{session.database_name}"'
        f' as user "{session.login_name}".'
    )
    return CommandStatus.DONE


def _open(context: CommandContext, target: Target, old: Session | None) -> Session:
    database = target.database or (old.database_name if old else "postgres")
    role = target.role or (old.login_name if old else "postgres")
    directory = target.directory or (str(old.cluster.path) if old else None)
    return context.settings.connect(database, role, directory, target.parameters)


def connection_information(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\conninfo`."""
    session = context.settings.session
    if session is None:
        print("You are currently not connected to a database.", flush=True)
    else:
        print(
            f'You are connected to database "{session.database_name}"'
            f' as user "{session.login_name}" in cluster "{session.cluster.path}".',
            flush=True,
        )
    return CommandStatus.DONE
