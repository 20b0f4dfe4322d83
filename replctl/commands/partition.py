"""Partitioned tables and their partitions: PARTITION BY and PARTITION OF (partition.c,
tablecmds.c).
"""

from __future__ import annotations

from dataclasses import replace

from replctl.catalog.pg_class import Column, PartitionBound, PartitionKey, Relation, leaf_partitions
from replctl.catalog.pg_inherits import children_of
from replctl.catalog.relation_kind import TABLE_KINDS, PartitionStrategy
from replctl.commands.column_definition import column_collation
from replctl.commands.ddl import Ddl, require_rows
from replctl.commands.foreign_key import clone_foreign_key
from replctl.commands.index import constraint_of, index_of_partition
from replctl.errors import (
    CheckViolation,
    FeatureNotSupported,
    InvalidObjectDefinition,
    InvalidParameterValue,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
)
from replctl.expr.cast_path import CastPaths
from replctl.expr.sorting import is_hashable, is_sortable
from replctl.lake.partition_tree import own_rules, partition_tree
from replctl.parser import ast
from replctl.query.open_relation import open_relation
from replctl.spark import PartitionRule, accepts_sql
from replctl.types.builtin import SystemRelation, system_columns
from replctl.types.type_kind import TypeKind

_MAX_KEYS = 32  # PARTITION_MAX_KEYS


def find_partitioned(ddl: Ddl, name: ast.RangeVar) -> Relation:
    """Return the table that PARTITION OF names.

    Raises:
        UndefinedTable: there is no such table.
        InvalidObjectDefinition: the table is not partitioned.
        WrongObjectType: the relation is not a table.
    """
    parent = open_relation(ddl.environment, replace(name, pos=-1), or_sequence=True)
    if isinstance(parent, Relation) and parent.kind not in TABLE_KINDS:
        raise WrongObjectType(f'inherited relation "{parent.name}" is not a table or foreign table')
    if isinstance(parent, SystemRelation) or not parent.is_partitioned:
        raise InvalidObjectDefinition(f'"{parent.name}" is not partitioned')
    ddl.privileges.check_relation_owner(parent)
    return parent


def partition_key(ddl: Ddl, relation: Relation, spec: ast.PartitionSpec) -> PartitionKey:
    """Return the partition key of PARTITION BY (ComputePartitionAttrs).

    Raises:
        PostgresError: a column does not exist, or cannot be part of the key.
        FeatureNotSupported: the key has an expression.
    """
    word = spec.strategy.lower()
    strategy = next((s for s in PartitionStrategy if s.clause.lower() == word), None)
    if strategy is None:
        raise InvalidParameterValue(f'unrecognized partitioning strategy "{spec.strategy}"')
    if strategy == PartitionStrategy.LIST and len(spec.elements) != 1:
        raise InvalidObjectDefinition(
            'cannot use "list" partition strategy with more than one column'
        )
    if len(spec.elements) > _MAX_KEYS:
        raise InvalidObjectDefinition(
            f"cannot partition using more than {_MAX_KEYS} columns", position=spec.pos
        )
    attnums = tuple(_key_attnum(ddl, relation, item, strategy) for item in spec.elements)
    return PartitionKey(strategy, attnums)


def _key_attnum(
    ddl: Ddl, relation: Relation, element: ast.PartitionElem, strategy: PartitionStrategy
) -> int:
    name, pos = element.name, element.pos
    if name is None:
        raise FeatureNotSupported(
            "partition keys that are expressions are not supported", position=pos
        )
    column = relation.column(name)
    if column is None and name in system_columns():
        raise InvalidObjectDefinition(
            f'cannot use system column "{name}" in partition key', position=pos
        )
    if column is None:
        raise UndefinedColumn(
            f'column "{name}" named in partition key does not exist', position=pos
        )
    if column.generated:
        raise InvalidObjectDefinition(
            "cannot use generated column in partition key",
            detail=f'Column "{name}" is a generated column.',
            position=pos,
        )
    column_collation(ddl.environment, element.collation, ddl.environment.type(column.declared_type))
    if element.collation or element.opclass:
        raise FeatureNotSupported(
            "COLLATE and operator classes of partition keys are not supported", position=pos
        )
    _check_key_type(ddl, column, strategy, pos)
    return column.attnum


