"""The environment of a JVM that replctl starts, and of pyspark in this process.  Another
installation of Spark must not influence what replctl reads or writes.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from replctl.spark.installation import pyspark_folder

#: Spark's variables that the JVM keeps: addresses and disks of this machine, and the token of a
#: server of replctl.  The others select settings, programs and files of another installation.
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

#: Variables from which a JVM reads options in addition to its arguments.
JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_OPTION = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""")
#: Java properties that only replctl sets: Spark's settings, and those that affect values and files.
_CHOSEN_PROPERTY = re.compile(
    r"-D(?:spark\.|user\.(?:timezone|language|country|region|variant|script)\b|file\.encoding\b"
    r"|sun\.jnu\.encoding\b|java\.io\.tmpdir\b)"
)


def connect_environment(environment: Mapping[str, str]) -> dict[str, str | None]:
    """Return the values of variables for the start of a Connect session; None for variables that
    must not be set.

    gRPC would use a proxy even for this machine, and does not know NO_PROXY in capital letters
    (http_proxy_mapper.cc).
    """
    names = ("no_grpc_proxy", "no_proxy", "NO_PROXY")
    direct = next((environment[name] for name in names if environment.get(name)), "")
    return {
        "MASTER": None,
        "PYSPARK_REMOTE_INIT_CONF_LEN": None,
        "no_grpc_proxy": ",".join(["localhost", *filter(None, [direct])]),
    }


def jvm_environment(conf_folder: Path, *, has_executors: bool) -> dict[str, str]:
    """Return the environment of a JVM, whose Python workers use this Python.

    Args:
        conf_folder: an empty directory; Spark looks there for its spark-defaults.conf.
        has_executors: Spark starts executors.  It then needs to know the directory of its files.
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
    else:  # the host name may not resolve
        kept.setdefault("SPARK_LOCAL_HOSTNAME", "127.0.0.1")
        kept.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if not _is_utf_8(kept):  # Java encodes file names in the locale's encoding
        kept["LC_ALL"] = "C.UTF-8"
    return {
        **kept,
        "SPARK_CONF_DIR": str(conf_folder),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONSAFEPATH": "1",  # workers must not load modules from the working directory
    }


def without_chosen_properties(options: str) -> str:
    """Return a JVM's options without those that only replctl sets.

    `-Xss4m -Dspark.sql.ansi.enabled=false -Dhttps.proxyHost=p`  ->  `-Xss4m -Dhttps.proxyHost=p`
    """
    return " ".join(
        option
        for option in _OPTION.findall(options)
        if not _CHOSEN_PROPERTY.match(option.replace('"', "").replace("'", ""))
    )


def _is_utf_8(environment: Mapping[str, str]) -> bool:
    """Return whether Java and this process use the same encoding for file names, UTF-8."""
    if sys.getfilesystemencoding() != "utf-8":
        return True  # Java must use the same encoding as this process
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    locale = next((environment[name] for name in names if environment.get(name)), "")
    return "utf-8" in locale.lower() or "utf8" in locale.lower()
