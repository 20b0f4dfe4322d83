"""Write to pipes whose reader may exit, and to standard streams that may be on a full disk."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def write_stderr(text: str) -> None:
    """Write a line to stderr.  Ignore an error of writing, such as a full disk, as psql does.

    Raises:
        BrokenPipeError: the reader of stderr has exited.
    """
    try:
        print(text, file=sys.stderr, flush=True)
    except BrokenPipeError:
        raise
    except OSError:  # there is no other place to report it
        drop_unwritten(sys.stderr)


def drop_unwritten(stream: TextIO) -> None:
    """Discard the buffer of a standard stream if it cannot be written.  Otherwise Python would try
    to write it at exit, and fail again.
    """
    try:
        stream.flush()
    except OSError:
        place = stream.fileno()
        kept = os.dup(place)
        discard(place)
        stream.flush()
        os.dup2(kept, place)
        os.close(kept)


def discard(descriptor: int) -> None:
    """Discard all that is written to a descriptor from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor, inheritable=os.get_inheritable(descriptor))
    os.close(nowhere)


class _Outlasting(io.FileIO):
    """A pipe that discards what is written after its reader has exited."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            discard(self.fileno())
            return super().write(data)


def outlasting(descriptor: int, *, is_closed: bool = True) -> TextIO:
    """Return a text stream over a descriptor that discards what is written after the reader has
    exited.

    Args:
        is_closed: close the descriptor with the stream.
    """
    raw = _Outlasting(descriptor, "w", closefd=is_closed)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding="utf-8", errors="surrogateescape", newline="\n"
    )


def _lasting(stream: TextIO) -> TextIO:
    try:
        return outlasting(stream.fileno(), is_closed=False)
    except io.UnsupportedOperation:  # a stream in memory has no reader that exits
        return stream


@contextmanager
def outlasting_readers() -> Iterator[None]:
    """Continue without output if the readers of stdout or stderr exit during the `with` block: a
    daemon must not end because its log's reader does.
    """
    usual = sys.stdout, sys.stderr
    for stream in usual:
        drop_unwritten(stream)
    own = [_lasting(stream) for stream in usual]
    sys.stdout, sys.stderr = own
    try:
        yield
    finally:
        for stream in own:
            drop_unwritten(stream)
        sys.stdout, sys.stderr = usual
