"""Reports of errors and notices.  data/script/errors.sql has reports that belong to a statement."""

from __future__ import annotations

import pytest

from replctl.errors import Notice, UndefinedTable, UniqueViolation
from replctl.psql.messages import report_text
from replctl.relation_name import RelationName

ERROR = UniqueViolation(
    "duplicate key",
    detail="Key (a)=(1) already exists.",
    hint="Do not.",
    context="somewhere",
    table=RelationName("s", "t"),
    column="a",
    constraint="t_pkey",
)


@pytest.mark.parametrize(
    ("verbosity", "show_context", "expected"),
    [
        ("default", "never", ["ERROR:  duplicate key", "DETAIL", "HINT"]),
        ("default", "errors", ["ERROR:  duplicate key", "DETAIL", "HINT", "CONTEXT"]),
        ("terse", "always", ["ERROR:  duplicate key"]),
        ("sqlstate", "always", ["ERROR:  23505"]),
        (
            "verbose",
            "errors",
            [
                "ERROR:  23505: duplicate key",
                "DETAIL",
                "HINT",
                "CONTEXT",
                "SCHEMA NAME",
                "TABLE NAME",
                "COLUMN NAME",
                "CONSTRAINT NAME",
            ],
        ),
    ],
)
def test_fields(verbosity: str, show_context: str, expected: list[str]) -> None:
    lines = report_text(ERROR, None, verbosity, show_context).split("\n")
    assert [lines[0], *(line.split(":")[0] for line in lines[1:])] == expected


def test_a_notice_shows_what_it_has() -> None:
    notice = Notice("WARNING", "beware", hint="Look.")
    assert report_text(notice, "SELECT 1") == "WARNING:  beware\nHINT:  Look."


@pytest.mark.parametrize(
    ("statement", "position", "expected"),
    [
        ("SELECT a\r\n\tFROM b", 16, ["LINE 2:  FROM b", "              ^"]),
        ("SELECT a\rFROM b", 14, ["LINE 2: FROM b", "             ^"]),
        ("a", 1, ["LINE 1: a", "         ^"]),
        ("a", 2, []),
        ("", 0, ["LINE 1: ", "        ^"]),
    ],
)
def test_extract(statement: str, position: int, expected: list[str]) -> None:
    error = UndefinedTable("no", position=position)
    assert report_text(error, statement).split("\n")[1:] == expected
