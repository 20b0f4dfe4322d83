"""Keep the difference that a reconcile finds.  If other writers commit meanwhile, compare again
only the keys that they changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, cast

from replctl import spark
from replctl.catalog.pg_class import Relation
from replctl.lake.feed_choice import chosen_feeds
from replctl.lake.replicated_table import ReplicatedTable
from replctl.lake.table_read import numbered_as
from replctl.lake.undo import commits_since
from replctl.record import dataclass
from replctl.replication.node import Rows
from replctl.session import Session
from replctl.spark import FeedVersion, ForeignChanges, Mending, SparkQuery

if TYPE_CHECKING:
    from replctl.spark import Staged


@dataclass(frozen=True, slots=True)
class _Found:
    """A difference, the changes that the reconcile may make, and the compared versions of the leaf
    partitions.
    """

    difference: Staged
    mending: Mending
    versions: Mapping[int, int | None]


class Reconciliation:
    """The differences between a table and the published rows.

    Args:
        stack: the rows of the differences remain valid until it closes.
        xid: the transaction that will write the differences.
    """

    def __init__(self, session: Session, stack: ExitStack, xid: int) -> None:
        self._session = session
        self._stack = stack
        self._xid = xid
        self._found: _Found | None = None

    def difference(
        self,
        table: ReplicatedTable,
        rows: Rows,
        mending: Mending,
        relations: Mapping[int, Relation],
        versions: Mapping[int, int | None],
    ) -> Staged:
        """Return the current difference between a table and the published rows.

        Args:
            rows: the query of the published rows.
            mending: the changes that the reconcile may make.
            relations: the leaf partitions, by OID.
            versions: the newest versions of the leaf partitions, by OID.
        """
        engine = self._session.engine()
        target, sent, query = table.target, table.sent, cast(SparkQuery, rows)
        found = self._found
        changes = None if found is None else self._foreign_changes(table, mending, relations)
        if found is None or changes is None:
            compared = spark.jobs.difference(engine, target, sent, query, mending)
        elif changes:
            compared = spark.jobs.renewed_difference(
                engine, target, sent, query, mending, found.difference, changes
            )
        else:
            return found.difference
        difference = self._stack.enter_context(compared)
        self._found = _Found(difference, mending, dict(versions))
        return difference

    def _foreign_changes(
        self, table: ReplicatedTable, mending: Mending, relations: Mapping[int, Relation]
    ) -> list[ForeignChanges] | None:
        """Return the changes of other writers since the last comparison.  Return None if all rows
        must be compared again: rows are not matched by a key, the schema changed, or the reconcile
        may now make other changes.
        """
        found = self._found
        assert found is not None
        if not table.target.key or not _is_narrower(mending, found.mending):
            return None
        result = []
        for relid, relation in relations.items():
            if relid in table.done or relation.storage is None:
                continue
            commits = [
                commit
                for commit in commits_since(self._session, relation, found.versions.get(relid))
                if not commit.is_of(self._xid)
            ]
            if any(commit.changes_schema for commit in commits):
                return None
            changed = [
                FeedVersion(commit.version, 1, is_compared=not commit.has_feed)
                for commit in commits
                if commit.changes_data
            ]
            if changed:
                leaf = numbered_as(table.relation, relation)
                place = self._session.engine().place_log
                feeds = chosen_feeds(relation, changed, place, is_shared=True)
                result.append(ForeignChanges(leaf, feeds))
        return result


def _is_narrower(mending: Mending, earlier: Mending) -> bool:
    """Return whether the reconcile may make the same changes as before, or fewer.  In this case the
    new difference is a part of the old one.
    """
    may_narrow = earlier.deletes == () and mending.deletes is not None
    return mending.updates == earlier.updates and (mending.deletes == earlier.deletes or may_narrow)
