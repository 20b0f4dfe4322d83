"""Describe the leaf partitions of a target: their columns, constraints and unique indexes, and the
rules of their Delta tables.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from replctl.catalog.pg_class import Column, Index, Relation
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.lake.delta_rules import LOST_TEXTS, DeltaRules, delta_rules, names_any
from replctl.lake.partition_tree import leaf_paths, own_rules, partition_rules
from replctl.lake.table_read import numbered_as
from replctl.spark import Leaf, PartitionRule, StoredExpr, UniqueKey, quote_name
from replctl.types.quote import quote_literal
from replctl.types.text_length import TextLength


def leaves_of(relation: Relation, tree: dict[int, Relation]) -> tuple[Leaf, ...]:
    """Return the tables that contain a relation's rows.  They have the relation's column numbers,
    and their own partition rules.
    """
    if not relation.is_partitioned:
        source = numbered_as(relation, relation)
        leaf = Leaf(relation.oid, relation.name, source, own_rules(relation, tree))
        return (_with_delta_rules(leaf, relation, relation),)
    above = own_rules(relation, tree)
    return tuple(
        _with_delta_rules(
            _leaf(relation, path[-1], above + partition_rules(relation, path, tree)),
            relation,
            path[-1],
        )
        for path in leaf_paths(relation, tree)
    )


def _partition_hint(root: Relation, leaf: Relation) -> str:
    """Return the hint for a partition that cannot be written through its parent."""
    table, partition = (r.quoted_name for r in (root, leaf))
    return (
        f"Write {partition} itself, as with INSERT INTO {partition}. To write the other partitions"
        f" by {table}, use ALTER TABLE {table} DETACH PARTITION {partition};"
    )


def _with_delta_rules(leaf: Leaf, root: Relation, own: Relation) -> Leaf:
    """Return a leaf with the rules of its Delta table as its own constraints."""
    rules = delta_rules(own)
    columns = delta_columns(root, own)
    attnums = dict(columns)
    identity = {name for name, _kind in rules.identity}
    if identity and root.oid != own.oid:
        raise FeatureNotSupported(
            f'cannot write partition "{own.name}": its Delta table has the identity column'
            f' "{min(identity)}"',
            hint=_partition_hint(root, own),
        )
    known = {column.attnum for column in root.columns if column.not_null} | set(leaf.not_null)
    not_null = {attnums[name] for name in rules.not_null - identity if name in attnums} - known
    checks = _own_checks(own, rules, leaf.source.left_out)
    if root.oid != own.oid:
        checks += [
            (name, f"{quote_name(name)} <=> ({text})")
            for name, text in rules.generated
            if name in attnums
        ]
    found = [(name, StoredExpr(text, columns)) for name, text in checks]
    lost = ", ".join(map(quote_literal, LOST_TEXTS))
    found += [
        (name, StoredExpr(_length_sql(quote_name(name), length), columns, length=length))
        for name, length in rules.lengths
        if name in attnums and not _has_length(root.column_at(attnums[name]), length)
    ]
    found += [
        (name, StoredExpr(f"coalesce({quote_name(name)} NOT IN ({lost}), TRUE)", columns, name))
        for name in rules.text_partitions
        if name in attnums
    ]
    return replace(
        leaf,
        not_null=leaf.not_null + tuple(sorted(not_null)),
        checks=leaf.checks + tuple(found),
    )


def _has_length(column: Column, length: TextLength) -> bool:
    """Return whether the type of a column allows only texts that have the length."""
    type_, typmod = length.type
    return typmod >= 0 and column.type == type_ and 0 <= column.typmod <= typmod


def _length_sql(column: str, length: TextLength) -> str:
    """Return the condition that texts have a length, in Spark's SQL over a column."""
    compared = f"{'=' if length.is_exact else '<='} {length.length}"
    if length.is_array:
        return f"coalesce(forall({column}, x -> char_length(x) {compared}), TRUE)"
    return f"coalesce(char_length({column}) {compared}, TRUE)"


