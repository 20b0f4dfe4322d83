"""Change columns of replctl's own Delta tables without rewriting rows: column mapping drops and
renames columns, and type widening changes types.

replctl does so if the table has the storage parameter `schema_changes = metadata`.  Delta's
protocol, sections "Column Mapping" and "Type Widening".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replctl import spark
from replctl.catalog.pg_class import Column, Relation
from replctl.injection_point import injection_point
from replctl.lake.column_fault import has_type
from replctl.lake.delta_log import latest_version, stored_columns
from replctl.lake.rewrite import check_rewritable
from replctl.lake.small_definition import set_properties
from replctl.lake.table_metadata import MAPPING_MODE, WIDENING
from replctl.lake.table_state import table_state
from replctl.lake.table_write import TableWriter, writing_locked
from replctl.lake.undo import storage_of
from replctl.lake.widened_column import is_wider
from replctl.session import Session
from replctl.spark import storage_type
from replctl.types.numeric import precision_and_scale

#: The properties that turn on each feature.
_MAPPED = {MAPPING_MODE: "name"}
_WIDENED = {"delta.enableTypeWidening": "true"}
#: From reader version 3 on, readers check the features of a table.  With version 2, some readers
#: return NULL for a renamed column.  Delta lowers version 3 to 2 for column mapping alone.  So the
#: table also gets a feature that requires version 3, and that most readers support.
_READER_VERSION = 3
_VERSIONS = {
    "delta.minReaderVersion": str(_READER_VERSION),
    "delta.minWriterVersion": "7",
    "delta.feature.timestampNtz": "supported",
}
#: The integer digits that a DECIMAL needs to contain the values of an integer type
#: (TypeWidening.isTypeChangeSupported).
_NEEDED_DIGITS = {"int2": 10, "int4": 10, "int8": 20}


def has_metadata_features(location: str) -> bool:
    """Return whether a Delta table has had column mapping or type widening.

    Raises:
        UndefinedFile: there is no Delta table (58P01).
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    state = table_state(location)
    features = state.protocol.get("writerFeatures") or ()
    return state.properties.get(MAPPING_MODE, "none") != "none" or WIDENING in features


# ---------------------------------------------------------------------------------------------
# Types


def can_be_widened(relation: Relation, column: Column) -> bool:
    """Return whether Delta can give a column another type without rewriting rows.

    The result is also True if the column of the Delta table already has the new type.

    Args:
        column: the column's new definition.
    """
    storage, old = relation.storage, relation.column_at(column.attnum)
    if storage is None or not storage.is_made or storage.is_adopted:
        return False
    stored = storage.columns[column.attnum]
    is_plain = not (old.domain or old.user_type or column.domain or column.user_type)
    if stored.since_version is None or old.missing_value is not None or not is_plain:
        return False
    types = (old.type, old.typmod), (column.type, column.typmod)
    if not is_wider(*types) or not _is_supported(*types):
        return False
    return has_type(relation, old) or has_type(relation, column)


def _is_supported(old: tuple[str, int], new: tuple[str, int]) -> bool:
    """Return whether `widen_columns` can widen one type to another in a Delta table."""
    if new[0].startswith("_"):  # Delta names the elements: a.element
        return False
    if not storage_type(*new).startswith("DECIMAL"):
        return "STRING" not in (storage_type(*new), storage_type(*old)) and old[0] != "date"
    if old[0] not in _NEEDED_DIGITS:
        return storage_type(*old).startswith("DECIMAL")
    precision, scale = precision_and_scale(new[1])
    return precision - scale >= _NEEDED_DIGITS[old[0]]


