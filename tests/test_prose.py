"""The check of docstrings, comments and pages (.ci/prose.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = Path(__file__).parent.parent / ".ci" / "prose.py"


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("replctl/m.py", '"""Return a b."""\n', None),
        ("replctl/m.py", '"""What m is."""\n', "m.py:1: a docstring begins with the result"),
        ("replctl/m.py", 'def f():\n    """Whether."""\n', "m.py:2: a docstring begins with"),
        ("tests/m.py", '"""What m does."""\n', "m.py:1: a docstring of a test says what happens"),
        ("tests/m.py", 'def f():\n    """Which rows."""\n', "m.py:2: a docstring of a test says"),
        ("tests/m.py", '"""Rows of m."""\n', None),
        ("tests/m.py", "x = 'anew'  # read anew\n", 'm.py:1: "anew": write again'),
        ("replctl/m.py", '"""A b.\n\n    All but for c.\n    """\n', 'm.py:3: "but for": write'),
        (
            "replctl/m.py",
            'def f():\n    """As `g`."""\n',
            "m.py:2: a docstring of a function begins",
        ),
        (
            "replctl/m.py",
            'class C:\n    """How rows are read."""\n',
            "m.py:2: a docstring of a class or a module begins with a noun",
        ),
        ("replctl/m.py", 'class C:\n    """The way to read rows."""\n', None),
        (
            "replctl/m.py",
            'def f():\n    """\n    Raises:\n        E: no.\n    """\n',
            "not with Raises:",
        ),
        ("tests/m.py", 'def f():\n    """As `g`."""\n', None),
        ("replctl/m.py", "#: So many rows.\nX = 1\n", 'm.py:1: "So many": write'),
        ("tests/m.py", "#: So many rows.\nX = 1\n", 'm.py:1: "So many": write'),
        ("replctl/m.py", '"""Read a log.  It has no a any\nmore."""\n', '"any more": write'),
        ("docs/m.md", "One.\n\n- two\n- three and its like\n", 'm.md:4: "and its like": write'),
        ("docs/m.md", "Run `beside`.\n\n    beside\n\n| `beside` |\n", None),
        ("docs/m.md", "| a |\n|---|\n| beside |\n", 'm.md:3: "beside": write'),
        ("docs/m.md", "| " + "w " * 60 + "|\n", None),
        ("docs/m.md", "It is tried again.\n", 'm.md:1: "tried again": write'),
        (
            "replctl/m.py",
            '"""Read a lake\n\nfrom which\non it grows.\n"""\n',
            '"from which on": write',
        ),
        ("replctl/m.py", "# SQL of whether it is so\n", 'm.py:1: "of whether": write'),
        ("replctl/m.py", '"""Return those of the rows."""\n', '"Return those of": write'),
        ("replctl/m.py", "# another type than text\n", '"another type than": write'),
        ("replctl/m.py", "# It goes on, and on.\n", '"goes on": write'),
        ("replctl/m.py", "# It goes on a disk.\n", None),
        ("replctl/m.py", '"""A.\n\nArgs:\n    a: b.\n        c.\n    d: e.\n"""\n', None),
        ("replctl/m.py", '"""A.\n\nArgs:\n        a: b.\n"""\n', "m.py:1: an entry of Args"),
        ("replctl/m.py", '"""A.\n\nRaises:\n    E: a b.\n    F: it is.\n"""\n', '"it" in Raises'),
        ("replctl/m.py", '"""A.\n\nRaises:\n    E: a\n        it: b.\n"""\n', None),
        ("replctl/m.py", '"""A.\n\n' + "w " * 41 + '\n"""\n', "m.py:1: a sentence of 41 words"),
        ("replctl/m.py", '"""A.\n\nB:\n\n' + "    w\n" * 41 + '"""\n', None),
        ("replctl/m.py", '"""A.\n\n' + "w  w\n" * 21 + '"""\n', None),
        ("docs/m.md", "```\nbeside\n```\n\nHere: beside\n", 'm.md:5: "beside": write'),
        ("docs/m.md", "w " * 40 + ".\n" + "w " * 30 + "\n", "a sentence of 41 words"),
        ("docs/m.md", "w " * 39 + "w.\n" + "w " * 30 + "\n", None),
        ("docs/m.md", "A; b; c.\n", "m.md:1: several semicolons in a sentence"),
        ("docs/m.md", "A `x; y; z` b; c.\n", None),
        ("replctl/m.py", '"""A; b; c."""\n', "m.py:1: several semicolons in a sentence"),
        ("replctl/m.py", "def make_anew(): ...\n", 'm.py:1: "_anew": write again, rebuild'),
        ("tests/m.py", "goes_on = 1\n", 'm.py:1: "goes_on": write continues'),
        ("replctl/m.py", "is_besides = gone_on = 1\n", None),
        ("replctl/m.py", "x = 1, 'It is tried again.'\n", 'm.py:1: "tried again": write'),
        ("replctl/m.py", "x = f'{y} is tried again.'\n", 'm.py:1: "tried again": write'),
        ("replctl/m.py", "x = 'anew'\n", None),
        ("grammar/m.lark", "a: b\n// one, but\n// for two\n", 'm.lark:2: "but for": write'),
        ("grammar/m.lark", 'a: "BESIDE" "beside"\n', None),
        ("samples/m.sql", "SELECT 1; -- anew\n", 'm.sql:1: "anew": write'),
        ("samples/m.sh", "echo beside # the others\n", None),
    ],
)
def test_prose(tmp_path: Path, file: str, text: str, complaint: str | None) -> None:
    path = tmp_path / file
    path.parent.mkdir()
    path.write_text(text)
    done = subprocess.run(
        [sys.executable, str(_PROGRAM), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (int(complaint is not None), "")
    assert (complaint or "no complaints") in done.stdout
