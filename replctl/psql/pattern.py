"""Patterns of `\\d` commands: `*`, `?`, quotes, dots (processSQLNamePattern in string_utils.c).

`pub*."Foo"` becomes the regular expressions `^(pub.*)$` for schemas and `^(Foo)$` for names.
Letters outside of quotes become lower case.
"""

from __future__ import annotations

import re

from replctl.errors import InvalidRegularExpression
from replctl.psql.variables import PsqlError
from replctl.record import dataclass

_SPECIAL = frozenset("|*+?()[]{}.^$\\")


@dataclass(frozen=True, slots=True)
class NamePattern:
    """A pattern that selects objects.

    Attributes:
        schema, name: regular expressions for the whole name; None for all.
        has_schema: the pattern names a schema.  If not, only objects that are visible in the
            search path match.
    """

    schema: re.Pattern[str] | None = None
    name: re.Pattern[str] | None = None
    has_schema: bool = False

    def matches(self, schema: str, name: str) -> bool:
        """Return whether the pattern matches an object of that name in that schema, ignoring
        visibility.
        """
        if self.schema is not None and not self.schema.search(schema):
            return False
        return self.name is None or self.name.search(name) is not None


def parse_pattern(pattern: str | None, database: str, *, max_parts: int = 3) -> NamePattern:
    """Read the pattern of objects in schemas: `name`, `schema.name`, `database.schema.name`.

    Args:
        max_parts: 1 for objects outside of schemas, such as publications and roles; 2 for schemas.

    Raises:
        PsqlError: the pattern has too many parts, or names another database.
        InvalidRegularExpression: the resulting regular expression is invalid.
    """
    if pattern is None:
        return NamePattern()
    parts = _parts(pattern, max_parts)
    if len(parts) > max_parts:
        raise PsqlError(f"improper qualified name (too many dotted names): {pattern}")
    if len(parts) == max_parts > 1:
        _check_database(parts[0], database, pattern)
    has_schema = len(parts) > 1 and max_parts == 3
    schema = _compiled(parts[-2][0]) if has_schema else None
    return NamePattern(schema, _compiled(parts[-1][0]), has_schema)


def _check_database(part: tuple[str, str], database: str, pattern: str) -> None:
    if part[1] != database:
        raise PsqlError(f"cross-database references are not implemented: {pattern}")


def _parts(pattern: str, max_parts: int) -> list[tuple[str, str]]:
    """Return the parts between dots, each as a regular expression and as plain text
    (patternToSQLRegex)."""
    parts: list[tuple[list[str], list[str]]] = [([], [])]
    in_quotes = False
    position = 0
    while position < len(pattern):
        char = pattern[position]
        position += 1
        regex, literal = parts[-1]
        if char == '"':
            if in_quotes and pattern[position : position + 1] == '"':
                regex.append('"')
                literal.append('"')
                position += 1
            else:
                in_quotes = not in_quotes
        elif not in_quotes and char == "*":
            regex.append(".*")
            literal.append(char)
        elif not in_quotes and char == "?":
            regex.append(".")
            literal.append(char)
        elif not in_quotes and char == ".":
            parts.append(([], []))
        elif char == "$" or (in_quotes and char in _SPECIAL):
            regex.append("\\" + char)
            literal.append(char)
        elif char == "[" and pattern[position : position + 1] == "]":
            regex.append("\\[")  # this is the name of an array type, not a regular expression
            literal.append(char)
        else:
            folded = char.lower() if not in_quotes and char.isascii() else char
            regex.append(folded)
            literal.append(folded)
    return [("".join(regex), "".join(literal)) for regex, literal in parts]


def _compiled(regex: str) -> re.Pattern[str] | None:
    if regex == ".*":
        return None
    try:
        return re.compile(rf"\A(?:{regex})\Z")
    except re.error as error:
        raise InvalidRegularExpression(f"invalid regular expression: {error}") from error
