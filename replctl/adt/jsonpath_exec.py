"""Evaluate jsonpath: @?, @@ and jsonb_path_*() (PostgreSQL's jsonpath_exec.c).

Items are Moments, or values in the form that jsonb.load returns.  They are generated one by one, so
that a test for existence does not reach errors after the first item.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeAlias

from replctl.adt import jsonb, jsonb_layout, jsonpath_datetime, jsonpath_method, numeric_arithmetic
from replctl.adt.jsonpath_datetime import Moment
from replctl.adt.jsonpath_method import Failure
from replctl.adt.regex_lexer import Options
from replctl.adt.regex_match import compiled
from replctl.errors import (
    FeatureNotSupported,
    InvalidJsonSubscript,
    InvalidParameterValue,
    JsonArrayNotFound,
    JsonMemberNotFound,
    JsonNumberNotFound,
    JsonObjectNotFound,
    PostgresError,
    SingletonJsonItemRequired,
    UndefinedObject,
)
from replctl.record import dataclass
from replctl.types import jsonpath_node as node
from replctl.types.jsonpath import parsed
from replctl.types.jsonpath_node import Accessor, Node
from replctl.types.numeric import numeric_uminus

Chain: TypeAlias = tuple[Accessor, ...]
Test: TypeAlias = Callable[[Any, Any], bool | None]

_ARITHMETIC = {
    "+": numeric_arithmetic.FUNCTIONS["numeric_add"],
    "-": numeric_arithmetic.FUNCTIONS["numeric_sub"],
    "*": numeric_arithmetic.FUNCTIONS["numeric_mul"],
    "/": numeric_arithmetic.FUNCTIONS["numeric_div"],
    "%": numeric_arithmetic.FUNCTIONS["numeric_mod"],
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
#: Methods that apply to an array itself; in lax mode, other methods apply to its elements.
_OF_ARRAYS = ("type", "size")


@dataclass(frozen=True, slots=True)
class _Context:
    """The surroundings of an item: what the parts of a path may refer to.

    Attributes:
        current: the value of `@`.
        size: the size of the array to which `last` refers.
        ignores_structure: missing parts are not errors.
        base: the value from which keyvalue() counts its ids, and the id of that value.
        is_silent: failures do not become errors.
    """

    current: Any = None
    size: int = 0
    ignores_structure: bool = True
    base: tuple[Any, int] = (None, 0)
    is_silent: bool = False


@lru_cache(200)
def read(path: str) -> tuple[bool, Node]:
    """Parse a path; return whether it is strict, and its node.

    Raises:
        FeatureNotSupported: the path uses a method that is not implemented.
    """
    is_strict, root = parsed(path)
    for part in node.parts(root):
        if isinstance(part, node.Method) and part.name == "datetime" and part.arguments:
            raise FeatureNotSupported(
                "jsonpath item method .datetime() with a template is not supported"
            )
    return is_strict, root


class _Execution:
    """The execution of a path on a value."""

    def __init__(self, path: str, root: Any, variables: str | None, *, is_silent: bool) -> None:
        self._is_strict, self._path = read(path)
        self._root = root
        self._variables = {} if variables is None else jsonb.load(variables)
        self._next_id = 1 if variables is None else 2  # 0 is the root's id, 1 that of the variables
        self._start = _Context(root, ignores_structure=not self._is_strict, is_silent=is_silent)
        if not isinstance(self._variables, dict):
            raise InvalidParameterValue(
                '"vars" argument is not an object',
                detail='Jsonpath parameters should be encoded as key-value pairs of "vars" object.',
            )

    def items(self) -> Iterator[Any]:
        return self._items(self._path, self._start)

    def exists(self) -> bool:
        return self._exists(self._path, self._start)

    # Items

    def _items(self, path: Node, context: _Context) -> Iterator[Any]:
        base, chain = (path.base, path.accessors) if isinstance(path, node.Path) else (path, ())
        match base:
            case node.Root():
                here = replace(context, base=(self._root, 0))
                return self._follow(chain, self._root, here)
            case node.Current():
                return self._follow(chain, context.current, context)
            case node.Literal() | node.Number():
                return self._follow(chain, base.value, context)
            case node.Variable():
                here = replace(context, base=(self._variables, 1))
                return self._follow(chain, self._variable(base.name), here)
            case node.Last():
                return self._follow(chain, Decimal(context.size - 1), context)
            case node.Sign():
                return self._signed(base, chain, context)
            case node.Binary() if base.operator in _ARITHMETIC:
                return self._follow(chain, self._arithmetic(base, context), context)
        return self._follow(chain, self._predicate(base, context), context)

    def _variable(self, name: str) -> Any:
        if name not in self._variables:
            raise UndefinedObject(f'could not find jsonpath variable "{name}"')
        return self._variables[name]

    def _follow(
        self, chain: Chain, item: Any, context: _Context, *, unwraps: bool = True
    ) -> Iterator[Any]:
        """Yield the items at the end of a chain of accessors."""
        if not chain:
            yield item
            return
        head, rest = chain[0], chain[1:]
        if isinstance(item, list) and unwraps and not self._is_strict and _unwraps(head):
            for element in item:
                yield from self._follow(chain, element, context, unwraps=False)
            return
        match head:
            case node.AnyLevel():
                yield from self._levels(head, rest, item, context)
            case node.Subscripts():
                yield from self._subscripted(head, rest, item, context)
            case node.Method(name="keyvalue"):
                yield from self._key_values(rest, item, context)
            case _:
                for found in self._step(head, item, context):
                    yield from self._follow(rest, found, context)

    def _step(self, head: Accessor, item: Any, context: _Context) -> Iterator[Any]:
        """Yield the items to which one accessor leads."""
        missing: PostgresError
        match head:
            case node.Key(name):
                if isinstance(item, dict) and name in item:
                    yield item[name]
                    return
                missing = JsonMemberNotFound(
                    f'JSON object does not contain key "{name}"'
                    if isinstance(item, dict)
                    else "jsonpath member accessor can only be applied to an object"
                )
            case node.AnyKey():
                if isinstance(item, dict):
                    yield from item.values()
                    return
                missing = JsonObjectNotFound(
                    "jsonpath wildcard member accessor can only be applied to an object"
                )
            case node.AnyElement():
                if isinstance(item, list) or not self._is_strict:
                    yield from item if isinstance(item, list) else [item]
                    return
                missing = JsonArrayNotFound(
                    "jsonpath wildcard array accessor can only be applied to an array"
                )
            case node.Filter(predicate):
                if self._predicate(predicate, replace(context, current=item)):
                    yield item
                return
            case node.Method(name="size"):
                if isinstance(item, list) or not self._is_strict:
                    yield Decimal(len(item) if isinstance(item, list) else 1)
                    return
                missing = JsonArrayNotFound(
                    "jsonpath item method .size() can only be applied to an array"
                )
            case node.Method():
                yield _called(head, item)
                return
            case _:
                raise AssertionError(head)
        if not context.ignores_structure:
            raise Failure(missing)

    def _levels(
        self, head: node.AnyLevel, rest: Chain, item: Any, context: _Context
    ) -> Iterator[Any]:
        """Implement `.**`: yield the item and its parts in depth-first order.  In silent mode,
        ignore a failure of the item itself if it has parts.
        """
        deep = replace(context, ignores_structure=True)
        if head.first == 0:
            try:
                yield from self._follow(rest, item, deep)
            except Failure:  # PostgreSQL overwrites it with the result of the parts
                if not context.is_silent or not isinstance(item, dict | list):
                    raise
        yield from self._below(head, rest, item, deep, 1)

    def _below(
        self, head: node.AnyLevel, rest: Chain, item: Any, context: _Context, level: int
    ) -> Iterator[Any]:
        if level > head.last:
            return
        for child in _children(item):
            is_leaf = not isinstance(child, dict | list)
            if level >= head.first or (head.first == node.LAST_LEVEL and is_leaf):
                yield from self._follow(rest, child, context)
            yield from self._below(head, rest, child, context, level + 1)

    def _subscripted(
        self, head: node.Subscripts, rest: Chain, item: Any, context: _Context
    ) -> Iterator[Any]:
        if not isinstance(item, list) and self._is_strict:
            if not context.ignores_structure:
                raise Failure(
                    JsonArrayNotFound("jsonpath array accessor can only be applied to an array")
                )
            return
        elements = item if isinstance(item, list) else [item]
        inside = replace(context, size=len(elements))
        for lower, upper in head.ranges:
            first = self._index(lower, inside)
            last = first if upper is None else self._index(upper, inside)
            if not context.ignores_structure and not 0 <= first <= last < len(elements):
                raise Failure(InvalidJsonSubscript("jsonpath array subscript is out of bounds"))
            for element in elements[max(first, 0) : max(last + 1, 0)]:
                yield from self._follow(rest, element, inside)

    def _index(self, path: Node, context: _Context) -> int:
        found = list(self._items(path, context))
        if len(found) != 1 or not isinstance(found[0], Decimal):
            raise Failure(
                InvalidJsonSubscript("jsonpath array subscript is not a single numeric value")
            )
        index = int(found[0])
        if not -(2**31) <= index < 2**31:
            raise Failure(InvalidJsonSubscript("jsonpath array subscript is out of integer range"))
        return index

    def _key_values(self, rest: Chain, item: Any, context: _Context) -> Iterator[Any]:
        if not isinstance(item, dict):
            raise Failure(
                JsonObjectNotFound(
                    "jsonpath item method .keyvalue() can only be applied to an object"
                )
            )
        base, base_id = context.base
        number = jsonb_layout.offset(base, item) + base_id * 10_000_000_000
        for key, value in item.items():
            pair = {"id": Decimal(number), "key": key, "value": value}
            self._next_id += 1
            yield from self._follow(rest, pair, replace(context, base=(pair, self._next_id - 1)))

    # Numbers

    def _operands(self, path: Node, context: _Context, *, unwraps: bool = True) -> list[Any]:
        found = list(self._items(path, context))
        if not unwraps or self._is_strict:
            return found
        return [item for each in found for item in (each if isinstance(each, list) else [each])]

    def _arithmetic(self, path: node.Binary, context: _Context) -> Decimal:
        sides = [self._operands(side, context) for side in (path.left, path.right)]
        for name, found in zip(("left", "right"), sides, strict=True):
            if len(found) != 1 or not isinstance(found[0], Decimal):
                raise Failure(
                    SingletonJsonItemRequired(
                        f"{name} operand of jsonpath operator {path.operator} is not a single"
                        " numeric value"
                    )
                )
        try:
            result: Decimal = _ARITHMETIC[path.operator](sides[0][0], sides[1][0])
        except PostgresError as error:
            raise Failure(error) from error
        return result

    def _signed(self, path: node.Sign, chain: Chain, context: _Context) -> Iterator[Any]:
        for item in self._operands(path.argument, context):
            if not isinstance(item, Decimal):
                raise Failure(
                    JsonNumberNotFound(
                        f"operand of unary jsonpath operator {path.operator} is not a numeric value"
                    )
                )
            value = numeric_uminus(item) if path.operator == "-" else item
            yield from self._follow(chain, value, context)

    # Predicates: None means unknown; an error also gives None

    def _predicate(self, path: Node, context: _Context) -> bool | None:
        match path:
            case node.Binary(operator="&&"):
                left = self._predicate(path.left, context)
                if left is False:
                    return False
                right = self._predicate(path.right, context)
                return left if right else right
            case node.Binary(operator="||"):
                left = self._predicate(path.left, context)
                if left:
                    return True
                right = self._predicate(path.right, context)
                return left if right is False else right
            case node.Not():
                value = self._predicate(path.argument, context)
                return None if value is None else not value
            case node.IsUnknown():
                return self._predicate(path.argument, context) is None
            case node.Exists():
                try:
                    return self._exists(path.argument, replace(context, is_silent=True))
                except Failure:  # an error makes a predicate unknown
                    return None
            case node.LikeRegex():
                options = _regex_options(path.flags)
                regex = compiled(path.pattern, options, ascii_only=False, captures=False)
                return self._any_pair(
                    path.argument,
                    None,
                    context,
                    lambda item, _: regex.matches(item) if isinstance(item, str) else None,
                )
            case node.Binary(operator="starts with"):
                return self._any_pair(path.left, path.right, context, _starts_with)
            case node.Binary():
                test = _comparison(path.operator)
                return self._any_pair(path.left, path.right, context, test, unwraps_right=True)
        raise AssertionError(path)

    def _exists(self, path: Node, context: _Context) -> bool:
        if self._is_strict:
            return bool(list(self._items(path, context)))
        if isinstance(path, node.Sign):  # only numbers count here
            operands = self._operands(path.argument, context)
            return any(isinstance(item, Decimal) for item in operands)
        return any(True for _item in self._items(path, context))

    def _any_pair(
        self,
        left: Node,
        right: Node | None,
        context: _Context,
        test: Test,
        *,
        unwraps_right: bool = False,
    ) -> bool | None:
        """Return whether a test is true for any pair of items; None if this is unknown.

        In strict mode, one pair with an unknown result makes the whole result unknown.
        """
        context = replace(context, is_silent=True)
        try:
            lefts = self._operands(left, context)
            rights: list[Any] = [None]
            if right is not None:
                rights = self._operands(right, context, unwraps=unwraps_right)
        except Failure:  # an error makes a predicate unknown
            return None
        is_found = is_unknown = False
        for item in lefts:
            for other in rights:
                result = test(item, other)
                if result and not self._is_strict:
                    return True
                if result is None and self._is_strict:
                    return None
                is_found, is_unknown = is_found or bool(result), is_unknown or result is None
        return True if is_found else None if is_unknown else False


def _unwraps(head: Accessor) -> bool:
    """Return whether an accessor applies to an array's elements rather than to the array."""
    if isinstance(head, node.Method):
        return head.name not in _OF_ARRAYS
    return isinstance(head, node.Key | node.AnyKey | node.Filter)


