"""A cluster: the directory that holds a catalog, its tables, its locks and its log."""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from filelock import FileLock, Timeout
from sqlalchemy import Connection, exc, insert, select

from replctl.catalog import schema, state_schema
from replctl.catalog.acl import PUBLIC, AclItem, default_acl, encode_acl
from replctl.catalog.catalog_engine import catalog_engine
from replctl.catalog.catalog_file import (
    CatalogFiles,
    abandon,
    check_wal,
    is_overwritten,
    is_replaced,
    replaced,
    stored_lsn,
)
from replctl.catalog.home_directory import (
    CATALOG,
    make_home_private,
    refusal_of,
)
from replctl.catalog.identity import check_identity, is_at_home
from replctl.catalog.pg_authid import DATABASE_OWNER, initial_memberships, initial_roles
from replctl.catalog.pg_control import (
    ControlData,
    check_recovers,
    check_writable,
    read_control,
    replace_by,
)
from replctl.catalog.revision import check_upgradable, keep_copy, migrate, stored_revision
from replctl.catalog.server_log import ServerLog
from replctl.catalog.sqlite_error import translated
from replctl.catalog.transaction import BOOTSTRAP_XID, BlockXids, Catalog
from replctl.errors import (
    CannotConnectNow,
    DatabaseDoesNotExist,
    FileAccessDenied,
    InvalidCatalogName,
    IoError,
    LockNotAvailable,
    ObjectNotInPrerequisiteState,
    PostgresError,
)
from replctl.file_lock import help_with, holder, is_locked, is_stopped
from replctl.memory_limit import lift_memory_limit
from replctl.own_command import default_home
from replctl.types.builtin import FIRST_USER_OID
from replctl.types.character import invalid_bytes

BOOTSTRAP_SUPERUSER = 10  # as BOOTSTRAP_SUPERUSERID in pg_authid.h
POSTGRES_DATABASE = 5
PG_CATALOG_NAMESPACE = 11
INFORMATION_SCHEMA = 13000
PUBLIC_NAMESPACE = 2200
_PG_DATABASE, _PG_NAMESPACE = 1262, 2615  # in pg_class
_FIRST_LSN = 0x1500000
_KEY_BYTES = 32
_LOCK_MODE = 0o600
#: Seconds to wait for others that open the cluster, each for a moment.
_OPENING_PATIENCE = 60.0
#: Seconds after which who waits for a lock looks whether its holder is stopped.
_PATIENCE = 30.0


