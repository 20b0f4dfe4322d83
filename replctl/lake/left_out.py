"""Protect the columns of a Delta table that its relation leaves out.  Refuse writes that would lose
values of these columns, and new columns with their names.  A partitioned table also leaves out the
columns that another program has added to a partition.

Other writes keep these values: MERGE changes rows in place.  Delta gives new rows the columns'
defaults, or NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from replctl import spark
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_subscription import subscriptions_of_relation
from replctl.catalog.storage_column import storage_columns
from replctl.catalog.transaction import Catalog
from replctl.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    NotNullViolation,
    PostgresError,
)
from replctl.expr.builtin_environment import BuiltinEnvironment
from replctl.lake.delta_rules import delta_rules
from replctl.lake.partition_tree import top_relation
from replctl.types.delta_type import is_native
from replctl.types.quote import quote_identifier, quote_string

if TYPE_CHECKING:
    from replctl.spark import Outcome

#: Kinds of matching for which changed rows are deleted and inserted again.
_WRITTEN_AGAIN = ("sent columns", "each row")


def check_not_left_out(catalog: Catalog, relation: Relation, name: str) -> None:
    """Check that a new column of an adopted table does not have the name of a column that the
    relation leaves out.

    A subscription may write such a column: it restores the values of a target's column whose type
    the owner has changed (column_repair.restoring_hint).

    Raises:
        DuplicateColumn: the Delta table has the column (42701).
    """
    storage = relation.storage
    if storage is None or not storage.is_adopted:
        return
    used = {storage.columns[column.attnum].number for column in relation.columns}
    is_there = any(
        known.name.lower() == name.lower()
        and known.since_version is not None
        and not known.is_dropped
        and known.number not in used
        for known in storage_columns(catalog.connection, relation.oid)
    )
    if is_there and not subscriptions_of_relation(catalog, relation.oid):
        raise DuplicateColumn(
            f'column "{name}" of relation "{relation.name}" already exists',
            detail="The Delta table has this column, and the relation leaves it out.",
            hint=f"To use the column, adopt the table again: DROP TABLE {relation.quoted_name},"
            f" which leaves the files, then CREATE TABLE {relation.quoted_name} USING delta"
            f" LOCATION {quote_string(storage.location)}.",
        )


def left_out_error(outcome: Outcome, tree: Mapping[int, Relation]) -> PostgresError | None:
    """Return the error for an outcome that cannot be written because of columns that are left out;
    None if it can be written.  An outcome cannot be written if values of these columns would be
    lost, or if a new row needs a value in one of them.

    Args:
        tree: the tables that contain the target's rows, by OID.

    Raises:
        The errors of `delta_rules`.
    """
    if not any(leaf.source.left_out for leaf in outcome.target.leaves):
        return None
    changes = spark.jobs.leaf_changes(outcome)
    for number, (leaf, change) in enumerate(zip(outcome.target.leaves, changes, strict=True)):
        left_out = leaf.source.left_out
        if not left_out:
            continue
        relation = tree[leaf.relid]
        is_again = outcome.matching in _WRITTEN_AGAIN and (change.deleted or change.updated)
        moves = any(group.moves and group.old_leaf == number for group in outcome.groups)
        if is_again or moves:
            error = _values_lost(relation, left_out[0], moves=moves)
            error.hint = _adding_hint(relation, left_out[0], tree)
            return error
        missing = sorted(delta_rules(relation).required.intersection(left_out))
        if change.inserted and missing:
            return NotNullViolation(
                f'null value in column "{missing[0]}" of relation "{relation.name}" violates'
                " not-null constraint",
                detail=f'Table "{relation.qualified_name}" leaves this column of its Delta table'
                " out, and the Delta table has no default for it.",
                table=relation.relation_name,
                column=missing[0],
            )
    return None


def _adding_hint(relation: Relation, name: str, tree: Mapping[int, Relation]) -> str | None:
    """Return the hint with the statement after which a table no longer leaves a column out; None
    if there is none.  A partitioned table leaves out the columns that other programs have added to
    a partition.

    Args:
        name: the column's name in the Delta table.
        tree: see `left_out_error`.
    """
    stored = {} if relation.storage is None else relation.storage.columns
    column = next((c for c in relation.columns if stored[c.attnum].name == name), None)
    if column is None or is_native(column.type):
        return None
    top = top_relation(relation, tree)
    type_ = BuiltinEnvironment().format_type(column.type, column.typmod)
    added = f"{quote_identifier(column.name)} {type_}"
    return f"Use ALTER TABLE {top.quoted_name} ADD COLUMN {added};"


def _values_lost(relation: Relation, column: str, *, moves: bool) -> PostgresError:
    what = "moving rows out of" if moves else "changing rows without a key in"
    return FeatureNotSupported(
        f'{what} table "{relation.name}" is not supported, because it leaves columns of its Delta'
        " table out",
        detail=f'The values of column "{column}" would be lost.',
        table=relation.relation_name,
    )
