"""Order DDL in the commit log: a definition takes effect after all earlier commits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from replctl.catalog.pg_class import load_relations, relation_oids
from replctl.catalog.relation_kind import RelKind
from replctl.catalog.transaction import Catalog
from replctl.lake import commit_log
from replctl.lake.recovery import recover
from replctl.session import Session


@contextmanager
def changing_definitions(session: Session) -> Iterator[Catalog]:
    """Yield the catalog, in which the `with` block can change definitions in one transaction.

    First undo the definitions of transaction blocks whose processes died.  Then record the commits
    of other writers, so that they are decoded under the old definitions.  This lists each table's
    log and does not need Spark.  An unreadable table does not stop DDL, because it must be possible
    to drop it.
    """
    recover(session)
    with session.write() as catalog:
        relations = load_relations(catalog, relation_oids(catalog, [RelKind.TABLE])).values()
        commit_log.enter_readable(catalog, session.cluster, relations, catalog.xids.top)
        yield catalog
