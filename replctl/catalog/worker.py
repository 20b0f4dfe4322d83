"""Record active processes: the apply and table synchronization workers of subscriptions, and the
walsenders that read their slots (pg_stat_subscription, pg_stat_replication; launcher.c,
walsender.c).

A row belongs to a process, and is valid while the process lives.  A process that *holds* its
subscription or slot excludes others.  A process that is only *attached* is idle, and any other
process may take the row over.
"""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, insert, select, update

from replctl.catalog import state_schema
from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_replication_slots import note_inactive
from replctl.errors import ConfigurationLimitExceeded, ObjectInUse, TooManyConnections
from replctl.record import dataclass

#: The `relid` in an apply worker's row.
APPLY = 0
#: The minimum of microseconds between two equal reports of a worker (wal_receiver_status_interval).
_STATUS_INTERVAL = 10_000_000


@dataclass(frozen=True, slots=True)
class Worker:
    """A live worker.

    Attributes:
        relid: the table that the worker synchronizes; APPLY for an apply worker.
        received_lsn: the worker's position in the publisher's log; None if it is unknown.
        last_msg_time: the time of the publisher's last message, in microseconds since 1970.
    """

    subscription_oid: int
    relid: int
    pid: int
    received_lsn: int | None
    last_msg_time: int


@dataclass(frozen=True, slots=True)
class Walsender:
    """The reader of a slot.

    Attributes:
        client: the name of the subscription (`client_name`), or the directory of the standby.
        role_oid: the role of the reader's connection.
        state: catchup, or streaming after the reader has reached the end of the log.
        backend_start, reply_time: microseconds since 1970.
    """

    slot_name: str
    client: str
    application_name: str
    role_oid: int
    pid: int = 0
    state: str = "catchup"
    backend_start: int = 0
    reply_time: int = 0


def client_name(system_identifier: int, subscription_oid: int) -> str:
    """Return the name by which a publisher identifies a subscription of a cluster."""
    return f"{system_identifier}/{subscription_oid}"


# -- workers


def claim_worker(
    cluster: Cluster, subscription_oid: int, slot_name: str, relid: int = APPLY, *, maximum: int
) -> bool:
    """Make this process the worker of a subscription, and hold the subscription.  Return False if
    this process already was its worker.

    Args:
        maximum: the maximum number of processes for subscriptions
            (max_logical_replication_workers).

    Raises:
        ObjectInUse: another process holds the subscription (55006, PostgreSQL's error for its
            slot).
        ConfigurationLimitExceeded: the limit of workers is reached (53400).
    """
    table = state_schema.logical_worker
    key = and_(table.c.subid == subscription_oid, table.c.relid == relid)
    row = {"subid": subscription_oid, "relid": relid}
    if _others_at_work(cluster, table) >= maximum:
        raise ConfigurationLimitExceeded(
            "out of logical replication worker slots",
            hint='You might need to increase "max_logical_replication_workers".',
        )
    return _claim(
        cluster, table, key, row, {"received_lsn": None, "last_msg_time": _now()}, slot_name
    )


def release_worker(
    cluster: Cluster, subscription_oid: int, relid: int = APPLY, *, stays: bool
) -> None:
    """Release the subscription or table that this process holds.  Stay attached if `stays`."""
    table = state_schema.logical_worker
    key = (table.c.subid == subscription_oid, table.c.relid == relid)
    with cluster.begin(write=True) as connection:
        _release(cluster, connection, table, *key, stays=stays)


def report_worker(cluster: Cluster, subscription_oid: int, received_lsn: int) -> None:
    """Record the position of this process's apply worker.  Repeat an unchanged position only every
    10 seconds.
    """
    table = state_schema.logical_worker
    mine = and_(
        table.c.subid == subscription_oid,
        table.c.relid == APPLY,
        table.c.backend == cluster.backend,
    )
    now = _now()
    with cluster.begin(write=False) as connection:
        row = connection.execute(select(table).where(mine)).first()
    if row is None or (row.received_lsn == received_lsn and _is_recent(row.last_msg_time, now)):
        return
    with cluster.begin(write=True) as connection:
        values = {"received_lsn": received_lsn, "last_msg_time": now}
        connection.execute(update(table).where(mine).values(values))


