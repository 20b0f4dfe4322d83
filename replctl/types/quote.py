"""Names and strings as SQL writes them: quote_identifier() of PostgreSQL's ruleutils.c, quote.c."""

from __future__ import annotations

import re
from functools import lru_cache

from replctl.types.builtin import keywords

_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_UNRESERVED = ("U", False)


@lru_cache(maxsize=4096)
def quote_identifier(name: str) -> str:
    """`a`, `A b`, `left` -> `a`, `"A b"`, `"left"`: quoted if it could mean something else."""
    category, _ = keywords().get(name, _UNRESERVED)
    if category == "U" and _PLAIN_NAME.fullmatch(name):
        return name
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def quote_qualified_identifier(schema: str | None, name: str) -> str:
    """(`s`, `A`) -> `s."A"`; without a schema the name alone."""
    prefix = "" if schema is None else f"{quote_identifier(schema)}."
    return prefix + quote_identifier(name)


def quote_string(value: str) -> str:
    r"""`it's \` -> `'it''s \'`: as ruleutils.c prints constants; a backslash is nothing special."""
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def quote_literal(value: str) -> str:
    r"""`it's`, `a\b` -> `'it''s'`, `E'a\\b'`: quote_literal(), safe for every server setting."""
    escaped = value.replace("'", "''")
    if "\\" not in value:
        return f"'{escaped}'"
    doubled = escaped.replace("\\", "\\\\")
    return f"E'{doubled}'"
