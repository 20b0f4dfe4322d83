"""Random regular expressions have the results of a server (data/regexp.tsv).  Expressions that
would take very long with backtracking end soon."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replctl.adt.regex_lexer import Options
from replctl.adt.regex_syntax import parsed
from replctl.adt.regexp import COLLATED, similar_escape
from replctl.errors import InvalidRegularExpression, PostgresError
from replctl.types import text as type_text

_DATA = Path(__file__).parent / "data" / "regexp.tsv"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}

#: The expressions of the file: the type of the result, and how to compute it.
EXPRESSIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "text ~ pattern": ("bool", lambda t, p, *_: COLLATED["textregexeq"](t, p)),
    "text !~* pattern": ("bool", lambda t, p, *_: COLLATED["texticregexne"](t, p)),
    "substring(text from pattern)": (
        "text",
        lambda t, p, *_: COLLATED["textregexsubstr"](t, p),
    ),
    "regexp_match(text, pattern, flags)": (
        "_text",
        lambda t, p, f, *_: COLLATED["regexp_match"](t, p, f),
    ),
    "regexp_replace(text, pattern, replacement, flags || 'g')": (
        "text",
        lambda t, p, f, r, *_: COLLATED["textregexreplace"](t, p, r, f + "g"),
    ),
    "regexp_replace(text, pattern, replacement, start, number, flags)": (
        "text",
        lambda t, p, f, r, s, n, _: COLLATED["textregexreplace_extended"](t, p, r, s, n, f),
    ),
    "regexp_count(text, pattern, start, flags)": (
        "int4",
        lambda t, p, f, r, s, *_: COLLATED["regexp_count"](t, p, s, f),
    ),
    "regexp_substr(text, pattern, start, number, flags, grp)": (
        "text",
        lambda t, p, f, r, s, n, g: COLLATED["regexp_substr"](t, p, s, n, f, g),
    ),
    "regexp_instr(text, pattern, start, number, grp, flags, grp)": (
        "int4",
        lambda t, p, f, r, s, n, g: COLLATED["regexp_instr"](t, p, s, n, g, f, g),
    ),
    "regexp_split_to_array(text, pattern, flags)": (
        "_text",
        lambda t, p, f, *_: COLLATED["regexp_split_to_array"](t, p, f),
    ),
    "similar_to_escape(pattern)": ("text", lambda t, p, *_: similar_escape(p)),
    "similar_to_escape(pattern, 'b')": ("text", lambda t, p, *_: similar_escape(p, "b")),
}


def _unescaped(field: str) -> str:
    parts = field.split("\\\\")
    for escape, char in _ESCAPES.items():
        parts = [part.replace("\\" + escape, char) for part in parts]
    return "\\".join(parts)


def _rows() -> list[list[str]]:
    lines = _DATA.read_text(encoding="utf-8").split("\n")[:-1]
    reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    return [[_unescaped(field) for field in row] for row in reader]


def _shown(type_: str, function: Callable[..., Any], arguments: list[Any]) -> str:
    try:
        value = function(*arguments)
    except PostgresError as error:
        return f"!{error.sqlstate} {error.message}"
    if type_ == "bool":
        return f"={str(value).lower()}"  # cast to text
    return "NULL" if value is None else f"={type_text.render(type_, value)}"


def test_results_are_the_servers() -> None:
    header, *rows = _rows()
    different = []
    for row in rows:
        arguments = [*row[:4], *map(int, row[4:7])]
        for expression, expected in zip(header[7:], row[7:], strict=True):
            actual = _shown(*EXPRESSIONS[expression], arguments)
            if actual != expected:
                different.append((expression, arguments, expected, actual))
    assert different == []


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("a" * 2999, "(a|aa)*$", ["a"]),
        ("a" * 3000, "(a*)*(a*)*b", None),
        ("ab" * 1000, "^((a)|(b)|(ab))*c?$", ["ab", None, None, "ab"]),
        ("a" * 500, "(?:(?:a{0,60}){0,60})b", None),
        ("ab" * 300, r"^(.*)(.*)\1\2$", ["ab" * 150, ""]),
        ("abc" * 500, "(?<=a.*)b(?=.*c)", ["b"]),
        ("a" * 2000, "(a|b)*a(a|b){12}c", None),
    ],
)
def test_time_does_not_explode(text: str, pattern: str, expected: list[str | None] | None) -> None:
    assert COLLATED["regexp_match"](text, pattern) == expected


@pytest.mark.parametrize(
    "pattern", ["((a{255}){255}){255}", "(" * 3000 + ")" * 3000, "(a)?" * 3000, "a|" * 30000]
)
def test_what_is_too_complex_is_an_error(pattern: str) -> None:
    with pytest.raises(InvalidRegularExpression, match="regular expression is too complex"):
        COLLATED["regexp_match"]("a", pattern)


@pytest.mark.parametrize("group", ["(", "(?:", "(?=", "(?<!"])
def test_groups_have_the_same_greatest_depth_everywhere(group: str, deep_recursion: None) -> None:
    parsed(group * 2500 + "a" + ")" * 2500, Options(), ascii_only=True)
    with pytest.raises(InvalidRegularExpression, match="regular expression is too complex"):
        parsed(group * 2501 + "a" + ")" * 2501, Options(), ascii_only=True)


def test_many_groups() -> None:
    assert COLLATED["regexp_match"]("a" * 100, "(a)" * 100) == ["a"] * 100
