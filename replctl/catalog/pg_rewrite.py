"""Read and write the definitions of views: their query trees as text."""

from __future__ import annotations

from replctl.catalog import schema
from replctl.catalog.transaction import Catalog

_SELECT_RULE = "_RETURN"


def view_rules(catalog: Catalog) -> dict[int, str]:
    """Return the query trees of all views and materialized views, by the view's OID."""
    table = schema.pg_rewrite
    rows = catalog.select(table, order_by=[table.c.oid])
    return {int(row.ev_class): str(row.ev_action) for row in rows}


def view_rule(catalog: Catalog, relid: int) -> str | None:
    """Return the query tree of a view."""
    row = catalog.first(schema.pg_rewrite, schema.pg_rewrite.c.ev_class == relid)
    return None if row is None else str(row.ev_action)


def put_view_rule(catalog: Catalog, relid: int, query: str) -> None:
    """Set or replace the query of a view."""
    table = schema.pg_rewrite
    if catalog.update(table, table.c.ev_class == relid, ev_action=query) == 0:
        catalog.insert(
            table,
            oid=catalog.new_oid(),
            rulename=_SELECT_RULE,
            ev_class=relid,
            ev_action=query,
        )
