"""The documentation says what the code does: pages that follow from it are current, SQL in it is
SQL, and lists are complete."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from replctl.parser.parse import parse

_ROOT = Path(__file__).parent.parent
_DOCS = _ROOT / "docs"
_SQL = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_VARIABLES = (r"(SPARK|REPLCTL|PG|XDG|JAVA|JDK|PSQL|HTTPS?|NO)_?[A-Z_]*", "TERM", "SHELL", "HOME")


def _pages() -> list[Path]:
    return sorted(_DOCS.rglob("*.md"))


def _statements() -> list[object]:
    return [
        pytest.param(block[1], id=f"{page.stem}-{number}")
        for page in _pages()
        for number, block in enumerate(_SQL.finditer(page.read_text("utf-8")), start=1)
    ]


def test_pages_that_follow_from_the_code_are_current() -> None:
    program = _ROOT / ".ci" / "generate_reference.py"
    done = subprocess.run(
        [sys.executable, str(program), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("text", _statements())
def test_sql_of_the_pages_is_sql_of_replctl(text: str) -> None:
    """Lines of psql are left out."""
    parse("".join(line for line in text.splitlines(True) if not line.startswith("\\")))


def _asked(path: Path) -> set[str]:
    """Return the variables of the environment that a module names as keys."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(str() as name), *_]):
                found.add(name)
            case ast.Subscript(slice=ast.Constant(str() as name)):
                found.add(name)
    return {name for name in found if any(re.fullmatch(form, name) for form in _VARIABLES)}


def test_variables_of_the_environment_are_listed() -> None:
    page = (_DOCS / "reference" / "environment.md").read_text("utf-8")
    asked = set[str]().union(*map(_asked, (_ROOT / "replctl").rglob("*.py")))
    assert asked >= {"REPLCTL_HOME", "SPARK_REMOTE", "PGUSER"}
    asked -= {"SPARK_HOME"}  # replctl sets it for executors
    assert {name for name in asked if f"`{name}`" not in page} == set()
