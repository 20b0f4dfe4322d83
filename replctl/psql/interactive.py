"""A user at a terminal: prompt, line editing, history, highlighting (prompt_toolkit)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from replctl.psql.exit_code import ExitCode
from replctl.psql.mainloop import MainLoop
from replctl.psql.prompt import prompt_text
from replctl.psql.settings import PsqlSettings

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory


def run_interactive(settings: PsqlSettings, *, has_editing: bool = True) -> ExitCode:
    """Run what is typed, up to `\\q` or Ctrl-D.

    Args:
        has_editing: line editing, history and completion; without it (`-n`) lines are just read.
    """
    from replctl import __version__

    settings.is_interactive = True
    settings.say(f'replctl {__version__} (as psql of PostgreSQL 17)\nType "help" for help.\n')
    loop = MainLoop(settings)
    settings.read_data_line = lambda: _data_line(loop)
    if not has_editing:
        return loop.run(_read_plain_line)
    session = _prompt_session(loop)

    def read_line(loop: MainLoop) -> str | None:
        try:
            return session.prompt(prompt_text(loop.context))
        except EOFError:
            return None

    return loop.run(read_line)


def _read_plain_line(loop: MainLoop) -> str | None:
    try:
        return input(prompt_text(loop.context))
    except EOFError:
        return None


def _data_line(loop: MainLoop) -> str | None:
    """A line of what COPY reads, at a prompt of its own."""
    print(prompt_text(loop.context, "PROMPT3"), end="", flush=True)
    return sys.stdin.readline() or None


def _prompt_session(loop: MainLoop) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.lexers import PygmentsLexer
    from pygments.lexers.sql import PostgresLexer  # type: ignore[import-untyped]

    from replctl.psql.completion import SqlCompleter

    settings = loop.context.settings
    return PromptSession(
        history=_history(settings),
        completer=SqlCompleter(loop.context),
        complete_while_typing=False,
        enable_history_search=True,
        lexer=None if os.environ.get("NO_COLOR") else PygmentsLexer(PostgresLexer),
    )


def _history(settings: PsqlSettings) -> FileHistory:
    """The history file, which leaves out what HISTCONTROL says."""
    from prompt_toolkit.history import FileHistory

    class History(FileHistory):
        def append_string(self, string: str) -> None:
            control = settings.variables.choice("HISTCONTROL")
            if control in ("ignorespace", "ignoreboth") and string.startswith(" "):
                return
            previous = self.get_strings()[-1:]
            if control in ("ignoredups", "ignoreboth") and previous == [string]:
                return
            super().append_string(string)

    path = _history_path(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    return History(str(path))


def _history_path(settings: PsqlSettings) -> Path:
    named = settings.variables.get("HISTFILE") or os.environ.get("REPLCTL_HISTORY")
    return Path(named).expanduser() if named else Path.home() / ".replctl_history"


def history_text(settings: PsqlSettings) -> str:
    """The lines of the history, oldest first."""
    path = _history_path(settings)
    if not path.exists():
        return ""
    from prompt_toolkit.history import FileHistory

    newest_first = FileHistory(str(path)).load_history_strings()
    limit = settings.variables.integer("HISTSIZE")
    lines = list(newest_first)[: limit if limit >= 0 else None]
    return "\n".join(reversed(lines))
