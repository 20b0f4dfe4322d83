"""CREATE TABLE ... USING delta LOCATION or TABLE: adopt an existing Delta table, or create a table
at a location.
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

from replctl.catalog.heap import insert_relation
from replctl.catalog.pg_class import Relation
from replctl.catalog.relation_kind import RelKind
from replctl.catalog.storage import CATALOG_TABLE, FOREIGN_FILES, PARTITION_TIMEZONE, insert_storage
from replctl.catalog.storage_column import insert_storage_column
from replctl.commands.adopted_columns import AdoptedColumns, all_columns, listed_columns
from replctl.commands.alter_column import set_not_null
from replctl.commands.column_definition import check_column_count
from replctl.commands.constraint import add_checks, sorted_constraints
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.file_layout import check_layout
from replctl.commands.own_table import (
    add_indexes_and_references,
    check_relation_name,
    define_columns,
    new_relation,
    table_place,
)
from replctl.commands.reloptions import note_features, table_options
from replctl.errors import FeatureNotSupported, InvalidParameterValue, UndefinedTable
from replctl.lake.adoption import NewestVersion, enter_adopted, newest_version
from replctl.lake.catalog_name import check_own_name, resolved_table
from replctl.lake.delta_log import latest_version
from replctl.lake.empty_partition import check_empty_values
from replctl.lake.file_access import check_location_role
from replctl.lake.foreign_files import has_foreign_files, leads_out
from replctl.lake.located_table import make_located
from replctl.lake.location import check_is_empty, check_location
from replctl.lake.partition_zone import check_partition_zones
from replctl.lake.storage_place import give_storage_column
from replctl.lake.table_folder import TableFolder
from replctl.parser import ast
from replctl.session import Session

_TAG = "CREATE TABLE"
_OPTIONS = (CATALOG_TABLE, FOREIGN_FILES, PARTITION_TIMEZONE)
_TRUST = (
    "If the table is a shallow clone, or you trust its log for another reason, adopt it with"
    f" WITH ({FOREIGN_FILES} = on)."
)


def create_table_at(session: Session, statement: ast.CreateTable) -> str:
    """Adopt the Delta table at a location.  If there is none, create a table with the columns of
    the statement at the end of the transaction.

    Adoption only reads the Delta table.  replctl adds its newest version to the commit log, so that
    replication starts there.  A column list chooses columns of the Delta table.

    Raises:
        InvalidParameterValue: the location is empty, invalid, or on another machine (22023).
        InsufficientPrivilege: the role may not read files of the server, may not write files for a
            new table, or the Delta table has files outside its directory without foreign_files
            (42501).
        UndefinedTable: there is no Delta table, and the statement has no column definitions.
        DuplicateObject: another relation already uses the location.
        UndefinedColumn, DatatypeMismatch: the Delta table lacks a column of the list, or has it
            with another type (42703, 42804).
        ObjectNotInPrerequisiteState: the directory of a new table is not empty (55000).
        InvalidObjectDefinition: the location is inside the directory of another table or a cluster
            (42P17).
        FeatureNotSupported: PostgreSQL has no type for a column of the list, or the time zone of
            partition values is missing.
    """
    assert statement.location is not None
    _check_text(statement.location)
    location = TableFolder.absolute(statement.location)
    _refuse(statement)
    with session.read() as catalog:
        check_location_role(session.privileges(catalog), writes=False)
    exists = latest_version(location) is not None
    has_columns = any(isinstance(e, ast.ColumnDef) for e in statement.elements)
    if not exists and (not has_columns or statement.catalog_table is not None):
        raise UndefinedTable(f'there is no Delta table at "{location}"')
    if not exists:
        with session.read() as catalog:
            check_location_role(session.privileges(catalog), writes=True)
            check_location(catalog, location)
        check_is_empty(location)
    _check_options(statement, is_adopted=exists)
    oid = carry_out(session, lambda ddl: _create(ddl, statement, location, exists=exists))
    if oid is not None and not exists:
        make_located(session, oid)
    return _TAG


def _check_text(location: str) -> None:
    """Check that a location names a directory that this machine can find.

    Raises:
        InvalidParameterValue: see `create_table_at`.
    """
    if not location:  # it would be the current directory
        raise InvalidParameterValue("the location of a table must not be empty")
    try:
        parts = urlsplit(location)
    except ValueError as error:  # a wrong IPv6 address
        raise InvalidParameterValue(f'invalid location "{location}": {error}') from error
    if parts.scheme == "file" and parts.netloc not in ("", "localhost"):
        raise InvalidParameterValue(
            f'location "{location}" is on another machine',
            detail=f'Files of the host "{parts.netloc}" cannot be found by a file: URI.',
        )


def adopt_by_name(session: Session, statement: ast.CreateTable) -> str:
    """Adopt the Delta table that has a name in Spark's catalogs, at its location.

    Raises:
        InvalidName: the text is not a name (42602).
        UndefinedTable: Spark's catalogs do not have the name.
        FeatureNotSupported: the name is not that of a Delta table.
        PostgresError: see `create_table_at`.
    """
    assert statement.catalog_table is not None
    _refuse(statement)
    with session.read() as catalog:
        check_location_role(session.privileges(catalog), writes=False)
    name, location = resolved_table(session, statement.catalog_table)
    return create_table_at(session, replace(statement, location=location, catalog_table=name))


def _refuse(statement: ast.CreateTable) -> None:
    word = "LOCATION" if statement.catalog_table is None else "TABLE"
    if statement.access_method != "delta":
        method = statement.access_method or "heap"  # default_table_access_method
        raise FeatureNotSupported(
            f'{word} with access method "{method}" is not supported',
            hint=f"Write USING delta before {word}.",
        )
    if statement.persistence != "permanent":
        raise FeatureNotSupported(f"only permanent tables can have a {word}")
    if statement.inherits or statement.partition_of or statement.partition_spec:
        raise FeatureNotSupported(f"INHERITS and partitions with {word} are not supported")
    if any(isinstance(element, ast.TableLike) for element in statement.elements):
        raise FeatureNotSupported(f"LIKE with {word} is not supported")


def _check_options(statement: ast.CreateTable, *, is_adopted: bool) -> None:
    for option in statement.options:
        if is_adopted and option.name not in _OPTIONS:
            raise FeatureNotSupported(
                f'storage parameter "{option.name}" of an adopted table is not supported'
            )


def _create(ddl: Ddl, statement: ast.CreateTable, location: str, *, exists: bool) -> int | None:
    """Add a table to the catalog, and return its OID.  Return None if a relation of that name
    exists and IF NOT EXISTS was given.
    """
    place = table_place(ddl, statement)
    if place is None:
        return None
    check_location(ddl.catalog, location)
    check_relation_name(ddl, place, statement.relation.name)
    relation = new_relation(ddl, place, statement.relation.name, RelKind.TABLE)
    options = table_options(statement.options, is_adopted=exists)
    check_own_name(ddl.catalog, relation, options)
    if statement.catalog_table is not None:
        options |= {CATALOG_TABLE: statement.catalog_table}
    note_features(ddl, relation.name, {}, options)
    relation = replace(relation, options=options)
    found = newest_version(location) if exists else None
    adopted = None if found is None else _adopted(ddl, relation, statement, found, location)
    if adopted is not None:
        relation, own = replace(relation, columns=adopted.columns), list(adopted.constraints)
    else:
        relation, own = define_columns(ddl, relation, statement)
        check_layout(relation)
    constraints = [*own, *(e for e in statement.elements if isinstance(e, ast.Constraint))]
    names = [column.name for column in relation.columns]
    check_column_count(len(names))
    drafts = sorted_constraints(relation.name, constraints, names, is_adopted=exists)
    insert_relation(ddl.catalog, relation)
    insert_storage(ddl.catalog, relation.oid, location, is_adopted=exists, has_location=True)
    if found is not None and adopted is not None:
        _enter(ddl, relation, found, adopted)
    else:
        for column in relation.columns:
            give_storage_column(ddl.catalog, relation, column)
    add_checks(ddl, ddl.relation(relation.oid), drafts.checks, merges=False)
    add_indexes_and_references(ddl, relation.oid, drafts)
    for name in () if adopted is None else adopted.not_null:
        set_not_null(ddl, ddl.relation(relation.oid), name, recurses=False)
    return relation.oid


def _adopted(
    ddl: Ddl, relation: Relation, statement: ast.CreateTable, found: NewestVersion, location: str
) -> AdoptedColumns:
    if any(isinstance(element, ast.ColumnDef) for element in statement.elements):
        return listed_columns(ddl, relation, statement, found.fields, location)
    return all_columns(ddl, relation, found.fields, location)


def _enter(ddl: Ddl, relation: Relation, found: NewestVersion, adopted: AdoptedColumns) -> None:
    """Record an adopted table's columns and its newest version."""
    ddl.made.discard(relation.oid)  # its rows must satisfy the constraints
    for attnum, known in enumerate(adopted.stored, start=1):
        insert_storage_column(ddl.catalog, relation.oid, attnum, known.name, 0, known.physical_name)
    if found.outside is not None and not has_foreign_files(relation):
        raise leads_out(relation, *found.outside, hint=_TRUST)
    entered = ddl.relation(relation.oid)
    check_partition_zones(entered)
    check_empty_values(entered)
    enter_adopted(ddl.catalog, entered, found, adopted.left_out, is_listed=adopted.is_listed)
