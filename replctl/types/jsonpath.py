"""jsonpath: a value is its canonical text (PostgreSQL's jsonpath_gram.y and jsonpath.c).

The pattern of like_regex is not compiled.  So an invalid pattern is accepted here.
"""

from __future__ import annotations

from decimal import Decimal

from replctl.errors import FeatureNotSupported, InvalidTextRepresentation, SqlSyntaxError
from replctl.types import jsonpath_node as node
from replctl.types.integer import int4in
from replctl.types.jsonpath_node import Node
from replctl.types.jsonpath_scan import KEYWORDS, Scanner, Token, error_at
from replctl.types.numeric import numeric_in, numeric_uminus
from replctl.types.text_form import text_form

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_METHOD_NAMES = (
    "abs bigint boolean ceiling date double floor integer keyvalue number size string type"
)
_METHODS = frozenset(_METHOD_NAMES.split())
_METHODS_WITH_PRECISION = frozenset({"time", "time_tz", "timestamp", "timestamp_tz"})
_CONSTANTS = {"true": True, "false": False, "null": None}
_REGEX_FLAGS = "ismxq"  # in the order in which they are printed
_MAX_DECIMAL_ARGUMENTS = 2


def jsonpath_in(text: str) -> str:
    """Return the canonical text: `lax $.a[*]?(@.b>2)` -> `$."a"[*]?(@."b" > 2)`.

    Raises:
        SqlSyntaxError: `text` is not a path, or has `@` or `last` in a wrong place.
        InvalidTextRepresentation, UntranslatableCharacter: the path is empty, or an escape is
            wrong.
        NumericValueOutOfRange: a number is too large.
        FeatureNotSupported: the path uses the flag x of like_regex, which PostgreSQL also refuses.
    """
    is_strict, path = parsed(text)
    return ("strict " if is_strict else "") + node.render(path)


def parsed(text: str) -> tuple[bool, Node]:
    """Parse a path, and return whether it is strict, and its root node.

    Raises:
        PostgresError: see jsonpath_in.
    """
    parser = _Parser(text)
    if parser.token.kind == "end":
        raise InvalidTextRepresentation(f'invalid input syntax for type jsonpath: "{text}"')
    is_strict, path = parser.parse()
    node.check(path)
    return is_strict, path


