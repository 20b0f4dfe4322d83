"""Check that a subscription's targets still have the rows that it has applied."""

from __future__ import annotations

from collections.abc import Iterable

from replctl.catalog.apply_step import raise_apply_step
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_inherits import ancestors_of
from replctl.catalog.pg_subscription import Subscription, subscription_relations
from replctl.catalog.pg_wal import has_forgotten_changes, last_logged_version
from replctl.catalog.transaction import Catalog
from replctl.errors import DataCorrupted, UndefinedFile
from replctl.lake import commit_log
from replctl.lake.delta_log import applied_step, written_step
from replctl.lake.foreign_files import ForeignFiles
from replctl.lake.partition_tree import partition_tree
from replctl.lake.target_fault import application_of, check_faults, targets_of
from replctl.lake.target_relations import leaves_of_root
from replctl.lake.version_chain import Chain, enter_loss, relation_chain
from replctl.replication.refresh_hint import offer_reconcile, refresh_hint
from replctl.session import Session

#: Delta's steps are signed 64-bit numbers; replctl's are far smaller.
_LARGEST_STEP = 2**62


def applied_leaves(
    catalog: Catalog, subscription: Subscription, relid: int | None
) -> dict[int, Relation]:
    """Return the tables that apply writes, by OID.

    Args:
        relid: only those of this table, which catches up after its copy; None: all tables to which
            apply writes.
    """
    roots = (
        targets_of(catalog, subscription)
        if relid is None
        else load_relations(catalog, [relid]).values()
    )
    return {
        leaf.oid: leaf
        for root in roots
        for leaf in leaves_of_root(root, partition_tree(catalog, root))
    }


class TargetCheck:
    """Checks the tables of a subscription against Delta's logs."""

    def __init__(self, session: Session, subscription: Subscription) -> None:
        self._session = session
        self._subscription = subscription

    def application(self, relid: int) -> str:
        """Return Delta's application id for the subscription's writes into a table."""
        identifier = self._session.cluster.system_identifier
        return application_of(identifier, self._subscription.oid, relid)

    def check_targets(self, relid: int | None = None) -> None:
        """Record commits of other programs in the commit log, and check that the applied rows still
        exist.  If nothing has changed, only list each table's log.

        Args:
            relid: check only this table, which catches up after its copy; None: check the tables
                that apply writes.

        Raises:
            ObjectNotInPrerequisiteState: another program has replaced the applied rows (55000).
            PostgresError: a table cannot be read (see commit_log.commits_since).
        """
        with self._session.read() as catalog:
            leaves = applied_leaves(catalog, self._subscription, relid)
            behind = commit_log.tables_behind(catalog, leaves)
        if behind:
            with self._session.cluster.write(self._session.database_oid) as catalog:
                self.enter(catalog, load_relations(catalog, behind).values())
        with self._session.read() as catalog:
            relids = None if relid is None else [relid]
            check_faults(catalog, self._subscription, relids)

    def enter(
        self, catalog: Catalog, relations: Iterable[Relation], *, is_replaced: bool = False
    ) -> None:
        """Record commits of other writers to tables.

        Args:
            is_replaced: all rows will be replaced.  In this case, ignore forbidden files for now,
                and record the loss of a missing table, so that the write creates it again.

        Raises:
            PostgresError: a table cannot be read (see commit_log.commits_since).
        """
        for relation in relations:
            try:
                self._enter(catalog, relation)
            except (ForeignFiles, UndefinedFile) as error:  # a write of all rows repairs both
                if not is_replaced:
                    error.hint = self._refresh(catalog, relation) or error.hint
                    raise
                if isinstance(error, UndefinedFile):
                    enter_loss(catalog, relation)

    def _enter(self, catalog: Catalog, relation: Relation) -> None:
        with commit_log.reading_log(catalog, relation):
            if commit_log.has_unlogged_versions(catalog, relation):
                self.pass_forgotten_steps(catalog, relation)
                commit_log.enter_versions(catalog, self._session.cluster, relation)

    def _refresh(self, catalog: Catalog, leaf: Relation) -> str | None:
        """Return the statement that replaces the rows of an unreadable leaf partition; None if the
        leaf does not belong to the subscription.
        """
        for root in self._members_above(catalog, leaf):
            return refresh_hint(self._subscription, root.relation_name, "replace = true")
        return None

    def _members_above(self, catalog: Catalog, leaf: Relation) -> Iterable[Relation]:
        """Return the tables of the subscription to which a leaf partition belongs."""
        above = {leaf.oid, *ancestors_of(catalog, leaf.oid)}
        members = subscription_relations(catalog, self._subscription.oid)
        return load_relations(catalog, above & {item.relid for item in members}).values()

    def pass_forgotten_steps(self, catalog: Catalog, leaf: Relation) -> None:
        """Skip the steps in a table's log that the catalog does not know, so that replctl does not
        use them again.
        """
        assert leaf.storage is not None
        location, application = leaf.storage.location, self.application(leaf.oid)
        if relation_chain(catalog, leaf) is Chain.CLEANED:
            steps = [written_step(location, application)]
        else:
            logged = last_logged_version(catalog.connection, leaf.oid)
            commits = commit_log.commits_since(
                catalog, self._session.cluster, leaf, logged, reads_files=False
            )
            steps = [applied_step(location, application, commit.version) for commit in commits]
        for step in steps:
            if step is not None and step < _LARGEST_STEP:  # a larger step is forged
                raise_apply_step(catalog, self._subscription.oid, leaf.oid, step)

    def check_history(self, catalog: Catalog, leaf: Relation) -> None:
        """Check that the catalog knows all writes of the subscription into a table.

        Raises:
            DataCorrupted: the catalog does not know all writes, so the table's progress is
                unknown (XX001).  This happens if an older catalog was restored.
        """
        known, name = self._subscription, leaf.qualified_name
        origins = (known.origin_name, known.table_origin_name(leaf.oid))
        if has_forgotten_changes(catalog, leaf.oid, origins):
            error = DataCorrupted(
                f'table "{name}" has changes of subscription "{known.name}" that the catalog lacks',
                detail="The catalog is older than the table.",
            )
            for root in self._members_above(catalog, leaf):
                offer_reconcile(error, known, root.relation_name)
            raise error
