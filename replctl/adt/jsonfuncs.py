"""json: a text whose parts keep their original form (PostgreSQL's jsonfuncs.c)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from json.encoder import encode_basestring
from typing import Any

from replctl.adt.arrayfuncs import flat
from replctl.adt.jsonb import pairs_of, pairs_of_two
from replctl.errors import InvalidParameterValue
from replctl.types.integer import decimal_int
from replctl.types.json_syntax import check_json

_BLANKS = " \t\n\r"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)


def _end(text: str, start: int) -> int:
    """Return the end of the value that begins at `start`."""
    depth = 0
    for match in _TOKEN.finditer(text, start):
        token = match[0]
        if token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
        if depth == 0:
            return match.end()
    return len(text)


def _skip(text: str, i: int) -> int:
    while i < len(text) and text[i] in _BLANKS:
        i += 1
    return i


def _members(text: str) -> Iterator[tuple[str, str]]:
    """Yield the keys and values of an object."""
    i = _skip(text, _skip(text, 0) + 1)
    while text[i] != "}":
        end = _end(text, i)
        key = json.loads(text[i:end], strict=False)
        i = _skip(text, _skip(text, end) + 1)
        end = _end(text, i)
        yield key, text[i:end]
        i = _skip(text, end)
        if text[i] == ",":
            i = _skip(text, i + 1)


def _items(text: str) -> Iterator[str]:
    """Yield the elements of an array."""
    i = _skip(text, _skip(text, 0) + 1)
    while text[i] != "]":
        end = _end(text, i)
        yield text[i:end]
        i = _skip(text, end)
        if text[i] == ",":
            i = _skip(text, i + 1)


def _first(text: str) -> str:
    return text[_skip(text, 0)]


def _field(text: str, name: str) -> str | None:
    """Return the value of the last member with this name; None if there is none."""
    if _first(text) != "{":
        return None
    found = None
    for key, value in _members(text):
        if key == name:
            found = value
    return found


def _element(text: str, index: int) -> str | None:
    if _first(text) != "[":
        return None
    items = list(_items(text))
    return items[index] if -len(items) <= index < len(items) else None


def _as_text(value: str | None) -> str | None:
    if value is None or value == "null":
        return None
    return str(json.loads(value, strict=False)) if value.startswith('"') else value


def _at_path(text: str, path: list[Any]) -> str | None:
    value: str | None = text if path else text.strip(_BLANKS)
    if not path:
        return value
    for step in flat(path):  # its dimensions do not matter
        if step is None or value is None:
            return None
        if _first(value) == "{":
            value = _field(value, step)
        elif _first(value) == "[" and re.fullmatch(r"\s*[+-]?[0-9]+", step, re.ASCII):
            value = _element(value, decimal_int(step.strip()))
        else:
            return None
    return value


def _type_of(text: str) -> str:
    names = {
        "{": "object",
        "[": "array",
        '"': "string",
        "t": "boolean",
        "f": "boolean",
        "n": "null",
    }
    return names.get(_first(text), "number")


def _array_length(text: str) -> int:
    if _first(text) == "[":
        return sum(1 for _item in _items(text))
    what = "non-array" if _first(text) == "{" else "scalar"
    raise InvalidParameterValue(f"cannot get array length of a {what}")


def _strip_nulls(text: str) -> str:
    """Return the text without blanks, and without members whose value is null."""
    return _stripped(text.strip(_BLANKS))


def _stripped(value: str) -> str:
    if value[0] == "{":
        members = ((key, item) for key, item in _members(value) if item != "null")
        shown = (f"{encode_basestring(key)}:{_stripped(item)}" for key, item in members)
        return f"{{{','.join(shown)}}}"
    if value[0] == "[":
        return f"[{','.join(map(_stripped, _items(value)))}]"
    return encode_basestring(json.loads(value, strict=False)) if value[0] == '"' else value


def _object(items: list[tuple[str, str | None]]) -> str:
    shown = (
        f"{encode_basestring(key)} : {'null' if item is None else encode_basestring(item)}"
        for key, item in items
    )
    return f"{{{', '.join(shown)}}}"


def _decoding(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, extended to check the escapes in its first argument, which it decodes.

    A json keeps its original text, so the type's input function does not check these escapes.
    """

    def call(text: str, *args: Any) -> Any:
        if "\\u" in text:
            check_json(text, decodes=True)
        return function(text, *args)

    return call


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "json_object_field": _decoding(_field),
    "json_object_field_text": _decoding(lambda text, name: _as_text(_field(text, name))),
    "json_array_element": _decoding(_element),
    "json_array_element_text": _decoding(lambda text, index: _as_text(_element(text, index))),
    "json_extract_path": _decoding(_at_path),
    "json_extract_path_text": _decoding(lambda text, path: _as_text(_at_path(text, path))),
    "json_typeof": _type_of,
    "json_strip_nulls": _decoding(_strip_nulls),
    "json_object": lambda pairs: _object(pairs_of(pairs)),
    "json_object_two_arg": lambda keys, values: _object(pairs_of_two(keys, values)),
    "json_array_length": _array_length,
}
