"""Code names the letters that catalogs and changes store by the members of their enums, and names
sets of them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent / "replctl"

#: The names of values that are one letter with a meaning: columns of catalogs, fields, variables.
_LETTERS = {
    "action", "castcontext", "castmethod", "category", "command", "confdeltype", "confmatchtype",
    "contype", "defaclobjtype", "deptype", "effect", "kind", "letter", "letters", "op", "ops",
    "parallel", "persistence", "polcmd", "privilege", "prokind", "provolatile", "relkind",
    "relpersistence", "relreplident", "status", "storage", "storageType", "typcategory",
    "typstorage", "typtype", "volatility",
}  # fmt: skip

#: Files about the letters of a text that a user wrote: formats and regular expressions.
_ABOUT_TEXTS = ("format_", "java_regex", "regex_automaton", "regex_lexer")


def test_letters_have_names() -> None:
    assert not _found(_compared_letters), "compare with members of enums"


def test_sets_of_letters_have_names() -> None:
    """mypy checks arguments: functions for relations of some kinds take members of RelKind."""
    assert not _found(_texts_as_sets), "use a tuple of members of an enum, and give it a name"


def test_texts_as_sets_are_found() -> None:
    """Each line of the program is a set of letters, except those of the last part."""
    program = """
kind in "rp"
relation.kind not in "rpv"
constraint["contype"] in "pu"
[image for image in "on"]
{f"{c}{i}" for i in range(3) for c in "ud"}
kinds = set("tmi")

character in "xX"
kind in ("integer", "float")
[line for line in "a b"]
"""
    assert sorted(_texts_as_sets(ast.parse(program))) == list(range(2, 8))


def _found(check: Callable[[ast.Module], Iterator[int]]) -> dict[str, list[int]]:
    """Return the lines that a check finds in the package, by file."""
    found = {path: list(check(tree)) for path, tree in _trees().items()}
    return {path: lines for path, lines in found.items() if lines}


@cache
def _trees() -> dict[str, ast.Module]:
    files = [path for path in _PACKAGE.rglob("*.py") if path.stem not in _ABOUT_TEXTS]
    return {str(path.relative_to(_PACKAGE)): ast.parse(path.read_bytes()) for path in files}


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


def _texts_as_sets(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that use a text as a set of letters."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[right]):
                if _is_coded(left) and _is_letters(right):
                    yield node.lineno
            case ast.For(iter=iterated) | ast.comprehension(iter=iterated):
                if _is_letters(iterated):
                    yield iterated.lineno
            case ast.Call(func=ast.Name(id="set" | "frozenset" | "list" | "tuple"), args=[arg]):
                if _is_letters(arg):
                    yield node.lineno


def _is_letters(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return text.isalpha()
    return False


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
