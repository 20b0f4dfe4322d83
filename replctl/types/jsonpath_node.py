"""The nodes of a jsonpath, and their text (PostgreSQL's jsonpath.c).

The text has parentheses where the priority of operators needs them, and around the whole path if it
is an operation: `1 + 2` is printed as `(1 + 2)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from json.encoder import encode_basestring
from typing import TypeAlias, assert_never

from replctl.errors import SqlSyntaxError
from replctl.record import dataclass
from replctl.types.numeric import numeric_out

LAST_LEVEL = 2**32 - 1  # the value of `last` in .**{2 to last}


@dataclass(frozen=True, slots=True)
class Root:
    """`$`."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A string, true, false, null."""

    value: str | bool | None


@dataclass(frozen=True, slots=True)
class Number:
    value: Decimal


@dataclass(frozen=True, slots=True)
class Variable:
    name: str


@dataclass(frozen=True, slots=True)
class Current:
    """`@`, the item that a filter tests."""


@dataclass(frozen=True, slots=True)
class Last:
    """`last`, the last index of an array."""


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Sign:
    operator: str
    argument: Node


@dataclass(frozen=True, slots=True)
class Not:
    argument: Node


@dataclass(frozen=True, slots=True)
class IsUnknown:
    argument: Node


@dataclass(frozen=True, slots=True)
class Exists:
    argument: Node


@dataclass(frozen=True, slots=True)
class LikeRegex:
    argument: Node
    pattern: str
    flags: str


@dataclass(frozen=True, slots=True)
class Filter:
    """`?(predicate)`."""

    predicate: Node


@dataclass(frozen=True, slots=True)
class Subscripts:
    """`[1,2 to 3]`: pairs of bounds; the second is None for a single index."""

    ranges: tuple[tuple[Node, Node | None], ...]


@dataclass(frozen=True, slots=True)
class Key:
    """`.a`."""

    name: str


@dataclass(frozen=True, slots=True)
class AnyKey:
    """`.*`."""


@dataclass(frozen=True, slots=True)
class AnyElement:
    """`[*]`."""


