"""A statement that changes definitions: one transaction of the catalog, and the rows to look at
before.

Spark must not run while the catalog is locked.  So a statement is carried out without it first; if
rows have to satisfy something, that is taken back, the rows are looked at under the locks of their
tables, and the statement is carried out again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from replctl.catalog.pg_class import Relation, get_relation, load_relations
from replctl.catalog.transaction import Catalog
from replctl.errors import Notice, PostgresError
from replctl.lake.definition import changing_definitions
from replctl.lake.delta_log import latest_version
from replctl.lake.table_write import recover
from replctl.session import Session
from replctl.spark import StagedColumn

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RowCheck:
    """Rows that must not be there.

    Attributes:
        query: Spark SQL for them.
        columns: what to show of the first one.
        error: makes the error from the texts of these columns.
    """

    query: str
    columns: tuple[StagedColumn, ...]
    error: Callable[[Sequence[str | None]], PostgresError] = field(compare=False)


class _RowsToCheck(Exception):
    """Not an error: the transaction is to be taken back."""


class Ddl:
    """A statement that is being carried out.

    Attributes:
        session, catalog: whose it is, and the catalogs to change.
        environment: the database as it is now.
        made: OIDs of the relations that the statement has made, which have no rows.
    """

    def __init__(self, session: Session, catalog: Catalog) -> None:
        self.session = session
        self.catalog = catalog
        self.environment = session.environment(catalog)
        self.now = session.transaction_start
        self.made: set[int] = set()
        self.notices: list[Notice] = []
        self.row_checks: list[RowCheck] = []
        self.concerned: set[int] = set()

    def notice(
        self,
        message: str,
        *,
        severity: str = "NOTICE",
        sqlstate: str = "00000",
        detail: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Report something that stops nothing, once the statement's fate is known."""
        self.notices.append(Notice(severity, message, sqlstate, detail, hint))

    def relation(self, oid: int) -> Relation:
        """A relation as it is now."""
        found = get_relation(self.catalog, oid)
        assert found is not None
        return found

    def has_rows(self, relation: Relation) -> bool:
        """Whether a table may have rows; while the statement is carried out nobody writes it."""
        if relation.oid in self.made or relation.is_partitioned:
            return False
        self.concerned.add(relation.oid)
        return relation.storage is not None and relation.storage.is_made

    def require(self, check: RowCheck) -> None:
        """Ask for rows to be looked at before the statement takes effect."""
        self.row_checks.append(check)


@contextmanager
def without_position() -> Iterator[None]:
    """ALTER TABLE does not say where in the statement an expression is wrong."""
    try:
        yield
    except PostgresError as error:
        error.position = -1
        raise


def carry_out(session: Session, change: Callable[[Ddl], T]) -> T:
    """Carry out `change` as one transaction, which may run twice.

    Raises:
        PostgresError: what `change` raises, or the error of a row that does not fit.
    """
    locked: set[int] = set()
    passed: dict[RowCheck, dict[int, int | None]] = {}
    while True:
        with ExitStack() as stack:
            session.lock_relations(locked, stack)
            if locked:
                recover(session, sorted(locked))
            while True:
                try:
                    with changing_definitions(session) as catalog:
                        ddl = Ddl(session, catalog)
                        result = _attempt(ddl, change)
                        versions = _versions(ddl)
                        failing = [c for c in ddl.row_checks if passed.get(c) != versions]
                        if failing or not ddl.concerned <= locked:
                            raise _RowsToCheck
                    _report(ddl)
                    return result
                except _RowsToCheck:
                    if not ddl.concerned <= locked:
                        locked |= ddl.concerned
                        break  # take the locks, in their order
                for check in failing:
                    _look(session, check, ddl)
                    passed[check] = versions


def _attempt(ddl: Ddl, change: Callable[[Ddl], T]) -> T:
    try:
        return change(ddl)
    except PostgresError:
        _report(ddl)
        raise


def _look(session: Session, check: RowCheck, ddl: Ddl) -> None:
    rows = session.engine().fetch(f"SELECT * FROM ({check.query}) LIMIT 1", check.columns)
    if rows:
        _report(ddl)
        raise check.error(rows[0])


def _report(ddl: Ddl) -> None:
    for notice in ddl.notices:
        ddl.session.on_notice(notice)


def _versions(ddl: Ddl) -> dict[int, int | None]:
    """The versions of the tables whose rows matter: somebody who knows no locks may have written
    them."""
    relations = load_relations(ddl.catalog, ddl.concerned)
    return {
        oid: latest_version(relation.storage.location)
        for oid, relation in relations.items()
        if relation.storage is not None and relation.storage.is_made
    }