def dismiss_workers(cluster: Cluster, subscription_oid: int) -> None:
    """Remove all rows of a subscription's workers, including attached ones."""
    table = state_schema.logical_worker
    with cluster.begin(write=True) as connection:
        connection.execute(delete(table).where(table.c.subid == subscription_oid))


def live_workers(cluster: Cluster, connection: Connection) -> list[Worker]:
    """Return the workers of live processes, each subscription's apply worker first."""
    table = state_schema.logical_worker
    query = select(table).order_by(table.c.subid, table.c.relid)
    return [
        Worker(int(row.subid), int(row.relid), _pid(row), row.received_lsn, int(row.last_msg_time))
        for row in connection.execute(query)
        if cluster.is_alive(row.backend)
    ]


def origin_pid(cluster: Cluster, connection: Connection, origin_name: str) -> int | None:
    """Return the ID of the process that applies changes for an origin (Subscription.origin_name,
    table_origin_name); None if there is none.
    """
    for worker in live_workers(cluster, connection):
        name = f"pg_{worker.subscription_oid}"
        if origin_name == (name if worker.relid == APPLY else f"{name}_{worker.relid}"):
            return worker.pid
    return None


# -- walsenders


def claim_walsender(cluster: Cluster, walsender: Walsender, *, maximum: int) -> None:
    """Make this process the reader of a slot, and hold the slot (ReplicationSlotAcquire).

    Args:
        maximum: the maximum number of processes that read slots (max_wal_senders).

    Raises:
        ObjectInUse: another process holds the slot (55006).
        TooManyConnections: the limit of slot readers is reached (53300).
    """
    table = state_schema.walsender
    if _others_at_work(cluster, table) >= maximum:
        raise TooManyConnections(
            'number of requested standby connections exceeds "max_wal_senders" (currently'
            f" {maximum})"
        )
    now = _now()
    row = {
        "slot_name": walsender.slot_name,
        "client": walsender.client,
        "application_name": walsender.application_name,
        "usesysid": walsender.role_oid,
    }
    first = {"backend_start": now, "state": walsender.state, "reply_time": now}
    key = table.c.slot_name == walsender.slot_name
    _claim(cluster, table, key, row, first, walsender.slot_name)


def report_walsender(cluster: Cluster, slot_name: str) -> None:
    """Record that this process has read a slot to the end of the log.  Repeat the record only every
    10 seconds.
    """
    table = state_schema.walsender
    mine = and_(table.c.slot_name == slot_name, table.c.backend == cluster.backend)
    now = _now()
    with cluster.begin(write=False) as connection:
        row = connection.execute(select(table).where(mine)).first()
    if row is None or (row.state == "streaming" and _is_recent(row.reply_time, now)):
        return
    with cluster.begin(write=True, in_recovery=True) as connection:
        values = {"state": "streaming", "reply_time": now}
        connection.execute(update(table).where(mine).values(values))


def release_walsender(cluster: Cluster, slot_name: str, *, stays: bool) -> None:
    """Release the slot that this process holds, and record the slot as inactive since now.  Stay
    attached if `stays`.
    """
    table = state_schema.walsender
    with cluster.begin(write=True, in_recovery=True) as connection:
        if _release(cluster, connection, table, table.c.slot_name == slot_name, stays=stays):
            note_inactive(connection, slot_name, _now())


def dismiss_walsender(cluster: Cluster, slot_name: str, client: str) -> None:
    """Remove the record of a subscription's process that reads a slot."""
    table = state_schema.walsender
    with cluster.begin(write=True, in_recovery=True) as connection:
        left = connection.execute(
            delete(table).where(table.c.slot_name == slot_name, table.c.client == client)
        )
        if left.rowcount:
            note_inactive(connection, slot_name, _now())


def rename_walsender(
    connection: Connection, client: str, slot_name: str | None, application_name: str
) -> None:
    """Change the name of a slot's reader.  Do nothing if the slot belongs to another cluster: there
    the reader gets its new name at its next run.
    """
    table = state_schema.walsender
    mine = and_(table.c.slot_name == slot_name, table.c.client == client)
    connection.execute(update(table).where(mine).values(application_name=application_name))


