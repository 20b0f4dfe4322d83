"""Resolve the locations of tables without LOCATION: they are stored relative to the cluster's home,
so that the home can be moved and copied.  A standby resolves them in its primary's home.
"""

from __future__ import annotations

import os

from sqlalchemy import ColumnElement, Connection, select, update

from replctl.catalog import state_schema
from replctl.catalog.catalog_engine import HOME_OPTION

#: The directory of a cluster for its own tables.
BASE = "base"


def relative_location(database_oid: int, relid: int) -> str:
    """Return the relative location for a relation's new Delta table."""
    return f"{BASE}/{database_oid}/{relid}"


def lies_at_home() -> ColumnElement[bool]:
    """Return the condition that a row of storage_table belongs to a table in the cluster's home."""
    return state_schema.storage_table.c.location.startswith(f"{BASE}/", autoescape=True)


class TableHome:
    """Resolves stored locations."""

    def __init__(self, connection: Connection) -> None:
        home = connection.execute(select(state_schema.pg_control.c.table_home)).scalar_one_or_none()
        if home is None:
            home = str(connection.get_execution_options()[HOME_OPTION])
        assert os.path.isabs(home)  # else a table would be read from the working directory
        self.path = home

    def located(self, location: str) -> str:
        """Return the absolute path or the URI of a table."""
        return os.path.join(self.path, location) if location.startswith(f"{BASE}/") else location


def located(connection: Connection, location: str) -> str:
    """Return the absolute path or the URI of one table (TableHome)."""
    return TableHome(connection).located(location)


def follow_tables(connection: Connection, primary_home: str) -> None:
    """Make a standby resolve locations in its primary's home."""
    connection.execute(update(state_schema.pg_control).values(table_home=primary_home))


def keep_tables(connection: Connection) -> None:
    """Store the tables' absolute locations in the old primary's home, when a standby is promoted.
    New tables get locations in the standby's own home.
    """
    home = TableHome(connection)
    table = state_schema.storage_table
    for row in connection.execute(select(table.c.relid, table.c.location)).all():
        change = update(table).where(table.c.relid == row.relid)
        connection.execute(change.values(location=home.located(str(row.location))))
    connection.execute(update(state_schema.pg_control).values(table_home=None))
