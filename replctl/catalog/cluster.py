"""Open, create and lock a cluster: a directory with a catalog, tables, locks and a log."""

from __future__ import annotations

import os
import sqlite3
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Engine, exc, inspect

from replctl.absolute_path import absolute_path
from replctl.catalog import schema
from replctl.catalog.catalog_engine import catalog_engine, write_transaction
from replctl.catalog.catalog_file import (
    CatalogFiles,
    abandon,
    check_wal,
    is_overwritten,
    is_replaced,
    replaced,
    stored_lsn,
)
from replctl.catalog.cluster_identity import check_identity, is_at_home, promoted_standby
from replctl.catalog.home_directory import (
    CATALOG,
    check_holds_nothing_else,
    has_catalog,
    holds_other_files,
    make_home_private,
    refusal_of,
)
from replctl.catalog.initdb import bootstrap
from replctl.catalog.pg_control import (
    ControlData,
    check_recovers,
    check_writable,
    control_now,
    end_replacement,
    read_control,
    replace_by,
)
from replctl.catalog.revision import check_upgradable, keep_copy, migrate, stored_revision
from replctl.catalog.server_log import ServerLog
from replctl.catalog.sqlite_error import translated
from replctl.catalog.transaction import BlockXids, Catalog
from replctl.errors import (
    CannotConnectNow,
    CharacterNotInRepertoire,
    FileAccessDenied,
    InvalidCatalogName,
    IoError,
    LockNotAvailable,
    ObjectNotInPrerequisiteState,
    PostgresError,
    UndefinedFile,
)
from replctl.file_lock import LockTimeout, help_with, holder, is_stopped, locked, may_be_locked
from replctl.memory_limit import lift_memory_limit
from replctl.own_command import default_home
from replctl.types.character import invalid_bytes

#: Seconds to wait for other processes that are opening the cluster.
_OPENING_PATIENCE = 60.0
#: Seconds of waiting for a lock, after which the waiter checks whether the holder is suspended.
_PATIENCE = 30.0
#: Seconds between two checks during a wait without limit.
_INTERVAL = 0.5


