"""Find the tables of a subscriber's database that receive the rows of published relations, and the
actions that a subscription may perform on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from replctl.catalog.acl import Privilege
from replctl.catalog.aclchk import Privileges, denied
from replctl.catalog.namespace import relation_named
from replctl.catalog.pg_authid import role_names
from replctl.catalog.pg_class import (
    Relation,
    load_relations,
)
from replctl.catalog.pg_inherits import ancestors_of, descendants_of
from replctl.catalog.pg_policy import is_row_security_active
from replctl.catalog.pg_subscription import Subscription, subscription_relations
from replctl.catalog.relation_kind import TABLE_KINDS
from replctl.catalog.transaction import Catalog
from replctl.errors import (
    FeatureNotSupported,
    InsufficientPrivilege,
    ObjectNotInPrerequisiteState,
    PostgresError,
    WrongObjectType,
)
from replctl.lake.delta_rules import append_only_error
from replctl.lake.partition_tree import partition_tree
from replctl.lake.replicated_table import ReplicatedTable
from replctl.relation_name import RelationName
from replctl.replication.node import RemoteRelation
from replctl.replication.update_transformation import Action
from replctl.session import Session

#: Local relations with their whole partition trees, by (schema, name) of the published relations.
PartitionTrees = dict[RelationName, tuple[Relation, dict[int, Relation]]]

#: The privileges that each action requires on the table (see TargetPrivilegesCheck).
_RIGHTS = {
    Action.INSERT: (Privilege.INSERT,),
    Action.UPDATE: (Privilege.SELECT, Privilege.UPDATE),
    Action.DELETE: (Privilege.SELECT, Privilege.DELETE),
    Action.TRUNCATE: (Privilege.TRUNCATE,),
}


class TargetRelations:
    """The tables that a subscription of a session's database writes into."""

    def __init__(self, session: Session, subscription: Subscription) -> None:
        self.session = session
        self._subscription = subscription

    def trees(self, names: Iterable[RelationName]) -> PartitionTrees:
        """Return the local tables of published relations, with their partition trees.

        Raises:
            ObjectNotInPrerequisiteState: a local table is missing (55000).
            WrongObjectType: the local relation is not a table (42809).
        """
        oids = {name: self._oid(name) for name in names}
        with self.session.read() as catalog:
            loaded = load_relations(catalog, oids.values())
            return {
                name: (loaded[oid], partition_tree(catalog, loaded[oid]))
                for name, oid in oids.items()
            }

    def table(self, remote: RemoteRelation) -> ReplicatedTable:
        """Return the local table of one published relation.

        Raises:
            ObjectNotInPrerequisiteState: the local table is missing, or lacks a sent column
                (55000).
            WrongObjectType: the local relation is not a table (42809).
        """
        ((root, tree),) = self.trees([remote.relation_name]).values()
        return ReplicatedTable(self.session, root, tree, remote, self.writer_of(root))

    def shares_leaves(self, root: Relation) -> bool:
        """Return whether a table shares a leaf partition with another table of the subscription."""
        if not root.is_partitioned and not root.parents:
            return False
        with self.session.read() as catalog:
            members = {m.relid for m in subscription_relations(catalog, self._subscription.oid)}
            related = {*ancestors_of(catalog, root.oid)}
            if root.is_partitioned:
                related |= {*descendants_of(catalog, root.oid)}
        return not members.isdisjoint(related - {root.oid})

    def writer_of(self, relation: Relation) -> int:
        """Return the OID of the role that writes a table: the table's owner, or the subscription's
        owner.
        """
        return self._subscription.owner if self._subscription.run_as_owner else relation.owner

    def denied_actions(
        self, relation: Relation, tree: Mapping[int, Relation] | None = None
    ) -> dict[Action, PostgresError]:
        """Return the actions that the subscription may not perform on a table, each
        with the error.  The table's owner needs the privileges.  For TRUNCATE and with
        run_as_owner, the subscription's owner needs them (SwitchToUntrustedUser,
        TargetPrivilegesCheck).

        Args:
            tree: the table's partitions, if their policies also matter.

        Raises:
            InsufficientPrivilege: the subscription's owner may not become the table's owner
                (42501).
        """
        with self.session.read() as catalog:
            owner, privileges = self._roles(catalog, relation)
            tables = (relation, *(tree or {}).values())
            found = {}
            leaves = leaves_of_root(relation, tree) if tree else [relation]
            for action, rights in _RIGHTS.items():
                if action is Action.TRUNCATE:  # it needs no privilege on the partitions
                    problem = _problem_of(owner, rights, [relation], tables)
                else:
                    problem = _problem_of(privileges, rights, leaves, tables)
                if problem is not None:
                    found[action] = problem
        for table in tables:
            for action in (Action.UPDATE, Action.DELETE, Action.TRUNCATE):
                error = append_only_error(table, action)
                if error is not None:
                    found.setdefault(action, error)
        return found

    def check_copy(self, relation: Relation) -> None:
        """Check that the subscription may copy rows into a table.

        Raises:
            PostgresError: the subscription may not write the table.
        """
        if (problem := self.denied_actions(relation).get(Action.INSERT)) is not None:
            raise problem

    def check_comparison(self, relation: Relation) -> None:
        """Check that the subscription may read the rows of a table, which differences show.  The
        subscription's owner needs USAGE of the schema.  The role that writes the table needs SELECT
        of all rows.

        Raises:
            InsufficientPrivilege: a privilege is missing, row security hides rows, or the
                subscription's owner may not become the table's owner (42501).
        """
        with self.session.read() as catalog:
            owner, writer = self._roles(catalog, relation)
            schema = relation.relation_name.schema
            owner.check_schema(relation.schema_oid, schema, Privilege.USAGE)
            writer.check_relation(relation, Privilege.SELECT)
            is_row_security_active(writer, relation, row_security="off")

    def _roles(self, catalog: Catalog, relation: Relation) -> tuple[Privileges, Privileges]:
        """Return the privileges of the subscription's owner, and of the role that writes a table.

        Raises:
            InsufficientPrivilege: the subscription's owner may not become the table's owner
                (42501).
        """
        owner = Privileges(catalog, self._subscription.owner)
        if not self._subscription.run_as_owner and not owner.may_become(relation.owner):
            names = role_names(catalog)
            raise InsufficientPrivilege(
                f'role "{names[self._subscription.owner]}" cannot SET ROLE to'
                f' "{names[relation.owner]}"'
            )
        return owner, Privileges(catalog, self.writer_of(relation))

    def _oid(self, published: RelationName) -> int:
        schema_name, name = target = self._subscription.table_map.target(published)
        with self.session.read() as catalog:
            relation = relation_named(catalog, schema_name, name)
        if relation is None:
            raise ObjectNotInPrerequisiteState(
                f'logical replication target relation "{schema_name}.{name}" does not exist',
                detail=None
                if target == published
                else f'It is the target of published table "{published}".',
            )
        if relation.kind not in TABLE_KINDS:
            raise WrongObjectType(
                f'cannot use relation "{schema_name}.{name}" as logical replication target',
                detail=f"This operation is not supported for {relation.kind.plural}.",
            )
        return relation.oid


