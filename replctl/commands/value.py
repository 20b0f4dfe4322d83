"""Evaluate constant expressions for definitions that store the value, not the expression."""

from __future__ import annotations

from replctl.commands.ddl import Ddl
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.functions.function_context import function_context
from replctl.functions.settings_form import computable
from replctl.query.tree import Output, Query
from replctl.types import text


def constant_value(ddl: Ddl, expr: nodes.Expr, place: str, pos: int = -1) -> str | None:
    """Return the value of an expression without columns, in canonical text.

    Args:
        place: the place of the expression, for the error message.

    Raises:
        FeatureNotSupported: the value cannot be computed without Spark.
        InsufficientPrivilege: the role may not call a function.
        PostgresError: the evaluation fails.
    """
    from replctl.adt.fold import simplified  # few commands need a constant
    from replctl.query.inline_function import inlined
    from replctl.query.sqlite import is_answerable, run_query

    inline = inlined(ddl.environment, ddl.now, expr)
    result = simplified(computable(ddl.session, ddl.environment, inline))
    if isinstance(result, nodes.Const):
        return result.value
    query = Query((Output("", result),))
    if not is_answerable(query, ddl.environment):
        raise FeatureNotSupported(f"this expression is not supported in {place}", position=pos)
    rows = run_query(query, function_context(ddl.session, ddl.catalog))
    value = rows[0][0]
    return None if value is None else text.canonical(result.type, value)
