"""`replctl cluster identify`: say what a directory with a known system identifier is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sqlalchemy import Connection, delete, or_, select, update

from replctl.catalog import schema
from replctl.catalog.cluster import Cluster, new_system_identifier
from replctl.catalog.identity import identifier_at, is_at_home, record_home
from replctl.catalog.pg_replication_slots import delete_slot, list_slots
from replctl.catalog.pg_subscription import list_subscriptions, update_subscription
from replctl.catalog.transaction import Catalog, commit_transaction
from replctl.conninfo import leads_to_own_cluster, parse_conninfo
from replctl.record import dataclass


def identify_moved(cluster: Cluster) -> None:
    """Make the directory of a cluster its home.  If the recorded home still holds the cluster, that
    one is the copy from now on, and is refused."""
    path = cluster.path.resolve()
    with cluster.begin(write=False) as connection:
        home = connection.execute(select(schema.pg_control.c.home)).scalar_one()
    if not is_at_home(home, path) and identifier_at(Path(home)) == cluster.system_identifier:
        former = Cluster.open(home, is_checked=False)
        try:
            with former.begin(write=True, in_recovery=True) as connection:
                record_home(connection, path)
        finally:
            former.close()
    with cluster.begin(write=True, in_recovery=True) as connection:
        record_home(connection, path)


@dataclass(frozen=True, slots=True)
class CopiedCluster:
    """What a copy was made of.

    Attributes:
        system_identifier: its new one.
        slots: the slots that are dropped: subscribers of the original use them there.
        subscriptions: those that are disabled: their publishers are other clusters.
        tables: those with a LOCATION, as (name, location): the copy only reads them.
    """

    system_identifier: int
    slots: list[str]
    subscriptions: list[str]
    tables: list[tuple[str, str]]


def identify_copied(cluster: Cluster) -> CopiedCluster:
    """Make a copy of a cluster a cluster of its own, which leaves alone what belongs to the
    original.

    Raises:
        ReadOnlySqlTransaction: it is the copy of a standby.
    """
    identifier = new_system_identifier()
    with cluster.begin(write=True) as connection:
        tables = _only_read(connection)
        slots = _drop_slots(connection)
        subscriptions = [
            name
            for oid in _database_oids(connection)
            for name in _disable(Catalog(connection, oid, backend=cluster.backend))
        ]
        change = update(schema.pg_control).values(system_identifier=identifier, promoted_to=None)
        connection.execute(change)
        record_home(connection, cluster.path.resolve())
    for path in (cluster.path / "spark").glob("server.json"):  # the original's server
        path.unlink()
    return CopiedCluster(identifier, slots, subscriptions, tables)


def _database_oids(connection: Connection) -> list[int]:
    return [int(row.oid) for row in Catalog(connection, 0).select(schema.pg_database)]


def _only_read(connection: Connection) -> list[tuple[str, str]]:
    """Let nothing be written into tables with a LOCATION, which are the original's, nor undone
    there."""
    table, relation, intent = schema.storage_table, schema.pg_class, schema.intent
    where = or_(table.c.has_location, table.c.is_adopted)
    connection.execute(update(table).where(where).values(is_read_only=True))
    connection.execute(delete(intent).where(intent.c.relid.in_(select(table.c.relid).where(where))))
    query = (
        select(relation.c.relname, table.c.location)
        .join(relation, relation.c.oid == table.c.relid)
        .where(where, relation.c.xmax == 0)
        .order_by(relation.c.relname)
    )
    return [(str(row.relname), str(row.location)) for row in connection.execute(query)]


def _drop_slots(connection: Connection) -> list[str]:
    """Drop the slots that no subscription of the cluster itself uses."""
    kept = {
        subscription.slot_name
        for subscription in list_subscriptions(Catalog(connection, 0), all_databases=True)
        if leads_to_own_cluster(parse_conninfo(subscription.conninfo))
    }
    dropped = []
    for slot in list_slots(connection):
        # Slots of table synchronization are a subscription's as well
        if slot.name not in kept and not (slot.is_logical and slot.name.startswith("pg_")):
            delete_slot(connection, slot.name)
            dropped.append(slot.name)
    return dropped


def _disable(catalog: Catalog) -> list[str]:
    """Disable a database's subscriptions to publishers outside the cluster."""
    outside = [
        subscription
        for subscription in list_subscriptions(catalog)
        if not leads_to_own_cluster(parse_conninfo(subscription.conninfo))
    ]
    for subscription in outside:
        update_subscription(catalog, replace(subscription, enabled=False, slot_name=None))
    if outside:
        commit_transaction(catalog.connection, catalog.xid, changes_catalog=True)
    return [subscription.name for subscription in outside]
