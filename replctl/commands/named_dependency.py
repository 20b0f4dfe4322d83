"""Find objects that name another object by a constant, such as `'t'::regclass`
(find_expr_references_walker() in dependency.c).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from replctl.commands.ddl import Ddl
from replctl.commands.expression_dependency import users_in_expressions
from replctl.commands.object_address import Kind, Object, relation_object
from replctl.commands.view_dependency import policies_with, views_with
from replctl.expr import nodes

#: For each kind of object, the types of the constants that name it.
_NAMED_BY: dict[Kind, tuple[str, ...]] = {
    "schema": ("regnamespace",),
    "table": ("regclass",),
    "view": ("regclass",),
    "materialized view": ("regclass",),
    "index": ("regclass",),
    "sequence": ("regclass",),
    "type": ("regtype",),
    "function": ("regproc", "regprocedure"),
    "operator": ("regoper", "regoperator"),
}
_TYPES = frozenset(type_ for types in _NAMED_BY.values() for type_ in types)


def users_with(ddl: Ddl, is_use: Callable[[nodes.Node], bool]) -> Iterator[Object]:
    """Yield the objects whose expressions, queries or conditions contain a matching node."""
    yield from users_in_expressions(ddl, is_use)
    for view in views_with(ddl.catalog, is_use):
        yield relation_object(ddl.relation(view))
    for policy in policies_with(ddl.catalog, is_use):
        yield Object("policy", policy)


def users_naming(ddl: Ddl, target: Object) -> Iterator[Object]:
    """Yield the objects that name another object by a constant with its OID."""
    constants = [nodes.Const(type_, str(target.oid)) for type_ in _NAMED_BY.get(target.kind, ())]
    named = ddl.catalog.cached(("named by constants",), lambda: _all_named(ddl))
    if not named.isdisjoint(constants):
        yield from users_with(ddl, lambda node: node in constants)


def _all_named(ddl: Ddl) -> frozenset[nodes.Const]:
    """Return all constants that name objects.  An object that is not among them has no users."""
    found = set()

    def note(node: nodes.Node) -> bool:
        if isinstance(node, nodes.Const) and node.type in _TYPES:
            found.add(node)
        return False

    assert not list(users_with(ddl, note))
    return frozenset(found)
