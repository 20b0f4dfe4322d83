"""nextval() and currval() in the rows that INSERT makes: sequences count outside the engine, so
that their values are taken before it runs."""

from __future__ import annotations

from collections.abc import Iterable

from replctl.adt.fold import simplified
from replctl.catalog.aclchk import Privileges
from replctl.catalog.function_context import FunctionContext
from replctl.catalog.functions import FUNCTIONS
from replctl.catalog.pg_class import Column
from replctl.catalog.pg_sequence import sequence_of_call, sequences_of
from replctl.expr import nodes

#: pg_proc's OIDs of nextval(regclass), currval(regclass), lastval() -> catalog.functions
_FUNCTIONS = {1574: "nextval_oid", 1575: "currval_oid", 2559: "lastval"}


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


def with_columns(expr: nodes.Expr, attnums: dict[int, int]) -> nodes.Expr:
    """Return an expression that finds the values of sequences in columns, by the sequences'
    OIDs."""

    def replaced(node: nodes.Node) -> nodes.Node | None:
        oid = sequence_of_call(node)
        return None if oid is None else nodes.Var(attnums[oid], "int8", varno=0)

    result: nodes.Expr = nodes.transform(expr, replaced)
    return result
