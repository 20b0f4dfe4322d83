"""Backslash commands: their names, arguments and functions (psql's command.c).

A command is a function with the parameters context and slash command.  `_COMMANDS` maps names to
functions.  Some commands are in other modules: describe_command (`\\d...`), conditional (`\\if`),
pset (`\\pset`, `\\x`, ...), connect (`\\c`), query_buffer (`\\g`, `\\e`, ...), help and sync.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from replctl.errors import InvalidParameterValue
from replctl.psql import connect, copy_command, pset, query_buffer
from replctl.psql.ask import answer_to
from replctl.psql.command_context import (
    CommandContext,
    CommandResult,
    CommandStatus,
    missing_argument,
)
from replctl.psql.conditional import BRANCHING_COMMANDS
from replctl.psql.output import Output
from replctl.psql.reporting import reporting_errors
from replctl.psql.scan_slash import Argument, SlashScanner
from replctl.psql.send_query import run_silently
from replctl.psql.variables import PsqlError, parse_bool
from replctl.types.quote import quote_identifier, quote_literal

Command: TypeAlias = Callable[[CommandContext, SlashScanner], CommandResult]

#: Commands of psql that replctl does not have, without their modifiers.
_UNSUPPORTED = (
    " bind bind_named dA dAc dAf dAo dAp da db dC dc dconfig des"
    " det deu dew dF dFd dFp dFt df dL dl dO do dP dX dx dy ef ev lo_export lo_import"
    " lo_list lo_unlink sf sv "
)
#: The commands that list partitioned relations.
_PARTITIONED = re.compile(r"dP[tin+]*")


def run_command(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run a backslash command and report its failures.  The caller reads the rest of the line as
    SQL.
    """
    result: CommandResult = CommandStatus.ERROR
    with reporting_errors(context.settings, None):
        try:
            result = _dispatch(context, slash)
        except PsqlError as error:  # as in psql, the next command still runs
            context.settings.messages.error(str(error))
            # In psql, an \if without a valid Boolean counts as false, not as a failure.
            if slash.command in ("if", "elif") and not context.conditions.is_active:
                result = CommandStatus.DONE
    if result is CommandStatus.ERROR:
        slash.abandon()
    else:
        slash.finish()
    return result


def _dispatch(context: CommandContext, slash: SlashScanner) -> CommandResult:
    name = slash.command
    if context.settings.restrict_key is not None and name != "unrestrict":
        raise PsqlError("backslash commands are restricted; only \\unrestrict is allowed")
    if name.lower() == "copy":  # the only command whose name may have capitals (exec_command)
        name = "copy"
    if name in BRANCHING_COMMANDS:
        context.conditions.run(slash)
        return CommandStatus.DONE
    command = _COMMANDS.get(name) or _describe_command(name)
    if command is None:
        return _invalid(context, name)
    if not context.conditions.is_active:
        if context.settings.is_interactive:
            context.settings.messages.warning(
                f"\\{name} command ignored; use \\endif or Ctrl-C to exit current \\if block"
            )
        return CommandStatus.DONE
    return command(context, slash)


def _invalid(context: CommandContext, name: str) -> CommandResult:
    plain = "dP" if _PARTITIONED.fullmatch(name) else name.rstrip("+S")
    if f" {plain} " in _UNSUPPORTED:
        raise PsqlError(f"\\{name} is not supported by replctl")
    hint = "Try \\? for help." if context.settings.is_interactive else None
    context.settings.messages.error(f"invalid command \\{name}", hint)
    return CommandStatus.ERROR


def _describe_command(name: str) -> Command | None:
    """Return the function that runs `\\d`, `\\dt+`, `\\dRp` or another command of this kind; None
    for other names.
    """
    if not name.startswith("d"):
        return None
    from replctl.psql.describe_command import is_describe_command

    return _describe if is_describe_command(name) else None


def _describe(context: CommandContext, slash: SlashScanner) -> CommandResult:
    from replctl.psql.describe_command import describe

    pattern = slash.argument(strip_semicolons=True)
    is_done = describe(context.settings, slash.command, pattern)
    return CommandStatus.DONE if is_done else CommandStatus.ERROR


