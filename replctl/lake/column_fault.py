"""Detect columns of a table that are no longer readable, because other programs dropped them or
changed their type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.pg_database import current_database
from replctl.catalog.transaction import Catalog
from replctl.errors import DatatypeMismatch, PostgresError, UndefinedColumn
from replctl.expr.builtin_environment import BuiltinEnvironment
from replctl.lake.adopt import DeltaColumn, delta_type_shown, is_stored_alike, readable_column
from replctl.lake.column_changes import has_renamings, has_since, stored_names
from replctl.lake.column_repair import (
    ColumnFault,
    Repair,
    drop_column,
    filter_columns,
    key_names,
    repair_of,
    restoring_hint,
    retype_column,
)
from replctl.lake.delta_log import columns_of, stored_columns
from replctl.lake.partition_repair import changed_table, detach_statement
from replctl.lake.table_metadata import metadata_at
from replctl.lake.table_state import has_foreign_rules, table_state
from replctl.lake.widened_column import is_wider
from replctl.replication.apply_error import DecodingFailure
from replctl.replication.published_relation import PublishedRelation, TableToCopy
from replctl.session import Session
from replctl.types.delta_type import is_native


def column_fault(
    relation: Relation, names: Collection[str], versions: Iterable[int]
) -> ColumnFault | None:
    """Return the first column that cannot be read at a version; None if all are readable.

    Args:
        relation: the table, with the types that its columns have at these versions.
        names: the required columns.

    Raises:
        ObjectNotInPrerequisiteState: the log no longer has the columns of a version (55000).
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    storage = relation.storage
    if storage is None or not (storage.is_adopted or has_renamings(storage)):
        return None
    needed = [column for column in relation.columns if column.name in names]
    seen: set[int] = set()
    for version in versions:
        metadata = metadata_at(storage.location, version)
        if metadata.version in seen:
            continue
        seen.add(metadata.version)
        fields = {f["name"]: f for f in columns_of(metadata.action, storage.location, version)}
        stored = stored_names(storage, version)
        for column in needed:
            if not has_since(storage, column.attnum, version):
                continue
            name = stored[column.attnum]
            field = next((f for n, f in fields.items() if name and n.lower() == name.lower()), None)
            if field is None:
                return ColumnFault(relation, column, version)
            readable = readable_column(field)
            if storage.is_adopted and not _can_be_read(readable, column):
                return ColumnFault(relation, column, version, delta_type_shown(field), readable)
    return None


def _can_be_read(readable: DeltaColumn | None, column: Column) -> bool:
    if readable is None:
        return False
    # The owner may restore a version before the type was widened
    is_narrower = is_wider((readable.type, readable.typmod), (column.type, column.typmod))
    return is_narrower or is_stored_alike(readable, column)


def has_type(relation: Relation, column: Column) -> bool:
    """Return whether the newest version of a relation's table stores `column` with the column's
    type.

    Raises:
        UndefinedTable: there is no Delta table.
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    storage, found = relation.storage, delta_column(relation, column.attnum)
    assert storage is not None
    if found is None or not is_stored_alike(found, column):
        return False
    return not storage.is_adopted or _has_length(found, column)


def delta_column(relation: Relation, attnum: int) -> DeltaColumn | None:
    """Return a column of a relation as the newest version of its table has it; None if the table
    lacks the column, or PostgreSQL its type.

    Raises:
        UndefinedTable: there is no Delta table.
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    storage = relation.storage
    assert storage is not None
    name = stored_names(storage, None)[attnum]
    fields = stored_columns(storage.location)
    return next((readable_column(field) for field in fields if field["name"] == name), None)


def _has_length(found: DeltaColumn, column: Column) -> bool:
    """Return whether Delta limits texts to the length that a relation's column has."""
    if column.type.removeprefix("_") not in ("varchar", "bpchar") or column.typmod < 0:
        return True
    now = (column.type, column.typmod)
    return (found.type, found.typmod) == now or is_wider((found.type, found.typmod), now)


def check_decodable(
    session: Session, published: PublishedRelation, versions: Sequence[int]
) -> None:
    """Check that the columns needed to decode changes of a published table are readable.

    Raises:
        DecodingFailure: one of the columns cannot be read at a version.
    """
    found = _decoding_fault(session, published, versions)
    if found is not None:
        error, repair = found
        raise DecodingFailure(error, repair=repair.hint_for)


def check_listable(
    session: Session, published: PublishedRelation, versions: Sequence[int], slot_name: str
) -> None:
    """Make the check of `check_decodable` for functions that list the changes of a slot.

    Raises:
        UndefinedColumn: another program dropped one of the columns (42703).
        DatatypeMismatch: another program changed the type of one of the columns (42804).
    """
    found = _decoding_fault(session, published, versions)
    if found is not None:
        error, repair = found
        error.detail = f"{error.detail} replctl can no longer list the slot's changes up to now."
        error.hint = repair.hint_for_slot(slot_name)
        raise error


def _decoding_fault(
    session: Session, published: PublishedRelation, versions: Sequence[int]
) -> tuple[PostgresError, Repair] | None:
    root = published.published_as
    used = set(published.columns).union(*map(filter_columns, published.filters.values()))
    names = {column.name for column in root.columns if column.attnum in used}
    names |= key_names(published.relation)
    fault = column_fault(published.relation, names, versions)
    if fault is None:
        return None
    with session.read() as catalog:
        return _error(catalog, fault), repair_of(session, catalog, fault, root)


