"""Change the catalog for `replctl cluster identify`: make a directory the home of a moved cluster,
or make a copy a separate cluster.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Connection, delete, func, select, update

from replctl.catalog import schema, state_schema
from replctl.catalog.auto_conf import read_auto_conf, write_auto_conf
from replctl.catalog.cluster import Cluster
from replctl.catalog.cluster_identity import identifier_at, is_at_home, record_home
from replctl.catalog.home_directory import CATALOG
from replctl.catalog.initdb import new_signing_key, new_system_identifier
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.pg_control import check_connectable
from replctl.catalog.pg_replication_slots import delete_slot, list_slots
from replctl.catalog.pg_subscription import Subscription, change_subscription, list_subscriptions
from replctl.catalog.primary import primary_home
from replctl.catalog.state_schema import is_committed, is_in_progress
from replctl.catalog.storage import abandon_storage, keep_versions
from replctl.catalog.table_home import BASE, TableHome, lies_at_home
from replctl.catalog.transaction import Catalog, abort_transaction, commit_transaction
from replctl.conninfo import leads_to_own_cluster, parse_conninfo
from replctl.errors import (
    FeatureNotSupported,
    ObjectInUse,
    ObjectNotInPrerequisiteState,
    PostgresError,
)
from replctl.record import dataclass

_STANDBYS_TO_WAIT_FOR = "synchronized_standby_slots"


def identify_moved(cluster: Cluster) -> PostgresError | None:
    """Make the directory of a cluster its home. If the recorded home still has the cluster, replctl
    regards that directory as the copy, and refuses it from now on.

    Returns:
        a warning if the recorded home cannot be written, and so still is a home of the cluster;
        else None.

    Raises:
        ObjectInUse: programs use the cluster in the recorded home.
    """
    warning = None
    path = cluster.path.resolve()
    home = _recorded_home(cluster)
    if not is_at_home(home, path) and _holds(home, cluster.system_identifier):
        former = open_cluster(home, is_checked=False)
        try:
            _check_not_in_use(former)
            if former.refusal is None:
                with former.begin(write=True, in_recovery=True) as connection:
                    record_home(connection, path)
            else:
                warning = _two_homes(former.refusal, home)
        finally:
            former.close()
    # A replaced primary, too: it stays replaced, and the new primary may have tables in its home
    with cluster.begin(write=True, in_recovery=True, after_promotion=True) as connection:
        record_home(connection, path)
    cluster.notice_promotion()
    return warning


def _two_homes(refusal: PostgresError, home: str) -> ObjectNotInPrerequisiteState:
    return ObjectNotInPrerequisiteState(
        f'directory "{home}" still is a home of the cluster, too',
        detail=f"It cannot be changed: {refusal.message}.",
        hint="Remove it before a program can write it again.",
    )


def _holds(home: str, system_identifier: int) -> bool:
    """Return whether a directory has the cluster; False if its catalog cannot be read."""
    try:
        return identifier_at(Path(home)) == system_identifier
    except ObjectNotInPrerequisiteState:  # the user has said that the cluster is here now
        return False


def _recorded_home(cluster: Cluster) -> str:
    with cluster.begin(write=False) as connection:
        return str(connection.execute(select(state_schema.pg_control.c.home)).scalar_one())


@dataclass(frozen=True, slots=True)
class CopiedCluster:
    """The changes that turned a copy into a separate cluster.

    Attributes:
        system_identifier: the new identifier.
        ended: the number of transactions in progress that were aborted.
        slots: the dropped slots.  Subscribers and standbys use them at the original.
        subscriptions: the disabled subscriptions, whose publishers are other clusters.
        tables: name and location of the tables outside of the home, which the copy may only read.
        settings: the removed settings, which name slots of the original's standbys.
    """

    system_identifier: int
    ended: int
    slots: list[str]
    subscriptions: list[str]
    tables: list[tuple[str, str]]
    settings: list[str]


@dataclass(frozen=True, slots=True)
class HomeTable:
    """A table in the cluster's own home.

    Attributes:
        committed: the newest version that a committed transaction has in the log; None if there is
            none.
    """

    relid: int
    location: str
    committed: int | None


def check_is_copy(cluster: Cluster) -> None:
    """Check that a directory can become a separate cluster.

    Raises:
        FeatureNotSupported: the cluster is a standby, whose tables belong to its primary.
        ObjectInUse: other programs use the cluster.
        ObjectNotInPrerequisiteState: the directory shares files with the original.
        CannotConnectNow: the directory is the home of a primary that a standby has replaced.  The
            standby has tables there (57P03).
    """
    path = cluster.path
    control = cluster.control()
    if control.is_in_recovery:
        raise FeatureNotSupported(
            f'the cluster in "{path}" is a standby, which has no tables of its own',
            hint=f'Copy its primary "{primary_home(cluster)}" instead.',
        )
    _check_not_in_use(cluster)
    home = path.resolve()
    recorded = Path(control.home)
    if is_at_home(control.home, home):
        check_connectable(control)
    for shared in (path / BASE, *path.glob(f"{BASE}/*"), *path.glob(f"{BASE}/*/*")):
        if not shared.resolve().is_relative_to(home):
            raise ObjectNotInPrerequisiteState(
                f'"{shared}" is a link to "{shared.resolve()}", outside of the copy',
                hint='Replace the link with a copy of its target ("cp -rL" makes such copies).',
            )
    if not is_at_home(str(recorded), home) and _is_same_file(recorded / CATALOG, path / CATALOG):
        raise ObjectNotInPrerequisiteState(
            f'"{path / CATALOG}" is the same file as "{recorded / CATALOG}"',
            hint="Copy the cluster without hard links.",
        )


def _check_not_in_use(cluster: Cluster) -> None:
    paths = (cluster.path / "lock").glob("backend-*.lock")
    names = {path.stem.removeprefix("backend-") for path in paths}
    others = [name for name in names if name != cluster.backend and cluster.is_alive(name)]
    if others:
        pids = ", ".join(sorted(name.partition("-")[0] for name in others))
        raise ObjectInUse(
            f'the cluster in "{cluster.path}" is being used by other programs',
            detail=f"Processes that use it: {pids}.",
            hint="Stop these programs first.",
        )


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of the files does not exist
        return False


def home_tables(connection: Connection) -> list[HomeTable]:
    """Return the tables of all databases in the cluster's home, including dropped ones."""
    storage, wal, xact = state_schema.storage_table, state_schema.pg_wal, state_schema.pg_xact
    committed = (
        select(func.max(wal.c.version))
        .join(xact, xact.c.xid == wal.c.xid)
        .where(wal.c.relid == storage.c.relid, is_committed(xact))
        .scalar_subquery()
    )
    query = select(storage.c.relid, storage.c.location, committed.label("version"))
    home = TableHome(connection)
    return [
        HomeTable(int(row.relid), home.located(str(row.location)), row.version)
        for row in connection.execute(query.where(lies_at_home()))
    ]


