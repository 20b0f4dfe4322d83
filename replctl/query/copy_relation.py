"""Find the relation and the columns of COPY, and report files that cannot be opened (copy.c)."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import replace

from replctl.catalog.pg_class import Relation
from replctl.does_not_exist import no_column, no_schema
from replctl.errors import (
    DiskFull,
    DuplicateColumn,
    InsufficientPrivilege,
    InvalidColumnReference,
    IoError,
    PostgresError,
    UndefinedFile,
    WrongObjectType,
)
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.open_relation import open_relation
from replctl.types.builtin import SystemRelation


def copied_relation(analyzer: QueryAnalyzer, name: ast.RangeVar) -> Relation | SystemRelation:
    """Return the relation that a statement names.

    Raises:
        InvalidSchemaName, UndefinedTable: the schema or the relation does not exist.
        WrongObjectType: the relation has no rows.
    """
    if name.schema is not None and analyzer.environment.schema_oid(name.schema) is None:
        raise no_schema(name.schema)
    return open_relation(analyzer.environment, replace(name, pos=-1), or_sequence=True)


def column_numbers(
    relation: Relation,
    names: Sequence[str],
    copied: Sequence[int] | None = None,
    option: str = "",
) -> list[int]:
    """Return the numbers of the listed columns, or of all columns that are not generated
    (CopyGetAttnums).

    Args:
        copied: the columns that the statement copies, if `names` are those of an option.

    Raises:
        UndefinedColumn, DuplicateColumn, InvalidColumnReference: a name is not a column that COPY
            can copy, or is listed twice.
    """
    if not names:
        return [column.attnum for column in relation.columns if not column.generated]
    numbers: list[int] = []
    for name in names:
        column = relation.column(name)
        if column is None:
            raise no_column(name, relation.name)
        if column.generated:
            raise InvalidColumnReference(
                f'column "{name}" is a generated column',
                detail="Generated columns cannot be used in COPY.",
            )
        if column.attnum in numbers:
            raise DuplicateColumn(f'column "{name}" specified more than once')
        numbers.append(column.attnum)
    for name, number in zip(names, numbers, strict=True):
        if copied is not None and number not in copied:
            raise not_referenced(option, name)
    return numbers


def not_referenced(option: str, name: str) -> InvalidColumnReference:
    """Return the error for an option that names a column that the statement does not copy."""
    return InvalidColumnReference(f'{option} column "{name}" not referenced by COPY')


def file_error(name: str, error: OSError, *, is_from: bool) -> PostgresError:
    """Return the error for a file that cannot be opened (errcode_for_file_access)."""
    purpose, words = ("reading", "FROM instructs the PostgreSQL server process to read")
    if not is_from:
        purpose, words = ("writing", "TO instructs the PostgreSQL server process to write")
    kinds: dict[type[OSError], type[PostgresError]] = {
        FileNotFoundError: UndefinedFile,
        PermissionError: InsufficientPrivilege,
        IsADirectoryError: WrongObjectType,
        NotADirectoryError: WrongObjectType,
    }
    kind = kinds.get(type(error), IoError)
    hint = f"COPY {words} a file. You may want a client-side facility such as psql's \\copy."
    return kind(
        f'could not open file "{name}" for {purpose}: {error.strerror}',
        hint=hint if kind in (UndefinedFile, InsufficientPrivilege) else None,
    )


def write_error(error: OSError) -> PostgresError:
    """Return the error for an open file that cannot be written."""
    kind = DiskFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else IoError
    return kind(f"could not write to COPY file: {error.strerror}")
