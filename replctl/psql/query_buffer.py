"""Run commands about the query buffer: `\\g \\gx \\gset \\gexec \\watch \\e \\p \\r \\s \\w`."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from dataclasses import replace

from replctl.psql.command_context import (
    CommandContext,
    CommandResult,
    CommandStatus,
    NewBuffer,
    Send,
    Watch,
    missing_argument,
)
from replctl.psql.crosstabview import Crosstab
from replctl.psql.output import Output, writing
from replctl.psql.print_content import PrintOptions
from replctl.psql.pset import set_option
from replctl.psql.scan_slash import Argument, SlashScanner
from replctl.psql.send_query import Delivery
from replctl.psql.variables import PsqlError


def go(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\g [(OPTION=VALUE ...)] [FILE]` or `\\gx`, which prints expanded records."""
    options = context.settings.print_options
    target = slash.argument(Argument.FILE_PIPE)
    if target is not None and target.startswith("("):
        options = _options(slash, target[1:], options)
        target = slash.argument(Argument.FILE_PIPE)
    if slash.command == "gx":
        options = replace(options, expanded="on")
    if target is not None:
        target = os.path.expanduser(target)
    return Send(Delivery(target=target, print_options=options))


def _options(slash: SlashScanner, first: str, options: PrintOptions) -> PrintOptions:
    """Return the session's options with the changes in `(format=csv null=x)`."""
    word: str | None = first
    while word is not None:
        is_last = word.endswith(")") and slash.quote is None
        if is_last:
            word = word[:-1]
        if word:
            name, separator, value = word.partition("=")
            options, _message = set_option(options, name, value if separator else None)
        if is_last:
            return options
        word = slash.argument()
    raise PsqlError(f"\\{slash.command}: missing right parenthesis")


def go_set(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\gset [PREFIX]`."""
    return Send(Delivery(gset_prefix=slash.argument() or ""))


def go_execute(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\gexec`."""
    return Send(Delivery(executes_values=True))


def describe(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\gdesc`."""
    return Send(Delivery(describes=True))


def show_crosstab(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\crosstabview [ROWS [COLUMNS [VALUES [SORT]]]]`."""
    said = [slash.argument() for _argument in range(4)]
    return Send(Delivery(crosstab=Crosstab(*said)))


def watch(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\watch [[i=]SECONDS] [c=TIMES] [m=MIN_ROWS]`."""
    try:
        return _watch_of(context, slash)
    except PsqlError:
        context.scanner.take()
        raise


def _watch_of(context: CommandContext, slash: SlashScanner) -> Watch:
    given: dict[str, float] = {}
    while (word := slash.argument(strip_semicolons=True)) is not None:
        label, separator, value = word.partition("=")
        if not separator:
            label, value = "interval", word
        what = _WATCH_LABELS.get(label)
        if what is None:
            raise PsqlError(f'\\watch: unrecognized parameter "{word}"')
        if what in given:
            verb = "" if what == "minimum row count" else "is "
            raise PsqlError(f"\\watch: {what} {verb}specified more than once")
        given[what] = _watch_number(what, value)
    if not context.query:
        raise PsqlError("\\watch cannot be used with an empty query")
    return Watch(
        given.get("interval value", 2.0),
        int(given.get("iteration count", 0)),
        int(given.get("minimum row count", 0)),
    )


_WATCH_LABELS = {
    "i": "interval value", "interval": "interval value",
    "c": "iteration count", "count": "iteration count",
    "m": "minimum row count", "min_rows": "minimum row count",
}  # fmt: skip


def _watch_number(what: str, value: str) -> float:
    try:
        number = float(value or 0) if what == "interval value" else int(value)
    except ValueError:  # no number: refused below
        number = -1
    is_refused = number < 0 or not math.isfinite(number)
    if is_refused or (number == 0 and what != "interval value"):
        raise PsqlError(f'\\watch: incorrect {what} "{value}"')
    return number


def print_buffer(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\p`: print the query buffer, or the last statement sent."""
    if context.query:
        print(context.query, flush=True)
    else:
        context.settings.say("Query buffer is empty.")
    return CommandStatus.DONE


def reset(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\r`: clear the query buffer."""
    context.scanner.take()
    context.settings.say("Query buffer reset (cleared).")
    return CommandStatus.DONE


def edit(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\e [FILE] [LINE]`: edit the query buffer, or a file that replaces it."""
    file, line = slash.argument(), slash.argument()
    if file is not None and line is None and file.isdigit():
        file, line = None, file
    if file is not None:
        return NewBuffer(_edited(os.path.expanduser(file), line))
    with tempfile.NamedTemporaryFile(
        "w", prefix="replctl.edit.", suffix=".sql", encoding="utf-8", delete=False
    ) as temporary:
        text = context.query
        temporary.write(text if not text or text.endswith("\n") else text + "\n")
    try:
        return NewBuffer(_edited(temporary.name, line))
    finally:
        os.unlink(temporary.name)


def _edited(path: str, line: str | None) -> str:
    names = ("PSQL_EDITOR", "EDITOR", "VISUAL")
    editor = next((os.environ[name] for name in names if os.environ.get(name)), "vi")
    option = os.environ.get("PSQL_EDITOR_LINENUMBER_ARG", "+" if editor.endswith("vi") else None)
    place = f" {option}{line}" if line is not None and option is not None else ""
    sys.stdout.flush()
    if subprocess.run(f"exec {editor}{place} '{path}'", shell=True, check=False).returncode != 0:
        raise PsqlError(f'could not start editor "{editor}"')
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError as error:
        raise PsqlError(f"{path}: {error.strerror}") from error


def write(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\w FILE`: write the query buffer to a file."""
    target = slash.argument(Argument.FILE_PIPE)
    if target is None:
        raise missing_argument(slash)
    output = Output(os.path.expanduser(target))
    with writing(str(target)):
        output.stream.write(context.query + "\n" if context.query else "")
    exit_code = output.close()
    if exit_code is not None:
        context.settings.variables.record_shell_exit(exit_code)
    return CommandStatus.DONE


def history(context: CommandContext, slash: SlashScanner) -> CommandResult:
    """Run `\\s [FILE]`: print the history, or write it to a file."""
    file = slash.argument()
    from replctl.psql.typed_history import history_text

    text = history_text(context.settings)
    if file is None:
        print(text, end="\n", flush=True)
        return CommandStatus.DONE
    try:
        with open(os.path.expanduser(file), "w", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        raise PsqlError(f'could not save history to file "{file}": {error.strerror}') from error
    context.settings.say(f'Wrote history to file "{file}".')
    return CommandStatus.DONE
