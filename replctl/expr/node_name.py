"""Names of nodes for errors."""

from __future__ import annotations

from replctl.expr import nodes

#: The names of nodes in SQL.
_SQL_NAMES: dict[type, str] = {
    nodes.JsonIsPredicate: "IS JSON",
    nodes.XmlIsDocument: "IS DOCUMENT",
    nodes.JsonValueExpr: "FORMAT JSON",
    nodes.RowExpr: "ROW(...)",
    nodes.FieldSelect: "a field of a row",
    nodes.SubLink: "a subquery",
    nodes.GroupingFunc: "GROUPING",
    nodes.SetToDefault: "DEFAULT",
}


def sql_name(expr: nodes.Expr) -> str:
    """Return an expression's name in SQL: the name of its function or operator, if it has one."""
    return getattr(expr, "name", "") or _SQL_NAMES.get(type(expr), "this expression")
