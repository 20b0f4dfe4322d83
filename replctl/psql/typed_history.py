"""Keep the history of typed lines, without passwords, in a file that only its owner can read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory

from replctl.passwords import may_hold_password
from replctl.private_file import open_private
from replctl.psql.psql_settings import PsqlSettings

_SET = re.compile(r"\s*\\set\s+(\w+)\s+\S")
_VARIABLE = re.compile(r":['\"]?(\w+)")


class History(FileHistory):
    """A history without lines that HISTCONTROL excludes, and without statements and commands that
    may contain a password.

    Lines are held back until their statement is complete, because only the whole statement shows
    whether it has a password.  Lines that set a variable are held back until the end, because a
    statement may use the variable as a password.

    Args:
        is_amid_statement: returns whether the last added lines belong to an incomplete statement.
    """

    def __init__(self, settings: PsqlSettings, is_amid_statement: Callable[[], bool]) -> None:
        path = history_path(settings)
        super().__init__(str(path))
        self._is_kept = _can_be_kept(path)
        self._settings = settings
        self._is_amid_statement = is_amid_statement
        self._statement: list[str] = []
        self._waiting: list[str] = []
        self._set: list[tuple[str, str]] = []  # variables, and the lines that set them
        self._secret: set[str] = set()  # variables that may hold a password

    def append_string(self, string: str) -> None:
        """Add a typed line.  Write it to the file when its statement or command is complete."""
        if not self._is_amid_statement():
            self.flush()
        self._statement.append(string)
        if not self._is_ignored(string):
            super().append_string(string)
        if len(self._statement) == 1 and string.lstrip().startswith("\\"):
            self.flush()

    def _is_ignored(self, string: str) -> bool:
        control = self._settings.variables.choice("HISTCONTROL")
        if control in ("ignorespace", "ignoreboth") and string.startswith(" "):
            return True
        is_repeated = self.get_strings()[-1:] == [string]
        return control in ("ignoredups", "ignoreboth") and is_repeated

    def load_history_strings(self) -> Iterable[str]:
        """Return the lines of the file, newest first."""
        return super().load_history_strings() if self._is_kept else []

    def store_string(self, string: str) -> None:
        """Hold a line back until its statement is complete."""
        self._waiting.append(string)

    def flush(self) -> None:
        """Write the lines of the last statement, unless they may contain a password."""
        statement, self._statement = "\n".join(self._statement), []
        waiting, self._waiting = self._waiting, []
        if may_hold_password(statement):
            self._secret.update(_VARIABLE.findall(statement))
            return
        found = _SET.match(statement)
        if found is None:
            self._write(waiting)
        else:
            self._set += [(found[1], line) for line in waiting]

    def close(self) -> None:
        """Write the lines that are still held back, except those that set a secret."""
        self.flush()
        lines, self._set = self._set, []
        known = 0
        while len(self._secret) > known:  # a variable's value may come from another variable
            known = len(self._secret)
            for name, line in lines:
                if name in self._secret:
                    self._secret.update(_VARIABLE.findall(line))
        self._write([line for name, line in lines if name not in self._secret])

    def _write(self, lines: list[str]) -> None:
        if not lines or not self._is_kept:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        open_private(os.fsdecode(self.filename), flags, "ab").close()
        for line in lines:
            super().store_string(line)


def _can_be_kept(path: Path) -> bool:
    """Create the history file if it is missing, and return whether it is usable.  A home directory
    that is missing or read-only is not an error.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, "ab").close()
    except OSError:  # a session needs no history
        return False
    return True


def history_path(settings: PsqlSettings) -> Path:
    """Return the path of the history: HISTFILE, $REPLCTL_HISTORY, or a file of the user's."""
    named = settings.variables.get("HISTFILE") or os.environ.get("REPLCTL_HISTORY")
    return Path(os.path.expanduser(named or "~/.replctl_history"))


def history_text(settings: PsqlSettings) -> str:
    """Return the lines of the history, oldest first."""
    path = history_path(settings)
    if not os.access(path, os.R_OK):
        return ""
    newest_first = FileHistory(str(path)).load_history_strings()
    limit = settings.variables.integer("HISTSIZE")
    lines = list(newest_first)[: limit if limit >= 0 else None]
    return "\n".join(reversed(lines))
