"""Report published columns that a subscription's table lacks."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.catalog.pg_class import Relation
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.widened_column import is_wider
from replctl.replication.node import RemoteColumn, RemoteRelation
from replctl.replication.table_definition import native_statement
from replctl.types.builtin import types
from replctl.types.delta_type import is_native, native_text, shown_type
from replctl.types.quote import quote_identifier
from replctl.types.type_modifier import format_type


def missing_columns(
    relation: Relation, remote: RemoteRelation, names: Sequence[str]
) -> ObjectNotInPrerequisiteState:
    """Return the error for published columns that a table lacks, or that it generates (55000).

    Args:
        names: the names of these columns.
    """
    noun = "column" if len(names) == 1 else "columns"
    shown = ", ".join(f'"{name}"' for name in names)
    columns = [column for column in remote.columns if column.name in names]
    return ObjectNotInPrerequisiteState(
        f'logical replication target relation "{relation.qualified_name}" is missing replicated'
        f" {noun}: {shown}",
        hint=_hint(relation, columns, {column.name for column in remote.columns}),
    )


def _hint(relation: Relation, missing: Sequence[RemoteColumn], sent: set[str]) -> str | None:
    """Return the hint with the statements that add a table's missing columns; None if the table
    generates one of them, or if the type of one is unknown here.

    Args:
        sent: the names of all published columns.
    """
    shown = [types().get(shown_type(c.type)) for c in missing]
    if None in shown or any(relation.column(c.name) is not None for c in missing):
        return None
    name = relation.quoted_name
    table = f"ALTER TABLE {name}"
    new = ", ".join(
        f"ADD COLUMN {quote_identifier(c.name)} {format_type(type_, c.typmod)}"
        for c, type_ in zip(missing, shown, strict=True)
        if type_ is not None
    )
    native = [
        native_statement(name, c.name, native_text(c.type)) for c in missing if is_native(c.type)
    ]
    new = "; ".join([new, *native])
    first = (missing[0].type, missing[0].typmod)
    own = [
        c
        for c in relation.columns
        if c.name not in sent
        and (first == (c.type, c.typmod) or is_wider(first, (c.type, c.typmod)))
    ]
    if len(missing) > 1 or len(own) != 1:
        return f"Use {table} {new};"
    old, column = quote_identifier(own[0].name), quote_identifier(missing[0].name)
    return (
        f"If the publisher has renamed a column, use {table} RENAME COLUMN {old} TO {column};"
        f" otherwise, use {table} {new};"
    )
