"""ON CONFLICT DO NOTHING: skip rows whose key already exists in a unique index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from replctl import spark
from replctl.catalog.aclchk import Privileges
from replctl.catalog.pg_class import Index, Relation
from replctl.catalog.relation_kind import ConstraintKind
from replctl.errors import (
    FeatureNotSupported,
    InvalidColumnReference,
    ObjectNotInPrerequisiteState,
    SqlSyntaxError,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
)
from replctl.parser import ast
from replctl.query.write import WrittenTable
from replctl.session import Session

if TYPE_CHECKING:
    from replctl.spark import Outcome


def arbiters(
    privileges: Privileges, relation: Relation, clause: ast.OnConflict | None
) -> tuple[Index, ...]:
    """Return the unique index in which an existing key makes INSERT skip a row, if there is one
    (infer_arbiter_indexes).  Several indexes would have to be checked row by row.

    Raises:
        InvalidColumnReference: no unique index is over the columns (42P10).
        UndefinedColumn, UndefinedObject, WrongObjectType: there is no such column or constraint.
        ObjectNotInPrerequisiteState: the index is deferrable (55000).
        FeatureNotSupported: DO UPDATE, or several indexes.
    """
    if clause is None:
        return ()
    if clause.action == "update":
        if not clause.targets and clause.constraint is None:
            raise SqlSyntaxError(
                "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                hint="For example, ON CONFLICT (column_name).",
                position=clause.pos,
            )
        raise FeatureNotSupported("ON CONFLICT DO UPDATE is not supported")
    if clause.constraint is not None:
        found = [_index_of_constraint(relation, clause.constraint)]
    elif clause.targets:
        found = _inferred(relation, clause)
    else:
        found = [index for index in relation.indexes if index.is_unique]
    for index in found:
        if index.is_deferrable:
            raise ObjectNotInPrerequisiteState(
                "ON CONFLICT does not support deferrable unique constraints/exclusion constraints"
                " as arbiters"
            )
    if len(found) > 1:
        raise FeatureNotSupported(
            "ON CONFLICT of several unique indexes is not supported",
            hint="Name the columns of one of them: ON CONFLICT (column_name).",
        )
    for index in found:
        privileges.check_relation(relation, "r", index.key)
    return tuple(found)


def _index_of_constraint(relation: Relation, name: str) -> Index:
    constraint = next((c for c in relation.constraints if c.name == name), None)
    if constraint is None:
        raise UndefinedObject(f'constraint "{name}" for table "{relation.name}" does not exist')
    index = next((i for i in relation.indexes if i.oid == constraint.index_oid), None)
    if index is None or constraint.kind == ConstraintKind.FOREIGN_KEY:
        raise WrongObjectType("constraint in ON CONFLICT clause has no associated index")
    return index


def _inferred(relation: Relation, clause: ast.OnConflict) -> list[Index]:
    """Return the first unique index over exactly the named columns."""
    attnums = set()
    for target in clause.targets:
        if not isinstance(target, ast.ColumnRef) or len(target.fields) != 1:
            raise FeatureNotSupported("expressions in ON CONFLICT are not supported")
        column = relation.column(target.fields[0])
        if column is None:
            name = target.fields[0]
            raise UndefinedColumn(f'column "{name}" does not exist', position=clause.pos)
        attnums.add(column.attnum)
    alike = [i for i in relation.indexes if i.is_unique_over_columns and set(i.key) == attnums]
    whole = [index for index in alike if index.predicate is None]
    if not whole and alike and clause.target_where is not None:
        raise FeatureNotSupported("partial indexes in ON CONFLICT are not supported")
    if not whole:
        raise InvalidColumnReference(
            "there is no unique or exclusion constraint matching the ON CONFLICT specification"
        )
    return whole[:1]


@contextmanager
def without_conflicts(
    session: Session, table: WrittenTable, proposed: Outcome, indexes: Sequence[Index]
) -> Iterator[Outcome]:
    """Yield the outcome of an INSERT without the rows whose key exists in the table or in an
    earlier row.

    Like PostgreSQL, check all rows before looking for conflicts, but not their keys.

    Args:
        indexes: the result of `arbiters`.
    """
    names = {index.name for index in indexes}
    keys = [k for k in proposed.target.unique if k.leaf is None and k.name in names]
    if not keys:
        yield proposed
        return
    table.check_rows(proposed, ())
    with spark.jobs.unconflicting(session.engine(), proposed, keys[0]) as outcome:
        yield outcome