def _problem_of(
    privileges: Privileges,
    rights: Sequence[Privilege],
    changed: Sequence[Relation],
    tables: Sequence[Relation],
) -> PostgresError | None:
    """Return the error if a role may not change a table: it lacks a privilege, or policies apply.

    Args:
        rights: the required privileges.
        changed: the tables on which the role needs them.
        tables: the table and its partitions.
    """
    for table in changed:
        if not all(privileges.has_on_relation(table, right) for right in rights):
            return denied("table", table.name)
    for table in tables:
        if is_row_security_active(privileges, table):
            return FeatureNotSupported(
                f'user "{privileges.role.name}" cannot replicate into relation with row-level'
                f' security enabled: "{table.name}"'
            )
    return None


def leaves_of_root(root: Relation, tree: Mapping[int, Relation]) -> list[Relation]:
    """Return the tables that contain a relation's rows: its leaf partitions, or itself."""
    if not root.is_partitioned:
        return [root]
    result = []
    for relation in tree.values():
        if root.oid in relation.parents:
            result += leaves_of_root(relation, tree)
    return result


def leaves_of_trees(trees: PartitionTrees) -> dict[int, Relation]:
    """Return the tables that contain the rows of relations, by OID."""
    found = (leaf for entry in trees.values() for leaf in leaves_of_root(*entry))
    return {leaf.oid: leaf for leaf in found}
