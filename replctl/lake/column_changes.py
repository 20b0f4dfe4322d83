"""Follow changes to the columns of a relation's Delta table.  Other programs add, rename, drop and
restore columns; replctl itself removes and renames them.

With column mapping a column is identified by its physical name, which a rename does not change
(Delta's protocol, section "Column Mapping").  Without column mapping, a column is identified by its
name.  The same applies if a version replaces the whole schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from replctl.catalog import schema
from replctl.catalog.heap import (
    insert_column,
    remove_column,
    replace_storage_column,
    update_column,
)
from replctl.catalog.pg_class import Column, Relation, get_relation
from replctl.catalog.pg_inherits import children_of
from replctl.catalog.pg_subscription import subscriptions_of_relation
from replctl.catalog.storage import Storage
from replctl.catalog.storage_column import (
    StorageColumn,
    forget_storage_column,
    insert_storage_column,
    next_storage_number,
    note_removal,
    note_renaming,
    note_widening,
    reserve_storage_name,
    storage_columns,
)
from replctl.catalog.transaction import Catalog, commit_transaction
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.adopt import (
    is_stored_alike,
    is_void,
    readable_column,
    relation_column,
    stored_physical_name,
)
from replctl.lake.column_dependents import has_dependents
from replctl.lake.column_name import column_name
from replctl.lake.commit_mark import CommitMark
from replctl.lake.delta_log import latest_version, metadata_of
from replctl.lake.storage_place import free_name
from replctl.lake.table_metadata import (
    TableMetadata,
    metadata_at,
    physical_name,
    physical_names,
)
from replctl.lake.target_fault import note_lost_fields
from replctl.lake.widened_column import widened
from replctl.record import dataclass

#: A field of a Delta schema.
_Field = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ColumnChanges:
    """The differences between the columns of a version and the known columns.

    Attributes:
        renamed: the known columns that were renamed, dropped, restored or added to the table, in
            their new form.
        known: the fields of the known columns, by the columns' numbers.
        new: the fields of new columns.
    """

    renamed: tuple[StorageColumn, ...]
    known: dict[int, _Field]
    new: tuple[_Field, ...]


def column_changes(
    known: Collection[StorageColumn],
    found: Sequence[_Field],
    version: int,
    *,
    is_adopted: bool = True,
    replaces_rows: bool = True,
    keeps_files: Callable[[], bool] = lambda: False,
) -> ColumnChanges:
    """Return the differences between the columns of a version and the known columns.

    If a known column is missing and a new column has its name, the table was replaced, and both are
    the same column.  But if files of an adopted table stay, RESTORE has brought back an earlier
    column with this name, and its values: the new column is a different one.  It is also a
    different one if the known column was dropped in an earlier version.  Without column mapping, it
    is the same one if the version replaces all rows, as RESTORE does: then all its values come from
    this version.

    Args:
        is_adopted: the table is adopted.  Columns of replctl's own tables keep their spelling:
            names that differ only in case are the same for Delta.
        replaces_rows: the version replaces all rows of the table.
        keeps_files: returns whether the version keeps files as they are.
    """
    matched: dict[int, _Field] = {}
    rest: list[_Field] = []
    for field in found:
        unmatched = [c for c in known if c.number not in matched]
        column = _same_column(field, unmatched, replaces_rows=replaces_rows)
        if column is None:
            rest.append(field)
        else:
            matched[column.number] = field
    new: list[_Field] = []
    for field in rest:
        open_columns = [c for c in known if c.number not in matched and not c.is_dropped]
        column = _by_name(field["name"], open_columns)
        is_mapped = physical_name(field) is not None
        is_there = column is not None and column.since_version is not None
        if column is None or (is_there and is_adopted and is_mapped and keeps_files()):
            new.append(field)
        else:
            matched[column.number] = field
    pairs = [
        (c, _now(c, matched.get(c.number), version, keeps_spelling=not is_adopted)) for c in known
    ]
    changed = tuple(now for column, now in pairs if now != column)
    return ColumnChanges(changed, matched, tuple(new))


def _same_column(
    field: _Field, columns: Sequence[StorageColumn], *, replaces_rows: bool
) -> StorageColumn | None:
    live = [column for column in columns if not column.is_dropped]
    dropped = [column for column in reversed(columns) if column.is_dropped]  # the newest first
    physical = physical_name(field)
    if physical is not None:
        return next((column for column in live + dropped if column.identity == physical), None)
    # The relation still has a column that was not followed, so its subscriptions have stopped
    back = [column for column in dropped if replaces_rows or not column.is_followed]
    return _by_name(field["name"], live + back)


def _by_name(name: str, columns: Sequence[StorageColumn]) -> StorageColumn | None:
    return next((column for column in columns if column.name.lower() == name.lower()), None)


def _now(
    column: StorageColumn, field: _Field | None, version: int, *, keeps_spelling: bool
) -> StorageColumn:
    if field is None:
        is_there = column.since_version is not None and column.since_version <= version
        if column.is_dropped or not is_there:
            return column
        return replace(column, is_dropped=True, renamed_version=version)
    name, physical = field["name"], physical_name(field)
    if keeps_spelling and name.lower() == column.name.lower():
        name = column.name
    now = replace(
        column,
        name=name,
        physical_name=None if physical == name else physical,
        is_dropped=False,
    )
    if column.since_version is None:  # replctl would have added it with its next write
        return replace(now, since_version=version)
    if now.identity != column.identity:
        former = (*column.former_identities, (column.identity, version))
        now = replace(now, former_identities=former)
    return column if now == column else replace(now, renamed_version=version)


def follow_columns(
    catalog: Catalog,
    relid: int,
    found: Sequence[_Field],
    version: int,
    *,
    notes_dropped: bool = True,
    replaces_rows: bool = True,
    keeps_files: Callable[[], bool] = lambda: False,
) -> None:
    """Record the changes that another writer's commit makes to the columns of a table.  They are
    valid from this commit on.

    A new column is added to the relation, unless its type is unreadable.  A column of type void is
    added when it gets another type.  A renamed column gets its new name in the relation
    (`_renamed_columns`).  A widened column gets the new type, unless something depends on the old
    type.  A column that became nullable becomes nullable in the relation.  A dropped column is
    dropped from the relation, unless something depends on it.  A restored column is added to the
    relation again.

    Args:
        found: the columns of the table at this version (delta_log.columns_of).
        notes_dropped: missing columns were dropped.  If false, replctl creates them again.
        replaces_rows, keeps_files: see `column_changes`.
    """
    _rename_columns(catalog, relid, _renamed_back(catalog, relid, found), version)
    relation = get_relation(catalog, relid)
    storage = None if relation is None else relation.storage
    is_adopted = storage is not None and storage.is_adopted
    known = _followed_columns(catalog, relid, relation)
    changes = column_changes(
        known,
        found,
        version,
        is_adopted=is_adopted,
        replaces_rows=replaces_rows,
        keeps_files=keeps_files,
    )
    lost = _lost_columns(catalog, relation, changes) if notes_dropped else {}
    for stored in changes.renamed:
        if notes_dropped or not stored.is_dropped:
            now = replace(stored, is_followed=stored.number in lost)
            note_renaming(catalog.connection, relid, now)
    added = []
    for field in (*changes.new, *_typed_columns(catalog, relid, changes)):
        readable = readable_column(field)
        if readable is None:
            reserved = (str(field["name"]), version, stored_physical_name(field))
            reserve_storage_name(catalog.connection, relid, *reserved, is_void=is_void(field))
        else:
            added.append(readable)
    altered = {}
    if relation is not None:
        altered = _restored_columns(catalog, relation, changes)
        names = {attnum: column.name for attnum, column in altered.items()}
        names |= _renamed_columns(catalog, relation, changes.known)
        retyped = _altered_columns(catalog, relation, changes.known, version)
        note_lost_fields(catalog, relation, retyped.values(), version)
        altered |= retyped
        for attnum, name in _free_names(catalog, relation, names, lost.values()).items():
            altered[attnum] = replace(altered.get(attnum) or relation.column_at(attnum), name=name)
    if not added and not altered and not lost:
        return
    attribute = schema.pg_attribute
    writer = catalog.apart()
    for column in lost.values():
        remove_column(writer, relid, column)
    for column in altered.values():
        update_column(writer, relid, column)
    for new in added:
        rows = writer.select(attribute, attribute.c.attrelid == relid)
        attnum = max((int(row.attnum) for row in rows), default=0) + 1
        name = column_name(new.name, {str(row.attname) for row in rows})
        column = replace(relation_column(new, attnum, name), not_null=False)
        insert_column(writer, relid, column)
        insert_storage_column(writer, relid, attnum, new.name, version, new.physical_name)
    commit_transaction(catalog.connection, writer.xid, changes_catalog=True)


def _typed_columns(catalog: Catalog, relid: int, changes: ColumnChanges) -> list[_Field]:
    """Return the columns whose type was void, and no longer is.  Forget them as columns that the
    relation lacks, so that they are like new ones.
    """
    void = {c.number for c in storage_columns(catalog.connection, relid) if c.is_void}
    typed = {n: field for n, field in changes.known.items() if n in void and not is_void(field)}
    for number in typed:
        forget_storage_column(catalog.connection, relid, number)
    return list(typed.values())


def follow_own_columns(catalog: Catalog, relid: int, mark: CommitMark, version: int) -> None:
    """Record the columns that one of replctl's own commits removed, renamed (schema_rewrite.py) or
    widened (metadata_change.py).

    From this commit on, a renamed column is a new column in storage.  So decoding of earlier
    versions still finds the old column.
    """
    note_removal(catalog.connection, relid, version, names=mark.removes)
    note_widening(catalog.connection, relid, version, mark.widens)
    _rename_columns(catalog, relid, mark.renames, version)


def _rename_columns(
    catalog: Catalog, relid: int, renames: Collection[tuple[int, str]], version: int
) -> None:
    """Record a new column in storage for each renamed column, valid from a version on.

    Args:
        renames: the columns' old numbers in storage, and their new names.
    """
    relation = get_relation(catalog, relid) if renames else None
    if relation is None or relation.storage is None:
        return
    physical = physical_names(relation.storage.location, version)
    note_removal(catalog.connection, relid, version, numbers=[number for number, _ in renames])
    columns = {
        relation.storage.columns[column.attnum].number: column for column in relation.columns
    }
    writer = catalog.apart()
    for number, name in renames:
        number_now, physical_now = next_storage_number(catalog, relid), physical.get(name)
        stored = StorageColumn(name, version, number_now, physical_now)
        if number in columns:
            replace_storage_column(writer, relation, columns[number], stored)
        else:  # dropped meanwhile: the next write removes it
            insert_storage_column(writer, relid, stored.number, name, version, physical_now)
    commit_transaction(catalog.connection, writer.xid, changes_catalog=True, is_internal=True)


def _renamed_back(catalog: Catalog, relid: int, found: Sequence[_Field]) -> list[tuple[int, str]]:
    """Return the columns of replctl's own table whose name in the Delta table is an earlier or a
    later one than the catalog says: their numbers in storage, and the names found.  This happens
    if the table was restored, or is newer than the catalog.

    Return nothing if the table has column mapping, because columns then have identities other than
    their names.
    """
    relation = get_relation(catalog, relid)
    storage = None if relation is None else relation.storage
    if relation is None or storage is None or storage.is_adopted or not storage.is_made:
        return []
    if any(physical_name(field) is not None for field in found):
        return []
    fields = {field["name"].lower(): field for field in found}
    taken = {storage.columns[column.attnum].name.lower() for column in relation.columns}
    renames = []
    for column in relation.columns:
        stored = storage.columns[column.attnum]
        if stored.name.lower() in fields or stored.since_version is None:
            continue
        former = [former.stored.name for former in storage.former if former.attnum == column.attnum]
        for name in (free_name(column.name, ()), *reversed(former)):
            field = fields.get(name.lower())
            readable = None if field is None else readable_column(field)
            if readable and name.lower() not in taken and is_stored_alike(readable, column):
                renames.append((stored.number, name))
                taken.add(name.lower())
                break
    return renames


def _followed_columns(
    catalog: Catalog, relid: int, relation: Relation | None
) -> list[StorageColumn]:
    """Return the known columns to compare with the columns of the Delta table.  Omit columns that
    replctl has removed from its own table, because other programs may add new columns with these
    names.
    """
    known = storage_columns(catalog.connection, relid)
    storage = None if relation is None else relation.storage
    if relation is None or storage is None or storage.is_adopted:
        return known
    used = {storage.columns[column.attnum].number for column in relation.columns}
    return [column for column in known if column.number in used or not column.is_dropped]


def _altered_columns(
    catalog: Catalog, relation: Relation, found: Mapping[int, _Field], version: int
) -> dict[int, Column]:
    """Return the columns of an adopted table that now have wider types, allow NULL, or have other
    fields in their STRUCTs, by attnum.
    """
    storage = relation.storage
    if storage is None or not storage.is_adopted:
        return {}
    altered = {}
    for column in relation.columns:
        stored = storage.columns[column.attnum]
        field = found.get(stored.number)
        readable = None if field is None else readable_column(field)
        if field is None or readable is None:
            continue
        now = widened(catalog, relation, column, readable) or column
        names = _kept_names(storage, column.field_names, readable.field_names, field, version)
        now = replace(now, field_names=names)
        if column.not_null and not readable.not_null and _may_lose_not_null(relation, column):
            was_not_null = stored.identity in _not_null_before(storage, version)
            now = replace(now, not_null=not was_not_null)
        if now != column:
            altered[column.attnum] = now
    return altered


def _kept_names(
    storage: Storage, known: str | None, found: str | None, field: _Field, version: int
) -> str | None:
    """Return the names of the fields of a column's STRUCTs (nested_names) after a version.

    If column mapping begins or ends with this version, fields may get other names in files, but
    stay the same fields.  Without column mapping, no field is dropped unless all rows are replaced.
    In both cases fields keep their known names.

    Args:
        known, found: the names before the version, and in it.
        field: the column in the version.
    """
    if known is None or found is None or known == found:
        return found
    try:
        before = metadata_at(storage.location, version - 1)
    except ObjectNotInPrerequisiteState:  # fields may have been dropped since the known version
        return found
    if before.is_mapped and physical_name(field) is not None:
        return found
    names = json.loads(known)
    kept = {path: names.get(path, name) for path, name in json.loads(found).items()}
    return json.dumps(kept, ensure_ascii=False)


def _lost_columns(
    catalog: Catalog, relation: Relation | None, changes: ColumnChanges
) -> dict[int, Column]:
    """Return the columns of an adopted table that other programs dropped and on which nothing
    depends, by their numbers in storage.
    """
    storage = None if relation is None else relation.storage
    if relation is None or storage is None or not storage.is_adopted:
        return {}
    dropped = {stored.number for stored in changes.renamed if stored.is_dropped}
    return {
        number: column
        for column in relation.columns
        if (number := storage.columns[column.attnum].number) in dropped
        and not has_dependents(catalog, relation, column.attnum)
    }


def _restored_columns(
    catalog: Catalog, relation: Relation, changes: ColumnChanges
) -> dict[int, Column]:
    """Return the columns to restore in the relation, with their names in the Delta table, by
    attnum.

    Other programs dropped these columns earlier (`_lost_columns`), and now they have restored them.
    Columns that ALTER TABLE dropped are not restored.
    """
    back = {
        stored.number: changes.known[stored.number]
        for stored in changes.renamed
        if stored.is_followed and not stored.is_dropped
    }
    restored: dict[int, Column] = {}
    attribute = schema.pg_attribute
    rows = catalog.select(attribute, attribute.c.attrelid == relation.oid) if back else ()
    for row in rows:
        attnum, number = int(row.attnum), int(row.attfilenode or row.attnum)
        readable = readable_column(back[number]) if number in back else None
        if row.attisdropped and readable is not None:
            column = relation_column(readable, attnum, readable.name)
            restored[attnum] = replace(column, not_null=False)
    return restored


def _renamed_columns(
    catalog: Catalog, relation: Relation, found: Mapping[int, _Field]
) -> dict[int, str]:
    """Return the columns of an adopted table that other programs renamed: their new names in the
    Delta table, by attnum.

    A column keeps its name in each of these cases:

    - ALTER TABLE has renamed it.
    - The table is a partition, or has inheritance.
    - A subscription writes the table.  It finds columns by name.
    """
    storage = relation.storage
    if storage is None or not storage.is_adopted or relation.parents:
        return {}
    renamed = {
        column.attnum: field["name"]
        for column in relation.columns
        if column_name((known := storage.columns[column.attnum]).name).lower()
        == column.name.lower()
        and (field := found.get(known.number)) is not None
        and field["name"].lower() != known.name.lower()
    }
    if not renamed or children_of(catalog, relation.oid):
        return {}
    if subscriptions_of_relation(catalog, relation.oid):
        return {}
    return renamed


def _free_names(
    catalog: Catalog, relation: Relation, names: Mapping[int, str], lost: Iterable[Column]
) -> dict[int, str]:
    """Return the names in the relation of columns that one version renames or restores, by attnum.
    The columns may get the names of columns that the same version renames or drops.

    Args:
        names: the names of the columns in the Delta table.
        lost: the columns that the version drops from the relation.
    """
    attribute = schema.pg_attribute
    rows = catalog.select(attribute, attribute.c.attrelid == relation.oid) if names else ()
    free = {column.attnum for column in lost} | names.keys()
    taken = {str(row.attname) for row in rows if int(row.attnum) not in free}
    found = {}
    for attnum, name in names.items():
        found[attnum] = column_name(name, taken)
        taken.add(found[attnum])
    return found


def _may_lose_not_null(relation: Relation, column: Column) -> bool:
    key = relation.primary_key
    is_key = key is not None and column.attnum in key.key
    return not (is_key or column.identity or relation.parents)


def _not_null_before(storage: Storage, version: int) -> set[str]:
    """Return the identities of the columns that did not allow NULL before a version."""
    try:
        before = metadata_at(storage.location, version - 1)
    except ObjectNotInPrerequisiteState:  # unknown
        return set()
    return {physical or name for name, _type, physical, nullable in before.columns if not nullable}


def stored_names(storage: Storage, version: int | None) -> dict[int, str | None]:
    """Return the column names of a table at a version, by attnum; None for columns that it lacks.

    Args:
        version: None for the newest version.

    Raises:
        ObjectNotInPrerequisiteState: the log no longer has the columns of the version (55000).
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    columns = storage.columns
    if version is not None and version < storage.last_renaming:
        names = _names_in(storage, metadata_at(storage.location, version))
    else:
        names = {n: None if column.is_dropped else column.name for n, column in columns.items()}
    return {
        attnum: name if has_since(storage, attnum, version) else None
        for attnum, name in names.items()
    }


