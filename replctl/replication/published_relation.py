"""Find the relations that a set of publications publishes, with their columns, rows and actions,
and the relation as which each is published.

The rules are those of pgoutput.c (get_rel_sync_entry and the functions that it calls) for changes,
and of pg_get_publication_tables() for tables to copy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field

from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_inherits import ancestors_of
from replctl.catalog.pg_publication import (
    Memberships,
    Publication,
    PublishedTable,
    is_publishable,
    list_publications,
)
from replctl.catalog.table_copy import EVERY_ROW, AppliedFilter
from replctl.catalog.transaction import Catalog
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes, pg_node_tree
from replctl.record import dataclass
from replctl.replication.column_list import published_columns
from replctl.replication.update_transformation import Action

_ROW_ACTIONS = (Action.INSERT, Action.UPDATE, Action.DELETE)


@dataclass(frozen=True, slots=True)
class PublishedRelation:
    """The way in which changes of one table are sent.

    Attributes:
        relation: the table whose rows change; a leaf partition if it is partitioned.
        published_as: the relation that the changes are sent as: itself, or one of its ancestors.
        actions: the sent actions.
        filters: for each row action that is sent, the row filters in `published_as`'s numbering; ()
            lets every row pass.
        columns: the sent attnums of `published_as`, in its order.
    """

    relation: Relation
    published_as: Relation
    actions: frozenset[Action]
    filters: dict[Action, tuple[nodes.Expr, ...]] = field(hash=False)
    columns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TableToCopy:
    """A relation that a subscriber must have: its columns, its row filters for the copy, and its
    sent actions.
    """

    relation: Relation
    columns: tuple[int, ...]
    filters: tuple[nodes.Expr, ...]
    actions: frozenset[Action] = frozenset(Action)


class PublicationSet:
    """Some publications of a database, by its catalogs."""

    def __init__(self, catalog: Catalog, publications: Sequence[Publication]) -> None:
        self._catalog = catalog
        self.publications = tuple(publications)
        self._memberships = Memberships(catalog, publications)

    @classmethod
    def of_names(cls, catalog: Catalog, names: Collection[str]) -> PublicationSet:
        """Return the existing publications among these names."""
        return cls(catalog, [p for p in list_publications(catalog) if p.name in names])

    # -- changes

    def changes_of(self, relation: Relation) -> PublishedRelation | None:
        """Return the way in which changes of a table are sent; None if they are not sent.

        Raises:
            FeatureNotSupported: the publications list different columns of it.
        """
        if not is_publishable(relation):  # FOR ALL TABLES and IN SCHEMA name no tables
            return None
        ancestors = list(
            load_relations(self._catalog, ancestors_of(self._catalog, relation.oid)).values()
        )
        by_oid = {ancestor.oid: ancestor for ancestor in ancestors}
        path = [by_oid[oid] for oid in ancestors_of(self._catalog, relation.oid)]
        actions: set[Action] = set()
        level, published_as = 0, relation
        publishers: list[Publication] = []
        for publication in self.publications:
            found = self._published_level(publication, relation, path)
            if found is None:
                continue
            actions |= {action for action in Action if publication.publishes(action.publish_option)}
            if found > level:
                level, published_as, publishers = found, path[found - 1], [publication]
            elif found == level:
                publishers.append(publication)
        if not publishers:
            return None
        return PublishedRelation(
            relation,
            published_as,
            frozenset(actions),
            self._filters(publishers, published_as),
            self._columns(publishers, published_as),
        )

    def _published_level(
        self, publication: Publication, relation: Relation, path: Sequence[Relation]
    ) -> int | None:
        """Return 0 if a table is published as itself, n as its nth ancestor, None if it is not
        published.
        """
        via_root = publication.publish_via_partition_root
        if publication.all_tables:
            return len(path) if via_root else 0
        top = max(
            (
                i
                for i, ancestor in enumerate(path, start=1)
                if self._memberships.lists(publication, ancestor)
            ),
            default=0,
        )
        if top and via_root:
            return top
        return 0 if top or self._memberships.lists(publication, relation) else None

    def membership(self, publication: Publication, relation: Relation) -> PublishedTable | None:
        """Return a table's entry in a publication, if it is listed by name."""
        return self._memberships.membership(publication, relation)

    def _filters(
        self, publishers: Sequence[Publication], published_as: Relation
    ) -> dict[Action, tuple[nodes.Expr, ...]]:
        """Return the filters of each action from the publications that publish it.  One publication
        without a filter publishes all rows.
        """
        result: dict[Action, tuple[nodes.Expr, ...]] = {}
        for action in _ROW_ACTIONS:
            publishing = [p for p in publishers if p.publishes(action.publish_option)]
            if publishing:
                result[action] = combine_filters(
                    [self._filter(publication, published_as) for publication in publishing]
                )
        return result

    def _filter(self, publication: Publication, relation: Relation) -> nodes.Expr | None:
        table = self.membership(publication, relation)
        return None if table is None else table.row_filter

    def _columns(self, publishers: Sequence[Publication], relation: Relation) -> tuple[int, ...]:
        """Return the sent columns, which must be the same in all publications."""
        every_column = published_columns(relation, None)
        lists = set()
        for publication in publishers:
            table = self.membership(publication, relation)
            lists.add(every_column if table is None else published_columns(relation, table.columns))
        if len(lists) > 1:
            raise different_column_lists(relation)
        return lists.pop()

    # -- copies

    def tables_to_copy(self) -> list[TableToCopy]:
        """Return the relations that a subscriber must have, by name (fetch_table_list in
        subscriptioncmds.c).

        Raises:
            FeatureNotSupported: the publications list different columns of one of them.
        """
        found = {
            publication.oid: self._memberships.members(publication)
            for publication in self.publications
        }
        oids = {oid for members in found.values() for oid in members}
        relations = load_relations(self._catalog, oids)
        if any(publication.publish_via_partition_root for publication in self.publications):
            oids = {oid for oid in oids if not oids & set(ancestors_of(self._catalog, oid))}
        result = []
        for oid in oids:
            relation = relations[oid]
            publishers = [p for p in self.publications if oid in found[p.oid]]
            filters = combine_filters(
                [self._filter(publication, relation) for publication in publishers]
            )
            actions = frozenset(
                action
                for action in Action
                if any(p.publishes(action.publish_option) for p in publishers)
            )
            columns = self._columns(publishers, relation)
            result.append(TableToCopy(relation, columns, filters, actions))
        return sorted(result, key=lambda table: (table.relation.schema, table.relation.name))


