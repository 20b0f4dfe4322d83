"""Find the reason why a JVM has not started, or has ended: one line of its output."""

from __future__ import annotations

import re
import resource
import signal

_CAUSE = re.compile(r"^Caused by: (?:[\w$]+\.)*([\w$]+(?:: .*)?)$", re.MULTILINE)
_THROWN = re.compile(r'^Exception in thread "main" (?:[\w.$]+: )?(.+)$', re.MULTILINE)
_VM = re.compile(r"^Error occurred during initialization of (?:VM|boot layer)\n(.+)$", re.MULTILINE)
_LOGGED = re.compile(r"^\d\S+ [\d:]+ (?:ERROR|FATAL) \S+: (?!Ignoring error)(.+)$", re.MULTILINE)
#: Matches lines without information: stack traces, options, and consequences of earlier errors.
_NO_REASON = re.compile(
    r"\s|at |\.\.\. \d+ more|Picked up |WARNING: |Error: Could not create |Error: A fatal |#?\s*$"
    r"|.* VM warning: |\d\S+ [\d:]+ (?:WARN|INFO) "
)

#: Limits of a process that Java or Spark needs in order to start.
_LIMITS = (
    (resource.RLIMIT_NOFILE, 512, "open files", "-n 4096"),
    (resource.RLIMIT_AS, 10 << 30, "address space", "-v unlimited"),
    (resource.RLIMIT_NPROC, 512, "processes", "-u 4096"),
)


def reason(output: str, code: int | None = None) -> str:
    """Return the reason why a JVM has not started.

    Args:
        output: the JVM's whole output.
        code: the JVM's exit code; None if it has not ended.
    """
    if code is not None and code < 0:
        return ending(code)
    causes = _CAUSE.findall(output)
    if causes:
        return str(causes[-1])
    for pattern in (_THROWN, _VM, _LOGGED):
        if found := pattern.findall(output):
            return str(found[-1])
    lines = [line for line in output.splitlines() if not _NO_REASON.match(line)]
    if lines:
        return lines[-1].removeprefix("Error: ")[:1000]
    return "The JVM did not answer." if code is None else ending(code)


def cause(error: str, output: str) -> str | None:
    """Return the reason why Spark has not started in a running JVM; None if the output says
    no more than the error.

    Args:
        error: the text of Java's exception.
        output: the JVM's whole output.  It has the cause if Spark had already ended.
    """
    found = _CAUSE.findall(error) or _LOGGED.findall(output)
    return str(found[-1]) if found else None


def ending(code: int) -> str:
    """Return a sentence that says how a JVM has ended, from its exit code in Popen's form."""
    if code == -signal.SIGKILL:
        return "The JVM was killed (signal 9), as the system does where memory is short."
    if code < 0:
        return f"The JVM was ended by signal {-code} ({signal.strsignal(-code)})."
    return f"The JVM has ended with exit code {code}."


def start_hint(code: int | None) -> str | None:
    """Return the hint for a JVM that was killed, or that has too low limits; None for others.

    Args:
        code: the JVM's exit code; None if it has not ended.
    """
    if code == -signal.SIGKILL:
        return "Give it a smaller heap, --conf spark.driver.memory=1g, or the machine more memory."
    for limit, least, what, option in _LIMITS:
        _soft, hard = resource.getrlimit(limit)  # Java itself raises the soft limit
        if hard != resource.RLIM_INFINITY and hard < least:
            return f"Raise the limit of {what}, which is {hard}: ulimit {option}."
    return None
