"""Read and write inheritance between relations: partitions and children (pg_inherits)."""

from __future__ import annotations

from replctl.catalog import schema
from replctl.catalog.transaction import Catalog


def children_of(catalog: Catalog, oid: int) -> list[int]:
    """Return the OIDs of a table's direct partitions or children."""
    pg_inherits = schema.pg_inherits
    rows = catalog.select(
        pg_inherits, pg_inherits.c.inhparent == oid, order_by=[pg_inherits.c.inhrelid]
    )
    return [int(row.inhrelid) for row in rows]


def descendants_of(catalog: Catalog, oid: int) -> list[int]:
    """Return `oid` and the OIDs of all its descendants, nearest first, each once."""
    found = [oid]
    for parent in found:
        found.extend(child for child in children_of(catalog, parent) if child not in found)
    return found


def ancestors_of(catalog: Catalog, oid: int) -> list[int]:
    """Return the OIDs of the partitioned tables above a partition, nearest first
    (get_partition_ancestors).
    """
    pg_class, pg_inherits = schema.pg_class, schema.pg_inherits
    ancestors: list[int] = []
    current = oid
    while True:
        row = catalog.first(pg_class, pg_class.c.oid == current)
        if row is None or not row.relispartition:
            return ancestors
        link = catalog.first(pg_inherits, pg_inherits.c.inhrelid == current)
        if link is None:
            return ancestors
        current = int(link.inhparent)
        ancestors.append(current)


def delete_parent(catalog: Catalog, child_oid: int, parent_oid: int) -> None:
    """Record that a relation no longer inherits from another."""
    pg_inherits = schema.pg_inherits
    catalog.delete(
        pg_inherits, pg_inherits.c.inhrelid == child_oid, pg_inherits.c.inhparent == parent_oid
    )


def insert_parent(catalog: Catalog, child_oid: int, parent_oid: int, sequence: int) -> None:
    """Record that a relation is a partition of another, or inherits from it."""
    catalog.insert(schema.pg_inherits, inhrelid=child_oid, inhparent=parent_oid, inhseqno=sequence)
