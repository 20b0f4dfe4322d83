"""Record the origins of the values in the columns of a subscription's tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from replctl.catalog.column_origin import ColumnOrigin, column_origins, put_column_origins
from replctl.catalog.namespace import relation_named
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.transaction import Catalog
from replctl.lake.missing_column import adding_statements
from replctl.lake.partition_tree import partition_tree, top_relation
from replctl.lake.subscriber_state import SubscriberState
from replctl.lake.target_relations import leaves_of_root
from replctl.relation_name import RelationName
from replctl.replication.node import RemoteRelation
from replctl.replication.replaced_column import ForeignColumns, OriginChange


class TargetOrigins:
    """The origins of the columns of one subscription's tables (replication.node.ColumnOrigins)."""

    def __init__(self, state: SubscriberState) -> None:
        self._state = state

    def follow(
        self, change: OriginChange, *, is_followed: bool
    ) -> dict[RelationName, ForeignColumns]:
        """Return the columns of tables whose values the tables lack.  If there are none, record the
        new origins.
        """
        members = self._state.relations()
        found = {name: members[name].relid for name in change.after if name in members}
        oid = self._state.subscription.oid
        with self._state.session.read() as catalog:
            tables = load_relations(catalog, found.values())
            stored = column_origins(catalog.connection, oid, tables)
        relids = {name: relid for name, relid in found.items() if relid in tables}
        lacking: dict[RelationName, ForeignColumns] = {}
        new: dict[int, dict[int, ColumnOrigin]] = {}
        for name, relid in relids.items():
            known = _by_name(tables[relid], stored.get(relid, {}), change.before.get(name, {}))
            columns = {column.name for column in tables[relid].columns}
            found_columns = change.lacking(name, known, columns, is_followed=is_followed)
            if found_columns != ForeignColumns():
                lacking[name] = found_columns
            recorded = change.recorded(name, known, is_followed=is_followed)
            new[relid] = stored.get(relid, {}) | _by_attnum(tables[relid], recorded)
        changed = {relid: kept for relid, kept in new.items() if kept != stored.get(relid)}
        if changed and not lacking:
            with self._state.writing() as catalog:
                for relid, kept in changed.items():
                    put_column_origins(catalog.connection, oid, relid, kept)
        return lacking

    def is_own(self, target: RelationName) -> bool:
        """Return whether the Delta tables of a target are not adopted."""
        with self._state.session.read() as catalog:
            relation = relation_named(catalog, *target)
            tree = {} if relation is None else partition_tree(catalog, relation)
            leaves = [] if relation is None else leaves_of_root(relation, tree)
        return not any(leaf.storage is not None and leaf.storage.is_adopted for leaf in leaves)

    def adding_statements(self, remote: RemoteRelation) -> str:
        """Return the statements that add published columns that their table lacks; "" for none."""
        member = self._state.relations()[remote.relation_name]
        with self._state.session.read() as catalog:
            table = load_relations(catalog, [member.relid])[member.relid]
            top = top_relation(table, partition_tree(catalog, table))
        return adding_statements(table, remote, top)


def note_copied_origins(
    catalog: Catalog,
    subscription_oid: int,
    relid: int,
    remote: RemoteRelation,
    *,
    is_replaced: bool,
) -> None:
    """Record the origins of a table's columns after a copy.

    Args:
        remote: the published table at the time of the copy.
        is_replaced: the copy has replaced all rows.  Else columns that are not sent keep their
            values, and thus their origins; rows that the copy has added lack these values.
    """
    connection = catalog.connection
    stored = {} if is_replaced else column_origins(connection, subscription_oid, [relid])
    sent = {c.name: c.origin for c in remote.columns if c.origin is not None}
    table = load_relations(catalog, [relid])[relid]
    kept = {n: replace(origin, is_partial=True) for n, origin in stored.get(relid, {}).items()}
    put_column_origins(connection, subscription_oid, relid, kept | _by_attnum(table, sent))


def _by_name(
    table: Relation, stored: Mapping[int, ColumnOrigin], before: Mapping[str, ColumnOrigin]
) -> dict[str, ColumnOrigin]:
    """Return the origins of a table's columns by name.

    Args:
        stored: the recorded origins, by attnum.
        before: the origins of columns without a record.  This includes columns that the user has
            dropped and added since the subscription stopped: earlier changes of the range have
            values of the former published column.
    """
    found = {column.name: stored.get(column.attnum) for column in table.columns}
    origins = {name: origin or before.get(name) for name, origin in found.items()}
    return {name: origin for name, origin in origins.items() if origin is not None}


def _by_attnum(table: Relation, origins: Mapping[str, ColumnOrigin]) -> dict[int, ColumnOrigin]:
    """Return origins by the attnums of a table's columns.  Omit columns that it lacks."""
    return {
        column.attnum: origin
        for column in table.columns
        if (origin := origins.get(column.name)) is not None
    }
