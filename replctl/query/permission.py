"""Check the privileges that a role needs to read and change the relations of a statement
(ExecCheckPermissions).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

from replctl.catalog.acl import Privilege
from replctl.catalog.aclchk import Privileges, denied, privileges_of
from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_policy import is_row_security_active
from replctl.catalog.relation_kind import RelKind
from replctl.catalog.system_privilege import has_on_system_relation, may_call_builtin
from replctl.expr import nodes
from replctl.query.query_rewrite import is_invoker, view_query
from replctl.query.row_policy import visible_rows
from replctl.query.tree import Query, tables_of, transform
from replctl.types import builtin
from replctl.types.builtin import SystemRelation


def check_query(environment: CatalogEnvironment, query: Query, reader: int | None = None) -> None:
    """Check that a role may read the relations of a query.  For a view, the role needs privileges
    on the view, and the view's owner needs privileges on the relations that the view reads.

    Args:
        reader: OID of the role; None for the current one.

    Raises:
        InsufficientPrivilege: the privilege is missing.
    """
    privileges = environment.privileges
    if reader is not None:
        privileges = privileges_of(environment.catalog, reader)
    _Check(environment, privileges).query(query, privileges)


def check_conditions(environment: CatalogEnvironment, conditions: Iterable[nodes.Expr]) -> None:
    """Check that the current role may read the relations in subqueries of policies' conditions.

    Raises:
        InsufficientPrivilege: the privilege is missing.
    """
    privileges = environment.privileges
    _Check(environment, privileges).conditions(conditions, privileges)


class _Check:
    """Checks the privileges for a role's query, through views and policies."""

    def __init__(self, environment: CatalogEnvironment, current: Privileges) -> None:
        """Create a check.

        Args:
            current: the role that runs the query. It reads views with security_invoker, even inside
                another role's view.
        """
        self._environment = environment
        self._current = current

    def query(
        self, query: Query, privileges: Privileges, within: frozenset[int] = frozenset()
    ) -> None:
        """Check the privileges for all relations that a query reads.

        Args:
            privileges: the privileges of the role that reads the query's relations.
            within: the tables whose policies contain the query.
        """
        used = used_columns(query)
        for table in tables_of(query):
            relation = table.relation
            if not isinstance(relation, Relation):
                _check_catalog(privileges, self._current, relation, used[table.varno])
                continue
            privileges.check_relation(relation, Privilege.SELECT, used[table.varno])
            if table.is_view:
                self._view(relation, within)
            elif relation.oid not in within and is_row_security_active(privileges, relation):
                conditions = visible_rows(privileges, relation, Privilege.SELECT, reads=True)
                self.conditions(conditions, privileges, within | {relation.oid})

    def conditions(
        self,
        conditions: Iterable[nodes.Expr],
        privileges: Privileges,
        within: frozenset[int] = frozenset(),
    ) -> None:
        for condition in conditions:
            for node in nodes.walk(condition):
                if isinstance(node, nodes.SubLink):
                    self.query(node.query, privileges, within)

    def _view(self, view: Relation, within: frozenset[int]) -> None:
        inner = view_query(self._environment.catalog, view)
        reader = self._current
        if not is_invoker(view):
            reader = privileges_of(self._environment.catalog, view.owner)
        self.query(inner, reader, within)


def _check_catalog(
    privileges: Privileges,
    current: Privileges,
    relation: SystemRelation,
    attnums: Collection[int],
) -> None:
    """Check access to catalogs that hold passwords, connection strings and files of the server.

    Args:
        current: the role that calls the functions of a system view.
    """
    every = range(1, len(relation.columns) + 1)
    chosen = [[a] for a in every] if not attnums else [attnums]  # count(*) needs any one column
    if not any(
        has_on_system_relation(privileges, relation, Privilege.SELECT, some) for some in chosen
    ):
        raise denied("table" if relation.kind == RelKind.TABLE else "view", relation.name)
    restricted = builtin.restricted_relations().get(relation.name)
    for oid in () if restricted is None else restricted.calls:
        if not may_call_builtin(current, oid):
            raise denied("function", builtin.function_by_oid()[oid].name)


def used_columns(query: Any) -> dict[int, set[int]]:
    """Return the attnums that a query, or a part of one, uses of each item in FROM, by varno."""
    used: dict[int, set[int]] = defaultdict(set)

    def note(part: Any) -> None:
        if isinstance(part, nodes.Var):
            used[part.varno].add(part.attnum)

    transform(query, note)
    return used


def check_change(
    privileges: Privileges,
    relation: Relation,
    privilege: Privilege,
    written: Collection[int] | None,
    read: Collection[int] | None,
) -> None:
    """Check that a role may change rows of a table.

    Args:
        privilege: INSERT, UPDATE or DELETE.
        written: the columns that get values; None for DELETE.
        read: the columns whose values the statement reads; None if there are none.

    Raises:
        InsufficientPrivilege: the privilege is missing.
    """
    privileges.check_relation(relation, privilege, written)
    if read is not None:
        privileges.check_relation(relation, Privilege.SELECT, read)
