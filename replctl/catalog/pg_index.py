"""Check the state of indexes (pg_index)."""

from __future__ import annotations

from collections.abc import Mapping

from replctl.catalog.pg_class import Index, Relation


def is_valid_index(relations: Mapping[int, Relation], table: Relation, index: Index) -> bool:
    """Return whether an index of a partitioned table is complete: each partition has an index that
    belongs to it.

    Args:
        relations: includes at least the table's partitions of all levels.
    """
    if not table.is_partitioned:
        return True
    for partition in relations.values():
        if partition.is_partition and table.oid in partition.parents:
            own = next((i for i in partition.indexes if i.parent_oid == index.oid), None)
            if own is None or not is_valid_index(relations, partition, own):
                return False
    return True
