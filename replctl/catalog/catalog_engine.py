"""SQLAlchemy's engine over catalog.db: configure its connections, and begin transactions."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc

from replctl.catalog.commit_digest import forget_base
from replctl.catalog.sqlite_error import is_busy

#: The execution option of an engine that has the absolute path of the cluster's home.
HOME_OPTION = "replctl_home"
_BUSY_TIMEOUT = 30.0  # seconds to wait for a write transaction of another process
#: Commits reach the disk before they end (SQLite's PRAGMA synchronous).
_SYNCHRONOUS = "FULL"
_BUSY_INTERVAL = (0.001, 0.01)  # seconds between two attempts


def catalog_engine(path: Path) -> Engine:
    """Return the engine over a catalog.db.  SQLite creates a missing file on first use."""
    url = URL.create("sqlite", database=str(path))
    connect_args = {"timeout": _BUSY_TIMEOUT, "check_same_thread": False, "uri": True}
    options = {HOME_OPTION: str(path.absolute().parent)}
    engine = create_engine(url, connect_args=connect_args, execution_options=options)

    @event.listens_for(engine, "connect")
    def configure(dbapi_connection: Any, record: object) -> None:
        dbapi_connection.isolation_level = None  # the handler below sends BEGIN
        cursor = dbapi_connection.cursor()
        if not (path.exists() and path.stat().st_size):  # possible only for a new file
            cursor.execute("PRAGMA auto_vacuum = INCREMENTAL")  # trim in horizon.py
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute(f"PRAGMA synchronous = {_SYNCHRONOUS}")
        cursor.execute("PRAGMA foreign_keys = OFF")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        forget_base(connection)
        if connection.get_execution_options().get("replctl_write", False):
            _begin_immediate(connection)
        else:
            connection.exec_driver_sql("BEGIN")

    return engine


@contextmanager
def write_transaction(engine: Engine) -> Iterator[Connection]:
    """Yield a transaction that may write, even if the cluster refuses writes (Cluster.begin)."""
    with (
        engine.connect() as connection,
        connection.execution_options(replctl_write=True).begin(),
    ):
        yield connection


def _begin_immediate(connection: Connection) -> None:
    """Begin a write transaction as soon as no other process has one open.

    SQLite's own waiting sleeps longer after each failure.  Among many writers, the one that waited
    longest would be the last to succeed.  Here all writers have the same chance.
    """
    deadline = time.monotonic() + _BUSY_TIMEOUT
    connection.exec_driver_sql("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                return
            except exc.OperationalError as error:  # another process writes
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(*_BUSY_INTERVAL))
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {int(_BUSY_TIMEOUT * 1000)}")
