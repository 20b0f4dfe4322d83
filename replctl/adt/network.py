"""inet and cidr as canonical texts (PostgreSQL's network.c)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, NamedTuple

from replctl.adt.range_check import integer
from replctl.errors import InvalidParameterValue, NumericValueOutOfRange
from replctl.types.character import byte_difference
from replctl.types.inet import network_in


class Address(NamedTuple):
    """An address as a number of `size` bits (32 or 128)."""

    size: int
    number: int
    bits: int

    @property
    def host_mask(self) -> int:
        return (1 << (self.size - self.bits)) - 1

    @property
    def network(self) -> int:
        return self.number & ~self.host_mask


@lru_cache(2000)
def load(text: str) -> Address:
    address, _, bits = text.partition("/")
    parsed = ip_address(address)
    size = 32 if parsed.version == 4 else 128
    return Address(size, int(parsed), int(bits) if bits else size)


def dump(value: Address, *, is_cidr: bool = False) -> str:
    """Return the canonical text; omit the mask of an inet with full length."""
    return network_in(f"{_host(value)}/{value.bits}", is_cidr)


def _host(value: Address) -> str:
    """Return the text of the address without its mask, like inet_net_ntop."""
    from replctl.types.inet import _ipv6_text

    octets = value.number.to_bytes(value.size // 8)
    return ".".join(map(str, octets)) if value.size == 32 else _ipv6_text(octets)


def key(text: str) -> _Ordered:
    """Return a key that sorts by family, common network bits, number of bits, and all bits
    (network_cmp_internal).
    """
    return _Ordered(load(text))


def compare(a: str, b: str) -> int:
    """Return the result of network_cmp."""
    return _order(load(a), load(b))


def _order(a: Address, b: Address) -> int:
    if a.size != b.size:
        return -1 if a.size < b.size else 1
    return (
        _order_of_bits(a, b, min(a.bits, b.bits)) or a.bits - b.bits or _order_of_bits(a, b, a.size)
    )


def _order_of_bits(a: Address, b: Address, count: int) -> int:
    """Compare the first `count` bits.  Return the difference of the whole bytes; if they are equal,
    the order (-1, 0 or 1) of the rest.
    """
    first, second = (item.number.to_bytes(item.size // 8)[: count // 8] for item in (a, b))
    shift = a.size - count
    rest = (a.number >> shift > b.number >> shift) - (a.number >> shift < b.number >> shift)
    return byte_difference(first, second) or rest


class _Ordered:
    """A key that sorts like network_cmp."""

    def __init__(self, value: Address) -> None:
        self._value = value

    def _compare(self, other: _Ordered) -> int:
        return _order(self._value, other._value)

    def __lt__(self, other: _Ordered) -> bool:
        return self._compare(other) < 0

    def __le__(self, other: _Ordered) -> bool:
        return self._compare(other) <= 0

    def __gt__(self, other: _Ordered) -> bool:
        return self._compare(other) > 0

    def __ge__(self, other: _Ordered) -> bool:
        return self._compare(other) >= 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ordered) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)


def _within(a: Address, b: Address, *, or_equal: bool) -> bool:
    """Return `a << b`, or `a <<= b` if `or_equal`."""
    if a.size != b.size or (a.bits < b.bits or (a.bits == b.bits and not or_equal)):
        return False
    return (a.number ^ b.number) >> (b.size - b.bits) == 0


def _overlap(a: Address, b: Address) -> bool:
    shift = a.size - min(a.bits, b.bits)
    return a.size == b.size and (a.number ^ b.number) >> shift == 0


def _set_length(value: Address, bits: int) -> Address:
    if bits == -1:
        bits = value.size
    if not 0 <= bits <= value.size:
        raise InvalidParameterValue(f"invalid mask length: {bits}")
    return value._replace(bits=bits)


def _logical(verb: str, function: Callable[[int, int], int]) -> Callable[[str, str], str]:
    def apply(left: str, right: str) -> str:
        a, b = load(left), load(right)
        if a.size != b.size:
            raise InvalidParameterValue(f"cannot {verb} inet values of different sizes")
        return dump(Address(a.size, function(a.number, b.number), max(a.bits, b.bits)))

    return apply


def _plus(value: Address, count: int) -> str:
    number = value.number + count
    if not 0 <= number < 1 << value.size:
        raise NumericValueOutOfRange("result is out of range")
    return dump(value._replace(number=number))


def _minus(a: Address, count: int) -> str:
    """Subtract a number from an address; the smallest int8 is its own negative."""
    return _plus(a, count if count == -(2**63) else -count)


def _difference(a: Address, b: Address) -> int:
    if a.size != b.size:
        raise InvalidParameterValue("cannot subtract inet values of different sizes")
    difference = a.number - b.number
    if not -(2**63) <= difference < 2**63:
        raise NumericValueOutOfRange("result is out of range")
    return integer(difference, "int8")


def _merge(a: Address, b: Address) -> str:
    if a.size != b.size:
        raise InvalidParameterValue("cannot merge addresses from different families")
    bits = min(a.bits, b.bits)
    while bits and (a.number ^ b.number) >> (a.size - bits):
        bits -= 1
    merged = Address(a.size, a.number, bits)
    return dump(merged._replace(number=merged.network), is_cidr=True)


def _loaded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of texts that calls `function` with addresses."""
    return lambda *args: function(*(load(arg) if isinstance(arg, str) else arg for arg in args))


