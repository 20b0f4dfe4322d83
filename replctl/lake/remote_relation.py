"""Describe relations and their row filters for a subscriber."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from replctl.catalog.column_origin import ColumnOrigin
from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.ruleutils import get_expr
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.replication.node import RemoteColumn, RemoteRelation
from replctl.replication.published_relation import PublishedRelation, TableToCopy, applied_filters
from replctl.replication.replica_identity import identity_columns
from replctl.replication.update_transformation import Action
from replctl.session import Session
from replctl.spark import SentColumn, untranslatable


def remote_relation(relation: Relation, attnums: Sequence[int], cluster: int = 0) -> RemoteRelation:
    """Describe a relation for a subscriber.

    Args:
        attnums: the published columns.
        cluster: the publisher's system identifier, for origins that are recorded.
    """
    columns = tuple(
        RemoteColumn(column.name, column.type, column.typmod, origin_of(relation, column, cluster))
        for column in relation.columns
        if column.attnum in attnums
    )
    identity = identity_columns(relation)
    names = (
        None if identity is None else tuple(relation.column_at(attnum).name for attnum in identity)
    )
    return RemoteRelation(relation.schema, relation.name, columns, names)


def origin_of(relation: Relation, column: Column, cluster: int) -> ColumnOrigin | None:
    """Return the origin of a column of an adopted table; None for other tables.

    Args:
        cluster: the publisher's system identifier.
    """
    if relation.storage is None or not relation.storage.is_adopted:
        return None
    fields = {} if column.field_names is None else json.loads(column.field_names)
    return ColumnOrigin(relation.oid, column.attnum, fields, cluster)


def remote_table(session: Session, table: TableToCopy) -> RemoteRelation:
    """Describe a relation for an initial copy, with its row filters and published actions.

    Args:
        session: the session at the publisher.
    """
    return replace(
        remote_relation(table.relation, table.columns, session.cluster.system_identifier),
        filters=applied_filters(table.relation, [table.filters]),
        actions=table.actions,
        zone=session.value_format.zone,
    )


def remote_changes(published: PublishedRelation) -> RemoteRelation:
    """Describe a relation for its changes.  Of the row filters, only those for INSERT and UPDATE
    count, because only these actions send new rows.
    """
    added = [
        filters
        for action, filters in published.filters.items()
        if action in (Action.INSERT, Action.UPDATE)
    ]
    return replace(
        remote_relation(published.published_as, published.columns),
        filters=applied_filters(published.published_as, added),
        actions=published.actions,
    )


def sent_columns(remote: RemoteRelation) -> tuple[SentColumn, ...]:
    """Return a relation's columns in the form that Spark's jobs use."""
    key = remote.replica_identity
    return tuple(
        SentColumn(column.name, column.type, column.typmod, key is None or column.name in key)
        for column in remote.columns
    )


def check_filters(session: Session, relation: Relation, filters: Sequence[nodes.Expr]) -> None:
    """Check that row filters can be evaluated exactly, before any row is read.

    Raises:
        FeatureNotSupported: a row filter cannot be evaluated exactly.
    """
    for row_filter in filters:
        problem = untranslatable(row_filter)
        if problem is not None:
            with session.read() as catalog:
                text = get_expr(session.environment(catalog), relation, row_filter)
            raise FeatureNotSupported(
                f"{text} is not supported in a replctl row filter",
                detail=f"{problem[0].upper()}{problem[1:]}. It is a row filter of table"
                f' "{relation.qualified_name}".',
            )
