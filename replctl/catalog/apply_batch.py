"""Batches of changes that subscriptions have begun to write: their rows in the catalog, and the
check that other writers make before they write the same tables."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from sqlalchemy import delete, insert, select

from replctl.catalog import state_schema
from replctl.catalog.apply_step import WriteStep
from replctl.catalog.transaction import Catalog
from replctl.errors import UnfinishedBatch
from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class ApplyBatch:
    """The batch that an applier is writing: changes in (from_lsn, to_lsn] into `targets` (by relid:
    version, step).

    `relid` is the table whose synchronization it belongs to, 0 for the subscription's apply.
    `to_digest` is of the publisher's commit at `to_lsn`; None if it is not known.
    """

    subscription_oid: int
    from_lsn: int
    to_lsn: int
    xid: int
    targets: dict[int, WriteStep]
    relid: int = 0
    to_digest: str | None = None


def get_apply_batch(catalog: Catalog, subscription_oid: int, relid: int = 0) -> ApplyBatch | None:
    """Return the batch that a subscription's apply, or the synchronization of one table, has begun
    and not finished."""
    table = state_schema.apply_batch
    query = select(table).where(table.c.subid == subscription_oid, table.c.relid == relid)
    row = catalog.connection.execute(query).first()
    return None if row is None else _batch(row)


def list_apply_batches(catalog: Catalog, subscription_oid: int | None = None) -> list[ApplyBatch]:
    """Return the batches that were begun and not finished: all, or one subscription's."""
    table = state_schema.apply_batch
    query = select(table)
    if subscription_oid is not None:
        query = query.where(table.c.subid == subscription_oid)
    return [_batch(row) for row in catalog.connection.execute(query)]


def insert_apply_batch(catalog: Catalog, batch: ApplyBatch) -> None:
    """Note what is about to be written."""
    catalog.connection.execute(
        insert(state_schema.apply_batch).values(
            subid=batch.subscription_oid,
            relid=batch.relid,
            from_lsn=batch.from_lsn,
            to_lsn=batch.to_lsn,
            to_digest=batch.to_digest,
            xid=batch.xid,
            targets=json.dumps({str(relid): target for relid, target in batch.targets.items()}),
        )
    )


def delete_apply_batch(catalog: Catalog, subscription_oid: int, relid: int = 0) -> None:
    """The batch is written."""
    table = state_schema.apply_batch
    catalog.connection.execute(
        delete(table).where(table.c.subid == subscription_oid, table.c.relid == relid)
    )


def _batch(row: Any) -> ApplyBatch:
    targets = load_targets(json.loads(row.targets))
    return ApplyBatch(
        int(row.subid),
        int(row.from_lsn),
        int(row.to_lsn),
        int(row.xid),
        targets,
        int(row.relid),
        row.to_digest,
    )


def load_targets(stored: dict[str, Any]) -> dict[int, WriteStep]:
    """Return the targets of a batch or a copy, by OID: version before and step.

    Args:
        stored: the same as read from JSON, whose keys are texts.
    """
    return {int(relid): WriteStep(*step) for relid, step in stored.items()}


def batches_writing(catalog: Catalog, relids: Collection[int]) -> list[ApplyBatch]:
    """Return the unfinished batches of all subscriptions that write one of some tables."""
    batches = list_apply_batches(catalog) if relids else []
    return [batch for batch in batches if not batch.targets.keys().isdisjoint(relids)]


def check_finished(catalog: Catalog, relids: Collection[int]) -> None:
    """Check that no batch writes one of some tables, which the caller has locked: who was at work
    at it has failed, or died.

    Raises:
        UnfinishedBatch: one does (55006).
    """
    batches = batches_writing(catalog, relids)
    if batches:
        targets = {relid for batch in batches for relid in batch.targets}
        oids = {batch.subscription_oid for batch in batches}
        raise UnfinishedBatch(oids, targets.intersection(relids))