def _cd(context: CommandContext, slash: SlashScanner) -> CommandResult:
    folder = slash.argument() or os.path.expanduser("~")
    try:
        os.chdir(folder)
    except OSError as error:
        raise PsqlError(
            f'\\{slash.command}: could not change directory to "{folder}": {error.strerror}'
        ) from error
    return CommandStatus.DONE


def _copyright(context: CommandContext, slash: SlashScanner) -> CommandResult:
    from replctl.psql.help import COPYRIGHT

    print(COPYRIGHT, flush=True)
    return CommandStatus.DONE


def _shell(context: CommandContext, slash: SlashScanner) -> CommandResult:
    command = slash.argument(Argument.WHOLE_LINE)
    sys.stdout.flush()
    shell = os.environ.get("SHELL", "/bin/sh")
    status = subprocess.run(command or shell, shell=True, check=False).returncode
    context.settings.variables.record_shell_exit(status if status >= 0 else 128 - status)
    if status in (126, 127) or (status != 0 and not command):
        raise PsqlError("\\!: failed")
    return CommandStatus.DONE


def _echo(context: CommandContext, slash: SlashScanner) -> CommandResult:
    words: list[str] = []
    end = "\n"
    while (word := slash.argument()) is not None:
        if word == "-n" and slash.quote is None and not words and end:
            end = ""
        else:
            words.append(word)
    stream = {
        "echo": sys.stdout,
        "qecho": context.settings.output.stream,
        "warn": sys.stderr,
    }[slash.command]
    sys.stdout.flush()
    print(" ".join(words), end=end, file=stream, flush=True)
    return CommandStatus.DONE


def _encoding(context: CommandContext, slash: SlashScanner) -> CommandResult:
    encoding, session = slash.argument(), context.settings.session
    if encoding is None or session is None:
        print("UTF8" if session is None else session.setting("client_encoding"), flush=True)
        return CommandStatus.DONE
    try:
        session.change_setting("client_encoding", encoding)
    except InvalidParameterValue:
        message = f"{encoding}: invalid encoding name or conversion procedure not found"
        raise PsqlError(message) from None
    return CommandStatus.DONE


def _errverbose(context: CommandContext, slash: SlashScanner) -> CommandResult:
    if context.settings.last_error is None:
        print("There is no previous error.", flush=True)
    else:
        from replctl.psql.messages import report_text

        error, statement = context.settings.last_error
        context.settings.messages.error(report_text(error, statement, "verbose", "always"))
    return CommandStatus.DONE


def _getenv(context: CommandContext, slash: SlashScanner) -> CommandResult:
    variable, name = slash.argument(), slash.argument()
    if variable is None or name is None:
        raise missing_argument(slash)
    value = os.environ.get(name)
    if value is not None:
        context.settings.variables.set(variable, value)
    return CommandStatus.DONE


def _setenv(context: CommandContext, slash: SlashScanner) -> CommandResult:
    name, value = slash.argument(), slash.argument()
    if name is None:
        raise missing_argument(slash)
    if "=" in name:
        raise PsqlError('\\setenv: environment variable name must not contain "="')
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
    return CommandStatus.DONE


def _help(context: CommandContext, slash: SlashScanner) -> CommandResult:
    from replctl.psql.help import sql_help

    topic = slash.argument(Argument.WHOLE_LINE)
    print(sql_help((topic or "").strip().rstrip(";").strip()), flush=True)
    return CommandStatus.DONE


def _slash_help(context: CommandContext, slash: SlashScanner) -> CommandResult:
    from replctl.psql.help import OPTIONS, VARIABLES, slash_commands

    match slash.argument():
        case None | "commands":
            print(slash_commands(context.settings), flush=True)
        case "options":
            print(OPTIONS, flush=True)
        case "variables":
            print(VARIABLES, flush=True)
        case _:
            print(slash_commands(context.settings), flush=True)
    return CommandStatus.DONE


