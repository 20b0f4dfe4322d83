"""Order DDL in the log: a definition takes effect after everything committed before it."""

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

    Commits of other writers enter the log first, so that they are decoded under the old
    definitions. This lists each table's log and does not need Spark.  Definitions by blocks of dead
    processes are undone before.  An unreadable table does not stop DDL, because it must be possible
    to drop it.
    """
    recover(session)
    with session.write() as catalog:
        relations = load_relations(catalog, relation_oids(catalog, "r")).values()
        commit_log.enter_readable(catalog, session.cluster, relations, catalog.xids.top)
        yield catalog
