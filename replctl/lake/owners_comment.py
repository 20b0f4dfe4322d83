"""Take over the comments that the owner of an adopted table has given the table and its columns in
Delta.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from replctl.catalog.pg_class import Relation, get_relation
from replctl.catalog.pg_description import get_comment, set_comment
from replctl.catalog.transaction import Catalog, commit_transaction
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.delta_log import columns_of
from replctl.lake.table_metadata import metadata_at, physical_name


def adopt_comments(
    catalog: Catalog, relid: int, fields: Iterable[Mapping[str, Any]], description: object
) -> None:
    """Give a relation and its columns the comments of the Delta table that it adopts.

    Args:
        fields: the columns of the Delta table.
        description: the comment on the Delta table; None for none.
    """
    relation = get_relation(catalog, relid)
    assert relation is not None
    comments = _by_attnum(relation, _comments(fields, description))
    for attnum, comment in comments.items():
        if comment:
            set_comment(catalog, "pg_class", relid, comment, number=attnum)


def follow_comments(catalog: Catalog, relid: int, version: int) -> None:
    """Change the comments of an adopted table that another writer's commit changes.  A comment that
    COMMENT ON has changed stays.

    Args:
        version: the version of the commit, whose columns the relation has already.
    """
    relation = get_relation(catalog, relid)
    storage = None if relation is None else relation.storage
    if relation is None or storage is None or not storage.is_adopted:
        return
    now = _by_attnum(relation, _comments_at(storage.location, version))
    own = {attnum: get_comment(catalog, "pg_class", relid, attnum) or "" for attnum in now}
    if own == now:
        return
    try:
        former = _by_attnum(relation, _comments_at(storage.location, version - 1))
    except ObjectNotInPrerequisiteState:  # the log no longer has that version
        former = {}
    changed = {
        attnum: comment
        for attnum, comment in now.items()
        if comment != own[attnum] and own[attnum] == former.get(attnum, "")
    }
    if not changed:
        return
    writer = catalog.apart()
    for attnum, comment in changed.items():
        set_comment(writer, "pg_class", relid, comment or None, number=attnum)
    commit_transaction(catalog.connection, writer.xid, changes_catalog=True)


def _comments_at(location: str, version: int) -> dict[str, str]:
    """Return the comments that a Delta table has at a version (see `_comments`).

    Raises:
        ObjectNotInPrerequisiteState, DataCorrupted, IoError: see `metadata_at`.
    """
    action = metadata_at(location, version).action
    fields = columns_of(action, location, version)
    return _comments(fields, action.get("description"))


def _comments(fields: Iterable[Mapping[str, Any]], description: object) -> dict[str, str]:
    """Return the comments on columns, by the columns' names in data files, and that on the table,
    with the key ''.
    """
    comments = {"": _text(description)}
    for field in fields:
        details = field.get("metadata")
        comment = details.get("comment") if isinstance(details, dict) else None
        comments[physical_name(field) or str(field["name"])] = _text(comment)
    return comments


def _text(comment: object) -> str:
    """Return a comment of a Delta log; '' if PostgreSQL cannot have it."""
    return comment if isinstance(comment, str) and "\0" not in comment else ""


def _by_attnum(relation: Relation, comments: Mapping[str, str]) -> dict[int, str]:
    """Return comments by attnum; 0 stands for the table."""
    assert relation.storage is not None
    stored = relation.storage.columns
    names = {column.attnum: stored[column.attnum].identity for column in relation.columns}
    return {attnum: comments.get(name, "") for attnum, name in {0: "", **names}.items()}
