"""Rows that a table does not take, in PostgreSQL's words (execMain.c, nbtinsert.c,
ri_triggers.c)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from replctl.catalog.pg_class import Constraint, Relation
from replctl.errors import (
    CheckViolation,
    ForeignKeyViolation,
    NotNullViolation,
    PostgresError,
    UniqueViolation,
)
from replctl.spark import Target
from replctl.types.quote import quote_identifier

if TYPE_CHECKING:
    from replctl.spark.outcome import Problem

_MAX_FIELD_LENGTH = 64  # bytes of a value that are shown


def violation(
    relation: Relation, family: dict[int, Relation], target: Target, problem: Problem
) -> PostgresError:
    """The error for a problem of an outcome."""
    leaf = relation if problem.leaf is None else family[target.leaves[problem.leaf].relid]
    row = "(" + ", ".join(_shown(problem.row[c.attnum]) for c in target.columns) + ")"
    failing = f"Failing row contains {row}."
    match problem.kind:
        case "not null":
            name = relation.column_at(problem.number).name
            return NotNullViolation(
                f'null value in column "{name}" of relation "{leaf.name}" violates not-null'
                f" constraint",
                detail=failing,
                table=leaf.name,
            )
        case "check":
            name = _check_names(target)[problem.number]
            return CheckViolation(
                f'new row for relation "{leaf.name}" violates check constraint "{name}"',
                detail=failing,
                constraint=name,
                table=leaf.name,
            )
        case "partition" if relation.is_partitioned:
            return _no_partition(relation, problem)
        case "partition":
            return CheckViolation(
                f'new row for relation "{relation.name}" violates partition constraint',
                detail=failing,
                table=relation.name,
            )
        case "key":
            return _duplicate(relation, leaf, target.key, problem)
        case "unique":
            return _duplicate(relation, leaf, target.unique[problem.number].attnums, problem)
        case "reference":
            raise AssertionError("foreign keys are told by orphan() and still_referenced()")


def orphan(
    relation: Relation, other: Relation, constraint: Constraint, values: Sequence[str | None]
) -> PostgresError:
    """A row that refers to nothing; `values` are those of the foreign key's columns."""
    names = [relation.column_at(attnum).name for attnum in constraint.columns]
    head = (
        f'insert or update on table "{relation.name}" violates foreign key constraint'
        f' "{constraint.name}"'
    )
    if None in values:
        return ForeignKeyViolation(
            head,
            detail="MATCH FULL does not allow mixing of null and nonnull key values.",
            constraint=constraint.name,
        )
    return ForeignKeyViolation(
        head,
        detail=f'Key {_pairs(names, values)} is not present in table "{other.name}".',
        constraint=constraint.name,
    )


def still_referenced(
    relation: Relation, other: Relation, constraint: Constraint, old_values: Sequence[str | None]
) -> PostgresError:
    """A row that goes although others refer to it."""
    names = [relation.column_at(attnum).name for attnum in constraint.ref_columns]
    return ForeignKeyViolation(
        f'update or delete on table "{relation.name}" violates foreign key constraint'
        f' "{constraint.name}" on table "{other.name}"',
        detail=f'Key {_pairs(names, old_values)} is still referenced from table "{other.name}".',
        constraint=constraint.name,
    )


def _duplicate(
    relation: Relation, leaf: Relation, attnums: Sequence[int], problem: Problem
) -> PostgresError:
    """The index is the leaf's own, over columns of the same names."""
    names = [relation.column_at(attnum).name for attnum in attnums]
    index = next(
        (
            index
            for index in leaf.indexes
            if index.is_plain_unique and [c.name for c in leaf.index_columns(index)] == names
        ),
        None,
    )
    name = "" if index is None else index.name
    values = [problem.row[attnum] for attnum in attnums]
    return UniqueViolation(
        f'duplicate key value violates unique constraint "{name}"',
        detail=f"Key {_pairs(names, values)} already exists.",
        constraint=name,
        table=leaf.name,
    )


def _no_partition(relation: Relation, problem: Problem) -> PostgresError:
    key = relation.partition_key
    assert key is not None
    names = [relation.column_at(attnum).name for attnum in key.attnums]
    values = [problem.row[attnum] for attnum in key.attnums]
    return CheckViolation(
        f'no partition of relation "{relation.name}" found for row',
        detail=f"Partition key of the failing row contains"
        f" {_pairs(names, values).replace(')=(', ') = (', 1)}.",
        table=relation.name,
    )


def _check_names(target: Target) -> list[str]:
    """As spark.outcome.checks_of numbers them."""
    own = [name for leaf in target.leaves for name, _check in leaf.checks]
    return [*(name for name, _check in target.checks), *own]


def _pairs(names: Sequence[str], values: Sequence[str | None]) -> str:
    """`(a, b)=(1, null)` in the spelling of a key."""
    shown_names = ", ".join(map(quote_identifier, names))
    return f"({shown_names})=({', '.join(map(_shown, values))})"


def _shown(value: str | None) -> str:
    if value is None:
        return "null"
    encoded = value.encode()
    if len(encoded) <= _MAX_FIELD_LENGTH:
        return value
    return encoded[:_MAX_FIELD_LENGTH].decode(errors="ignore") + "..."
