"""Find the views and policies that use an object, and the relations that a query reads (rows of
pg_depend from DefineRule() and CreatePolicy()).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from replctl.catalog.lock import LockMode, object_lock
from replctl.catalog.pg_class import get_relation
from replctl.catalog.pg_policy import list_policies
from replctl.catalog.pg_rewrite import view_rules
from replctl.catalog.transaction import Catalog
from replctl.expr import nodes
from replctl.query import stored
from replctl.query.row_policy import condition_query, policy_condition
from replctl.query.tree import FromTable, Query, tables_of, transform


def views_of_relation(catalog: Catalog, relid: int) -> list[int]:
    """Return the OIDs of the views that read a relation."""
    return _users(_views(catalog), _reads(relid))


def policies_of_relation(catalog: Catalog, relid: int) -> list[int]:
    """Return the OIDs of the policies of other relations that read a relation."""
    policies = [item for item in _policies(catalog) if item[1].from_[0].relation.oid != relid]  # type: ignore[union-attr]
    return _users(policies, _reads(relid))


def views_of_column(catalog: Catalog, relid: int, attnum: int) -> list[int]:
    """Return the OIDs of the views that use a column of a relation."""
    return _users(_views(catalog), _uses_column(relid, attnum))


def policies_of_column(catalog: Catalog, relid: int, attnum: int) -> list[int]:
    """Return the OIDs of the policies that use a column of a relation."""
    return _users(_policies(catalog), _uses_column(relid, attnum))


def views_with(catalog: Catalog, is_use: Callable[[Any], bool]) -> list[int]:
    """Return the OIDs of the views whose queries contain a matching node."""
    return _users(_views(catalog), lambda query: _has(query, is_use))


def policies_with(catalog: Catalog, is_use: Callable[[Any], bool]) -> list[int]:
    """Return the OIDs of the policies that contain a matching node."""
    return _users(_policies(catalog), lambda query: _has(query, is_use))


def views_of_types(catalog: Catalog, names: Collection[str | None]) -> list[int]:
    """Return the OIDs of the views whose queries name a type.  The types of columns that they read
    do not count.
    """
    return _users(_views(catalog), _names_type(names))


def policies_of_types(catalog: Catalog, names: Collection[str | None]) -> list[int]:
    """Return the OIDs of the policies that name a type."""
    return _users(_policies(catalog), _names_type(names))


def used_relations(query: Query) -> list[int]:
    """Return the OIDs of the relations that a query reads."""
    return list(_relids(query).values())


def use_relations(catalog: Catalog, query: Query) -> None:
    """Lock the relations that a query reads, so that no other session drops or changes them.

    Raises:
        TransactionInProgress: an open transaction of another session has changed one of them
            (55P03).
    """
    catalog.lock(
        {object_lock(catalog.database_oid, oid, LockMode.USE) for oid in used_relations(query)}
    )


def _views(catalog: Catalog) -> Iterator[tuple[int, Query]]:
    for oid, text in view_rules(catalog).items():
        yield oid, stored.loads(catalog, text)


def _policies(catalog: Catalog) -> Iterator[tuple[int, Query]]:
    """Yield each condition of each policy, in the form of a query of the policy's table."""
    for policy in list_policies(catalog):
        relation = get_relation(catalog, policy.relid)
        assert relation is not None
        for text in (policy.using, policy.check):
            if text is not None:
                yield policy.oid, condition_query(relation, policy_condition(catalog, text))


def _users(queries: Iterable[tuple[int, Query]], uses: Callable[[Query], bool]) -> list[int]:
    return list(dict.fromkeys(oid for oid, query in queries if uses(query)))


def _reads(relid: int) -> Callable[[Query], bool]:
    return lambda query: relid in _relids(query).values()


def _uses_column(relid: int, attnum: int) -> Callable[[Query], bool]:
    def uses(query: Query) -> bool:
        relids = _relids(query)
        return _has(
            query,
            lambda part: (
                isinstance(part, nodes.Var)
                and part.attnum == attnum
                and relids.get(part.varno) == relid
            ),
        )

    return uses


def _names_type(names: Collection[str | None]) -> Callable[[Query], bool]:
    return lambda query: _has(
        query,
        lambda part: not isinstance(part, nodes.Var) and getattr(part, "type", "") in names,
    )


def _relids(query: Query) -> dict[int, int]:
    """Return the OIDs of the relations that a query reads, by their numbers in FROM, which are
    unique in the query.
    """
    tables: list[FromTable] = list(tables_of(query))
    return {table.varno: table.relation.oid for table in tables}


def _has(query: Query, is_use: Callable[[Any], bool]) -> bool:
    found = False

    def look(part: Any) -> None:
        nonlocal found
        found = found or is_use(part)

    transform(query, look)
    return found
