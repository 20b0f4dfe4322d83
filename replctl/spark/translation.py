"""The entry point for translating expressions (expression_sql.py).

The translation is a quarter of the code that a command loads.  It is imported with the first
expression, so that a sync without changes does not load it.
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
        column: returns the SQL of a column.
        subquery: returns the SQL of a subquery; None where subqueries are not allowed.

    Raises:
        FeatureNotSupported: there is no exact translation.  The message names the part without one.
        PostgresError: a part without columns has no value.
    """
    from replctl.spark import expression_sql

    return expression_sql.to_sql(expr, column, subquery)


def untranslatable(expr: nodes.Expr) -> str | None:
    """Return the reason why an expression has no exact translation, or None if it has one."""
    from replctl.spark import expression_sql

    return expression_sql.untranslatable(expr)
