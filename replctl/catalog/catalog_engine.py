"""SQLAlchemy's engine over catalog.db: how its connections are set up, and transactions begin."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc

from replctl.catalog.commit_digest import begin_random
from replctl.catalog.sqlite_error import is_busy

_BUSY_TIMEOUT = 30.0  # seconds that a transaction waits for another process's short one
_BUSY_INTERVAL = (0.001, 0.01)  # seconds between two attempts


def catalog_engine(path: Path) -> Engine:
    """Return the engine over a catalog.db, which is made when it is first used."""
    url = URL.create("sqlite", database=str(path))
    connect_args = {"timeout": _BUSY_TIMEOUT, "check_same_thread": False, "uri": True}
    engine = create_engine(url, connect_args=connect_args)

    @event.listens_for(engine, "connect")
    def configure(dbapi_connection: Any, record: object) -> None:
        dbapi_connection.isolation_level = None  # BEGIN is ours to say (see the handler below)
        cursor = dbapi_connection.cursor()
        if not (path.exists() and path.stat().st_size):  # it can only be said of a new file
            cursor.execute("PRAGMA auto_vacuum = INCREMENTAL")  # trim in horizon.py
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = OFF")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        begin_random(connection)
        if connection.get_execution_options().get("replctl_write", False):
            _begin_immediate(connection)
        else:
            connection.exec_driver_sql("BEGIN")

    return engine


def _begin_immediate(connection: Connection) -> None:
    """Begin to write when nobody else does.

    SQLite itself sleeps the longer the oftener it has tried in vain: among many writers, who has
    waited longest would be the last to get through.  Here all have the same chance.
    """
    deadline = time.monotonic() + _BUSY_TIMEOUT
    connection.exec_driver_sql("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                return
            except exc.OperationalError as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(*_BUSY_INTERVAL))
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {int(_BUSY_TIMEOUT * 1000)}")
