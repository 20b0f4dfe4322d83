"""Find relations that a transaction drops, or no longer publishes, after it changed their rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from replctl.catalog.pg_wal import LogEntry
from replctl.catalog.transaction import Catalog, definitions_lsn
from replctl.replication.published_relation import PublishedRelation


def formerly_published(
    catalog: Catalog,
    entries: Sequence[LogEntry],
    relids: Collection[int],
    find: Callable[[Catalog, Collection[int]], dict[int, PublishedRelation]],
) -> tuple[dict[int, PublishedRelation], int]:
    """Return the relations that were published when a transaction changed their rows.

    Args:
        entries: entries of the log; those of the transaction come first.
        relids: relations that are not published at the end of the transaction.
        find: returns the published relations among some relations, by OID, at a time.

    Returns:
        the relations by OID, and the LSN of the last entry before the transaction's first change of
        definitions.
    """
    until = definitions_lsn(catalog.connection, entries[0].xid) if relids else None
    if until is None:
        return {}, 0
    changed = {entry.relid for entry in entries if entry.lsn <= until}
    before = catalog.as_of(entries[0].commit_lsn - 1)
    return find(before, changed.intersection(relids)), until
