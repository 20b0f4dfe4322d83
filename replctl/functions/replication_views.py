"""The rows of the system views of publications, subscriptions, slots and origins."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import select

from replctl.catalog import schema, state_schema
from replctl.catalog.pg_authid import READ_ALL_STATS
from replctl.catalog.pg_class import load_relations
from replctl.catalog.pg_publication import Memberships, list_publications
from replctl.catalog.pg_replication_slots import ReplicationSlot, list_slots, origin_status
from replctl.catalog.pg_subscription import list_subscriptions
from replctl.catalog.ruleutils import get_expr
from replctl.catalog.vacuum_horizon import oldest_xid_behind
from replctl.catalog.wal_availability import WalLimits, wal_availability
from replctl.catalog.worker import APPLY, last_replies, live_walsenders, live_workers
from replctl.functions.function_context import FunctionContext
from replctl.functions.view_rows import Row, RowsOf, array_text, stored_rows


def _pg_publication_tables(context: FunctionContext) -> Iterator[Row]:
    publications = list_publications(context.catalog)
    memberships = Memberships(context.catalog, publications)
    for publication in publications:
        members = load_relations(context.catalog, memberships.members(publication))
        for relation in members.values():
            table = memberships.membership(publication, relation)
            listed = None if table is None else table.columns
            row_filter = None if table is None else table.row_filter
            names: list[Any] = [
                column.name
                for column in relation.columns
                if not column.generated and (listed is None or column.attnum in listed)
            ]
            yield {
                "pubname": publication.name,
                "schemaname": relation.schema,
                "tablename": relation.name,
                "attnames": array_text(names, "_name") if names else None,
                "rowfilter": None
                if row_filter is None
                else get_expr(context.environment, relation, row_filter),
            }


def _pg_subscription(context: FunctionContext) -> Iterator[Row]:
    for row in stored_rows(context, "pg_subscription"):
        yield {**row, "subpublications": array_text(json.loads(row["subpublications"]))}


def _own_subscriptions(context: FunctionContext) -> dict[int, str]:
    """Return the names of the current database's subscriptions by OID.

    Statistics show only these subscriptions.  PostgreSQL shows those of the whole cluster.  But
    databases that replicate to each other are usually in separate clusters there, and in one
    cluster here.
    """
    return {
        subscription.oid: subscription.name for subscription in list_subscriptions(context.catalog)
    }


def _pg_subscription_rel(context: FunctionContext) -> Iterator[Row]:
    table = state_schema.pg_subscription_rel
    own = _own_subscriptions(context)
    for row in context.catalog.connection.execute(select(table)):
        if row.srsubid in own:
            yield dict(row._mapping)


def _pg_stat_subscription(context: FunctionContext) -> Iterator[Row]:
    workers = live_workers(context.cluster, context.catalog.connection)
    for oid, name in _own_subscriptions(context).items():
        found = [worker for worker in workers if worker.subscription_oid == oid]
        if not found:
            yield {"subid": oid, "subname": name}
        for worker in found:
            is_apply = worker.relid == APPLY
            yield {
                "subid": oid,
                "subname": name,
                "worker_type": "apply" if is_apply else "table synchronization",
                "pid": worker.pid,
                "relid": None if is_apply else worker.relid,
                "received_lsn": worker.received_lsn,
                "last_msg_send_time": worker.last_msg_time,
                "last_msg_receipt_time": worker.last_msg_time,
                "latest_end_lsn": worker.received_lsn,
                "latest_end_time": worker.last_msg_time,
            }


def _pg_stat_replication(context: FunctionContext) -> Iterator[Row]:
    """Yield walsenders; show only few columns to roles without pg_read_all_stats
    (pg_stat_get_wal_senders).
    """
    connection, privileges = context.catalog.connection, context.environment.privileges
    reads_all = privileges.acts_for(READ_ALL_STATS)
    walsenders = live_walsenders(context.cluster, connection)
    for slot in list_slots(connection):
        walsender = walsenders.get(slot.name)
        if walsender is None:
            continue
        lsn = slot.confirmed_flush_lsn
        row: Row = {
            "pid": walsender.pid, "usesysid": walsender.role_oid,
            "usename": context.environment.role_name(walsender.role_oid),
            "application_name": walsender.application_name,
        }  # fmt: skip
        if reads_all or privileges.acts_for(walsender.role_oid):
            row["backend_start"] = walsender.backend_start
        if reads_all:
            row |= {
                "state": walsender.state, "sent_lsn": lsn, "write_lsn": lsn, "flush_lsn": lsn,
                "replay_lsn": lsn, "sync_priority": 0, "sync_state": "async",
                "reply_time": walsender.reply_time,
            }  # fmt: skip
        yield row


def _pg_stat_subscription_stats(context: FunctionContext) -> Iterator[Row]:
    table = state_schema.pg_stat_subscription_stats
    counts = {int(row.subid): row for row in context.catalog.connection.execute(select(table))}
    for oid, name in _own_subscriptions(context).items():
        row = counts.get(oid)
        yield {
            "subid": oid,
            "subname": name,
            "apply_error_count": 0 if row is None else row.apply_error_count,
            "sync_error_count": 0 if row is None else row.sync_error_count,
            "stats_reset": None if row is None else row.stats_reset,
        }


def _pg_stat_subscription_conflicts(context: FunctionContext) -> Iterator[Row]:
    """Yield the counts of conflicts that PostgreSQL 18 has added to pg_stat_subscription_stats."""
    table = state_schema.pg_stat_subscription_stats
    counts = {int(row.subid): row for row in context.catalog.connection.execute(select(table))}
    kinds = [column.name for column in table.c if column.name.startswith("confl_")]
    for oid, name in _own_subscriptions(context).items():
        row = counts.get(oid)
        counted = {kind: 0 if row is None else getattr(row, kind) for kind in kinds}
        reset = None if row is None else row.stats_reset
        yield {"subid": oid, "subname": name, **counted, "stats_reset": reset}


#: Columns that are NULL for physical slots.
_NO_DATABASE = dict.fromkeys(
    ("plugin", "datoid", "catalog_xmin", "confirmed_flush_lsn", "conflicting")
)


def _pg_replication_slots(context: FunctionContext) -> Iterator[Row]:
    table = schema.pg_database
    names = {int(row.oid): row.datname for row in context.catalog.select(table)}
    connection = context.catalog.connection
    limits = WalLimits.of(context.session.setting)
    walsenders = live_walsenders(context.cluster, connection)
    replies = last_replies(connection)
    for slot in list_slots(connection):
        wal = wal_availability(connection, slot, limits)
        walsender = walsenders.get(slot.name)
        yield {
            "slot_name": slot.name, "plugin": slot.plugin, "slot_type": slot.type,
            "datoid": slot.database_oid, "database": names.get(slot.database_oid),
            "temporary": int(slot.temporary),
            "active": int(slot.temporary or walsender is not None),
            "active_pid": slot.owner_pid if walsender is None else walsender.pid,
            "catalog_xmin": oldest_xid_behind(connection, slot.confirmed_flush_lsn),
            "restart_lsn": slot.restart_lsn or None,
            "confirmed_flush_lsn": slot.confirmed_flush_lsn, "wal_status": wal.status,
            "safe_wal_size": wal.safe_size, "two_phase": int(slot.two_phase),
            "inactive_since": None if walsender else _inactive_since(slot, replies),
            "conflicting": 0,
            "invalidation_reason": slot.invalidation_reason, "failover": int(slot.failover),
            "synced": int(slot.synced),
            **({} if slot.is_logical else _NO_DATABASE),
        }  # fmt: skip


def _inactive_since(slot: ReplicationSlot, replies: Mapping[str, int]) -> int | None:
    known = [time for time in (slot.inactive_since, replies.get(slot.name)) if time is not None]
    return max(known, default=None)


def _pg_stat_replication_slots(context: FunctionContext) -> Iterator[Row]:
    connection = context.catalog.connection
    table = state_schema.pg_stat_replication_slots
    counts = {row.slot_name: dict(row._mapping) for row in connection.execute(select(table))}
    for slot in list_slots(connection):
        if slot.is_logical:
            nothing = {"slot_name": slot.name, "total_txns": 0, "total_bytes": 0}
            yield counts.get(slot.name, nothing)


def _pg_replication_origin(context: FunctionContext) -> Iterator[Row]:
    table = state_schema.pg_replication_origin
    for row in context.catalog.connection.execute(select(table)):
        yield dict(row._mapping)


def _pg_replication_origin_status(context: FunctionContext) -> Iterator[Row]:
    for oid, name, remote_lsn, local_lsn in origin_status(context.catalog.connection):
        yield {
            "local_id": oid,
            "external_id": name,
            "remote_lsn": remote_lsn,
            "local_lsn": local_lsn,
        }


#: The functions that yield the rows of each view.
REPLICATION_VIEWS: dict[str, RowsOf] = {
    "pg_publication_tables": _pg_publication_tables,
    "pg_subscription": _pg_subscription,
    "pg_subscription_rel": _pg_subscription_rel,
    "pg_stat_subscription": _pg_stat_subscription,
    "pg_stat_subscription_stats": _pg_stat_subscription_stats,
    "pg_stat_subscription_conflicts": _pg_stat_subscription_conflicts,
    "pg_replication_slots": _pg_replication_slots,
    "pg_stat_replication_slots": _pg_stat_replication_slots,
    "pg_replication_origin": _pg_replication_origin,
    "pg_replication_origin_status": _pg_replication_origin_status,
    "pg_stat_replication": _pg_stat_replication,
}
