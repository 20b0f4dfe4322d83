"""Find the foreign keys that refer to a table."""

from __future__ import annotations

from replctl.catalog.pg_class import Constraint, Relation, load_relations
from replctl.catalog.pg_inherits import ancestors_of
from replctl.catalog.schema import pg_constraint
from replctl.catalog.transaction import Catalog


def foreign_keys_to(catalog: Catalog, oid: int) -> list[tuple[Relation, Constraint]]:
    """Return the foreign keys that refer to a table or to a partitioned table above it, the oldest
    first.  Each comes with its own table.  The foreign keys of partitions are also listed.
    """
    referenced = [oid, *ancestors_of(catalog, oid)]
    rows = catalog.select(
        pg_constraint,
        pg_constraint.c.confrelid.in_(referenced),
        order_by=[pg_constraint.c.oid],
    )
    others = load_relations(catalog, {int(row.conrelid) for row in rows})
    return [
        (others[int(row.conrelid)], constraint)
        for row in rows
        for constraint in others[int(row.conrelid)].constraints
        if constraint.oid == int(row.oid)
    ]
