"""Bring the columns of Delta tables to what DDL has made of them, before the next write, so that no
other program reads dropped columns, or others under their former names.

A commit of a separate transaction writes the table again without the dropped columns, and with the
others under their own names.  It is not decoded.  Its mark says what it changes, and that is noted
when its version is entered, so that a crash is harmless.  Earlier versions are decoded by comparing
rows before and after, under their own schema.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from replctl import spark
from replctl.catalog.apply_batch import list_apply_batches
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_subscription import unfinished_copies
from replctl.errors import SerializationFailure
from replctl.injection_point import injection_point
from replctl.lake.delta_log import columns_of
from replctl.lake.storage_place import NO_COLUMN, differing_names, own_names
from replctl.lake.table_metadata import MAPPING_MODE, ROW_TRACKING
from replctl.lake.table_state import TableState, table_state
from replctl.lake.table_write import writing
from replctl.record import dataclass
from replctl.session import Session

#: What writers of a table may have to know, of which writing all rows again changes nothing.
_FEATURES = frozenset(
    (
        "appendOnly",
        "changeDataFeed",
        "deletionVectors",
        "domainMetadata",
        "inCommitTimestamp",
        "invariants",
        "rowTracking",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    )
)


@dataclass(frozen=True, slots=True)
class SchemaRewrite:
    """The columns of a Delta table after it is written again.

    Attributes:
        removed: names of the columns to remove.
        renamed: the columns that get other names: their numbers in storage, and their new names.
        columns: the columns that stay, in their order: their names before and after.
    """

    removed: tuple[str, ...]
    renamed: tuple[tuple[int, str], ...]
    columns: tuple[tuple[str, str], ...]


def rewrite_schemas(session: Session, relations: Collection[Relation]) -> bool:
    """Remove columns that DDL has dropped from Delta tables, and rename those that DDL has renamed,
    before the tables are written.

    Three cases are exceptions:

    - In a transaction block, COMMIT does it, because the block may still roll its DDL back.
    - If a subscription has written only a part of its changes into a table, the next write after
      that does it.
    - If another program has given the table rules, the columns stay, because rules may need them.

    Returns:
        whether columns have other names now, so that names read before are of no use.

    Raises:
        PostgresError: a table cannot be written.
    """
    if session.block is not None:
        return False
    found = [relation for relation in relations if _rewrite_of(relation) is not None]
    if not found:
        return False
    with session.read() as catalog:
        begun = {relid for copy in unfinished_copies(catalog) for relid in copy.targets}
        begun |= {relid for batch in list_apply_batches(catalog) for relid in batch.targets}
    has_renamed = False
    for relation in found:
        if relation.oid in begun:
            continue
        try:
            has_renamed |= _rewrite(session, relation)
        except SerializationFailure:
            continue  # others write the table now: the next write does it
    return has_renamed


def _rewrite_of(relation: Relation) -> SchemaRewrite | None:
    """Return how to write a Delta table again; None if it can stay as it is."""
    storage = relation.storage
    if storage is None or not storage.is_made or storage.is_adopted or storage.is_read_only:
        return None
    leftovers = (*storage.unused, *storage.reserved)
    if not leftovers and not differing_names(relation):
        return None
    state = table_state(storage.location)
    fields = columns_of(state.metadata, storage.location, state.version)
    if not _may_be_rewritten(state, fields):
        return None
    present = {str(field["name"]): None for field in fields}
    removed = [name for name in leftovers if name in present]
    own = {
        column.attnum: stored.name
        for column in relation.columns
        if (stored := storage.columns[column.attnum]).name in present
    }
    others = [name for name in present if name not in {*removed, *own.values(), NO_COLUMN}]
    names = own_names(relation, others)
    renamed = tuple(
        (storage.columns[attnum].number, names[attnum])
        for attnum, name in own.items()
        if names[attnum] != name
    )
    if not removed and not renamed:
        return None
    columns = [(name, names[attnum]) for attnum, name in own.items()]
    return SchemaRewrite(tuple(removed), renamed, (*columns, *((name, name) for name in others)))


def _may_be_rewritten(state: TableState, fields: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a table has only rules that it keeps when it is written again."""
    properties = state.properties
    features = {
        *state.protocol.get("writerFeatures", ()),
        *state.protocol.get("readerFeatures", ()),
    }
    return (
        features <= _FEATURES
        and state.is_on(ROW_TRACKING)  # it tells the order of rows
        and not state.is_on("delta.appendOnly")
        and properties.get(MAPPING_MODE, "none") == "none"
        and not state.metadata.get("partitionColumns")
        and not any(name.startswith("delta.constraints.") for name in properties)
        and not any(map(_has_rule, fields))
    )


def _has_rule(field: Mapping[str, Any]) -> bool:
    """Return whether a column has a rule of another program: NOT NULL, a default, an expression."""
    notes = field.get("metadata", ())
    return not field.get("nullable", True) or any(
        note.startswith(("delta.", "CURRENT_DEFAULT")) for note in notes
    )


def _rewrite(session: Session, relation: Relation) -> bool:
    """Write a table again, and return whether columns have other names now."""
    with writing(session, [relation], is_whole=False) as writer:
        current = writer.relations.get(relation.oid)
        rewrite = None if current is None else _rewrite_of(current)
        if current is None or current.storage is None or rewrite is None:
            return False
        engine = session.engine()
        with writer.commit_to(
            relation.oid, silent=True, removes=rewrite.removed, renames=rewrite.renamed
        ) as note:
            spark.jobs.rewrite_schema(engine, current.storage.location, rewrite.columns, note)
        injection_point("columns.after-rewrite")
    return bool(rewrite.renamed)
