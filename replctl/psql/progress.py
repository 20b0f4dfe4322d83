"""How far a copy or merge is, on the terminal of somebody who waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from replctl.session import Session


@contextmanager
def progress_bar(session: Session) -> Iterator[None]:
    """While the block runs, draw what `session.on_progress` is told; nothing remains of it."""
    bar: _Bar | None = None

    def show(what: str, done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            bar = _Bar()
        bar.show(what, done, total)

    before, session.on_progress = session.on_progress, show
    try:
        yield
    finally:
        session.on_progress = before
        if bar is not None:
            bar.close()


class _Bar:
    """A line on stderr for each thing that is being done; rich is loaded with the first."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            Elapsed(),
            console=Console(stderr=True),
            transient=True,
        )
        self._progress.start()
        self._tasks: dict[str, int] = {}

    def show(self, what: str, done: int, total: int) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._progress.add_task(what, total=total)
        self._progress.update(self._tasks[what], completed=done, total=total)  # type: ignore[arg-type]

    def close(self) -> None:
        self._progress.stop()
