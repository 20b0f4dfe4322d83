"""Find the relations that a set of publications publishes: their columns, rows and actions.  For a
partition, also find the ancestor under whose name its changes are published.

Changes follow the rules of pgoutput.c (get_rel_sync_entry and the functions that it calls).  Tables
to copy follow pg_get_publication_tables().
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field

from replctl.catalog.pg_class import Relation, leaf_partitions, load_relations
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
from replctl.replication.update_transformation import ROW_ACTIONS, Action


@dataclass(frozen=True, slots=True)
class PublishedRelation:
    """The rules by which changes of one table are published.

    Attributes:
        relation: the table whose rows change.  In a partitioned table this is a leaf partition.
        published_as: the relation under whose name the changes are published: the table itself, or
            one of its ancestors.
        actions: the published actions.
        filters: for each published action on rows, the row filters with the column numbers of
            `published_as`; () if every row passes.
        columns: the attnums of the published columns of `published_as`, in its order.
    """

    relation: Relation
    published_as: Relation
    actions: frozenset[Action]
    filters: dict[Action, tuple[nodes.Expr, ...]] = field(hash=False)
    columns: tuple[int, ...] = ()

    @property
    def is_part(self) -> bool:
        """Return whether the table is a partition that is published under an ancestor's name."""
        return self.published_as.oid != self.relation.oid


@dataclass(frozen=True, slots=True)
class TableToCopy:
    """A relation that a subscriber must have: the published columns, the row filters for the copy,
    and the published actions.
    """

    relation: Relation
    columns: tuple[int, ...]
    filters: tuple[nodes.Expr, ...]
    actions: frozenset[Action] = frozenset(Action)


class PublicationSet:
    """Some publications of a database, as the catalogs define them."""

    def __init__(self, catalog: Catalog, publications: Sequence[Publication]) -> None:
        self._catalog = catalog
        self.publications = tuple(publications)
        self._memberships = Memberships(catalog, publications)

    @classmethod
    def of_names(cls, catalog: Catalog, names: Collection[str]) -> PublicationSet:
        """Return those publications of these names that exist."""
        return cls(catalog, [p for p in list_publications(catalog) if p.name in names])

    # -- changes

    def changes_of(self, relation: Relation) -> PublishedRelation | None:
        """Return the rules by which changes of a table are published; None if they are not
        published.

        Raises:
            FeatureNotSupported: the publications list different columns of the table.
        """
        if not is_publishable(relation):  # FOR ALL TABLES would include it
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
            if relation.is_partitioned and not publication.publish_via_partition_root:
                continue  # it publishes the leaf partitions, and not a TRUNCATE of the root
            actions |= _actions_of([publication])
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
            self._filters(publishers, published_as, actions),
            self._columns(publishers, published_as),
        )

    def _published_level(
        self, publication: Publication, relation: Relation, path: Sequence[Relation]
    ) -> int | None:
        """Return the level at which a publication publishes a table: 0 as itself, n as its nth
        ancestor, None if it does not publish the table.
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
        """Return a table's entry in a publication (Memberships.membership)."""
        return self._memberships.membership(publication, relation)

    def entry(self, publication: Publication, relation: Relation) -> PublishedTable | None:
        """Return a table's own entry in a publication (Memberships.entry)."""
        return self._memberships.entry(publication, relation)

    def _filters(
        self, publishers: Sequence[Publication], published_as: Relation, actions: Collection[Action]
    ) -> dict[Action, tuple[nodes.Expr, ...]]:
        """Return, for each published action, the row filters of the publications that publish it.

        If one of these publications has no filter, every row passes.  Every row also passes if none
        of them publishes the action, because only a publication at a lower level of the partition
        tree does (pgoutput_row_filter_init).

        Args:
            publishers: the publications at the level of `published_as`.
            actions: the actions that publications of any level publish.
        """
        return {
            action: combine_filters(
                [
                    self._filter(publication, published_as)
                    for publication in publishers
                    if publication.publishes(action.publish_option)
                ]
            )
            for action in ROW_ACTIONS
            if action in actions
        }

    def _filter(self, publication: Publication, relation: Relation) -> nodes.Expr | None:
        table = self.membership(publication, relation)
        return None if table is None else table.row_filter

    def _columns(self, publishers: Sequence[Publication], relation: Relation) -> tuple[int, ...]:
        """Return the published columns, which must be the same in all publications."""
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
        """Return the relations that a subscriber must have, sorted by name (fetch_table_list in
        subscriptioncmds.c).

        Raises:
            FeatureNotSupported: the publications list different columns of a relation.
        """
        found = {
            publication.oid: self._memberships.members(publication)
            for publication in self.publications
        }
        oids = {oid for members in found.values() for oid in members}
        relations = load_relations(self._catalog, oids)
        above: set[int] = set()
        if any(publication.publish_via_partition_root for publication in self.publications):
            paths = {oid: oids & set(ancestors_of(self._catalog, oid)) for oid in oids}
            above = set().union(*paths.values())
            oids = {oid for oid, path in paths.items() if not path}
        result = []
        for oid in oids:
            relation = relations[oid]
            publishers = [p for p in self.publications if oid in found[p.oid]]
            filters = combine_filters(
                [self._filter(publication, relation) for publication in publishers]
            )
            actions = _actions_of(publishers)
            if oid in above:
                actions |= self._actions_of_partitions(relation)
            columns = self._columns(publishers, relation)
            result.append(TableToCopy(relation, columns, filters, actions))
        return sorted(result, key=lambda table: (table.relation.schema, table.relation.name))

    def _actions_of_partitions(self, relation: Relation) -> frozenset[Action]:
        """Return the actions that are published for all leaf partitions of a partitioned table, by
        publications of the table or of partitions.
        """
        leaves = leaf_partitions(self._catalog, relation)
        published = [item for leaf in leaves if (item := self.changes_of(leaf)) is not None]
        each = [item.actions for item in published]
        return each[0].intersection(*each) if each else frozenset()


def _actions_of(publications: Iterable[Publication]) -> frozenset[Action]:
    """Return the actions that any of these publications publishes."""
    return frozenset(
        action for p in publications for action in Action if p.publishes(action.publish_option)
    )


def combine_filters(filters: Sequence[nodes.Expr | None]) -> tuple[nodes.Expr, ...]:
    """Combine the row filters of several publications: a row passes if it satisfies any of them
    (documentation, section 31.3.6), or if there are none.

    (a > 5) and (b = 1) both stay, and are combined with OR. (a > 5) and no filter become (): every
    row passes.
    """
    if any(item is None for item in filters):
        return ()
    return tuple(dict.fromkeys(item for item in filters if item is not None))


def applied_filters(
    relation: Relation, filters: Iterable[tuple[nodes.Expr, ...]]
) -> tuple[AppliedFilter, ...]:
    """Return a relation's row filters in the form that a subscriber records, with the columns that
    they use.

    Args:
        filters: sets of filters that apply to different changes.  A row passes a set if it
            satisfies one of its filters, or if the set is empty.
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
    """Return the error for a subscription whose publications list different columns of a table."""
    return FeatureNotSupported(
        f'cannot use different column lists for table "{relation.qualified_name}" in different'
        " publications"
    )
