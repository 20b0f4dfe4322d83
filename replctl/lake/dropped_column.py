"""Remove columns from Delta tables that DDL has dropped, before the next write, so that no other
program reads them or their values.

A commit of a separate transaction writes the table again without these columns.  It is not decoded.
Its mark names the columns, and they are noted when its version is entered, so that a crash is
harmless.  Earlier versions are decoded by comparing rows before and after, under their own schema.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from replctl import spark
from replctl.catalog.apply_batch import list_apply_batches
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_subscription import unfinished_copies
from replctl.catalog.storage import Storage
from replctl.errors import SerializationFailure
from replctl.injection_point import injection_point
from replctl.lake.delta_log import columns_of
from replctl.lake.table_metadata import MAPPING_MODE, ROW_TRACKING
from replctl.lake.table_state import TableState, table_state
from replctl.lake.table_write import writing
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


def remove_dropped_columns(session: Session, relations: Collection[Relation]) -> None:
    """Remove columns that DDL has dropped from Delta tables, before the tables are written.

    Three cases are exceptions:

    - In a transaction block, COMMIT removes them, because the block may still roll its DDL back.
    - If a subscription has written only a part of its changes into a table, the next write after
      that removes them.
    - If another program has given the table rules, the columns stay, because rules may need them.

    Raises:
        PostgresError: a table cannot be written.
    """
    if session.block is not None:
        return
    found = [relation for relation in relations if _dropped(relation.storage)]
    if not found:
        return
    with session.read() as catalog:
        begun = {relid for copy in unfinished_copies(catalog) for relid in copy.targets}
        begun |= {relid for batch in list_apply_batches(catalog) for relid in batch.targets}
    for relation in found:
        if relation.oid in begun:
            continue
        try:
            _remove(session, relation)
        except SerializationFailure:
            continue  # others write the table now: the next write does it


def _dropped(storage: Storage | None) -> list[str]:
    """Return the names of the columns to remove from a Delta table."""
    if storage is None or not storage.unused or not storage.is_made:
        return []
    if storage.is_adopted or storage.is_read_only:
        return []
    state = table_state(storage.location)
    fields = columns_of(state.metadata, storage.location, state.version)
    if not _may_be_rewritten(state, fields):
        return []
    present = {field["name"] for field in fields}
    return [name for name in storage.unused if name in present]


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


def _remove(session: Session, relation: Relation) -> None:
    with writing(session, [relation], is_whole=False) as writer:
        current = writer.relations.get(relation.oid)
        if current is None or current.storage is None:
            return
        names = _dropped(current.storage)
        if not names:
            return
        engine = session.engine()
        with writer.commit_to(relation.oid, silent=True, removes=names) as note:
            spark.jobs.drop_columns(engine, current.storage.location, names, note)
        injection_point("columns.after-removal")