def _check_key_type(ddl: Ddl, column: Column, strategy: PartitionStrategy, pos: int) -> None:
    """Check that a column of this type can be in a partition key."""
    if column.user_type:
        shown = ddl.environment.format_type(column.user_type)
        raise FeatureNotSupported(f"partition keys of type {shown} are not supported", position=pos)
    is_hash = strategy == PartitionStrategy.HASH
    if (
        strategy != PartitionStrategy.LIST
        and ddl.environment.type(column.type).kind == TypeKind.ENUM
    ):
        raise FeatureNotSupported(
            f"partitioning by {strategy.clause.lower()} of an enum is not supported", position=pos
        )
    method = "hash" if is_hash else "btree"
    has_class = is_hashable if is_hash else is_sortable
    if not has_class(CastPaths(ddl.environment), column.type):
        raise UndefinedObject(
            f"data type {ddl.environment.format_type(column.type)} has no default operator class"
            f' for access method "{method}"',
            hint=f"You must specify a {method} operator class or define a default {method} operator"
            " class for the data type.",
        )


def complete_partition(ddl: Ddl, parent: Relation, partition: Relation) -> None:
    """Add the indexes and foreign keys of a partitioned table to its new partition."""
    for index in sorted(parent.indexes, key=lambda index: index.oid):
        constraint = constraint_of(parent, index)
        kind = None if constraint is None else constraint.kind
        current = ddl.relation(partition.oid)
        index_of_partition(ddl, parent, current, index, kind)
    for constraint in parent.foreign_keys():
        clone_foreign_key(ddl, parent, constraint, ddl.relation(partition.oid))


def default_partition(ddl: Ddl, parent: Relation) -> Relation | None:
    """Return the default partition of a table, or None."""
    for oid in children_of(ddl.catalog, parent.oid):
        child = ddl.relation(oid)
        if child.partition_bound is not None and child.partition_bound.kind == "default":
            return child
    return None


def require_default_without(ddl: Ddl, parent: Relation, bound: PartitionBound) -> None:
    """Require that the default partition has no rows that belong to a new partition
    (check_default_partition_contents).
    """
    default = default_partition(ddl, parent)
    if default is None or bound.kind == "default":
        return
    key = parent.partition_key
    assert key is not None
    names = [parent.column_at(attnum).name for attnum in key.attnums]
    for leaf in leaf_partitions(ddl.catalog, default):
        columns = [leaf.column(name) for name in names]
        found = [column for column in columns if column is not None]
        rule = PartitionRule(
            tuple(column.attnum for column in found),
            tuple((column.type, column.typmod) for column in found),
            bound,
        )
        require_rows(
            ddl,
            leaf,
            accepts_sql([rule], lambda attnum: f"c{attnum}") if ddl.has_rows(leaf) else "",
            lambda: CheckViolation(
                f'updated partition constraint for default partition "{default.name}" would be'
                " violated by some row",
                table=default.relation_name,
            ),
        )


def require_partition_rows(ddl: Ddl, partition: Relation) -> None:
    """Require that all rows of a partition satisfy its bound
    (QueuePartitionConstraintValidation).
    """
    tree = partition_tree(ddl.catalog, partition)
    for leaf in leaf_partitions(ddl.catalog, partition):
        rules = own_rules(leaf, tree)
        require_rows(
            ddl,
            leaf,
            f"NOT {accepts_sql(rules, lambda attnum: f'c{attnum}')}",
            lambda name=leaf.relation_name: CheckViolation(  # type: ignore[misc]
                f'partition constraint of relation "{name.name}" is violated by some row',
                table=name,
            ),
        )
