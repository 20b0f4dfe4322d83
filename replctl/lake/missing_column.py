"""Report published columns that a subscription's table lacks."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.catalog.pg_class import Column, Relation
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.widened_column import is_wider
from replctl.replication.node import RemoteColumn, RemoteRelation
from replctl.replication.table_definition import native_statement
from replctl.types.builtin import types
from replctl.types.delta_type import is_native, native_text, shown_type
from replctl.types.quote import quote_identifier
from replctl.types.type_modifier import format_type


def missing_columns(
    relation: Relation, remote: RemoteRelation, names: Sequence[str], top: Relation
) -> ObjectNotInPrerequisiteState:
    """Return the error for published columns that a table lacks, or that it generates (55000).

    Args:
        names: the names of these columns.
        top: the topmost ancestor of a partition, which gets its columns from there; the table
            itself if it is no partition.
    """
    noun = "column" if len(names) == 1 else "columns"
    shown = ", ".join(f'"{name}"' for name in names)
    columns = [column for column in remote.columns if column.name in names]
    return ObjectNotInPrerequisiteState(
        f'logical replication target relation "{relation.qualified_name}" is missing replicated'
        f" {noun}: {shown}",
        hint=_hint(relation, columns, {column.name for column in remote.columns}, top.quoted_name),
    )


def _hint(
    relation: Relation, missing: Sequence[RemoteColumn], sent: set[str], name: str
) -> str | None:
    """Return the hint with the statements that add a table's missing columns; None if the table
    generates one of them, or if the type of one is unknown here.

    Args:
        sent: the names of all published columns.
        name: the name in SQL of the table to change.
    """
    table = f"ALTER TABLE {name}"
    added = _clauses(missing)
    if added is None or any(relation.column(c.name) is not None for c in missing):
        return None
    new = _statements(name, missing, added)
    renamed = _renamed(relation, missing, sent)
    if not renamed:
        return f"Use {new}"
    renames = "".join(
        f"{table} RENAME COLUMN {quote_identifier(old)} TO {quote_identifier(column)}; "
        for column, old in renamed.items()
    )
    others = [(c, text) for c, text in zip(missing, added, strict=True) if c.name not in renamed]
    if others:
        renames += f"{_statements(name, [c for c, _ in others], [text for _, text in others])} "
    noun = "a column" if len(renamed) == 1 else "columns"
    return f"If the publisher has renamed {noun}, use {renames}otherwise, use {new}"


def adding_statements(relation: Relation, remote: RemoteRelation, top: Relation) -> str:
    """Return the statements that add the published columns that a table lacks; "" if there are
    none, or if the type of one is unknown here.

    Args:
        top: see `missing_columns`.
    """
    missing = [column for column in remote.columns if relation.column(column.name) is None]
    added = _clauses(missing)
    return _statements(top.quoted_name, missing, added) if added else ""


def _clauses(columns: Sequence[RemoteColumn]) -> list[str] | None:
    """Return the clause of ALTER TABLE that adds each column; None if a type is unknown here."""
    shown = [(c, types().get(shown_type(c.type))) for c in columns]
    added = [
        f"ADD COLUMN {quote_identifier(c.name)} {format_type(type_, c.typmod)}"
        for c, type_ in shown
        if type_ is not None
    ]
    return added if len(added) == len(columns) else None


def _statements(table: str, columns: Sequence[RemoteColumn], added: Sequence[str]) -> str:
    """Return the statements that add columns to a table.

    Args:
        table: the table's name in SQL.
        added: the clause of ALTER TABLE for each column.
    """
    native = [
        native_statement(table, c.name, native_text(c.type)) for c in columns if is_native(c.type)
    ]
    return "; ".join([f"ALTER TABLE {table} {', '.join(added)}", *native]) + ";"


def _renamed(relation: Relation, missing: Sequence[RemoteColumn], sent: set[str]) -> dict[str, str]:
    """Return the missing columns that may be renamed ones, each with its earlier name.

    The columns of the table's key must be among them.  Of the others, a missing column may be a
    renamed one if exactly one column of the table that is not sent has a suitable type.
    """
    key = () if relation.primary_key is None else relation.primary_key.key
    own = [c for c in relation.columns if c.name not in sent]
    found: dict[str, str] = {}
    for column in [c for c in own if c.attnum in key]:
        new = next((m for m in missing if m.name not in found and _fits(column, m)), None)
        if new is not None:
            found[new.name] = column.name
    left = [c for c in own if c.name not in found.values()]
    options = {
        m.name: [c.name for c in left if _fits(c, m)] for m in missing if m.name not in found
    }
    for name, names in options.items():
        if len(names) == 1 and sum(names[0] in other for other in options.values()) == 1:
            found[name] = names[0]
    return {m.name: found[m.name] for m in missing if m.name in found}


def _fits(own: Column, sent: RemoteColumn) -> bool:
    """Return whether a table's column has the type of a sent column, or a wider one."""
    before, now = (own.type, own.typmod), (sent.type, sent.typmod)
    return before == now or is_wider(now, before)
