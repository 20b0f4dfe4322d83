"""Draw 40 docstrings and 20 pages at random, for a reader who knows only the guide.

    python .ci/draw_texts.py SEED

The script prints docstrings of replctl in full, and only the paths of pages.
"""

from __future__ import annotations

import ast
import random
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_DOCSTRINGS, _PAGES = 40, 20
_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstrings() -> list[str]:
    """Return all docstrings, each below its file and name."""
    return [
        f"{path.relative_to(_ROOT)} {getattr(node, 'name', '')}\n{text}\n"
        for path in sorted((_ROOT / "replctl").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, _Documented) and (text := ast.get_docstring(node))
    ]


def pages() -> list[str]:
    """Return the paths of all pages that a person reads."""
    folders = ("docs", "replctl", "tests", "benchmarks", ".github")
    found = [*_ROOT.glob("*.md"), *(p for name in folders for p in (_ROOT / name).rglob("*.md"))]
    return sorted(str(path.relative_to(_ROOT)) for path in found)


if __name__ == "__main__":
    chance = random.Random(int(sys.argv[1]))
    print("\n".join(chance.sample(docstrings(), _DOCSTRINGS)))
    print("\n".join(chance.sample(pages(), _PAGES)))
