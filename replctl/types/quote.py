"""Quote names and strings for SQL (PostgreSQL's quote.c, and quote_identifier() in ruleutils.c)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from replctl.errors import InvalidName
from replctl.types.builtin import KeywordCategory, keywords
from replctl.types.identifier import clipped, stored_name
from replctl.types.text_form import BLANKS

_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_UNRESERVED = (KeywordCategory.UNRESERVED, False)
_NAME_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\s."][^\s.]*))\s*(\.?)', re.ASCII)
_NEEDS_QUOTES = re.compile(r'["\\\\(),\s]')


@lru_cache(maxsize=4096)
def quote_identifier(name: str) -> str:
    """Quote a name if necessary: `a`, `A b`, `left` -> `a`, `"A b"`, `"left"`."""
    category, _ = keywords().get(name, _UNRESERVED)
    if category == KeywordCategory.UNRESERVED and _PLAIN_NAME.fullmatch(name):
        return name
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def quote_qualified_identifier(schema: str | None, name: str) -> str:
    """Quote a name with its schema: (`s`, `A`) -> `s."A"`; without a schema only the name."""
    prefix = "" if schema is None else f"{quote_identifier(schema)}."
    return prefix + quote_identifier(name)


def quote_string(value: str) -> str:
    r"""Quote a string, with backslashes unchanged as in ruleutils.c: `it's \` -> `'it''s \'`."""
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def quote_literal(value: str) -> str:
    r"""Quote a string for any value of standard_conforming_strings: `it's`, `a\b` -> `'it''s'`,
    `E'a\\b'`."""
    escaped = value.replace("'", "''")
    if "\\" not in value:
        return f"'{escaped}'"
    doubled = escaped.replace("\\", "\\\\")
    return f"E'{doubled}'"


def quote_record(fields: Sequence[str | None]) -> str:
    """Print a record like record_out: [`a`, NULL, `b c`] -> `(a,,"b c")`."""
    return f"({','.join(map(_field, fields))})"


def _field(value: str | None) -> str:
    if value is None:
        return ""
    if value and not _NEEDS_QUOTES.search(value):
        return value
    doubled = value.replace("\\", "\\\\").replace('"', '""')
    return f'"{doubled}"'


def split_identifiers(value: str) -> list[str] | None:
    """Split a list of identifiers: `insert, "Update"` -> ["insert", "Update"]; None if the list is
    not valid (SplitIdentifierString).
    """
    names: list[str] = []
    position, rest = 0, value.strip(BLANKS)
    while position < len(rest):
        if rest[position] == '"':
            name, position = _unquoted(rest, position + 1)
            if name is None:
                return None
        else:
            end = position
            while end < len(rest) and rest[end] != "," and rest[end] not in BLANKS:
                end += 1
            name, position = stored_name(rest[position:end]), end
            if not name:
                return None
        names.append(name)
        while position < len(rest) and rest[position] in BLANKS:
            position += 1
        if position == len(rest):
            return names
        if rest[position] != ",":
            return None
        position += 1
        while position < len(rest) and rest[position] in BLANKS:
            position += 1
        if position == len(rest):
            return None
    return names


def split_qualified_name(value: str) -> list[str]:
    """Split a qualified name: `a."B".C` -> ["a", "B", "c"]; unquoted parts are folded to lower case
    (stringToQualifiedNameList).

    Raises:
        InvalidName: the text is not a qualified name.
    """
    parts: list[str] = []
    position = 0
    while True:
        match = _NAME_PART.match(value, position)
        if match is None:
            raise InvalidName("invalid name syntax")
        quoted, plain, dot = match.groups()
        name = stored_name(plain) if quoted is None else clipped(quoted.replace('""', '"'))
        parts.append(name)
        position = match.end()
        if not dot:
            break
    if position != len(value):
        raise InvalidName("invalid name syntax")
    return parts


def _unquoted(text: str, position: int) -> tuple[str | None, int]:
    name: list[str] = []
    while position < len(text):
        if text[position] == '"':
            if text[position + 1 : position + 2] != '"':
                return clipped("".join(name)), position + 1
            position += 1
        name.append(text[position])
        position += 1
    return None, position