def make_own(cluster: Cluster, versions: Mapping[int, int]) -> CopiedCluster:
    """Change the catalog of a copy so that it is a separate cluster.

    A new key signs the marks of its commits, so that neither cluster mistakes the other's commits
    for its own.  All changes of the catalog are one transaction.

    Args:
        versions: the newest version of each table in the home; -1 if no version is left.
    """
    identifier = new_system_identifier()
    # A copy that keeps the original's identity must not accept writes after an interruption
    with cluster.begin(write=True, after_promotion=True) as connection:
        ended = _end_transactions(connection, versions)
        tables = _only_read(connection)
        inside, outside = _subscriptions(connection)
        slots = _drop_slots(connection, inside)
        _rename_sync_slots(connection, inside, cluster.system_identifier, identifier)
        _disable(connection, cluster.backend, outside)
        connection.execute(
            update(state_schema.pg_control).values(
                system_identifier=identifier, signing_key=new_signing_key(), promoted_to=None
            )
        )
        record_home(connection, cluster.path.resolve())
    for path in (cluster.path / "spark").glob("server.json"):  # of the original's server
        path.unlink()
    return CopiedCluster(
        identifier,
        ended,
        slots,
        [subscription.name for subscription in outside],
        tables,
        _forget_standbys(cluster),
    )


