"""Find the attributes of composite types, which pg_class and pg_attribute have."""

from __future__ import annotations

from replctl.catalog import schema
from replctl.catalog.pg_class import Relation, get_relation
from replctl.catalog.pg_type import type_oid
from replctl.catalog.relation_kind import RelKind
from replctl.catalog.transaction import Catalog


def composite_of_type(catalog: Catalog, name: str) -> Relation | None:
    """Return the relation with the attributes of a composite type; None for the row types of tables
    and other types.
    """
    row = catalog.first(schema.pg_type, schema.pg_type.c.oid == type_oid(name))
    relation = (
        get_relation(catalog, int(row.typrelid)) if row is not None and row.typrelid else None
    )
    is_composite = relation is not None and relation.kind == RelKind.COMPOSITE_TYPE
    return relation if is_composite else None