def _include(context: CommandContext, slash: SlashScanner) -> CommandResult:
    file = slash.argument()
    if file is None:
        raise missing_argument(slash)
    is_relative = slash.command in ("ir", "include_relative")
    is_done = context.run_script(os.path.expanduser(file), is_relative)
    return CommandStatus.DONE if is_done else CommandStatus.ERROR


def _list(context: CommandContext, slash: SlashScanner) -> CommandResult:
    from replctl.psql.describe_cluster import list_databases

    pattern = slash.argument(strip_semicolons=True)
    is_done = list_databases(context.settings, pattern, verbose="+" in slash.command)
    return CommandStatus.DONE if is_done else CommandStatus.ERROR


def _privileges(context: CommandContext, slash: SlashScanner) -> CommandResult:
    from replctl.psql.describe_cluster import list_privileges

    pattern = slash.argument(strip_semicolons=True)
    is_done = list_privileges(context.settings, pattern, show_system="S" in slash.command)
    return CommandStatus.DONE if is_done else CommandStatus.ERROR


def _role_settings(context: CommandContext, slash: SlashScanner) -> CommandResult:
    from replctl.psql.describe_settings import list_role_settings

    role = slash.argument(strip_semicolons=True)
    database = slash.argument(strip_semicolons=True)
    is_done = list_role_settings(context.settings, role, database)
    return CommandStatus.DONE if is_done else CommandStatus.ERROR


def _out(context: CommandContext, slash: SlashScanner) -> CommandResult:
    target = slash.argument(Argument.FILE_PIPE)
    settings = context.settings
    output = Output(None if target is None else os.path.expanduser(target))
    former, settings.output = settings.output, output
    exit_code = former.close()
    if exit_code is not None:
        settings.variables.record_shell_exit(exit_code)
    return CommandStatus.DONE


