"""The check of the sizes of files, classes and functions (.ci/limits.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = Path(__file__).parent.parent / ".ci" / "limits.py"


def _class(name: str, base: str, numbers: range) -> str:
    methods = "".join(f"    def m{number}(self): pass\n" for number in numbers)
    return f"class {name}{base}:\n{methods}"


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"m.py": "x = 1\n" * 600}, None),
        ({"m.py": "x = 1\n" * 601}, "replctl/m.py:1: 601 lines (at most 600)"),
        ({"m.py": _class("A", "", range(25))}, None),
        ({"m.py": _class("A", "", range(26))}, "replctl/m.py:1: A has 26 methods (at most 25)"),
        (
            {
                "m.py": _class("A", "", range(20)),
                "n.py": "from replctl.m import A as B\n" + _class("C", "(B[int])", range(15, 26)),
            },
            "replctl/n.py:2: C has 26 methods (at most 25)",
        ),
        (
            {
                "m.py": _class("A", "", range(20)),
                "n.py": "from other.m import A as B\n" + _class("C", "(B)", range(15, 26)),
            },
            None,
        ),
        ({"parser/build_x.py": _class("XBuilder", "", range(99))}, None),
        ({"m.py": "def f():\n" + "    pass\n" * 99}, "replctl: one function of 100 has 100 lines"),
        ({"m.py": "def f():\n    pass\n" * 100 + "def f():\n" + "    pass\n" * 99}, None),
    ],
)
def test_limits(tmp_path: Path, files: dict[str, str], complaint: str | None) -> None:
    for name, text in files.items():
        path = tmp_path / "replctl" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = subprocess.run(
        [sys.executable, str(_PROGRAM), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (int(complaint is not None), "")
    assert (complaint or "no complaints") in done.stdout