def _called(method: node.Method, item: Any) -> Any:
    if method.name in jsonpath_datetime.METHODS:
        return jsonpath_datetime.call(method, item)
    if isinstance(item, Moment) and method.name in ("type", "string"):
        return item.sql_name if method.name == "type" else item.json()
    return jsonpath_method.call(method, item)


def _children(item: Any) -> list[Any]:
    if isinstance(item, dict):
        return list(item.values())
    return item if isinstance(item, list) else []


def _starts_with(whole: Any, start: Any) -> bool | None:
    if not isinstance(whole, str) or not isinstance(start, str):
        return None
    return whole.startswith(start)


def _comparison(name: str) -> Test:
    """Return a comparison of two scalars of the same type; null differs from all other types."""

    def test(a: Any, b: Any) -> bool | None:
        if type(a) is not type(b) and not (
            isinstance(a, dict | list) and isinstance(b, dict | list)
        ):
            return name == "!=" if a is None or b is None else None
        if isinstance(a, dict | list):
            return None
        order = jsonpath_datetime.order(a, b) if isinstance(a, Moment) else jsonb.compare(a, b)
        return None if order is None else _COMPARISONS[name](order, 0)

    return test


def _regex_options(flags: str) -> Options:
    """Return the options for XQuery's flags: without `s`, `.` does not match a newline."""
    options = Options(
        ignore_case="i" in flags, newline_stops="s" not in flags, newline_anchors="m" in flags
    )
    return options.as_literal() if "q" in flags else options


