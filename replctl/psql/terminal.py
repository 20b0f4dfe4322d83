"""Tell what the terminal understands: escape sequences, colours."""

from __future__ import annotations

import os

#: What TERM is where a terminal, or a program that acts as one, understands no escape sequences.
_DUMB = ("dumb", "unknown")


def is_dumb() -> bool:
    """Return whether the terminal only prints what it is sent."""
    return os.environ.get("TERM", "").lower() in _DUMB


def takes_colors() -> bool:
    """Return whether the terminal has colours, and its user wants them (no-color.org)."""
    return not (is_dumb() or os.environ.get("NO_COLOR"))
