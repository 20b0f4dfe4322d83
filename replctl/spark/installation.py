"""Find and check the pyspark of this Python without importing it."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from replctl.errors import ObjectNotInPrerequisiteState

#: The version of Spark that replctl needs.
SPARK = "4.2"
_VERSION = re.compile(r"""^__version__[^=]*= *["']([^"']+)""", re.MULTILINE)


def pyspark_folder() -> Path:
    """Return the directory of the package pyspark.

    Raises:
        ObjectNotInPrerequisiteState: pyspark is not installed.
    """
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ObjectNotInPrerequisiteState(
            "pyspark is not installed", hint=f"Run: pip install 'pyspark[connect]~={SPARK}.0'"
        )
    return Path(spec.origin).parent


def check_pyspark() -> None:
    """Refuse a pyspark whose version replctl does not support, such as one on PYTHONPATH.

    Raises:
        ObjectNotInPrerequisiteState: pyspark is missing or has another version.
    """
    folder = pyspark_folder()
    file = folder / "version.py"
    found = _VERSION.search(file.read_text("utf-8")) if file.is_file() else None
    version = found[1] if found else "of an unknown version"
    if version.split(".")[:2] != SPARK.split("."):
        raise ObjectNotInPrerequisiteState(
            f"pyspark {version} from {folder} is not {SPARK}",
            hint="Remove its directory from PYTHONPATH, or install the right one: pip install"
            f" 'pyspark[connect]~={SPARK}.0'",
        )
