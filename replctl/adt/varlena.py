"""Text and bytea (PostgreSQL's varlena.c, oracle_compat.c, encode.c, quote.c)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import unicodedata
from collections.abc import Callable
from typing import Any, TypeVar

from replctl.adt import case_mapping
from replctl.adt.character_class import members
from replctl.adt.range_check import int4
from replctl.errors import (
    ArraySubscriptError,
    FeatureNotSupported,
    InvalidParameterValue,
    InvalidTextRepresentation,
    NumericValueOutOfRange,
    ProgramLimitExceeded,
    SubstringError,
)
from replctl.types.character import char_byte, char_in, char_of_byte, name_in
from replctl.types.quote import quote_identifier, quote_literal

S = TypeVar("S", str, bytes)
_MAX_BYTES = 0x3FFFFFFF


def substring(value: S, start: int, count: int | None = None) -> S:
    """Return a part of a value; `count` also counts positions before the first character."""
    if count is None:
        return value[max(start, 1) - 1 :]
    if count < 0:
        raise SubstringError("negative substring length not allowed")
    return value[max(start, 1) - 1 : max(start + count - 1, 0)]


def _left(text: str, count: int) -> str:
    return text[:count] if count >= 0 else text[: max(len(text) + count, 0)]


def _right(text: str, count: int) -> str:
    if count >= 0:
        return text[max(len(text) - count, 0) :]
    return text[-count:] if count > -(2**31) else text  # the smallest integer has no negative


def _position(text: S, part: S) -> int:
    return text.find(part) + 1


def _overlay(value: S, replacement: S, start: int, count: int | None = None) -> S:
    count = len(replacement) if count is None else count
    if start <= 0:
        raise SubstringError("negative substring length not allowed")
    end = int4(start + count)
    return value[: start - 1] + replacement + value[max(end, 1) - 1 :]


def _repeat(text: str, count: int) -> str:
    if count > 0 and len(text.encode()) * count > _MAX_BYTES:
        raise ProgramLimitExceeded("requested length too large")
    return text * max(count, 0)


def _pad(text: str, length: int, fill: str, *, left: bool) -> str:
    length = max(length, 0)
    if length * 4 > _MAX_BYTES:
        raise ProgramLimitExceeded("requested length too large")
    if len(text) >= length or not fill:
        return text[:length]
    missing = length - len(text)
    padding = (fill * (missing // len(fill) + 1))[:missing]
    return padding + text if left else text + padding


def _lpad(text: str, length: int, fill: str = " ") -> str:
    return _pad(text, length, fill, left=True)


def _rpad(text: str, length: int, fill: str = " ") -> str:
    return _pad(text, length, fill, left=False)


def _strip(sides: str) -> Callable[..., Any]:
    def apply(value: Any, chars: Any = " ") -> Any:
        if not chars:
            return value
        if "l" in sides:
            value = value.lstrip(chars)
        return value.rstrip(chars) if "r" in sides else value

    return apply


def _replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old else text


def _translate(text: str, source: str, target: str) -> str:
    table: dict[int, str | None] = {}
    for i, char in enumerate(source):
        table.setdefault(ord(char), target[i] if i < len(target) else None)
    return text.translate(table)


def _split_part(text: str, delimiter: str, number: int) -> str:
    if number == 0:
        raise InvalidParameterValue("field position must not be zero")
    if not text:
        return ""
    parts = text.split(delimiter) if delimiter else [text]
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if 0 <= index < len(parts) else ""


def _chr(code: int) -> str:
    if code < 0:
        raise InvalidParameterValue("character number must be positive")
    if code == 0:
        raise ProgramLimitExceeded("null character not permitted")
    if code > 0x10FFFF:
        raise ProgramLimitExceeded(f"requested character too large for encoding: {code}")
    if 0xD800 <= code <= 0xDFFF:
        raise ProgramLimitExceeded(f"requested character not valid for encoding: {code}")
    return chr(code)


def initcap(text: str, *, ascii_only: bool = False) -> str:
    """Capitalize words, which consist of letters and digits."""
    letters = members("alnum")
    result, inside = [], False
    for char in text:
        convert = case_mapping.lower if inside else case_mapping.upper
        result.append(convert(char, ascii_only=ascii_only))
        inside = char in letters if not ascii_only else char.isascii() and char.isalnum()
    return "".join(result)


def _sha(name: str) -> Callable[[bytes], bytes]:
    return lambda value: hashlib.new(name, value).digest()


def _md5(value: bytes) -> str:
    return hashlib.md5(value).hexdigest()


def _encode(value: bytes, encoding: str) -> str:
    match encoding.lower():
        case "hex":
            return value.hex()
        case "base64":
            text = base64.b64encode(value).decode()
            return "\n".join(text[i : i + 76] for i in range(0, len(text), 76))
        case "escape":
            return "".join(_escaped(byte) for byte in value)
    raise InvalidParameterValue(f'unrecognized encoding: "{encoding}"')


def _escaped(byte: int) -> str:
    if byte == 0x5C:
        return "\\\\"
    return f"\\{byte:03o}" if byte == 0 or byte >= 0x80 else chr(byte)


def _decode(text: str, encoding: str) -> bytes:
    match encoding.lower():
        case "hex":
            return _from_hex(text)
        case "base64":
            return _from_base64(text)
        case "escape":
            return _from_escape(text)
    raise InvalidParameterValue(f'unrecognized encoding: "{encoding}"')


def _from_hex(text: str) -> bytes:
    digits = "".join(char for char in text if char not in " \n\t\r")
    for char in digits:
        if char not in "0123456789abcdefABCDEF":
            raise InvalidParameterValue(f'invalid hexadecimal digit: "{char}"')
    if len(digits) % 2:
        raise InvalidParameterValue("invalid hexadecimal data: odd number of digits")
    return bytes.fromhex(digits)


def _from_base64(text: str) -> bytes:
    symbols = "".join(char for char in text if char not in " \n\t\r")
    body = symbols.rstrip("=")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    for char in body:
        if char not in alphabet:
            if char == "=":
                raise InvalidParameterValue('unexpected "=" while decoding base64 sequence')
            raise InvalidParameterValue(
                f'invalid symbol "{char}" found while decoding base64 sequence'
            )
    try:
        if len(symbols) % 4:
            raise binascii.Error
        return base64.b64decode(symbols, validate=True)
    except binascii.Error:
        raise InvalidParameterValue(
            "invalid base64 end sequence",
            hint="Input data is missing padding, is truncated, or is otherwise corrupted.",
        ) from None


def _from_escape(text: str) -> bytes:
    data, result, i = text.encode(), bytearray(), 0
    while i < len(data):
        if data[i] != 0x5C:
            result.append(data[i])
            i += 1
        elif data[i + 1 : i + 2] == b"\\":
            result.append(0x5C)
            i += 2
        elif (
            len(data) >= i + 4
            and chr(data[i + 1]) in "0123"
            and all(chr(byte) in "01234567" for byte in data[i + 2 : i + 4])
        ):
            result.append(int(data[i + 1 : i + 4], 8))
            i += 4
        else:
            raise InvalidTextRepresentation("invalid input syntax for type bytea")
    return bytes(result)


def _byte_index(value: bytes, index: int) -> int:
    if not 0 <= index < len(value):
        raise ArraySubscriptError(f"index {index} out of valid range, 0..{len(value) - 1}")
    return index


def _get_byte(value: bytes, index: int) -> int:
    return value[_byte_index(value, index)]


def _set_byte(value: bytes, index: int, byte: int) -> bytes:
    changed = bytearray(value)
    changed[_byte_index(value, index)] = byte & 255
    return bytes(changed)


def _bit_index(value: bytes, index: int) -> tuple[int, int]:
    if not 0 <= index < len(value) * 8:
        raise ArraySubscriptError(f"index {index} out of valid range, 0..{len(value) * 8 - 1}")
    return index // 8, index % 8


def _get_bit(value: bytes, index: int) -> int:
    byte, bit = _bit_index(value, index)
    return value[byte] >> bit & 1


def _set_bit(value: bytes, index: int, new: int) -> bytes:
    byte, bit = _bit_index(value, index)
    if new not in (0, 1):
        raise InvalidParameterValue("new bit must be 0 or 1")
    changed = bytearray(value)
    changed[byte] = changed[byte] & ~(1 << bit) | new << bit
    return bytes(changed)


def _normalize(text: str, form: str) -> str:
    return unicodedata.normalize(_normal_form(form), text)


def _normal_form(form: str) -> Any:
    if form.upper() not in ("NFC", "NFD", "NFKC", "NFKD"):
        raise InvalidParameterValue(f"invalid normalization form: {form}")
    return form.upper()


def _text_to_array(
    text: str | None, delimiter: str | None, null: str | None = None
) -> list[str | None] | None:
    """Implement string_to_array; split between all characters if the delimiter is NULL."""
    if text is None:
        return None
    if not text:
        return []
    if delimiter is None:
        parts = list(text)
    else:
        parts = text.split(delimiter) if delimiter else [text]
    return [None if null is not None and part == null else part for part in parts]


def _quote_nullable(text: str | None) -> str:
    return "NULL" if text is None else quote_literal(text)


def _int_char(code: int) -> str:
    if not -128 <= code < 128:
        raise NumericValueOutOfRange('"char" out of range')
    return char_of_byte(code & 0xFF)


def _char_int(value: str) -> int:
    byte = char_byte(value)
    return byte - 256 if byte >= 128 else byte


def _char_bpchar(value: str) -> str:
    """Return the character itself; refuse a byte that is not ASCII."""
    if len(value) != 1:
        raise FeatureNotSupported('"char" values that are no text are not supported as char(n)')
    return value


def _bits(value: bytes) -> int:
    return sum(byte.bit_count() for byte in value)


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "text_name": name_in,
    "bpchar_name": lambda text: name_in(text.rstrip(" ")),
    "name_text": str,
    "name_bpchar": str,
    "text_char": char_in,
    "char_text": str,
    "char_bpchar": _char_bpchar,
    "i4tochar": _int_char,
    "chartoi4": _char_int,
    "textcat": lambda a, b: a + b,
    "byteacat": lambda a, b: a + b,
    "textlen": len,
    "bpcharlen": lambda text: len(text.rstrip(" ")),
    "textoctetlen": lambda text: len(text.encode()),
    "bpcharoctetlen": lambda text: len(text.encode()),
    "byteaoctetlen": len,
    "bit_length(text)": lambda text: len(text.encode()) * 8,
    "bit_length(bytea)": lambda value: len(value) * 8,
    "text_substr": substring,
    "text_substr_no_len": substring,
    "bytea_substr": substring,
    "bytea_substr_no_len": substring,
    "text_left": _left,
    "text_right": _right,
    "textpos": _position,
    "byteapos": _position,
    "textoverlay": _overlay,
    "textoverlay_no_len": _overlay,
    "byteaoverlay": _overlay,
    "byteaoverlay_no_len": _overlay,
    "repeat": _repeat,
    "lpad": _lpad,
    "rpad": _rpad,
    "lpad(text,int4)": _lpad,
    "rpad(text,int4)": _rpad,
    **dict.fromkeys(("btrim", "btrim1", "byteatrim"), _strip("lr")),
    **dict.fromkeys(("ltrim", "ltrim1", "bytealtrim"), _strip("l")),
    **dict.fromkeys(("rtrim", "rtrim1", "byteartrim"), _strip("r")),
    "replace_text": _replace,
    "translate": _translate,
    "text_reverse": lambda text: text[::-1],
    "split_part": _split_part,
    "text_starts_with": lambda text, start: text.startswith(start),
    "ascii": lambda text: ord(text[0]) if text else 0,
    "chr": _chr,
    "md5_text": lambda text: _md5(text.encode()),
    "md5_bytea": _md5,
    **{f"sha{bits}_bytea": _sha(f"sha{bits}") for bits in (224, 256, 384, 512)},
    "binary_encode": _encode,
    "binary_decode": _decode,
    "byteaGetByte": _get_byte,
    "byteaSetByte": _set_byte,
    "byteaGetBit": _get_bit,
    "byteaSetBit": _set_bit,
    "bytea_bit_count": _bits,
    "unicode_assigned": lambda text: members("assigned").issuperset(text),
    "unicode_version": lambda: "15.1",
    "unicode_normalize_func": _normalize,
    "unicode_is_normalized": lambda text, form: _normalize(text, form) == text,
    "text_to_array": _text_to_array,
    "text_to_array_null": _text_to_array,
    "quote_literal": quote_literal,
    "quote_nullable": _quote_nullable,
    "quote_ident": quote_identifier,
    "text_larger": max,
    "text_smaller": min,
    "bpchar_larger": lambda a, b: a if a.rstrip(" ") >= b.rstrip(" ") else b,
    "bpchar_smaller": lambda a, b: a if a.rstrip(" ") <= b.rstrip(" ") else b,
}

#: Functions that depend on the collation, by their names in pg_proc.prosrc.  They also take
#: `ascii_only`.
COLLATED: dict[str, Callable[..., Any]] = {
    "lower": case_mapping.lower,
    "upper": case_mapping.upper,
    "initcap": initcap,
}