def _prompt(context: CommandContext, slash: SlashScanner) -> CommandResult:
    first, second = slash.argument(), slash.argument()
    if first is None:
        raise missing_argument(slash)
    prompt, name = ("", first) if second is None else (first, second)
    if context.settings.messages.place is None:
        value = answer_to(prompt)
    else:  # while a script is read from a file, stdin belongs to the user
        print(prompt, end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            raise PsqlError(f"\\{slash.command}: could not read value for variable")
        value = line.removesuffix("\n")
    context.settings.variables.set(name, value)
    return CommandStatus.DONE


def _password(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\password [USER]`."""
    settings = context.settings
    user = slash.argument(Argument.SQL_IDENTIFIER, strip_semicolons=True)
    if settings.session is None:
        raise PsqlError("You are currently not connected to a database.")
    name = user or settings.session.role_name
    first = answer_to(f'Enter new password for user "{name}": ', is_secret=True)
    if answer_to("Enter it again: ", is_secret=True) != first:
        raise PsqlError("Passwords didn't match.")
    statement = f"ALTER USER {quote_identifier(name)} PASSWORD {quote_literal(first)}"
    return CommandStatus.DONE if run_silently(settings, statement) else CommandStatus.ERROR


def _quit(context: CommandContext, slash: SlashScanner) -> CommandResult:
    return CommandStatus.TERMINATE


def _restrict(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Refuse all commands until `\\unrestrict` with the same key, because the data of a dump might
    contain commands.
    """
    key = slash.argument()
    if not key:
        raise missing_argument(slash)
    context.settings.restrict_key = key
    return CommandStatus.DONE


def _unrestrict(context: CommandContext, slash: SlashScanner) -> CommandResult:
    key = slash.argument()
    if not key:
        raise missing_argument(slash)
    if context.settings.restrict_key is None:
        raise PsqlError(f"\\{slash.command}: not currently in restricted mode")
    if key != context.settings.restrict_key:
        raise PsqlError(f"\\{slash.command}: wrong key")
    context.settings.restrict_key = None
    return CommandStatus.DONE


def _set(context: CommandContext, slash: SlashScanner) -> CommandResult:
    name = slash.argument()
    variables = context.settings.variables
    if name is None:
        print(variables.listing(), end="", flush=True)
        return CommandStatus.DONE
    parts = []
    while (part := slash.argument()) is not None:
        parts.append(part)
    variables.set(name, "".join(parts))
    return CommandStatus.DONE


def _unset(context: CommandContext, slash: SlashScanner) -> CommandResult:
    name = slash.argument()
    if name is None:
        raise missing_argument(slash)
    context.settings.variables.unset(name)
    return CommandStatus.DONE


def _timing(context: CommandContext, slash: SlashScanner) -> CommandResult:
    value = slash.argument()
    settings = context.settings
    status = CommandStatus.DONE
    try:
        settings.shows_timing = (
            not settings.shows_timing if value is None else parse_bool(value, "\\timing")
        )
    except PsqlError as error:  # as in psql, print the unchanged state
        settings.messages.error(str(error))
        status = CommandStatus.ERROR
    settings.say(f"Timing is {'on' if settings.shows_timing else 'off'}.")
    return status


def _sync(context: CommandContext, slash: SlashScanner) -> CommandResult:
    from replctl.psql.sync import sync_subscriptions

    names: list[str] = []
    while (name := slash.argument(Argument.SQL_IDENTIFIER, strip_semicolons=True)) is not None:
        names.append(name)
    if context.settings.session is None:
        raise PsqlError("You are currently not connected to a database.")
    is_done = sync_subscriptions(context.settings, names)
    return CommandStatus.DONE if is_done else CommandStatus.ERROR


_COMMANDS: dict[str, Command] = {
    "!": _shell,
    "?": _slash_help,
    "C": pset.set_title,
    "H": partial(pset.toggle_format, "html"),
    "T": pset.set_table_attributes,
    "a": partial(pset.toggle_format, "unaligned"),
    "c": connect.connect,
    "cd": _cd,
    "connect": connect.connect,
    "conninfo": connect.connection_information,
    "copy": copy_command.copy,
    "copyright": _copyright,
    "crosstabview": query_buffer.show_crosstab,
    "e": query_buffer.edit,
    "echo": _echo,
    "edit": query_buffer.edit,
    "encoding": _encoding,
    "errverbose": _errverbose,
    "f": pset.set_field_separator,
    "g": query_buffer.go,
    "gdesc": query_buffer.describe,
    "getenv": _getenv,
    "gexec": query_buffer.go_execute,
    "gset": query_buffer.go_set,
    "gx": query_buffer.go,
    "h": _help,
    "help": _help,
    "html": partial(pset.toggle_format, "html"),
    "i": _include,
    "include": _include,
    "include_relative": _include,
    "ir": _include,
    "l": _list,
    "l+": _list,
    "list": _list,
    "list+": _list,
    "o": _out,
    "out": _out,
    "p": query_buffer.print_buffer,
    "password": _password,
    "print": query_buffer.print_buffer,
    "prompt": _prompt,
    "pset": pset.pset,
    "q": _quit,
    "qecho": _echo,
    "quit": _quit,
    "r": query_buffer.reset,
    "reset": query_buffer.reset,
    "restrict": _restrict,
    "s": query_buffer.history,
    "set": _set,
    "setenv": _setenv,
    "sync": _sync,
    "t": partial(pset.toggle, "tuples_only"),
    "timing": _timing,
    "unrestrict": _unrestrict,
    "unset": _unset,
    "w": query_buffer.write,
    "warn": _echo,
    "watch": query_buffer.watch,
    "write": query_buffer.write,
    "x": partial(pset.toggle, "expanded"),
    "drds": _role_settings,
    "z": _privileges,
    "zS": _privileges,
}

#: The names that completion offers after a backslash.
COMMAND_NAMES = (
    *sorted({*_COMMANDS, *BRANCHING_COMMANDS}),
    *("d", "d+", "dRp", "dRp+", "dRs", "dRs+", "dd", "di", "dn", "dp", "drg", "dt", "du"),
)
