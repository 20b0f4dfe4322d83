"""Whether a role may read and change what a statement names (ExecCheckPermissions)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

from replctl.catalog.aclchk import Privileges, denied
from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_policy import is_row_security_active
from replctl.expr import nodes
from replctl.query.policy import visible_rows
from replctl.query.rewrite import is_invoker, view_query
from replctl.query.tree import Query, functions_of, tables_of, transform
from replctl.types import builtin
from replctl.types.builtin import SystemRelation


def check_query(environment: CatalogEnvironment, query: Query, reader: int | None = None) -> None:
    """Check that a role may read what a query reads: of a view the view, and the view's owner what
    is behind it.

    Args:
        reader: OID of the role; None for the current one.

    Raises:
        InsufficientPrivilege: it may not.
    """
    privileges = environment.privileges
    if reader is not None:
        privileges = environment.privileges_of(reader)
    _check(environment, query, privileges)
    _check_functions(privileges, query)


def check_conditions(
    environment: CatalogEnvironment,
    conditions: Iterable[nodes.Expr],
    privileges: Privileges | None = None,
    within: frozenset[int] = frozenset(),
) -> None:
    """Whether a role, by default the current one, may read what the conditions of policies read.

    Raises:
        InsufficientPrivilege: it may not.
    """
    for condition in conditions:
        for node in nodes.walk(condition):
            if isinstance(node, nodes.SubLink):
                _check(environment, node.query, privileges or environment.privileges, within)


def _check(
    environment: CatalogEnvironment,
    query: Query,
    privileges: Privileges,
    within: frozenset[int] = frozenset(),
) -> None:
    """
    Args:
        within: the tables whose policies the query is a part of.
    """
    used = used_columns(query)
    for table in tables_of(query):
        relation = table.relation
        if not isinstance(relation, Relation):
            _check_catalog(privileges, relation, used[table.varno])
            continue
        privileges.check_relation(relation, "r", used[table.varno])
        if table.is_view:
            owner = environment.privileges_of(relation.owner)
            inner = view_query(environment.catalog, relation)
            _check_functions(environment.privileges, inner)
            if not (privileges.is_superuser and (is_invoker(relation) or owner.is_superuser)):
                reader = privileges if is_invoker(relation) else owner
                _check(environment, inner, reader, within)
        elif relation.oid not in within and is_row_security_active(privileges, relation):
            conditions = visible_rows(privileges, relation, "r", reads=True)
            check_conditions(environment, conditions, privileges, within | {relation.oid})


def _check_catalog(
    privileges: Privileges, relation: SystemRelation, attnums: Collection[int]
) -> None:
    """Passwords, connection strings and the server's files are not for everybody."""
    readable = builtin.restricted_relations().get(relation.name)
    if readable is None or privileges.is_superuser or relation.schema != "pg_catalog":
        return
    names = [name for name, _type in relation.columns]
    if not attnums and readable != {""}:  # count(*) needs one column that may be read
        return
    if not attnums or any(attnum < 1 or names[attnum - 1] not in readable for attnum in attnums):
        raise denied("table" if relation.kind == "r" else "view", relation.name)


def _check_functions(privileges: Privileges, query: Query) -> None:
    """Check the built-in functions of a query (ExecInitFunc)."""
    if privileges.is_superuser:
        return
    for call in functions_of(query):
        if isinstance(call, nodes.FuncExpr) and (
            call.function_oid in builtin.restricted_functions()
        ):
            raise denied("function", call.name)


def used_columns(query: Any) -> dict[int, set[int]]:
    """The columns that a query, or a part of one, uses of each item in FROM."""
    used: dict[int, set[int]] = defaultdict(set)

    def note(part: Any) -> None:
        if isinstance(part, nodes.Var):
            used[part.varno].add(part.attnum)

    transform(query, note)
    return used


def check_change(
    privileges: Privileges,
    relation: Relation,
    letter: str,
    written: Collection[int] | None,
    read: Collection[int] | None,
) -> None:
    """Whether a role may change rows of a table.

    Args:
        letter: of the privilege: a, w or d.
        written: the columns that get values; None for DELETE.
        read: the columns whose values decide; None if none is looked at.

    Raises:
        InsufficientPrivilege: it may not.
    """
    privileges.check_relation(relation, letter, written)
    if read is not None:
        privileges.check_relation(relation, "r", read)
