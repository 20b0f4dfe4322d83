"""The query of a view as text (pg_get_viewdef)."""

from __future__ import annotations

from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_class import Relation
from replctl.query.deparse_query import deparse_query
from replctl.query.query_rewrite import view_query


def view_definition(
    environment: CatalogEnvironment, view: Relation, *, is_pretty: bool = False
) -> str:
    """Return the query of a view, followed by a semicolon."""
    names = [column.name for column in view.columns]
    query = view_query(environment.catalog, view)
    return deparse_query(environment, query, names, is_pretty=is_pretty) + ";"
