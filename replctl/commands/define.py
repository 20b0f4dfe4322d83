"""Options of a WITH list: their values, and what is wrong with them (define.c)."""

from __future__ import annotations

from collections.abc import Container, Sequence

from replctl.errors import SqlSyntaxError
from replctl.parser import ast

_BOOLEANS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


def options_by_name(
    options: Sequence[ast.DefElem], known: Container[str], what: str
) -> dict[str, ast.DefElem]:
    """The options of a list by their names.

    Args:
        known: the names that there are.
        what: the kind of option, for messages: publication, subscription.

    Raises:
        SqlSyntaxError: a name is not known, or stands there twice.
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
    """The value of an option.

    Raises:
        SqlSyntaxError: it has none.
    """
    if option.value is None:
        raise SqlSyntaxError(f"{option.name} requires a parameter")
    return option.value


def get_boolean(option: ast.DefElem) -> bool:
    """The value of an option that is on or off; on, where only its name stands.

    Raises:
        SqlSyntaxError: it is neither.
    """
    if option.value is None:
        return True
    value = _BOOLEANS.get(option.value.lower())
    if value is None:
        raise SqlSyntaxError(f"{option.name} requires a Boolean value")
    return value


def get_names(value: str) -> list[str] | None:
    """`insert, "Update"` -> ["insert", "Update"]: a list of identifiers, None if it is none
    (SplitIdentifierString)."""
    names: list[str] = []
    position, rest = 0, value.strip()
    while position < len(rest):
        if rest[position] == '"':
            name, position = _quoted(rest, position + 1)
            if name is None:
                return None
        else:
            end = position
            while end < len(rest) and rest[end] != "," and not rest[end].isspace():
                end += 1
            name, position = rest[position:end].lower(), end
            if not name:
                return None
        names.append(name)
        while position < len(rest) and rest[position].isspace():
            position += 1
        if position == len(rest):
            return names
        if rest[position] != ",":
            return None
        position += 1
        while position < len(rest) and rest[position].isspace():
            position += 1
        if position == len(rest):
            return None
    return names


def _quoted(text: str, position: int) -> tuple[str | None, int]:
    name: list[str] = []
    while position < len(text):
        if text[position] == '"':
            if text[position + 1 : position + 2] != '"':
                return "".join(name), position + 1
            position += 1
        name.append(text[position])
        position += 1
    return None, position
