"""Find the leaf partitions of a partitioned table, and the rules of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replctl.catalog.pg_class import PartitionBound, Relation, load_relations
from replctl.catalog.pg_inherits import ancestors_of, descendants_of
from replctl.catalog.transaction import Catalog
from replctl.errors import FeatureNotSupported
from replctl.spark import PartitionRule


def leaf_paths(root: Relation, descendants: dict[int, Relation]) -> list[list[Relation]]:
    """Return a path for each leaf partition: the relations from the root's child down to the leaf.
    A table that is not partitioned has the only path [root].
    """
    if not root.is_partitioned:
        return [[root]]
    return list(_paths(root, descendants))


def _paths(parent: Relation, descendants: dict[int, Relation]) -> Iterator[list[Relation]]:
    for child in sorted(_children(parent, descendants), key=lambda child: child.oid):
        if child.is_partitioned:
            for path in _paths(child, descendants):
                yield [child, *path]
        else:
            yield [child]


def subtree(root: Relation, descendants: Mapping[int, Relation]) -> list[Relation]:
    """Return a relation and all its partitions, level by level."""
    found = [root]
    for relation in found:
        found += sorted(_children(relation, descendants), key=lambda child: child.oid)
    return found


def _children(parent: Relation, descendants: Mapping[int, Relation]) -> list[Relation]:
    return [
        child
        for child in descendants.values()
        if parent.oid in child.parents and child.is_partition
    ]


def partition_rules(
    root: Relation, path: list[Relation], descendants: dict[int, Relation]
) -> tuple[PartitionRule, ...]:
    """Return the partition rules of the leaf at the end of a path.  They use the root's column
    numbers.
    """
    rules = []
    parent = root
    for child in path:
        if parent.is_partitioned and child.partition_bound is not None:
            rules.append(_rule(root, parent, child.partition_bound, descendants))
        parent = child
    return tuple(rules)


def own_rules(relation: Relation, tree: dict[int, Relation]) -> tuple[PartitionRule, ...]:
    """Return the rules of all bounds from the root to a partition, with the partition's own column
    numbers; () if the relation is not a partition.

    Args:
        tree: the partition and all relations of its tree.
    """
    rules: list[PartitionRule] = []
    current = relation
    while current.is_partition and current.partition_bound is not None:
        parent = tree[current.parents[0]]
        rules.insert(0, _rule(relation, parent, current.partition_bound, tree))
        current = parent
    return tuple(rules)


def top_relation(relation: Relation, tree: Mapping[int, Relation]) -> Relation:
    """Return the topmost ancestor of a partition; the relation itself if it is no partition.

    Args:
        tree: the relation and its ancestors, by OID.
    """
    while relation.is_partition:
        relation = tree[relation.parents[0]]
    return relation


def partition_tree(catalog: Catalog, relation: Relation) -> dict[int, Relation]:
    """Return a relation with all its descendants and, if it is a partition, its whole tree."""
    top = ([relation.oid, *ancestors_of(catalog, relation.oid)])[-1]
    return load_relations(catalog, descendants_of(catalog, top))


def _rule(
    root: Relation, parent: Relation, bound: PartitionBound, descendants: dict[int, Relation]
) -> PartitionRule:
    key = parent.partition_key
    assert key is not None
    if 0 in key.attnums:
        raise FeatureNotSupported("partition keys that are expressions are not supported")
    columns = [parent.column_at(attnum) for attnum in key.attnums]
    in_root = [root.column(column.name) for column in columns]
    siblings = [
        sibling.partition_bound
        for sibling in _children(parent, descendants)
        if sibling.partition_bound is not None and sibling.partition_bound.kind != "default"
    ]
    is_default = bound.kind == "default"
    return PartitionRule(
        tuple(column.attnum for column in in_root if column is not None),
        tuple((column.type, column.typmod) for column in columns),
        None if is_default else bound,
        tuple(siblings) if is_default else (),
    )
