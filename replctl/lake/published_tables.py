"""Read the tables that a database publishes, and snapshots of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from replctl.catalog.acl import Privilege
from replctl.catalog.column_origin import ColumnOrigin, changed_by_others
from replctl.catalog.commit_digest import digest_at
from replctl.catalog.namespace import CatalogEnvironment, relation_named
from replctl.catalog.pg_class import Relation, leaf_partitions, load_relations
from replctl.catalog.pg_inherits import ancestors_of, descendants_of
from replctl.catalog.pg_policy import is_row_security_active, policies_of
from replctl.catalog.pg_publication import list_publications
from replctl.catalog.pg_subscription import subscriptions_of_relation
from replctl.catalog.pg_wal import broken_since, last_committed_version, version_at
from replctl.catalog.transaction import Catalog, insert_lsn
from replctl.errors import (
    ConnectionFailure,
    FeatureNotSupported,
    InsufficientPrivilege,
    UndefinedTable,
)
from replctl.expr import nodes, pg_node_tree
from replctl.functions.function_context import function_context
from replctl.functions.session_value import with_session_values
from replctl.functions.settings_form import computable
from replctl.lake.catalog_name import check_names
from replctl.lake.column_fault import check_copyable
from replctl.lake.delta_files import table_size
from replctl.lake.file_access import check_readable
from replctl.lake.past_snapshot import past_snapshot
from replctl.lake.published_definition import table_definition
from replctl.lake.recovery import recover
from replctl.lake.remote_relation import check_filters, remote_relation, remote_table
from replctl.lake.restored_column import is_restored
from replctl.lake.small_source import with_small_rows
from replctl.lake.table_read import enter_foreign_versions, numbered_as, published_source
from replctl.lake.version_chain import replaced
from replctl.relation_name import RelationName
from replctl.replication.log_range import LogRange
from replctl.replication.node import RemoteRelation, Rows, Snapshot
from replctl.replication.published_relation import PublicationSet, TableToCopy
from replctl.replication.replaced_column import OriginChange
from replctl.replication.table_definition import SchemaChange, TableDefinition
from replctl.session import Session
from replctl.spark import CopySource, SparkQuery, copied_sql


class PublishedTables:
    """The tables that a session's database publishes, and snapshots of their rows
    (replication.node.PublishedTables)."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def missing_publications(self, names: Sequence[str]) -> list[str]:
        """Return the publications that do not exist, in the order of `names`."""
        with self._session.read() as catalog:
            existing = {publication.name for publication in list_publications(catalog)}
        return [name for name in names if name not in existing]

    def publications_from_elsewhere(
        self, names: Sequence[str], known: Collection[RelationName]
    ) -> list[str]:
        """Return the names of the publications with a table into which a subscription writes,
        directly or through partitions or ancestors of the table.

        Args:
            known: tables to ignore.
        """
        with self._session.read() as catalog:
            return sorted(
                name
                for name in names
                if any(
                    table.relation.relation_name not in known
                    and _is_written(catalog, table.relation)
                    for table in PublicationSet.of_names(catalog, [name]).tables_to_copy()
                )
            )

    def relations(self, names: Sequence[str]) -> list[RemoteRelation]:
        """Return the relations of the publications.

        Raises:
            FeatureNotSupported: the publications list different columns of a table, or a row filter
                cannot be evaluated exactly.
        """
        with self._session.read() as catalog:
            tables = PublicationSet.of_names(catalog, names).tables_to_copy()
        for table in tables:
            check_filters(self._session, table.relation, table.filters)
        return [remote_table(self._session, table) for table in tables]

    def definitions(self, names: Sequence[str], lsn: int | None = None) -> list[TableDefinition]:
        """Return the definitions with which a subscriber can create the published tables, by schema
        and name.

        Args:
            lsn: the position in the log at which they were valid; None for now.

        Raises:
            FeatureNotSupported: the publications list different columns of a table.
        """
        with self._session.read() as catalog:
            return self._definitions(catalog if lsn is None else catalog.as_of(lsn), names)

    def _definitions(self, catalog: Catalog, names: Sequence[str]) -> list[TableDefinition]:
        environment = CatalogEnvironment(
            catalog, self._session.database_name, (), self._session.role_oid
        )
        tables = PublicationSet.of_names(catalog, names).tables_to_copy()
        cluster = self._session.cluster.system_identifier
        return [table_definition(environment, table, cluster) for table in tables]

    def schema_changes(
        self, names: Sequence[str], from_lsn: int, to_lsn: int
    ) -> list[SchemaChange]:
        """Return the changes of published definitions in (from_lsn, to_lsn], in order.

        Raises:
            FeatureNotSupported: the publications list different columns of a table.
        """
        changes = []
        with self._session.read() as catalog:

            def at(lsn: int) -> dict[RelationName, TableDefinition]:
                found = self._definitions(catalog.as_of(lsn), names)
                return {item.relation_name: item for item in found}

            commits = catalog.changes_between(from_lsn, to_lsn)
            before = at(from_lsn) if commits else {}
            for lsn in commits:
                after = at(lsn)
                if after != before:
                    changes.append(SchemaChange(lsn, before, after))
                before = after
        return changes

    def origin_change(self, log: LogRange) -> OriginChange | None:
        """Return the origins of the required columns of adopted tables at the ends of a range; None
        if no definition changed in it.

        The result is None, too, if the publications list different columns of a table: decoding
        reports that when the table changes.
        """
        with self._session.read() as catalog:
            if not catalog.changes_between(log.from_lsn, log.to_lsn):
                return None
            # A copy may be newer than the range, which may end at a standby's position
            positions = {name: lsn for name, lsn in log.positions.items() if lsn < log.to_lsn}
            if not positions:
                return None
            starts = {name: max(lsn, log.from_lsn) for name, lsn in positions.items()}
            try:
                found = self._origins(catalog, log.to_lsn, log.publications)
                after = {name: origins for name, origins in found.items() if name in starts}
                earlier = {
                    lsn: self._origins(catalog, lsn, log.publications)
                    for lsn in {starts[name] for name in after}
                }
            except FeatureNotSupported:  # decoding reports it if the table changes
                return None
            before = {name: earlier[starts[name]].get(name, {}) for name in after}
            tables = {origin.relid for origins in after.values() for origin in origins.values()}
            foreign = changed_by_others(catalog.connection, tables)
            restored = {
                name: _restored(catalog, origins, starts[name], log.to_lsn)
                for name, origins in after.items()
            }
            return OriginChange(before, after, foreign, restored)

    def _origins(
        self, catalog: Catalog, lsn: int, names: Sequence[str]
    ) -> dict[RelationName, dict[str, ColumnOrigin]]:
        """Return the origins of the published columns of adopted tables at an LSN, by the tables'
        names.
        """
        cluster, found = self._session.cluster.system_identifier, {}
        for table in PublicationSet.of_names(catalog.as_of(lsn), names).tables_to_copy():
            columns = remote_relation(table.relation, table.columns, cluster).columns
            if origins := {c.name: c.origin for c in columns if c.origin is not None}:
                found[table.relation.relation_name] = origins
        return found

    def snapshot(self, name: RelationName) -> Snapshot:
        """Return the LSN and the version of each leaf partition of a relation, in one transaction
        of the catalog.
        """
        relation = self._relation(name)
        with self._session.read() as catalog:
            leaves = leaf_partitions(catalog, relation)
        oids = [leaf.oid for leaf in leaves]
        recover(self._session, oids)
        enter_foreign_versions(self._session, oids)
        with self._session.read() as catalog:
            versions = {str(oid): last_committed_version(catalog, oid) for oid in oids}
            lsn = insert_lsn(catalog.connection)
            return Snapshot(lsn, {"versions": versions}, digest_at(catalog.connection, lsn))

    @contextmanager
    def copy(
        self, publications: Sequence[str], name: RelationName, snapshot: Snapshot
    ) -> Iterator[tuple[RemoteRelation, Rows]]:
        """Yield the rows to copy: the rows that satisfy the row filter of at least one publication.
        Like PostgreSQL's copy, ignore `publish`.

        Raises:
            UndefinedTable: the relation is not published, or was dropped.
            ObjectNotInPrerequisiteState: the table was replaced after the snapshot (55000).
            DecodingFailure: another program dropped a column, or changed its type.
        """
        enter_foreign_versions(self._session, [int(oid) for oid in snapshot.state["versions"]])
        with self._session.read() as current:
            catalog = current.as_of(snapshot.lsn)
            table = _find_table(PublicationSet.of_names(catalog, publications), name)
            privileges = self._session.privileges(current)
            try:
                privileges.check_schema(table.relation.schema_oid, name.schema, Privilege.USAGE)
                privileges.check_relation(
                    table.relation, Privilege.SELECT, {*table.columns, *_filtered(table)}
                )
                policies = self._policies(current, table.relation)
                leaves = leaf_partitions(catalog, table.relation)
                oids = [leaf.oid for leaf in leaves]
                check_readable(current, load_relations(current, oids).values())
            except (InsufficientPrivilege, FeatureNotSupported) as error:
                raise ConnectionFailure(
                    "could not start initial contents copy for table"
                    f' "{name}": ERROR:  {error.message}'
                ) from error
            if broken := broken_since(current, oids, snapshot.lsn):
                raise replaced(next(leaf for leaf in leaves if leaf.oid in broken))
        check_names(self._session, oids)
        check_filters(self._session, table.relation, table.filters)
        versions = {int(oid): version for oid, version in snapshot.state["versions"].items()}
        for leaf in leaves:
            check_copyable(self._session, table, leaf, versions.get(leaf.oid))
        there = [  # the other leaves had no table at the snapshot, hence no rows
            (leaf.oid, published_source(table.relation, leaf, versions[leaf.oid]))
            for leaf in leaves
            if versions.get(leaf.oid) is not None
        ]
        with ExitStack() as stack:
            sources = [
                CopySource(source, table.columns, table.filters, policies)
                for source in with_small_rows(self._session, there, stack)
            ]
            remote = remote_table(self._session, table)
            yield remote, Rows(copied_sql(sources) if sources else _no_rows(table))

    def _policies(self, catalog: Catalog, relation: Relation) -> tuple[nodes.Expr, ...]:
        """Return the conditions that row security adds to a copy.

        Raises:
            InsufficientPrivilege: policies exist, and row_security is off.
            FeatureNotSupported: a policy reads tables.
        """
        privileges = self._session.privileges(catalog)
        now = load_relations(catalog, [relation.oid]).get(relation.oid, relation)
        setting = self._session.setting("row_security")
        if not is_row_security_active(privileges, now, setting):
            return ()
        policies = [
            p for p in policies_of(catalog, now.oid) if p.concerns(Privilege.SELECT, privileges)
        ]
        for policy in policies:
            if policy.reads_other_tables:
                raise FeatureNotSupported(
                    f'policy "{policy.name}" for table "{now.name}" has a subquery, which is not'
                    " supported in an initial copy"
                )
        context = function_context(self._session, catalog)
        tests = {
            is_permissive: [
                with_session_values(
                    context,
                    computable(
                        self._session, context.environment, pg_node_tree.loads(policy.using)
                    ),
                )
                for policy in policies
                if policy.is_permissive == is_permissive and policy.using is not None
            ]
            for is_permissive in (True, False)
        }
        if not tests[True]:
            return (nodes.Const("bool", "f"),)
        return (nodes.BoolExpr("or", tuple(tests[True])), *tests[False])

    def past_snapshot(self, name: RelationName, lsn: int) -> Snapshot:
        """Return the version of each leaf partition of a relation at an LSN.

        Raises:
            UndefinedTable: there was no such relation.
        """
        return past_snapshot(self._session, name, lsn)

    def relation_size(self, name: RelationName) -> int:
        """Return the size of the files of a relation's current rows, in bytes."""
        relation = self._relation(name)
        with self._session.read() as catalog:
            leaves = leaf_partitions(catalog, relation)
        return sum(table_size(leaf.storage.location) for leaf in leaves if leaf.storage is not None)

    def _relation(self, name: RelationName) -> Relation:
        with self._session.read() as catalog:
            relation = relation_named(catalog, *name)
        if relation is None:
            raise UndefinedTable(f'relation "{name}" does not exist on the publisher')
        return relation


