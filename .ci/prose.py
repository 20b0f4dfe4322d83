#!/usr/bin/env python3
"""Refuse English that readers stumble over: docstrings that do not begin with the effect, words
that have a plainer one, and long sentences in the documentation.

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
#: The same, in code other than tests.
_PLAINER_IN_CODE = {
    r"\bso many\b": "as many as, or the number",
    r"\b(is|are|was|were) asked\b": "who asks, checks or reads",
    r"\btold apart\b": "distinguished, recognised",
    r"\btried again\b": "retried, or who retries",
    r"\bwhoever\b": "the role, process or user that ...",
    r"\b(bequeath|disown)": "leave to, give up",
    r"\b(has|have) never been\b": "was not ..., or what happened instead",
}
#: A docstring of a function that begins with one of these does not begin with a verb.
_NO_VERB = frozenset(
    "After All Around As At Before Both By Does Few For From Half Has How If In Is It Its May"
    " No Nobody Nothing Of On One Only Or So Something That There This To Two Was What Whatever"
    " When Where Whether Which While Who Whoever Why With Without".split()
)
_PYTHON = ("replctl", "benchmarks", ".ci", "tests")
#: Docstrings of tests describe what happens; they may begin with anything.
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
    plainer = _PLAINER | _PLAINER_IN_CODE if with_docstrings else _PLAINER
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield from _words(token.string, token.start[0], plainer)
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        docstring = ast.get_docstring(node, clean=False)
        if docstring is None:
            continue
        line = node.body[0].lineno
        yield from _words(docstring, line, plainer)
        if with_docstrings and (fault := _beginning(node, docstring)) is not None:
            yield line, fault


def _beginning(node: ast.AST, docstring: str) -> str | None:
    """Return what is wrong with the beginning of a docstring, or None."""
    first = re.match(r"\s*([A-Za-z]*)(:?)", docstring)
    assert first is not None
    if first[1] in ("Whether", "What"):
        return "a docstring begins with the result: a verb or a noun, not Whether or What"
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    if first[2] and first[1] in ("Args", "Returns", "Raises"):
        return f"a docstring begins with one line that says the effect, not with {first[0].strip()}"
    if first[1] in _NO_VERB:
        return f"a docstring of a function begins with a verb, not with {first[1]}"
    return None


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
    yield from _words(re.sub(r"`[^`]*`", "", paragraph), line, _PLAINER)
    for sentence in re.split(r"(?<=[.?!:])\s+", paragraph):
        count = len(sentence.split())
        if count > _LONGEST:
            yield line, f"a sentence of {count} words (at most {_LONGEST}): {sentence[:60]}..."


def _words(text: str, line: int, plainer: dict[str, str]) -> Iterator[tuple[int, str]]:
    for pattern, better in plainer.items():
        for found in re.finditer(pattern, text, re.IGNORECASE):
            at = line + text.count("\n", 0, found.start())
            yield at, f'"{found[0]}": write {better}'


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
