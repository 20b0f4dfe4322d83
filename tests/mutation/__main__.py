"""The long run: `python -m tests.mutation [--scripts 10000] [--seed 1]`."""

from __future__ import annotations

import argparse
import sys
import time

from .drawing import script
from .run import faults


def main() -> int:
    """Run the scripts; print the faults and their number."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--scripts", type=int, default=10_000, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="of the first; the next ones follow")
    parser.add_argument("--show", action="store_true", help="print one script, and do not run it")
    options = parser.parse_args()
    if options.show:
        sys.stdout.buffer.write(script(options.seed).encode("utf-8", "surrogateescape"))
        return 0
    begun, done, found = time.monotonic(), 0, 0
    for fault in faults(range(options.seed, options.seed + options.scripts)):
        done += 1
        if fault is not None:
            found += 1
            print(f"seed {fault.seed}: {fault.what}", flush=True)
    print(f"{done} scripts in {time.monotonic() - begun:.0f} s, {found} faults")
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main())
