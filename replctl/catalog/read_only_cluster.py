"""Open a cluster in a directory that cannot be written: it is read-only, full, or belongs to
another user.

The catalogs can be read.  Writes fail with an error that names the directory and the reason.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing, contextmanager
from copy import copy
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event, inspect, text

from replctl.catalog import schema
from replctl.catalog.catalog_engine import HOME_OPTION
from replctl.catalog.catalog_file import CatalogFiles
from replctl.catalog.cluster import Cluster
from replctl.catalog.home_directory import CATALOG
from replctl.catalog.pg_control import ControlData, read_control
from replctl.catalog.server_log import ServerLog
from replctl.errors import ObjectNotInPrerequisiteState, PostgresError
from replctl.file_lock import may_be_locked

_COPIES = 3


class ReadOnlyCluster(Cluster):
    """An open cluster directory whose catalogs can only be read.

    Attributes:
        refusal: the error that says why the cluster cannot be written.
    """

    refusal: PostgresError

    def __init__(self, path: Path, refusal: PostgresError) -> None:
        self.path = path
        self.refusal = refusal
        self.backend = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self.log = ServerLog(self.log_file, lambda timeout: self.lock("log", timeout))
        self.is_new = False
        self.upgraded_from = None
        # A writer on another machine may remove -wal and -shm at any time
        self._files = CatalogFiles(CatalogFiles.at(path).catalog, None, None)
        self._stored_lsn = None
        self._is_overwritten = False
        self.abandoned = set()
        self._locks = ExitStack()
        self.others, self.superseded = {}, []
        self.opening_other = Lock()
        self.engine = _read_only_engine(path / CATALOG, self._locks, refusal)
        with self.begin(write=False) as connection:
            _check_revision(connection, path, refusal)
            control = read_control(connection)
        self.system_identifier = control.system_identifier
        self.signing_key = control.signing_key

    @contextmanager
    def begin(
        self, *, write: bool, in_recovery: bool = False, after_promotion: bool = False
    ) -> Iterator[Connection]:
        """Yield a read-only transaction, as Cluster.begin does.

        Raises:
            DiskFull, FileAccessDenied, IoError: the refusal, if `write` is true.
        """
        if write:
            raise copy(self.refusal)
        with super().begin(write=False) as connection:
            yield connection

    def control(self) -> ControlData:
        """Return the state of the cluster, as Cluster.control does."""
        with self.begin(write=False) as connection:
            return read_control(connection)

    @contextmanager
    def lock(
        self,
        name: str,
        timeout: float = -1,
        *,
        suspended_after: float | None = None,
        on_wait: Callable[[float, Collection[int]], None] = lambda waited, processes: None,
    ) -> Iterator[None]:
        """Raise the refusal, because only writers need locks."""
        raise copy(self.refusal)
        yield

    def is_alive(self, backend: str) -> bool:
        """Return the result of Cluster.is_alive, but do not remove locks of dead processes."""
        return backend == self.backend or may_be_locked(self._lock_file(f"backend-{backend}"))

    def close(self) -> None:
        """Close the catalog."""
        for cluster in (*self.others.values(), *self.superseded):
            cluster.close()
        self.engine.dispose()
        self._locks.close()


def _check_revision(connection: Connection, path: Path, refusal: PostgresError) -> None:
    """Check that the catalog is complete and belongs to this version of replctl.

    Raises:
        PostgresError: `refusal`, if the catalog was never complete.
        ObjectNotInPrerequisiteState: the catalog belongs to another version.
    """
    if not inspect(connection).has_table("alembic_version"):
        raise copy(refusal)
    query = text("SELECT version_num FROM alembic_version")
    revision = connection.execute(query).scalar_one_or_none()
    if revision != schema.REVISION:
        raise ObjectNotInPrerequisiteState(
            f'catalog of cluster "{path}" has revision {revision}, which this replctl does not'
            " support",
            detail=f"This replctl supports revision {schema.REVISION}. {refusal.message}.",
        )


def _read_only_engine(catalog: Path, stack: ExitStack, refusal: PostgresError) -> Engine:
    """Return SQLAlchemy's engine over a read-only catalog.

    Args:
        stack: removes the copy of the catalog at its end, if a copy is needed.

    Raises:
        PostgresError: `refusal`, if not even reading the catalog is possible.
    """
    try:
        uri = _readable(catalog, stack)
    except (OSError, sqlite3.Error) as error:
        raise copy(refusal) from error
    engine = create_engine(
        "sqlite://",
        creator=lambda: sqlite3.connect(uri, uri=True, check_same_thread=False),
        poolclass=QueuePool,
        execution_options={HOME_OPTION: str(catalog.absolute().parent)},
    )

    @event.listens_for(engine, "connect")
    def configure(dbapi_connection: Any, record: object) -> None:
        dbapi_connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


def _readable(catalog: Path, stack: ExitStack) -> str:
    """Return the URI with which SQLite can read a catalog.

    SQLite needs files next to the catalog to read its write-ahead log.  If they cannot be created,
    the URI leads to a copy.  If there is no log, it leads to the catalog as an immutable file.
    """
    plain = f"{catalog.as_uri()}?mode=ro"
    if _is_readable(plain):
        return plain
    log = catalog.with_name(f"{catalog.name}-wal")
    if not log.exists() or not log.stat().st_size:
        fixed = f"{plain}&immutable=1"
        _check_readable(fixed)
        return fixed
    copied = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="replctl-")))
    for _attempt in range(_COPIES):  # a writer may change the files during the copy
        before = [_state(path) for path in (catalog, log)]
        for path in (catalog, log):
            shutil.copyfile(path, copied / path.name)
        if before == [_state(path) for path in (catalog, log)]:
            break
    uri = (copied / catalog.name).as_uri()
    _check_readable(uri)
    return uri


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _is_readable(uri: str) -> bool:
    try:
        _check_readable(uri)
    except sqlite3.Error:  # the caller tries other ways
        return False
    return True


def _check_readable(uri: str) -> None:
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
