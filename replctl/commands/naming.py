"""Schemas and default names of new objects.

Sources:

- namespace.c: RangeVarGetAndCheckCreationNamespace()
- indexcmds.c: makeObjectName(), ChooseRelationName(), ChooseIndexName()
- pg_constraint.c: ChooseConstraintName()
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from replctl.catalog import schema
from replctl.catalog.acl import Privilege
from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_class import find_relation_oid
from replctl.catalog.relation_kind import RelPersistence
from replctl.catalog.transaction import Catalog
from replctl.does_not_exist import no_schema
from replctl.errors import (
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidParameterValue,
    InvalidSchemaName,
    InvalidTableDefinition,
    UndefinedObject,
)
from replctl.expr.environment import SYSTEM_SCHEMA
from replctl.parser import ast
from replctl.record import dataclass
from replctl.types.identifier import MAX_BYTES, clipped


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema for a new object."""

    oid: int
    name: str

    @property
    def is_temporary(self) -> bool:
        """Return whether the schema is temporary."""
        return self.name.startswith("pg_temp_")

    @property
    def persistence(self) -> RelPersistence:
        """Return the persistence of relations in the schema, unless a statement gives another."""
        return RelPersistence.TEMPORARY if self.is_temporary else RelPersistence.PERMANENT


def creation_schema(
    environment: CatalogEnvironment,
    schema_name: str | None,
    name: str,
    *,
    database: str | None = None,
    pos: int = -1,
) -> Schema:
    """Return the schema for a new object `schema_name.name`.  Without a schema name, return the
    first usable schema of the search path.

    Raises:
        InvalidSchemaName: there is no such schema.
        FeatureNotSupported: the name has another database.
        InsufficientPrivilege: the schema is pg_catalog, or the role may not create objects in it.
    """
    if database is not None and database != environment.database:
        raise FeatureNotSupported(
            f'cross-database references are not implemented: "{database}.{schema_name}.{name}"',
            position=pos,
        )
    if schema_name is None:
        if not environment.search_path.for_creation:
            raise InvalidSchemaName("no schema has been selected to create in", position=pos)
        schema_name = environment.search_path.for_creation[0][0]
    found = environment.schema_oid(schema_name)
    if found is None:
        raise no_schema(schema_name, position=pos)
    if schema_name == SYSTEM_SCHEMA:
        raise InsufficientPrivilege(
            f'permission denied to create "{schema_name}.{name}"',
            detail="System catalog modifications are currently disallowed.",
        )
    _check_create(environment, found, schema_name, pos)
    return Schema(found, schema_name)


def relation_schema(
    environment: CatalogEnvironment, target: ast.RangeVar, *, pos: int = -1
) -> Schema:
    """Return the schema for a new relation that is not temporary, unless its schema is.

    Raises:
        InvalidTableDefinition: the schema has the temporary relations of another session (42P16;
            RangeVarAdjustRelationPersistence).
        Those of `creation_schema`.
    """
    place = creation_schema(
        environment, target.schema, target.name, database=target.catalog, pos=pos
    )
    if place.is_temporary and place.name != environment.search_path.temporary_schema:
        raise InvalidTableDefinition(
            "cannot create relations in temporary schemas of other sessions"
        )
    return place


def _check_create(environment: CatalogEnvironment, oid: int, name: str, pos: int) -> None:
    try:
        environment.privileges.check_schema(oid, name, Privilege.CREATE)
    except InsufficientPrivilege as error:
        error.position = pos
        raise


def object_name(first: str, second: str | None, label: str) -> str:
    """Return a name made of parts: (`t`, `a`, `key`) -> `t_a_key`.  Shorten the first two parts if
    the name would be too long.
    """
    available = MAX_BYTES - len(label.encode()) - 1 - (0 if second is None else 1)
    a, b = len(first.encode()), 0 if second is None else len(second.encode())
    while a + b > available:
        if a > b:
            a -= 1
        else:
            b -= 1
    parts = [clipped(first, a)]
    if second is not None:
        parts.append(clipped(second, b))
    return "_".join([*parts, label])


def relation_name(
    catalog: Catalog,
    table: str,
    schema_oid: int,
    column_names: Sequence[str],
    label: str,
    others: Collection[str] = (),
) -> str:
    """Return a name for an index or a sequence that no relation of the schema has.  If the index
    belongs to a constraint, no constraint has the name either.

    Args:
        label: pkey, key, idx or seq.
        others: names of relations that will be in the schema.
    """
    second = None if label == "pkey" else _joined(column_names)
    number, suffix = 0, label
    while True:
        candidate = object_name(table, second, suffix)
        is_taken = find_relation_oid(catalog, candidate, schema_oid) is not None or (
            label in ("pkey", "key") and _is_constraint(catalog, candidate, schema_oid)
        )
        if not is_taken and candidate not in others:
            return candidate
        number += 1
        suffix = f"{label}{number}"


def constraint_name(
    catalog: Catalog,
    table: str,
    schema_oid: int,
    column_names: Sequence[str],
    label: str,
    others: Collection[str] = (),
) -> str:
    """Return a name for a CHECK or a foreign key that no constraint of the schema has.

    Args:
        label: check or fkey.
        others: names of further constraints in the statement.
    """
    second = _joined(column_names) if column_names else None
    number, suffix = 0, label
    while True:
        candidate = object_name(table, second, suffix)
        if candidate not in others and not _is_constraint(catalog, candidate, schema_oid):
            return candidate
        number += 1
        suffix = f"{label}{number}"


def _joined(column_names: Sequence[str]) -> str:
    """Join the names of columns: `a_b`.  Stop at the maximum length of a name
    (ChooseIndexNameAddition).
    """
    text = ""
    for name in column_names:
        text = f"{text}_{name}" if text else name
        if len(text.encode()) > MAX_BYTES:
            break
    return text


def _is_constraint(catalog: Catalog, name: str, schema_oid: int) -> bool:
    table = schema.pg_constraint
    row = catalog.first(table, table.c.conname == name, table.c.connamespace == schema_oid)
    return row is not None


def check_tablespace(name: str | None) -> None:
    """Check that a relation can be in a tablespace.  Only pg_default can have relations.

    Raises:
        UndefinedObject: there is no such tablespace.
        InvalidParameterValue: the tablespace is pg_global, which has shared catalogs only.
    """
    if name == "pg_global":
        raise InvalidParameterValue("only shared relations can be placed in pg_global tablespace")
    if name not in (None, "pg_default"):
        raise UndefinedObject(f'tablespace "{name}" does not exist')
