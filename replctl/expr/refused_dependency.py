"""Refuse dependencies of stored expressions (find_expr_references_walker() in dependency.c)."""

from __future__ import annotations

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes


def check_dependencies(expr: nodes.Expr) -> None:
    """Refuse dependencies that the catalog cannot record, before it stores an expression as a row
    filter, a default or a CHECK.

    Raises:
        FeatureNotSupported: the expression contains a role, which other databases could drop.
    """
    for node in nodes.walk(expr):
        if isinstance(node, nodes.Const) and node.type == "regrole" and node.value is not None:
            raise FeatureNotSupported("constant of the type regrole cannot be used here")
