"""Show progress to a user at a terminal: copies, merges, and the start of Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import TYPE_CHECKING

from replctl.psql.terminal import is_dumb

if TYPE_CHECKING:
    from replctl.session import Session

#: Seconds of Spark's start before the user sees that it is starting.
_PATIENCE = 1.0
_STARTING = "Starting Spark ..."
#: The logger of downloads.
DOWNLOADS = "replctl.spark.maven"


@contextmanager
def progress_bar(session: Session) -> Iterator[None]:
    """Draw the progress reported to `session.on_progress` while the `with` block runs, and erase it
    afterwards."""
    global _open_bar
    bar: _Bar | None = None

    def show(what: str, done: int, total: int) -> None:
        global _open_bar
        nonlocal bar
        if bar is None:
            bar = _open_bar = _Bar()
        bar.show(what, done, total)

    before, session.on_progress = session.on_progress, show
    try:
        yield
    finally:
        session.on_progress = before
        if bar is not None:
            _open_bar = None
            bar.close()


@contextmanager
def starting_spark() -> Iterator[None]:
    """Show on a terminal at stderr that Spark is starting if that takes more than a second, and
    erase it afterwards.  Downloads are reported immediately."""
    with reporting_downloads():
        if sys.stderr.isatty() and not is_dumb():
            with _reporting_start():
                yield
        else:
            yield


@contextmanager
def reporting_downloads() -> Iterator[None]:
    """Report downloads on stderr while the `with` block runs.  An inner block reports nothing
    itself.
    """
    import logging

    if logging.getLogger(DOWNLOADS).handlers:
        yield
        return
    handler = logging.StreamHandler()  # to stderr
    handler.setFormatter(logging.Formatter("replctl: %(message)s"))
    logger = logging.getLogger(DOWNLOADS)
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


@contextmanager
def _reporting_start() -> Iterator[None]:
    notice = _StartNotice()
    timer = Timer(_PATIENCE, notice.show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        notice.end()


class _StartNotice:
    """Shows that Spark is starting: a line on stderr, or a line of the open progress bar."""

    def __init__(self) -> None:
        self._bar: _Bar | None = None
        self._is_shown = self._has_ended = False
        self._changing = Lock()  # a timer's thread calls `show`

    def show(self) -> None:
        with self._changing:
            if self._has_ended:
                return
            self._is_shown, self._bar = True, _open_bar
            if self._bar is not None:
                self._bar.show(_STARTING, 0, None)
            else:
                print(_STARTING, end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        with self._changing:
            self._has_ended = True
            if not self._is_shown:
                return
            if self._bar is not None:
                self._bar.hide(_STARTING)
            else:
                print(f"\r{' ' * len(_STARTING)}\r", end="", file=sys.stderr, flush=True)


class _Bar:
    """Shows a line on stderr for each running task.  The first task loads rich."""

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

    def show(self, what: str, done: int, total: int | None) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._progress.add_task(what, total=total)
        self._progress.update(self._tasks[what], completed=done, total=total)  # type: ignore[arg-type]

    def hide(self, what: str) -> None:
        task = self._tasks.pop(what, None)
        if task is not None:
            self._progress.remove_task(task)  # type: ignore[arg-type]

    def close(self) -> None:
        self._progress.stop()


#: The progress bar that is currently on the terminal.
_open_bar: _Bar | None = None
