"""Record the tables that replctl has registered in the catalogs of Spark (catalog_table)."""

from __future__ import annotations

from sqlalchemy import Connection, delete, exists, insert, or_, select

from replctl.catalog import schema, state_schema
from replctl.catalog.state_schema import is_in_progress
from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class Registration:
    """A table's name in the catalogs of Spark, and the location that Spark has for this name."""

    relid: int
    name: str
    location: str


def insert_registration(connection: Connection, registration: Registration) -> None:
    """Record a registration."""
    connection.execute(
        insert(state_schema.spark_registration).values(
            relid=registration.relid, name=registration.name, location=registration.location
        )
    )


def is_registered(connection: Connection, relid: int) -> bool:
    """Return whether a table is registered."""
    table = state_schema.spark_registration
    query = select(table.c.relid).where(table.c.relid == relid)
    return connection.execute(query).first() is not None


def registrations_of_dropped(connection: Connection) -> list[Registration]:
    """Return the registrations of dropped tables of all databases."""
    table, relation, xact = state_schema.spark_registration, schema.pg_class, state_schema.pg_xact
    in_progress = select(xact.c.xid).where(is_in_progress(xact))
    is_there = exists().where(
        relation.c.oid == table.c.relid,
        or_(relation.c.xmax == 0, relation.c.xmax.in_(in_progress)),
    )
    rows = connection.execute(select(table).where(~is_there).order_by(table.c.relid))
    return [Registration(int(row.relid), str(row.name), str(row.location)) for row in rows]


def delete_registration(connection: Connection, relid: int) -> None:
    """Remove the record of a registration."""
    table = state_schema.spark_registration
    connection.execute(delete(table).where(table.c.relid == relid))
