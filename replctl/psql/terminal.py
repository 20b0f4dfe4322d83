"""Find out whether the terminal understands escape sequences and colours."""

from __future__ import annotations

import os

#: Values of TERM for terminals without escape sequences, and for programs that act as such
#: terminals.
_DUMB = ("dumb", "unknown")


def is_dumb() -> bool:
    """Return whether the terminal does not understand escape sequences."""
    return os.environ.get("TERM", "").lower() in _DUMB


def takes_colors() -> bool:
    """Return whether the terminal has colours and the user has not disabled them (no-color.org)."""
    return not (is_dumb() or os.environ.get("NO_COLOR"))
