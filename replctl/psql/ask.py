"""Ask the user at the terminal, if there is one (simple_prompt in sprompt.c)."""

from __future__ import annotations

import sys


def answer_to(prompt: str, *, is_secret: bool = False) -> str:
    """Return the user's answer to a prompt.  Without a terminal, return the next line of stdin.

    Args:
        is_secret: do not show the answer while it is typed.
    """
    try:
        terminal = open("/dev/tty", "r+b", buffering=0)  # noqa: SIM115 - closed below
    except OSError:  # no terminal, as in a service
        print(prompt, end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().removesuffix("\n")
    with terminal:
        if is_secret:
            from getpass import getpass

            return getpass(prompt)
        terminal.write(prompt.encode())
        return terminal.readline().decode("utf-8", "surrogateescape").removesuffix("\n")
