"""Limit the memory of a statement in this process: `replctl.max_query_memory`.

The operating system enforces the limit (RLIMIT_DATA): allocations of Python or SQLite beyond it
fail.  The limit does not apply to Spark's memory, which belongs to another process.
"""

from __future__ import annotations

import gc
import resource
import threading
import traceback
from types import TracebackType

from replctl.errors import OutOfMemory
from replctl.recursion_limit import too_deep

#: The setting, which the HINT names.
SETTING = "replctl.max_query_memory"
_STATM = "/proc/self/statm"
_PAGE = resource.getpagesize()
_DATA_FIELD = 5
#: Limits of a process that its parent may have set: limit, name, and option of ulimit.
_LIMITS = (
    (resource.RLIMIT_AS, "address space", "-v unlimited"),
    (resource.RLIMIT_DATA, "data memory", "-d unlimited"),
)


class memory_limit:
    """Limits the memory of a statement that runs in the `with` block, and reports a stack that is
    too deep.

    Only statements of the main thread are limited, and only on systems that have /proc.  A block
    inside another one has no limit of its own.

    Args:
        kilobytes: the limit.
        continues: the block continues the last statement, so both share one limit.

    Raises:
        OutOfMemory: the statement or the process needs more memory (53200).
        StatementTooComplex: the statement is nested too deeply (54001).
    """

    #: Memory of the process at the start of the last statement; None if the limit was lifted.
    _base: int | None = None
    #: The limits of the process outside of statements, saved while a statement is limited.
    _usual: tuple[int, int] | None = None

    def __init__(self, kilobytes: int, *, continues: bool = False) -> None:
        self._kilobytes, self._continues = kilobytes, continues
        self._is_outermost = False

    def __enter__(self) -> None:
        cls = memory_limit
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or cls._usual is not None:
            return
        used = _data_bytes()
        if used is None:
            return
        if cls._base is None or not self._continues:
            cls._base = used
        usual = resource.getrlimit(resource.RLIMIT_DATA)
        most = cls._base + self._kilobytes * 1024
        bounds = [most, *(bound for bound in usual if bound != resource.RLIM_INFINITY)]
        resource.setrlimit(resource.RLIMIT_DATA, (min(bounds), usual[1]))
        cls._usual = usual
        self._is_outermost = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._is_outermost:
            _restore()
        if not isinstance(error, MemoryError | RecursionError):
            return
        _clear_frames(error)
        if isinstance(error, RecursionError):
            raise too_deep() from None
        gc.collect()
        raise _process_limit(self._kilobytes) or out_of_memory(self._kilobytes) from None


def out_of_memory(kilobytes: int) -> OutOfMemory:
    """Return the error of a statement that needs more memory."""
    return OutOfMemory(
        "out of memory",
        detail=f"The statement needs more than {kilobytes}kB in this process.",
        hint=f'Increase the configuration parameter "{SETTING}".',
    )


def _process_limit(kilobytes: int) -> OutOfMemory | None:
    """Return the error for a limit of this process, if that leaves less memory than the setting."""
    for limit, name, option in _LIMITS:
        bound = resource.getrlimit(limit)[0]
        if bound != resource.RLIM_INFINITY and bound < (memory_limit._base or 0) + kilobytes * 1024:
            return OutOfMemory(
                "out of memory",
                detail=f"The {name} of this process is limited to {bound // 1024}kB.",
                hint=f'Raise the limit, for example with "ulimit {option}".',
            )
    return None


def lift_memory_limit() -> None:
    """Lift the limit for the rest of the statement.

    Callers do this in two cases: the statement starts to use Spark, whose client and Java must not
    fail; or the statement has failed, and cleans up.
    """
    memory_limit._base = None
    _restore()


def _clear_frames(error: BaseException) -> None:
    """Release the memory of a failed statement by clearing the frames of its tracebacks."""
    link: BaseException | None = error
    while link is not None:
        traceback.clear_frames(link.__traceback__)
        link.__traceback__ = None
        link = link.__cause__ or link.__context__


def _restore() -> None:
    if memory_limit._usual is not None:
        resource.setrlimit(resource.RLIMIT_DATA, memory_limit._usual)
        memory_limit._usual = None


def _data_bytes() -> int | None:
    """Return the size of the process's data memory; None if the system does not report it."""
    try:
        with open(_STATM, "rb") as file:
            return int(file.read().split()[_DATA_FIELD]) * _PAGE
    except OSError:  # only Linux has the file
        return None
