"""Describe the versions of a published table for Spark's decoding jobs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain, groupby, product

from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_wal import CHANGE, TRUNCATE, LogEntry
from replctl.errors import FeatureNotSupported, ObjectNotInPrerequisiteState
from replctl.expr import nodes
from replctl.lake.table_read import published_source, relation_at
from replctl.replication.apply_error import DecodingFailure
from replctl.replication.node import RemoteColumn, RemoteRelation
from replctl.replication.published_relation import PublishedRelation
from replctl.spark import ChangeSource, FeedVersion


def change_source(published: PublishedRelation, versions: Sequence[FeedVersion]) -> ChangeSource:
    """Return the source from which Spark decodes versions of a published table.

    Args:
        versions: oldest first.
    """
    relation, root = published.relation, published.published_as
    key = relation.primary_key or next((i for i in relation.indexes if i.is_replica_identity), None)
    names = tuple(column.name for column in relation.index_columns(key)) if key is not None else ()
    by_name = {column.name: column.attnum for column in root.columns}
    # Both ends of joined versions are read: the version before the first one, and the last one
    ends = dict.fromkeys(n for v in versions for n in (v.before + 1, v.version))
    return ChangeSource(
        relation.qualified_name,
        published_source(root, relation, versions[-1].version, tuple(ends)),
        tuple(versions),
        tuple(by_name[name] for name in names if name in by_name),
        names,
        published.columns,
        published.filters,
    )


def feed_version(entry: LogEntry, position: int) -> FeedVersion:
    """Return the table version that a log entry records."""
    assert entry.version is not None
    return FeedVersion(
        entry.version,
        position,
        bool(entry.detail.get("changes_keys")),
        bool(entry.detail.get("compared")),
    )


def sent_entry(entry: LogEntry, published: PublishedRelation) -> LogEntry:
    """Return a log entry in the form in which it is sent.

    A TRUNCATE of a partition that is published under the name of an ancestor is not sent, as in
    PostgreSQL.  But if another program has emptied the partition, the removal of its rows is sent:
    this program does not know the partitioned table.
    """
    is_foreign = entry.version is not None  # replctl's own TRUNCATE has no version
    if entry.action == TRUNCATE and is_foreign and published.is_part:
        return replace(entry, action=CHANGE)
    return entry


def check_restored_columns(source: ChangeSource, published: Relation) -> None:
    """Check that no version restores a published column that another program had dropped.  Use the
    check for tables without a key: subscribers find their rows by all columns, but old rows
    lack the values that subscribers still have.

    Args:
        published: the relation that subscribers see.

    Raises:
        DecodingFailure: a version does.
    """
    for version, column in product(source.versions, source.source.columns):
        if column.attnum in source.published and column.returns(version.before, version.version):
            name = published.column_at(column.attnum).name
            raise DecodingFailure(
                ObjectNotInPrerequisiteState(
                    f'column "{name}" of table "{source.name}" was dropped and restored by another'
                    " program",
                    detail=f"Version {version.version} of the Delta table"
                    f' "{source.source.location}" restores the column. Rows without a key are'
                    " found by all their columns, and earlier versions lack this one.",
                ),
                published.relation_name,
            )


def pieces_by_type(
    published: PublishedRelation, versions: Sequence[FeedVersion]
) -> list[tuple[PublishedRelation, tuple[FeedVersion, ...]]]:
    """Return successive versions of a table in groups with the same columns and types.  Each group
    comes with the table's definition at that time.
    """
    relation, found = published.relation, []
    for types, group in groupby(versions, key=lambda v: relation_at(relation, v.version).columns):
        own = tuple(group)
        then = relation if types == relation.columns else relation_at(relation, own[0].version)
        found.append((replace(published, relation=then), own))
    return found


def changed_types(relation: Relation, other: Relation) -> set[str]:
    """Return the names of the columns whose types differ between two relations."""
    pairs = zip(relation.columns, other.columns, strict=True)
    return {a.name for a, b in pairs if (a.type, a.typmod) != (b.type, b.typmod)}


def with_texts(remote: RemoteRelation, names: Collection[str]) -> RemoteRelation:
    """Return a relation with these columns sent as text, because their types changed."""
    columns = tuple(
        RemoteColumn(column.name, "text", -1) if column.name in names else column
        for column in remote.columns
    )
    return replace(remote, columns=columns)


def text_source(source: ChangeSource, root: Relation, names: Collection[str]) -> ChangeSource:
    """Return the changes of a table with these columns as text.

    Raises:
        DecodingFailure: a row filter needs one of them.
    """
    attnums = {column.attnum for column in root.columns if column.name in names}
    for row_filter in chain.from_iterable(source.filters.values()):
        used = {node.attnum for node in nodes.walk(row_filter) if isinstance(node, nodes.Var)}
        if used & attnums:
            raise DecodingFailure(
                FeatureNotSupported(
                    f'a row filter of table "{source.name}" uses a column whose type was changed in'
                    " the transaction that has changed the rows"
                )
            )
    columns = tuple(c.as_text() if c.attnum in attnums else c for c in source.source.columns)
    return replace(source, source=replace(source.source, columns=columns))
