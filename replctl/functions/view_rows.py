"""The common code of all catalogs and system views.

A row is a dict of the columns that replctl knows.  Other columns have NULL, or the value that
PostgreSQL shows if a feature is not used.  Values have the form of functions.sql_functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import select

from replctl.catalog import schema_table
from replctl.catalog.acl import decode_acl
from replctl.catalog.aclchk import acl_items
from replctl.functions.function_context import FunctionContext
from replctl.types import text

Row = dict[str, Any]

#: Yields the rows of a catalog or view.
RowsOf = Callable[[FunctionContext], Iterator[Row]]


def in_order(
    rows: Iterable[Row], columns: Sequence[tuple[str, str]], defaults: Row
) -> Iterator[tuple[Any, ...]]:
    """Return rows as tuples of all columns, given the columns' names and types."""
    names = [name for name, _type in columns]
    template = dict.fromkeys(names) | defaults
    if len(names) == 1:  # itemgetter would not return a tuple
        return (((template | row)[names[0]],) for row in rows)
    values = itemgetter(*names)
    return (values(template | row) for row in rows)


def stored_rows(context: FunctionContext, name: str) -> Iterator[Row]:
    """Yield the rows of one of replctl's tables that the statement can see."""
    catalog = context.catalog
    for row in catalog.connection.execute(
        select(catalog.rows_of(schema_table.metadata.tables[name]))
    ):
        values = dict(row._mapping)
        acl = _ACL_COLUMNS.get(name)
        if acl is not None and values[acl] is not None:
            values[acl] = array_text(acl_items(catalog, decode_acl(values[acl])) or [])
        yield values


_ACL_COLUMNS = {
    "pg_class": "relacl",
    "pg_attribute": "attacl",
    "pg_namespace": "nspacl",
    "pg_database": "datacl",
    "pg_proc": "proacl",
    "pg_type": "typacl",
    "pg_default_acl": "defaclacl",
}


def array_text(items: list[Any], type_name: str = "_text") -> str:
    """Return an array as text: ["a", "b"] -> `{a,b}`."""
    return text.render(type_name, items)
