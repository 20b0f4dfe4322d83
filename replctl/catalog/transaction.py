"""Read and change the catalogs in a transaction.

Rows have versions (schema.py).  A snapshot selects the visible versions: the present with the
transaction's own changes, or the state at an LSN for decoding (PostgreSQL's historic snapshots).
"""

from __future__ import annotations

import json
import operator
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import field
from functools import cache, cached_property
from typing import Any, TypeVar, cast

from sqlalchemy import (
    BinaryExpression,
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Insert,
    Row,
    Subquery,
    Table,
    and_,
    delete,
    exc,
    insert,
    select,
    update,
)

from replctl.catalog import schema, schema_table, state_schema
from replctl.catalog.commit_digest import next_digest
from replctl.catalog.lock import LockMode, ObjectLock, hold_locks, locks_held, locks_of
from replctl.catalog.snapshot import Snapshot, in_progress, of_database
from replctl.catalog.sqlite_error import refusal_of_query
from replctl.catalog.state_schema import XactStatus, is_in_progress
from replctl.errors import FeatureNotSupported, InternalError, TransactionInProgress
from replctl.record import dataclass

#: The distance of consecutive LSNs: bytes of log per record (about the size of PostgreSQL's commit
#: record).
_RECORD_SIZE = 0x38

_T = TypeVar("_T")


@dataclass
class BlockXids:
    """The transaction numbers of a transaction block.

    There is one level for the block, and one for each open savepoint, the innermost last.  A level
    gets its number with its first change.  RELEASE SAVEPOINT adds the savepoint's numbers to the
    enclosing level, after that level's own number.
    """

    levels: list[list[int]] = field(default_factory=lambda: [[]])

    @property
    def top(self) -> int | None:
        """Return the transaction's own number, not that of a savepoint; None before its first
        change.  It uses this number for changes of tables.
        """
        return self.levels[0][0] if self.levels[0] else None

    @property
    def all(self) -> list[int]:
        """Return the numbers of all levels."""
        return [xid for level in self.levels for xid in level]

    def copy(self) -> BlockXids:
        return BlockXids([list(level) for level in self.levels])


@cache
def _insert_into(table: Table) -> Insert:
    """Return the statement that adds rows; its method values() would take as long as SQLite."""
    return insert(table)


def _given_values(table: Table, where: Sequence[ColumnElement[bool]]) -> dict[str, Any] | None:
    """Return the values of columns of a table that conditions ask for, by the columns' names; None
    if a condition is not that a column has a value.
    """
    given: dict[str, Any] = {}
    for condition in where:
        if not (
            isinstance(condition, BinaryExpression)
            and condition.operator is operator.eq
            and isinstance(condition.left, Column)
            and condition.left.table is table
            and isinstance(condition.right, BindParameter)
            and condition.left.name not in given
        ):
            return None
        given[condition.left.name] = condition.right.effective_value
    return given


