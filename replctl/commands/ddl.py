"""Run a statement that changes definitions in one transaction of the catalog, after checking rows.

Spark must not run while the catalog is locked.  So a statement first runs without Spark.  If rows
must be checked or rewritten, replctl rolls the transaction back, and locks the tables.  It checks
or rewrites the rows, and runs the statement again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import Protocol, TypeVar

from replctl.catalog.aclchk import Privileges
from replctl.catalog.pg_class import Column, Relation, get_relation, load_relations
from replctl.catalog.transaction import Catalog
from replctl.errors import IoError, Notice, PostgresError, TransactionInProgress
from replctl.lake.catalog_name import check_names
from replctl.lake.catalog_registration import unregister_dropped
from replctl.lake.definition import changing_definitions
from replctl.lake.delta_log import latest_version
from replctl.lake.file_access import check_readable
from replctl.lake.recovery import recover
from replctl.lake.rewrite import ColumnRewrite, RewrittenTable, TableRewrite, rewrite_table
from replctl.lake.small_source import with_small_rows
from replctl.lake.table_read import queried_source
from replctl.record import dataclass
from replctl.relation_lock import lock_relations
from replctl.session import Session
from replctl.spark import SparkQuery, StagedColumn, TableSource, reading, scan

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RowCheck:
    """A query for rows that must not exist.

    Attributes:
        tables: the tables that the query reads, each with its OID.
        query: returns the query's Spark SQL, given SQL of the rows of each table.
        columns: the columns whose values in the first row the error shows.
        error: a function that makes the error from these values, as texts.
    """

    tables: tuple[tuple[int, TableSource], ...]
    query: Callable[[Sequence[str]], str]
    columns: tuple[StagedColumn, ...]
    error: Callable[[Sequence[str | None]], PostgresError]

    def of(self, sources: Iterable[TableSource]) -> SparkQuery:
        """Return the query, given the sources of the tables."""
        scans = [scan(source) for source in sources]
        return reading(self.query([*map(str, scans)]), *scans)

    @property
    def key(self) -> str:
        """Return a text that is the same for equal checks of several attempts."""
        return self.of(source for _oid, source in self.tables).sql


class _RowsFirst(Exception):
    """A signal to roll back the transaction before checking or writing rows; not an error."""


class Filling(Protocol):
    """New columns whose values must be computed for each row (filled.FilledColumns)."""

    def add(self, relation: Relation, column: Column) -> tuple[str, int] | None:
        """Request the values of a new column.

        Returns:
            The column's name in storage and the table's version that has it; None if the column is
            not written yet.
        """

    def finish(self) -> None:
        """Request the rewrites of the tables."""


class Ddl:
    """A running statement that changes definitions.

    Attributes:
        session, catalog: the session of the statement, and the catalogs to change.
        environment: the current state of the database.
        made: OIDs of the relations that the statement has created.  They have no rows.
        filling: new columns whose values must be computed for each row; None if there are none.
        rewrites: tables that must be written before the statement takes effect.
        retyped: OIDs of the tables whose columns change types.
        last_writes: pairs of a table's OID and a function that commits to the table after all
            checks.
    """

    def __init__(
        self,
        session: Session,
        catalog: Catalog,
        rewritten: Mapping[TableRewrite, RewrittenTable] = MappingProxyType({}),
    ) -> None:
        self.session = session
        self.catalog = catalog
        self.environment = session.environment(catalog)
        self.now = session.transaction_start
        self.made: set[int] = set()
        self.notices: list[Notice] = []
        self.row_checks: list[RowCheck] = []
        self.concerned: set[int] = set()
        self.filling: Filling | None = None
        self.rewrites: list[TableRewrite] = []
        self.retyped: set[int] = set()
        self.last_writes: list[tuple[int, Callable[[], int | None]]] = []
        self._rewritten = rewritten

    @property
    def privileges(self) -> Privileges:
        """Return the privileges of the current role."""
        return self.environment.privileges

    def notice(
        self,
        message: str,
        *,
        severity: str = "NOTICE",
        sqlstate: str = "00000",
        detail: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Record a notice.  It is reported when the statement has succeeded or failed."""
        self.notices.append(Notice(severity, message, sqlstate, detail, hint))

    def relation(self, oid: int) -> Relation:
        """Return the current state of a relation."""
        found = get_relation(self.catalog, oid)
        assert found is not None
        return found

    def own_child(self, oid: int) -> Relation:
        """Return a child table that changes together with its parent (ATSimplePermissions).

        Raises:
            InsufficientPrivilege: the role does not own the child table (42501).
        """
        child = self.relation(oid)
        self.privileges.check_relation_owner(child)
        return child

    def has_rows(self, relation: Relation) -> bool:
        """Return whether a table may have rows.  Lock the table against writes while the statement
        runs.

        Raises:
            InsufficientPrivilege: the owner of the table may not read its files (42501).
        """
        if relation.oid in self.made or relation.is_partitioned:
            return False
        self.concerned.add(relation.oid)
        if relation.storage is None or not relation.storage.is_made:
            return False
        check_readable(self.catalog, [relation])
        return True

    def require(self, check: RowCheck) -> None:
        """Request a check of rows before the statement takes effect."""
        self.row_checks.append(check)

    def write_last(self, relid: int, write: Callable[[], int | None]) -> None:
        """Request a commit to a table after all checks, before the statement takes effect.  After
        the commit, the statement runs again and sees it.

        Args:
            write: a function that commits without changing a row, and returns the table's newest
                version.
        """
        self.last_writes.append((relid, write))

    def rewritten(self, rewrite: TableRewrite) -> RewrittenTable | None:
        """Return the result of rewriting a table.  If the table is not rewritten yet, or has a
        newer version, request the rewrite and return None.
        """
        made = self._rewritten.get(rewrite)
        if made is None or not self._is_newest(rewrite.relid, made):
            self.rewrites.append(rewrite)
            return None
        return made

    def made_columns(self, relid: int, columns: Sequence[ColumnRewrite]) -> RewrittenTable | None:
        """Return the rewrite of a table that has created these columns; None if there is none, or
        if the table has a newer version.
        """
        for rewrite, made in self._rewritten.items():
            is_alike = rewrite.relid == relid and rewrite.is_row_by_row
            if is_alike and rewrite.columns[: len(columns)] == tuple(columns):
                return made if self._is_newest(relid, made) else None
        return None

    def _is_newest(self, relid: int, made: RewrittenTable) -> bool:
        storage = self.relation(relid).storage
        return storage is not None and latest_version(storage.location) == made.version


