"""The errors of relations, columns and schemas that a statement names and that do not exist."""

from __future__ import annotations

from replctl.errors import InvalidSchemaName, UndefinedColumn, UndefinedTable


def no_relation(name: str, *, position: int = -1) -> UndefinedTable:
    """Return the error `relation "s.t" does not exist`."""
    return UndefinedTable(f'relation "{name}" does not exist', position=position)


def no_column(name: str | None, relation: str | None, *, position: int = -1) -> UndefinedColumn:
    """Return the error `column "a" of relation "t" does not exist`."""
    message = f'column "{name}" of relation "{relation}" does not exist'
    return UndefinedColumn(message, position=position)


def no_schema(name: str, *, position: int = -1) -> InvalidSchemaName:
    """Return the error `schema "s" does not exist`."""
    return InvalidSchemaName(f'schema "{name}" does not exist', position=position)
