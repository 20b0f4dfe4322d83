"""Describe a table for writing by statements and replication: its columns, key, constraints and
leaf partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

from replctl.catalog.foreign_key import foreign_keys_to
from replctl.catalog.pg_class import (
    Constraint,
    Relation,
    get_relation,
    load_relations,
)
from replctl.catalog.pg_inherits import ancestors_of
from replctl.catalog.relation_kind import ForeignKeyMatch, Identity
from replctl.catalog.transaction import Catalog
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.expr.environment import Environment
from replctl.expr.user_type import without_user_types
from replctl.lake.delta_default import with_delta_default
from replctl.lake.delta_rules import DeltaRules, delta_rules
from replctl.lake.missing_column import missing_columns
from replctl.lake.partition_tree import leaf_paths, top_relation
from replctl.lake.table_read import relation_sources
from replctl.lake.target_leaf import (
    delta_columns,
    delta_names,
    leaves_of,
    own_unique_keys,
    unique_key,
)
from replctl.replication.apply_error import MissingIdentity
from replctl.replication.node import RemoteRelation
from replctl.replication.replica_identity import target_key
from replctl.spark import (
    EnumType,
    Leaf,
    Reference,
    RowType,
    StoredExpr,
    Target,
    TargetColumn,
    has_equal_texts,
)


def local_target(relation: Relation, tree: dict[int, Relation]) -> Target:
    """Return a relation as the target of INSERT, UPDATE and DELETE.

    Args:
        tree: the table, all its partitions, and its ancestors if it is a partition.
    """
    rules = delta_rules(relation)
    columns = tuple(
        _target_column(relation, column.attnum, None, rules, is_local=True)
        for column in relation.columns
    )
    key = relation.primary_key
    return _target(relation, columns, () if key is None else key.key, tree, {})


def inserted_into(target: Target, supplied: Collection[str]) -> Target:
    """Return a target for INSERT and COPY in which Delta assigns the identity columns that are not
    supplied.  A key with such a column does not count, because its values are unknown before the
    write.

    Args:
        supplied: the names of the columns whose values the statement supplies.
    """
    columns = tuple(
        replace(c, is_assigned=True, not_null=False)
        if c.is_identity and (c.is_assigned or c.name not in supplied)
        else c
        for c in target.columns
    )
    assigned = {column.attnum for column in columns if column.is_assigned}
    key = target.key if assigned.isdisjoint(target.key) else ()
    return replace(target, columns=columns, key=key)


def generating_columns(generated: nodes.Expr | StoredExpr) -> set[int]:
    """Return the attnums of the columns that a generated column may use."""
    if isinstance(generated, StoredExpr):
        return {attnum for _name, attnum in generated.columns}
    return {node.attnum for node in nodes.walk(generated) if isinstance(node, nodes.Var)}


def replication_target(
    relation: Relation,
    remote: RemoteRelation,
    tree: dict[int, Relation],
    versions: Mapping[int, int | None] | None = None,
    user_types: Mapping[int, EnumType | RowType] | None = None,
) -> Target:
    """Return the target of a published relation's changes.

    Args:
        relation: the subscriber's table.  A key that is not sent does not count.
        tree: see `local_target`.
        versions: the versions at which to read tables, by OID; None for a table that does not exist
            yet.
        user_types: the enums and composite types of the relation's columns, by attnum; needed if
            values are received.

    Raises:
        ObjectNotInPrerequisiteState: the table lacks a sent column (55000).
    """
    positions = {column.name: i for i, column in enumerate(remote.columns, start=1)}
    rules = delta_rules(relation)
    computed = {column.name for column in relation.columns if column.generated}
    computed |= _names_of(relation, [name for name, _text in rules.generated])
    computed |= _names_of(
        relation, [name for name, kind in rules.identity if kind == Identity.ALWAYS]
    )
    writable = {column.name for column in relation.columns} - computed
    missing = [name for name in positions if name not in writable]
    if missing:
        raise missing_columns(relation, remote, missing, top_relation(relation, tree))
    columns = tuple(
        replace(
            _target_column(relation, column.attnum, positions.get(column.name), rules),
            user_type=(user_types or {}).get(column.attnum),
        )
        for column in relation.columns
    )
    key = _identity(relation, tree) or ()
    is_sent = {column.attnum for column in columns if column.sent is not None}
    given = [c.name for c in columns if c.is_identity and c.sent and c.attnum not in key]
    if given:
        raise FeatureNotSupported(
            f'identity column "{given[0]}" of logical replication target relation'
            f' "{relation.qualified_name}" cannot be replicated',
            detail="Delta does not update identity columns, and this one is not in the table's"
            " key.",
        )
    return _target(relation, columns, key if is_sent.issuperset(key) else (), tree, versions or {})


def _target_column(
    relation: Relation, attnum: int, sent: int | None, rules: DeltaRules, *, is_local: bool = False
) -> TargetColumn:
    column = relation.column_at(attnum)
    name = delta_names(relation).get(attnum, "")
    stored = dict(rules.generated).get(name)
    identity = dict(rules.identity).get(name, Identity.NONE)
    if stored is not None or identity:
        is_by_default = identity == Identity.BY_DEFAULT
        is_assigned = identity == Identity.ALWAYS or (
            is_by_default and sent is None and not is_local
        )
        return TargetColumn(
            column.attnum,
            column.name,
            column.type,
            column.typmod,
            (column.not_null or is_by_default) and not is_assigned,
            sent,
            generated=None
            if stored is None
            else StoredExpr(stored, delta_columns(relation, relation)),
            is_identity=bool(identity),
            is_assigned=is_assigned,
        )
    is_generated = bool(column.generated)
    is_given = is_local and column.foreign_default  # the statement has a value
    if sent is None and not is_local:
        column = with_delta_default(column, name, dict(rules.defaults))
    return TargetColumn(
        column.attnum,
        column.name,
        column.type,
        column.typmod,
        column.not_null,
        None if is_generated else sent,
        None if is_generated or is_given else column.filled,
        column.default if is_generated else None,
    )


def _target(
    relation: Relation,
    columns: tuple[TargetColumn, ...],
    key: tuple[int, ...],
    tree: dict[int, Relation],
    versions: Mapping[int, int | None],
) -> Target:
    leaves = tuple(_at_version(leaf, versions) for leaf in leaves_of(relation, tree))
    indexes = sorted(
        relation.indexes, key=lambda index: index.oid
    )  # the order in which they are checked
    unique = [
        unique_key(index, index.key, index.predicate)
        for index in indexes
        if index.is_unique_over_columns
    ]
    for number, leaf in enumerate(leaves):
        if leaf.relid != relation.oid:
            unique += own_unique_keys(relation, tree[leaf.relid], number)
    return Target(
        relation.qualified_name,
        columns,
        key,
        leaves,
        tuple((c.name, c.check) for c in relation.checks() if c.check is not None),
        tuple(unique),
        is_leaf=not relation.is_partitioned,
    )


def without_user_types_in(environment: Environment, target: Target) -> Target:
    """Return a target whose CHECK constraints, defaults and generated columns use only built-in
    types.
    """
    return with_expressions(target, partial(without_user_types, environment))


def with_expressions(target: Target, changed: Callable[[nodes.Expr], nodes.Expr]) -> Target:
    """Return a target with changed CHECK constraints, defaults, generated columns and predicates,
    in the form that `changed` returns.  Expressions of Delta stay.
    """
    columns = tuple(
        replace(
            column,
            default=None if column.default is None else changed(column.default),
            generated=changed(column.generated)
            if isinstance(column.generated, nodes.Node)
            else column.generated,
        )
        for column in target.columns
    )
    tests = tuple(replace(t, condition=changed(t.condition)) for t in target.domain_tests)
    leaves = tuple(
        replace(leaf, generated=tuple((attnum, changed(expr)) for attnum, expr in leaf.generated))
        for leaf in target.leaves
    )
    parts = replace(target, columns=columns, domain_tests=tests, leaves=leaves)
    return with_checks(parts, changed)


def with_checks(target: Target, changed: Callable[[nodes.Expr], nodes.Expr]) -> Target:
    """Return a target with changed CHECK constraints and predicates of unique indexes.  Delta's own
    constraints stay.

    Args:
        changed: returns the new form of an expression.
    """
    checks = tuple((name, changed(check)) for name, check in target.checks)
    leaves = tuple(
        replace(
            leaf,
            checks=tuple(
                (name, check if isinstance(check, StoredExpr) else changed(check))
                for name, check in leaf.checks
            ),
        )
        for leaf in target.leaves
    )
    unique = tuple(
        key if key.condition is None else replace(key, condition=changed(key.condition))
        for key in target.unique
    )
    return replace(target, checks=checks, leaves=leaves, unique=unique)


def _names_of(relation: Relation, stored: Collection[str]) -> set[str]:
    """Return the names in the relation of columns with these names in the Delta table."""
    names = delta_names(relation)
    return {c.name for c in relation.columns if names.get(c.attnum) in stored}


def pinned(target: Target, versions: Mapping[int, int | None]) -> Target:
    """Return a target whose rows are read at given versions of its tables.

    After MERGE, Spark plans each cached query of the written table again.  This takes seconds if
    many rows are cached.  Spark does not do it for queries that read the table at a version.

    Args:
        versions: the versions by OID.  A table that has no version in this map, or already has one
            in `target`, is read as before.
    """
    known = {relid: version for relid, version in versions.items() if version is not None}
    leaves = (
        _at_version(leaf, known) if leaf.source.version is None else leaf for leaf in target.leaves
    )
    return replace(target, leaves=tuple(leaves))


def _at_version(leaf: Leaf, versions: Mapping[int, int | None]) -> Leaf:
    if leaf.relid not in versions:
        return leaf
    version = versions[leaf.relid]
    location = None if version is None else leaf.source.location
    return replace(leaf, source=replace(leaf.source, location=location, version=version))


# ---------------------------------------------------------------------------------------------
# Foreign keys


def references_of(catalog: Catalog, relation: Relation) -> list[tuple[Constraint, Reference]]:
    """Return the foreign keys that the new rows of a table must satisfy, the oldest first, as
    PostgreSQL checks them."""
    result = []
    for constraint in sorted(relation.foreign_keys(), key=lambda key: key.oid):
        other = get_relation(catalog, constraint.ref_relid)
        if other is not None:
            result.append(
                (
                    constraint,
                    Reference(
                        constraint.columns,
                        tuple(relation_sources(catalog, other)),
                        constraint.ref_columns,
                        other.oid == relation.oid,
                        constraint.match == ForeignKeyMatch.FULL,
                    ),
                )
            )
    return result


def references_to(
    catalog: Catalog, relation: Relation
) -> list[tuple[Relation, Constraint, Reference]]:
    """Return the foreign keys that refer to a table, or to one of its partitioned ancestors.

    Each comes with the referring table.  `ref_columns` are numbered as in the referenced table.
    Foreign keys of partitions belong to their root.
    """
    referenced = load_relations(catalog, [relation.oid, *ancestors_of(catalog, relation.oid)])
    result = []
    for other, constraint in foreign_keys_to(catalog, relation.oid):
        if constraint.parent_oid:
            continue
        named = referenced[constraint.ref_relid]
        ref_columns = tuple(_attnum_in(relation, named, a) for a in constraint.ref_columns)
        reference = Reference(
            ref_columns,
            tuple(relation_sources(catalog, other)),
            constraint.columns,
            other.oid == relation.oid,
        )
        result.append((other, replace(constraint, ref_columns=ref_columns), reference))
    return result


def _attnum_in(relation: Relation, other: Relation, attnum: int) -> int:
    """Return the number that a column of `other` has in `relation`."""
    column = relation.column(other.column_at(attnum).name)
    assert column is not None
    return column.attnum


# ---------------------------------------------------------------------------------------------
# Replication


def _identity(relation: Relation, tree: dict[int, Relation]) -> tuple[int, ...] | None:
    """Return the attnums of the columns by which changes find rows; () if there are none.

    A partitioned table uses the columns of its partitions.  Return None if the partitions have
    different ones, or if these columns are not unique across the table.
    """
    if not relation.is_partitioned:
        return target_key(relation)
    keys: dict[frozenset[str], list[str]] = {}
    parted_by: set[str] = set()
    for path in leaf_paths(relation, tree):
        leaf = path[-1]
        names = [leaf.column_at(attnum).name for attnum in target_key(leaf)]
        keys.setdefault(frozenset(names), names)
        for table in (relation, *path[:-1]):
            if table.partition_key is not None:
                parted_by |= {
                    table.column_at(attnum).name for attnum in table.partition_key.attnums
                }
    if not keys:
        return target_key(relation)
    (names, *others) = keys.values()
    if others or (names and not parted_by <= set(names)):
        return None
    return tuple(c.attnum for name in names if (c := relation.column(name)) is not None)


def _check_equal_texts(target: Target, relation: Relation) -> None:
    """Check that equal rows have equal texts of composite types, because UPDATE and DELETE compare
    texts.
    """
    for column in target.columns:
        row = column.user_type
        if column.sent is not None and isinstance(row, RowType) and not has_equal_texts(row):
            shown = relation.column_at(column.attnum).name
            raise FeatureNotSupported(
                f'UPDATE and DELETE of the logical replication target relation "{target.name}"'
                " without a key are not supported: values of the composite type of column"
                f' "{shown}" may be equal but written differently'
            )


def check_updatable(
    target: Target, remote: RemoteRelation, relation: Relation, tree: dict[int, Relation]
) -> None:
    """Check that UPDATE and DELETE can find their rows in a target (check_relation_updatable in
    worker.c).

    Raises:
        FeatureNotSupported: the target's partitions identify rows by different columns (0A000).
        MissingIdentity: the target's key is not sent, or the target has no key and the publisher's
            replica identity is not the whole row (55000).
    """
    sent_identity = (
        {column.name for column in remote.columns}
        if remote.replica_identity is None
        else set(remote.replica_identity)
    )
    key = _identity(relation, tree)
    if key is None:
        raise FeatureNotSupported(
            f'UPDATE and DELETE of the logical replication target relation "{target.name}" are not'
            " supported: its partitions identify rows by different columns, or not by those of the"
            " partition key"
        )
    if key and {relation.column_at(attnum).name for attnum in key} <= sent_identity:
        return
    if not key and remote.replica_identity is None:
        _check_equal_texts(target, relation)
        return
    if key:
        error = MissingIdentity(
            "publisher did not send replica identity column expected by the logical replication"
            f' target relation "{target.name}"'
        )
        names = [target.column(attnum).name for attnum in key if target.column(attnum).sent is None]
        error.unpublished = tuple(names)
        raise error
    raise MissingIdentity(
        f'logical replication target relation "{target.name}" has neither REPLICA IDENTITY index'
        " nor PRIMARY KEY column and published relation does not have REPLICA IDENTITY FULL"
    )
