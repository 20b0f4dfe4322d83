"""Create the Delta table of a relation with LOCATION together with the relation, without Spark, so
that other programs find the table immediately.
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
    """Create the Delta table of a new relation with LOCATION.  In a transaction block, create it at
    COMMIT.
    """
    if session.block is not None:
        session.block.located.add(oid)
    else:
        make_tables(session, [oid])


def make_tables(session: Session, oids: Collection[int]) -> None:
    """Create the Delta tables of committed relations that have none yet.

    If this fails, print a WARNING; the relation's next write creates the table.  That write also
    creates tables on object storage, because this needs Spark.
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
        except PostgresError as error:  # the first write tries again
            session.notice(
                f'the Delta table of "{relation.qualified_name}" could not be created yet',
                severity="WARNING",
                detail=error.message,
            )