def live_walsenders(cluster: Cluster, connection: Connection) -> dict[str, Walsender]:
    """Return the readers of slots whose processes live, by slot name."""
    table = state_schema.walsender
    return {
        str(row.slot_name): Walsender(
            str(row.slot_name),
            str(row.client),
            str(row.application_name),
            int(row.usesysid),
            _pid(row),
            str(row.state),
            int(row.backend_start),
            int(row.reply_time),
        )
        for row in connection.execute(select(table).order_by(table.c.slot_name))
        if cluster.is_alive(row.backend)
    }


def last_replies(connection: Connection) -> dict[str, int]:
    """Return the times of the last replies of readers that hold slots, in microseconds since 1970,
    by slot.  If a reader was killed, its slot is inactive since its last reply.
    """
    table = state_schema.walsender
    rows = connection.execute(select(table.c.slot_name, table.c.reply_time).where(table.c.is_held))
    return {str(row.slot_name): int(row.reply_time) for row in rows}


def held_slots(cluster: Cluster, connection: Connection) -> set[str]:
    """Return the names of the slots that live processes hold."""
    table = state_schema.walsender
    rows = connection.execute(select(table).where(table.c.is_held))
    return {str(row.slot_name) for row in rows if cluster.is_alive(row.backend)}


def end_own_hold(cluster: Cluster, connection: Connection, slot_name: str) -> None:
    """Remove the record that this process holds a slot.  For a caller that does not read the slot:
    the record is from an earlier attempt, which could not write the publisher's catalog at its end.
    """
    table = state_schema.walsender
    key = (table.c.slot_name == slot_name, table.c.is_held)
    _release(cluster, connection, table, *key, stays=False)


def check_inactive(cluster: Cluster, connection: Connection, slot_name: str) -> None:
    """Check that a session, not a subscription's worker, can acquire a slot.

    Raises:
        ObjectInUse: a process reads the slot or is attached to it (55006).
    """
    walsender = live_walsenders(cluster, connection).get(slot_name)
    if walsender is not None:
        raise _in_use(slot_name, walsender.pid)


# -- both


def _others_at_work(cluster: Cluster, table: Table) -> int:
    """Return the number of other live processes that hold rows of a table."""
    query = (
        select(table.c.backend)
        .where(table.c.is_held, table.c.backend != cluster.backend)
        .distinct()
    )
    with cluster.begin(write=False) as connection:
        backends = list(connection.execute(query).scalars())
    return sum(cluster.is_alive(backend) for backend in backends)


def _claim(
    cluster: Cluster,
    table: Table,
    key: ColumnElement[bool],
    values: dict[str, Any],
    first_values: dict[str, Any],
    slot_name: str,
) -> bool:
    """Assign a row to this process.  Return False if the row already belonged to it.

    Args:
        values: the values of columns that are always set.
        first_values: the initial values of further columns, for a new row.
    """
    values = {**values, "backend": cluster.backend, "is_held": True}
    with cluster.begin(write=False) as connection:
        row = connection.execute(select(table).where(key)).first()
    if row is not None and all(row._mapping[name] == value for name, value in values.items()):
        return False
    with cluster.begin(write=True, in_recovery=True) as connection:
        row = connection.execute(select(table).where(key)).first()
        is_own = row is not None and all(
            row._mapping.get(name) == values.get(name) for name in ("backend", "client")
        )
        if row is not None and not is_own and row.is_held and cluster.is_alive(row.backend):
            raise _in_use(slot_name, _pid(row))
        if is_own:
            connection.execute(update(table).where(key).values(values))
        else:
            connection.execute(delete(table).where(key))
            connection.execute(insert(table).values({**values, **first_values}))
    return not is_own


def _release(
    cluster: Cluster, connection: Connection, table: Table, *key: ColumnElement[bool], stays: bool
) -> bool:
    """Release a row, and return whether it belonged to this process."""
    mine = and_(*key, table.c.backend == cluster.backend)
    if stays:
        done = connection.execute(update(table).where(mine).values(is_held=False))
    else:
        done = connection.execute(delete(table).where(mine))
    return bool(done.rowcount)


def _in_use(slot_name: str, pid: int) -> ObjectInUse:
    return ObjectInUse(f'replication slot "{slot_name}" is active for PID {pid}')


def _pid(row: Any) -> int:
    return int(row.backend.partition("-")[0])


def _is_recent(time: int, now: int) -> bool:
    """Return whether a report is still recent.  A time in the future is not recent."""
    return 0 <= now - time < _STATUS_INTERVAL


def _now() -> int:
    return time.time_ns() // 1000
