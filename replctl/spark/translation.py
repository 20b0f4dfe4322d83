"""The way into the translation of expressions (expression_sql.py).

What that needs is a fourth of all that a command would load: it comes with the first expression, so
that a sync of nothing does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable

from replctl.expr import nodes
from replctl.spark.sql_value import SqlValue


def to_sql(
    expr: nodes.Expr,
    column: Callable[[nodes.Var], str],
    subquery: Callable[[nodes.SubLink], SqlValue] | None = None,
) -> SqlValue:
    """Return the Spark SQL of an expression.

    Args:
        column: gives the SQL of a column.
        subquery: gives the SQL of a subquery, where subqueries can be.

    Raises:
        FeatureNotSupported: there is no exact translation; the message names what has none.
        PostgresError: a part without columns has no value.
    """
    from replctl.spark import expression_sql

    return expression_sql.to_sql(expr, column, subquery)


def untranslatable(expr: nodes.Expr) -> str | None:
    """Why an expression has no exact translation, or None if it has one."""
    from replctl.spark import expression_sql

    return expression_sql.untranslatable(expr)
