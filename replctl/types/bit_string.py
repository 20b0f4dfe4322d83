"""bit and varbit: a value is a str of 0 and 1 (PostgreSQL's varbit.c)."""

from __future__ import annotations

from datetime import datetime

from replctl.errors import (
    InvalidTextRepresentation,
    StringDataLengthMismatch,
    StringDataRightTruncation,
)
from replctl.types.text_form import TextForm


def bit_in(text: str, typmod: int, now: datetime | None) -> str:
    """Parse a bit string: `101`, `b101`, `X5` -> `101`, `101`, `0101`.

    Raises:
        StringDataLengthMismatch: the length of the bit string differs from the modifier.
        InvalidTextRepresentation: a digit is not valid.
    """
    digits, is_hex = _digits(text)
    length = _length(digits, is_hex)
    if typmod > 0 and length != typmod:
        raise _length_mismatch(length, typmod)
    return _bits(digits, is_hex)


def varbit_in(text: str, typmod: int, now: datetime | None) -> str:
    """Parse like bit_in, except that the modifier limits the length.

    Raises:
        StringDataRightTruncation: the bit string is longer than the modifier allows.
        InvalidTextRepresentation: a digit is not valid.
    """
    digits, is_hex = _digits(text)
    if 0 < typmod < _length(digits, is_hex):
        raise _too_long(typmod)
    return _bits(digits, is_hex)


def bit(value: str, typmod: int, explicit: bool) -> str:
    """Cast to a length: (`101`, 4) -> `1010`; an explicit cast cuts and fills on the right.

    Raises:
        StringDataLengthMismatch: the length differs in an implicit cast.
    """
    if typmod <= 0 or len(value) == typmod:
        return value
    if not explicit:
        raise _length_mismatch(len(value), typmod)
    return value[:typmod].ljust(typmod, "0")


def varbit(value: str, typmod: int, explicit: bool) -> str:
    """Cast to a maximum length: (`101`, 2) -> `10`; only an explicit cast cuts.

    Raises:
        StringDataRightTruncation: the bit string is too long for an implicit cast.
    """
    if typmod <= 0 or len(value) <= typmod:
        return value
    if not explicit:
        raise _too_long(typmod)
    return value[:typmod]


def bit_bytes(value: str) -> bytes:
    r"""Return the bits as bytes: `101` -> b"\xa0"; the last byte is filled with zeros."""
    size = -(-len(value) // 8)
    return int(value.ljust(8 * size, "0") or "0", 2).to_bytes(size)


def _digits(text: str) -> tuple[str, bool]:
    if text[:1] in ("b", "B"):
        return text[1:], False
    if text[:1] in ("x", "X"):
        return text[1:], True
    return text, False


def _length(digits: str, is_hex: bool) -> int:
    return len(digits.encode()) * (4 if is_hex else 1)  # counted before the digits are checked


def _bits(digits: str, is_hex: bool) -> str:
    known, what = ("0123456789abcdefABCDEF", "hexadecimal") if is_hex else ("01", "binary")
    for digit in digits:
        if digit not in known:
            raise InvalidTextRepresentation(f'"{digit}" is not a valid {what} digit')
    return f"{int(digits, 16):0{4 * len(digits)}b}" if is_hex and digits else digits


def _length_mismatch(length: int, typmod: int) -> StringDataLengthMismatch:
    return StringDataLengthMismatch(f"bit string length {length} does not match type bit({typmod})")


def _too_long(typmod: int) -> StringDataRightTruncation:
    return StringDataRightTruncation(f"bit string too long for type bit varying({typmod})")


FORMS = {"bit": TextForm(bit_in, str, bit), "varbit": TextForm(varbit_in, str, varbit)}
