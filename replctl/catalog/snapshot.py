"""The rows of the catalogs that a transaction sees (snapmgr.c, heapam_visibility.c).

Statements share the queries and conditions of this file, because SQLAlchemy takes longer to build
one than SQLite to search with it.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Table,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
    true,
)

from replctl.catalog import state_schema
from replctl.catalog.prepared_query import PreparedQuery
from replctl.catalog.state_schema import is_committed, is_in_progress
from replctl.record import dataclass

#: The transaction that made the first rows of a cluster; it is always committed.
BOOTSTRAP_XID = 1


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The rule that decides which row versions are visible.

    If `as_of_lsn` is None, committed changes and the changes of the own transaction are visible.
    `in_progress` has all other open transactions.  If `as_of_lsn` is an LSN, changes that were
    committed at or before this LSN are visible.
    """

    in_progress: frozenset[int] = frozenset()
    as_of_lsn: int | None = None

    def is_alive(self, table: Table) -> ColumnElement[bool]:
        """Return the condition that a row of a table is visible."""
        if not table.info.get("versioned"):
            return true()
        return _is_alive(table, self.as_of_lsn, sorted(self.in_progress))

    def rows(self, table: Table, database_oid: int) -> Select[Any]:
        """Return the query of the visible rows of a table in a database."""
        if self.as_of_lsn is None and not self.in_progress:
            return _present_rows(table, database_oid)
        return select(table).where(of_database(table, database_oid), self.is_alive(table))

    def prepared(
        self, table: Table, columns: tuple[str, ...], order_by: tuple[ColumnElement[Any], ...] = ()
    ) -> tuple[PreparedQuery, dict[str, Any]]:
        """Return a query of the visible rows in which each of some columns has a given value.

        Returns:
            the query, and its parameters except `dbid` and the columns' own names.
        """
        others = sorted(self.in_progress)
        query = _by_values(
            table, columns, order_by, self.as_of_lsn is not None, has_others=bool(others)
        )
        return query, self._parameters(others)

    def prepared_in(
        self, column: ColumnElement[int], order_by: tuple[ColumnElement[Any], ...]
    ) -> tuple[PreparedQuery, dict[str, Any]]:
        """Return a query of the visible rows in which a column has one of some values.

        Returns:
            the query, and its parameters except `dbid` and `values`, a JSON array.
        """
        others = sorted(self.in_progress)
        query = _in_values(
            column, order_by, is_historic=self.as_of_lsn is not None, has_others=bool(others)
        )
        return query, self._parameters(others)

    def _parameters(self, others: list[int]) -> dict[str, Any]:
        return {"lsn": self.as_of_lsn, "others": json.dumps(others)}


@cache
def of_database(table: Table, database_oid: int) -> ColumnElement[bool]:
    """Return the condition that a row of a table belongs to a database."""
    return table.c.dbid == database_oid if "dbid" in table.c else true()


@cache
def in_progress() -> PreparedQuery:
    """Return the query of the transactions in progress."""
    xact = state_schema.pg_xact
    return PreparedQuery(select(xact.c.xid).where(is_in_progress(xact)))


@cache
def _present_rows(table: Table, database_oid: int) -> Select[Any]:
    versioned = (table.c.xmax == 0,) if table.info.get("versioned") else ()
    return select(table).where(of_database(table, database_oid), *versioned)


@cache
def _by_values(
    table: Table,
    columns: tuple[str, ...],
    order_by: tuple[ColumnElement[Any], ...],
    is_historic: bool,
    *,
    has_others: bool,
) -> PreparedQuery:
    where = [table.c[column] == bindparam(f"given_{column}") for column in columns]
    return _prepared(table, where, order_by, is_historic=is_historic, has_others=has_others)


@cache
def _in_values(
    column: Any, order_by: tuple[ColumnElement[Any], ...], *, is_historic: bool, has_others: bool
) -> PreparedQuery:
    where = [column.in_(_elements("values"))]
    return _prepared(column.table, where, order_by, is_historic=is_historic, has_others=has_others)


def _prepared(
    table: Table,
    where: list[ColumnElement[bool]],
    order_by: tuple[ColumnElement[Any], ...],
    *,
    is_historic: bool,
    has_others: bool,
) -> PreparedQuery:
    if "dbid" in table.c:
        where = [*where, table.c.dbid == bindparam("dbid")]
    if table.info.get("versioned"):
        lsn: Any = bindparam("lsn") if is_historic else None
        others: Any = _elements("others") if has_others else []
        where = [*where, _is_alive(table, lsn, others)]
    return PreparedQuery(select(table).where(*where).order_by(*order_by))


def _elements(parameter: str) -> Select[Any]:
    """Return the query of the elements of a JSON array that a parameter has."""
    return select(func.json_each(bindparam(parameter)).table_valued("value").c.value)


def _is_alive(table: Table, as_of_lsn: Any, others: Any) -> ColumnElement[bool]:
    """Return the condition for visible rows of a versioned table.

    Args:
        as_of_lsn: the LSN of the snapshot, or a parameter for it; None for the newest state.
        others: the numbers of the other transactions in progress, or a parameter for them.
    """
    if as_of_lsn is not None:
        removed = _committed_before(table.c.xmax, as_of_lsn)
        return and_(made_by(table, as_of_lsn), or_(table.c.xmax == 0, ~removed))
    if isinstance(others, list) and not others:
        return table.c.xmax == 0
    return and_(table.c.xmin.not_in(others), or_(table.c.xmax == 0, table.c.xmax.in_(others)))


def made_by(table: Table, lsn: Any) -> ColumnElement[bool]:
    """Return the condition that a row version of a versioned table was made at an LSN or before."""
    return or_(table.c.xmin == BOOTSTRAP_XID, _committed_before(table.c.xmin, lsn))


def _committed_before(xid: ColumnElement[int], lsn: Any) -> ColumnElement[bool]:
    xact = state_schema.pg_xact
    return exists().where(xact.c.xid == xid, is_committed(xact), xact.c.commit_lsn <= lsn)
