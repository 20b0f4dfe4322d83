"""The addresses of objects in statements (ObjectAddress)."""

from __future__ import annotations

from typing import Literal

from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_type import type_oid
from replctl.catalog.relation_kind import RelKind
from replctl.record import dataclass

Kind = Literal[
    "schema", "table", "view", "materialized view", "column", "default", "constraint", "index",
    "sequence", "type", "function", "operator", "collation", "membership",
    "policy",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Object:
    """An object that can be dropped; `number` is the attnum if the object is a column."""

    kind: Kind
    oid: int
    number: int = 0


_RELATIONS: dict[str, Kind] = {
    RelKind.TABLE: "table",
    RelKind.PARTITIONED_TABLE: "table",
    RelKind.VIEW: "view",
    RelKind.MATERIALIZED_VIEW: "materialized view",
    RelKind.INDEX: "index",
    RelKind.PARTITIONED_INDEX: "index",
    RelKind.SEQUENCE: "sequence",
}


def relation_object(relation: Relation) -> Object:
    """Return a relation as an object that can be dropped; for a composite type, the type."""
    if relation.kind == RelKind.COMPOSITE_TYPE:
        return Object("type", type_oid(relation.row_type))
    return Object(_RELATIONS[relation.kind], relation.oid)
