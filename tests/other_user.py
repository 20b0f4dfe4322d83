"""A process that runs commands of replctl as a user other than root."""

from __future__ import annotations

import os
import pwd
import sys

#: Runs commands of replctl, one for each line, and prints the exit code, stdout and stderr of each.
_COMMANDS = """
import io, json, sys
from replctl.psql.main import run
answers, commands = sys.stdout, sys.stdin
for line in commands:
    out, err = io.BytesIO(), io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO())
    sys.stdout, sys.stderr = io.TextIOWrapper(out), io.TextIOWrapper(err)
    code = run(json.loads(line))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    print(json.dumps([code, out.getvalue().decode(), err.getvalue().decode()]), file=answers)
    answers.flush()
"""
#: Capabilities to read all files, as the interpreter and the tests need, and to write none.
READS_ALL = "-all,+dac_read_search"


def replctl_process(capabilities: str | None) -> list[str]:
    """Return the arguments of a process that runs commands of replctl.

    Each line of its stdin has the arguments of a command as JSON.  Each line of its stdout has the
    exit code, stdout and stderr of the command as JSON.

    Args:
        capabilities: the capabilities of the other user, in the form of setpriv; None: the process
            runs as this user.  It always does if this user is not root.
    """
    command = [sys.executable, "-c", _COMMANDS]
    if capabilities is None or os.getuid() != 0:
        return command
    user = pwd.getpwnam("nobody")
    return [
        "setpriv", "--reuid", str(user.pw_uid), "--regid", str(user.pw_gid),
        "--clear-groups", "--inh-caps", capabilities, "--ambient-caps", capabilities,
        "--bounding-set", capabilities, *command,
    ]  # fmt: skip
