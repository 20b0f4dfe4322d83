"""Each refused form of a statement has a message in correct English."""

from __future__ import annotations

from pathlib import Path

import pytest

from replctl.errors import FeatureNotSupported
from replctl.parser.parse import parse
from replctl.parser.refused_form import _MESSAGES

_GRAMMAR = Path(__file__).parents[2] / "grammar" / "unsupported.lark"


@pytest.mark.parametrize("rule", _MESSAGES)
def test_each_rule_with_a_message_exists(rule: str) -> None:
    assert rule in _GRAMMAR.read_text().replace(":", " ").split()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ALTER TYPE e DROP VALUE 'x'", "dropping an enum value is not implemented"),
        ("CREATE TABLE t OF ct", "typed tables are not supported"),
        (
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql SET work_mem = '1MB' AS 'SELECT 1'",
            "settings of functions are not supported",
        ),
        ("GRANT USAGE ON LANGUAGE sql TO a", "privileges on languages are not supported"),
        ("GRANT SET ON PARAMETER work_mem TO a", "privileges on parameters are not supported"),
        (
            "CREATE FUNCTION f(t.a%TYPE) RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "types of columns, as in table.column%TYPE, are not supported",
        ),
        (
            "ALTER OPERATOR = (int, int) SET SCHEMA s",
            "ALTER OPERATOR ... SET SCHEMA is not supported",
        ),
    ],
)
def test_the_message_of_a_refused_form(statement: str, message: str) -> None:
    with pytest.raises(FeatureNotSupported) as caught:
        parse(statement)
    assert caught.value.message == message