def check_copyable(
    session: Session, table: TableToCopy, leaf: Relation, version: int | None
) -> None:
    """Check that the columns needed to copy a published table are readable.

    Args:
        leaf: one of the tables that contain its rows.
        version: the version of that table; None if it did not exist.

    Raises:
        DecodingFailure: another program dropped one of them (42703), or changed its type (42804).
    """
    used = set(table.columns) | filter_columns(table.filters)
    names = {column.name for column in table.relation.columns if column.attnum in used}
    fault = None if version is None else column_fault(leaf, names, [version])
    if fault is None:
        return
    with session.read() as catalog:
        error = _error(catalog, fault)
        repair = repair_of(session, catalog, fault, table.relation)
    raise DecodingFailure(error, repair=repair.hint_for)


def check_columns(session: Session, relation: Relation) -> None:
    """Check that a table to be written has all columns of the relation, with their types.

    Raises:
        UndefinedColumn: another program dropped one of them (42703).
        DatatypeMismatch: another program changed the type of one of them (42804).
    """
    storage = relation.storage
    if storage is None or not (has_renamings(storage) or has_foreign_rules(storage)):
        return
    with session.read() as catalog:
        errors = dropped_columns(catalog, relation)
        errors = errors or _errors(catalog, _unfit_columns(relation, None))
        for attnum, error in errors.items():
            column = relation.column_at(attnum)
            if column.name not in key_names(relation):
                error.hint = restoring_hint(session, catalog, relation, column) or error.hint
            raise error


def dropped_columns(catalog: Catalog, relation: Relation) -> dict[int, PostgresError]:
    """Return an error for each column of a relation that other programs dropped, by attnum."""
    stored = {} if relation.storage is None else relation.storage.columns
    faults = [
        ColumnFault(relation, column, known.renamed_version or 0)
        for column in relation.columns
        if (known := stored.get(column.attnum)) is not None and known.is_dropped
    ]
    return _errors(catalog, faults)


def retyped_columns(
    catalog: Catalog, relation: Relation, version: int | None
) -> dict[int, PostgresError]:
    """Return an error for each column of a relation that has an unsuitable type in its Delta table,
    by attnum.  Omit native columns that are still native: queries show any such value as JSON.

    Args:
        version: the version to read; None for the newest.
    """
    faults = [
        fault
        for fault in _unfit_columns(relation, version)
        if fault.found is not None
        and not (
            is_native(fault.column.type)
            and fault.readable is not None
            and is_native(fault.readable.type)
        )
    ]
    return _errors(catalog, faults)


def _unfit_columns(relation: Relation, version: int | None) -> list[ColumnFault]:
    """Return the columns of a relation that a version of its Delta table (None: the newest) lacks
    or has with an unsuitable type.  The commit log may still lack this version.
    """
    storage = relation.storage
    if storage is None or not has_foreign_rules(storage):
        return []
    state, names = table_state(storage.location), stored_names(storage, version)
    metadata, number = state.metadata, state.version
    if version is not None and version != number:
        metadata, number = metadata_at(storage.location, version).action, version
    found = columns_of(metadata, storage.location, number)
    fields = {field["name"].lower(): field for field in found}
    faults = []
    for column in relation.columns:
        name = names[column.attnum]
        if name is None:  # it has not been created yet
            continue
        field = fields.get(name.lower())
        if field is None:
            faults.append(ColumnFault(relation, column, number))
            continue
        readable = readable_column(field)
        # The log does not show how replctl stores some types
        is_unknown = readable is None and not storage.is_adopted
        if not (is_unknown or _can_be_read(readable, column)):
            shown = delta_type_shown(field)
            faults.append(ColumnFault(relation, column, number, shown, readable))
    return faults


def _errors(catalog: Catalog, faults: Iterable[ColumnFault]) -> dict[int, PostgresError]:
    """Return the errors of columns, by attnum."""
    errors = {}
    for fault in faults:
        error = errors[fault.column.attnum] = _error(catalog, fault)
        error.hint = f"Use {_change(catalog, fault)}"
    return errors


def _change(catalog: Catalog, fault: ColumnFault) -> str:
    """Return the statement after which queries can read the table."""
    found = fault.readable
    changed = changed_table(catalog, fault.relation, fault.column, found)
    if changed is None:
        return detach_statement(catalog, fault.relation)
    if found is None:
        return drop_column(changed, fault.column)
    shown = BuiltinEnvironment().format_type(found.type, found.typmod)
    return retype_column(changed, fault.column, (found.type, shown))


def _error(catalog: Catalog, fault: ColumnFault) -> PostgresError:
    if fault.found is None:
        return _dropped(catalog, fault)
    return DatatypeMismatch(
        f"the type of {_shown(catalog, fault)} was changed by another program",
        detail=f"The column has the type {fault.found} in version {_place(fault)}.",
    )


def _dropped(catalog: Catalog, fault: ColumnFault) -> UndefinedColumn:
    return UndefinedColumn(
        f"{_shown(catalog, fault)} was dropped by another program",
        detail=f"Version {_place(fault)} does not have the column.",
    )


def _shown(catalog: Catalog, fault: ColumnFault) -> str:
    table = f'table "{fault.relation.qualified_name}" of database "{current_database(catalog)}"'
    return f'column "{fault.column.name}" of {table}'


def _place(fault: ColumnFault) -> str:
    assert fault.relation.storage is not None
    return f'{fault.version} of the Delta table "{fault.relation.storage.location}"'
