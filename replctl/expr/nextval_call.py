"""Find the calls of nextval() in expressions, and replace them by columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from replctl.expr import nodes

_NEXTVAL = 1574  # nextval(regclass) in pg_proc


def sequence_of_call(node: nodes.Node) -> int | None:
    """Return the OID of the sequence of a nextval() call; None for other nodes."""
    match node:
        case nodes.FuncExpr(function_oid=oid, args=(nodes.Const(value=str(value)),)):
            return int(value) if oid == _NEXTVAL else None
    return None


def sequences_of(expr: nodes.Expr) -> list[int]:
    """Return the OIDs of the sequences from which an expression takes values with nextval()."""
    found = map(sequence_of_call, nodes.walk(expr))
    return [oid for oid in found if oid is not None]


class NumberedCalls:
    """Replaces the calls of nextval() in the new values of rows by columns, one for each call.

    Args:
        first: the number of the first column.
        varno: the number of the columns' table; 0 without a table.

    Attributes:
        sequences: the OIDs of the sequences of the calls, in the order of the columns.
    """

    def __init__(self, first: int, varno: int = 0) -> None:
        self._first = first
        self._varno = varno
        self.sequences: list[int] = []

    @property
    def numbers(self) -> range:
        """Return the numbers of the columns."""
        return range(self._first, self._first + len(self.sequences))

    def with_columns(self, expr: nodes.Expr) -> nodes.Expr:
        """Return the expression with columns in place of the calls of nextval()."""

        def replaced(node: nodes.Node) -> nodes.Node | None:
            oid = sequence_of_call(node)
            if oid is None:
                return None
            self.sequences.append(oid)
            return nodes.Var(self.numbers[-1], "int8", varno=self._varno)

        result: nodes.Expr = nodes.transform(expr, replaced)
        return result

    def taken(self, take: Callable[[int, int], range], count: int) -> list[range]:
        """Return the values of each call for `count` rows (`taken_by_calls`)."""
        return taken_by_calls(self.sequences, take, count)


_Called = TypeVar("_Called", bound=Hashable)


def taken_by_calls(
    calls: Iterable[_Called], take: Callable[[_Called, int], range], count: int
) -> list[range]:
    """Return the values of each call of nextval() for `count` rows.  Within a row, several calls of
    one sequence take consecutive values.

    Args:
        calls: the sequence of each call.
        take: a function that takes values of a sequence, given the sequence and the number of
            values.
    """
    of_row = Counter(calls)
    values = {called: take(called, count * number) for called, number in of_row.items()}
    before: Counter[_Called] = Counter()
    found = []
    for called in calls:
        found.append(values[called][before[called] :: of_row[called]])
        before[called] += 1
    return found
