"""An engine that records the statements of a job without running them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Stop(Exception):
    """Raised to end a job after the last recorded statement."""


class Recorder:
    """An engine, a session and a frame that record statements without running them.

    Args:
        answers: the rows that queries return, one after the other; later queries return no rows.
        stops_after: the number of statements after which the job ends; 0: it does not end early.
    """

    def __init__(self, *answers: list[tuple[Any, ...]], stops_after: int = 0) -> None:
        self.statements: list[str] = []
        self._answers = list(answers)
        self._stops_after = stops_after
        self._write: list[str] = []

    def sql(self, text: str, **_: Any) -> Recorder:
        self.statements.append(text)
        if len(self.statements) == self._stops_after:
            raise Stop
        return self

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        self.sql(text)
        return self._answers.pop(0) if self._answers else []

    def run(self, text: str) -> list[tuple[Any, ...]]:
        return self.rows(text)

    def provide_for(self, text: str) -> None:
        """Provide nothing: no statement reaches Spark."""

    @contextmanager
    def running(self) -> Iterator[None]:
        yield

    # session, query_size
    @property
    def session(self) -> Recorder:
        return self

    @property
    def conf(self) -> Recorder:
        return self

    @property
    def query_size(self) -> Recorder:
        return self

    def set(self, name: str, value: str) -> None: ...

    def unset(self, name: str) -> None: ...

    def choose(self, *_: Any, **__: Any) -> None: ...

    def is_small(self, _query: str) -> bool:
        return False

    # frame
    def coalesce(self, _count: int) -> Recorder:
        return self

    @property
    def write(self) -> Recorder:
        self._write = []
        return self

    def format(self, name: str) -> Recorder:
        return self._noted(name)

    def mode(self, name: str) -> Recorder:
        return self._noted(name)

    def options(self, **options: str) -> Recorder:
        return self._noted(*(f"{name} = {value}" for name, value in sorted(options.items())))

    def save(self, location: str) -> None:
        self.statements.append(f"-- write {', '.join(self._write)} to {location}")

    def _noted(self, *parts: str) -> Recorder:
        self._write += parts
        return self
