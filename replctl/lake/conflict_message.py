"""Compose the errors for rows that violate a table's constraints, in statements and subscriptions
(execMain.c, nbtinsert.c, ri_triggers.c).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from replctl.catalog.pg_class import Constraint, Index, Relation
from replctl.errors import (
    CheckViolation,
    FeatureNotSupported,
    ForeignKeyViolation,
    NotNullViolation,
    PostgresError,
    StringDataRightTruncation,
    UniqueViolation,
)
from replctl.expr.nodes import Expr
from replctl.lake.row_description import RowReader
from replctl.spark import StoredExpr, Target, UniqueKey
from replctl.types.text_length import TextLength

if TYPE_CHECKING:
    from replctl.spark import Problem


def violation(
    relation: Relation,
    tree: dict[int, Relation],
    target: Target,
    problem: Problem,
    reader: RowReader,
) -> PostgresError:
    """Return the error for a problem of an outcome.

    Args:
        reader: the role that sees the error.
    """
    leaf = relation if problem.leaf is None else tree[target.leaves[problem.leaf].relid]
    row = reader.row(relation, problem.row)
    failing = None if row is None else f"Failing row contains {row}."
    match problem.kind:
        case "not null":
            name = relation.column_at(problem.number).name
            return NotNullViolation(
                f'null value in column "{name}" of relation "{leaf.name}" violates not-null'
                f" constraint",
                detail=failing,
                table=leaf.relation_name,
                column=name,
            )
        case "check" if problem.number < len(target.domain_tests):
            from replctl.adt.interpret import null_in_domain, violated_domain  # few errors need it

            test = target.domain_tests[problem.number]
            if test.constraint is None:
                return null_in_domain(test.domain)
            return violated_domain(test.domain, test.constraint)
        case "check":
            name, check = _checks(target)[problem.number - len(target.domain_tests)]
            if isinstance(check, StoredExpr) and check.partition is not None:
                attnum = dict(check.columns)[check.partition]
                return _lost_text(leaf, check.partition, problem.row[attnum] or "", failing)
            if isinstance(check, StoredExpr) and check.length is not None:
                return _wrong_length(leaf, name, check.length, failing)
            return CheckViolation(
                f'new row for relation "{leaf.name}" violates check constraint "{name}"',
                detail=failing,
                constraint=name,
                table=leaf.relation_name,
            )
        case "partition" if relation.is_partitioned:
            return _no_partition(relation, problem, reader)
        case "partition":
            return CheckViolation(
                f'new row for relation "{relation.name}" violates partition constraint',
                detail=failing,
                table=relation.relation_name,
            )
        case "key":
            return _duplicate(relation, leaf, UniqueKey("", target.key), problem, reader)
        case "unique":
            return _duplicate(relation, leaf, target.unique[problem.number], problem, reader)
        case "reference":
            raise AssertionError("foreign keys are reported by orphan() and still_referenced()")


def orphan(
    relation: Relation,
    other: Relation,
    constraint: Constraint,
    values: Sequence[str | None],
    reader: RowReader,
) -> PostgresError:
    """Return the error for a row whose foreign key refers to no row.

    Args:
        values: the values of the foreign key's columns in this row.
    """
    names = [relation.column_at(attnum).name for attnum in constraint.columns]
    head = (
        f'insert or update on table "{relation.name}" violates foreign key constraint'
        f' "{constraint.name}"'
    )
    if None in values:
        return ForeignKeyViolation(
            head,
            detail="MATCH FULL does not allow mixing of null and nonnull key values.",
            table=relation.relation_name,
            constraint=constraint.name,
        )
    key = _key(reader.key(relation, names, values))
    return ForeignKeyViolation(
        head,
        detail=f'{key} is not present in table "{other.name}".',
        table=relation.relation_name,
        constraint=constraint.name,
    )


def still_referenced(
    relation: Relation,
    other: Relation,
    constraint: Constraint,
    old_values: Sequence[str | None],
    reader: RowReader,
) -> PostgresError:
    """Return the error for a removed row that other rows refer to."""
    names = [relation.column_at(attnum).name for attnum in constraint.ref_columns]
    key = _key(reader.key(relation, names, old_values))
    return ForeignKeyViolation(
        f'update or delete on table "{relation.name}" violates foreign key constraint'
        f' "{constraint.name}" on table "{other.name}"',
        detail=f'{key} is still referenced from table "{other.name}".',
        table=other.relation_name,
        constraint=constraint.name,
    )


def not_carried_out(
    constraint: Constraint,
    other: Relation,
    violation: PostgresError,
    assigned: Collection[int] | None,
) -> FeatureNotSupported:
    """Return the error for a foreign key's action (CASCADE, SET NULL) that replctl does not support
    for this statement.

    Args:
        violation: the violation that the action would have avoided.
        assigned: the columns that an UPDATE assigns; None for a DELETE.
    """
    event = "DELETE" if assigned is None else "UPDATE"
    action = constraint.on_delete if assigned is None else constraint.on_update
    return FeatureNotSupported(
        f'ON {event} {action.clause} of foreign key constraint "{constraint.name}" on table'
        f' "{other.name}" is not supported',
        detail=violation.detail,
        constraint=constraint.name,
    )


def duplicated(
    relation: Relation, index: Index, values: Sequence[str | None], reader: RowReader
) -> UniqueViolation:
    """Return the error for rows with equal keys, which prevent a unique index."""
    names = [column.name for column in relation.index_columns(index)]
    key = reader.key(relation, names, values)
    return UniqueViolation(
        f'could not create unique index "{index.name}"',
        detail="Duplicate keys exist." if key is None else f"Key {key} is duplicated.",
        constraint=index.name,
        table=relation.relation_name,
    )


def doubly_published(
    relation: Relation, target: Target, problem: Problem, reader: RowReader
) -> PostgresError:
    """Return the error for several published rows with the same key."""
    names = [relation.column_at(attnum).name for attnum in target.key]
    key = reader.key(relation, names, [problem.row[attnum] for attnum in target.key])
    return UniqueViolation(
        f'published table "{relation.qualified_name}" has several rows with the same key',
        detail="Duplicate keys exist." if key is None else f"Key {key} is duplicated.",
        hint="Delete all of these rows except one at the publisher, then synchronize again.",
        table=relation.relation_name,
    )


def _duplicate(
    relation: Relation, leaf: Relation, unique: UniqueKey, problem: Problem, reader: RowReader
) -> PostgresError:
    """Return the error for a duplicate key.  It names the leaf partition's own index."""
    names = [relation.column_at(attnum).name for attnum in unique.attnums]
    is_partial = unique.condition is not None
    alike = [
        index
        for index in leaf.indexes
        if index.is_unique_over_columns
        and (index.predicate is not None) == is_partial
        and [c.name for c in leaf.index_columns(index)] == names
    ]
    # A root's index has another name in a leaf.  This name is unknown if there are several partial
    # indexes
    name = min(alike, key=lambda index: index.name != unique.name).name if alike else ""
    key = reader.key(leaf, names, [problem.row[attnum] for attnum in unique.attnums])
    return UniqueViolation(
        f'duplicate key value violates unique constraint "{name}"',
        detail=None if key is None else f"Key {key} already exists.",
        constraint=name,
        table=leaf.relation_name,
    )