def _abbreviated_cidr(value: Address) -> str:
    """Implement cidr_abbrev, which omits octets after the mask."""
    if value.size == 128:
        return f"{_abbreviated_words(value)}/{value.bits}"
    octets = value.number.to_bytes(4)[: max((value.bits + 7) // 8, 1)]
    return f"{'.'.join(map(str, octets))}/{value.bits}"


def _abbreviated_words(value: Address) -> str:
    """Print an IPv6 network without the words after the mask (inet_cidr_ntop_ipv6)."""
    if not value.bits:
        return "::"
    octets = value.network.to_bytes(16)
    count = max((value.bits + 15) // 16, 2)
    words = [int.from_bytes(octets[2 * i : 2 * i + 2]) for i in range(count)]
    start, length = _longest_zeros(words)
    has_ipv4 = (
        length != count
        and start == 0
        and (
            length == 6
            or (length == 5 and words[5:6] == [0xFFFF])
            or (length == 7 and octets[14] != 0 and octets[15] != 1)
        )
    )
    text = ""
    for i, word in enumerate(words):
        if start <= i < start + length:
            text += ":" * ((i == start) + (i == count - 1))
        elif has_ipv4 and i > 5:
            text += f"{':' if i == 6 else '.'}{word >> 8}"
            if i != 7 or value.bits > 120:
                text += f".{word & 0xFF}"
        else:
            text += f"{':' if text else ''}{word:x}"
    return text


def _longest_zeros(words: Sequence[int]) -> tuple[int, int]:
    """Return the start and the length of the longest run of zeros.  As in PostgreSQL, zeros after a
    run that is not longer than an earlier one count as part of that run.
    """
    start = length = run_start = run_length = 0
    for i, word in enumerate([*words, 1]):
        if word == 0:
            run_start = i if run_length == 0 else run_start
            run_length += 1
        elif run_length > length:
            start, length, run_length = run_start, run_length, 0
    return start, length


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "network_sub": _loaded(lambda a, b: _within(a, b, or_equal=False)),
    "network_subeq": _loaded(lambda a, b: _within(a, b, or_equal=True)),
    "network_sup": _loaded(lambda a, b: _within(b, a, or_equal=False)),
    "network_supeq": _loaded(lambda a, b: _within(b, a, or_equal=True)),
    "network_overlap": _loaded(_overlap),
    "network_host": _loaded(_host),
    "network_show": _loaded(lambda a: f"{_host(a)}/{a.bits}"),
    "network_masklen": _loaded(lambda a: a.bits),
    "network_family": _loaded(lambda a: 4 if a.size == 32 else 6),
    "network_network": _loaded(lambda a: dump(a._replace(number=a.network), is_cidr=True)),
    "network_broadcast": _loaded(lambda a: dump(a._replace(number=a.number | a.host_mask))),
    "network_netmask": _loaded(
        lambda a: dump(Address(a.size, ((1 << a.size) - 1) & ~a.host_mask, a.size))
    ),
    "network_hostmask": _loaded(lambda a: dump(Address(a.size, a.host_mask, a.size))),
    "inet_to_cidr": _loaded(lambda a: dump(a._replace(number=a.network), is_cidr=True)),
    "inet_set_masklen": _loaded(lambda a, bits: dump(_set_length(a, bits))),
    "cidr_set_masklen": _loaded(
        lambda a, bits: (lambda v: dump(v._replace(number=v.network), is_cidr=True))(
            _set_length(a, bits)
        )
    ),
    "inet_same_family": _loaded(lambda a, b: a.size == b.size),
    "inet_merge": _loaded(_merge),
    "inetnot": _loaded(lambda a: dump(a._replace(number=((1 << a.size) - 1) ^ a.number))),
    "inetand": _logical("AND", lambda a, b: a & b),
    "inetor": _logical("OR", lambda a, b: a | b),
    "inetpl": _loaded(_plus),
    "int8pl_inet(int8,inet)": lambda count, text: _plus(load(text), count),
    "inetmi_int8": _loaded(_minus),
    "inetmi": _loaded(_difference),
    "inet_abbrev": lambda text: text,
    "cidr_abbrev": _loaded(_abbreviated_cidr),
    "network_larger": lambda a, b: a if key(a) > key(b) else b,
    "network_smaller": lambda a, b: a if key(a) < key(b) else b,
}