class Cluster:
    """An open cluster directory.

    Attributes:
        path: the directory.
        engine: SQLAlchemy's engine over catalog.db.
        system_identifier: a number that no other cluster has.
        signing_key: of the marks of its commits to Delta tables; its standbys have it, too.
        backend: this process's name in the cluster; a lock of that name is held while it lives.
        log: the cluster's log.
        is_new: opening it has made its directory.
        refusal: why it cannot be written; None: it can.
        upgraded_from: the revision from which opening it has upgraded it; None: it did not.
        abandoned: transactions that this process could neither undo nor leave to others so far.
    """

    refusal: PostgresError | None = None

    def __init__(self, path: Path, *, is_checked: bool = True) -> None:
        self.path = path
        make_home_private(path)
        self.engine = catalog_engine(path / CATALOG)
        self._locks = ExitStack()
        self.others: dict[Path, Cluster] = {}
        self.opening_other = Lock()
        self.is_new = False
        self.upgraded_from: str | None = None
        self._files = CatalogFiles(None, None, None)
        self._stored_lsn: int | None = None
        self._is_overwritten = False
        self.abandoned: set[int] = set()
        self.log = ServerLog(self.log_file, lambda timeout: self.lock("log", timeout))
        self.backend = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        with self._opening():
            check_wal(path, self._users())
            self._prepare_catalog()
            if is_checked:
                self._check_identity()
            self._notice_promotion()
        (path / "lock").mkdir(mode=0o700, exist_ok=True)
        self._locks.enter_context(self.lock(f"backend-{self.backend}"))
        with self.engine.begin() as connection:
            control = state_schema.pg_control
            row = connection.execute(
                select(control.c.system_identifier, control.c.signing_key)
            ).one()
        self._files = CatalogFiles.at(path)
        self._files.note(path / "lock" / f"backend-{self.backend}.lock")
        self.system_identifier = int(row.system_identifier)
        self.signing_key = bytes.fromhex(row.signing_key)

    @staticmethod
    def home(path: str | Path | None = None) -> Path:
        """Return the directory that is meant: `path`, else $REPLCTL_HOME, else the user's.

        Raises:
            ObjectNotInPrerequisiteState: none is named, and the user has no home directory.
        """
        chosen = Path(path).absolute() if path else default_home()
        if chosen is None:
            raise ObjectNotInPrerequisiteState(
                f"user ID {os.geteuid()} has no home directory",
                hint="Name a directory for the cluster: --home DIRECTORY, or REPLCTL_HOME.",
            )
        return chosen

    @staticmethod
    def exists(path: Path) -> bool:
        """Return whether there is a cluster at `path`.

        Raises:
            FileAccessDenied: that cannot be seen.
        """
        try:
            return (path / CATALOG).stat().st_size > 0  # else it is being made, or lost
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise FileAccessDenied(f'could not use directory "{path}": {error.strerror}') from error

    def close(self) -> None:
        """Let go of the catalog and of this process's lock."""
        for cluster in self.others.values():
            cluster.close()
        if self.is_replaced:
            abandon(self.engine)
        else:
            self.engine.dispose()
        self._locks.close()
        folder = self.path / "lock"
        (folder / f"backend-{self.backend}.lock").unlink(missing_ok=True)
        for mark in folder.glob(f"connection.{self.backend}.*"):  # of sessions that were left open
            mark.unlink(missing_ok=True)

    # -- transactions

    @contextmanager
    def begin(self, *, write: bool, in_recovery: bool = False) -> Iterator[Connection]:
        """Yield a short SQLite transaction: committed at the end, rolled back on an exception.

        Args:
            in_recovery: it is a change that a standby makes, too.

        Raises:
            LockNotAvailable: another process did not finish its own in time (55P03).
            DiskFull, IoError, DataCorrupted: what SQLite says of the file.
            ReadOnlySqlTransaction, CannotConnectNow: the cluster is a standby, or was replaced by
                one.
            CannotConnectNow: catalog.db is another file than the one that was opened.
            CharacterNotInRepertoire: a text has bytes that are no characters (22021).
        """
        if self.is_replaced:
            raise replaced(self.path)
        try:
            with self.engine.connect() as connection:
                immediate = connection.execution_options(replctl_write=write)
                with immediate.begin():
                    if write:
                        check_writable(immediate, in_recovery=in_recovery)
                    try:
                        yield immediate
                    except MemoryError:  # to roll back takes some, too
                        lift_memory_limit()
                        raise
        except exc.DBAPIError as error:
            raise translated(error, self.path) from error
        except UnicodeEncodeError as error:  # what no parser has seen: a name of the command line
            given = error.object[error.start :].encode("utf-8", "surrogateescape")
            raise invalid_bytes(given) from error

    @contextmanager
    def begin_beside(self, other: Path) -> Iterator[Connection]:
        """Yield a transaction that writes a standby's catalog and reads that of the cluster in
        `other`, whose tables are there as schema `source`: one state of it, as of the beginning.

        Raises:
            IoError: the other catalog cannot be read.
            ObjectNotInPrerequisiteState: the cluster is no standby.
        """
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
                    check_recovers(connection)  # it may have been promoted meanwhile
                    yield connection
            except exc.DBAPIError as error:
                raise translated(error, self.path) from error
            finally:
                driver.execute("DETACH DATABASE source")

    @property
    def is_replaced(self) -> bool:
        """Return whether another catalog.db was put in the place of the one that is open."""
        return self._is_overwritten or is_replaced(self.path, self._files)

    def check_file(self) -> None:
        """Check that nobody has written an earlier state into catalog.db since the last call.

        Raises:
            CannotConnectNow: somebody has, or has put another file in its place (57P03).
        """
        known = self._stored_lsn
        self._is_overwritten |= known is not None and is_overwritten(self.path, known)
        if self.is_replaced:
            raise replaced(self.path)
        self._stored_lsn = stored_lsn(self.path) or known

    def control(self) -> ControlData:
        """Return what the cluster is now: primary or standby."""
        with self.begin(write=False) as connection:
            return read_control(connection)

    @property
    def is_in_recovery(self) -> bool:
        """Return whether the cluster is a standby."""
        return self.control().is_in_recovery

    @contextmanager
    def read(self, database_oid: int, block: BlockXids | None = None) -> Iterator[Catalog]:
        """Yield the catalogs of a database, to read, as a block sees them if one is given."""
        with self.begin(write=False) as connection:
            yield Catalog(connection, database_oid, backend=self.backend, block=block)

    @contextmanager
    def write(self, database_oid: int, block: BlockXids | None = None) -> Iterator[Catalog]:
        """Yield the catalogs of a database, to change; what asks for a transaction number has to
        commit it, unless it is a block's."""
        with self.begin(write=True) as connection:
            yield Catalog(connection, database_oid, backend=self.backend, block=block)

    def database_oid(self, name: str) -> int:
        """Return the database that a session asks for.

        Raises:
            DatabaseDoesNotExist: there is none of that name (FATAL, 3D000).
        """
        with self.begin(write=False) as connection:
            row = Catalog(connection, 0).first(
                schema.pg_database, schema.pg_database.c.datname == name
            )
        if row is None:
            raise DatabaseDoesNotExist(f'database "{name}" does not exist')
        return int(row.oid)

    def database_name(self, oid: int) -> str:
        """Return the name of a database.

        Raises:
            InvalidCatalogName: it is not there any more.
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
    def lock(self, name: str, timeout: float = -1) -> Iterator[None]:
        """Hold a lock of this cluster; the system lets go of it when the process dies.

        Args:
            timeout: seconds to wait; negative: for ever, unless the holder is stopped.

        Raises:
            LockNotAvailable: somebody else holds it for longer (55P03).
        """
        path = self._lock_file(name)
        file_lock = FileLock(path, mode=_LOCK_MODE, thread_local=False)
        begun = time.monotonic()
        while True:
            try:
                file_lock.acquire(timeout=_PATIENCE if timeout < 0 else timeout)
                break
            except Timeout as error:
                if timeout >= 0:
                    raise LockNotAvailable(f'could not obtain lock "{name}"') from error
                self.check_holder(name, time.monotonic() - begun)
            except OSError as error:
                raise refusal_of(self.path / "lock", error) from error
        try:
            yield
        finally:
            file_lock.release()

    def check_holder(self, name: str, waited: float) -> None:
        """Check that the process that holds a lock may let go of it: that it is not stopped.

        Args:
            waited: seconds that this process has waited for it; at first nothing is checked.

        Raises:
            LockNotAvailable: it is stopped (55P03).
        """
        path = self._lock_file(name)
        pid = holder(path) if waited >= _PATIENCE else None
        if pid is not None and is_stopped(pid):
            detail, hint = help_with(path)
            raise LockNotAvailable(
                f'could not obtain lock "{name}": its holder is stopped', detail=detail, hint=hint
            )

    def _lock_file(self, name: str) -> Path:
        return self.path / "lock" / f"{name}.lock"

    def is_alive(self, backend: str) -> bool:
        """Return whether the process that called itself `backend` still runs."""
        if backend == self.backend:
            return True
        path = self.path / "lock" / f"backend-{backend}.lock"
        if is_locked(path):
            return True
        path.unlink(missing_ok=True)
        return False

    def _users(self) -> list[Path]:
        """Return the locks of the other processes, which live, that have the cluster open."""
        found = (self.path / "lock").glob("backend-*.lock")
        return [path for path in found if is_locked(path)]

    def _check_identity(self) -> None:
        path = self.path.resolve()
        with self.engine.begin() as connection:
            home = connection.execute(select(state_schema.pg_control.c.home)).scalar_one()
        if not is_at_home(home, path):
            with (
                self.engine.connect() as connection,
                connection.execution_options(replctl_write=True).begin(),
            ):
                check_identity(connection, path)

    def _notice_promotion(self) -> None:
        """A standby may have been promoted while nobody could tell this cluster."""
        slots = state_schema.pg_replication_slots
        with self.engine.begin() as connection:
            control = read_control(connection)
            query = select(slots.c.standby_home).where(slots.c.standby_home.is_not(None))
            homes = connection.execute(query).scalars().all()
        if control.promoted_to is not None:
            return
        for home in homes:
            if _timeline_of(Path(home), control.system_identifier) > control.timeline:
                with self.begin(write=True) as connection:
                    replace_by(connection, home)
                return

    # -- making and upgrading

    @contextmanager
    def _opening(self) -> Iterator[None]:
        path = self.path / "cluster.lock"
        lock = FileLock(path, mode=_LOCK_MODE)
        try:
            lock.acquire(timeout=_OPENING_PATIENCE)
        except Timeout as error:
            detail, hint = help_with(path)
            raise CannotConnectNow(
                f'another program has been opening the cluster in "{self.path}" for'
                f" {_OPENING_PATIENCE:g} seconds",
                detail=detail,
                hint=hint,
            ) from error
        try:
            yield
        except exc.DBAPIError as error:
            raise translated(error, self.path) from error
        finally:
            lock.release()

    def _prepare_catalog(self) -> None:
        with self.engine.begin() as connection:
            revision = stored_revision(connection)
        if revision == schema.REVISION:
            return
        if revision is not None:
            users = [int(path.stem.split("-")[1]) for path in self._users()]
            check_upgradable(self.path, revision, users)
            keep_copy(self.engine, self.path, revision)
        with (
            self.engine.connect() as connection,
            connection.execution_options(replctl_write=True).begin(),
        ):
            migrate(connection)
            if revision is None:
                self._bootstrap(connection)
            else:
                self.upgraded_from = revision

    def _bootstrap(self, connection: Connection) -> None:
        """Make what initdb makes: the superuser and the database postgres, with its schemas."""
        identifier = new_system_identifier()
        connection.execute(
            insert(state_schema.pg_control).values(
                system_identifier=identifier,
                signing_key=new_signing_key(),
                home=str(self.path.resolve()),
                next_xid=BOOTSTRAP_XID + 2,
                next_oid=FIRST_USER_OID,
                insert_lsn=_FIRST_LSN,
                revision=schema.REVISION,
            )
        )
        for row in initial_roles(BOOTSTRAP_SUPERUSER):
            connection.execute(insert(schema.pg_authid).values(**row, xmin=BOOTSTRAP_XID))
        for row in initial_memberships(BOOTSTRAP_SUPERUSER):
            connection.execute(insert(schema.pg_auth_members).values(**row, xmin=BOOTSTRAP_XID))
        connection.execute(
            insert(schema.pg_database).values(
                oid=POSTGRES_DATABASE,
                datname="postgres",
                datdba=BOOTSTRAP_SUPERUSER,
                xmin=BOOTSTRAP_XID,
            )
        )
        for row in initial_schemas(POSTGRES_DATABASE):
            connection.execute(insert(schema.pg_namespace).values(**row, xmin=BOOTSTRAP_XID))
        for row in initial_comments(POSTGRES_DATABASE):
            connection.execute(insert(schema.pg_description).values(**row, xmin=BOOTSTRAP_XID))
        connection.execute(
            insert(schema.pg_shdescription).values(
                objoid=POSTGRES_DATABASE,
                classoid=_PG_DATABASE,
                description="default administrative connection database",
                xmin=BOOTSTRAP_XID,
            )
        )


def new_system_identifier() -> int:
    """Return a number that no other cluster has."""
    return (int(time.time()) << 32) | secrets.randbits(31)


def new_signing_key() -> str:
    """Return a key for the marks of a cluster's commits."""
    return secrets.token_hex(_KEY_BYTES)


