"""nextval() and currval() in the rows that INSERT and UPDATE make: sequences count outside the
engine, so that their values are taken before it runs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from replctl import spark
from replctl.adt.fold import simplified
from replctl.catalog.aclchk import Privileges
from replctl.catalog.pg_class import Column
from replctl.catalog.pg_sequence import NumberedCalls, sequences_of
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.functions.function_context import FunctionContext
from replctl.functions.sql_functions import FUNCTIONS
from replctl.session import Session

#: pg_proc's OIDs of nextval(regclass), currval(regclass), lastval() -> functions.sql_functions
_FUNCTIONS = {1574: "nextval_oid", 1575: "currval_oid", 2559: "lastval"}

#: What does not compute all that is below it for every row.
_CONDITIONAL = (nodes.CaseExpr, nodes.CoalesceExpr, nodes.BoolExpr)


def check_defaults(privileges: Privileges, columns: Iterable[Column]) -> None:
    """Check that a role may take values from the sequences of columns' defaults; INSERT suffices
    for identity columns.

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


def check_unconditional(expr: nodes.Expr) -> None:
    """Refuse calls of nextval() that are not carried out for every row.

    Raises:
        FeatureNotSupported: there is one.
    """
    for node in nodes.walk(expr):
        if isinstance(node, _CONDITIONAL) and sequences_of(node):
            raise FeatureNotSupported("nextval in CASE, COALESCE, AND and OR is not supported")


def with_call_columns(
    session: Session, context: FunctionContext, calls: NumberedCalls, rows: str, order: str
) -> str:
    """Return a query of rows with the columns of calls: each takes a value for each row.

    Args:
        rows: a query, which is carried out to count its rows.
        order: SQL of what the rows are counted by.
    """
    if not calls.sequences:
        return rows
    count = spark.jobs.count_rows(session.engine(), rows)
    taken = calls.taken(partial(session.sequences.take, context.catalog), count)
    columns = [
        f"{values.start}L + {values.step}L * place AS c{number}"
        for number, values in zip(calls.numbers, taken, strict=True)
    ]
    place = f"row_number() OVER (ORDER BY {order}) - 1 AS place"
    return f"SELECT *, {', '.join(columns)} FROM (SELECT *, {place} FROM ({rows}))"
