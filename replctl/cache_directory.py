"""Where this user's files are kept that can be made again."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_directory() -> Path | None:
    """Return the directory, which may not be there; None for a user who has no home, and has not
    set XDG_CACHE_HOME."""
    if not os.environ.get("XDG_CACHE_HOME") and not has_home():
        return None
    return user_cache_path("replctl")


def has_home() -> bool:
    """Return whether HOME, or the user database, names a home directory."""
    return os.path.expanduser("~") != "~"
