"""Read and write publications, and their tables and schemas."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import select

from replctl.catalog import schema
from replctl.catalog.int2vector import decode_attnums, encode_attnums
from replctl.catalog.pg_class import (
    Relation,
    leaf_partitions,
    load_relations,
    relation_oids,
)
from replctl.catalog.pg_inherits import ancestors_of
from replctl.catalog.relation_kind import TABLE_KINDS, RelPersistence
from replctl.catalog.snapshot import made_by, of_database
from replctl.catalog.transaction import Catalog
from replctl.expr import nodes, pg_node_tree
from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class Publication:
    """A row of pg_publication."""

    oid: int
    name: str
    owner: int
    all_tables: bool = False
    publish_insert: bool = True
    publish_update: bool = True
    publish_delete: bool = True
    publish_truncate: bool = True
    publish_via_partition_root: bool = False

    def publishes(self, action: str) -> bool:
        """Return whether the publication publishes changes of a kind: insert, update, delete or
        truncate.
        """
        return bool(getattr(self, f"publish_{action}"))


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A row of pg_publication_rel.  `columns` has the attnums in ascending order; None for all
    columns.
    """

    oid: int
    publication_oid: int
    relid: int
    row_filter: nodes.Expr | None = None
    columns: tuple[int, ...] | None = None


class Memberships:
    """Finds the tables and schemas of some publications of a database (pg_publication.c)."""

    def __init__(self, catalog: Catalog, publications: Sequence[Publication]) -> None:
        self._catalog = catalog
        self._tables = {
            (item.publication_oid, item.relid): item
            for publication in publications
            for item in published_tables(catalog, publication_oid=publication.oid)
        }
        self._schemas = {
            publication.oid: set(published_schemas(catalog, publication.oid))
            for publication in publications
        }

    def lists(self, publication: Publication, relation: Relation) -> bool:
        """Return whether a publication lists a relation or its schema."""
        listed = (publication.oid, relation.oid) in self._tables
        return listed or relation.schema_oid in self._schemas[publication.oid]

    def membership(self, publication: Publication, relation: Relation) -> PublishedTable | None:
        """Return a table's entry in a publication, with filter and columns.  Return None if the
        publication does not list the table by name, or if it publishes the table's schema or all
        tables.
        """
        if publication.all_tables or relation.schema_oid in self._schemas[publication.oid]:
            return None
        return self.entry(publication, relation)

    def entry(self, publication: Publication, relation: Relation) -> PublishedTable | None:
        """Return a table's entry in a publication, even if the publication also has its schema."""
        return self._tables.get((publication.oid, relation.oid))

    def members(self, publication: Publication) -> set[int]:
        """Return the OIDs of the relations of a publication (pg_get_publication_tables).  For a
        partitioned table these are its leaf partitions, or the table itself if the publication has
        publish_via_partition_root.
        """
        via_root = publication.publish_via_partition_root
        if publication.all_tables:
            candidates = load_relations(
                self._catalog, relation_oids(self._catalog, TABLE_KINDS)
            ).values()
            return {
                relation.oid
                for relation in candidates
                if is_publishable(relation)
                and (not relation.is_partition if via_root else not relation.is_partitioned)
            }
        listed = [relid for oid, relid in self._tables if oid == publication.oid]
        for schema_oid in self._schemas[publication.oid]:
            listed += relation_oids(self._catalog, TABLE_KINDS, schema_oid)
        result = set()
        for relation in load_relations(self._catalog, listed).values():
            if not is_publishable(relation):
                continue
            if via_root or not relation.is_partitioned:
                result.add(relation.oid)
            else:
                result |= {leaf.oid for leaf in leaf_partitions(self._catalog, relation)}
        if via_root:
            result = {oid for oid in result if not result & set(ancestors_of(self._catalog, oid))}
        return result


def is_publishable(relation: Relation) -> bool:
    """Return whether a relation is a permanent user table (is_publishable_class in
    pg_publication.c).
    """
    return relation.kind in TABLE_KINDS and relation.persistence == RelPersistence.PERMANENT


def find_publication(catalog: Catalog, name: str) -> Publication | None:
    """Return the publication of that name; None if there is none."""
    row = catalog.first(schema.pg_publication, schema.pg_publication.c.pubname == name)
    return None if row is None else _publication(row)


def list_publications(catalog: Catalog) -> list[Publication]:
    """Return all publications of the database, by name."""
    rows = catalog.select(schema.pg_publication, order_by=[schema.pg_publication.c.pubname])
    return [_publication(row) for row in rows]


def names_begun_after(catalog: Catalog, names: Collection[str], lsn: int) -> frozenset[str]:
    """Return the names among `names` that publications of the database got only after an LSN, as
    far as the history of the catalogs reaches.
    """
    table = schema.pg_publication
    query = select(table.c.pubname, made_by(table, lsn)).where(
        of_database(table, catalog.database_oid),
        table.c.pubname.in_(list(names)),
        table.c.xmin.not_in(catalog.snapshot.in_progress),
    )
    rows = [(str(name), bool(is_old)) for name, is_old in catalog.connection.execute(query)]
    return frozenset(name for name, _ in rows) - {name for name, is_old in rows if is_old}


