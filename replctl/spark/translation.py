"""The entry point for the translation of expressions (expression_sql.py).

The translation is a quarter of the code that a command loads.  This module imports it only for the
first expression, so that a sync without changes does not load it.
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
    """Translate an expression to Spark SQL.

    Args:
        column: returns the SQL of a column.
        subquery: returns the SQL of a subquery; None where subqueries are not allowed.

    Raises:
        FeatureNotSupported: a part has no exact translation.  The message names this part.
        PostgresError: the computation of a part without columns fails.
    """
    from replctl.spark import expression_sql

    return expression_sql.to_sql(expr, column, subquery)


def untranslatable(expr: nodes.Expr) -> str | None:
    """Return the reason why an expression has no exact translation, or None if it has one."""
    from replctl.spark import expression_sql

    return expression_sql.untranslatable(expr)
