"""nextval() and currval() in the rows of INSERT and UPDATE.  replctl takes the values of sequences
before the engine runs, because the engine has no access to sequences.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from replctl import spark
from replctl.adt.fold import simplified
from replctl.catalog.acl import Privilege
from replctl.catalog.aclchk import Privileges
from replctl.catalog.pg_class import Column
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.expr.nextval_call import NumberedCalls, sequences_of
from replctl.functions.function_context import FunctionContext
from replctl.functions.sql_functions import FUNCTIONS
from replctl.session import Session
from replctl.spark import SparkQuery, reading

#: OIDs of nextval(regclass), currval(regclass) and lastval() -> keys of sql_functions.FUNCTIONS.
_FUNCTIONS = {1574: "nextval_oid", 1575: "currval_oid", 2559: "lastval"}

#: Nodes that may not compute all their operands for every row.
_CONDITIONAL = (nodes.CaseExpr, nodes.CoalesceExpr, nodes.BoolExpr)


def check_defaults(privileges: Privileges, columns: Iterable[Column]) -> None:
    """Check that a role may use the sequences in the defaults of columns. Identity columns only
    need the INSERT privilege on the table.

    Raises:
        InsufficientPrivilege: the privilege is missing.
    """
    for column in columns:
        if column.default is None or column.identity:
            continue
        for oid in sequences_of(simplified(column.default)):
            privileges.check_sequence(oid, (Privilege.USAGE, Privilege.UPDATE))


def with_sequence_values(context: FunctionContext, column: Column, expr: nodes.Expr) -> nodes.Expr:
    """Call nextval(), currval() and lastval() in a column's value for one row, and return the value
    with their results.

    Raises:
        PostgresError: a sequence is exhausted, or the role may not use it.
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
    """Check that a role may use the sequences in the new values of columns.

    Raises:
        InsufficientPrivilege: the privilege is missing.
    """
    for column, expr in values:
        if column.identity and expr == column.default:
            continue
        for oid in sequences_of(simplified(expr)):
            privileges.check_sequence(oid, (Privilege.USAGE, Privilege.UPDATE))


def check_unconditional(expr: nodes.Expr) -> None:
    """Refuse calls of nextval() that may not run for every row.

    Raises:
        FeatureNotSupported: the expression has such a call.
    """
    for node in nodes.walk(expr):
        if isinstance(node, _CONDITIONAL) and sequences_of(node):
            raise FeatureNotSupported("nextval in CASE, COALESCE, AND and OR is not supported")


def with_call_columns(
    session: Session, context: FunctionContext, calls: NumberedCalls, rows: SparkQuery, order: str
) -> SparkQuery:
    """Take one value from a sequence for each call and row, and return a query for the rows with a
    column for each call.

    Args:
        rows: a query for the rows. Spark runs it here to count them.
        order: SQL of the order in which rows get values.
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
    text = f"SELECT *, {', '.join(columns)} FROM (SELECT *, {place} FROM ({rows}))"
    return reading(text, rows)
