"""A cluster: the directory that holds a catalog, its tables, its locks and its log."""

from __future__ import annotations

import os
import secrets
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_data_path
from sqlalchemy import (
    URL,
    Connection,
    Engine,
    create_engine,
    event,
    exc,
    insert,
    inspect,
    select,
    text,
)

from replctl.catalog import schema
from replctl.catalog.transaction import BOOTSTRAP_XID, BlockXids, Catalog
from replctl.errors import (
    DatabaseDoesNotExist,
    DataCorrupted,
    DiskFull,
    InternalError,
    InvalidCatalogName,
    IoError,
    LockNotAvailable,
    ObjectNotInPrerequisiteState,
    PostgresError,
)
from replctl.types.builtin import FIRST_USER_OID

BOOTSTRAP_SUPERUSER = 10  # as BOOTSTRAP_SUPERUSERID in pg_authid.h
DATABASE_OWNER = 6171  # pg_database_owner, which owns schema public
POSTGRES_DATABASE = 5
PG_CATALOG_NAMESPACE = 11
INFORMATION_SCHEMA = 13000
PUBLIC_NAMESPACE = 2200
_FIRST_LSN = 0x1500000
_BUSY_TIMEOUT = 30.0  # seconds that a transaction waits for another process's short one


class Cluster:
    """An open cluster directory.

    Attributes:
        path: the directory.
        engine: SQLAlchemy's engine over catalog.db.
        system_identifier: a number that no other cluster has.
        backend: this process's name in the cluster; a lock of that name is held while it lives.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.engine = _create_engine(path / "catalog.db")
        self._locks = ExitStack()
        self.backend = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        with self._opening():
            self._prepare_catalog()
        (path / "lock").mkdir(exist_ok=True)
        self._locks.enter_context(self.lock(f"backend-{self.backend}"))
        with self.engine.begin() as connection:
            self.system_identifier = int(
                connection.execute(select(schema.pg_control.c.system_identifier)).scalar_one()
            )

    @classmethod
    def open(cls, path: str | Path | None = None) -> Cluster:
        """Open the cluster at `path`, else at $REPLCTL_HOME, else in the user's data directory;
        make it if it is not there.

        Raises:
            IoError: the directory cannot be made or used.
            ObjectNotInPrerequisiteState: a newer replctl has made or upgraded it.
            DataCorrupted: catalog.db is not a catalog.
        """
        chosen = Path(
            path or os.environ.get("REPLCTL_HOME") or user_data_path("replctl")
        ).absolute()
        try:
            chosen.mkdir(parents=True, exist_ok=True, mode=0o700)
            return cls(chosen)
        except OSError as error:
            raise IoError(f'could not use directory "{chosen}": {error.strerror}') from error

    def close(self) -> None:
        """Let go of the catalog and of this process's lock."""
        self.engine.dispose()
        self._locks.close()
        (self.path / "lock" / f"backend-{self.backend}.lock").unlink(missing_ok=True)

    # -- transactions

    @contextmanager
    def begin(self, *, write: bool) -> Iterator[Connection]:
        """A short SQLite transaction: committed at the end, rolled back on an exception.

        Raises:
            LockNotAvailable: another process did not finish its own in time (55P03).
            DiskFull, IoError, DataCorrupted: what SQLite says of the file.
        """
        try:
            with self.engine.connect() as connection:
                immediate = connection.execution_options(replctl_write=write)
                with immediate.begin():
                    yield immediate
        except exc.DBAPIError as error:
            raise _translated(error) from error

    @contextmanager
    def read(self, database_oid: int, block: BlockXids | None = None) -> Iterator[Catalog]:
        """The catalogs of a database, to read, as a block sees them if one is given."""
        with self.begin(write=False) as connection:
            yield Catalog(connection, database_oid, backend=self.backend, block=block)

    @contextmanager
    def write(self, database_oid: int, block: BlockXids | None = None) -> Iterator[Catalog]:
        """The catalogs of a database, to change; what asks for a transaction number has to commit
        it, unless it is a block's."""
        with self.begin(write=True) as connection:
            yield Catalog(connection, database_oid, backend=self.backend, block=block)

    def database_oid(self, name: str) -> int:
        """The database that a session asks for.

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
        """The name of a database.

        Raises:
            InvalidCatalogName: it is not there any more.
        """
        with self.begin(write=False) as connection:
            row = Catalog(connection, 0).first(schema.pg_database, schema.pg_database.c.oid == oid)
        if row is None:
            raise InvalidCatalogName(f"database with OID {oid} does not exist")
        return str(row.datname)

    # -- places and locks

    def default_location(self, database_oid: int, relid: int) -> str:
        """Where a relation's Delta table is made, unless LOCATION said otherwise."""
        return str(self.path / "base" / str(database_oid) / str(relid))

    @property
    def log_file(self) -> Path:
        return self.path / "log" / "replctl.log"

    @contextmanager
    def lock(self, name: str, timeout: float = -1) -> Iterator[None]:
        """Hold a lock of this cluster; the system lets go of it when the process dies.

        Args:
            timeout: seconds to wait; negative: for ever.

        Raises:
            LockNotAvailable: somebody else holds it for longer (55P03).
        """
        file_lock = FileLock(self.path / "lock" / f"{name}.lock", thread_local=False)
        try:
            file_lock.acquire(timeout=timeout)
        except Timeout as error:
            raise LockNotAvailable(f'could not obtain lock "{name}"') from error
        try:
            yield
        finally:
            file_lock.release()

    def is_alive(self, backend: str) -> bool:
        """Whether the process that called itself `backend` still runs."""
        if backend == self.backend:
            return True
        path = self.path / "lock" / f"backend-{backend}.lock"
        if not path.exists():
            return False
        try:
            with self.lock(f"backend-{backend}", timeout=0):
                path.unlink(missing_ok=True)
                return False
        except LockNotAvailable:
            return True

    # -- making and upgrading

    @contextmanager
    def _opening(self) -> Iterator[None]:
        try:
            with FileLock(self.path / "cluster.lock"):
                yield
        except exc.DBAPIError as error:
            raise _translated(error) from error

    def _prepare_catalog(self) -> None:
        revision = self._revision()
        if revision == schema.REVISION:
            return
        known = _known_revisions()
        if revision is not None and revision not in known:
            raise ObjectNotInPrerequisiteState(
                f'catalog of cluster "{self.path}" is of version {revision}, which this replctl'
                " does not know",
                detail=f"This replctl reads catalogs up to version {schema.REVISION}.",
                hint="A newer replctl has made or upgraded the cluster: use that one.",
            )
        self._upgrade()
        if revision is None:
            self._bootstrap()

    def _revision(self) -> str | None:
        with self.engine.begin() as connection:
            if not inspect(connection).has_table("alembic_version"):
                return None
            return connection.execute(
                text("SELECT version_num FROM alembic_version")
            ).scalar_one_or_none()

    def _upgrade(self) -> None:
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", "replctl.catalog:migrations")
        with self.engine.connect() as connection:
            config.attributes["connection"] = connection.execution_options(replctl_write=True)
            command.upgrade(config, "head")

    def _bootstrap(self) -> None:
        """What initdb makes: the superuser and the database postgres, with its schemas."""
        identifier = (int(time.time()) << 32) | secrets.randbits(31)
        with (
            self.engine.connect() as connection,
            connection.execution_options(replctl_write=True).begin(),
        ):
            connection.execute(
                insert(schema.pg_control).values(
                    system_identifier=identifier,
                    next_xid=BOOTSTRAP_XID + 2,
                    next_oid=FIRST_USER_OID,
                    insert_lsn=_FIRST_LSN,
                )
            )
            connection.execute(
                insert(schema.pg_authid).values(
                    oid=BOOTSTRAP_SUPERUSER,
                    rolname="postgres",
                    rolsuper=True,
                    rolcreaterole=True,
                    rolcreatedb=True,
                    rolcanlogin=True,
                    rolreplication=True,
                    rolbypassrls=True,
                    xmin=BOOTSTRAP_XID,
                )
            )
            connection.execute(
                insert(schema.pg_authid).values(
                    oid=DATABASE_OWNER, rolname="pg_database_owner", xmin=BOOTSTRAP_XID
                )
            )
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