def _end_transactions(connection: Connection, versions: Mapping[int, int]) -> int:
    """Abort all transactions in progress, including batches and copies of subscriptions, and return
    their number.  The caller has removed their changes from the tables.
    """
    xact = state_schema.pg_xact
    in_progress = list(connection.execute(select(xact.c.xid).where(is_in_progress(xact))).scalars())
    for xid in in_progress:
        abort_transaction(connection, int(xid))
    for relid, version in versions.items():
        keep_versions(connection, relid, version)
    abandon_storage(connection)
    connection.execute(update(state_schema.pg_subscription_rel).values(snapshot=None))
    for state in (
        state_schema.apply_batch,
        state_schema.commit_nonce,
        state_schema.logical_worker,
        state_schema.spark_registration,  # registrations of the original's tables
        state_schema.walsender,
    ):
        connection.execute(delete(state))
    return len(in_progress)


def _only_read(connection: Connection) -> list[tuple[str, str]]:
    """Make the tables outside of the home read-only, and return their names and locations.  These
    tables belong to the original: tables with a LOCATION, and tables that a promoted standby kept
    in its primary's home.
    """
    table, relation = state_schema.storage_table, schema.pg_class
    connection.execute(update(table).where(~lies_at_home()).values(is_read_only=True))
    query = (
        select(relation.c.relname, table.c.location)
        .join(relation, relation.c.oid == table.c.relid)
        .where(table.c.is_read_only, relation.c.xmax == 0)
        .order_by(relation.c.relname)
    )
    return [(str(row.relname), str(row.location)) for row in connection.execute(query)]


def _subscriptions(connection: Connection) -> tuple[list[Subscription], list[Subscription]]:
    """Return two lists: the subscriptions to publishers in the cluster itself, and to other
    publishers.
    """
    inside: list[Subscription] = []
    outside: list[Subscription] = []
    for subscription in list_subscriptions(Catalog(connection, 0), all_databases=True):
        is_inside = leads_to_own_cluster(parse_conninfo(subscription.conninfo))
        (inside if is_inside else outside).append(subscription)
    return inside, outside


def _sync_prefix(subscription: Subscription) -> str:
    return f"{subscription.origin_name}_sync_"


def _drop_slots(connection: Connection, inside: Collection[Subscription]) -> list[str]:
    """Drop the slots that no subscription in `inside` uses, and return their names."""
    kept = {subscription.slot_name for subscription in inside}
    prefixes = tuple(_sync_prefix(subscription) for subscription in inside)
    dropped = []
    for slot in list_slots(connection):
        if slot.name not in kept and not slot.name.startswith(prefixes):
            delete_slot(connection, slot.name)
            dropped.append(slot.name)
    return dropped


def _rename_sync_slots(
    connection: Connection, inside: Collection[Subscription], old: int, new: int
) -> None:
    """Rename the slots of table synchronization, because their names contain the cluster's
    identifier.
    """
    prefixes = tuple(_sync_prefix(subscription) for subscription in inside)
    for slot in list_slots(connection):
        if slot.name.startswith(prefixes) and slot.name.endswith(f"_{old}"):
            name = f"{slot.name.removesuffix(str(old))}{new}"
            for table in (
                state_schema.pg_replication_slots,
                state_schema.pg_stat_replication_slots,
            ):
                change = update(table).where(table.c.slot_name == slot.name)
                connection.execute(change.values(slot_name=name))


def _disable(connection: Connection, backend: str, outside: Collection[Subscription]) -> None:
    """Disable these subscriptions to publishers outside the cluster, and remove the names of their
    slots.
    """
    for oid in {subscription.database_oid for subscription in outside}:
        catalog = Catalog(connection, oid, backend=backend)
        for subscription in outside:
            if subscription.database_oid == oid:
                change_subscription(catalog, subscription.oid, _disabled)
        commit_transaction(connection, catalog.xid, changes_catalog=True)


def _disabled(subscription: Subscription) -> Subscription:
    return replace(subscription, enabled=False, slot_name=None)


def _forget_standbys(cluster: Cluster) -> list[str]:
    """Remove the setting that makes subscribers wait for standbys, because these follow the
    original.  Return the names of the removed settings.
    """
    settings = read_auto_conf(cluster.path)
    if _STANDBYS_TO_WAIT_FOR not in settings:
        return []
    del settings[_STANDBYS_TO_WAIT_FOR]
    write_auto_conf(cluster.path, settings)
    return [_STANDBYS_TO_WAIT_FOR]
