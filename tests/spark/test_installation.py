"""replctl refuses a pyspark of a different version before it loads any part of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from replctl.spark.installation import check_pyspark

_PROGRAM = """
from replctl.errors import PostgresError
from replctl.spark import SparkConf, open_engine
try:
    open_engine(SparkConf())
except PostgresError as error:
    print(error.message, error.hint, sep="\\n")
"""


def test_the_one_of_this_python() -> None:
    check_pyspark()


def test_one_that_pythonpath_names(tmp_path: Path) -> None:
    folder = tmp_path / "pyspark"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise AssertionError\n", "utf-8")
    (folder / "version.py").write_text('__version__: str = "3.5.6"\n', "utf-8")
    root = str(Path(__file__).parents[2])
    answer = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env=os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{tmp_path}"},
        capture_output=True,
        text=True,
        check=False,
    )
    first, hint = answer.stdout.splitlines()
    assert first == f"pyspark 3.5.6 from {folder} is not 4.2"
    assert hint.startswith("Remove its directory from PYTHONPATH")
