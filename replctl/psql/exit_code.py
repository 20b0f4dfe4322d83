"""The exit codes of the command (psql's EXIT_* in settings.h)."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the process."""

    SUCCESS = 0
    FAILURE = 1  # internal error
    BAD_CONNECTION = 2
    USER = 3  # a script failed, and ON_ERROR_STOP is set
    BROKEN_PIPE = 141  # a shell's code for a process that SIGPIPE killed, as it kills psql
