"""An engine that records the statements of a job without running them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from query_facts import check_facts

from replctl.spark import SparkQuery


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

    def sql(self, query: SparkQuery | str, **_: Any) -> Recorder:
        if isinstance(query, SparkQuery):
            check_facts(query)
        self.statements.append(str(query))
        if len(self.statements) == self._stops_after:
            raise Stop
        return self

    def rows(self, query: SparkQuery | str) -> list[tuple[Any, ...]]:
        self.sql(query)
        return self._answers.pop(0) if self._answers else []

    def run(self, query: SparkQuery | str) -> list[tuple[Any, ...]]:
        return self.rows(query)

    def provide_for(self, locations: Iterable[str]) -> None:
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

    def is_small(self, _query: SparkQuery) -> bool:
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
