"""Find the directory for this user's cached files."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path | None:
    """Return the directory, which need not exist; None for a user without a home directory who has
    not set XDG_CACHE_HOME.
    """
    if not os.environ.get("XDG_CACHE_HOME") and not has_home():
        return None
    from platformdirs import user_cache_path  # see own_command.default_home

    return user_cache_path("replctl")


def has_home() -> bool:
    """Return whether HOME, or the user database, names a home directory."""
    return os.path.expanduser("~") != "~"
