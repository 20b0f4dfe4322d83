"""The common part of both directions of COPY (copy.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl.catalog.pg_authid import (
    EXECUTE_SERVER_PROGRAM,
    PREDEFINED_ROLES,
    READ_SERVER_FILES,
    WRITE_SERVER_FILES,
)
from replctl.catalog.pg_class import Relation
from replctl.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidColumnReference,
    InvalidSchemaName,
    IoError,
    PostgresError,
    UndefinedColumn,
    UndefinedFile,
)
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.open_relation import open_relation
from replctl.result import Result
from replctl.session import Session
from replctl.types.builtin import SystemRelation


def copy(session: Session, statement: ast.Copy) -> Result:
    """Carry out COPY.

    Raises:
        PostgresError: what is wrong with the statement, or with a row.
    """
    if statement.is_program or statement.file is not None:
        _check_privilege(session, statement)
    if statement.is_program:
        raise FeatureNotSupported(
            "COPY with PROGRAM is not supported",
            hint="psql's \\copy command has it.",
        )
    if statement.is_from:
        from replctl.query.copy_from import copy_from

        return copy_from(session, statement)
    from replctl.query.copy_to import copy_to

    return copy_to(session, statement)


def _check_privilege(session: Session, statement: ast.Copy) -> None:
    """
    Raises:
        InsufficientPrivilege: the role may not use files, or programs, of the server (42501).
    """
    if statement.is_program:
        role, what = EXECUTE_SERVER_PROGRAM, "to or from an external program"
    elif statement.is_from:
        role, what = READ_SERVER_FILES, "from a file"
    else:
        role, what = WRITE_SERVER_FILES, "to a file"
    with session.read() as catalog:
        if session.privileges(catalog).acts_for(role):
            return
    raise InsufficientPrivilege(
        f"permission denied to COPY {what}",
        detail=f'Only roles with privileges of the "{PREDEFINED_ROLES[role]}" role may COPY'
        f" {what}.",
        hint="Anyone can COPY to stdout or from stdin. psql's \\copy command also works for"
        " anyone.",
    )


def copied_relation(analyzer: QueryAnalyzer, name: ast.RangeVar) -> Relation | SystemRelation:
    """Return the relation that a statement names.

    Raises:
        InvalidSchemaName, UndefinedTable: there is none.
        WrongObjectType: it has no rows.
    """
    if name.schema is not None and not analyzer.environment.has_schema(name.schema):
        raise InvalidSchemaName(f'schema "{name.schema}" does not exist')
    return open_relation(analyzer.environment, replace(name, pos=-1), or_sequence=True)


def column_numbers(
    relation: Relation,
    names: Sequence[str],
    copied: Sequence[int] | None = None,
    option: str = "",
) -> list[int]:
    """Return the columns that are listed, all that are not generated if none are (CopyGetAttnums).

    Args:
        copied: those that COPY copies, if it is an option that lists them.

    Raises:
        UndefinedColumn, DuplicateColumn, InvalidColumnReference: a name is not that of a column
            that can be copied, or stands there twice.
    """
    if not names:
        return [column.attnum for column in relation.columns if not column.generated]
    numbers: list[int] = []
    for name in names:
        column = relation.column(name)
        if column is None:
            raise UndefinedColumn(f'column "{name}" of relation "{relation.name}" does not exist')
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
    """Return the complaint about an option for a column that is not copied."""
    return InvalidColumnReference(f'{option} column "{name}" not referenced by COPY')


def file_error(name: str, error: OSError, *, is_from: bool) -> PostgresError:
    """Return a file that cannot be opened."""
    purpose, words = ("reading", "FROM instructs the PostgreSQL server process to read")
    if not is_from:
        purpose, words = ("writing", "TO instructs the PostgreSQL server process to write")
    kinds: dict[type[OSError], type[PostgresError]] = {
        FileNotFoundError: UndefinedFile,
        PermissionError: InsufficientPrivilege,
    }
    kind = kinds.get(type(error), IoError)
    hint = f"COPY {words} a file. You may want a client-side facility such as psql's \\copy."
    return kind(
        f'could not open file "{name}" for {purpose}: {error.strerror}',
        hint=None if kind is IoError else hint,
    )
