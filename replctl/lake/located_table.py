"""Create the Delta tables of relations with LOCATION when the relations are created, without Spark,
so that other programs find them from then on.
"""

from __future__ import annotations

from collections.abc import Collection

from replctl.catalog.pg_class import load_relations
from replctl.errors import PostgresError
from replctl.lake.table_folder import TableFolder
from replctl.lake.table_write import writing
from replctl.lake.undo import storage_of
from replctl.session import Session


def make_located(session: Session, oid: int) -> None:
    """Create the Delta table of a new relation with LOCATION; in a transaction block, at COMMIT."""
    if session.block is not None:
        session.block.located.add(oid)
    else:
        make_tables(session, [oid])


def make_tables(session: Session, oids: Collection[int]) -> None:
    """Create the Delta tables of committed relations that have none yet.  Their next write creates
    those for which it fails, and those on object storage, where that takes Spark.
    """
    with session.read() as catalog:
        relations = load_relations(catalog, oids)
    for relation in relations.values():
        storage = storage_of(relation)
        if storage.is_made or not TableFolder.of(storage.location).is_local:
            continue
        try:
            with writing(session, [relation], is_whole=False) as writer:
                writer.make_storage(relation.oid)
        except PostgresError as error:
            session.notice(
                f'the Delta table of "{relation.qualified_name}" could not be created yet',
                severity="WARNING",
                detail=error.message,
            )
