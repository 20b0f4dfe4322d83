"""Prepare relations for reading: find the version of each Delta table, and its columns at that
version.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from replctl.catalog.cluster import Cluster
from replctl.catalog.intent import versions_before_blocks
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_control import read_control
from replctl.catalog.pg_inherits import descendants_of
from replctl.catalog.pg_wal import last_committed_version
from replctl.catalog.storage import PARTITION_TIMEZONE, Storage
from replctl.catalog.storage_column import FormerColumn
from replctl.catalog.transaction import Catalog
from replctl.catalog.unfinished_write import unfinished_writes
from replctl.errors import PostgresError
from replctl.lake import commit_log
from replctl.lake.adopt import DeltaColumn, readable_column
from replctl.lake.column_changes import has_renamings, names_around, names_in_log, stored_names
from replctl.lake.column_fault import dropped_columns, retyped_columns
from replctl.lake.delta_log import columns_of
from replctl.lake.file_access import check_readable
from replctl.lake.partition_zone import metadata_of_versions, partition_zones
from replctl.lake.snapshot_version import snapshot_versions
from replctl.lake.table_metadata import WIDENING
from replctl.lake.table_state import has_foreign_rules, table_state
from replctl.lake.widened_column import is_wider
from replctl.session import Session
from replctl.spark import PartitionZone, TableColumn, TableSource, needs_input, storage_type


def table_source(
    relation: Relation, version: int | None = None, changed_in: Collection[int] = ()
) -> TableSource:
    """Return the source for reading a relation at a Delta version.

    Args:
        version: None for the newest version.
        changed_in: versions whose changes will be read.
    """
    storage = relation.storage
    columns = []
    names = {} if storage is None else stored_names(storage, version)
    others = () if storage is None else names_around(storage, changed_in)
    kept = {} if storage is None else _widened_types(storage)
    zones = _zones(relation, version, changed_in)
    if zones and version is None and storage is not None:
        version = table_state(storage.location).version  # its time zones are known
    for column in relation.columns:
        stored = None if storage is None else storage.columns.get(column.attnum)
        name = names.get(column.attnum)
        zone, unzoned = zones.get(column.attnum, (None, frozenset()))
        columns.append(
            TableColumn(
                column.attnum,
                column.type,
                column.typmod,
                name,
                column.missing_value,
                since_version=0 if stored is None else stored.since_version or 0,
                names=tuple((number, known[column.attnum]) for number, known in others),
                zone=zone,
                is_wider=_is_wider(kept.get(name or ""), column.type, column.typmod),
                unzoned=unzoned,
            )
        )
    return TableSource(
        storage.location if storage is not None and storage.is_made else None,
        tuple(columns),
        version,
        has_row_tracking=storage is not None and storage.has_own_row_ids,
        left_out=() if storage is None else storage.left_out,
    )


def _zones(
    relation: Relation, version: int | None, changed_in: Collection[int]
) -> dict[int, tuple[PartitionZone, frozenset[int]]]:
    """Return the zones of partition columns, each with the versions to read in which Spark reads
    the right instant, by attnum.

    Args:
        version, changed_in: see `table_source`.
    """
    storage = relation.storage
    if storage is None or not (storage.is_adopted and storage.is_made):
        return {}
    if not any(column.type == "timestamptz" for column in relation.columns):
        return {}
    read = {*changed_in} | (set() if version is None else {version})
    if not read and PARTITION_TIMEZONE in relation.options:
        read = {table_state(storage.location).version}
    before = {number - 1 for number in changed_in if number > 0}
    known = metadata_of_versions(storage.location, read, before)
    zones = partition_zones(relation, known, partial(stored_names, storage))
    return {n: (zone, frozenset(known.keys() - there)) for n, (zone, there) in zones.items()}


def _widened_types(storage: Storage) -> dict[str, DeltaColumn]:
    """Return the columns of replctl's own Delta table by their names in its newest version, if the
    table has had type widening (metadata_change.py).
    """
    if storage.is_adopted or not has_renamings(storage):
        return {}
    state = table_state(storage.location)
    if WIDENING not in (state.protocol.get("writerFeatures") or ()):
        return {}
    fields = columns_of(state.metadata, storage.location, state.version)
    found = {str(field["name"]): readable_column(field) for field in fields}
    return {name: column for name, column in found.items() if column is not None}


def _is_wider(stored: DeltaColumn | None, type_: str, typmod: int) -> bool:
    """Return whether a table stores a column with a wider type than its own.  A table may store
    equal columns of different types, such as varchar and text.
    """
    if stored is None or storage_type(stored.type, stored.typmod) == storage_type(type_, typmod):
        return False
    return is_wider((type_, typmod), (stored.type, stored.typmod))


def relation_at(relation: Relation, version: int) -> Relation:
    """Return a relation with the types and storage names that its columns had at a version.  They
    may differ from the relation's: a transaction may change rows and then a column's type.
    """
    storage = relation.storage
    if storage is None or not storage.former:
        return relation
    former: dict[int, FormerColumn] = {}
    for column in storage.former:
        current = storage.columns[column.attnum].since_version
        since = column.stored.since_version
        if since is not None and since <= version and (current is None or current > version):
            former[column.attnum] = column
    if not former:
        return relation
    columns = tuple(
        replace(
            column,
            type=former[column.attnum].type,
            typmod=former[column.attnum].typmod,
            domain="",
            user_type="",
        )
        if column.attnum in former
        else column
        for column in relation.columns
    )
    stored = {**storage.columns, **{attnum: c.stored for attnum, c in former.items()}}
    return replace(relation, columns=columns, storage=replace(storage, columns=stored))


def written_source(
    relation: Relation, version: int, renamed_among: Collection[int] = ()
) -> TableSource:
    """Return the source for reading or writing the newest version of a relation's table.  It has
    all columns that the table had in storage at a version, including columns with former types.

    Args:
        renamed_among: versions to read, if others may have renamed or dropped columns since then.
    """
    storage = relation.storage
    assert storage is not None
    stored_columns = [*storage.columns.values(), *(former.stored for former in storage.former)]
    known = names_in_log(storage.location, stored_columns, renamed_among) if renamed_among else ()
    current = [(c.type, c.typmod, storage.columns[c.attnum]) for c in relation.columns]
    former = [(c.type, c.typmod, c.stored) for c in storage.former]
    kept = _widened_types(storage)
    columns = tuple(
        TableColumn(
            stored.number,
            type_,
            typmod,
            known[-1][1][stored.number] if known else stored.name,
            since_version=stored.since_version,
            names=tuple((number, names[stored.number]) for number, names in known),
            is_wider=_is_wider(kept.get(stored.name), type_, typmod),
        )
        for type_, typmod, stored in [*current, *former]
        if stored.since_version is not None
        and stored.since_version <= version
        and not (stored.is_dropped and (stored.renamed_version or 0) <= version)
    )
    own_row_ids = storage.has_own_row_ids
    return TableSource(storage.location, columns, None, own_row_ids, storage.left_out)


def numbered_as(
    root: Relation,
    leaf: Relation,
    version: int | None = None,
    changed_in: Collection[int] = (),
) -> TableSource:
    """Return the source for reading a leaf partition, with the column numbers of `root`.  Columns
    that only the leaf has are left out: another program has added them to its Delta table.

    Args:
        version: the Delta version to read; None for the newest.
        changed_in: see `table_source`.
    """
    source = table_source(leaf, version, changed_in)
    by_name = {column.name: source.column(column.attnum) for column in leaf.columns}
    columns = tuple(
        replace(found, attnum=column.attnum)
        for column in root.columns
        if (found := by_name.get(column.name)) is not None
    )
    own = by_name.keys() - {column.name for column in root.columns}
    names = sorted(name for other in own if (name := by_name[other].storage_name) is not None)
    return replace(source, columns=columns, left_out=(*source.left_out, *names))


def published_source(
    root: Relation,
    leaf: Relation,
    version: int | None = None,
    changed_in: Collection[int] = (),
) -> TableSource:
    """Return the source of `numbered_as` for rows to send.  If other programs write the table, the
    types' input functions read the values."""
    source = numbered_as(root, leaf, version, changed_in)
    if leaf.storage is None or not has_foreign_rules(leaf.storage):
        return source
    names = {column.attnum: column.name for column in root.columns}
    columns = tuple(
        replace(c, input_of=f'column "{names[c.attnum]}" of table "{leaf.qualified_name}"')
        if needs_input(c.type, c.typmod) and c.storage_name is not None
        else c
        for c in source.columns
    )
    return replace(source, columns=columns)


