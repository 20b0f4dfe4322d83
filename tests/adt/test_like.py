"""LIKE with many wildcards in the pattern."""

from __future__ import annotations

import pytest

from replctl.adt.like import is_like


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("a" * 5000, "%a" * 30 + "%b%", False),
        ("a" * 5000 + "b", "%a" * 30 + "%b%", True),
        ("abcabc", "%b%c", True),
        ("abcab", "%b%c", False),
        ("aXbXc", "a%b_c", True),
        ("aba", "ab%ba", False),
        ("abba", "ab%ba", True),
    ],
)
def test_wildcards_are_not_tried_twice(text: str, pattern: str, expected: bool) -> None:
    assert is_like(text, pattern) is expected
