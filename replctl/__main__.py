"""Run the command: `python -m replctl`, or `replctl`."""

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

#: Number of new objects before a garbage collection.  Most objects are loaded at the start and
#: stay, about 200_000 in a short command; scanning them took a tenth of its time.
_GARBAGE = 400_000


def main() -> None:
    """Run the command, and end the process with its exit code."""
    gc.set_threshold(_GARBAGE)
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if raises:  # while modules are loaded, Ctrl-C needs neither cleanup nor a message
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from replctl.psql.main import run

    if raises:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code = run(sys.argv[1:])
    if "pyspark" not in sys.modules:
        _end(code)
    sys.exit(code)


def _end(code: int) -> NoReturn:
    """End a process that has no JVM without freeing its objects.  Freeing them took a tenth of the
    time of a short command.
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    with suppress(OSError):  # nobody reads stderr
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
