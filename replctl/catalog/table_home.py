"""Where the tables of a cluster lie that have no LOCATION: at paths relative to its home, so that
the home can be moved and copied, and those of a standby in its primary's home."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import ColumnElement, Connection, select, update

from replctl.catalog import state_schema

#: The directory of a cluster in which it makes tables.
BASE = "base"


def relative_location(database_oid: int, relid: int) -> str:
    """Return where a relation's Delta table is made, as the catalog has it."""
    return f"{BASE}/{database_oid}/{relid}"


def lies_at_home() -> ColumnElement[bool]:
    """Return the condition for a row of storage_table to be of a table in the cluster's home."""
    return state_schema.storage_table.c.location.startswith(f"{BASE}/", autoescape=True)


class TableHome:
    """Resolves locations as the catalog has them."""

    def __init__(self, connection: Connection) -> None:
        home = connection.execute(select(state_schema.pg_control.c.table_home)).scalar_one_or_none()
        if home is None:
            home = str(Path(str(connection.engine.url.database)).parent)
        self.path = home

    def located(self, location: str) -> str:
        """Return the absolute path, or the URI, of a table."""
        return os.path.join(self.path, location) if location.startswith(f"{BASE}/") else location


def located(connection: Connection, location: str) -> str:
    """Return the absolute path, or the URI, of one table."""
    return TableHome(connection).located(location)


def follow_tables(connection: Connection, primary_home: str) -> None:
    """Let a standby find its primary's tables."""
    connection.execute(update(state_schema.pg_control).values(table_home=primary_home))


def keep_tables(connection: Connection) -> None:
    """Let a standby that is promoted find its tables where they are: new ones lie in its own
    home."""
    home = TableHome(connection)
    table = state_schema.storage_table
    for row in connection.execute(select(table.c.relid, table.c.location)).all():
        change = update(table).where(table.c.relid == row.relid)
        connection.execute(change.values(location=home.located(str(row.location))))
    connection.execute(update(state_schema.pg_control).values(table_home=None))
