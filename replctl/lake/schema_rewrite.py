"""Remove dropped columns from Delta tables, and rename renamed columns, before the next write.  So
other programs no longer read dropped columns, or columns under their former names.

A commit of a separate transaction rewrites the table without the dropped columns, and with the
other columns under their new names.  With column mapping, commits of metadata do the same
(metadata_change.py).  replctl does not decode these commits.  The mark of each commit says which
columns it changes.  The catalog records these changes together with the version, so that a crash is
harmless.  replctl decodes each earlier version under its own schema: it compares the rows before
and after that version.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from replctl import spark
from replctl.catalog.pg_class import Relation
from replctl.catalog.storage import wants_metadata_changes
from replctl.catalog.unfinished_write import unfinished_writes
from replctl.errors import SerializationFailure
from replctl.injection_point import injection_point
from replctl.lake.delta_log import columns_of
from replctl.lake.file_layout import CLUSTERED, current_layout
from replctl.lake.metadata_change import change_columns
from replctl.lake.small_rewrite import rewrite_schema
from replctl.lake.storage_place import differing_names, own_names
from replctl.lake.table_metadata import MAPPING, MAPPING_MODE, ROW_TRACKING, WIDENING
from replctl.lake.table_state import TableState, table_state
from replctl.lake.table_write import TableWriter, writing
from replctl.lake.undo import storage_of
from replctl.lake.waiting import when_free
from replctl.record import dataclass
from replctl.session import Session
from replctl.spark import FileLayout

#: Features of tables that a rewrite of all rows preserves.  A change of metadata preserves two
#: more.
_FEATURES = frozenset(
    (
        "appendOnly",
        "changeDataFeed",
        CLUSTERED,
        "deletionVectors",
        "domainMetadata",
        "inCommitTimestamp",
        "invariants",
        "rowTracking",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
    )
)
#: Notes about a column, in the table's schema, that are not rules.
_NO_RULES = ("delta.columnMapping.", "delta.typeChanges")


@dataclass(frozen=True, slots=True)
class SchemaRewrite:
    """The columns of a Delta table after a rewrite.

    Attributes:
        removed: the names of the columns to remove.
        renamed: the columns to rename: their numbers in storage, and their old and new names.
        columns: the columns that stay, in their order: their names before and after.
        is_metadata: only metadata changes, and no row is written.
        layout: the layout of the table's files before the rewrite.
    """

    removed: tuple[str, ...]
    renamed: tuple[tuple[int, str, str], ...]
    columns: tuple[tuple[str, str], ...]
    is_metadata: bool
    layout: FileLayout

    @property
    def new_layout(self) -> FileLayout:
        """Return the layout with the new names."""
        names = dict(self.columns)
        return FileLayout(
            tuple(names.get(name, name) for name in self.layout.partitions),
            tuple((names.get(name, name), *path) for name, *path in self.layout.clusters),
        )


def rewrite_schemas(session: Session, relations: Collection[Relation]) -> bool:
    """Remove from Delta tables the columns that DDL has dropped, and rename the columns that it has
    renamed, before the tables are written.

    There are three exceptions:

    - In a transaction block, COMMIT changes the columns, because the block may still roll back.
    - If a subscription has an unfinished copy or batch for a table, the next write after it changes
      the columns.
    - If another program has given the table rules, the columns stay, because rules may need them.

    Returns:
        True if columns were renamed.  Then the caller must read the names again.

    Raises:
        PostgresError: a table cannot be written.
    """
    if session.block is not None:
        return False
    found = [relation for relation in relations if _rewrite_of(relation) is not None]
    if not found:
        return False
    with session.read() as catalog:
        begun = {relid for _oid, targets in unfinished_writes(catalog) for relid in targets}
    has_renamed = False
    for relation in found:
        if relation.oid in begun:
            continue
        try:
            has_renamed |= _rewrite(session, relation)
        except SerializationFailure:  # others are writing the table: the next write retries this
            has_renamed = True  # perhaps
    return has_renamed


def rewrite_when_free(session: Session, relations: Collection[Relation]) -> None:
    """Do what `rewrite_schemas` does, after the transaction blocks that write the tables.

    Raises:
        PostgresError: see `rewrite_schemas` and `when_free`.
    """
    when_free(session, lambda: rewrite_schemas(session, relations))


def _rewrite_of(relation: Relation) -> SchemaRewrite | None:
    """Return the rewrite that a Delta table needs; None if it needs none or cannot be rewritten."""
    storage = relation.storage
    if storage is None or not storage.is_made or storage.is_adopted or storage.is_read_only:
        return None
    leftovers = (*storage.unused, *storage.reserved)
    if not leftovers and not differing_names(relation):
        return None
    state = table_state(storage.location)
    fields = columns_of(state.metadata, storage.location, state.version)
    is_metadata = wants_metadata_changes(relation.options)
    if not _may_be_changed(state, fields, is_metadata=is_metadata):
        return None
    present = {str(field["name"]): None for field in fields}
    removed = [name for name in leftovers if name in present]
    layout = current_layout(state, storage.location)
    if not {*layout.partitions, *(path[0] for path in layout.clusters)}.isdisjoint(removed):
        return None  # another program partitions or clusters the table by a dropped column
    own = {
        column.attnum: stored.name
        for column in relation.columns
        if (stored := storage.columns[column.attnum]).name in present
    }
    others = [name for name in present if name not in {*removed, *own.values(), spark.NO_COLUMN}]
    names = own_names(relation, others)
    renamed = tuple(
        (storage.columns[attnum].number, name, names[attnum])
        for attnum, name in own.items()
        if names[attnum] != name
    )
    if not removed and not renamed:
        return None
    columns = [(name, names[attnum]) for attnum, name in own.items()]
    columns += [(name, name) for name in others]
    is_metadata &= bool(columns)  # Delta has no table without columns
    return SchemaRewrite(tuple(removed), renamed, tuple(columns), is_metadata, layout)


def _may_be_changed(
    state: TableState, fields: Sequence[Mapping[str, Any]], *, is_metadata: bool
) -> bool:
    """Return whether a change of columns preserves all features and rules of a table."""
    properties = state.properties
    features = {
        *state.protocol.get("writerFeatures", ()),
        *state.protocol.get("readerFeatures", ()),
    }
    mapping = properties.get(MAPPING_MODE, "none")
    if is_metadata:
        is_possible = mapping in ("none", "name")
        features -= {MAPPING, WIDENING}
    else:
        # row ids give the order of rows
        has_row_ids = state.is_on(ROW_TRACKING)
        is_possible = mapping == "none" and has_row_ids and not state.is_on("delta.appendOnly")
    return (
        is_possible
        and features <= _FEATURES
        and not any(name.startswith("delta.constraints.") for name in properties)
        and not any(map(_has_rule, fields))
    )


def _has_rule(field: Mapping[str, Any]) -> bool:
    """Return whether another program gave a column a rule: NOT NULL, a default or an expression."""
    notes = [note for note in field.get("metadata", ()) if not note.startswith(_NO_RULES)]
    return not field.get("nullable", True) or any(
        note.startswith(("delta.", "CURRENT_DEFAULT")) for note in notes
    )


def _rewrite(session: Session, relation: Relation) -> bool:
    """Rewrite a table if it needs a rewrite, and return whether columns were renamed."""
    has_renamed = is_done = False
    while not is_done:
        with writing(session, [relation], is_whole=False) as writer:
            current = writer.relations.get(relation.oid)
            rewrite = None if current is None else _rewrite_of(current)
            if current is None or current.storage is None or rewrite is None:
                return has_renamed
            if rewrite.is_metadata:
                order = [before for before, _after in rewrite.columns]
                steps = (rewrite.removed, rewrite.renamed, order)
                is_done = change_columns(writer, relation.oid, *steps)
            else:
                _write_rows(writer, relation.oid, rewrite)
                is_done = True
            injection_point("columns.after-rewrite")
        has_renamed |= bool(rewrite.renamed)
    return has_renamed


def _write_rows(writer: TableWriter, relid: int, rewrite: SchemaRewrite) -> None:
    """Write all rows of a table again, with the new columns."""
    location = storage_of(writer.relations[relid]).location
    renames = [(number, new) for number, _old, new in rewrite.renamed]
    layout = rewrite.new_layout
    with writer.commit_to(relid, silent=True, removes=rewrite.removed, renames=renames) as note:
        rewrite_schema(writer.session, location, rewrite.columns, rewrite.removed, note, layout)
    if layout.clusters:  # Delta does not cluster the table that replaces another one
        injection_point("clustering.before-commit")
        with writer.commit_to(relid, silent=True) as note:
            spark.jobs.cluster(writer.session.engine(), location, layout.clusters, note)
