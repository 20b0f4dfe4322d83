"""Volatile functions: Spark must compute each call once per row.

A translation may repeat an argument.  So it first contains a mark instead of a volatile call.
`placed` then replaces the mark: by the call itself if the mark occurs only once, else by the name
of a value that Spark computes beforehand.  A mark begins and ends with NUL, which no text of a user
contains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.spark.data_type import storage_type
from replctl.spark.python_calls import without_quoted
from replctl.spark.sql_value import SqlValue, check_lambda

#: prosrc of a volatile function -> Spark SQL.
CALLS = {
    "drandom": "rand()",
    "gen_random_uuid": "uuid()",
    "clock_timestamp": "CAST(java_method('java.time.Instant', 'now') AS TIMESTAMP)",
}
#: Functions that Spark does not compute inside a lambda.
_OF_OTHER_ROWS = (nodes.Aggref, nodes.WindowFunc, nodes.GroupingFunc, nodes.SubLink)


def is_volatile(value: SqlValue) -> bool:
    """Return whether a translation contains the mark of a volatile call."""
    return "\0" in value.text


class VolatileCalls:
    """The volatile calls of one expression that is translated to Spark's SQL."""

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[nodes.Node, int]] = {}
        self._calls: list[str] = []

    def value(self, call: nodes.FuncExpr, source: str) -> SqlValue:
        """Return the mark of a call.  If a node is translated twice, it keeps its mark."""
        if id(call) not in self._numbers:  # keep the node, so that its id is not reused
            self._numbers[id(call)] = call, len(self._calls)
            self._calls.append(CALLS[source])
        return SqlValue(_mark(self._numbers[id(call)][1]), call.type, storage_type(call.type))

    def named(self, value: SqlValue) -> SqlValue:
        """Return a mark for a value with volatile calls; return other values unchanged."""
        if not is_volatile(value):
            return value
        self._calls.append(value.text)
        return replace(value, text=_mark(len(self._calls) - 1))

    def placed(self, value: SqlValue, expr: nodes.Expr) -> SqlValue:
        """Return a translation with the calls in place of their marks.

        rint(<mark 0>)  becomes  rint(rand())

        Args:
            expr: the translated expression.

        Raises:
            FeatureNotSupported: Spark cannot compute a call only once.
        """
        text = value.text
        if not is_volatile(value):
            return value
        if "->" not in without_quoted(text) and _stand_once(text):
            return replace(value, text=self._filled(text))
        if any(isinstance(node, _OF_OTHER_ROWS) for node in nodes.walk(expr)):
            raise FeatureNotSupported(
                "volatile functions next to aggregates or subqueries are not supported"
            )
        check_lambda(text)
        numbers = sorted(set(_marked(text)))
        fields = ", ".join(f"'v{n}', {self._filled(self._calls[n])}" for n in numbers)
        body = _replaced(text, lambda number: f"volatile_.v{number}")
        bound = f"get(transform(array(named_struct({fields})), volatile_ -> {body}), 0)"
        return replace(value, text=bound)

    def _filled(self, text: str) -> str:
        """Return SQL with the calls in place of their marks.

        Raises:
            FeatureNotSupported: a mark occurs more than once.
        """
        if not _stand_once(text):
            raise FeatureNotSupported("volatile functions are not supported here")
        return _replaced(text, lambda number: self._filled(self._calls[number]))


def _mark(number: int) -> str:
    """Return the mark of a call, which is as long as the name of its value."""
    return f"\0volatile_{number}\0"


def _marked(text: str) -> list[int]:
    """Return the numbers of the marks in a text, in their order."""
    return [int(mark.removeprefix("volatile_")) for mark in text.split("\0")[1::2]]


def _replaced(text: str, replacement: Callable[[int], str]) -> str:
    """Return a text with other SQL in place of its marks."""
    for number in set(_marked(text)):
        text = text.replace(_mark(number), replacement(number))
    return text


def _stand_once(text: str) -> bool:
    found = _marked(text)
    return len(found) == len(set(found))
