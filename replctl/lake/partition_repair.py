"""Find the table whose columns a user must change if another program has changed a column of a
partition: a partition has the columns of its root.
"""

from __future__ import annotations

from collections.abc import Iterable

from replctl.catalog.pg_class import Column, Relation, leaf_partitions, load_relations
from replctl.catalog.pg_inherits import descendants_of
from replctl.catalog.transaction import Catalog
from replctl.lake.adopt import DeltaColumn, readable_column
from replctl.lake.column_changes import stored_names
from replctl.lake.delta_log import UNREADABLE, stored_columns
from replctl.lake.partition_tree import partition_tree, top_relation


def top_of(catalog: Catalog, relation: Relation) -> Relation:
    """Return the topmost ancestor of a partition; the relation itself if it is no partition."""
    return top_relation(relation, partition_tree(catalog, relation))


def changed_table(
    catalog: Catalog, relation: Relation, column: Column, found: DeltaColumn | None
) -> Relation | None:
    """Return the table in which ALTER TABLE can change a column as another program has changed it
    in a Delta table.  Return None if no statement can: the relation is a partition, and the Delta
    tables of other partitions differ, or the column is part of a partition key.

    Args:
        found: the column in the Delta table; None if the table lacks it.
    """
    top = top_of(catalog, relation)
    if top.oid == relation.oid:
        return relation
    if is_partition_key(catalog, top, column):
        return None
    is_alike = all(
        _is_alike(leaf, column.name, found)
        for leaf in leaf_partitions(catalog, top)
        if leaf.oid != relation.oid
    )
    return top if is_alike else None


def is_partition_key(catalog: Catalog, top: Relation, column: Column) -> bool:
    """Return whether a column is part of a partition key in a partition tree."""
    return any(
        table.column_at(attnum).name == column.name
        for table in load_relations(catalog, descendants_of(catalog, top.oid)).values()
        if table.partition_key is not None
        for attnum in table.partition_key.attnums
        if attnum
    )


def _is_alike(leaf: Relation, name: str, found: DeltaColumn | None) -> bool:
    """Return whether the column of a partition's Delta table is as in the Delta table of another
    one, or replctl can change it.
    """
    column, storage = leaf.column(name), leaf.storage
    if column is None or storage is None or not storage.is_made:
        return True
    if not storage.is_adopted:
        return found is not None
    stored = stored_names(storage, None)[column.attnum]
    try:
        fields = stored_columns(storage.location)
    except UNREADABLE:  # reading the partition reports it
        return False
    own = next((readable_column(field) for field in fields if field["name"] == stored), None)
    if own is None or found is None:
        return own is found
    return (own.type, own.typmod) == (found.type, found.typmod)


def detach_statement(catalog: Catalog, relation: Relation) -> str:
    """Return the statement that makes a partition a table of its own."""
    parent = load_relations(catalog, relation.parents)[relation.parents[0]]
    return f"ALTER TABLE {parent.quoted_name} DETACH PARTITION {relation.quoted_name};"


def has_adopted_leaf(leaves: Iterable[Relation]) -> bool:
    """Return whether one of some partitions has a Delta table of another owner."""
    return any(leaf.storage is not None and leaf.storage.is_adopted for leaf in leaves)