def initial_schemas(database_oid: int) -> list[dict[str, Any]]:
    """Return the rows of pg_namespace that a new database has."""
    names = {
        PG_CATALOG_NAMESPACE: "pg_catalog",
        PUBLIC_NAMESPACE: "public",
        INFORMATION_SCHEMA: "information_schema",
    }
    owners = {PUBLIC_NAMESPACE: DATABASE_OWNER}
    rows = []
    for oid, name in names.items():
        owner = owners.get(oid, BOOTSTRAP_SUPERUSER)
        everybody = AclItem(PUBLIC, owner, "U")
        acl = encode_acl((*default_acl("schema", owner), everybody))
        rows.append(
            {"dbid": database_oid, "oid": oid, "nspname": name, "nspowner": owner, "nspacl": acl}
        )
    return rows


def initial_comments(database_oid: int) -> list[dict[str, Any]]:
    """Return the rows of pg_description that a new database has, as far as they are about its
    schemas."""
    texts = {
        PG_CATALOG_NAMESPACE: "system catalog schema",
        PUBLIC_NAMESPACE: "standard public schema",
    }
    return [
        {"dbid": database_oid, "objoid": oid, "classoid": _PG_NAMESPACE, "description": text}
        for oid, text in texts.items()
    ]


def _timeline_of(home: Path, system_identifier: int) -> int:
    """Return the timeline on which a standby writes that has been promoted; 0 as long as it
    follows, or where its catalog cannot be read, which tells nothing."""
    try:
        connection = sqlite3.connect(f"{(home / CATALOG).as_uri()}?mode=ro", uri=True)
    except sqlite3.Error:
        return 0
    query = "SELECT timeline FROM pg_control WHERE system_identifier = ? AND NOT is_in_recovery"
    try:
        row = connection.execute(query, (system_identifier,)).fetchone()
        return 0 if row is None else int(row[0])
    except sqlite3.Error:
        return 0
    finally:
        connection.close()
