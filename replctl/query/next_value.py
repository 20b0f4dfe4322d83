"""nextval() and currval() in the rows that INSERT and UPDATE make: sequences count outside the
engine, so that their values are taken before it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from replctl import spark
from replctl.adt.fold import simplified
from replctl.catalog.aclchk import Privileges
from replctl.catalog.function_context import FunctionContext
from replctl.catalog.pg_class import Column
from replctl.catalog.pg_sequence import sequence_of_call, sequences_of
from replctl.catalog.sql_functions import FUNCTIONS
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.session import Session

#: pg_proc's OIDs of nextval(regclass), currval(regclass), lastval() -> catalog.sql_functions
_FUNCTIONS = {1574: "nextval_oid", 1575: "currval_oid", 2559: "lastval"}

#: The number of the column of the first call; a table has fewer columns.
_FIRST_CALL = 0x7000
#: What does not compute all that is below it for every row.
_CONDITIONAL = (nodes.CaseExpr, nodes.CoalesceExpr, nodes.BoolExpr)


def check_defaults(privileges: Privileges, columns: Iterable[Column]) -> None:
    """Check that a role may take values from the sequences of columns' defaults; those of identity
    columns are for whoever may insert.

    Raises:
        InsufficientPrivilege: it may not.
    """
    for column in columns:
        if column.default is None or column.identity:
            continue
        for oid in sequences_of(simplified(column.default)):
            privileges.check_sequence(oid, "Uw")


def with_sequence_values(context: FunctionContext, column: Column, expr: nodes.Expr) -> nodes.Expr:
    """Return a column's value in one row, with values in the place of its calls of nextval(),
    currval() and lastval().

    Raises:
        PostgresError: a sequence has no value to give, or the role may not take it.
    """
    default = column.default
    is_identity = column.identity and default is not None and expr == simplified(default)

    def replaced(node: nodes.Node) -> nodes.Node | None:
        source = _FUNCTIONS.get(getattr(node, "function_oid", 0))
        if source is None or not isinstance(node, nodes.FuncExpr):
            return None
        args = [int(a.value) for a in node.args if isinstance(a, nodes.Const) and a.value]
        if len(args) < len(node.args):
            return None
        if is_identity:
            return nodes.Const(node.type, str(context.sequences.take(context.catalog, *args)[0]))
        return nodes.Const(node.type, str(FUNCTIONS[source](context, *args)))

    result: nodes.Expr = nodes.transform(expr, replaced)
    return simplified(result)


def check_values(privileges: Privileges, values: Iterable[tuple[Column, nodes.Expr]]) -> None:
    """Check that a role may take what new values of columns take from sequences.

    Raises:
        InsufficientPrivilege: it may not.
    """
    for column, expr in values:
        if column.identity and expr == column.default:
            continue
        for oid in sequences_of(simplified(expr)):
            privileges.check_sequence(oid, "Uw")


class NumberedCalls:
    """The calls of nextval() in the new values of rows, each with a column of its own.

    Args:
        varno: the number of the table that has the columns.
    """

    def __init__(self, varno: int) -> None:
        self._varno = varno
        self._sequences: list[int] = []

    def with_columns(self, expr: nodes.Expr) -> nodes.Expr:
        """Return an expression that finds what its calls give in columns.

        Raises:
            FeatureNotSupported: a call is not carried out for every row.
        """
        for node in nodes.walk(expr):
            if isinstance(node, _CONDITIONAL) and sequences_of(node):
                raise FeatureNotSupported("nextval in CASE, COALESCE, AND and OR is not supported")
        return _with_vars(expr, self._column_of)

    def _column_of(self, oid: int) -> nodes.Var:
        self._sequences.append(oid)
        attnum = _FIRST_CALL + len(self._sequences) - 1
        return nodes.Var(attnum, "int8", varno=self._varno)

    def source(self, session: Session, context: FunctionContext, source: str) -> str:
        """Return the FROM clause of the rows, which are counted, with the columns.

        Args:
            source: FROM and WHERE of the rows, with leaf, row_version and row_id.
        """
        if not self._sequences:
            return source
        name = f"r{self._varno}"
        rows = f"SELECT {name}.*{source}"
        count = spark.jobs.count_rows(session.engine(), rows)
        taken = {
            oid: session.sequences.take(context.catalog, oid, count * self._sequences.count(oid))
            for oid in set(self._sequences)
        }
        columns = []
        for number, oid in enumerate(self._sequences):
            of_row, before = self._sequences.count(oid), self._sequences[:number].count(oid)
            place = f"(place * {of_row} + {before})"
            start, step = taken[oid].start, taken[oid].step
            columns.append(f"{start}L + {step}L * {place} AS c{_FIRST_CALL + number}")
        place = "row_number() OVER (ORDER BY leaf, row_version, row_id) - 1 AS place"
        return (
            f" FROM (SELECT *, {', '.join(columns)} FROM (SELECT *, {place} FROM ({rows}))) {name}"
        )


def with_columns(expr: nodes.Expr, attnums: dict[int, int]) -> nodes.Expr:
    """Return an expression that finds the values of sequences in columns, by the sequences'
    OIDs."""

    return _with_vars(expr, lambda oid: nodes.Var(attnums[oid], "int8", varno=0))


def _with_vars(expr: nodes.Expr, column_of: Callable[[int], nodes.Var]) -> nodes.Expr:
    def replaced(node: nodes.Node) -> nodes.Node | None:
        oid = sequence_of_call(node)
        return None if oid is None else column_of(oid)

    result: nodes.Expr = nodes.transform(expr, replaced)
    return result
