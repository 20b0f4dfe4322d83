"""The state of a session: cluster, database, role, settings, and callbacks for notices and data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from replctl.catalog.aclchk import Privileges
from replctl.catalog.cluster import Cluster
from replctl.catalog.login import Login, log_in
from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.nextval import SequenceValues
from replctl.catalog.pg_db_role_setting import settings_at_start
from replctl.catalog.pg_replication_slots import (
    SessionOrigin,
    commit_with_origin,
    drop_abandoned_slots,
    drop_slots_of,
    own_origin,
)
from replctl.catalog.transaction import BlockXids, Catalog, insert_lsn
from replctl.errors import (
    FeatureNotSupported,
    InternalError,
    Notice,
    UnfinishedBatch,
)
from replctl.late_object import late
from replctl.memory_limit import lift_memory_limit
from replctl.record import dataclass
from replctl.session_setting import (
    begin_with,
    change_setting,
    configured_settings,
    read_settings,
    setting_value,
    shown_setting,
)
from replctl.transaction_block import TransactionBlock
from replctl.types.quote import split_identifiers
from replctl.types.value_format import ValueFormat, value_format_of

if TYPE_CHECKING:
    from replctl.expr.environment import Routine
    from replctl.expr.nodes import FuncExpr
    from replctl.spark import Engine

#: The severities that client_min_messages suppresses; none for other values.
_KEPT_BACK = {
    "notice": frozenset({"LOG"}),
    "warning": frozenset({"LOG", "NOTICE"}),
    "error": frozenset({"LOG", "NOTICE", "WARNING"}),
}


def _unlimited(engine: Callable[[], Engine]) -> Engine:
    """Lift the memory limit, under which Spark could fail, and return Spark."""
    lift_memory_limit()
    return engine()


#: Numbers for the sessions of this process.
_numbers = count(1)


def _no_engine() -> Engine:
    raise InternalError("this session has no Spark")


def _no_copy_data() -> Iterator[bytes]:
    raise FeatureNotSupported("this client sends no data for COPY FROM STDIN")


def _raise(error: UnfinishedBatch) -> None:
    raise error


def _no_copy_output(lines: Iterator[bytes]) -> None:
    raise FeatureNotSupported("this client takes no data from COPY TO STDOUT")


@dataclass
class Session:
    """A connection to a database.

    Attributes:
        cluster: the open cluster.
        database_oid, database_name: the current database.
        login_oid, login_name: the role that has connected.
        settings: values from SET, by name in lower case.
        custom_settings: the users' settings that the session has set or reset, in lower case.  SHOW
            prints them even without a value.
        configured: values from the cluster's configuration, by name in lower case.
        role_settings: values from ALTER ROLE and ALTER DATABASE, by name in lower case.
        client_settings: values that the client requested at the start, by name in lower case.
        on_notice: called immediately with every notice.
        on_copy_in: opens the client's data for COPY FROM STDIN; each piece ends at a newline.
        on_copy_out: called with the lines of COPY TO STDOUT.
        on_progress: called with the name of the current work, the amount done, and the total.
        on_wait: called repeatedly during a wait for other processes, with the seconds waited, the
            process IDs, and their transactions.  An error that it raises ends the wait.
        engine: returns the connection to Spark, which is opened when a statement first uses it.
        transaction_start: the value of now().
        statement_start: the value of statement_timestamp(): the arrival of the statements.
        block: the open transaction block.
        sequences: the values taken from sequences.
        origin: the replication origin in use.
        has_temporary_slots: there may be slots that end with the session.
        temporary_schema: the name of the schema of temporary relations, if there have been any.
        at_end: functions to call at the end of the session.
        routine: the SQL function whose query is running.
        function_depth: the depth of nested functions.
        finish_batches: finishes partly written batches of subscriptions, or raises an error.
        early_calls: the results, as texts, of functions that were called before the rest of the
            running statement.
        login: the login that opened the session.
        key: the session's name in the cluster.
        acting_role: OID and name of the role of `acting_as`; None outside it.
        trusted_names: names in Spark's catalogs with the locations to which they lead, and the
            times (of the monotonic clock) until which they need no new check.
    """

    cluster: Cluster
    database_oid: int
    database_name: str
    login_oid: int
    login_name: str
    settings: dict[str, str] = field(default_factory=dict)
    custom_settings: set[str] = field(default_factory=set)
    configured: dict[str, str] = field(default_factory=dict)
    role_settings: dict[str, str] = field(default_factory=dict)
    client_settings: dict[str, str] = field(default_factory=dict)
    on_notice: Callable[[Notice], None] = lambda notice: None
    on_copy_in: Callable[[], Iterator[bytes]] = _no_copy_data
    on_copy_out: Callable[[Iterator[bytes]], None] = _no_copy_output
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None
    on_wait: Callable[[float, Collection[int], Collection[int]], None] = (
        lambda waited, processes, xids: None
    )
    engine: Callable[[], Engine] = _no_engine
    transaction_start: datetime = field(default_factory=lambda: datetime.now(UTC))
    statement_start: datetime = field(default_factory=lambda: datetime.now(UTC))
    block: TransactionBlock | None = None
    sequences: SequenceValues = field(init=False)
    origin: SessionOrigin | None = None
    has_temporary_slots: bool = False
    temporary_schema: str | None = None
    at_end: list[Callable[[], None]] = field(default_factory=list)
    routine: Routine | None = None
    function_depth: int = 0
    finish_batches: Callable[[UnfinishedBatch], None] = _raise
    early_calls: dict[FuncExpr, list[list[str | None]]] = field(default_factory=dict)
    login: Login | None = None
    acting_role: tuple[int, str] | None = None
    key: str = field(init=False)
    trusted_names: dict[tuple[str, str], float] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.sequences = SequenceValues(self.cluster)
        self.key = f"{self.cluster.backend}/{next(_numbers)}"

    @classmethod
    def connect(
        cls,
        cluster: Cluster,
        database_name: str,
        role_name: str,
        on_notice: Callable[[Notice], None] = lambda notice: None,
        engine: Callable[[], Engine] = _no_engine,
        *,
        password: str | None = None,
        is_worker: bool = False,
        requested: Mapping[str, str] | None = None,
    ) -> Session:
        """Open a session in a database of a cluster.

        Args:
            password, is_worker: see `log_in`.
            requested: settings that the client requests.

        Raises:
            PostgresError: the login failed (see `log_in`), or a requested setting is invalid.
        """
        login = log_in(cluster, database_name, role_name, password=password, is_worker=is_worker)
        try:
            if cluster.refusal is None:
                drop_abandoned_slots(cluster)
            role_settings = role_settings_of(cluster, login.database_oid, login.role.oid, on_notice)
        except BaseException:
            login.end()
            raise
        session = cls(
            cluster,
            login.database_oid,
            database_name,
            login.role.oid,
            role_name,
            login=login,
            configured=configured_settings(cluster, on_notice),
            role_settings=role_settings,
            on_notice=on_notice,
            engine=partial(late, partial(_unlimited, engine)),
        )
        try:
            begin_with(session, requested or {})
        except BaseException:
            session.close()
            raise
        return session

    def in_database(self, oid: int) -> Session:
        """Return a session like this one in another database, without an open block.

        Raises:
            InvalidCatalogName: the database no longer exists.
        """
        name = self.cluster.database_name(oid)
        return replace(self, database_oid=oid, database_name=name, block=None, origin=None)

    # -- roles

    @property
    def session_user(self) -> tuple[int, str]:
        """Return OID and name of the session's role, which SET SESSION AUTHORIZATION changes."""
        return _role_setting(self.settings.get("session_authorization")) or (
            self.login_oid,
            self.login_name,
        )

    @property
    def current_user(self) -> tuple[int, str]:
        """Return OID and name of the role that runs statements, which SET ROLE changes."""
        return self.acting_role or self.chosen_role

    @property
    def chosen_role(self) -> tuple[int, str]:
        """Return OID and name of the role of SET ROLE, even if the session acts as another role."""
        return _role_setting(self.settings.get("role")) or self.session_user

    @property
    def role_oid(self) -> int:
        return self.current_user[0]

    @property
    def role_name(self) -> str:
        return self.current_user[1]

    @contextmanager
    def acting_as(self, role: tuple[int, str]) -> Iterator[None]:
        """Run the expressions of a relation as its owner, who does not trust the session's user:
        only system objects have names without a schema (SetUserIdAndSecContext and
        RestrictSearchPath).

        Args:
            role: OID and name of the owner.
        """
        kept = self.acting_role, self.settings.get("search_path")
        self.acting_role = role
        self.put_setting("search_path", "pg_catalog, pg_temp")
        try:
            yield
        finally:
            self.acting_role = kept[0]
            self.put_setting("search_path", kept[1])

    def privileges(self, catalog: Catalog) -> Privileges:
        """Return the privileges of the current role."""
        return Privileges(catalog, self.role_oid)

    def notice(
        self,
        message: str,
        *,
        severity: str = "NOTICE",
        sqlstate: str | None = None,
        detail: str | None = None,
        hint: str | None = None,
        context: str | None = None,
    ) -> None:
        """Report a notice with a text, unless client_min_messages suppresses it."""
        sqlstate = sqlstate or ("01000" if severity == "WARNING" else "00000")
        self.report(Notice(severity, message, sqlstate, detail, hint, context=context))

    def report(self, notice: Notice) -> None:
        """Report a notice, unless client_min_messages suppresses it."""
        if notice.severity not in _KEPT_BACK.get(self.setting("client_min_messages").lower(), ()):
            self.on_notice(notice)

    def setting(self, name: str) -> str:
        """Return the value of a setting, in the setting's own unit.

        Raises:
            UndefinedObject: there is no such setting (42704).
        """
        return setting_value(self, name)

    @property
    def value_format(self) -> ValueFormat:
        """Return the format in which the session reads and shows values."""
        return value_format_of(self.setting)

    def put_setting(self, name: str, value: str | None) -> None:
        """Change a setting, or restore its default (None)."""
        if value is None:
            self.settings.pop(name, None)
        else:
            self.settings[name] = value

    def change_setting(self, name: str, value: str | None, *, is_local: bool = False) -> str:
        """Set or reset (None) a setting, and return its value as printed by SHOW.

        Args:
            is_local: only until the end of the open block; without a block there is no effect.

        Raises:
            PostgresError: see `session_setting.change_setting`.
        """
        return change_setting(self, name, value, is_local=is_local)

    def shown_setting(self, name: str) -> str:
        """Return the value of a setting as SHOW prints it.

        Raises:
            UndefinedObject: there is no such setting (42704).
        """
        return shown_setting(self, name)

    @property
    def search_path(self) -> tuple[str, ...]:
        """Return the names of the schemas to search.  Names that stand for no schema are left
        out."""
        names = split_identifiers(self.setting("search_path")) or []
        own = {"$user": self.role_name, "pg_temp": self.temporary_schema or ""}
        return tuple(found for name in names if (found := own.get(name, name)))

    def environment(self, catalog: Catalog) -> CatalogEnvironment:
        """Return the environment for expressions, with the session's search path."""
        return CatalogEnvironment(
            catalog,
            self.database_name,
            self.search_path,
            self.role_oid,
            temporary_schema=self.temporary_schema,
            routine=self.routine,
            value_format=self.value_format,
        )

    @contextmanager
    def read(self) -> Iterator[Catalog]:
        """Yield the catalogs for reading."""
        with self.cluster.read(self.database_oid, self.xids) as catalog:
            catalog.temporary_schema = self.temporary_schema
            yield catalog

    @contextmanager
    def write(self, *, changes_definitions: bool = True) -> Iterator[Catalog]:
        """Yield the catalogs for writing.  The changes are committed with an LSN at the end of the
        `with` block, or of the open transaction block.

        Args:
            changes_definitions: decoding must read the definitions again after the changes.
        """
        with self.cluster.write(self.database_oid, self.xids) as catalog:
            catalog.temporary_schema = self.temporary_schema
            yield catalog
            if self.block is None:
                if catalog.has_xid:
                    commit_with_origin(
                        catalog.connection,
                        catalog.xid,
                        self.origin,
                        changes_catalog=changes_definitions,
                    )
            elif changes_definitions and catalog.has_changes and self.block.definitions_lsn is None:
                self.block.definitions_lsn = insert_lsn(catalog.connection)
        if self.block is not None:
            self.block.xids = catalog.xids
            self.block.changes_definitions |= catalog.has_changes

    def drop_temporary_slots(self) -> None:
        """Drop the temporary slots of this session, at its end or after a failed statement."""
        if self.has_temporary_slots:
            with self.cluster.begin(write=True, in_recovery=True) as connection:
                drop_slots_of(connection, self.key)
            self.has_temporary_slots = False

    def close(self) -> None:
        """End the session, and drop its temporary objects."""
        try:
            while self.at_end:
                self.at_end.pop()()
            if self.cluster.is_in_place:
                self.drop_temporary_slots()
                if self.origin is not None:
                    with self.cluster.begin(write=True) as connection:
                        own_origin(connection, self.origin.name, None)
                    self.origin = None
        finally:
            if self.login is not None:
                self.login.end()

    @property
    def xids(self) -> BlockXids | None:
        """Return the transaction numbers of the open block; None if no block is open."""
        return None if self.block is None else self.block.xids

    @property
    def is_read_only(self) -> bool:
        """Return whether the current transaction, or a statement outside one, is read-only."""
        if self.block is None:
            return self.setting("default_transaction_read_only") == "on"
        return self.block.is_read_only


def role_settings_of(
    cluster: Cluster, database_oid: int, role_oid: int, on_notice: Callable[[Notice], None]
) -> dict[str, str]:
    """Return the settings from ALTER ROLE and ALTER DATABASE for a new session of a role."""
    with cluster.read(database_oid) as catalog:
        stored = settings_at_start(catalog, database_oid, role_oid)
        return read_settings(stored, on_notice)


def _role_setting(value: str | None) -> tuple[int, str] | None:
    """Split the value of a role setting: `16384 alice` -> (16384, "alice").  The role may have been
    renamed since the setting got this value.
    """
    if value is None:
        return None
    oid, _space, name = value.partition(" ")
    return int(oid), name