class _Parser:
    """A recursive descent parser.  As in the server's grammar, a predicate is not an expression, so
    that errors name the same token as the server's.
    """

    def __init__(self, text: str) -> None:
        self._scanner = Scanner(text)
        self.token = self._scanner.next()

    def parse(self) -> tuple[bool, Node]:
        """Parse the whole path, and return whether it is strict, and its root node."""
        is_strict = False
        if self.token.kind in ("strict", "lax"):
            is_strict = self._take().kind == "strict"
        path = self._disjunction()
        self._expect("end")
        return is_strict, path

    def _disjunction(self) -> Node:
        left = self._conjunction()
        while self.token.kind == "||" and node.is_predicate(left):
            self._take()
            left = node.Binary("||", left, _predicate(self, self._conjunction()))
        return left

    def _conjunction(self) -> Node:
        left = self._negation()
        while self.token.kind == "&&" and node.is_predicate(left):
            self._take()
            left = node.Binary("&&", left, _predicate(self, self._negation()))
        return left

    def _negation(self) -> Node:
        if self.token.kind != "!":
            return self._comparison()
        self._take()
        if self.token.kind == "exists":
            return node.Not(self._exists())
        self._expect("(")
        argument = _predicate(self, self._disjunction())
        self._expect(")")
        return node.Not(argument)

    def _comparison(self) -> Node:
        if self.token.kind == "exists":
            return self._exists()
        is_parenthesized = self.token.kind == "("
        left = self._sum()
        if node.is_predicate(left):
            if is_parenthesized and self.token.kind == "is":
                self._take()
                self._expect("unknown")
                return node.IsUnknown(left)
            return left
        kind = self.token.kind
        if kind in _COMPARISONS:
            self._take()
            return node.Binary(kind, left, _expression(self, self._sum()))
        if kind == "starts":
            self._take()
            self._expect("with")
            if self.token.kind not in ("quoted", "variable"):
                raise error_at("syntax error", self.token.near)
            return node.Binary("starts with", left, self._primary())
        if kind == "like_regex":
            return self._like_regex(left)
        return left

    def _like_regex(self, argument: Node) -> Node:
        self._take()
        pattern = self._expect("quoted").value
        flags = ""
        if self.token.kind == "flag":
            self._take()
            if self.token.kind != "quoted":
                raise error_at("syntax error", self.token.near)
            flags = _regex_flags(self.token.value)
            self._take()
        return node.LikeRegex(argument, pattern, flags)

    def _exists(self) -> Node:
        self._take()
        self._expect("(")
        argument = _expression(self, self._sum())
        self._expect(")")
        return node.Exists(argument)

    def _sum(self) -> Node:
        left = self._product()
        while self.token.kind in ("+", "-") and not node.is_predicate(left):
            operator = self._take().kind
            left = node.Binary(operator, left, _expression(self, self._product()))
        return left

    def _product(self) -> Node:
        left = self._signed()
        while self.token.kind in ("*", "/", "%") and not node.is_predicate(left):
            operator = self._take().kind
            left = node.Binary(operator, left, _expression(self, self._signed()))
        return left

    def _signed(self) -> Node:
        if self.token.kind not in ("+", "-"):
            return self._path()
        operator = self._take().kind
        argument = _expression(self, self._signed())
        if isinstance(argument, node.Number):
            return argument if operator == "+" else node.Number(numeric_uminus(argument.value))
        return node.Sign(operator, argument)

    def _path(self) -> Node:
        if self.token.kind == "(":
            self._take()
            base = self._disjunction()
            self._expect(")")
        else:
            base = self._primary()
        accessors = []
        while accessor := self._accessor():
            accessors.append(accessor)
        if isinstance(base, node.Path) and accessors:
            return node.Path(base.base, (*base.accessors, *accessors))
        return node.Path(base, tuple(accessors)) if accessors else base

    def _primary(self) -> Node:
        token = self.token
        kind = token.kind
        result: Node
        if kind in ("int", "numeric"):
            result = node.Number(numeric_in(token.value))
        elif kind in _CONSTANTS:
            result = node.Literal(_CONSTANTS[kind])
        elif kind == "quoted":
            result = node.Literal(token.value)
        elif kind == "variable":
            result = node.Variable(token.value)
        elif kind == "$":
            result = node.Root()
        elif kind == "@":
            result = node.Current()
        elif kind == "last":
            result = node.Last()
        else:
            raise error_at("syntax error", token.near)
        self._take()
        return result

    def _accessor(self) -> node.Accessor | None:
        kind = self.token.kind
        if kind == ".":
            self._take()
            return self._member()
        if kind == "[":
            self._take()
            return self._subscripts()
        if kind == "?":
            self._take()
            self._expect("(")
            predicate = _predicate(self, self._disjunction())
            self._expect(")")
            return node.Filter(predicate)
        return None

    def _member(self) -> node.Accessor:
        """Return the accessor after a point."""
        token = self.token
        kind = token.kind
        if kind == "*":
            self._take()
            return node.AnyKey()
        if kind == "**":
            self._take()
            return self._levels()
        if kind not in ("name", "quoted") and kind not in KEYWORDS and kind not in _CONSTANTS:
            raise error_at("syntax error", token.near)
        self._take()
        if self.token.kind == "(":
            if kind in _METHODS:
                return self._method(kind, "")
            if kind in _METHODS_WITH_PRECISION:
                return self._method(kind, "int")
            if kind == "datetime":
                return self._method(kind, "quoted")
            if kind == "decimal":
                return self._decimal()
        return node.Key(token.value)

    def _method(self, name: str, argument_kind: str) -> node.Method:
        """Return a method such as `.datetime("HH24")`, which may have one argument of a kind."""
        self._expect("(")
        arguments: tuple[str | Decimal, ...] = ()
        if argument_kind and self.token.kind == argument_kind:
            value = self.token.value
            arguments = (value if argument_kind == "quoted" else numeric_in(value),)
            self._take()
        self._expect(")")
        return node.Method(name, arguments)

    def _decimal(self) -> node.Method:
        self._expect("(")
        arguments: list[Decimal] = []
        if self.token.kind != ")":
            arguments.append(self._signed_integer())
            while self.token.kind == ",":
                self._take()
                arguments.append(self._signed_integer())
        if self.token.kind == ")" and len(arguments) > _MAX_DECIMAL_ARGUMENTS:
            raise SqlSyntaxError(
                "invalid input syntax for type jsonpath",
                detail=".decimal() can only have an optional precision[,scale].",
            )
        self._expect(")")
        return node.Method("decimal", tuple(arguments))

    def _signed_integer(self) -> Decimal:
        sign = self._take().kind if self.token.kind in ("+", "-") else ""
        if self.token.kind != "int":
            raise error_at("syntax error", self.token.near)
        number = numeric_in(self.token.value)
        self._take()
        return numeric_uminus(number) if sign == "-" else number

    def _levels(self) -> node.AnyLevel:
        """Return the levels after `**`, such as `{2 to last}`."""
        if self.token.kind != "{":
            return node.AnyLevel(0, node.LAST_LEVEL)
        self._take()
        first = last = self._level()
        if self.token.kind == "to":
            self._take()
            last = self._level()
        self._expect("}")
        return node.AnyLevel(first, last)

    def _level(self) -> int:
        if self.token.kind == "last":
            self._take()
            return node.LAST_LEVEL
        if self.token.kind != "int":
            raise error_at("syntax error", self.token.near)
        level = int4in(self.token.value)
        self._take()
        return level

    def _subscripts(self) -> node.Accessor:
        if self.token.kind == "*":
            self._take()
            self._expect("]")
            return node.AnyElement()
        ranges = [self._subscript()]
        while self.token.kind == ",":
            self._take()
            ranges.append(self._subscript())
        self._expect("]")
        return node.Subscripts(tuple(ranges))

    def _subscript(self) -> tuple[Node, Node | None]:
        lower = _expression(self, self._sum())
        if self.token.kind != "to":
            return lower, None
        self._take()
        return lower, _expression(self, self._sum())

    def _expect(self, kind: str) -> Token:
        if self.token.kind != kind:
            raise error_at("syntax error", self.token.near)
        return self._take()

    def _take(self) -> Token:
        """Return the current token, and advance to the next one."""
        token = self.token
        if token.kind != "end":
            self.token = self._scanner.next()
        return token


def _expression(parser: _Parser, item: Node) -> Node:
    """Return `item` if it is not a predicate; else raise a syntax error at the next token."""
    if node.is_predicate(item):
        raise error_at("syntax error", parser.token.near)
    return item


def _predicate(parser: _Parser, item: Node) -> Node:
    """Return `item` if it is a predicate; else raise a syntax error at the next token."""
    if not node.is_predicate(item):
        raise error_at("syntax error", parser.token.near)
    return item


def _regex_flags(flags: str) -> str:
    """Sort the flags of a regular expression: `mi` -> `im`."""
    for flag in flags:
        if flag not in _REGEX_FLAGS:
            raise SqlSyntaxError(
                "invalid input syntax for type jsonpath",
                detail=f'Unrecognized flag character "{flag}" in LIKE_REGEX predicate.',
            )
    if "x" in flags and "q" not in flags:
        raise FeatureNotSupported(
            'XQuery "x" flag (expanded regular expressions) is not implemented'
        )
    return "".join(flag for flag in _REGEX_FLAGS if flag in flags)


FORMS = {"jsonpath": text_form(jsonpath_in, str)}
