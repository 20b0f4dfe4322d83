"""Find the tables that subscriptions have begun to write: in batches of changes, and in copies."""

from __future__ import annotations

from collections.abc import Collection

from replctl.catalog.apply_batch import list_apply_batches
from replctl.catalog.apply_step import WriteStep
from replctl.catalog.pg_subscription import unfinished_copies
from replctl.catalog.transaction import Catalog
from replctl.errors import UnfinishedBatch


def unfinished_writes(catalog: Catalog) -> list[tuple[int, dict[int, WriteStep]]]:
    """Return the targets of all unfinished batches and copies, each with its subscription's OID."""
    copies = [(oid, copy.targets) for oid, copy in unfinished_copies(catalog)]
    batches = list_apply_batches(catalog)
    return copies + [(batch.subscription_oid, batch.targets) for batch in batches]


def writers_of(catalog: Catalog, relids: Collection[int]) -> dict[int, set[int]]:
    """Return the subscriptions that have begun to write any of these tables, by OID, each with the
    OIDs of these tables.
    """
    writers: dict[int, set[int]] = {}
    for oid, targets in unfinished_writes(catalog) if relids else ():
        found = targets.keys() & set(relids)
        if found:
            writers.setdefault(oid, set()).update(found)
    return writers


def check_finished(catalog: Catalog, relids: Collection[int]) -> None:
    """Check that no unfinished batch or copy writes any of these tables.  The caller holds the
    tables' locks, so any that is found has failed, or its process has died.

    Raises:
        UnfinishedBatch: a batch or copy writes one of the tables (55006).
    """
    writers = writers_of(catalog, relids)
    if writers:
        raise UnfinishedBatch(writers.keys(), set().union(*writers.values()))