def _own_checks(
    relation: Relation, rules: DeltaRules, left_out: Collection[str]
) -> list[tuple[str, str]]:
    """Return the CHECK constraints of a Delta table that use only columns of the relation.  Delta
    itself checks the other constraints.

    Args:
        left_out: columns of the Delta table that the relation, or its root, leaves out.

    Raises:
        FeatureNotSupported: a generated column of the relation uses columns that the relation
            leaves out.
    """
    names = set(delta_names(relation).values())
    for name, text in rules.generated:
        if name in names and names_any(text, left_out):
            raise FeatureNotSupported(
                f'writing table "{relation.name}" is not supported: column "{name}" of its Delta'
                " table is computed from columns that it leaves out"
            )
    return [(name, text) for name, text in rules.checks if not names_any(text, left_out)]


def _leaf(root: Relation, leaf: Relation, rules: tuple[PartitionRule, ...]) -> Leaf:
    """Return a leaf partition with those of its constraints that its root lacks."""
    attnums = {column.name: column.attnum for column in root.columns}
    shared = [column for column in leaf.columns if column.name in attnums]
    not_null = tuple(
        attnums[column.name]
        for column in shared
        if column.not_null and not root.column_at(attnums[column.name]).not_null
    )
    inherited = {constraint.name for constraint in root.checks()}
    renumbered = _attnums_in(root, leaf)
    checks = tuple(
        (constraint.name, _renumbered(root, leaf, constraint.check))
        for constraint in leaf.checks()
        if constraint.check is not None and constraint.name not in inherited
    )
    own = [
        (renumbered[column.attnum], nodes.renumber(column.default, renumbered))
        for column in shared
        if column.generated and column.default is not None
    ]
    generated = tuple((a, expr) for a, expr in own if expr != root.column_at(a).default)
    return Leaf(leaf.oid, leaf.name, numbered_as(root, leaf), rules, not_null, checks, generated)


def _attnums_in(root: Relation, leaf: Relation) -> dict[int, int]:
    """Return the numbers of a leaf partition's columns in its root, by their own numbers.  Omit
    columns that the root lacks, because another program has added them.
    """
    attnums = {column.name: column.attnum for column in root.columns}
    return {c.attnum: attnums[c.name] for c in leaf.columns if c.name in attnums}


def _renumbered(root: Relation, leaf: Relation, expr: nodes.Expr) -> nodes.Expr:
    """Return an expression over a leaf partition with the column numbers of its root.

    Raises:
        FeatureNotSupported: the expression uses a column that the root lacks.
    """
    attnums = _attnums_in(root, leaf)
    used = {node.attnum for node in nodes.walk(expr) if isinstance(node, nodes.Var)}
    own = sorted(leaf.column_at(number).name for number in used - attnums.keys() if number > 0)
    if own:
        raise FeatureNotSupported(
            f'cannot write partition "{leaf.name}": its constraints or indexes use column'
            f' "{own[0]}", which table "{root.name}" lacks',
            hint=_partition_hint(root, leaf),
        )
    return nodes.renumber(expr, attnums)


def unique_key(
    index: Index, attnums: tuple[int, ...], condition: nodes.Expr | None, leaf: int | None = None
) -> UniqueKey:
    return UniqueKey(index.name, attnums, index.nulls_not_distinct, leaf, condition)


def own_unique_keys(root: Relation, leaf: Relation, number: int) -> list[UniqueKey]:
    """Return the unique indexes of a leaf partition that its root lacks."""
    attnums = _attnums_in(root, leaf)
    return [
        unique_key(
            index,
            tuple(attnums[attnum] for attnum in index.key),
            None if index.predicate is None else _renumbered(root, leaf, index.predicate),
            number,
        )
        for index in leaf.indexes
        if index.is_unique_over_columns
        and not index.parent_oid
        and attnums.keys() >= set(index.key)  # NULL in a column that the root lacks is unique
    ]


def delta_names(relation: Relation) -> dict[int, str]:
    """Return the names of a relation's columns in its Delta table, by attnum."""
    stored = {} if relation.storage is None else relation.storage.columns
    return {c.attnum: stored[c.attnum].name for c in relation.columns if c.attnum in stored}


def delta_columns(root: Relation, own: Relation) -> tuple[tuple[str, int], ...]:
    """Return the columns of a Delta table, each with its name there and its attnum in the root."""
    attnums = {column.name: column.attnum for column in root.columns}
    names = delta_names(own)
    return tuple(
        (names[c.attnum], attnums[c.name])
        for c in own.columns
        if c.attnum in names and c.name in attnums
    )
