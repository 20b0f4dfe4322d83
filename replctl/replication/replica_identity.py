"""Find the columns that identify rows: old rows at the publisher, and the rows to change at the
subscriber.

PostgreSQL's documentation, section 31.1, and ALTER TABLE ... REPLICA IDENTITY.
"""

from __future__ import annotations

from collections.abc import Collection

from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_publication import list_publications
from replctl.catalog.relation_kind import ReplicaIdentity
from replctl.catalog.transaction import Catalog
from replctl.errors import (
    FeatureNotSupported,
    InvalidColumnReference,
    ObjectNotInPrerequisiteState,
)
from replctl.expr import nodes
from replctl.replication.published_relation import PublicationSet, PublishedRelation


def identity_columns(relation: Relation) -> tuple[int, ...] | None:
    """Return the attnums of a table's replica identity; () if the table has none, None if the whole
    row is the identity (FULL).
    """
    match relation.replica_identity:
        case ReplicaIdentity.FULL:
            return None
        case ReplicaIdentity.DEFAULT:
            key = relation.primary_key
            return () if key is None or key.is_deferrable else key.key
        case ReplicaIdentity.INDEX:
            index = next((index for index in relation.indexes if index.is_replica_identity), None)
            return () if index is None else index.key
        case ReplicaIdentity.NOTHING:
            return ()


def target_key(relation: Relation) -> tuple[int, ...]:
    """Return the attnums of the columns by which a subscriber finds rows in its table: those of the
    replica identity or primary key, else () (GetRelationIdentityOrPK in relation.c).
    """
    identity = (
        identity_columns(relation)
        if relation.replica_identity in (ReplicaIdentity.DEFAULT, ReplicaIdentity.INDEX)
        else ()
    )
    if identity:
        return identity
    key = relation.primary_key
    return () if key is None else key.key


def check_replica_identity(catalog: Catalog, relation: Relation, command: str) -> None:
    """Check that a table's publications allow an UPDATE or DELETE of the table
    (CheckCmdReplicaIdentity in execReplication.c).

    Args:
        command: `update` or `delete`.

    Raises:
        InvalidColumnReference: a row filter uses columns outside of the replica identity, or a
            column list lacks columns of it (42P10).
        ObjectNotInPrerequisiteState: a publication publishes the command, and the table has no
            replica identity (55000).
    """
    if relation.is_partitioned:
        return
    single = [
        PublicationSet(catalog, [p]) for p in list_publications(catalog) if p.publishes(command)
    ]
    publishing = [
        (item, found) for item in single if (found := item.changes_of(relation)) is not None
    ]
    verb = "update" if command == "update" else "delete from"
    identity = identity_columns(relation)
    for problem, is_covered in (
        (
            "Column used in the publication WHERE expression is not part of the replica identity.",
            _filter_is_covered,
        ),
        (
            "Column list used by the publication does not cover the replica identity.",
            _identity_is_covered,
        ),
    ):
        if not all(is_covered(item, found, identity) for item, found in publishing):
            raise InvalidColumnReference(f'cannot {verb} table "{relation.name}"', detail=problem)
    if not publishing or identity is None or identity:
        return
    gerund = "updating" if command == "update" else "deleting from"
    raise ObjectNotInPrerequisiteState(
        f'cannot {verb} table "{relation.name}" because it does not have a replica identity and'
        f" publishes {command}s",
        hint=f"To enable {gerund} the table, set REPLICA IDENTITY using ALTER TABLE.",
    )


def check_sent_in_parts(catalog: Catalog, relation: Relation) -> None:
    """Check that publications can send an UPDATE as DELETE and INSERT.  replctl decodes an UPDATE
    in this way if its table has no key, and if it may give equal rows different values.

    Raises:
        FeatureNotSupported: a publication of the table sends some of INSERT, UPDATE and DELETE, but
            not all.
    """
    for publication in list_publications(catalog):
        sent = {publication.publishes(action) for action in ("insert", "update", "delete")}
        if len(sent) == 1:
            continue
        if PublicationSet(catalog, [publication]).changes_of(relation) is not None:
            raise FeatureNotSupported(
                "volatile functions in UPDATE are not supported for a table without a key:"
                f' publication "{publication.name}" publishes only some of INSERT, UPDATE and'
                " DELETE",
                hint="Add a primary key to the table.",
            )


def _filter_is_covered(
    publications: PublicationSet, published: PublishedRelation, identity: tuple[int, ...] | None
) -> bool:
    """Return whether the row filter only uses columns of the replica identity.

    The filter must do so even if it has no effect, because the publication also has the table's
    schema (pub_rf_contains_invalid_column).
    """
    (publication,) = publications.publications
    entry = publications.entry(publication, published.published_as)
    if identity is None or entry is None or entry.row_filter is None:
        return True
    used = _columns_of(entry.row_filter)
    return _names(published.published_as, used) <= _names(published.relation, identity)


def _identity_is_covered(
    publications: PublicationSet, published: PublishedRelation, identity: tuple[int, ...] | None
) -> bool:
    """Return whether the column list has all columns of the replica identity.  The identity FULL
    does not allow a column list.
    """
    (publication,) = publications.publications
    membership = publications.membership(publication, published.published_as)
    if membership is None or membership.columns is None:
        return True
    if identity is None:
        return False
    listed = _names(published.published_as, membership.columns)
    return _names(published.relation, identity) <= listed


def _columns_of(expr: nodes.Expr) -> set[int]:
    return {node.attnum for node in nodes.walk(expr) if isinstance(node, nodes.Var)}


def _names(relation: Relation, attnums: Collection[int]) -> set[str]:
    """Return the names of columns.  Numbers cannot be compared, because a partition may number its
    columns differently than its root.
    """
    return {column.name for column in relation.columns if column.attnum in attnums}