def initial_schemas(database_oid: int) -> list[dict[str, Any]]:
    """The rows of pg_namespace that a new database has."""
    names = {
        PG_CATALOG_NAMESPACE: "pg_catalog",
        PUBLIC_NAMESPACE: "public",
        INFORMATION_SCHEMA: "information_schema",
    }
    owners = {PUBLIC_NAMESPACE: DATABASE_OWNER}
    return [
        {
            "dbid": database_oid,
            "oid": oid,
            "nspname": name,
            "nspowner": owners.get(oid, BOOTSTRAP_SUPERUSER),
        }
        for oid, name in names.items()
    ]


def _create_engine(path: Path) -> Engine:
    url = URL.create("sqlite", database=str(path))
    engine = create_engine(url, connect_args={"timeout": _BUSY_TIMEOUT, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def configure(dbapi_connection: Any, record: object) -> None:
        dbapi_connection.isolation_level = None  # BEGIN is ours to say (see the handler below)
        cursor = dbapi_connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = OFF")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        is_write = connection.get_execution_options().get("replctl_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_write else "BEGIN")

    return engine


def _known_revisions() -> set[str]:
    from alembic.script import ScriptDirectory

    folder = Path(__file__).parent / "migrations"
    return {script.revision for script in ScriptDirectory(str(folder)).walk_revisions()}


def _translated(error: exc.DBAPIError) -> PostgresError:
    """SQLite's complaint as PostgreSQL would make it."""
    name = getattr(error.orig, "sqlite_errorname", "")
    reason = str(error.orig)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return LockNotAvailable("canceling statement due to lock timeout", detail=reason)
    if name == "SQLITE_FULL":
        return DiskFull("could not write the catalog: no space left on device")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return DataCorrupted("catalog is damaged", detail=reason)
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY")):
        return IoError("could not access the catalog", detail=reason)
    return InternalError(f"catalog: {reason}")