def widen_columns(session: Session, relation: Relation, columns: Sequence[Column]) -> int | None:
    """Give columns of a Delta table wider types, and return the newest version afterwards.  The
    caller holds the relation's lock.

    The wider types stay if the transaction is rolled back.  Then the columns of the relation keep
    their types, and convert values to and from the wider ones.

    Args:
        columns: the columns' new definitions.

    Raises:
        ObjectInUse: an unfinished copy or batch of changes writes the table (55006).
        PostgresError: the table cannot be written.
    """
    with writing_locked(session, [relation.oid], is_whole=False) as writer:
        check_rewritable(writer, relation.oid)
        storage = storage_of(writer.relations[relation.oid])
        _turn_on(writer, relation.oid, _WIDENED)
        for column in columns:
            stored = storage.columns[column.attnum]
            if has_type(relation, column):
                continue
            type_ = storage_type(column.type, column.typmod)
            with writer.commit_to(relation.oid, silent=True, widens=[stored.number]) as note:
                spark.jobs.widen_column(
                    session.engine(), storage.location, stored.name, type_, note
                )
        injection_point("widening.after-commit")
        version = latest_version(storage.location)
        writer.note_storage(relation.oid, [], version or 0)
    return version


# ---------------------------------------------------------------------------------------------
# Names


def change_columns(
    writer: TableWriter,
    relid: int,
    removed: Sequence[str],
    renamed: Sequence[tuple[int, str, str]],
    order: Sequence[str],
) -> bool:
    """Reorder, remove and rename columns of a Delta table, one commit for each step.

    If columns exchange their names, or only the case of a name changes, one column gets a temporary
    name.

    Args:
        removed: the names of the columns to remove.  At least one column must stay.
        renamed: the columns to rename: their numbers in storage, and their old and new names.
        order: the present names of the columns that stay, in their new order.

    Returns:
        False if a column has a temporary name.  The caller then calls this again in another
        transaction, which knows the column by that name.

    Raises:
        PostgresError: the table cannot be written.
    """
    _turn_on(writer, relid, _MAPPED)
    # first: after a crash, the next write continues only if columns must be removed or renamed
    _reorder(writer, relid, order)
    location = storage_of(writer.relations[relid]).location
    if removed:
        with writer.commit_to(relid, silent=True, removes=removed) as note:
            spark.jobs.drop_columns(writer.session.engine(), location, removed, note)
        injection_point("mapping.after-step")
    return _rename(writer, relid, renamed)


def _rename(writer: TableWriter, relid: int, renamed: Sequence[tuple[int, str, str]]) -> bool:
    """Rename columns.  Return False if one of them has a temporary name."""
    engine, location = writer.session.engine(), storage_of(writer.relations[relid]).location
    taken = {str(field["name"]).lower() for field in stored_columns(location)}
    waiting = list(renamed)
    while waiting:
        step = next((s for s in waiting if s[2].lower() not in taken), None)
        number, old, new = step or (*waiting[0][:2], _temporary_name(taken))
        with writer.commit_to(relid, silent=True, renames=[(number, new)]) as note:
            spark.jobs.rename_column(engine, location, old, new, note)
        injection_point("mapping.after-step")
        if step is None:
            return False
        waiting.remove(step)
        taken = taken - {old.lower()} | {new.lower()}
    return True


def _reorder(writer: TableWriter, relid: int, order: Sequence[str]) -> None:
    location = storage_of(writer.relations[relid]).location
    present = [str(field["name"]) for field in stored_columns(location)]
    for place, name in enumerate(order):
        if present[place] == name:
            continue
        before = order[place - 1] if place else None
        with writer.commit_to(relid, silent=True) as note:
            spark.jobs.move_column(writer.session.engine(), location, name, before, note)
        injection_point("mapping.after-step")
        present.remove(name)
        present.insert(place, name)


def _temporary_name(taken: set[str]) -> str:
    """Return a name that no column of the table has."""
    number = 0
    while f"replctl_{number}" in taken:
        number += 1
    return f"replctl_{number}"


def _turn_on(writer: TableWriter, relid: int, properties: Mapping[str, str]) -> None:
    """Turn on a feature of a table unless it is on."""
    location = storage_of(writer.relations[relid]).location
    state = table_state(location)
    is_on = properties.items() <= state.properties.items()
    if not is_on or state.protocol["minReaderVersion"] < _READER_VERSION:
        with writer.commit_to(relid, silent=True) as note:
            set_properties(writer.session, location, {**properties, **_VERSIONS}, note)