def require_rows(
    ddl: Ddl, relation: Relation, violated: str, error: Callable[[], PostgresError]
) -> None:
    """Require that no row of a table satisfies a condition.  The condition is Spark SQL; c<attnum>
    stands for a column.
    """
    if ddl.has_rows(relation):
        ddl.require(
            RowCheck(
                ((relation.oid, queried_source(ddl.catalog, relation, relation)),),
                lambda rows: f"SELECT 1 AS found FROM ({rows[0]}) WHERE {violated}",
                (StagedColumn("found", "int4"),),
                lambda _values: error(),
            )
        )


@contextmanager
def without_position() -> Iterator[None]:
    """Remove the position from errors: ALTER TABLE and policies report no position for
    expressions."""
    try:
        yield
    except PostgresError as error:
        error.position = -1
        raise


def carry_out(session: Session, change: Callable[[Ddl], T]) -> T:
    """Run `change` as one transaction.  `change` may run more than once.

    Raises:
        PostgresError: `change` fails, or a row violates a requirement of the statement.
    """
    locked: set[int] = set()
    rewritten: dict[TableRewrite, RewrittenTable] = {}
    passed: dict[str, dict[int, int | None]] = {}  # the versions, by the check's key
    while True:
        with ExitStack() as stack:
            lock_relations(session, locked, stack)
            if locked:
                recover(session, sorted(locked))
            while True:
                try:
                    with changing_definitions(session) as catalog:
                        ddl = Ddl(session, catalog, rewritten)
                        result = _attempt(ddl, change)
                        if ddl.filling is not None:
                            ddl.filling.finish()
                        versions = _versions(ddl)
                        failing = [c for c in ddl.row_checks if passed.get(c.key) != versions]
                        is_checked = not failing and ddl.concerned <= locked
                        if not is_checked or ddl.rewrites or ddl.last_writes:
                            raise _RowsFirst
                    _report(ddl)
                    if session.block is None:
                        unregister_dropped(session)
                    return result
                except _RowsFirst:  # the definitions are rolled back; they follow the rows
                    if not ddl.concerned <= locked:
                        locked |= ddl.concerned
                        break  # take all locks in their fixed order
                for rewrite in ddl.rewrites:
                    rewritten[rewrite] = rewrite_table(session, rewrite)
                check_names(session, ddl.concerned if failing else ())
                for check in () if ddl.rewrites else failing:
                    _look(session, check, ddl)
                    passed[check.key] = versions
                if is_checked and not ddl.rewrites:
                    _write_last(ddl, versions, passed)


def _write_last(
    ddl: Ddl,
    versions: dict[int, int | None],
    passed: dict[str, dict[int, int | None]],
) -> None:
    """Make the requested commits after all checks.  The checks also hold for a new version if
    nobody else has written the table since.
    """
    for relid, write in ddl.last_writes:
        before, after = versions.get(relid), write()
        if before is not None and after == before + 1:
            versions = {**versions, relid: after}
    for check in ddl.row_checks:
        passed[check.key] = versions


def _attempt(ddl: Ddl, change: Callable[[Ddl], T]) -> T:
    try:
        return change(ddl)
    except TransactionInProgress:  # the statement will be repeated
        raise
    except PostgresError:
        _report(ddl)
        raise


def _look(session: Session, check: RowCheck, ddl: Ddl) -> None:
    with ExitStack() as stack:
        query = check.of(with_small_rows(session, check.tables, stack))
        first = reading(f"SELECT * FROM ({query}) LIMIT 1", query)
        rows = session.engine().fetch(first, check.columns)
    if rows:
        _report(ddl)
        raise check.error(rows[0])


def _report(ddl: Ddl) -> None:
    for notice in ddl.notices:
        ddl.session.report(notice)


def _versions(ddl: Ddl) -> dict[int, int | None]:
    """Return the current versions of the tables whose rows matter.  A version may change in spite
    of the locks: programs other than replctl ignore them.
    """
    relations = load_relations(ddl.catalog, ddl.concerned)
    return {
        oid: _listed_version(relation.storage.location)
        for oid, relation in relations.items()
        if relation.storage is not None and relation.storage.is_made
    }


def _listed_version(location: str) -> int | None:
    """Return the newest version of a table; None if its files cannot be read.  Only checks of rows
    fail then.
    """
    try:
        return latest_version(location)
    except IoError:  # reading the rows reports it
        return None