def _no_partition(relation: Relation, problem: Problem, reader: RowReader) -> PostgresError:
    key = relation.partition_key
    assert key is not None
    names = [relation.column_at(attnum).name for attnum in key.attnums]
    values = [problem.row[attnum] for attnum in key.attnums]
    shown = reader.key(relation, names, values, " = ")
    return CheckViolation(
        f'no partition of relation "{relation.name}" found for row',
        detail=None if shown is None else f"Partition key of the failing row contains {shown}.",
        table=relation.relation_name,
    )


def _key(shown: str | None) -> str:
    return "Key" if shown is None else f"Key {shown}"


def _checks(target: Target) -> list[tuple[str, Expr | StoredExpr]]:
    """Return the checks in the order of spark.outcome.checks_of, without the domains' checks, which
    precede them there.
    """
    own = [check for leaf in target.leaves for check in leaf.checks]
    return [*target.checks, *own]


def _lost_text(leaf: Relation, column: str, text: str, failing: str | None) -> CheckViolation:
    shown = f'the text "{text}"' if text else "an empty text"
    return CheckViolation(
        f'new row for relation "{leaf.name}" has {shown} in partition column "{column}"',
        detail=failing,
        hint="Delta would store NULL instead of this text. Use NULL, or another text.",
        table=leaf.relation_name,
    )


def _wrong_length(
    leaf: Relation, column: str, length: TextLength, failing: str | None
) -> PostgresError:
    """Return the error for a text that does not have the length of its column."""
    if length.is_exact:
        return CheckViolation(
            f'new row for relation "{leaf.name}" has a text in column "{column}" that does not have'
            f" {length.length} characters",
            detail=failing,
            hint=f"Spark would fill the text with blanks. Use rpad(value, {length.length}).",
            table=leaf.relation_name,
        )
    return StringDataRightTruncation(
        f"value too long for type character varying({length.length})",
        detail=failing,
        table=leaf.relation_name,
        column=column,
    )
