"""Identify the containers of processes that share a cluster's directory.

Containers on one volume see each other's locks, but each has its own process IDs and its own
localhost.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_NAMESPACES = Path("/proc/self/ns")
#: It tells machines apart: their first namespaces have the same numbers.
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@cache
def process_namespace() -> str:
    """Return a name that is the same for processes with the same process IDs."""
    return _namespace("pid")


@cache
def network_namespace() -> str:
    """Return a name that is the same for processes with the same localhost."""
    return _namespace("net")


def _namespace(kind: str) -> str:
    try:
        return f"{_BOOT_ID.read_text('ascii').strip()} {os.readlink(_NAMESPACES / kind)}"
    except OSError:  # not Linux
        return os.uname().nodename