def combine_filters(filters: Sequence[nodes.Expr | None]) -> tuple[nodes.Expr, ...]:
    """Combine the row filters of several publications: rows that satisfy any.  Documentation
    31.3.6.

    (a > 5) and (b = 1) stay both, to be ORed; (a > 5) and no filter become (), which lets every row
    pass
    """
    if any(item is None for item in filters):
        return ()
    return tuple(dict.fromkeys(item for item in filters if item is not None))


def applied_filters(
    relation: Relation, filters: Iterable[tuple[nodes.Expr, ...]]
) -> tuple[AppliedFilter, ...]:
    """Return row filters of a relation in the form that a subscriber records, with the columns that
    they use.

    Args:
        filters: sets of filters.  A row must satisfy one filter of each set; an empty set lets
            every row pass.
    """
    sets = list(filters)
    if not all(sets):
        return (EVERY_ROW,)
    return tuple(dict.fromkeys(_applied(relation, item) for found in sets for item in found))


def _applied(relation: Relation, row_filter: nodes.Expr) -> AppliedFilter:
    used = {node.attnum for node in nodes.walk(row_filter) if isinstance(node, nodes.Var)}
    columns = [column for column in relation.columns if column.attnum in used]
    numbers = {column.attnum: i for i, column in enumerate(columns, start=1)}
    return AppliedFilter(
        pg_node_tree.dumps(nodes.renumber(row_filter, numbers)),
        tuple((column.name, column.type, column.typmod) for column in columns),
    )


def different_column_lists(relation: Relation) -> FeatureNotSupported:
    """Return the error for publications of one subscription that list different columns."""
    return FeatureNotSupported(
        f'cannot use different column lists for table "{relation.qualified_name}" in different'
        " publications"
    )