def _run(
    function: Callable[[_Execution], Any], text: str, path: str, variables: str | None, silent: bool
) -> Any:
    """Return the result of `function` for a path; None after an error in silent mode."""
    execution = _Execution(path, jsonb.load(text), variables, is_silent=silent)
    try:
        return function(execution)
    except Failure as failure:
        if silent:
            return None
        raise failure.error from failure


def found_items(text: str, path: str, variables: str | None, silent: bool) -> list[Any]:
    """Return all items that a path finds; in silent mode, only those before an error."""
    found: list[Any] = []
    _run(lambda execution: found.extend(execution.items()), text, path, variables, silent)
    return [item.json() if isinstance(item, Moment) else item for item in found]


def _exists(text: str, path: str, variables: str | None = None, silent: bool = True) -> bool | None:
    result: bool | None = _run(_Execution.exists, text, path, variables, silent)
    return result


def _match(text: str, path: str, variables: str | None = None, silent: bool = True) -> bool | None:
    found = found_items(text, path, variables, silent)
    if len(found) == 1 and (found[0] is None or isinstance(found[0], bool)):
        return found[0]
    if not silent:
        raise SingletonJsonItemRequired("single boolean result is expected")
    return None


def _query_array(text: str, path: str, variables: str, silent: bool) -> str:
    return jsonb.dump(found_items(text, path, variables, silent))


def _query_first(text: str, path: str, variables: str, silent: bool) -> str | None:
    found = found_items(text, path, variables, silent)
    return jsonb.dump(found[0]) if found else None


#: The functions by their names in pg_proc.prosrc.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "jsonb_path_exists_opr": _exists,
    "jsonb_path_match_opr": _match,
    "jsonb_path_exists": _exists,
    "jsonb_path_match": _match,
    "jsonb_path_query_array": _query_array,
    "jsonb_path_query_first": _query_first,
}
