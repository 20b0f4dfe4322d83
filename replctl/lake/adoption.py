"""Adopt a table: record its newest version in the commit log, and no older version.

Like Delta, replctl reads only the newest checkpoint and the later commits.  The rest of the log may
have been cleaned up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_wal import ADOPT, NONE, enter
from replctl.catalog.storage import note_foreign_commit, note_metadata
from replctl.catalog.storage_column import reserve_storage_name
from replctl.catalog.transaction import Catalog, begin_transaction, commit_transaction
from replctl.errors import ObjectNotInPrerequisiteState, UndefinedTable
from replctl.lake.adopt import is_void, stored_physical_name
from replctl.lake.delta_commit import DeltaCommit
from replctl.lake.delta_files import is_empty_at
from replctl.lake.delta_log import (
    checkpoint_action,
    checkpoint_metadata,
    checkpoints,
    columns_of,
    latest_version,
    log_names,
    outside_checkpoint,
    read_commit,
)
from replctl.lake.delta_protocol import check_protocol
from replctl.lake.owners_comment import adopt_comments
from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class NewestVersion:
    """A Delta table at its newest version.

    Attributes:
        commit: the commit of that version.
        fields: its columns in the form of the Delta schema, in the table's order.
        outside: the path of a file outside the table's directory, and the place in the log that
            names the file, as text for a message; None if there is no such file.
        table_id: metaData.id.
        description: the comment on the table; None for none.
    """

    commit: DeltaCommit
    fields: tuple[Mapping[str, Any], ...]
    outside: tuple[str, str] | None
    table_id: str
    description: Any


def newest_version(location: str) -> NewestVersion:
    """Read a Delta table's newest version from its newest checkpoint and the commits after it.

    Raises:
        UndefinedTable: there is no Delta table.
        ObjectNotInPrerequisiteState: one of these commits is missing in the log (55000).
        FeatureNotSupported: the table requires an unknown protocol.
        DataCorrupted, IoError: the log is broken (XX001), or cannot be read.
    """
    newest = latest_version(location)
    if newest is None:
        raise UndefinedTable(f'there is no Delta table at "{location}"')
    start = max((n for n in checkpoints(log_names(location)) if n <= newest), default=-1)
    metadata: dict[str, Any] | None = None
    if start >= 0:
        protocol = checkpoint_action(location, start, "protocol")
        if protocol is not None:
            check_protocol(protocol, location, start)
        metadata = checkpoint_metadata(location, start)
    outside = None
    commits = [read_commit(location, n) for n in range(min(start + 1, newest), newest + 1)]
    for commit in commits:
        metadata = commit.metadata or metadata
        if outside is None and commit.outside is not None:
            outside = (commit.outside, f"Version {commit.version}")
    if metadata is None:
        raise ObjectNotInPrerequisiteState(
            f'the log of the Delta table "{location}" does not say what columns it has'
        )
    if outside is None and start >= 0:
        path = outside_checkpoint(location, start)
        outside = None if path is None else (path, "Its newest checkpoint")
    fields = tuple(columns_of(metadata, location, newest))
    table_id, description = str(metadata["id"]), metadata.get("description")
    return NewestVersion(commits[-1], fields, outside, table_id, description)


def enter_adopted(
    catalog: Catalog,
    relation: Relation,
    found: NewestVersion,
    left_out: Sequence[Mapping[str, Any]],
    *,
    is_listed: bool,
) -> None:
    """Record the current version of an adopted table in the commit log, and the comments of the
    table.  Replication starts at this version and reads no older one.

    Args:
        left_out: columns of the table that the relation does not have.  Their names are reserved,
            so that a later version does not seem to add these columns.
        is_listed: a column list has left them out.
    """
    commit = found.commit
    assert relation.storage is not None
    adopt_comments(catalog, relation.oid, found.fields, found.description)
    for field in left_out:
        known = (str(field["name"]), commit.version, stored_physical_name(field))
        is_open = is_void(field) and not is_listed
        reserve_storage_name(catalog.connection, relation.oid, *known, is_void=is_open)
    note_foreign_commit(catalog.connection, relation.oid)
    note_metadata(catalog.connection, relation.oid, found.table_id, has_row_ids=False)
    xid = begin_transaction(catalog.connection, catalog.database_oid, catalog.backend)
    enter(
        catalog,
        xid,
        relation.oid,
        commit.version,
        NONE if is_empty_at(relation.storage.location, commit.version) else ADOPT,
        digest=commit.digest,
        file_state=commit.file_state,
    )
    commit_transaction(
        catalog.connection, xid, changes_catalog=False, commit_time=commit.timestamp * 1000
    )