def names_around(
    storage: Storage, versions: Collection[int]
) -> tuple[tuple[int, dict[int, str | None]], ...]:
    """Return column names (`stored_names`) with their versions, oldest first: at each of
    `versions`, at the version before each of them, and at the last renaming.  Omit versions after
    the last renaming.  The result is empty if all `versions` are after the last renaming.
    """
    last = storage.last_renaming
    found: dict[int, dict[int, str | None]] = {}
    for version in versions:
        if version <= last:
            found[version] = stored_names(storage, version)
            # If the log begins with this version, it does not contain the earlier names
            is_same = version == 0 or metadata_of(storage.location, version) is None
            found[version - 1] = stored_names(storage, version if is_same else version - 1)
    if found:
        found[last] = stored_names(storage, None)
    return tuple(sorted(found.items()))


def names_in_log(
    location: str, columns: Collection[StorageColumn], versions: Collection[int]
) -> tuple[tuple[int, dict[int, str | None]], ...]:
    """Return column names by attnum, with their versions, oldest first: at each of these versions,
    at the version before each, and at the newest version.  The commit log may lack these versions.

    Raises:
        The errors of `stored_names`.
    """
    newest = latest_version(location)
    before = {version - 1 for version in versions if version}
    wanted = {*before, *versions, *(() if newest is None else (newest,))}
    return tuple(
        (version, _names_of(columns, metadata_at(location, version))) for version in sorted(wanted)
    )


def has_renamings(storage: Storage) -> bool:
    """Return whether a column was renamed, dropped or restored in the Delta table."""
    return storage.last_renaming >= 0


def _names_in(storage: Storage, metadata: TableMetadata) -> dict[int, str | None]:
    names = _names_of(storage.columns.values(), metadata)
    return {attnum: names[column.number] for attnum, column in storage.columns.items()}


def _names_of(columns: Collection[StorageColumn], metadata: TableMetadata) -> dict[int, str | None]:
    """Return the column names in a table's metadata, by the columns' numbers in storage."""
    names = metadata.names
    identities = {column.number: column.identity_at(metadata.version) for column in columns}
    rest = names.keys() - identities.values()
    others = {names[known].lower(): names[known] for known in rest}
    return {
        column.number: names.get(identities[column.number]) or others.get(column.name.lower())
        for column in columns
    }


def has_since(storage: Storage, attnum: int, version: int | None) -> bool:
    """Return whether a column was added to a table in or before a version (None: the newest)."""
    column = storage.columns.get(attnum)
    since = None if column is None else column.since_version
    return since is not None and (version is None or since <= version)
