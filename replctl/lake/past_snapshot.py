"""Find the versions of a publisher's tables at a past LSN."""

from __future__ import annotations

from replctl.catalog.namespace import relation_named
from replctl.catalog.pg_class import leaf_partitions
from replctl.catalog.pg_wal import version_at
from replctl.errors import UndefinedTable
from replctl.relation_name import RelationName
from replctl.replication.node import Snapshot
from replctl.session import Session


def past_snapshot(session: Session, name: RelationName, lsn: int) -> Snapshot:
    """Return a snapshot with the version of each leaf partition of a relation at an LSN.

    Raises:
        UndefinedTable: there was no such relation.
    """
    with session.read() as current:
        catalog = current.as_of(lsn)
        relation = relation_named(catalog, *name)
        if relation is None:
            raise UndefinedTable(f'relation "{name}" does not exist on the publisher')
        leaves = leaf_partitions(catalog, relation)
        versions = {str(leaf.oid): version_at(current, leaf.oid, lsn) for leaf in leaves}
    return Snapshot(lsn, {"versions": versions})
