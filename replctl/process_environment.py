"""Change the environment of this process for a moment, for a library that reads it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def environment_with(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables while the `with` block runs.  Processes started later do not
    inherit them.

    Args:
        variables: new values; None for variables that must not be set.
    """
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