def _restored(
    catalog: Catalog, origins: Mapping[str, ColumnOrigin], start: int, end: int
) -> list[str]:
    """Return the names of the columns of an adopted table that it lacked at the LSN `start`, and
    that other programs have restored with their values.

    Args:
        origins: the published columns at the LSN `end`.
    """
    (relid,) = {origin.relid for origin in origins.values()}
    (before, then), (after, now) = (
        (version_at(catalog, relid, lsn), load_relations(catalog.as_of(lsn), [relid]).get(relid))
        for lsn in (start, end)
    )
    if then is None or now is None or now.storage is None or before is None or after is None:
        return []
    known = {column.attnum for column in then.columns}
    stored = now.storage.columns
    return [
        name
        for name, origin in origins.items()
        if origin.attnum not in known
        and is_restored(now.storage, stored[origin.attnum], before, after)
    ]


def _is_written(catalog: Catalog, relation: Relation) -> bool:
    """Return whether a subscription writes into a table, its partitions or its ancestors."""
    tree = {*ancestors_of(catalog, relation.oid), *descendants_of(catalog, relation.oid)}
    return any(subscriptions_of_relation(catalog, relid) for relid in tree | {relation.oid})


def _find_table(publication_set: PublicationSet, name: RelationName) -> TableToCopy:
    for table in publication_set.tables_to_copy():
        if table.relation.relation_name == name:
            return table
    raise UndefinedTable(
        f'could not fetch table info for table "{name}" from publisher: table not found'
    )


def _filtered(table: TableToCopy) -> set[int]:
    """Return the attnums of the columns that the row filters of a copy read."""
    found = (node for row_filter in table.filters for node in nodes.walk(row_filter))
    return {node.attnum for node in found if isinstance(node, nodes.Var)}


def _no_rows(table: TableToCopy) -> SparkQuery:
    """Return the query for an empty copy, for a table that was never written."""
    source = replace(numbered_as(table.relation, table.relation), location=None)
    return copied_sql([CopySource(source, table.columns, table.filters)])
