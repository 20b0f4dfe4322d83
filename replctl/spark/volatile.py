"""Volatile functions: Spark must compute each call once per row.

A translation may repeat an argument.  So it first contains a name instead of a volatile call.
`placed` then replaces the name: by the call itself if the name occurs only once, else by a value
that Spark computes beforehand.
"""

from __future__ import annotations

import re
from dataclasses import replace

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.spark.data_type import storage_type
from replctl.spark.sql_value import SqlValue, check_lambda

#: prosrc of a volatile function -> Spark SQL.
CALLS = {
    "drandom": "rand()",
    "gen_random_uuid": "uuid()",
    "clock_timestamp": "CAST(java_method('java.time.Instant', 'now') AS TIMESTAMP)",
}
_NAME = re.compile(r"\bvolatile_\.v(\d+)\b")
#: Functions that Spark does not compute inside a lambda.
_OF_OTHER_ROWS = (nodes.Aggref, nodes.WindowFunc, nodes.GroupingFunc, nodes.SubLink)


def is_volatile(value: SqlValue) -> bool:
    """Return whether a translation contains the name of a volatile call."""
    return _NAME.search(value.text) is not None


class VolatileCalls:
    """The volatile calls of one expression that is translated to Spark's SQL."""

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[nodes.Node, int]] = {}
        self._calls: list[str] = []

    def value(self, call: nodes.FuncExpr, source: str) -> SqlValue:
        """Return the name of a call.  If a node is translated twice, it keeps its name."""
        if id(call) not in self._numbers:  # keep the node, so that its id is not reused
            self._numbers[id(call)] = call, len(self._calls)
            self._calls.append(CALLS[source])
        return SqlValue(_name(self._numbers[id(call)][1]), call.type, storage_type(call.type))

    def named(self, value: SqlValue) -> SqlValue:
        """Return a name for a value with volatile calls; return other values unchanged."""
        if not is_volatile(value):
            return value
        self._calls.append(value.text)
        return replace(value, text=_name(len(self._calls) - 1))

    def placed(self, value: SqlValue, expr: nodes.Expr) -> SqlValue:
        """Return a translation with the calls in place of their names.

        rint(volatile_.v0)  becomes  rint(rand())

        Args:
            expr: the translated expression.

        Raises:
            FeatureNotSupported: Spark cannot compute a call only once.
        """
        text = value.text
        if not is_volatile(value):
            return value
        if "->" not in text and _stand_once(text):
            return replace(value, text=self._filled(text))
        if any(isinstance(node, _OF_OTHER_ROWS) for node in nodes.walk(expr)):
            raise FeatureNotSupported(
                "volatile functions next to aggregates or subqueries are not supported"
            )
        check_lambda(text)
        numbers = sorted(set(_NAME.findall(text)), key=int)
        fields = ", ".join(f"'v{n}', {self._filled(self._calls[int(n)])}" for n in numbers)
        bound = f"get(transform(array(named_struct({fields})), volatile_ -> {text}), 0)"
        return replace(value, text=bound)

    def _filled(self, text: str) -> str:
        """Return SQL with the calls in place of their names.

        Raises:
            FeatureNotSupported: a name occurs more than once.
        """
        if not _stand_once(text):
            raise FeatureNotSupported("volatile functions are not supported here")
        return _NAME.sub(lambda found: self._filled(self._calls[int(found[1])]), text)


def _name(number: int) -> str:
    return f"volatile_.v{number}"


def _stand_once(text: str) -> bool:
    found = _NAME.findall(text)
    return len(found) == len(set(found))
