"""The stored form of expressions keeps them as they are."""

from __future__ import annotations

from replctl.expr import nodes, pg_node_tree
from replctl.relation_name import DomainName


def test_a_domain_keeps_its_name() -> None:
    """An expression that Spark runs in Python has this form; its errors name the domain."""
    arg = nodes.Const("int4", "1")
    domain = DomainName("public", "pos", "pos")
    expr = nodes.CoerceToDomain(arg, "int4", domain=domain, not_null=True)
    read = pg_node_tree.loads(pg_node_tree.dumps(expr))
    assert read == expr
    assert isinstance(read, nodes.CoerceToDomain)
    assert isinstance(read.domain, DomainName)
