"""json and jsonb (PostgreSQL's json.c and jsonb.c).  A value of json is its original text, a value
of jsonb its canonical text.
"""

from __future__ import annotations

import json
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, NoReturn

from replctl.errors import FeatureNotSupported, NumericValueOutOfRange
from replctl.types.json_syntax import check_json
from replctl.types.numeric import numeric_in, numeric_out
from replctl.types.text_form import text_form


class _Object(list[tuple[str, Any]]):
    """The members of a JSON object in their original order."""


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)  # NaN and the infinities, which are not JSON


_json = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse).decode
_jsonb = json.JSONDecoder(
    parse_int=numeric_in,
    parse_float=numeric_in,
    parse_constant=_refuse,
    object_pairs_hook=_Object,
).decode


def json_in(text: str) -> str:
    """Return the unchanged text.

    Raises:
        InvalidTextRepresentation: `text` is not JSON.
    """
    try:
        _json(text)
    except (ValueError, RecursionError):  # the full check knows the place, and nests deeper
        check_json(text, decodes=False)
    return text


def jsonb_in(text: str) -> str:
    """Return the canonical text: `{"bb":1e2, "a":1.0, "a":[]}` -> `{"a": [], "bb": 100}`.

    Raises:
        InvalidTextRepresentation: `text` is not JSON.
        UntranslatableCharacter: an escape represents the character 0.
        NumericValueOutOfRange: a number is too large for numeric.
        FeatureNotSupported: the value is nested too deeply for Python's parser.
    """
    if "\\u" in text:  # Python accepts half a pair, and the character 0
        check_json(text, True, numeric_in)
    try:
        return jsonb_out(_jsonb(text))
    except (ValueError, NumericValueOutOfRange):
        check_json(text, True, numeric_in)
        raise
    except RecursionError:
        check_json(text, True, numeric_in)
        raise FeatureNotSupported("jsonb values nested so deeply are not supported") from None


def jsonb_out(value: Any) -> str:
    """Return the canonical text of a parsed value.  Keys are sorted by length and bytes.  Of
    duplicate keys, the last one counts.
    """
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, Decimal):
        return numeric_out(value)
    if isinstance(value, _Object):
        members = sorted(dict(value).items(), key=lambda member: _key_order(member[0]))
        shown = (f"{encode_basestring(key)}: {jsonb_out(item)}" for key, item in members)
        return f"{{{', '.join(shown)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(jsonb_out, value))}]"
    return {None: "null", True: "true", False: "false"}[value]


def _key_order(key: str) -> tuple[int, bytes]:
    encoded = key.encode()
    return len(encoded), encoded


FORMS = {"json": text_form(json_in, str), "jsonb": text_form(jsonb_in, str)}
