"""A connection to Spark that is opened when a statement first needs it.

Many statements about small tables never do.  Spark takes seconds to start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from replctl.spark import Engine


class LateEngine:
    """Stands for an engine, and opens it at the first access to one of its attributes."""

    def __init__(self, opened: Callable[[], Engine]) -> None:
        self._opened = opened
        self._engine: Engine | None = None

    def __getattr__(self, name: str) -> Any:
        if self._engine is None:
            self._engine = self._opened()
        return getattr(self._engine, name)


def late(opened: Callable[[], Engine]) -> Engine:
    """Return an engine that `opened` opens at the first use."""
    return cast("Engine", LateEngine(opened))
