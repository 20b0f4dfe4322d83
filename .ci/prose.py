#!/usr/bin/env python3
"""Refuse English that readers stumble over: docstrings that begin with Whether or What, words that
have a plainer one, and long sentences in the documentation.

    .ci/prose.py [DIRECTORY]

Args:
    DIRECTORY: of the repository; the one that has this file, if it is not given.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

#: Words of a sentence in the documentation, at most.
_LONGEST = 40
#: What is not written, and the plainer words for it.
_PLAINER = {
    r"\banew\b": "again",
    r"\bbeside\b": "next to, with, in addition to",
    r"\bbut for\b": "except, except for",
    r"\band (its|their) like\b": "and similar ...",
}
_PYTHON = ("replctl", "benchmarks", ".ci", "tests")
#: Docstrings of tests tell what happens; they may begin as they like.
_WITH_DOCSTRINGS = ("replctl", "benchmarks", ".ci")
_OWN_NAME = Path(__file__).name


def complaints(root: Path) -> Iterator[str]:
    """Yield what is wrong in a repository: `file:line: what`."""
    for folder in _PYTHON:
        for path in sorted((root / folder).rglob("*.py")):
            if path.name == _OWN_NAME or "venv" in path.parts:
                continue
            text, name = path.read_text("utf-8"), path.relative_to(root)
            for line, what in _in_python(text, with_docstrings=folder in _WITH_DOCSTRINGS):
                yield f"{name}:{line}: {what}"
    for path in _pages(root):
        for line, what in _in_page(path.read_text("utf-8")):
            yield f"{path.relative_to(root)}:{line}: {what}"


def _pages(root: Path) -> list[Path]:
    found = [*root.glob("docs/**/*.md"), *root.glob("*.md")]
    found += [path for folder in _PYTHON for path in (root / folder).rglob("*.md")]
    return sorted(path for path in found if "venv" not in path.parts)


def _in_python(text: str, *, with_docstrings: bool) -> Iterator[tuple[int, str]]:
    """Yield the complaints about comments and docstrings of a module, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield from _words(token.string, token.start[0])
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        docstring = ast.get_docstring(node, clean=False)
        if docstring is None:
            continue
        line = node.body[0].lineno
        yield from _words(docstring, line)
        if with_docstrings and re.match(r"\s*(Whether|What)\b", docstring):
            yield line, "a docstring begins with the result: a verb or a noun, not Whether or What"


def _in_page(text: str) -> Iterator[tuple[int, str]]:
    """Yield the complaints about a page in Markdown, with their lines.  Code and tables are left
    out."""
    text = re.sub(r"```.*?```", lambda code: "\n" * code[0].count("\n"), text, flags=re.DOTALL)
    start, paragraph = 1, list[str]()
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        begins = not line.strip() or re.match(r"\s*([-*]|\d+\.) ", line) or line.startswith("|")
        if begins and paragraph:
            yield from _sentences(" ".join(paragraph), start)
            paragraph = []
        if line.strip() and not line.startswith(("    ", "|")):
            start = start if paragraph else number
            paragraph.append(line.strip())


def _sentences(paragraph: str, line: int) -> Iterator[tuple[int, str]]:
    yield from _words(re.sub(r"`[^`]*`", "", paragraph), line)
    for sentence in re.split(r"(?<=[.?!:])\s+", paragraph):
        count = len(sentence.split())
        if count > _LONGEST:
            yield line, f"a sentence of {count} words (at most {_LONGEST}): {sentence[:60]}..."


def _words(text: str, line: int) -> Iterator[tuple[int, str]]:
    for pattern, plainer in _PLAINER.items():
        for found in re.finditer(pattern, text, re.IGNORECASE):
            at = line + text.count("\n", 0, found.start())
            yield at, f'"{found[0]}": write {plainer}'


def main(arguments: list[str]) -> int:
    """Print the complaints about a repository.

    Returns:
        1 if there are some, else 0.
    """
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    found = list(complaints(root))
    print("\n".join(found) or "Prose: no complaints")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
