"""The Pythons of this machine that replctl supports.  `.ci/machines.py` tests the other
combinations, which takes minutes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lark
import pytest
from other_pythons import RELEASES, find_python

_ROOT = Path(__file__).parents[2]
_SCRIPT = """
create table t (id int primary key, v text);
create publication p for table t where (id > 5);
create database other;
\\c other
create table t (id int primary key, v text);
create subscription s connection 'dbname=postgres' publication p;
select srsubstate from pg_subscription_rel;
\\c postgres
select pg_get_expr(prqual, prrelid) from pg_publication_rel;
"""


@pytest.mark.parametrize("release", RELEASES)
def test_catalogs_with_another_python(release: str, tmp_path: Path) -> None:
    """The other Python uses packages of this Python, which contain only Python code."""
    if release == "{}.{}".format(*sys.version_info):
        pytest.skip(f"all other tests run with Python {release}")
    python = find_python(release)
    if python is None:
        pytest.skip(f"this machine has no Python {release}")
    packages = Path(lark.__file__).parents[1]
    done = subprocess.run(
        [python, "-W", "error", "-m", "replctl", "--home", str(tmp_path / "home"), "-XAtq"],
        input=_SCRIPT,
        env=os.environ | {"PYTHONPATH": f"{_ROOT}{os.pathsep}{packages}", "REPLCTL_HOME": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "i\n(id > 5)\n", done.stderr