def visible_versions(catalog: Catalog, relids: Collection[int]) -> dict[int, int | None]:
    """Return the versions to read, so that a copy, a batch of changes, or another session's
    transaction is visible completely or not at all.

    The result has only tables of unfinished writes; other tables are read at their newest version.
    On a standby, the result has all tables at the versions of its catalog, because the primary
    continues to write them.
    """
    if read_control(catalog.connection).is_in_recovery:
        return {relid: last_committed_version(catalog, relid) for relid in relids}
    versions = {
        relid: version
        for _oid, targets in unfinished_writes(catalog)
        for relid, (version, _step) in targets.items()
    }
    versions |= versions_before_blocks(catalog)
    return {relid: version for relid, version in versions.items() if relid in relids}


def enter_foreign_versions(
    session: Session, relids: Collection[int] | None = None
) -> dict[int, PostgresError]:
    """Record the commits of other writers to the database's tables.  This lists each table's log
    and does not need Spark.  Do nothing on a standby, whose primary records them, or if the home is
    read-only.

    Args:
        relids: only these tables, all of which must be readable; None for all tables.

    Returns:
        the errors of unreadable tables, by OID.

    Raises:
        PostgresError: a table in `relids` cannot be read (see `commit_log.commits_since`).
    """
    if session.cluster.is_in_recovery or session.cluster.refusal is not None:
        return {}
    with session.cluster.read(session.database_oid) as catalog:
        behind = commit_log.tables_behind(catalog, relids)
    if not behind:
        return {}
    with session.cluster.write(session.database_oid) as catalog:
        relations = load_relations(catalog, behind).values()
        broken = commit_log.enter_readable(catalog, session.cluster, relations)
    if broken and relids is not None:
        raise broken[min(broken)]
    return broken


