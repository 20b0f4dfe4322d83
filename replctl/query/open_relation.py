"""Find the relation that a query names, or report that it does not exist (parserOpenTable in
parse_relation.c).
"""

from __future__ import annotations

from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_class import Relation, get_relation
from replctl.catalog.relation_kind import READABLE, RelKind
from replctl.does_not_exist import no_relation
from replctl.errors import FeatureNotSupported, InsufficientPrivilege, WrongObjectType
from replctl.expr.type_names import schema_of_relation
from replctl.parser import ast
from replctl.types import builtin


def open_relation(
    environment: CatalogEnvironment,
    name: ast.RangeVar,
    *,
    or_sequence: bool = False,
    or_composite: bool = False,
) -> Relation | builtin.SystemRelation:
    """Return the named table or catalog.

    Args:
        or_sequence, or_composite: also allow sequences or composite types; the caller must handle
            them.

    Raises:
        UndefinedTable: the relation does not exist.
        InsufficientPrivilege: the current role may not use the relation's schema.
        WrongObjectType: the relation has no rows.
    """
    oid = _oid(environment, name)
    system = builtin.system_relations_by_oid().get(oid)
    if system is not None:
        return system
    relation = get_relation(environment.catalog, oid)
    assert relation is not None
    if relation.kind == RelKind.SEQUENCE:
        if or_sequence:
            return relation
        raise FeatureNotSupported("sequences are not supported here", position=name.pos)
    if relation.kind == RelKind.COMPOSITE_TYPE and or_composite:
        return relation
    if relation.kind not in READABLE:
        raise WrongObjectType(
            f'cannot open relation "{relation.name}"',
            detail=f"This operation is not supported for {relation.kind.plural}.",
            position=name.pos,
        )
    return relation


def _oid(environment: CatalogEnvironment, name: ast.RangeVar) -> int:
    schema_name = schema_of_relation(environment, name, name.pos)
    try:
        oid = environment.relation_oid(schema_name, name.name)
    except InsufficientPrivilege as error:
        error.position = name.pos
        raise
    if oid is None:
        shown = name.name if name.schema is None else f"{name.schema}.{name.name}"
        raise no_relation(shown, position=name.pos)
    return oid