class Cluster:
    """An open cluster directory.

    Attributes:
        path: the directory.
        engine: SQLAlchemy's engine over catalog.db.
        system_identifier: the cluster's unique number.
        signing_key: the key that signs the marks of commits to Delta tables; standbys share it.
        backend: this process's name in the cluster; the process holds a lock of that name.
        log: the cluster's log.
        is_new: opening the cluster has created its directory.
        refusal: the error that says why the cluster cannot be written; None if it can.
        upgraded_from: the former revision if opening the cluster has upgraded it; else None.
        superseded: other clusters that could only be read when they were opened.  They are open
            again for writing, but threads may still read the old ones.
        abandoned: failed transactions that this process could not yet undo or mark as abandoned.
    """

    refusal: PostgresError | None = None

    def __init__(self, path: Path, *, is_made: bool = True, is_checked: bool = True) -> None:
        self.path = path
        make_home_private(path)
        self.engine = catalog_engine(path / CATALOG)
        self._locks = ExitStack()
        self.others: dict[Path, Cluster] = {}
        self.superseded: list[Cluster] = []
        self.opening_other = Lock()  # see other_cluster
        self.is_new = False
        self.upgraded_from: str | None = None
        self._files = CatalogFiles(None, None, None)
        self._stored_lsn: int | None = None
        self._is_overwritten = False
        self.abandoned: set[int] = set()
        self.log = ServerLog(self.log_file, lambda timeout: self.lock("log", timeout))
        self.backend = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        # Two programs must not create or upgrade the catalog at once, and none may sweep a new lock
        with self._opening():
            check_wal(path, self._users())
            self._prepare_catalog(is_made=is_made)
            with self.engine.begin() as connection:
                control = read_control(connection)
            if is_checked:
                self._check_identity(control)
            if is_checked or is_at_home(control.home, path.resolve()):
                self.notice_promotion()
            (path / "lock").mkdir(mode=0o700, exist_ok=True)
            # By this lock, other processes know that this one still runs (is_alive)
            self._locks.enter_context(self.lock(f"backend-{self.backend}"))
        with self.engine.begin() as connection:
            control = read_control(connection)
        # An interrupted statement closes its connection, and the last one that is closed removes
        # the -wal and the -shm.  They must stay while the process has the catalog open.
        self._lasting_connection = self.engine.raw_connection()
        self._lasting_connection.cursor().execute("PRAGMA schema_version").fetchall()
        self._is_reading_control = Lock()
        self._files = CatalogFiles.at(path)
        self._files.note(path / "lock" / f"backend-{self.backend}.lock")
        self.system_identifier = control.system_identifier
        self.signing_key = control.signing_key

    @staticmethod
    def home(path: str | Path | None = None) -> Path:
        """Return the chosen directory: `path`, else $REPLCTL_HOME, else the user's default.

        Raises:
            ObjectNotInPrerequisiteState: no directory is given, and the user has no home directory.
            UndefinedFile: the path is relative, and the working directory has been removed.
            CharacterNotInRepertoire: the path is not UTF-8.  The catalog stores it as text.
        """
        chosen = absolute_path(path) if path else default_home()
        if chosen is None:
            raise ObjectNotInPrerequisiteState(
                f"user ID {os.geteuid()} has no home directory",
                hint="Name a directory for the cluster: --home DIRECTORY, or REPLCTL_HOME.",
            )
        try:
            os.fspath(chosen).encode()
        except UnicodeEncodeError as error:
            raise CharacterNotInRepertoire(
                f'the name of directory "{chosen}" is not valid in encoding "UTF8"',
                hint="Name another directory, or rename it.",
            ) from error
        return chosen

    @staticmethod
    def exists(path: Path) -> bool:
        """Return whether there is a cluster at `path`.

        Raises:
            FileAccessDenied: the directory cannot be read.
        """
        try:
            return has_catalog(path)
        except OSError as error:
            raise FileAccessDenied(f'could not use directory "{path}": {error.strerror}') from error

    def close(self) -> None:
        """Close the catalog, and release this process's lock."""
        for cluster in (*self.others.values(), *self.superseded):
            cluster.close()
        self._lasting_connection.close()  # the pool gets the connection back
        if self.is_in_place:
            self.engine.dispose()
        else:
            abandon(self.engine)
        self._locks.close()
        folder = self.path / "lock"
        with suppress(OSError):  # without their process, these files have no effect
            (folder / f"backend-{self.backend}.lock").unlink(missing_ok=True)
            for mark in folder.glob(f"connection.{self.backend}.*"):  # marks of unclosed sessions
                mark.unlink(missing_ok=True)

    # -- transactions

    @contextmanager
    def begin(
        self, *, write: bool, in_recovery: bool = False, after_promotion: bool = False
    ) -> Iterator[Connection]:
        """Yield a short SQLite transaction; commit it at the end, or roll back after an exception.

        Args:
            in_recovery, after_promotion: see `check_writable`.

        Raises:
            LockNotAvailable: another process did not end its transaction in time (55P03).
            DiskFull, IoError, DataCorrupted: SQLite reports a problem with the file.
            ReadOnlySqlTransaction, CannotConnectNow: the cluster is a standby, or a standby has
                replaced it.
            CannotConnectNow: catalog.db is no longer the opened file.
            CharacterNotInRepertoire: a text has bytes that are not valid characters (22021).
        """
        if self.is_replaced:
            raise replaced(self.path)
        try:
            with self.engine.connect() as connection:
                immediate = connection.execution_options(replctl_write=write)
                with immediate.begin():
                    if write:
                        check_writable(
                            immediate, in_recovery=in_recovery, after_promotion=after_promotion
                        )
                    try:
                        yield immediate
                    except MemoryError:  # a rollback needs memory, too
                        lift_memory_limit()
                        raise
        except exc.DBAPIError as error:
            raise translated(error, self.path) from error
        except UnicodeEncodeError as error:  # a name from the command line, not parsed
            given = error.object[error.start :].encode("utf-8", "surrogateescape")
            raise invalid_bytes(given) from error

    @contextmanager
    def begin_with_source(self, other: Path) -> Iterator[Connection]:
        """Yield a transaction that writes a standby's catalog and reads the catalog of the cluster
        in `other`.  The other catalog's tables are in schema `source`, in their state when the
        transaction begins.

        Raises:
            IoError: the other catalog cannot be read.
            ObjectNotInPrerequisiteState: the cluster is not a standby.
            CannotConnectNow: catalog.db is no longer the opened file.
        """
        if self.is_replaced:
            raise replaced(self.path)
        with self.engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            try:
                driver.execute(
                    "ATTACH DATABASE ? AS source", (f"{(other / CATALOG).as_uri()}?mode=ro",)
                )
            except sqlite3.Error as error:
                raise IoError(
                    f'could not read the catalog in "{other}"', detail=str(error)
                ) from error
            try:
                with connection.execution_options(replctl_write=True).begin():
                    check_recovers(connection)  # a promotion may have happened meanwhile
                    yield connection
            except exc.DBAPIError as error:
                raise translated(error, self.path) from error
            finally:
                driver.execute("DETACH DATABASE source")

    @property
    def is_replaced(self) -> bool:
        """Return whether the open catalog.db was replaced by another file.

        Raises:
            IoError: the files in the home cannot be examined now.
        """
        return self._is_overwritten or is_replaced(self.path, self._files)

    @property
    def needs_restart(self) -> bool:
        """Return whether another program has overwritten the open catalog.db itself.  This process
        cannot open it again: SQLite keeps the former state of a file that it has open.

        Raises:
            IoError: the files in the home cannot be examined now.
        """
        return self.is_replaced and CatalogFiles.at(self.path).catalog == self._files.catalog

    @property
    def is_in_place(self) -> bool:
        """Return whether the open catalog.db is still in the home; False if that is unknown."""
        try:
            return not self.is_replaced
        except IoError:  # the caller then closes the cluster without a write
            return False

    def check_file(self) -> None:
        """Check that no other program has replaced catalog.db, or has restored an earlier state of
        it since the last call.

        Raises:
            CannotConnectNow: another program has replaced or restored the file (57P03).
            IoError: the file cannot be examined now.
        """
        known = self._stored_lsn
        self._is_overwritten |= known is not None and is_overwritten(self.path, known)
        if self.is_replaced:
            raise replaced(self.path)
        self._stored_lsn = stored_lsn(self.path) or known

    def control(self) -> ControlData:
        """Return the state of the cluster: primary or standby.

        Raises:
            CannotConnectNow: catalog.db is no longer the opened file.
            DiskFull, IoError, DataCorrupted: SQLite reports a problem with the file.
        """
        if self.is_replaced:
            raise replaced(self.path)
        driver: Any = self._lasting_connection.driver_connection
        try:
            with self._is_reading_control:
                return control_now(driver)
        except exc.DBAPIError as error:
            raise translated(error, self.path) from error

    @property
    def is_in_recovery(self) -> bool:
        """Return whether the cluster is a standby."""
        return self.control().is_in_recovery

    @contextmanager
    def read(self, database_oid: int, block: BlockXids | None = None) -> Iterator[Catalog]:
        """Yield the catalogs of a database for reading.  With `block`, they include the changes of
        this open transaction block.
        """
        with self.begin(write=False) as connection:
            yield Catalog(
                connection, database_oid, backend=self.backend, block=block, is_for_reading=True
            )

    @contextmanager
    def write(self, database_oid: int, block: BlockXids | None = None) -> Iterator[Catalog]:
        """Yield the catalogs of a database for writing. A caller that uses the transaction's number
        must commit the number, unless it belongs to a transaction block.
        """
        with self.begin(write=True) as connection:
            yield Catalog(connection, database_oid, backend=self.backend, block=block)

    def database_name(self, oid: int) -> str:
        """Return the name of a database.

        Raises:
            InvalidCatalogName: the database no longer exists.
        """
        with self.begin(write=False) as connection:
            row = Catalog(connection, 0).first(schema.pg_database, schema.pg_database.c.oid == oid)
        if row is None:
            raise InvalidCatalogName(f"database with OID {oid} does not exist")
        return str(row.datname)

    # -- places and locks

    @property
    def log_file(self) -> Path:
        return self.path / "log" / "replctl.log"

    @contextmanager
    def lock(
        self,
        name: str,
        timeout: float = -1,
        *,
        suspended_after: float | None = None,
        on_wait: Callable[[float, Collection[int]], None] = lambda waited, processes: None,
    ) -> Iterator[None]:
        """Hold a lock of this cluster; the system releases it when the process dies.

        Args:
            timeout: seconds to wait; if negative, wait without limit, unless the holder is a
                suspended process.
            suspended_after: seconds to wait for a suspended process; None for the usual time.
            on_wait: called repeatedly during a wait without limit, like Session.on_wait.

        Raises:
            LockNotAvailable: another process does not release the lock in time (55P03).
        """
        begun = time.monotonic()
        with ExitStack() as held:
            while True:
                try:
                    patience = timeout if timeout >= 0 else _INTERVAL
                    held.enter_context(locked(self._lock_file(name), patience))
                    break
                except LockTimeout as error:  # without a limit, wait again
                    if timeout >= 0:
                        raise LockNotAvailable(f'could not obtain lock "{name}"') from error
                    waited = time.monotonic() - begun
                    on_wait(waited, self.check_holder(name, waited, suspended_after))
                except OSError as error:
                    raise refusal_of(self.path / "lock", error) from error
            yield

    def check_holder(self, name: str, waited: float, least: float | None = None) -> set[int]:
        """Check that the process that holds a lock is not suspended, and so can release it.  Return
        the process ID; an empty set if this process holds it, or the system does not report it.

        Args:
            waited: seconds that this process has waited; short waits skip the check.
            least: the minimum of `waited` for the check; None for the usual time.

        Raises:
            LockNotAvailable: the holder is suspended (55P03).
        """
        path = self._lock_file(name)
        pid = holder(path)
        if pid is None or pid == os.getpid():
            return set()
        if waited >= (_PATIENCE if least is None else least) and is_stopped(pid):
            detail, hint = help_with(path)
            raise LockNotAvailable(
                f'could not obtain lock "{name}": the process that holds it is suspended',
                detail=detail,
                hint=hint,
            )
        return {pid}

    def _lock_file(self, name: str) -> Path:
        return self.path / "lock" / f"{name}.lock"

    def is_alive(self, backend: str) -> bool:
        """Return whether the process named `backend` still runs."""
        if backend == self.backend:
            return True
        path = self._lock_file(f"backend-{backend}")
        try:
            if may_be_locked(path):
                return True
            path.unlink(missing_ok=True)
        except OSError as error:
            raise refusal_of(self.path / "lock", error) from error
        return False

    def _users(self) -> list[Path]:
        """Return the lock files of other live processes that have the cluster open.  Remove the
        files of dead processes.
        """
        folder = self.path / "lock"
        users = []
        for path in folder.glob("backend-*.lock"):
            if may_be_locked(path):
                users.append(path)
            else:
                path.unlink(missing_ok=True)
        alive = {path.stem.removeprefix("backend-") for path in users}
        for mark in folder.glob("connection.*"):  # see login.py
            if mark.name.split(".")[1] not in alive:
                mark.unlink(missing_ok=True)
        return users

    def _check_identity(self, control: ControlData) -> None:
        path = self.path.resolve()
        if not is_at_home(control.home, path):
            with write_transaction(self.engine) as connection:
                check_identity(connection, path)

    def notice_promotion(self) -> None:
        """Mark this cluster as replaced if one of its standbys was promoted while the standby could
        not reach this cluster.  The caller knows that the cluster is in its own home: a standby
        does not replace a copy.
        """
        with self.engine.begin() as connection:
            if read_control(connection).promoted_to is not None:
                return
            home = promoted_standby(connection)
        if home is not None:
            with self.begin(write=True) as connection:
                replace_by(connection, home)
                end_replacement(connection, home)

    # -- creating and upgrading

    @contextmanager
    def _opening(self) -> Iterator[None]:
        path = self.path / "cluster.lock"
        try:
            with locked(path, _OPENING_PATIENCE):
                yield
        except LockTimeout as error:
            detail, hint = help_with(path)
            raise CannotConnectNow(
                f'another program has been opening the cluster in "{self.path}" for'
                f" {_OPENING_PATIENCE:g} seconds",
                detail=detail,
                hint=hint,
            ) from error
        except exc.DBAPIError as error:
            raise translated(error, self.path) from error

    def _prepare_catalog(self, *, is_made: bool) -> None:
        with self.engine.begin() as connection:
            revision = stored_revision(connection)
            tables = [] if revision else inspect(connection).get_table_names()
        if revision == schema.REVISION:
            return
        if revision is None:
            _check_is_empty(self.path, tables, is_made=is_made)
        else:
            users = [int(path.stem.split("-")[1]) for path in self._users()]
            check_upgradable(self.path, revision, users)
            keep_copy(self.engine, self.path, revision)
        with write_transaction(self.engine) as connection:
            migrate(connection)
            if revision is None:
                bootstrap(connection, self.path.resolve())
            else:
                self.upgraded_from = revision
        if revision is None:
            _write_back(self.engine, self.path)


def _check_is_empty(home: Path, tables: Sequence[str], *, is_made: bool) -> None:
    """Check that a cluster may be created in this directory.

    Args:
        tables: the names of the tables in catalog.db, which may be in its -wal.

    Raises:
        UndefinedFile: the caller does not create clusters (58P01).
        ObjectNotInPrerequisiteState: the directory has files of another program, or tables of a
            cluster whose catalog is lost (55000).
    """
    if not is_made:
        raise UndefinedFile(f'there is no cluster in "{home}"')
    if tables:
        raise holds_other_files(home)
    check_holds_nothing_else(home)


def _write_back(engine: Engine, home: Path) -> None:
    """Write a new catalog from the -wal into catalog.db.  Thus catalog.db without the -wal still is
    the catalog of this cluster.

    Raises:
        IoError: the file cannot be written.  The catalog is complete with the -wal.
    """
    connection = engine.raw_connection()
    try:
        connection.cursor().execute("PRAGMA wal_checkpoint").fetchall()
    except sqlite3.Error as error:
        raise IoError(f'could not write the catalog in "{home}"', detail=f"{error}.") from error
    finally:
        connection.close()