class Catalog:
    """The catalogs of one database, in one SQLite transaction and one snapshot.

    An SQL transaction that only changes catalogs uses one object.  A transaction that also writes
    tables, and a transaction block, use several objects with the same `xid`.

    Attributes:
        temporary_schema: the schema of the session's temporary relations, which only this session
            may use, whatever its role is; None if there is none.
    """

    temporary_schema: str | None = None

    def __init__(
        self,
        connection: Connection,
        database_oid: int,
        *,
        backend: str = "",
        block: BlockXids | None = None,
        as_of_lsn: int | None = None,
        is_for_reading: bool = False,
    ) -> None:
        self.connection = connection
        self.database_oid = database_oid
        self.backend = backend
        self.xids = BlockXids() if block is None else block.copy()
        self._is_block = block is not None
        self.has_changes = False
        self.is_for_reading = is_for_reading or as_of_lsn is not None
        self._looked_up: dict[Hashable, Any] = {}
        self._locked: set[ObjectLock] = set()
        self._companions: frozenset[int] = frozenset()  # transactions whose locks do not block it
        others = (int(row.xid) for row in in_progress().rows(connection, {}))
        self.snapshot = Snapshot(frozenset(others).difference(self.xids.all), as_of_lsn)

    def apart(self) -> Catalog:
        """Return the same catalogs in a transaction of their own.  It records what other programs
        have done, whatever becomes of this transaction, whose locks do not block it.
        """
        made = Catalog(self.connection, self.database_oid, backend=self.backend)
        made._companions = frozenset(self.xids.all)
        return made

    # -- reading

    def rows_of(self, table: Table) -> Subquery:
        """Return a subquery for a table's visible rows in this database."""
        columns = [column for column in table.c if column.name not in ("dbid", "xmin", "xmax")]
        return select(*columns).where(self.visible(table)).subquery(table.name)

    def visible(self, table: Table) -> ColumnElement[bool]:
        """Return the condition that a row of a table belongs to this database and is visible."""
        return and_(of_database(table, self.database_oid), self.snapshot.is_alive(table))

    def select(
        self, table: Table, *where: ColumnElement[bool], order_by: Sequence[Any] = ()
    ) -> list[Row[Any]]:
        """Return the visible rows of `table` that satisfy all of `where`.

        This is fast if each condition is that a column has a value, because such queries are
        prepared.
        """
        given = _given_values(table, where)
        if given is None:
            query = self.snapshot.rows(table, self.database_oid).where(*where).order_by(*order_by)
            return list(self.connection.execute(query))
        prepared, parameters = self.snapshot.prepared(table, tuple(given), tuple(order_by))
        parameters |= {f"given_{name}": value for name, value in given.items()}
        return prepared.rows(self.connection, parameters | {"dbid": self.database_oid})

    def select_in(
        self, column: ColumnElement[int], values: Collection[int], *order_by: ColumnElement[Any]
    ) -> list[Row[Any]]:
        """Return the visible rows of a column's table in which the column has one of some values.

        This is faster than `select`, because it uses a prepared query.
        """
        if not values:
            return []
        prepared, parameters = self.snapshot.prepared_in(column, order_by)
        parameters |= {"values": json.dumps(list(values)), "dbid": self.database_oid}
        return prepared.rows(self.connection, parameters)

    def select_everywhere(self, table: Table, *where: ColumnElement[bool]) -> list[Row[Any]]:
        """Return the visible rows of `table` that satisfy all of `where`, in all databases."""
        query = select(table).where(self.snapshot.is_alive(table), *where)
        return list(self.connection.execute(query))

    def first(self, table: Table, *where: ColumnElement[bool]) -> Row[Any] | None:
        """Return one visible row that satisfies all of `where`, or None."""
        if _given_values(table, where) is not None:
            return next(iter(self.select(table, *where)), None)
        query = self.snapshot.rows(table, self.database_oid).where(*where).limit(1)
        return self.connection.execute(query).first()

    def cached(self, key: Hashable, look_up: Callable[[], _T]) -> _T:
        """Return the result of a look-up, from a cache until this object next changes the catalogs
        (PostgreSQL's syscache).  One statement looks up the same names and operators repeatedly.
        """
        if key not in self._looked_up:
            self._looked_up[key] = look_up()
        return cast(_T, self._looked_up[key])

    def driver_rows(self, statement: str) -> list[Sequence[Any]]:
        """Return the rows of a statement in SQLite's own SQL.

        Raises:
            StatementTooComplex, ProgramLimitExceeded, InternalError: SQLite refuses the statement.
        """
        try:
            return [tuple(row) for row in self.connection.exec_driver_sql(statement)]
        except exc.DBAPIError as error:
            raise refusal_of_query(error) from error

    # -- writing

    @property
    def xid(self) -> int:
        """Return this transaction's number; in a transaction block, the number of the innermost
        savepoint.  The first call assigns it.
        """
        for level in self.xids.levels:
            if not level:
                top = self.xids.top if self._is_block else None
                level.append(
                    begin_transaction(
                        self.connection,
                        self.database_oid,
                        self.backend,
                        is_block=self._is_block,
                        top_xid=top,
                    )
                )
        return self.xids.levels[-1][0]

    @property
    def top_xid(self) -> int:
        """Return the number for changes of tables: that of the transaction, not of a savepoint."""
        _innermost = self.xid
        return self.xids.levels[0][0]

    @property
    def has_xid(self) -> bool:
        return self.xids.top is not None

    def insert(self, table: Table, **values: Any) -> None:
        """Add a row.

        Raises:
            TransactionInProgress: another open transaction has locked an object of the row, because
                it has changed the object or depends on it (55P03).
            FeatureNotSupported: the row belongs to a template database.
        """
        self._changed()
        if "dbid" in table.c:
            values.setdefault("dbid", self.database_oid)
        if table.info.get("versioned"):
            self._check_not_template(table, values.get("dbid"))
            self.lock(locks_of(table, values))
            values["xmin"] = self.xid
        self.connection.execute(_insert_into(table), values)

    def update(self, table: Table, *where: ColumnElement[bool], **values: Any) -> int:
        """Change the visible rows that satisfy all of `where`, and return the number of rows.

        Raises:
            TransactionInProgress: see `insert`.
        """
        self._changed()
        if not table.info.get("versioned"):
            return self.connection.execute(update(table).where(*where).values(**values)).rowcount
        old_rows = self.select(table, *where)
        self._remove(table, old_rows, *where)
        for row in old_rows:
            new_row = {**row._mapping, **values, "xmin": self.xid, "xmax": 0}
            self.lock(locks_of(table, new_row))
            self.connection.execute(_insert_into(table), new_row)
        return len(old_rows)

    def delete(self, table: Table, *where: ColumnElement[bool]) -> int:
        """Remove the visible rows that satisfy all of `where`, and the comments on their objects.
        Return the number of rows.

        Raises:
            TransactionInProgress: see `insert`.
        """
        if not table.info.get("versioned"):
            self._changed()
            return self.connection.execute(delete(table).where(*where)).rowcount
        rows = self.select(table, *where)
        if rows and "oid" in table.c:
            for comments in (schema.pg_description, schema.pg_shdescription):
                self.delete(comments, comments.c.objoid.in_([int(row.oid) for row in rows]))
        self._remove(table, rows, *where)
        return len(rows)

    def _remove(self, table: Table, rows: Sequence[Row[Any]], *where: ColumnElement[bool]) -> None:
        """Remove `rows`: all visible rows of a versioned table that satisfy all of `where`."""
        if not rows:  # most deletions of a dropped object's parts
            return
        self._changed()
        holders = {int(row.xmax) for row in rows if row.xmax}
        if holders:
            raise TransactionInProgress(holders)
        if self._is_block or self._foreign_locks:
            for row in rows:
                self.lock(locks_of(table, dict(row._mapping)))
        condition = and_(self.visible(table), *where)
        makers = {int(row.xmin) for row in rows}
        if self.xid in makers:
            self.connection.execute(delete(table).where(condition, table.c.xmin == self.xid))
        if makers != {self.xid}:
            self.connection.execute(update(table).where(condition).values(xmax=self.xid))
        self._check_not_template(table, self.database_oid)

    def _check_not_template(self, table: Table, database_oid: int | None) -> None:
        """Check that a row does not belong to a template database: new databases have no copies of
        a template's objects.
        """
        if not table.info["shared"] and database_oid in self._templates:
            name = self._templates[database_oid]
            raise FeatureNotSupported(
                f'changing objects of template database "{name}" is not supported'
            )

    @cached_property
    def _templates(self) -> dict[int | None, str]:
        rows = self.select(schema.pg_database, schema.pg_database.c.datistemplate)
        return {int(row.oid): str(row.datname) for row in rows}

    def lock(self, locks: Collection[ObjectLock]) -> None:
        """Lock objects.  A transaction block holds the locks until its end.

        Raises:
            TransactionInProgress: another transaction block holds a conflicting lock.
        """
        new = set(locks).difference(self._locked)
        for lock in new:
            holders = self._foreign_locks.get(lock.name, ())
            blocking = {xid for xid, mode in holders if mode.conflicts_with(lock.mode)}
            if blocking:
                raise TransactionInProgress(blocking)
        if self._is_block:
            hold_locks(self.connection, self.xid, new)
            self._locked |= new

    @cached_property
    def _foreign_locks(self) -> dict[str, list[tuple[int, LockMode]]]:
        others = self.snapshot.in_progress - self._companions
        return locks_held(self.connection, others) if others else {}

    def _changed(self) -> None:
        self.has_changes = True
        self._looked_up.clear()

    def new_oid(self) -> int:
        """Assign and return the next OID."""
        self.connection.execute(
            update(state_schema.pg_control).values(next_oid=state_schema.pg_control.c.next_oid + 1)
        )
        return (
            int(self.connection.execute(select(state_schema.pg_control.c.next_oid)).scalar_one())
            - 1
        )

    # -- history

    def as_of(self, lsn: int) -> Catalog:
        """Return the same database's catalogs in their state at `lsn`."""
        return Catalog(self.connection, self.database_oid, as_of_lsn=lsn)

    def changes_between(self, from_lsn: int, to_lsn: int) -> list[int]:
        """Return the LSNs in (from_lsn, to_lsn] of the commits that changed definitions of this
        database, in order.
        """
        xact = state_schema.pg_xact
        query = (
            select(xact.c.commit_lsn)
            .where(
                xact.c.dbid == self.database_oid,
                xact.c.changes_catalog,
                xact.c.commit_lsn > from_lsn,
                xact.c.commit_lsn <= to_lsn,
            )
            .order_by(xact.c.commit_lsn)
        )
        return list(self.connection.execute(query).scalars())


