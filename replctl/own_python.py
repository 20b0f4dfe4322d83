"""Start more processes of this Python."""

from __future__ import annotations

import sys


def python_command(code: str, *arguments: str) -> list[str]:
    """Return the command that runs some code in another process.

    The process does not load modules from its working directory: there, other users or another
    project may have modules with the names of ours.
    """
    return [sys.executable, "-P", "-c", code, *arguments]
