"""Run every `given -> returned` example of the docstrings; an arrow in a docstring is an example.

An example belongs to the function in whose docstring it stands:

    `a`, `A b` -> `a`, `"A b"`                  two calls with one text each
    (2000, 3, 1) -> 11017                       a call with three arguments
    `lax $.a`, `$."a"` -> `$."a"`               two calls that return the same

A text between backticks stands for itself.  Everything else is Python with the names of the module,
Decimal, NULL and inf; a name that the module lacks is a text, so that types need no quotes.  An
example ends at `.`, `:`, `;`, three blanks or the end of its paragraph; one with two blanks around
its arrow has a line of its own.  Arguments that it leaves out are those of _USUAL.  Results that
cannot be examples (syntax trees, methods) are in words: `a` becomes `b`.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).parent.parent
_USUAL = {"typmod": -1, "now": None, "explicit": True, "bits": 64, "sql_name": "", "is_last": True,
          "downcase": True}  # fmt: skip
_NAMES = {"Decimal": Decimal, "NULL": None, "inf": math.inf}
#: Texts, and the characters that may end an example outside of texts and brackets.
_TOKEN = re.compile(
    r"""`[^`]*`|"(?:\\.|[^"\\])*"|(?P<end>\s+->(?=\s)|[.:;](?=\s|$)|[ ]{3,})|.""", re.DOTALL
)

_TEXT = re.compile(r"""`([^`]*)`|"(?:\\.|[^"\\])*\"""")


@dataclass(frozen=True)
class Example:
    module: str
    owner: str
    given: str
    returned: str

    def __str__(self) -> str:
        return f"{self.module}.{self.owner}: {self.given} -> {self.returned}"


def _paragraphs(docstring: str) -> Iterator[str]:
    """Yield the parts that contain whole examples: paragraphs, and lines with `  ->  `."""
    for paragraph in re.split(r"\n\s*\n|\n(?=.*  ->  )|(?<=[^\n])\n(?= )", docstring):
        yield paragraph.strip().replace("\n", " ")


def _split(paragraph: str) -> Iterator[tuple[str, str]]:
    """Yield both sides of each arrow."""
    parts, depth = [""], 0
    for match in _TOKEN.finditer(paragraph):
        depth += (match[0] in "([{") - (match[0] in ")]}")
        if depth == 0 and match["end"]:
            parts += [match[0], ""]
        else:
            parts[-1] += match[0]
    for place, token in enumerate(parts):
        if token.strip() == "->":
            yield parts[place - 1].strip(), parts[place + 1].strip()


def _owners(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names and docstrings of a module's definitions; the module's own name is empty."""

    def visit(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield name, ast.get_docstring(node) or ""
        for child in ast.iter_child_nodes(node):
            inner = getattr(child, "name", "")
            yield from visit(child, f"{name}.{inner}" if name and inner else inner or name)

    yield from visit(tree, "")


def examples() -> list[Example]:
    found = []
    for path in sorted((_ROOT / "replctl").rglob("*.py")):
        module = ".".join(path.relative_to(_ROOT).with_suffix("").parts)
        for owner, docstring in _owners(ast.parse(path.read_text("utf-8"))):
            for paragraph in _paragraphs(docstring) if "->" in docstring else ():
                found += [Example(module, owner, *sides) for sides in _split(paragraph)]
    return found


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return name


def _values(text: str, names: dict[str, Any]) -> list[Any]:
    """Return the values of one side of an example."""
    python = _TEXT.sub(lambda match: match[0] if match[1] is None else repr(match[1]), text)
    return list(eval(f"[{python}]", {}, _Names({**names, **_NAMES})))


def _call(function: Callable[..., Any], given: Any) -> Any:
    parameters = list(inspect.signature(function).parameters.values())
    takes_several = len(parameters) > 1 or parameters[0].kind is inspect.Parameter.VAR_POSITIONAL
    arguments = given if isinstance(given, tuple) and takes_several else (given,)
    left_out = parameters[len(arguments) :]
    return function(*arguments, **{p.name: _USUAL[p.name] for p in left_out if p.name in _USUAL})


_EXAMPLES = examples()


@pytest.mark.parametrize("example", _EXAMPLES, ids=str)
def test_an_example_is_so(example: Example) -> None:
    module = importlib.import_module(example.module)
    function: Any = module
    for name in example.owner.split("."):
        function = getattr(function, name)
    given = _values(example.given, vars(module))
    returned = _values(example.returned, vars(module))
    actual = [_call(function, value) for value in given]
    assert list(map(repr, actual)) == list(
        map(repr, returned if len(returned) > 1 else returned * len(given))
    )


def test_examples_are_found() -> None:
    assert len(_EXAMPLES) > 140
    returned = list(_split("What `->` gives: `a`, NULL  ->  [1, 2.5]; not (x -> y)"))
    assert returned == [("`a`, NULL", "[1, 2.5]")]
