"""A backend's state: cluster, database, role, settings, and where its notices go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from replctl.catalog.cluster import Cluster
from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_authid import find_role
from replctl.catalog.pg_sequence import SequenceValues
from replctl.catalog.transaction import BlockXids, Catalog, commit_transaction
from replctl.errors import (
    ActiveSqlTransaction,
    InternalError,
    InvalidAuthorizationSpecification,
    Notice,
)

if TYPE_CHECKING:
    from replctl.catalog.functions import FunctionContext
    from replctl.spark.engine import Engine

#: Settings with the values that they have until somebody sets them (a part of pg_settings).
DEFAULT_SETTINGS = {
    "application_name": "replctl",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "default_transaction_isolation": "read committed",
    "extra_float_digits": "1",
    "intervalstyle": "postgres",
    "lock_timeout": "0",
    "max_logical_replication_workers": "4",
    "max_replication_slots": "10",
    "max_sync_workers_per_subscription": "2",
    "max_wal_senders": "10",
    "search_path": '"$user", public',
    "server_encoding": "UTF8",
    "server_version": "17.0",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "timezone": "UTC",
    "transaction_isolation": "read committed",
    "wal_level": "logical",
}

#: What client_min_messages keeps back; with another value than these, nothing.
_KEPT_BACK = {
    "notice": frozenset({"LOG"}),
    "warning": frozenset({"LOG", "NOTICE"}),
    "error": frozenset({"LOG", "NOTICE", "WARNING"}),
}


def _no_engine() -> Engine:
    raise InternalError("this session has no Spark")


@dataclass
class Savepoint:
    """A place in a block to go back to.

    Attributes:
        name: may occur several times; the newest counts.
        log_lsn: where the log was.
        settings: what SET had changed.
        versions: of the tables that the block had written by then.
    """

    name: str
    log_lsn: int
    settings: dict[str, str]
    versions: dict[int, int]


@dataclass
class TransactionBlock:
    """BEGIN ... COMMIT: what its statements have in common (lake.block carries it out).

    Attributes:
        start: what now() is.
        settings: what SET had changed before it.
        is_implicit: the statements of one query string, without BEGIN.
        is_read_only: it may change nothing.
        has_failed: a statement failed; until ROLLBACK, or ROLLBACK TO, nothing else is done.
        changes_definitions: decoding has to look again behind it.
        local_settings: what SET LOCAL has changed, with the values before (None: the default).
        xids: its numbers.
        savepoints: those that are open, the innermost last.
        locked: OIDs of relations that it keeps others from writing, to its end.
        locks: their locks.
    """

    start: datetime
    settings: dict[str, str]
    is_implicit: bool = False
    is_read_only: bool = False
    has_failed: bool = False
    changes_definitions: bool = False
    local_settings: dict[str, str | None] = field(default_factory=dict)
    xids: BlockXids = field(default_factory=BlockXids)
    savepoints: list[Savepoint] = field(default_factory=list)
    locked: set[int] = field(default_factory=set)
    locks: ExitStack = field(default_factory=ExitStack)


@dataclass
class Session:
    """What a connection to a database is.

    Attributes:
        cluster: the open cluster.
        database_oid, database_name: the current database.
        role_oid, role_name: the role that statements run as.
        settings: what SET has changed, by name in lower case.
        on_notice: called with every notice, at once.
        on_progress: called with what is being done, how much of it is done, and how much there is.
        engine: opens Spark, or gives the one that is open.
        transaction_start: what now() is.
        block: the transaction block that is open.
        sequences: what has been taken from sequences.
    """

    cluster: Cluster
    database_oid: int
    database_name: str
    role_oid: int
    role_name: str
    settings: dict[str, str] = field(default_factory=dict)
    on_notice: Callable[[Notice], None] = lambda notice: None
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None
    engine: Callable[[], Engine] = _no_engine
    transaction_start: datetime = field(default_factory=lambda: datetime.now(UTC))
    block: TransactionBlock | None = None
    sequences: SequenceValues = field(init=False)

    def __post_init__(self) -> None:
        self.sequences = SequenceValues(self.cluster)

    @classmethod
    def connect(
        cls,
        cluster: Cluster,
        database_name: str,
        role_name: str,
        on_notice: Callable[[Notice], None] = lambda notice: None,
        engine: Callable[[], Engine] = _no_engine,
    ) -> Session:
        """Open a session in a database of a cluster.

        Raises:
            DatabaseDoesNotExist, InvalidAuthorizationSpecification: no such database or role
                (FATAL).
        """
        with cluster.read(0) as catalog:
            role = find_role(catalog, role_name)
        if role is None:
            raise InvalidAuthorizationSpecification(f'role "{role_name}" does not exist')
        database_oid = cluster.database_oid(database_name)
        return cls(
            cluster,
            database_oid,
            database_name,
            role.oid,
            role_name,
            on_notice=on_notice,
            engine=engine,
        )

    def notice(
        self,
        message: str,
        *,
        severity: str = "NOTICE",
        sqlstate: str = "00000",
        detail: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Report something that stops nothing, unless client_min_messages keeps it back."""
        if severity not in _KEPT_BACK.get(self.setting("client_min_messages").lower(), ()):
            self.on_notice(Notice(severity, message, sqlstate, detail, hint))

    def setting(self, name: str) -> str:
        """The value of a setting."""
        return self.settings.get(name, DEFAULT_SETTINGS[name])

    def put_setting(self, name: str, value: str | None) -> None:
        """Change a setting, or put it back to what it is by default (None)."""
        if value is None:
            self.settings.pop(name, None)
        else:
            self.settings[name] = value

    @property
    def search_path(self) -> tuple[str, ...]:
        """Names of the schemas to search, without pg_catalog, which is always searched first."""
        names = [part.strip().strip('"') for part in self.setting("search_path").split(",")]
        return tuple(self.role_name if name == "$user" else name for name in names if name)

    def environment(self, catalog: Catalog) -> CatalogEnvironment:
        """The database as expressions see it through the session's search path."""
        return CatalogEnvironment(catalog, self.database_name, self.search_path)

    def function_context(self, catalog: Catalog) -> FunctionContext:
        """What functions of catalog queries ask of the session."""
        from replctl.catalog.functions import FunctionContext

        return FunctionContext(
            catalog,
            self.environment(catalog),
            self.role_name,
            {**DEFAULT_SETTINGS, **self.settings},
            self.sequences,
            self.cluster,
        )

    @contextmanager
    def read(self) -> Iterator[Catalog]:
        """The catalogs, to read."""
        with self.cluster.read(self.database_oid, self.xids) as catalog:
            yield catalog

    @contextmanager
    def write(self) -> Iterator[Catalog]:
        """The catalogs, to change: what changes is committed at the end, with a place in the log;
        in a block, at the block's end."""
        with self.cluster.write(self.database_oid, self.xids) as catalog:
            yield catalog
            if self.block is None and catalog.has_xid:
                commit_transaction(catalog.connection, catalog.xid, changes_catalog=True)
        if self.block is not None:
            self.block.xids = catalog.xids
            self.block.changes_definitions |= catalog.has_changes

    @property
    def xids(self) -> BlockXids | None:
        """The numbers of the block that is open."""
        return None if self.block is None else self.block.xids

    def lock_relations(self, oids: Iterable[int], stack: ExitStack) -> None:
        """Keep others from writing relations: until `stack` is closed, in a block until its end."""
        held = set() if self.block is None else self.block.locked
        for oid in sorted(set(oids).difference(held)):
            lock = self.cluster.lock(f"relation-{oid}")
            if self.block is None:
                stack.enter_context(lock)
            else:
                self.block.locks.enter_context(lock)
                self.block.locked.add(oid)

    def prevent_in_block(self, what: str) -> None:
        """Refuse what cannot be taken back (PreventInTransactionBlock).

        Raises:
            ActiveSqlTransaction: a transaction block is open (25001).
        """
        if self.block is not None:
            raise ActiveSqlTransaction(f"{what} cannot run inside a transaction block")