def relation_sources(
    catalog: Catalog, relation: Relation, *, inherit: bool = True
) -> list[TableSource]:
    """Return the sources that contain a relation's rows, with the relation's column numbers.  These
    are its leaf partitions, or the relation itself and its inheritance children.

    Args:
        inherit: False for ONLY.
    """
    return [source for _oid, source in relation_leaves(catalog, relation, inherit=inherit)]


def queried_source(
    catalog: Catalog, root: Relation, leaf: Relation, version: int | None = None
) -> TableSource:
    """Return the source of `numbered_as` for expressions of users.  If other programs have dropped
    columns or changed their types, reading these columns is an error.
    """
    source = numbered_as(root, leaf, version)
    dropped, retyped = dropped_columns(catalog, leaf), retyped_columns(catalog, leaf, version)
    if not dropped and not retyped:
        return source
    columns = []
    for column in source.columns:
        own = leaf.column(root.column_at(column.attnum).name)
        errors = dropped if column.storage_name is None else retyped
        if own is not None and not column.is_wider:
            column = replace(column, fault=errors.get(own.attnum))
        columns.append(column)
    return replace(source, columns=tuple(columns))


def relation_leaves(
    catalog: Catalog, relation: Relation, *, inherit: bool = True, cluster: Cluster | None = None
) -> list[tuple[int, TableSource]]:
    """Return the sources of `relation_sources`, each with the OID of its own relation.

    Args:
        cluster: the cluster of the catalog, for a query that does not write these tables.  The
            query reads the tables as they were when its snapshot of the catalog began.

    Raises:
        PostgresError: a table cannot be read (see `commit_log.commits_since`).
    """
    if cluster is None:
        return _leaves(catalog, relation, None, inherit=inherit)
    key = (relation_leaves, relation.oid, inherit)  # a query may be written for several engines
    return catalog.cached(key, lambda: _leaves(catalog, relation, cluster, inherit=inherit))


def _leaves(
    catalog: Catalog, relation: Relation, cluster: Cluster | None, *, inherit: bool
) -> list[tuple[int, TableSource]]:
    if relation.is_partitioned and not inherit:
        return []
    oids = descendants_of(catalog, relation.oid) if inherit else [relation.oid]
    tree = load_relations(catalog, oids)
    check_readable(catalog, tree.values())
    versions = visible_versions(catalog, oids)
    newest = commit_log.newest_versions(catalog, tree)
    if cluster is not None:
        versions = snapshot_versions(catalog, cluster, tree, newest) | versions
    leaves = []
    for oid in oids:
        if tree[oid].is_partitioned:
            continue
        source = queried_source(catalog, relation, tree[oid], versions.get(oid))
        if oid in versions and versions[oid] is None:  # the table did not exist before the batch
            source = replace(source, location=None)
        leaves.append((oid, source))
    return leaves
