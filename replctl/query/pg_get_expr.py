"""pg_get_expr(): a stored expression as SQL text (ruleutils.c)."""

from __future__ import annotations

import json

from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_class import Relation, encode_bound, get_relation
from replctl.catalog.ruleutils import get_expr, partition_bound, partition_key_types
from replctl.expr import nodes
from replctl.functions.function_context import FunctionContext
from replctl.query.deparse_query import deparse_condition
from replctl.query.row_policy import condition_query, policy_condition


def pg_get_expr(context: FunctionContext, tree: str, relid: int, pretty: int = 0) -> str | None:
    """Return the result of pg_get_expr(). It is here, and not in the catalog package, because
    stored expressions may contain query trees.
    """
    relation = get_relation(context.catalog, relid)
    if relation is None:
        return None
    bound = relation.partition_bound
    if bound is not None and tree == encode_bound(bound):
        parent = get_relation(context.catalog, relation.parents[0])
        assert parent is not None
        return partition_bound(context.environment, bound, partition_key_types(parent))
    parts = json.loads(tree) if tree.startswith("[") else [tree]  # indexprs is a list
    shown = (
        condition_text(context.environment, relation, part, is_pretty=bool(pretty))
        for part in parts
    )
    return ", ".join(shown)


def condition_text(
    environment: CatalogEnvironment, relation: Relation, text: str, *, is_pretty: bool = False
) -> str:
    """Return a stored condition over a relation, such as a policy's, as pg_get_expr() prints it."""
    condition = policy_condition(environment.catalog, text)
    if not any(isinstance(node, nodes.SubLink) for node in nodes.walk(condition)):
        return get_expr(environment, relation, condition, is_pretty=is_pretty)
    return deparse_condition(environment, condition_query(relation, condition), is_pretty=is_pretty)