def begin_transaction(
    connection: Connection,
    database_oid: int,
    backend: str,
    *,
    is_block: bool = False,
    top_xid: int | None = None,
) -> int:
    """Assign a transaction number, and record the transaction as in progress in the process
    `backend`.

    Args:
        is_block: the number belongs to a transaction block or a savepoint.
        top_xid: the block's own number, if this one belongs to a savepoint.
    """
    control = state_schema.pg_control
    connection.execute(update(control).values(next_xid=control.c.next_xid + 1))
    xid = int(connection.execute(select(control.c.next_xid)).scalar_one()) - 1
    block_xid = (top_xid or xid) if is_block else None
    insert_xact(connection, xid, database_oid, backend, block_xid)
    return xid


def insert_xact(
    connection: Connection, xid: int, database_oid: int, backend: str, block_xid: int | None
) -> None:
    """Record a transaction as in progress in the process `backend`."""
    connection.execute(
        insert(state_schema.pg_xact).values(
            xid=xid,
            dbid=database_oid,
            status=XactStatus.IN_PROGRESS,
            backend=backend,
            block_xid=block_xid,
        )
    )


def blocks_of_others(connection: Connection, database_oid: int, backend: str) -> dict[int, str]:
    """Return the open transaction blocks of other processes in a database, each with its
    process.
    """
    xact = state_schema.pg_xact
    query = select(xact.c.xid, xact.c.backend).where(
        is_in_progress(xact),
        xact.c.dbid == database_oid,
        xact.c.block_xid == xact.c.xid,
        xact.c.backend != backend,
    )
    return {int(xid): str(name) for xid, name in connection.execute(query)}


