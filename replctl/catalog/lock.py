"""Lock objects of the catalogs: other transactions wait for an object that an open transaction
block has changed or depends on (lmgr).

A writer of a row of a versioned table locks several objects: the row's own object, the objects that
contain it, the objects that it uses, and its name.  Of PostgreSQL's lock modes, three exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, delete, insert, select

from replctl.catalog import state_schema
from replctl.catalog.state_schema import is_in_progress
from replctl.record import dataclass


class LockMode(IntEnum):
    """The strength of a lock: two locks conflict if the sum of their modes exceeds three."""

    USE = 1  # prevents changes of the object: ACCESS SHARE of a schema, ROW EXCLUSIVE of a table
    PUBLISH = 2  # SHARE UPDATE EXCLUSIVE
    CHANGE = 3  # ACCESS EXCLUSIVE

    def conflicts_with(self, other: LockMode) -> bool:
        """Return whether two transactions cannot hold these locks at the same time."""
        return self + other > 3


@dataclass(frozen=True, slots=True)
class ObjectLock:
    """A lock; `name` identifies the locked object."""

    name: str
    mode: LockMode


@dataclass(frozen=True, slots=True)
class _Rule:
    """The locks that a write of a table's row requires.

    Attributes:
        changes, publishes, uses: the columns with the OIDs of the objects to lock in these modes.
        name: the columns that form the row's name, which is also locked.
    """

    changes: tuple[str, ...] = ("oid",)
    publishes: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    name: tuple[str, ...] = ()


_RULES = {
    "pg_authid": _Rule(name=("rolname",)),
    "pg_database": _Rule(name=("datname",)),
    "pg_namespace": _Rule(name=("nspname",)),
    "pg_class": _Rule(uses=("relnamespace",), name=("relname", "relnamespace")),
    "pg_attribute": _Rule(("attrelid",), uses=("atttypid",)),
    "pg_attrdef": _Rule(("adrelid",)),
    "pg_index": _Rule(("indexrelid", "indrelid")),
    "pg_constraint": _Rule(("conrelid", "confrelid")),
    "pg_sequence": _Rule(("seqrelid",), uses=("ownerrelid",)),
    "pg_inherits": _Rule(("inhrelid", "inhparent")),
    "pg_partitioned_table": _Rule(("partrelid",)),
    "pg_type": _Rule(uses=("typnamespace",), name=("typname", "typnamespace")),
    "pg_enum": _Rule(("enumtypid",)),
    "pg_proc": _Rule(uses=("pronamespace",), name=("proname", "pronamespace", "proargtypes")),
    "pg_operator": _Rule(
        uses=("oprnamespace", "oprcode"), name=("oprname", "oprnamespace", "oprleft", "oprright")
    ),
    "pg_collation": _Rule(uses=("collnamespace",), name=("collname", "collnamespace")),
    "pg_rewrite": _Rule(("ev_class",)),
    "pg_policy": _Rule(("polrelid",)),
    "pg_default_acl": _Rule((), name=("defaclrole", "defaclnamespace", "defaclobjtype")),
    "pg_db_role_setting": _Rule((), name=("setdatabase", "setrole")),
    "pg_description": _Rule(("objoid",)),
    "pg_shdescription": _Rule(("objoid",)),
    "pg_publication": _Rule(name=("pubname",)),
    "pg_publication_rel": _Rule((), publishes=("prpubid", "prrelid")),
    "pg_publication_namespace": _Rule((), publishes=("pnpubid",), uses=("pnnspid",)),
    "pg_subscription": _Rule(name=("subname", "subdbid")),
}


def locks_of(table: Table, row: Mapping[str, Any]) -> set[ObjectLock]:
    """Return the locks required to write `row`."""
    rule = _RULES.get(table.name)
    if rule is None:
        return set()
    database = row.get("dbid", 0)
    columns = [(column, LockMode.CHANGE) for column in rule.changes]
    columns += [(column, LockMode.PUBLISH) for column in rule.publishes]
    columns += [(column, LockMode.USE) for column in rule.uses]
    locks = {object_lock(database, row[name], mode) for name, mode in columns if row.get(name)}
    if rule.name:
        values = "/".join(str(row.get(column)) for column in rule.name)
        locks.add(ObjectLock(f"{database}/{table.name}/{values}", LockMode.CHANGE))
    return locks


def object_lock(database_oid: int, oid: int, mode: LockMode) -> ObjectLock:
    """Return the lock on an object of a database; `database_oid` is 0 for objects of the
    cluster.
    """
    return ObjectLock(f"{database_oid}/{oid}", mode)


def locks_held(
    connection: Connection, xids: Iterable[int]
) -> dict[str, list[tuple[int, LockMode]]]:
    """Return the locks of these transactions, by the lock's name: pairs of transaction and mode."""
    table = state_schema.object_lock
    result: dict[str, list[tuple[int, LockMode]]] = {}
    query = select(table).where(table.c.xid.in_(sorted(xids)))
    for row in connection.execute(query):
        result.setdefault(row.name, []).append((int(row.xid), LockMode(row.mode)))
    return result


def hold_locks(connection: Connection, xid: int, locks: Iterable[ObjectLock]) -> None:
    """Record locks that a transaction block holds until its end."""
    rows = [{"xid": xid, "name": lock.name, "mode": int(lock.mode)} for lock in locks]
    if rows:
        connection.execute(insert(state_schema.object_lock), rows)


def release_locks(connection: Connection, xids: Iterable[int]) -> None:
    """Release the locks of transactions that have ended."""
    table = state_schema.object_lock
    connection.execute(delete(table).where(table.c.xid.in_(sorted(xids))))


# ---------------------------------------------------------------------------------------------
# Waiting


def note_wait(connection: Connection, xid: int, holders: Iterable[int]) -> None:
    """Record that a transaction block waits for the blocks in `holders`."""
    rows = [{"xid": xid, "holder": holder} for holder in holders]
    if rows:
        connection.execute(insert(state_schema.lock_wait), rows)


def end_wait(connection: Connection, xid: int) -> None:
    """Remove the wait entries of the transaction."""
    connection.execute(delete(state_schema.lock_wait).where(state_schema.lock_wait.c.xid == xid))


def waiting_cycle(connection: Connection, xid: int) -> list[int]:
    """Return the transaction blocks of a cycle in which each waits for the next, starting with
    `xid`; [] if there is no cycle.
    """
    waits: dict[int, list[int]] = {}
    for row in connection.execute(select(state_schema.lock_wait)):
        waits.setdefault(int(row.xid), []).append(int(row.holder))
    paths = [[xid]]
    seen = {xid}
    while paths:
        path = paths.pop()
        for holder in waits.get(path[-1], ()):
            if holder == xid:
                return path
            if holder not in seen:
                seen.add(holder)
                paths.append([*path, holder])
    return []


class OpenBlock(NamedTuple):
    """A transaction block in progress, or a single transaction: its number, database and
    process.
    """

    xid: int
    database_oid: int
    backend: str

    @property
    def pid(self) -> int:
        """Return the process ID of a live process."""
        return int(self.backend.partition("-")[0])


def open_blocks(connection: Connection, xids: Iterable[int]) -> dict[int, OpenBlock]:
    """Return the transactions of `xids` that are in progress, each with its transaction block."""
    xact = state_schema.pg_xact
    query = select(xact).where(xact.c.xid.in_(sorted(xids)), is_in_progress(xact))
    return {
        int(row.xid): OpenBlock(int(row.block_xid or row.xid), int(row.dbid), str(row.backend))
        for row in connection.execute(query)
    }
