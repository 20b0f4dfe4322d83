"""Parse the command line as psql does, by the rules of getopt_long.

Options and arguments may be in any order.  `-c` and `-f` may occur several times and keep their
order.  Long options may be abbreviated.  Other arguments are a database and a role.  typer, which
parses subcommands, does not support these rules.
"""

from __future__ import annotations

import getopt
import os
from enum import Enum, auto

from replctl.record import dataclass


class UsageError(Exception):
    """Raised if the command line is invalid.  The text is getopt_long's message."""


class Action(Enum):
    """A kind of action that the command line requests."""

    COMMAND = auto()
    FILE = auto()


@dataclass
class Options:
    """The parsed command line.

    Attributes:
        database: a name or a connection string.
        variables: `-v NAME=VALUE`, and equivalent options; None unsets a variable.
        print_options: `-P NAME=VALUE`, and equivalent options.
        home: the cluster's directory.
        spark_properties: `--conf NAME=VALUE`.
        keeps_running: the command does not end by itself.
    """

    actions: list[tuple[Action, str]]
    variables: list[tuple[str, str | None]]
    print_options: list[tuple[str, str | None]]
    spark_properties: tuple[tuple[str, str], ...] = ()
    extra_arguments: tuple[str, ...] = ()
    database: str | None = None
    role: str | None = None
    home: str | None = None
    remote: str | None = None
    master: str | None = None
    output: str | None = None
    log_file: str | None = None
    help_topic: str | None = None
    shows_version: bool = False
    lists_databases: bool = False
    is_single_transaction: bool = False
    reads_startup_file: bool = True
    has_line_editing: bool = True
    keeps_running: bool = False


#: Subcommands.  A database with one of these names needs the option -d.
SUBCOMMANDS = (
    "sync", "status", "verify", "vacuum", "dump", "schema", "standby", "spark", "cluster",
)  # fmt: skip

#: Long options and their short forms, if any; a colon marks options with a value.
_LONG = {
    "command:": "c", "file:": "f", "dbname:": "d", "username:": "U", "set:": "v", "variable:": "v",
    "version": "V", "no-psqlrc": "X", "single-transaction": "1", "list": "l", "echo-all": "a",
    "echo-errors": "b", "echo-queries": "e", "echo-hidden": "E", "log-file:": "L",
    "no-readline": "n", "output:": "o", "quiet": "q", "single-step": "s", "single-line": "S",
    "no-align": "A", "html": "H", "field-separator:": "F", "field-separator-zero": "z",
    "record-separator:": "R", "record-separator-zero": "0", "pset:": "P", "tuples-only": "t",
    "table-attr:": "T", "expanded": "x", "csv": "", "home:": "", "remote:": "", "master:": "",
    "conf:": "", "help": "?",
}  # fmt: skip
_SHORT = "c:f:d:U:v:VX1labeEL:no:qsSAHF:zR:0P:tT:x?"

#: Options that set a variable or a printing option.
_AS_VARIABLE = {
    "-a": ("ECHO", "all"),
    "-b": ("ECHO", "errors"),
    "-e": ("ECHO", "queries"),
    "-E": ("ECHO_HIDDEN", "on"),
    "-q": ("QUIET", "on"),
    "-s": ("SINGLESTEP", "on"),
    "-S": ("SINGLELINE", "on"),
}
_AS_PRINT_OPTION = {
    "-A": ("format", "unaligned"),
    "-H": ("format", "html"),
    "--csv": ("format", "csv"),
    "-t": ("tuples_only", "on"),
    "-x": ("expanded", "on"),
    "-z": ("fieldsep_zero", "on"),
    "-0": ("recordsep_zero", "on"),
}
_PRINT_OPTION_WITH_VALUE = {"-F": "fieldsep", "-R": "recordsep", "-T": "tableattr"}


def parse_options(argv: list[str]) -> Options:
    """Read the command line.

    Raises:
        UsageError: an option is unknown, or its value is missing.
    """
    options = Options(actions=[], variables=[], print_options=[])
    options.remote = os.environ.get("SPARK_REMOTE") or None
    if argv[:1] and (argv[0] == "-?" or argv[0].startswith("--help")):
        options.help_topic = argv[0].partition("=")[2] or "options"
        return options
    try:
        found, arguments = getopt.gnu_getopt(argv, _SHORT, [n.replace(":", "=") for n in _LONG])
    except getopt.GetoptError as error:
        raise _usage_error(error) from error
    short = {f"--{name.rstrip(':')}": f"-{letter}" for name, letter in _LONG.items() if letter}
    for name, value in found:
        _take(options, short.get(name, name), value)
    for argument in arguments:
        if options.database is None:
            options.database = argument
        elif options.role is None:
            options.role = argument
        else:
            options.extra_arguments += (argument,)
    return options


def find_subcommand(argv: list[str]) -> tuple[str, list[str]] | None:
    """Return a subcommand and its arguments, if the first argument that is not an option names
    one."""
    try:
        _found, rest = getopt.getopt(argv, _SHORT, [n.replace(":", "=") for n in _LONG])
    except getopt.GetoptError:  # parse_options reports it
        return None
    if not rest or rest[0] not in SUBCOMMANDS:
        return None
    return rest[0], argv[: len(argv) - len(rest)] + rest[1:]


def _usage_error(error: getopt.GetoptError) -> UsageError:
    is_long = len(error.opt) > 1
    if "requires argument" in error.msg:
        return UsageError(
            f"option '--{error.opt}' requires an argument"
            if is_long
            else f"option requires an argument -- '{error.opt}'"
        )
    if "must not have an argument" in error.msg:
        return UsageError(f"option '--{error.opt}' doesn't allow an argument")
    if "not a unique prefix" in error.msg:
        return UsageError(f"option '--{error.opt}' is ambiguous")
    if is_long:
        return UsageError(f"unrecognized option '--{error.opt}'")
    return UsageError(f"invalid option -- '{error.opt}'")


def _take(options: Options, name: str, value: str) -> None:
    if name in _AS_VARIABLE:
        options.variables.append(_AS_VARIABLE[name])
        return
    if name in _AS_PRINT_OPTION:
        options.print_options.append(_AS_PRINT_OPTION[name])
        return
    if name in _PRINT_OPTION_WITH_VALUE:
        options.print_options.append((_PRINT_OPTION_WITH_VALUE[name], value))
        return
    match name:
        case "-c":
            options.actions.append((Action.COMMAND, value))
        case "-f":
            options.actions.append((Action.FILE, value))
        case "-d":
            options.database = value
        case "-U":
            options.role = value
        case "-v":
            variable, separator, text = value.partition("=")
            options.variables.append((variable, text if separator else None))
        case "-P":
            option, separator, text = value.partition("=")
            options.print_options.append((option, text if separator else None))
        case "-l":
            options.lists_databases = True
        case "-L":
            options.log_file = value
        case "-n":
            options.has_line_editing = False
        case "-o":
            options.output = value
        case "-V":
            options.shows_version = True
        case "-X":
            options.reads_startup_file = False
        case "-1":
            options.is_single_transaction = True
        case "-?":
            options.help_topic = "options"
        case "--home":
            options.home = value
        case "--remote":
            options.remote = value
        case "--master":
            options.master = value
        case "--conf":
            prop, separator, text = value.partition("=")
            if not (prop and separator):
                raise UsageError(f'--conf wants NAME=VALUE, not "{value}"')
            options.spark_properties += ((prop, text),)
