#!/usr/bin/env python3
"""Refuse text that is hard to read: docstrings that do not begin with the effect, words for which a
plainer one exists, and sentences in pages and docstrings that are long or have several semicolons.

It checks the words of docstrings, comments, names and pages, of replctl's messages, hints and help
texts, and of the comments in scripts, samples and the grammar.

    .ci/prose.py [DIRECTORY]

Args:
    DIRECTORY: the directory of the repository; default: the repository that has this file.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

#: Maximum number of words of a sentence in a page or a docstring.
_LONGEST = 40
#: Words that are not allowed, and plainer words for them.
_PLAINER = {
    r"\banew\b": "again",
    r"\bbeside\b": "next to, with, in addition to",
    r"\bbut for\b": "except, except for",
    r"\band (its|their) like\b": "and similar ...",
    r"\bany more\b": "no longer",
    r"\bbesides\b": "also, or other than",
    r"\bnothing but\b": "only",
    r"\bso many\b": "as many as, or the number",
    r"\b(is|are|was|were) asked\b": "who asks, checks or reads",
    r"\btold apart\b": "distinguished, recognised",
    r"\btried again\b": "retried, or who retries",
    r"\bwhoever\b": "the role, process or user that ...",
    r"\b(bequeath|disown)": "leave to, give up",
    r"\b(has|have) never been\b": "was not ..., or what happened instead",
    r"\bfrom which on\b": "after which, since which",
    r"\bof whether\b": "the condition that ...",
    r"\breturn those of\b": "Return the ... in, or among",
    r"\banother( [\w-]+){1,3} than\b": "a ... other than, or a different ...",
    r"\b(goes|go) on(?=[.,;:]|$)": "continues",
}
#: The same for the names of functions, arguments and variables.
_PLAINER_IN_NAMES = {
    r"(^|_)anew(_|$)": "again, rebuild",
    r"(^|_)beside(_|$)": "next_to, with, during",
    r"(^|_)(bequeath|disown)": "leave_to, give_up",
    r"(^|_)(goes|go)_on(_|$)": "continues",
    r"(^|_)owner_s(_|$)": "of_owner",
    r"(^|_)told_apart(_|$)": "distinguished",
}
#: A docstring of a function that begins with one of these does not begin with a verb.
_NO_VERB = frozenset(
    "After All Around As At Before Both By Does Few For From Half Has How If In Is It Its May"
    " No Nobody Nothing Of On One Only Or So Something That There This To Two Was What Whatever"
    " When Where Whether Which While Who Whoever Why With Without".split()
)
#: The first entry of a section of a docstring, if it is not indented by four spaces.
_SHIFTED_ENTRY = re.compile(r"^(Args|Returns|Raises|Attributes):\n(?! {4}\S)", re.MULTILINE)
#: An entry of Raises whose subject is a pronoun instead of a name.
_UNNAMED_SUBJECT = re.compile(r"^Raises:\n(?: .*\n)*?    [\w, ]+: (it|they)\b", re.MULTILINE)
#: A line of a docstring that belongs to an example or a table.
_EXAMPLE = re.compile(r"^ |[^.?!:]  ")
_PYTHON = ("replctl", "benchmarks", ".ci", "tests")
#: Docstrings of tests describe what happens, and may begin with words other than verbs.
_WITH_DOCSTRINGS = ("replctl", "benchmarks", ".ci")
#: A docstring of a class or a module must not begin with one of these, because they name nothing.
_HEADLESS = frozenset("How When Where Which Who Why".split())
#: No docstring may begin with one of these, not even in tests, because they do not say what
#: happens.
_RIDDLES = frozenset("How What Whether Which Who Why".split())
#: Files other than Python with comments, and the beginning of a comment.
_COMMENTED = {
    "grammar/*.lark": "//",
    "samples/*.sql": "--",
    "samples/*.sh": "#",
    ".ci/check": "#",
    ".ci/run": "#",
    "justfile": "#",
    "Dockerfile": "#",
    "*.toml": "#",
    "*.yml": "#",
    "*.yaml": "#",
    ".github/**/*.yml": "#",
}
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
            for line, what in _in_messages(text) if folder == "replctl" else ():
                yield f"{name}:{line}: {what}"
    for pattern, mark in _COMMENTED.items():
        for path in sorted(root.glob(pattern)):
            for line, what in _in_comments(path.read_text("utf-8"), mark):
                yield f"{path.relative_to(root)}:{line}: {what}"
    for path in _pages(root):
        for line, what in _in_page(path.read_text("utf-8")):
            yield f"{path.relative_to(root)}:{line}: {what}"


def _pages(root: Path) -> list[Path]:
    found = [*root.glob("docs/**/*.md"), *root.glob("*.md")]
    found += [path for folder in _PYTHON for path in (root / folder).rglob("*.md")]
    return sorted(path for path in found if "venv" not in path.parts)


def _in_python(text: str, *, with_docstrings: bool) -> Iterator[tuple[int, str]]:
    """Yield the complaints about comments, docstrings and names of a module, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield from _words(token.string, token.start[0], _PLAINER)
        elif token.type == tokenize.NAME:
            yield from _words(token.string, token.start[0], _PLAINER_IN_NAMES)
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        docstring = ast.get_docstring(node, clean=False)
        if docstring is None:
            continue
        line = node.body[0].lineno
        yield from _words(docstring, line, _PLAINER)
        if with_docstrings:
            yield from ((line, fault) for fault in _form(node, inspect.cleandoc(docstring)))
        elif (word := re.match(r"\s*([A-Z][a-z]+)", docstring)) and word[1] in _RIDDLES:
            yield line, f"a docstring of a test says what happens, it does not begin with {word[1]}"