def publications_by_oid(catalog: Catalog, oids: Collection[int]) -> dict[int, Publication]:
    """Return the publications with these OIDs."""
    rows = catalog.select(schema.pg_publication, schema.pg_publication.c.oid.in_(list(oids)))
    return {int(row.oid): _publication(row) for row in rows}


def published_tables(
    catalog: Catalog, *, publication_oid: int | None = None, relids: Collection[int] | None = None
) -> list[PublishedTable]:
    """Return the entries of tables in publications: all, or those of one publication, or those of
    tables in `relids`.
    """
    table = schema.pg_publication_rel
    where = []
    if publication_oid is not None:
        where.append(table.c.prpubid == publication_oid)
    if relids is not None:
        where.append(table.c.prrelid.in_(list(relids)))
    return [_published_table(row) for row in catalog.select(table, *where, order_by=[table.c.oid])]


def published_schemas(catalog: Catalog, publication_oid: int) -> list[int]:
    """Return the OIDs of a publication's schemas."""
    table = schema.pg_publication_namespace
    rows = catalog.select(table, table.c.pnpubid == publication_oid, order_by=[table.c.oid])
    return [int(row.pnnspid) for row in rows]


def publications_of_schemas(catalog: Catalog) -> dict[int, list[int]]:
    """Return the OIDs of the publications of each schema, by the schema's OID."""
    result: dict[int, list[int]] = defaultdict(list)
    for row in catalog.select(schema.pg_publication_namespace):
        result[int(row.pnnspid)].append(int(row.pnpubid))
    return result


def insert_publication(catalog: Catalog, publication: Publication) -> None:
    """Add a publication."""
    catalog.insert(schema.pg_publication, **_values(publication))


def update_publication(catalog: Catalog, publication: Publication) -> None:
    """Replace the stored state of a publication."""
    catalog.update(
        schema.pg_publication,
        schema.pg_publication.c.oid == publication.oid,
        **_values(publication),
    )


def delete_publication(catalog: Catalog, publication_oid: int) -> None:
    """Remove a publication, and its entries for tables and schemas."""
    catalog.delete(
        schema.pg_publication_rel, schema.pg_publication_rel.c.prpubid == publication_oid
    )
    catalog.delete(
        schema.pg_publication_namespace,
        schema.pg_publication_namespace.c.pnpubid == publication_oid,
    )
    catalog.delete(schema.pg_publication, schema.pg_publication.c.oid == publication_oid)


def insert_published_table(catalog: Catalog, published: PublishedTable) -> None:
    """Add a table to a publication."""
    catalog.insert(
        schema.pg_publication_rel,
        oid=published.oid,
        prpubid=published.publication_oid,
        prrelid=published.relid,
        prqual=None if published.row_filter is None else pg_node_tree.dumps(published.row_filter),
        prattrs=None if published.columns is None else encode_attnums(published.columns),
    )


def delete_published_table(catalog: Catalog, oid: int) -> None:
    """Remove a table from a publication; `oid` is the OID of its entry."""
    catalog.delete(schema.pg_publication_rel, schema.pg_publication_rel.c.oid == oid)


def insert_published_schema(catalog: Catalog, publication_oid: int, schema_oid: int) -> None:
    """Add a schema to a publication."""
    catalog.insert(
        schema.pg_publication_namespace,
        oid=catalog.new_oid(),
        pnpubid=publication_oid,
        pnnspid=schema_oid,
    )


def delete_published_schema(catalog: Catalog, publication_oid: int, schema_oid: int) -> None:
    """Remove a schema from a publication."""
    table = schema.pg_publication_namespace
    catalog.delete(table, table.c.pnpubid == publication_oid, table.c.pnnspid == schema_oid)


def _values(publication: Publication) -> dict[str, Any]:
    return {
        "oid": publication.oid,
        "pubname": publication.name,
        "pubowner": publication.owner,
        "puballtables": publication.all_tables,
        "pubinsert": publication.publish_insert,
        "pubupdate": publication.publish_update,
        "pubdelete": publication.publish_delete,
        "pubtruncate": publication.publish_truncate,
        "pubviaroot": publication.publish_via_partition_root,
    }


def _publication(row: Any) -> Publication:
    return Publication(
        oid=int(row.oid),
        name=str(row.pubname),
        owner=int(row.pubowner),
        all_tables=bool(row.puballtables),
        publish_insert=bool(row.pubinsert),
        publish_update=bool(row.pubupdate),
        publish_delete=bool(row.pubdelete),
        publish_truncate=bool(row.pubtruncate),
        publish_via_partition_root=bool(row.pubviaroot),
    )


def _published_table(row: Any) -> PublishedTable:
    return PublishedTable(
        oid=int(row.oid),
        publication_oid=int(row.prpubid),
        relid=int(row.prrelid),
        row_filter=None if row.prqual is None else pg_node_tree.loads(row.prqual),
        columns=None if row.prattrs is None else decode_attnums(row.prattrs),
    )
