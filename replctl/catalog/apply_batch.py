"""Batches of changes that subscriptions have begun to write, as those see them who want to write
the same tables."""

from __future__ import annotations

from collections.abc import Collection

from replctl.catalog.pg_subscription import ApplyBatch, list_apply_batches
from replctl.catalog.transaction import Catalog
from replctl.errors import UnfinishedBatch


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
