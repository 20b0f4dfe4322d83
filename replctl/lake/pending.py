"""Find, in the publisher's log, the changes that a subscription has not applied yet.  This needs
neither decoding nor Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby

from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_wal import BREAK, LogEntry, entries_between
from replctl.errors import FeatureNotSupported, ObjectNotInPrerequisiteState
from replctl.lake.delta_log import read_commit
from replctl.relation_name import RelationName
from replctl.replication.log_range import LogRange
from replctl.replication.node import PendingChanges
from replctl.replication.published_relation import PublicationSet
from replctl.session import Session

#: Assumed number of changes of a commit whose writer recorded no row count.
_MANY = 1_000_000


def pending_changes(session: Session, log: LogRange) -> dict[RelationName, PendingChanges]:
    """Return the pending changes of published relations (Decoding.pending).  Changes of a leaf
    partition count for the relation under whose name it is now published.
    """
    with session.read() as catalog:
        entries = entries_between(catalog, log.from_lsn, log.to_lsn)
        relations = load_relations(catalog, {entry.relid for entry in entries})
        published = _published_names(PublicationSet.of_names(catalog, log.publications), relations)
    groups: dict[RelationName, list[LogEntry]] = defaultdict(list)
    for entry in entries:
        if log.wants(published.get(entry.relid), entry.commit_lsn, entry.origin):
            groups[published[entry.relid]].append(entry)
    return {name: _pending(group, relations) for name, group in groups.items()}


def batch_ends(session: Session, log: LogRange, max_changes: int) -> list[int]:
    """Return the LSNs at which batches end (Decoding.batch_ends).  A commit of unknown size is a
    batch of its own.
    """
    with session.read() as catalog:
        entries = entries_between(catalog, log.from_lsn, log.to_lsn)
        if max_changes == 0 or len({entry.commit_lsn for entry in entries}) < 2:
            return [log.to_lsn]
        then = catalog.as_of(entries[0].commit_lsn)
        relations = load_relations(then, {entry.relid for entry in entries})
        published = _published_names(PublicationSet.of_names(then, log.publications), relations)
    ends: list[int] = []
    size = last = 0
    for lsn, group in groupby(entries, key=lambda entry: entry.commit_lsn):
        rows = sum(
            decoded_rows(entry, relations, max_changes)
            for entry in group
            if log.wants(published.get(entry.relid), lsn, entry.origin)
        )
        if size and size + rows > max_changes:
            ends.append(last)
            size = 0
        size, last = size + rows, lsn
    return [*ends, log.to_lsn]


def decoded_rows(entry: LogEntry, relations: Mapping[int, Relation], unknown: int = _MANY) -> int:
    """Estimate the number of changes that decoding of an entry yields.

    Args:
        unknown: the number to return if the log does not say.
    """
    relation = relations.get(entry.relid)
    if entry.action == BREAK:
        return unknown
    if relation is None or relation.storage is None or entry.version is None:
        return 0
    try:
        rows = read_commit(relation.storage.location, entry.version).decoded_rows
    except ObjectNotInPrerequisiteState:  # decoding the changes reports it
        rows = None
    return unknown if rows is None else rows


def _published_names(
    publication_set: PublicationSet, relations: Mapping[int, Relation]
) -> dict[int, RelationName]:
    names = {}
    for oid, relation in relations.items():
        try:
            published = publication_set.changes_of(relation)
        except FeatureNotSupported:  # sending the changes reports it
            continue
        if published is not None:
            names[oid] = published.published_as.relation_name
    return names


def _pending(entries: Sequence[LogEntry], relations: Mapping[int, Relation]) -> PendingChanges:
    """Summarize the entries of a table from Delta's log; `rows` is None if one has no count."""
    rows: int | None = 0
    size = 0
    for entry in entries:
        if entry.action == BREAK:
            rows = None
            continue
        storage = relations[entry.relid].storage
        if storage is None or entry.version is None:
            continue
        try:
            commit = read_commit(storage.location, entry.version)
        except ObjectNotInPrerequisiteState:  # Delta's log no longer has the version
            rows = None
            continue
        changed = commit.changed_rows
        rows = None if rows is None or changed is None else rows + changed
        size += commit.feed_size
    return PendingChanges(
        len({entry.xid for entry in entries}),
        rows,
        min(entry.commit_time for entry in entries),
        size,
    )
