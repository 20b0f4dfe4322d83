"""Types of Delta without a counterpart in PostgreSQL: STRUCT, MAP, VARIANT, and arrays of these or
of arrays.  A column of such a type is *native*: replctl copies its values unchanged from Delta
table to Delta table, and shows them as jsonb.

The type name of a native column is `delta:` followed by the type in Spark's syntax.  In statements
the column has the type jsonb.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from replctl.record import dataclass

_PREFIX = "delta:"
#: The type of native columns in statements.
SHOWN_AS = "jsonb"
#: A value that holds its own type, as a value of jsonb does; it can also be a date, a decimal, ...
VARIANT = "VARIANT"
#: Simple types of Delta's schemas in Spark's syntax.
_SIMPLE = {
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "binary": "BINARY",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP_NTZ",
    "variant": VARIANT,
}
_DECLARED = {words: name for name, words in _SIMPLE.items()}
_DECIMAL = re.compile(r"decimal\((\d{1,2}),\s*(-?\d{1,2})\)", re.ASCII | re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TOKEN = re.compile(
    r"\s*(decimal\(\d{1,2},\s*\d{1,2}\)|[A-Za-z_][A-Za-z0-9_]*|`(?:[^`]|``)+`|[<>:,])",
    re.ASCII | re.IGNORECASE,
)
#: Metadata of a field: the collations of its texts, which PostgreSQL does not have.
_COLLATIONS = "__COLLATIONS"


@dataclass(frozen=True, slots=True)
class DeltaType:
    """A type of Delta.

    Attributes:
        name: STRUCT, ARRAY, MAP, or a simple type in Spark's syntax: INT, DECIMAL(10,2).
        parts: the fields of a STRUCT, ("element", type) of an ARRAY, ("key", type) and ("value",
            type) of a MAP.
    """

    name: str
    parts: tuple[tuple[str, DeltaType], ...] = ()

    @property
    def text(self) -> str:
        """Return the type in Spark's syntax: STRUCT<a: INT, `b c`: ARRAY<STRING>>."""
        if self.name == "STRUCT":
            fields = (f"{quoted_name(name)}: {part.text}" for name, part in self.parts)
            return f"STRUCT<{', '.join(fields)}>"
        if not self.parts:
            return self.name
        return f"{self.name}<{', '.join(part.text for _name, part in self.parts)}>"

    @property
    def declaration(self) -> Any:
        """Return the type in the form of Delta's schemas, which `declared` reads."""
        parts = [(name, part.declaration) for name, part in self.parts]
        match self.name:
            case "STRUCT":
                empty: dict[str, Any] = {"nullable": True, "metadata": {}}
                fields = [{"name": name, "type": type_, **empty} for name, type_ in parts]
                return {"type": "struct", "fields": fields}
            case "ARRAY":
                return {"type": "array", "elementType": parts[0][1], "containsNull": True}
            case "MAP":
                (_key, key), (_value, value) = parts
                kind = {"keyType": key, "valueType": value, "valueContainsNull": True}
                return {"type": "map", **kind}
        return _DECLARED.get(self.name, self.name.lower())

    @property
    def is_native(self) -> bool:
        """Return whether PostgreSQL has no counterpart of the type."""
        if self.name == "ARRAY":
            element = self.parts[0][1]
            return element.name == "ARRAY" or element.is_native
        return self.name in ("STRUCT", "MAP", VARIANT)


def is_native(type_name: str) -> bool:
    """Return whether a type name belongs to native columns."""
    return type_name.startswith(_PREFIX)


def native_type_name(text: str) -> str:
    """Return the type name of a native column, given the type in Spark's syntax; '' for ''."""
    return text and _PREFIX + text


def native_text(type_name: str) -> str:
    """Return the Delta type of a native column in Spark's syntax; '' for other columns."""
    return type_name.removeprefix(_PREFIX) if is_native(type_name) else ""


def shown_type(type_name: str) -> str:
    """Return the type of a column in statements: jsonb for a native one."""
    return SHOWN_AS if is_native(type_name) else type_name


