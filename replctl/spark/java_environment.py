"""The environment of a JVM that replctl starts, and of pyspark in this process: nothing of another
installation of Spark changes what replctl reads or writes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from replctl.spark.installation import pyspark_folder

#: Of Spark's own variables, those that say where this machine and its disks are, and the token of a
#: server of ours.  The others choose settings, programs and another installation's files.
_KEPT = frozenset(
    [
        "SPARK_CONNECT_AUTHENTICATE_TOKEN",
        "SPARK_LOCAL_DIRS",
        "SPARK_LOCAL_HOSTNAME",
        "SPARK_LOCAL_IP",
        "SPARK_PUBLIC_DNS",
        "SPARK_USER",
    ]
)
_SPARK_S = re.compile(r"(PY)?SPARK_\w+|MASTER|DEPLOY_MODE")

#: Variables from which a JVM takes options, next to its arguments.
JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_OPTION = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""")
#: Java's properties that replctl chooses: Spark's settings, and what values and files depend on.
_CHOSEN_PROPERTY = re.compile(
    r"-D(?:spark\.|user\.(?:timezone|language|country|region|variant|script)\b|file\.encoding\b"
    r"|sun\.jnu\.encoding\b|java\.io\.tmpdir\b)"
)

#: What a Connect session would take from the environment.
NO_DEFAULTS: Mapping[str, str | None] = {"MASTER": None, "PYSPARK_REMOTE_INIT_CONF_LEN": None}


def jvm_environment(conf_folder: Path, *, has_executors: bool) -> dict[str, str]:
    """Return the environment of a JVM: its Python workers run this Python.

    Args:
        conf_folder: an empty directory; Spark looks there for its spark-defaults.conf.
        has_executors: Spark starts executors, for which it needs the place of its own files.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or not _SPARK_S.fullmatch(name)
    }
    for name in JAVA_VARIABLES:
        if name in kept:
            kept[name] = without_chosen_properties(kept[name])
    if has_executors:
        kept["SPARK_HOME"] = str(pyspark_folder())
    else:  # a name of this machine that nothing resolves must not matter
        kept.setdefault("SPARK_LOCAL_HOSTNAME", "127.0.0.1")
        kept.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if not _is_utf_8(kept):  # Java reads and writes names of files in the locale's encoding
        kept["LC_ALL"] = "C.UTF-8"
    return {
        **kept,
        "SPARK_CONF_DIR": str(conf_folder),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


def without_chosen_properties(options: str) -> str:
    """Return options for a JVM without those that replctl chooses.

    `-Xss4m -Dspark.sql.ansi.enabled=false -Dhttps.proxyHost=p`  ->  `-Xss4m -Dhttps.proxyHost=p`
    """
    return " ".join(
        option
        for option in _OPTION.findall(options)
        if not _CHOSEN_PROPERTY.match(option.replace('"', "").replace("'", ""))
    )


@contextmanager
def told_to_pyspark(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set variables of this process, for pyspark, while the block runs: processes that are started
    later must not find them.

    Args:
        variables: new values; None for variables that must not be set.
    """
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _is_utf_8(environment: Mapping[str, str]) -> bool:
    """Return whether Java takes names of files for UTF-8, as this process does."""
    if sys.getfilesystemencoding() != "utf-8":
        return True  # as it is for this process, so it has to be for Java
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    locale = next((environment[name] for name in names if environment.get(name)), "")
    return "utf-8" in locale.lower() or "utf8" in locale.lower()
