"""Register replctl's own tables in the catalogs of Spark, under the names that their storage
parameter catalog_table gives.

replctl registers a table when its Delta table exists, before it writes the first rows.  Afterwards
it records the registration in its own catalog.  If a crash interrupts this, the next write of the
table repeats it.
"""

from __future__ import annotations

from replctl import spark
from replctl.catalog.pg_class import Relation
from replctl.catalog.spark_registration import (
    Registration,
    delete_registration,
    insert_registration,
    is_registered,
    registrations_of_dropped,
)
from replctl.catalog.storage import CATALOG_TABLE
from replctl.errors import DuplicateTable, InvalidSchemaName, PostgresError
from replctl.lake.catalog_name import full_name, leads_to, name_parts, shown_name
from replctl.lake.undo import storage_of
from replctl.session import Session


def missing_registration(session: Session, relation: Relation) -> str | None:
    """Return the name under which a table must be registered; None if it has no name or is
    registered already.

    Raises:
        DuplicateTable: the name already leads to another table (42P07).
        InvalidSchemaName: its schema does not exist in the catalogs of Spark (3F000).
    """
    name = relation.options.get(CATALOG_TABLE)
    if name is None or storage_of(relation).is_adopted:
        return None
    with session.cluster.begin(write=False) as connection:
        if is_registered(connection, relation.oid):
            return None
    parts = name_parts(name)
    found = spark.jobs.find_table(session.engine(), parts)
    if found is None and not spark.jobs.has_namespace(session.engine(), parts[:-1]):
        raise InvalidSchemaName(
            f'the schema of "{name}" does not exist in the catalogs of Spark',
            hint=f"Make it in Spark: CREATE SCHEMA {shown_name(parts[:-1])}.",
        )
    if found is not None and not leads_to(found, storage_of(relation).location):
        raise _is_taken(relation, name)
    return name


def register(session: Session, relation: Relation, name: str) -> None:
    """Register a table whose Delta table exists.

    Raises:
        DuplicateTable: another program has used the name meanwhile (42P07).
    """
    location, parts = storage_of(relation).location, name_parts(name)
    spark.jobs.register_table(session.engine(), parts, location)
    found = spark.jobs.find_table(session.engine(), parts)
    if found is None or not leads_to(found, location):
        raise _is_taken(relation, name)
    with session.cluster.begin(write=True) as connection:
        insert_registration(
            connection, Registration(relation.oid, full_name(parts, found), location)
        )


def unregister_dropped(session: Session) -> None:
    """Remove the names of dropped tables from the catalogs of Spark, unless a name now leads to
    another table.  If a name cannot be removed, print a WARNING and forget the name.
    """
    with session.cluster.begin(write=False) as connection:
        dropped = registrations_of_dropped(connection)
    for registration in dropped:
        try:
            _unregister(session, registration)
        except PostgresError as error:  # the table is dropped already
            session.notice(
                f'could not take "{registration.name}" out of the catalogs of Spark',
                severity="WARNING",
                detail=error.message,
                hint=f"Use DROP TABLE {registration.name} in Spark, which leaves the files.",
            )
        with session.cluster.begin(write=True) as connection:
            delete_registration(connection, registration.relid)


def _unregister(session: Session, registration: Registration) -> None:
    parts = name_parts(registration.name)
    found = spark.jobs.find_table(session.engine(), parts)
    if found is None:
        session.notice(
            f'"{registration.name}" leads to nothing in the catalogs of this Spark',
            detail="A dropped table had this name.",
        )
    elif found.is_external and leads_to(found, registration.location):
        spark.jobs.unregister_table(session.engine(), parts)


def _is_taken(relation: Relation, name: str) -> DuplicateTable:
    table = relation.quoted_name
    return DuplicateTable(
        f'table "{name}" already exists in the catalogs of Spark',
        detail=f'replctl cannot register table "{relation.name}" under this name.',
        hint=f"Choose another name: ALTER TABLE {table} SET ({CATALOG_TABLE} = 'SCHEMA.NAME').",
        table=relation.relation_name,
    )
