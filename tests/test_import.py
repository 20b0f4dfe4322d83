"""The modules that a command loads: a command that only reads the catalog should start at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fix_psql import Psql

PROGRAM = """
import sys
from replctl.psql.main import run
code = run(sys.argv[1:])
print("\\n".join(["code %d" % code, *sorted(sys.modules)]), file=sys.stderr)
"""
NEVER = ("pyspark", "delta", "sqlglot", "alembic", "psycopg", "pandas", "pyarrow", "filelock")


def loaded_modules(home: Path, *arguments: str) -> set[str]:
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, "-X", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "REPLCTL_HOME": str(home)},
        check=False,
    )
    code, *modules = process.stderr.splitlines()
    assert code == "code 0", process.stderr
    return set(modules)


@pytest.fixture
def home(psql: Psql, tmp_path: Path) -> Path:
    """Make a cluster in which every command has something to show, and return its directory."""
    outcome = psql(
        "-X",
        "-c",
        "CREATE TABLE t (a int PRIMARY KEY, b text)",
        "-c",
        "CREATE PUBLICATION p FOR TABLE t (a) WHERE (a > 5)",
    )
    assert outcome.stderr == ""
    return tmp_path / "home"


@pytest.mark.parametrize("command", ["\\dRp+", "\\dRs+", "\\dt", "\\l", "\\dn", "\\du", "\\echo"])
def test_catalog_commands_load_no_more_than_they_need(home: Path, command: str) -> None:
    modules = loaded_modules(home, "-c", command)
    for name in (*NEVER, "lark", "rich", "prompt_toolkit", "typer"):
        assert name not in modules
    for name in ("query", "parser.ast", "execute", "spark", "adt.interpret"):
        assert f"replctl.{name}" not in modules


def test_catalog_queries_load_no_engine(home: Path) -> None:
    modules = loaded_modules(home, "-c", "SELECT * FROM pg_publication_tables")
    for name in (*NEVER, "rich", "prompt_toolkit", "typer", "replctl.spark", "replctl.lake"):
        assert name not in modules


@pytest.mark.parametrize("command", ["\\d t", "CREATE TABLE u (a int PRIMARY KEY)", "DROP TABLE t"])
def test_definitions_load_no_evaluator(home: Path, command: str) -> None:
    modules = loaded_modules(home, "-c", command)
    for name in (*NEVER, "rich", "prompt_toolkit", "typer", "configparser"):
        assert name not in modules
    for name in ("adt.interpret", "query.sqlite", "query.view_catalog", "query.information_schema"):
        assert f"replctl.{name}" not in modules
    for name in ("jobs", "engine", "merge", "python_functions"):
        assert f"replctl.spark.{name}" not in modules


def test_d_of_a_table_loads_no_spark(home: Path) -> None:
    modules = loaded_modules(home, "-c", "\\d t")
    for name in ("replctl.spark", "replctl.lake.commit_log", "lark", "platformdirs"):
        assert name not in modules
