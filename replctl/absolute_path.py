"""Make a path independent of the working directory."""

from __future__ import annotations

import os
from pathlib import Path

from replctl.errors import UndefinedFile


def absolute_path(path: str | Path) -> Path:
    """Return an absolute path that leads to the same place.

    Raises:
        UndefinedFile: the path is relative, and the working directory has been removed (58P01).
    """
    try:
        return Path(path).absolute()
    except FileNotFoundError as error:
        raise UndefinedFile(
            "the working directory has been removed",
            hint=f'Change to another directory, or use the absolute path of "{os.fspath(path)}".',
        ) from error