def xids_of_block(connection: Connection, block_xid: int) -> list[int]:
    """Return the numbers of an open transaction block and of its savepoints; for another
    transaction, only its own number.
    """
    xact = state_schema.pg_xact
    query = select(xact.c.xid).where(is_in_progress(xact), xact.c.block_xid == block_xid)
    return list(connection.execute(query).scalars()) or [block_xid]


def commit_transaction(
    connection: Connection,
    xid: int,
    *,
    changes_catalog: bool,
    is_internal: bool = False,
    origin: str | None = None,
    origin_lsn: int | None = None,
    commit_time: int | None = None,
    savepoints: Sequence[int] = (),
) -> int:
    """Commit `xid`, so that others see its rows.

    Args:
        savepoints: the numbers of the block's savepoints, which are committed with it.
        changes_catalog: the transaction has changed definitions, so decoding must reload them after
            this commit.
        is_internal: the transaction is not the work of a statement, so output plugins do not show
            it.
        origin, origin_lsn: the source of replicated changes.
        commit_time: microseconds since 1970; None for now.

    Returns:
        The LSN of the commit.

    Raises:
        InternalError: a transaction is no longer in progress (XX000).
    """
    commit_lsn = next_lsn(connection)
    xact, xids = state_schema.pg_xact, {xid, *savepoints}
    entered = connection.execute(
        update(xact)
        .where(xact.c.xid.in_(xids), is_in_progress(xact))
        .values(
            status=XactStatus.COMMITTED,
            backend=None,
            commit_lsn=commit_lsn,
            commit_time=time.time_ns() // 1000 if commit_time is None else commit_time,
            origin=origin,
            origin_lsn=origin_lsn,
            changes_catalog=changes_catalog,
            is_internal=is_internal,
            digest=next_digest(connection, xid, commit_lsn),
        )
    )
    if entered.rowcount != len(xids):
        raise InternalError(f"transaction {xid} is not in progress")
    return commit_lsn


