"""Record the batches of changes that subscriptions have begun to write.  Other writers check these
records before they write the same tables.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import delete, insert, select

from replctl.catalog import state_schema
from replctl.catalog.apply_step import WriteStep
from replctl.catalog.transaction import Catalog
from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class ApplyBatch:
    """A batch of changes that an apply worker has begun to write.

    Attributes:
        from_lsn, to_lsn: the batch has the changes that were committed in (from_lsn, to_lsn].
        writes: the written tables of each stage by OID: the version before, and the step.  A stage
            that is not begun has none.  Only batches whose published tables share targets have
            several stages.
        relid: the table whose synchronization writes the batch; 0 for the subscription's apply.
        to_digest: the digest of the publisher's commit at `to_lsn`; None if it is unknown.
    """

    subscription_oid: int
    from_lsn: int
    to_lsn: int
    xid: int
    writes: tuple[dict[int, WriteStep], ...]
    relid: int = 0
    to_digest: str | None = None

    @property
    def targets(self) -> dict[int, WriteStep]:
        """Return the first write into each table, by OID."""
        found: dict[int, WriteStep] = {}
        for targets in reversed(self.writes):
            found |= targets
        return found

    @property
    def begun(self) -> int:
        """Return the number of stages up to the last one that is begun."""
        numbers = (number for number, targets in enumerate(self.writes, start=1) if targets)
        return max(numbers, default=0)

    def with_writes(self, stage: int, targets: Mapping[int, WriteStep]) -> ApplyBatch:
        """Return the batch with more writes in a stage, which is numbered from 0."""
        writes = list(self.writes)
        writes[stage] = {**writes[stage], **targets}
        return replace(self, writes=tuple(writes))

    def without(self, relids: Collection[int]) -> ApplyBatch:
        """Return the batch without the writes into some tables."""
        kept = (
            {oid: w for oid, w in targets.items() if oid not in relids} for targets in self.writes
        )
        return replace(self, writes=tuple(kept))


def get_apply_batch(catalog: Catalog, subscription_oid: int, relid: int = 0) -> ApplyBatch | None:
    """Return the unfinished batch of a subscription's apply, or of the synchronization of one
    table; None if there is none.
    """
    table = state_schema.apply_batch
    query = select(table).where(table.c.subid == subscription_oid, table.c.relid == relid)
    row = catalog.connection.execute(query).first()
    return None if row is None else _batch(row)


def list_apply_batches(catalog: Catalog, subscription_oid: int | None = None) -> list[ApplyBatch]:
    """Return the unfinished batches of all subscriptions, or of one."""
    table = state_schema.apply_batch
    query = select(table)
    if subscription_oid is not None:
        query = query.where(table.c.subid == subscription_oid)
    return [_batch(row) for row in catalog.connection.execute(query)]


def insert_apply_batch(catalog: Catalog, batch: ApplyBatch) -> None:
    """Record a batch before the worker writes it."""
    catalog.connection.execute(
        insert(state_schema.apply_batch).values(
            subid=batch.subscription_oid,
            relid=batch.relid,
            from_lsn=batch.from_lsn,
            to_lsn=batch.to_lsn,
            to_digest=batch.to_digest,
            xid=batch.xid,
            targets=json.dumps(batch.writes[0] if len(batch.writes) == 1 else batch.writes),
        )
    )


def delete_apply_batch(catalog: Catalog, subscription_oid: int, relid: int = 0) -> None:
    """Remove the record of a batch after its end."""
    table = state_schema.apply_batch
    catalog.connection.execute(
        delete(table).where(table.c.subid == subscription_oid, table.c.relid == relid)
    )


def _batch(row: Any) -> ApplyBatch:
    stored = json.loads(row.targets)
    return ApplyBatch(
        int(row.subid),
        int(row.from_lsn),
        int(row.to_lsn),
        int(row.xid),
        tuple(map(load_targets, stored if isinstance(stored, list) else [stored])),
        int(row.relid),
        row.to_digest,
    )


def load_targets(stored: dict[str, Any]) -> dict[int, WriteStep]:
    """Return the targets of a batch or a copy, by OID.

    Args:
        stored: the targets as read from JSON, with texts as keys.
    """
    return {int(relid): WriteStep(*step) for relid, step in stored.items()}
