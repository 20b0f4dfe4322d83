"""Compute the generated columns of new rows."""

from __future__ import annotations

from replctl.expr.nodes import Expr
from replctl.spark.data_type import storage_type
from replctl.spark.partition_sql import accepts_sql
from replctl.spark.stored_expression import stored_sql_of
from replctl.spark.translation import to_sql
from replctl.spark.values import StoredExpr, Target, TargetColumn


def generated_sql(target: Target, column: TargetColumn) -> str:
    """Return SQL of a generated column of a new row w<attnum>, as the row's partition computes it.

    No partition key is generated, so the partition is known before.
    """
    assert column.generated is not None
    if isinstance(column.generated, StoredExpr):
        text = stored_sql_of(column.generated, _name)
        return f"CAST({text} AS {storage_type(column.type, column.typmod)})"
    whens = "".join(
        f"WHEN {accepts_sql(leaf.rules, _name)} THEN {_computed(expr)} "
        for leaf in target.leaves
        for attnum, expr in leaf.generated
        if attnum == column.attnum
    )
    usual = _computed(column.generated)
    return f"CASE {whens}ELSE {usual} END" if whens else usual


def _computed(expr: Expr) -> str:
    return to_sql(expr, lambda var: _name(var.attnum)).text


def _name(attnum: int) -> str:
    return f"w{attnum}"
