"""Options of a WITH list: read and check their values (define.c)."""

from __future__ import annotations

from collections.abc import Container, Sequence

from replctl.errors import SqlSyntaxError
from replctl.parser import ast

_WORDS = {"true": True, "on": True, "false": False, "off": False}
_NUMBERS = {1: True, 0: False}


def options_by_name(
    options: Sequence[ast.DefElem], known: Container[str], what: str
) -> dict[str, ast.DefElem]:
    """Return the options of a list by their names.

    Args:
        known: the valid names.
        what: the kind of option for messages, such as publication or subscription.

    Raises:
        SqlSyntaxError: a name is unknown, or occurs twice.
    """
    result: dict[str, ast.DefElem] = {}
    for option in options:
        if option.name not in known:
            raise SqlSyntaxError(f'unrecognized {what} parameter: "{option.name}"')
        if option.name in result:
            raise SqlSyntaxError("conflicting or redundant options", position=option.pos)
        result[option.name] = option
    return result


def get_string(option: ast.DefElem) -> str:
    """Return the value of an option.

    Raises:
        SqlSyntaxError: the option has no value.
    """
    if option.value is None:
        raise SqlSyntaxError(f"{option.name} requires a parameter")
    return option.value


def get_boolean(option: ast.DefElem) -> bool:
    """Return the value of a boolean option.  An option without a value is true.

    Raises:
        SqlSyntaxError: the value is not a boolean.
    """
    if option.value is None:
        return True
    is_number = option.is_integer
    value = _NUMBERS.get(int(option.value)) if is_number else _WORDS.get(option.value.lower())
    if value is None:
        raise SqlSyntaxError(f"{option.name} requires a Boolean value")
    return value