def put_definitions_lsn(connection: Connection, xid: int, lsn: int) -> None:
    """Record that a transaction changes definitions only after its log entries up to an LSN."""
    xact = state_schema.pg_xact
    connection.execute(update(xact).where(xact.c.xid == xid).values(definitions_lsn=lsn))


def mixed_commits(catalog: Catalog, from_lsn: int, to_lsn: int) -> set[int]:
    """Return the LSNs of the commits in (from_lsn, to_lsn] that may have changed rows before
    definitions.
    """
    xact = state_schema.pg_xact
    query = select(xact.c.commit_lsn).where(
        xact.c.dbid == catalog.database_oid,
        xact.c.definitions_lsn.is_not(None),
        xact.c.commit_lsn > from_lsn,
        xact.c.commit_lsn <= to_lsn,
    )
    return set(catalog.connection.execute(query).scalars())


def definitions_lsn(connection: Connection, xid: int) -> int | None:
    """Return the LSN of a transaction's entries that come before its changes of definitions; None
    if it changed none, or no entry comes before.
    """
    xact = state_schema.pg_xact
    found = connection.execute(select(xact.c.definitions_lsn).where(xact.c.xid == xid)).scalar()
    return None if found is None else int(found)


def abort_transaction(connection: Connection, xid: int) -> None:
    """Undo the changes of `xid` in the catalogs, and remove its record.  The caller must have
    undone its writes to tables.

    Raises:
        InternalError: the transaction is committed (XX000).
    """
    xact = state_schema.pg_xact
    status = connection.execute(select(xact.c.status).where(xact.c.xid == xid)).scalar()
    if status == XactStatus.COMMITTED:
        raise InternalError(f"transaction {xid} is committed")
    for table in schema_table.metadata.sorted_tables:
        if table.info.get("versioned"):
            connection.execute(delete(table).where(table.c.xmin == xid))
            connection.execute(update(table).where(table.c.xmax == xid).values(xmax=0))
    for table in (
        state_schema.pg_wal,
        state_schema.intent,
        state_schema.object_lock,
        state_schema.lock_wait,
        state_schema.pg_xact,
    ):
        connection.execute(delete(table).where(table.c.xid == xid))


def next_xid(connection: Connection) -> int:
    """Return the number that the next transaction will get."""
    return int(connection.execute(select(state_schema.pg_control.c.next_xid)).scalar_one())


def next_lsn(connection: Connection) -> int:
    """Assign and return the next LSN, which is greater than all earlier ones."""
    control = state_schema.pg_control
    connection.execute(update(control).values(insert_lsn=control.c.insert_lsn + _RECORD_SIZE))
    return int(connection.execute(select(control.c.insert_lsn)).scalar_one())


def next_insert_lsn(connection: Connection) -> int:
    """Return the LSN that will be assigned next.  A transaction that is about to commit gets this
    LSN, unless another one commits first.
    """
    return insert_lsn(connection) + _RECORD_SIZE


def backend_of(connection: Connection, xid: int) -> str | None:
    """Return the process (Cluster.backend) that began a transaction."""
    xact = state_schema.pg_xact
    backend: str | None = connection.execute(
        select(xact.c.backend).where(xact.c.xid == xid)
    ).scalar_one_or_none()
    return backend


def insert_lsn(connection: Connection) -> int:
    """Return the end of the log: the LSN of the newest record."""
    return int(connection.execute(select(state_schema.pg_control.c.insert_lsn)).scalar_one())


def switch_segment(connection: Connection, size: int) -> int:
    """Continue the log at the next multiple of `size`, and return the old end of the log."""
    end = insert_lsn(connection)
    goal = -(-end // size) * size
    connection.execute(update(state_schema.pg_control).values(insert_lsn=goal))
    return end
