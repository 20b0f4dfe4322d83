"""CREATE TYPE ... AS ENUM (typecmds.c, pg_enum.c)."""

from __future__ import annotations

from replctl.catalog.pg_type import find_type, insert_enum_labels, insert_type, type_oid
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.naming import creation_schema
from replctl.commands.table import move_array_type
from replctl.errors import DuplicateObject, InvalidName, UniqueViolation
from replctl.expr.type_names import split_name
from replctl.parser import ast
from replctl.session import Session
from replctl.types.identifier import MAX_BYTES


def create_enum(session: Session, statement: ast.CreateEnum) -> str:
    """Make an enum.

    Raises:
        DuplicateObject: a type of that name is there already.
        InvalidName, UniqueViolation: a label is too long, or stands there twice.
    """
    return carry_out(session, lambda ddl: _create_enum(ddl, statement))


def _create_enum(ddl: Ddl, statement: ast.CreateEnum) -> str:
    schema_name, name = split_name(ddl.environment, statement.names)
    place = creation_schema(ddl.environment, schema_name, name)
    existing = find_type(ddl.catalog, place.oid, name)
    if existing is not None:
        if existing.element is None:
            raise DuplicateObject(f'type "{name}" already exists')
        move_array_type(ddl, place, existing)
    made = insert_type(ddl.catalog, name, place.oid, ddl.session.role_oid, kind="e")
    seen: set[str] = set()
    for label in statement.labels:
        if len(label.encode()) > MAX_BYTES:
            raise InvalidName(
                f'invalid enum label "{label}"',
                detail=f"Labels must be {MAX_BYTES} bytes or less.",
            )
        if label in seen:
            raise UniqueViolation(
                'duplicate key value violates unique constraint "pg_enum_typid_label_index"',
                detail=f"Key (enumtypid, enumlabel)=({type_oid(made)}, {label}) already exists.",
                constraint="pg_enum_typid_label_index",
                table="pg_enum",
            )
        seen.add(label)
    insert_enum_labels(ddl.catalog, made, statement.labels)
    return "CREATE TYPE"
