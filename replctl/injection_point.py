"""Named points at which a test can stop, fail or kill the process (PostgreSQL's injection points).

REPLCTL_INJECTION_POINT has one of these values:

- `apply.after-write:kill` kills the process with SIGKILL at the first visit of that point.
- `name:stop` stops the process until somebody sends SIGCONT.
- `name:error` raises an error.
- `name:kill:3` kills the process at the third visit.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

from replctl.errors import InternalError

#: All points, so that a test can visit each of them.
POINTS = (
    "write.after-intent",
    "small.after-file",
    "small.after-version",
    "write.after-delta-commit",
    "write.before-log",
    "write.after-log",
    "storage.after-create",
    "rewrite.after-columns",
    "rewrite.after-fill",
    "columns.after-rewrite",
    "mapping.after-step",
    "clustering.before-commit",
    "properties.after-commit",
    "widening.after-commit",
    "block.before-commit",
    "block.after-commit",
    "undo.before-restore",
    "undo.after-restore",
    "tablesync.after-snapshot",
    "tablesync.before-write",
    "tablesync.after-copy",
    "tablesync.before-finishedcopy",
    "tablesync.after-finishedcopy",
    "tablesync.before-syncdone",
    "tablesync.before-ready",
    "resync.after-table",
    "apply.before-batch",
    "apply.after-batch",
    "apply.after-first-table",
    "apply.after-tables",
    "apply.before-progress",
    "apply.after-progress",
    "batches.between",
    "vacuum.after-first-file",
    "vacuum.before-log",
    "vacuum.after-first-log-entry",
    "vacuum.before-catalog",
    "backup.after-catalog",
    "identify.before-catalog",
    "standby.before-backup",
    "standby.after-backup",
    "standby.before-confirmation",
    "promotion.after-replacement",
    "promotion.before-end",
    "promotion.after-end",
    "upgrade.before-commit",
)

_visits: Counter[str] = Counter()


def injection_point(name: str) -> None:
    """Perform the action that REPLCTL_INJECTION_POINT requests for this point, if any.

    Raises:
        InternalError: the environment requests an error at this point.
    """
    request = os.environ.get("REPLCTL_INJECTION_POINT", "")
    if not request.startswith(f"{name}:"):
        return
    assert name in POINTS, name
    action, _, count = request.removeprefix(f"{name}:").partition(":")
    _visits[name] += 1
    if _visits[name] != int(count or 1):
        return
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
        return
    raise InternalError(f"injected at {name}")