@dataclass(frozen=True, slots=True)
class AnyLevel:
    """`.**{1 to 3}`: the levels below; 0 is the item itself."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Method:
    """`.decimal(4,1)`."""

    name: str
    arguments: tuple[str | Decimal, ...] = ()


Accessor: TypeAlias = Key | AnyKey | AnyElement | AnyLevel | Method | Filter | Subscripts


@dataclass(frozen=True, slots=True)
class Path:
    """`base.key[0]?(@ > 1)`."""

    base: Node
    accessors: tuple[Accessor, ...]


Node: TypeAlias = (
    "Root | Literal | Number | Variable | Current | Last | Binary | Sign | Not | IsUnknown | Exists"
    " | LikeRegex | Path"
)

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "starts with")
_PRIORITIES = {
    "||": 0,
    "&&": 1,
    **dict.fromkeys(_COMPARISONS, 2),
    "+": 3,
    "-": 3,
    "*": 4,
    "/": 4,
    "%": 4,
}
_SIGN_PRIORITY = 5
_TOP_PRIORITY = 6


def is_predicate(node: Node) -> bool:
    """Return whether a node is a predicate, which cannot be an operand of an operator."""
    if isinstance(node, Binary):
        return _PRIORITIES[node.operator] <= 2
    return isinstance(node, Not | IsUnknown | Exists | LikeRegex)


def render(node: Node) -> str:
    """Print a path such as `$."a"[*]?(@ > 2)`."""
    return _render(node, has_parentheses=True)


def parts(node: Node | Accessor) -> Iterator[Node | Accessor]:
    """Yield a node and all its parts."""
    yield node
    match node:
        case Binary():
            inner: tuple[Node | Accessor, ...] = (node.left, node.right)
        case Sign() | Not() | IsUnknown() | Exists() | LikeRegex():
            inner = (node.argument,)
        case Path():
            inner = (node.base, *node.accessors)
        case Filter():
            inner = (node.predicate,)
        case Subscripts():
            inner = tuple(item for pair in node.ranges for item in pair if item is not None)
        case _:
            inner = ()
    for item in inner:
        yield from parts(item)


def quote(text: str) -> str:
    r"""Quote a key: `a"b` -> `"a\"b"`."""
    return encode_basestring(text)


def check(node: Node, in_filter: bool = False, in_subscript: bool = False) -> None:
    """Check that `@` is inside a filter and `last` inside a subscript, as in `$[last]?(@ > 1)`.

    Args:
        in_filter: the node is inside a filter, so `@` has an item.
        in_subscript: the node is inside a subscript, so `last` has an array.

    Raises:
        SqlSyntaxError: `@` or `last` is in another place.
    """
    match node:
        case Current():
            if not in_filter:
                raise SqlSyntaxError("@ is not allowed in root expressions")
        case Last():
            if not in_subscript:
                raise SqlSyntaxError("LAST is allowed only in array subscripts")
        case Root() | Literal() | Number() | Variable():
            pass
        case Binary():
            check(node.left, in_filter, in_subscript)
            check(node.right, in_filter, in_subscript)
        case Sign() | Not() | IsUnknown() | Exists() | LikeRegex():
            check(node.argument, in_filter, in_subscript)
        case Path():
            check(node.base, in_filter, in_subscript)
            for accessor in node.accessors:
                _check_accessor(accessor, in_filter, in_subscript)
        case _:
            assert_never(node)


def _check_accessor(accessor: Accessor, in_filter: bool, in_subscript: bool) -> None:
    if isinstance(accessor, Filter):
        check(accessor.predicate, True, in_subscript)
    elif isinstance(accessor, Subscripts):
        for lower, upper in accessor.ranges:
            check(lower, in_filter, True)
            if upper is not None:
                check(upper, in_filter, True)


def _priority(node: Node) -> int:
    if isinstance(node, Path):
        return _priority(node.base)
    if isinstance(node, Binary):
        return _PRIORITIES[node.operator]
    return _SIGN_PRIORITY if isinstance(node, Sign) else _TOP_PRIORITY


def _render(node: Node, has_parentheses: bool) -> str:
    match node:
        case Root():
            return "$"
        case Literal():
            return _literal(node.value)
        case Variable():
            return "$" + quote(node.name)
        case Number():
            return numeric_out(node.value)
        case Current():
            return "@"
        case Last():
            return "last"
        case Binary():
            left, right = _operand(node.left, node), _operand(node.right, node)
            shown = f"{left} {node.operator} {right}"
        case Sign():
            shown = node.operator + _operand(node.argument, node)
        case LikeRegex():
            flags = f' flag "{node.flags}"' if node.flags else ""
            shown = f"{_operand(node.argument, node)} like_regex {quote(node.pattern)}{flags}"
        case Not():
            return f"!({_render(node.argument, False)})"
        case IsUnknown():
            return f"({_render(node.argument, False)}) is unknown"
        case Exists():
            return f"exists ({_render(node.argument, False)})"
        case Path():
            base = _render(node.base, has_parentheses)
            if isinstance(node.base, Number):
                base = f"({base})"
            return base + "".join(map(_render_accessor, node.accessors))
        case _:
            assert_never(node)
    return f"({shown})" if has_parentheses else shown


def _literal(value: str | bool | None) -> str:
    if isinstance(value, str):
        return quote(value)
    return {None: "null", True: "true", False: "false"}[value]


def _levels(first: int, last: int) -> str:
    if (first, last) == (0, LAST_LEVEL):
        return ""
    names = ["last" if level == LAST_LEVEL else str(level) for level in (first, last)]
    return f"{{{names[0]}}}" if first == last else f"{{{names[0]} to {names[1]}}}"


def _operand(operand: Node, node: Node) -> str:
    return _render(operand, _priority(operand) <= _priority(node))


def _render_accessor(accessor: Accessor) -> str:
    match accessor:
        case Key():
            return "." + quote(accessor.name)
        case AnyKey():
            return ".*"
        case AnyElement():
            return "[*]"
        case AnyLevel():
            return ".**" + _levels(accessor.first, accessor.last)
        case Method():
            shown = (
                quote(item) if isinstance(item, str) else numeric_out(item)
                for item in accessor.arguments
            )
            return f".{accessor.name}({','.join(shown)})"
        case Filter():
            return f"?({_render(accessor.predicate, False)})"
        case Subscripts():
            shown = (
                _render(lower, False) + (f" to {_render(upper, False)}" if upper else "")
                for lower, upper in accessor.ranges
            )
            return f"[{','.join(shown)}]"
        case _:
            assert_never(accessor)
