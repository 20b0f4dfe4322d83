"""inet and cidr: a value is its canonical text (PostgreSQL's network.c, inet_net_pton.c and
inet_net_ntop.c).
"""

from __future__ import annotations

import re
from functools import partial
from itertools import groupby

from replctl.errors import InvalidTextRepresentation
from replctl.types.integer import decimal_int
from replctl.types.text_form import text_form

_OCTETS = r"[0-9]+(?:\.[0-9]+)*"
_INET = re.compile(rf"({_OCTETS})\.?(?:/([0-9]+))?")
_CIDR = re.compile(rf"(0[xX][0-9a-fA-F]+|{_OCTETS})(?:/([0-9]+))?")
_IPV6 = re.compile(r"([0-9a-fA-F:.]+)(?:/([0-9]+))?")
_EMBEDDED_OCTET = re.compile(r"0?|[1-9][0-9]{0,2}")


class _NoAddress(Exception):
    """Raised if the text is not an address; the caller raises the server's error."""


def network_in(text: str, is_cidr: bool) -> str:
    """Return the canonical text.

    (`192.168.100.128/25`, True), (`10.1`, True), (`::ffff:1.2.3.4/128`, False)
    -> `192.168.100.128/25`, `10.1.0.0/16`, `::ffff:1.2.3.4`.

    Raises:
        InvalidTextRepresentation: `text` is not an address, or it is a cidr with bits to the right
            of its mask.
    """
    try:
        if ":" in text:
            address, bits = _ipv6(text)
            size = 16
        else:
            address, bits = _ipv4_cidr(text) if is_cidr else _ipv4_inet(text)
            size = 4
    except _NoAddress:
        name = "cidr" if is_cidr else "inet"
        raise InvalidTextRepresentation(f'invalid input syntax for type {name}: "{text}"') from None
    if is_cidr and int.from_bytes(address) & ((1 << (8 * size - bits)) - 1):
        raise InvalidTextRepresentation(
            f'invalid cidr value: "{text}"', detail="Value has bits set to right of mask."
        )
    shown = ".".join(map(str, address)) if size == 4 else _ipv6_text(address)
    return shown if bits == 8 * size and not is_cidr else f"{shown}/{bits}"


def _ipv4_inet(text: str) -> tuple[bytes, int]:
    octets, bits = _ipv4_parts(_INET.fullmatch(text))
    if bits is None and len(octets) < 4:
        raise _NoAddress
    bits = 32 if bits is None else bits
    if bits // 8 > len(octets):
        raise _NoAddress
    return bytes(octets).ljust(4, b"\0"), bits


def _ipv4_cidr(text: str) -> tuple[bytes, int]:
    octets, bits = _ipv4_parts(_CIDR.fullmatch(text))
    if bits is None:
        bits = max(_class_bits(octets[0]), 8 * len(octets))
        if bits == 8 and octets[0] == 224:
            bits = 4  # 224 alone means all of class D, 224.0.0.0/4
    return bytes(octets).ljust(4, b"\0"), bits


def _class_bits(first: int) -> int:
    """Return the number of bits of the network's class, A to E."""
    for least, bits in ((240, 32), (224, 8), (192, 24), (128, 16)):
        if first >= least:
            return bits
    return 8


def _ipv4_parts(match: re.Match[str] | None) -> tuple[list[int], int | None]:
    if match is None:
        raise _NoAddress
    if match[1][:2].lower() == "0x":
        nibbles = match[1][2:]
        octets = list(bytes.fromhex(nibbles + "0" * (len(nibbles) % 2)))
    else:
        octets = [decimal_int(octet) for octet in match[1].split(".")]
    bits = None if match[2] is None else decimal_int(match[2])
    if len(octets) > 4 or max(octets) > 255 or (bits or 0) > 32:
        raise _NoAddress
    return octets, bits


def _ipv6(text: str) -> tuple[bytes, int]:
    match = _IPV6.fullmatch(text)
    if match is None:
        raise _NoAddress
    address, bits = match.groups()
    if bits is not None and re.search("(?:^|:)[0-9a-fA-F]+:$", address):
        address = address[:-1]  # the server accepts a colon, or a point, before the mask
    if bits is None and address.endswith("."):
        raise _NoAddress
    head, gap, tail = address.partition("::")
    before, after = _words(head, is_last=not gap), _words(tail, is_last=True)
    missing = 8 - len(before) - len(after)
    if missing < 0 or (missing == 0) == bool(gap):
        raise _NoAddress
    words = [*before, *([0] * missing), *after]
    if bits is not None and ((len(bits) > 1 and bits[0] == "0") or decimal_int(bits) > 128):
        raise _NoAddress
    return b"".join(word.to_bytes(2) for word in words), 128 if bits is None else int(bits)


def _words(text: str, is_last: bool) -> list[int]:
    """Parse the words of an IPv6 address: `1:ff:1.2.3.4` -> [1, 255, 258, 772].  Only the last one
    may be an IPv4 address.
    """
    words: list[int] = []
    items = text.split(":") if text else []
    for number, item in enumerate(items):
        if "." in item and is_last and number == len(items) - 1:
            words += _embedded_ipv4(item)
        elif re.fullmatch(r"[0-9a-fA-F]{1,4}", item):
            words.append(int(item, 16))
        else:
            raise _NoAddress
    return words


def _embedded_ipv4(text: str) -> tuple[int, int]:
    """Parse an IPv4 address into two words: `1.2.3.4` -> (0x102, 0x304).  Omitted parts are 0, even
    at the end.
    """
    octets = text.split(".")
    if len(octets) > 4 or not all(_EMBEDDED_OCTET.fullmatch(octet) for octet in octets):
        raise _NoAddress
    a, b, c, d = (*(int(octet or 0) for octet in octets), 0, 0)[:4]
    if max(a, b, c, d) > 255:
        raise _NoAddress
    return a << 8 | b, c << 8 | d


def _ipv6_text(address: bytes) -> str:
    words = [int.from_bytes(address[i : i + 2]) for i in range(0, 16, 2)]
    start, length = _longest_zeros(words)
    # An embedded IPv4 address is printed in IPv4 notation.
    if start == 0 and (length == 6 or (length == 5 and words[5] == 0xFFFF)):
        dotted = ".".join(map(str, address[12:]))
        return f"::{'ffff:' if length == 5 else ''}{dotted}"
    shown = [f"{word:x}" for word in words]
    if length < 2:
        return ":".join(shown)
    return f"{':'.join(shown[:start])}::{':'.join(shown[start + length :])}"


def _longest_zeros(words: list[int]) -> tuple[int, int]:
    """Return start and length of the longest run of zeros, the first one of equal runs."""
    runs = []
    for is_zero, group in groupby(range(8), lambda i: words[i] == 0):
        run = list(group)
        if is_zero:
            runs.append((run[0], len(run)))
    return max(runs, key=lambda run: run[1], default=(-1, 0))


FORMS = {
    "inet": text_form(partial(network_in, is_cidr=False), str),
    "cidr": text_form(partial(network_in, is_cidr=True), str),
}
