"""Read commands from a terminal: prompt, line editing, history, highlighting (prompt_toolkit)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from replctl.psql.exit_code import ExitCode
from replctl.psql.mainloop import MainLoop
from replctl.psql.prompt import prompt_text
from replctl.psql.psql_settings import PsqlSettings
from replctl.psql.terminal import is_dumb, takes_colors

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

    from replctl.psql.typed_history import History


def run_interactive(settings: PsqlSettings, *, has_editing: bool = True) -> ExitCode:
    """Run the typed commands until `\\q` or Ctrl-D.

    Args:
        has_editing: use line editing, history and completion, unless the terminal has no escape
            sequences.  The option `-n` turns this off.
    """
    from replctl import __version__

    settings.is_interactive = True
    settings.say(f'replctl {__version__} (as psql of PostgreSQL 17)\nType "help" for help.\n')
    loop = MainLoop(settings)
    settings.read_data_line = lambda: _data_line(loop)
    if not has_editing or is_dumb():
        return loop.run(_read_plain_line)
    from replctl.psql.typed_history import History

    history = History(settings, lambda: bool(loop.context.scanner.buffer))
    session = _prompt_session(loop, history)

    def read_line(loop: MainLoop) -> str | None:
        try:
            return session.prompt(prompt_text(loop.context))
        except EOFError:  # Ctrl-D
            return None

    try:
        return loop.run(read_line)
    finally:
        history.close()


def _read_plain_line(loop: MainLoop) -> str | None:
    try:
        return input(prompt_text(loop.context))
    except EOFError:  # Ctrl-D
        return None


def _data_line(loop: MainLoop) -> str | None:
    """Return a line of data for COPY, which the user types at a separate prompt."""
    print(prompt_text(loop.context, "PROMPT3"), end="", flush=True)
    return sys.stdin.readline() or None


def _prompt_session(loop: MainLoop, history: History) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.lexers import PygmentsLexer
    from pygments.lexers.sql import PostgresLexer  # type: ignore[import-untyped]

    from replctl.psql.completion import SqlCompleter

    return PromptSession(
        history=history,
        completer=SqlCompleter(loop.context),
        complete_while_typing=False,
        enable_history_search=True,
        lexer=PygmentsLexer(PostgresLexer) if takes_colors() else None,
    )
