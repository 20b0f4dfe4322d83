"""ALTER TABLE: add, change and drop identity columns (tablecmds.c)."""

from __future__ import annotations

from dataclasses import replace

from replctl.catalog.heap import update_column
from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.pg_inherits import children_of
from replctl.catalog.pg_sequence import owned_sequences
from replctl.catalog.relation_kind import DependencyType, Identity
from replctl.commands.alter_column import existing_column
from replctl.commands.ddl import Ddl
from replctl.commands.dependency import drop_objects
from replctl.commands.object_address import Object
from replctl.commands.sequence import (
    SequenceDraft,
    change_sequence,
    check_countable,
    sequence_of_column,
)
from replctl.commands.table_expression import default_expression
from replctl.errors import InvalidTableDefinition, ObjectNotInPrerequisiteState, SqlSyntaxError
from replctl.parser import ast


def add_identity(
    ddl: Ddl, relation: Relation, command: ast.AlterTableCmd, *, recurses: bool
) -> None:
    """Make a column an identity column with its own sequence, here and in all partitions
    (ATExecAddIdentity).

    Raises:
        ObjectNotInPrerequisiteState: the column allows NULL, has a default, or is an identity
            column.
        InvalidTableDefinition: the table is a partition, or ONLY excludes its partitions.
    """
    name = command.name or ""
    column = existing_column(relation, name)
    _check_recursion(relation, recurses, "add identity to a column of")
    where = f'column "{name}" of relation "{relation.name}"'
    check_countable(column.type, is_identity=True)
    if not column.not_null:
        raise ObjectNotInPrerequisiteState(
            f"{where} must be declared NOT NULL before identity can be added"
        )
    if column.identity:
        raise ObjectNotInPrerequisiteState(f"{where} is already an identity column")
    if column.default is not None:
        raise ObjectNotInPrerequisiteState(f"{where} already has a default value")
    draft = SequenceDraft(column.type, DependencyType.INTERNAL, command.options)
    raw = sequence_of_column(ddl, relation, column, draft)
    default = default_expression(ddl.environment, relation, column, raw, ddl.now)
    changed = replace(column, identity=Identity.named(command.value or ""), default=default)
    _change(ddl, relation, changed)


def alter_identity(
    ddl: Ddl, relation: Relation, command: ast.AlterTableCmd, *, recurses: bool
) -> None:
    """Change the kind of an identity column, or its sequence (ATExecSetIdentity).

    Raises:
        ObjectNotInPrerequisiteState: the column is not an identity column.
        PostgresError: an option is wrong.
    """
    name = command.name or ""
    column = existing_column(relation, name)
    _check_recursion(relation, recurses, "change identity column of")
    if not column.identity:
        raise ObjectNotInPrerequisiteState(_no_identity(relation, name))
    when = [option for option in command.options if option.name == "generated"]
    if len(when) > 1:
        raise SqlSyntaxError("conflicting or redundant options")
    rest = [option for option in command.options if option.name != "generated"]
    for sequence in owned_sequences(ddl.catalog, relation.oid, column.attnum) if rest else ():
        change_sequence(ddl, sequence, rest, is_identity=True)
    if when:
        _change(ddl, relation, replace(column, identity=Identity.named(when[0].value or "")))


def drop_identity(
    ddl: Ddl, relation: Relation, command: ast.AlterTableCmd, *, recurses: bool
) -> None:
    """Drop a column's identity and its sequence (ATExecDropIdentity).

    Raises:
        ObjectNotInPrerequisiteState: the column is not an identity column.
    """
    name = command.name or ""
    column = existing_column(relation, name)
    _check_recursion(relation, recurses, "drop identity from a column of")
    if not column.identity:
        if not command.missing_ok:
            raise ObjectNotInPrerequisiteState(_no_identity(relation, name))
        ddl.notice(f"{_no_identity(relation, name)}, skipping")
        return
    sequences = owned_sequences(ddl.catalog, relation.oid, column.attnum)
    _change(ddl, relation, replace(column, identity=Identity.NONE, default=None))
    drop_objects(ddl, [Object("sequence", sequence.relid) for sequence in sequences], "restrict")


def _no_identity(relation: Relation, name: str) -> str:
    return f'column "{name}" of relation "{relation.name}" is not an identity column'


def _check_recursion(relation: Relation, recurses: bool, what: str) -> None:
    if relation.is_partition:
        raise InvalidTableDefinition(f"cannot {what} a partition")
    if relation.is_partitioned and not recurses:
        raise InvalidTableDefinition(
            f"cannot {what} only the partitioned table",
            hint="Do not specify the ONLY keyword.",
        )


def _change(ddl: Ddl, relation: Relation, changed: Column) -> None:
    """Change the identity of a column, here and in all partitions."""
    update_column(ddl.catalog, relation.oid, changed)
    for oid in children_of(ddl.catalog, relation.oid) if relation.is_partitioned else ():
        child = ddl.relation(oid)
        column = existing_column(child, changed.name)
        below = replace(column, identity=changed.identity, default=changed.default)
        _change(ddl, child, below)