def field_names(type_: DeltaType | None) -> Iterator[str]:
    """Yield the names of the fields of all STRUCTs in a type."""
    for name, part in () if type_ is None else type_.parts:
        if type_ is not None and type_.name == "STRUCT":
            yield name
        yield from field_names(part)


@cache
def native_type(type_name: str) -> DeltaType:
    """Return the Delta type of a native column."""
    found = parsed(native_text(type_name))
    assert found is not None
    return found


def declared(field: Any) -> DeltaType | None:
    """Return a type of a Delta schema; None if replctl does not support it."""
    if isinstance(field, str):
        decimal = _DECIMAL.fullmatch(field)
        name = f"DECIMAL({decimal[1]},{decimal[2]})" if decimal else _SIMPLE.get(field)
        return None if name is None else DeltaType(name)
    parts: list[tuple[str, DeltaType | None]]
    match field.get("type"):
        case "struct":
            fields = field["fields"]
            if any(_COLLATIONS in (f.get("metadata") or {}) for f in fields):
                return None
            parts = [(f["name"], declared(f["type"])) for f in fields]
        case "array":
            parts = [("element", declared(field["elementType"]))]
        case "map":
            parts = [("key", declared(field["keyType"])), ("value", declared(field["valueType"]))]
        case _:
            return None
    return _made(field["type"].upper(), parts)


def parsed(text: str) -> DeltaType | None:
    """Parse a type in Spark's syntax; None if replctl does not support it."""
    tokens, position = [], 0
    while position < len(text.rstrip()):
        found = _TOKEN.match(text, position)
        if found is None:
            return None
        tokens.append(found[1])
        position = found.end()
    reader = iter([*tokens, ""])
    try:
        type_, end = _read(reader, next(reader))
    except _WrongError:  # no type that replctl knows
        return None
    return None if end else type_


class _WrongError(Exception):
    """Raised if a text is not a type."""


def _read(tokens: Iterator[str], word: str) -> tuple[DeltaType, str]:
    """Read the type that begins with a word, and return it with the token after it."""
    name = word.upper()
    if name not in ("STRUCT", "ARRAY", "MAP"):
        decimal = _DECIMAL.fullmatch(word)
        name = f"DECIMAL({decimal[1]},{decimal[2]})" if decimal else name
        if decimal is None and name not in _SIMPLE.values():
            raise _WrongError
        return DeltaType(name), next(tokens)
    _expect(next(tokens), "<")
    labels = {"ARRAY": ["element"], "MAP": ["key", "value"]}.get(name)
    parts: list[tuple[str, DeltaType | None]] = []
    token = next(tokens)
    while True:
        label = token
        if labels is None:
            if not (_NAME.fullmatch(token) or token.startswith("`")):
                raise _WrongError
            label = token[1:-1].replace("``", "`") if token.startswith("`") else token
            _expect(next(tokens), ":")
            token = next(tokens)
        elif len(parts) < len(labels):
            label = labels[len(parts)]
        type_, token = _read(tokens, token)
        parts.append((label, type_))
        if token == ">":
            break
        _expect(token, ",")
        token = next(tokens)
    made = _made(name, parts)
    if made is None or (labels is not None and len(parts) != len(labels)):
        raise _WrongError
    return made, next(tokens)


def _expect(token: str, expected: str) -> None:
    if token != expected:
        raise _WrongError


def _made(name: str, parts: list[tuple[str, DeltaType | None]]) -> DeltaType | None:
    """Return a type with parts.  Keys of a MAP must be simple, so that JSON can show them."""
    known = tuple((label, part) for label, part in parts if part is not None)
    if len(known) < len(parts) or not parts:
        return None
    is_wrong = name == "MAP" and (known[0][1].parts or known[0][1].name == VARIANT)
    return None if is_wrong else DeltaType(name, known)


def quoted_name(name: str) -> str:
    """Return a name in Spark's syntax, with backquotes if it needs them.

    "a"  ->  "a"
    "b c"  ->  "`b c`"
    """
    return name if _NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"
