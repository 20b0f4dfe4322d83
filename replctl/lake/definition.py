"""DDL meets the log: a definition takes effect behind everything that was committed before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from replctl.catalog.pg_class import load_relations, relation_oids
from replctl.catalog.transaction import Catalog
from replctl.lake import commit_log
from replctl.lake.recovery import recover
from replctl.session import Session


@contextmanager
def changing_definitions(session: Session) -> Iterator[Catalog]:
    """Yield the catalogs to change by DDL, as one transaction.

    What others have committed to tables so far enters the log first, so that it is decoded under
    the definitions that were in force then: a listing of each table's log, no Spark.  What blocks
    of dead processes have defined is taken back before.  A table that cannot be read stops no
    DDL: it has to be possible to drop it.
    """
    recover(session)
    with session.write() as catalog:
        relations = load_relations(catalog, relation_oids(catalog, "r")).values()
        commit_log.enter_readable(catalog, session.cluster, relations, catalog.xids.top)
        yield catalog
