"""Code compares the letters that catalogs and changes store by the names of their enums."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent / "replctl"

#: The names of values that are one letter with a meaning: columns of catalogs, fields, variables.
_LETTERS = {
    "action", "castcontext", "castmethod", "category", "command", "confdeltype", "confmatchtype",
    "contype", "defaclobjtype", "deptype", "effect", "kind", "letter", "letters", "op", "ops",
    "parallel", "persistence", "polcmd", "privilege", "prokind", "provolatile", "relkind",
    "relpersistence", "relreplident", "status", "storage", "typcategory", "typstorage", "typtype",
    "volatility",
}  # fmt: skip

#: Files about the letters of a text that a user wrote: formats and regular expressions.
_ABOUT_TEXTS = ("format_", "java_regex", "regex_automaton", "regex_lexer")


def test_letters_have_names() -> None:
    files = [path for path in _PACKAGE.rglob("*.py") if path.stem not in _ABOUT_TEXTS]
    found = {
        str(p.relative_to(_PACKAGE)): list(_compared_letters(ast.parse(p.read_bytes())))
        for p in files
    }
    found = {path: lines for path, lines in found.items() if lines}
    assert not found, "compare with members of enums"


def _compared_letters(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that compare a value with a letter although it has an enum."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=[right]):
                if _is_coded(left) and _has_letter(right):
                    yield node.lineno
            case ast.Match(subject=subject, cases=cases) if _is_coded(subject):
                values = [n for case in cases for n in ast.walk(case.pattern)]
                if any(_has_letter(n) for n in values if isinstance(n, ast.Constant)):
                    yield node.lineno


def _is_coded(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name in _LETTERS
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name in _LETTERS
        case ast.Subscript(value=value):
            return _is_coded(value)
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _LETTERS
    return False


def _has_letter(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return len(text) == 1 and text.isalpha()
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            return any(map(_has_letter, items))
    return False