def _in_messages(text: str) -> Iterator[tuple[int, str]]:
    """Yield the complaints about strings of a module: messages, hints and help texts."""
    tree = ast.parse(text)
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in docstrings:
            continue
        if isinstance(node.value, str) and " " in node.value:
            yield from _words(node.value, node.lineno, _PLAINER)


def _in_comments(text: str, mark: str) -> Iterator[tuple[int, str]]:
    """Yield the complaints about the comments of a file, with their lines."""
    lines = (line.partition(mark)[2] for line in text.split("\n"))
    return _words("\n".join(lines), 1, _PLAINER)


def _form(node: ast.AST, docstring: str) -> Iterator[str]:
    """Yield what is wrong with the form of a docstring."""
    if (fault := _beginning(node, docstring)) is not None:
        yield fault
    if (found := _UNNAMED_SUBJECT.search(docstring)) is not None:
        yield f'"{found[1]}" in Raises: name the subject'
    if _SHIFTED_ENTRY.search(docstring):
        yield "an entry of Args, Returns, Raises or Attributes is indented by four spaces"
    for paragraph in docstring.split("\n\n"):
        lines = (line for line in paragraph.split("\n") if not _EXAMPLE.search(line))
        yield from _long_sentences(" ".join(lines))


def _beginning(node: ast.AST, docstring: str) -> str | None:
    """Return what is wrong with the beginning of a docstring, or None."""
    first = re.match(r"\s*([A-Za-z]*)(:?)", docstring)
    assert first is not None
    if first[1] in ("Whether", "What"):
        return "a docstring begins with the result: a verb or a noun, not Whether or What"
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if first[1] in _HEADLESS:
            return f"a docstring of a class or a module begins with a noun, not with {first[1]}"
        return None
    if first[2] and first[1] in ("Args", "Returns", "Raises"):
        return f"a docstring begins with one line that says the effect, not with {first[0].strip()}"
    if first[1] in _NO_VERB:
        return f"a docstring of a function begins with a verb, not with {first[1]}"
    return None


def _in_page(text: str) -> Iterator[tuple[int, str]]:
    """Yield the complaints about a page in Markdown, with their lines.  Ignore code, and the length
    of sentences in tables.
    """
    text = re.sub(r"```.*?```", lambda code: "\n" * code[0].count("\n"), text, flags=re.DOTALL)
    start, paragraph = 1, list[str]()
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        begins = not line.strip() or re.match(r"\s*([-*]|\d+\.) ", line) or line.startswith("|")
        if begins and paragraph:
            yield from _sentences(" ".join(paragraph), start)
            paragraph = []
        if line.startswith("|"):
            yield from _words_of_page(line, number)
        if line.strip() and not line.startswith(("    ", "|")):
            start = start if paragraph else number
            paragraph.append(line.strip())


def _sentences(paragraph: str, line: int) -> Iterator[tuple[int, str]]:
    yield from _words_of_page(paragraph, line)
    yield from ((line, fault) for fault in _long_sentences(paragraph))


def _long_sentences(paragraph: str) -> Iterator[str]:
    """Yield what is wrong with the sentences of a paragraph: they are long, or enumerations."""
    for sentence in re.split(r"(?<=[.?!:])\s+", paragraph):
        count = len(sentence.split())
        if count > _LONGEST:
            yield f"a sentence of {count} words (at most {_LONGEST}): {sentence[:60]}..."
        if re.sub(r"`[^`]*`", "", sentence).count(";") > 1:
            yield f"several semicolons in a sentence, write a list: {sentence[:60]}..."


def _words_of_page(text: str, line: int) -> Iterator[tuple[int, str]]:
    return _words(re.sub(r"`[^`]*`", "", text), line, _PLAINER)


def _words(text: str, line: int, plainer: dict[str, str]) -> Iterator[tuple[int, str]]:
    for pattern, better in plainer.items():
        for found in re.finditer(pattern.replace(" ", r"\s+"), text, re.IGNORECASE):
            at = line + text.count("\n", 0, found.start())
            yield at, f'"{" ".join(found[0].split())}": write {better}'


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
