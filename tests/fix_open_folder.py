"""A folder for the processes of another user."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import wait_until


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a directory that any user may enter, unlike pytest's directories."""
    folder = Path(tempfile.mkdtemp(prefix="replctl-open-"))
    folder.chmod(0o755)
    yield folder
    wait_until(lambda: _is_removed(folder))


def _is_removed(folder: Path) -> bool:
    """Remove a folder, and return whether that worked: a JVM that is ending removes its own files
    at the same time."""
    try:
        for where, _folders, _files in os.walk(folder):
            Path(where).chmod(0o700)
        shutil.rmtree(folder)
    except OSError:
        return False
    return True
