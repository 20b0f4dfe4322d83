"""Open objects when a program first needs them.

An example is Spark.  It takes seconds to start, and many statements about small tables never need
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

T = TypeVar("T")


class _LateObject:
    """Stands for an object, and opens it at the first access to one of its attributes."""

    def __init__(self, opened: Callable[[], object]) -> None:
        self._opened = opened
        self._found: object | None = None

    def __getattr__(self, name: str) -> Any:
        if self._found is None:
            self._found = self._opened()
        return getattr(self._found, name)


def late(opened: Callable[[], T]) -> T:
    """Return a substitute for an object.  At its first use, `opened` opens the object."""
    return cast("T", _LateObject(opened))
