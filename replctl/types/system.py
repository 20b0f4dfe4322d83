"""The types of system columns and catalogs: oid, xid, xid8, cid, tid, pg_lsn, snapshots, int2vector
and oidvector (PostgreSQL's oid.c, xid.c, tid.c, pg_lsn.c, xid8funcs.c and numutils.c).
"""

from __future__ import annotations

import re
from functools import partial

from replctl.errors import InvalidTextRepresentation, NumericValueOutOfRange
from replctl.lsn import format_lsn, parse_lsn
from replctl.types.integer import decimal_int
from replctl.types.text_form import BLANKS, text_form

# The syntax of strtoul() in base 0, and in base 10.
_UNSIGNED = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", re.ASCII)
_UNSIGNED_DECIMAL = r"\s*[+-]?[0-9]+"
_TID = re.compile(rf"[^(,)]*[(,]({_UNSIGNED_DECIMAL})?,({_UNSIGNED_DECIMAL})?\)", re.ASCII)
_SNAPSHOT = re.compile(
    rf"({_UNSIGNED_DECIMAL}):({_UNSIGNED_DECIMAL}):((?:{_UNSIGNED_DECIMAL}(?:,|$))*)", re.ASCII
)
_SMALLINT = re.compile(r"[+-]?[0-9]+")
_ULONG = 1 << 64


def parse_oid(text: str, sql_name: str) -> int:
    """Parse an oid, xid or cid: `0x10`, `-1` -> 16, 4294967295.

    Raises:
        InvalidTextRepresentation: `text` is not an integer.
        NumericValueOutOfRange: the number does not fit into 32 bits, signed or unsigned.
    """
    value, end = _strtoul(text, sql_name)
    if text[end:].strip(BLANKS):
        raise InvalidTextRepresentation(f'invalid input syntax for type {sql_name}: "{text}"')
    return _uint32(value, text, sql_name)


def xid8in(text: str) -> int:
    """Parse an xid8: `-1` -> 18446744073709551615.

    Raises:
        InvalidTextRepresentation: `text` is not an integer.
        NumericValueOutOfRange: the number does not fit into 64 bits.
    """
    value, end = _strtoul(text, "xid8")
    if text[end:].strip(BLANKS):
        raise InvalidTextRepresentation(f'invalid input syntax for type xid8: "{text}"')
    return value


def tidin(text: str) -> str:
    """Parse block number and offset: `(1, 2)` -> `(1,2)`.

    Raises:
        InvalidTextRepresentation: `text` is not a pair of numbers, or a number is too large.
    """
    match = _TID.match(text)
    block, offset = (
        (decimal_int(number.strip()) for number in match.groups("")) if match else (-_ULONG, 0)
    )
    if not -(1 << 31) <= block < 1 << 32 or not 0 <= offset <= 0xFFFF:
        raise InvalidTextRepresentation(f'invalid input syntax for type tid: "{text}"')
    return f"({block % (1 << 32)},{offset})"


def pg_lsn_in(text: str) -> int:
    """Parse an LSN: `16/B374D848` -> 0x16B374D848.

    Raises:
        InvalidTextRepresentation: `text` is not an LSN, or has blanks around it.
    """
    if text != text.strip():
        raise InvalidTextRepresentation(f'invalid input syntax for type pg_lsn: "{text}"')
    return parse_lsn(text)


def pg_snapshot_in(text: str) -> str:
    """Parse xmin, xmax and the sorted transactions between: `10:20:10,14,14` -> `10:20:10,14`.

    Raises:
        InvalidTextRepresentation: `text` is not a snapshot.
    """
    match = _SNAPSHOT.fullmatch(text)
    if match:
        xmin, xmax = (_saturate(number) for number in match.groups()[:2])
        xips = [_saturate(number) for number in match[3].split(",") if number]
        in_order = xips == sorted(xips)
        if 0 < xmin <= xmax and in_order and all(xmin <= xip < xmax for xip in xips):
            return f"{xmin}:{xmax}:{','.join(map(str, dict.fromkeys(xips)))}"
    raise InvalidTextRepresentation(f'invalid input syntax for type pg_snapshot: "{text}"')


def int2vectorin(text: str) -> tuple[int, ...]:
    """Parse numbers: `1 2 3` -> (1, 2, 3).

    Raises:
        InvalidTextRepresentation, NumericValueOutOfRange: an item is not an int2.
    """
    result = []
    rest = text.lstrip(BLANKS)
    while rest:
        match = _SMALLINT.match(rest)
        if match and not -(1 << 15) <= decimal_int(match[0]) < 1 << 15:
            raise NumericValueOutOfRange(f'value "{rest}" is out of range for type smallint')
        if match is None or rest[match.end() :][:1] not in ("", " "):
            raise InvalidTextRepresentation(f'invalid input syntax for type smallint: "{rest}"')
        result.append(decimal_int(match[0]))
        rest = rest[match.end() :].lstrip(BLANKS)
    return tuple(result)


def oidvectorin(text: str) -> tuple[int, ...]:
    """Parse numbers: `1 2 3` -> (1, 2, 3).

    Raises:
        InvalidTextRepresentation, NumericValueOutOfRange: an item is not an oid.
    """
    result = []
    rest = text.lstrip(BLANKS)
    while rest:
        value, end = _strtoul(rest, "oid")
        result.append(_uint32(value, rest, "oid"))
        rest = rest[end:].lstrip(BLANKS)
    return tuple(result)


def vector_out(value: tuple[int, ...]) -> str:
    """Print numbers: (1, 2, 3) -> `1 2 3`."""
    return " ".join(map(str, value))


def _strtoul(text: str, sql_name: str) -> tuple[int, int]:
    """Return the number at the beginning of `text`, and its end.  A negative number wraps to 64
    bits.
    """
    match = _UNSIGNED.match(text)
    if match is None:
        raise InvalidTextRepresentation(f'invalid input syntax for type {sql_name}: "{text}"')
    sign, digits = match.groups()
    base = 16 if digits[1:2] in ("x", "X") else 8 if digits[0] == "0" else 10
    magnitude = decimal_int(digits) if base == 10 else int(digits, base)
    if magnitude >= _ULONG:
        raise NumericValueOutOfRange(f'value "{text}" is out of range for type {sql_name}')
    return (-magnitude if sign == "-" else magnitude) % _ULONG, match.end()


def _uint32(value: int, text: str, sql_name: str) -> int:
    """Convert a signed or unsigned number to 32 bits: (-1, `-1`) -> 4294967295."""
    if (1 << 32) <= value < _ULONG - (1 << 31):
        raise NumericValueOutOfRange(f'value "{text}" is out of range for type {sql_name}')
    return value % (1 << 32)


def _saturate(text: str) -> int:
    """Parse a decimal number like strtoul(): a number that is too large becomes the maximum, and a
    negative number wraps.
    """
    number = decimal_int(text.strip())
    return number % _ULONG if abs(number) < _ULONG else _ULONG - 1


FORMS = {
    "oid": text_form(partial(parse_oid, sql_name="oid"), str),
    "xid": text_form(partial(parse_oid, sql_name="xid"), str),
    "cid": text_form(partial(parse_oid, sql_name="cid"), str),
    "xid8": text_form(xid8in, str),
    "tid": text_form(tidin, str),
    "pg_lsn": text_form(pg_lsn_in, format_lsn),
    "pg_snapshot": text_form(pg_snapshot_in, str),
    "txid_snapshot": text_form(pg_snapshot_in, str),
    "int2vector": text_form(int2vectorin, vector_out),
    "oidvector": text_form(oidvectorin, vector_out),
}
