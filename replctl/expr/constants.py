"""Convert literals to constants (PostgreSQL's make_const() in parse_node.c)."""

from __future__ import annotations

from replctl.errors import PostgresError
from replctl.expr import nodes
from replctl.parser import ast
from replctl.types import text
from replctl.types.integer import decimal_int

_INT4 = range(-(2**31), 2**31)
_INT8 = range(-(2**63), 2**63)
_BASES = {"0x": 16, "0o": 8, "0b": 2}


def constant(raw: ast.Constant) -> nodes.Const:
    """Return a constant; the types of 5, 3000000000, 1.5, 'a', B'1' and true are int4, int8,
    numeric, unknown, bit and bool.

    Raises:
        DataError: the number is too large for any type.
    """
    if raw.kind == "null" or raw.value is None:
        return nodes.Const("unknown", None, pos=raw.pos)
    match raw.kind:
        case "integer":
            return nodes.Const("int4", str(_integer(raw.value)), pos=raw.pos)
        case "boolean":
            return nodes.Const("bool", raw.value[0], pos=raw.pos)
        case "bit":
            return _converted("bit", raw)
        case "float":
            number = _integer(raw.value)
            if number is None or number not in _INT8:
                return _converted("numeric", raw)
            type_ = "int4" if number in _INT4 else "int8"
            return nodes.Const(type_, str(number), pos=raw.pos)
        case _:
            return nodes.Const("unknown", raw.value, pos=raw.pos)


def _integer(value: str) -> int | None:
    """Parse an integer: `-0x1F` -> -31; None for a number with a point or an exponent."""
    sign, digits = (-1, value[1:]) if value.startswith("-") else (1, value)
    base = _BASES.get(digits[:2].lower(), 10)
    plain = digits.replace("_", "")
    if base == 10 and not plain.isdecimal():
        return None
    return sign * (decimal_int(plain) if base == 10 else int(plain[2:], base))


def _converted(type_: str, raw: ast.Constant) -> nodes.Const:
    assert raw.value is not None
    try:
        return nodes.Const(type_, text.canonical(type_, raw.value), pos=raw.pos)
    except PostgresError as error:
        error.position = raw.pos
        raise
