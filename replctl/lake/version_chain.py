"""Check the chain of a table's versions: it is whole if the table still has the newest version of
the commit log.

Delta's log only grows.  If the newest known version has another content, the table was restored
from a backup, replaced, or overwritten outside of Delta, with unknown differences.  If Delta's log
lacks this version but has later ones, it was cleaned, and the chain cannot be checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_control import read_control
from replctl.catalog.pg_wal import (
    BREAK,
    LoggedTable,
    enter,
    entered_versions,
    forget_versions,
    last_action,
    last_entered_version,
)
from replctl.catalog.storage import (
    keep_versions,
    known_table_id,
    note_foreign_commit,
    note_metadata,
)
from replctl.catalog.storage_column import note_lost_columns
from replctl.catalog.transaction import Catalog, begin_transaction, commit_transaction
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.column_changes import follow_columns
from replctl.lake.delta_log import (
    checkpoints,
    columns_of,
    file_state_of,
    last_unsupported,
    latest_version,
    log_names,
    readable_after,
    schema_at,
    stored_columns,
    stored_names,
    version_digest,
)
from replctl.lake.owners_comment import follow_comments
from replctl.lake.table_metadata import has_row_ids, metadata_at
from replctl.lake.target_fault import note_break, note_unread
from replctl.own_command import own_command
from replctl.replication.apply_error import ReplacedTable


class Chain(Enum):
    """The relation between the newest version in the commit log and the versions of the table."""

    WHOLE = "whole"
    CLEANED = "cleaned"  # Delta's log lacks the newest known version, but has later ones
    BROKEN = "broken"


def chain_of(table: LoggedTable, newest: int | None) -> Chain:
    """Return whether a table still has the newest version of the commit log.

    A missing table is a different error.

    Args:
        newest: the newest version of the table; None if there is no table.
    """
    if table.version is None or newest is None:
        return Chain.WHOLE
    if newest < table.version:
        return Chain.BROKEN
    state = file_state_of(table.location, table.version)
    if state is None:
        return Chain.CLEANED
    if state == table.file_state:  # the file need not be read again
        return Chain.WHOLE
    found = version_digest(table.location, table.version)
    return Chain.WHOLE if table.digest in (None, found) else Chain.BROKEN


def relation_chain(catalog: Catalog, relation: Relation) -> Chain:
    """Return whether a relation's table still has the newest version of the commit log.  A cleaned
    log of a different Delta table counts as broken.
    """
    assert relation.storage is not None
    location = relation.storage.location
    table = last_entered_version(catalog.connection, relation.oid, location)
    chain = chain_of(table, latest_version(location))
    if chain is Chain.WHOLE and table.version is not None:
        # Later versions may also be missing.  Without a checkpoint, such a log is broken
        floor = readable_after(location, table.version)
        if floor > table.version and max(checkpoints(log_names(location)), default=-1) >= floor:
            chain = Chain.CLEANED
    if chain is Chain.CLEANED:
        known = known_table_id(catalog.connection, relation.oid)
        if known is not None and schema_at(location)["id"] != known:
            return Chain.BROKEN
    return chain


def enter_break(catalog: Catalog, relation: Relation) -> None:
    """Record a break: the commit log forgets versions that the table no longer has, and records its
    newest version instead.

    Subscriptions that have not passed the break cannot receive its changes.  Subscriptions that
    write the table stop.
    """
    assert relation.storage is not None
    location, oid = relation.storage.location, relation.oid
    newest = latest_version(location)
    assert newest is not None
    common = _common_version(catalog, relation)
    known, found = known_table_id(catalog.connection, oid), schema_at(location)
    note_break(catalog, relation, _sentence(location, known, str(found["id"])))
    forget_versions(catalog.connection, oid, after=common)
    note_foreign_commit(catalog.connection, oid)
    columns, is_adopted = stored_columns(location), relation.storage.is_adopted
    follow_columns(catalog, oid, columns, newest, notes_dropped=is_adopted)
    follow_comments(catalog, oid, newest)
    note_lost_columns(catalog.connection, oid, stored_names(location), newest)
    note_metadata(catalog.connection, oid, found["id"], has_row_ids=has_row_ids(found))
    xid = begin_transaction(catalog.connection, catalog.database_oid, catalog.backend)
    version = newest if newest > common else None
    digest = version_digest(location, newest) if newest > common else None
    enter(catalog, xid, oid, version, BREAK, digest=digest)
    commit_transaction(catalog.connection, xid, changes_catalog=False)


def enter_loss(catalog: Catalog, relation: Relation) -> None:
    """Record a break for a missing Delta table, so that the next write creates the table again."""
    forget_versions(catalog.connection, relation.oid, after=-1)
    keep_versions(catalog.connection, relation.oid, -1)
    xid = begin_transaction(catalog.connection, catalog.database_oid, catalog.backend)
    enter(catalog, xid, relation.oid, None, BREAK)
    commit_transaction(catalog.connection, xid, changes_catalog=False)


def enter_cleaning(catalog: Catalog, relation: Relation, system_identifier: int) -> None:
    """Record a break for a cleaned log.  The existing versions come after the break.

    A subscription that writes the table continues if the table has the subscription's last step.
    """
    assert relation.storage is not None
    location = relation.storage.location
    last = _last_entered(catalog, relation)
    floor = readable_after(location, last)
    skipped = floor if floor > last else None
    if skipped is None and last_action(catalog.connection, relation.oid) == BREAK:
        return  # later versions are not committed yet
    sentence = (
        f'The log of the Delta table "{location}" was cleaned beyond version {last}, the last one'
        " that is known"
    )
    note_unread(catalog, relation, system_identifier, sentence)
    _enter_gap(catalog, relation, skipped, {"cleaned": last})


def enter_unsupported(catalog: Catalog, relation: Relation, system_identifier: int) -> None:
    """Record a break for versions with an unsupported protocol, if the table has a supported one
    again.  Later versions come after the break.

    A subscription that writes the table continues if the table has the subscription's last step.
    """
    assert relation.storage is not None
    location = relation.storage.location
    last = _last_entered(catalog, relation)
    skipped = supported_after(location, last)
    if skipped > last:
        sentence = _unsupported(location, last, skipped)
        note_unread(catalog, relation, system_identifier, sentence)
        _enter_gap(catalog, relation, skipped, {"cleaned": last, "unsupported": skipped})


def supported_after(location: str, version: int) -> int:
    """Return the version after which all versions of a table have a supported protocol; `version`
    if there is none.
    """
    return last_unsupported(location, version) or version


def _last_entered(catalog: Catalog, relation: Relation) -> int:
    """Return the newest version in the commit log; -1 if there is none."""
    assert relation.storage is not None
    table = last_entered_version(catalog.connection, relation.oid, relation.storage.location)
    return -1 if table.version is None else table.version


def _enter_gap(
    catalog: Catalog, relation: Relation, skipped: int | None, detail: dict[str, object]
) -> None:
    """Record a break for versions that cannot be read.

    Args:
        skipped: the last one of these versions; None if there is none.
        detail: the detail of the log entry.
    """
    assert relation.storage is not None
    note_foreign_commit(catalog.connection, relation.oid)
    if skipped is not None:
        columns, version = _columns_after(relation.storage.location, skipped)
        follow_columns(catalog, relation.oid, columns, version)
        follow_comments(catalog, relation.oid, version)
    xid = begin_transaction(catalog.connection, catalog.database_oid, catalog.backend)
    enter(catalog, xid, relation.oid, skipped, BREAK, detail)
    commit_transaction(catalog.connection, xid, changes_catalog=False)


def _columns_after(location: str, version: int) -> tuple[list[dict[str, Any]], int]:
    """Return the columns of the version after a given one, and that version.  If the log does not
    have these columns, return the newest version and its columns.
    """
    try:
        metadata = metadata_at(location, version + 1)
    except ObjectNotInPrerequisiteState:  # the log no longer has the next version
        return stored_columns(location), latest_version(location) or 0
    return columns_of(metadata.action, location, version + 1), version + 1


def _sentence(location: str, known: str | None, found: str) -> str:
    """Return a sentence that says what happened to a table with a broken chain."""
    if known is not None and known != found:
        return f'Another Delta table is at "{location}": its id is {found}, and was {known} before.'
    return (
        f'The Delta table "{location}" was restored to an earlier state, or its log was'
        " overwritten: it no longer has the versions that replctl has read."
    )


def _common_version(catalog: Catalog, relation: Relation) -> int:
    """Return the newest version that the commit log and the table have in common; -1 if none."""
    assert relation.storage is not None
    entered = entered_versions(catalog.connection, relation.oid, -1)
    for version in sorted(entered, reverse=True):
        found = version_digest(relation.storage.location, version)
        if found is not None and found == entered[version].digest:
            return version
    return -1


def replaced(relation: Relation, gap: Mapping[str, object] | None = None) -> ReplacedTable:
    """Return the error for changes across a break.

    Args:
        gap: the detail of the break in the log.  It says which versions cannot be read, if any.
    """
    assert relation.storage is not None
    location, name = relation.storage.location, relation.qualified_name
    unknown = "replctl cannot determine which rows have changed"
    if gap is not None and "unsupported" in gap:
        sentence = _unsupported(location, gap["cleaned"], gap["unsupported"])
        return ReplacedTable(
            f'changes of table "{name}" cannot be read', detail=f"{sentence}, so {unknown}."
        )
    if gap is not None and "cleaned" in gap:
        return ReplacedTable(
            f'changes of table "{name}" were removed before they were read',
            detail=f'The log of the Delta table "{location}" was cleaned beyond version'
            f" {gap['cleaned']}, the last one that was read, so {unknown}.",
        )
    return ReplacedTable(
        f'table "{name}" was replaced or restored by another program',
        detail=f'The Delta table "{location}" no longer has the versions that replctl has read, so'
        f" {unknown}.",
    )


def _unsupported(location: str, last: object, skipped: object) -> str:
    """Return the beginning of a sentence about versions with an unsupported protocol: those after
    `last`, up to `skipped`.
    """
    return (
        f'The Delta table "{location}" had a protocol that replctl does not support after version'
        f" {last} and up to version {skipped}"
    )


def restore_hint(catalog: Catalog, relation: Relation) -> str:
    """Return the hint for a missing table directory.  A standby cannot drop tables."""
    control = read_control(catalog.connection)
    if not control.is_in_recovery:
        return f"Restore the directory from a backup, or use DROP TABLE {relation.quoted_name}."
    follow = own_command("standby", "sync", home=control.home)
    return (
        "Restore the directory from a backup. If the primary was moved, use ALTER SYSTEM SET"
        f" primary_conninfo = 'host=DIRECTORY', and run \"{follow}\"."
    )
