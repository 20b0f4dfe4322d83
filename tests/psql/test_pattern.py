"""Patterns of `\\d` commands."""

from __future__ import annotations

import pytest

from replctl.errors import InvalidRegularExpression
from replctl.psql.pattern import parse_pattern
from replctl.psql.variables import PsqlError


@pytest.mark.parametrize(
    ("pattern", "schema", "name"),
    [
        ("t1", "public", "t1"),
        ("T1", "public", "t1"),
        ('"T1"', "public", "T1"),
        ("t*", "public", "table"),
        ("t?", "public", "t1"),
        ("s.t", "s", "t"),
        ('"a.b".c', "a.b", "c"),
        ('"a""b"', "public", 'a"b'),
        ("a$b", "public", "a$b"),
        ("(a|b)c", "public", "bc"),
        ('"(a|b)c"', "public", "(a|b)c"),
        ("_int4[]", "public", "_int4[]"),
        ("db.s.t", "s", "t"),
        ("*.*", "anything", "at all"),
        (None, "s", "t"),
    ],
)
def test_matches(pattern: str | None, schema: str, name: str) -> None:
    assert parse_pattern(pattern, "db").matches(schema, name)


@pytest.mark.parametrize(
    ("pattern", "schema", "name"),
    [
        ("t1", "public", "t11"),
        ('"t*"', "public", "table"),
        ("t?", "public", "t"),
        ("s.t", "public", "t"),
        ("s.", "s", "t"),
    ],
)
def test_does_not_match(pattern: str, schema: str, name: str) -> None:
    assert not parse_pattern(pattern, "db").matches(schema, name)


@pytest.mark.parametrize(
    ("pattern", "parts", "message"),
    [
        ("a.b", 1, "improper qualified name (too many dotted names): a.b"),
        ("a.b.c.d", 3, "improper qualified name (too many dotted names): a.b.c.d"),
        ("a.b.c", 3, "cross-database references are not implemented: a.b.c"),
        ("a.b", 2, "cross-database references are not implemented: a.b"),
    ],
)
def test_too_many_parts(pattern: str, parts: int, message: str) -> None:
    with pytest.raises(PsqlError) as raised:
        parse_pattern(pattern, "db", max_parts=parts)
    assert str(raised.value) == message


def test_regular_expressions_can_be_wrong() -> None:
    with pytest.raises(InvalidRegularExpression):
        parse_pattern("(a", "db")
