"""Read the tables of a query if they are small, so that SQLite can run the query.

Spark takes seconds to start, and a third of a second for a query of one row.  In SQLite, the
evaluator of row filters computes the expressions, so the answer is the same.
"""

from __future__ import annotations

from math import prod
from typing import Any

from replctl.catalog.pg_class import Column, Relation
from replctl.functions.function_context import FunctionContext
from replctl.query.sql import TABLEOID
from replctl.query.sqlite import SmallTable, SmallTables, is_answerable
from replctl.query.sqlite_value import stored
from replctl.query.tree import FromTable, Query, is_recursive, set_functions_of, tables_of

#: The setting for the maximum number of rows of a small table.
SETTING = "replctl.small_table_rows"
#: The maximum product of the numbers of rows of a query's tables: SQLite joins with nested loops.
_MOST_COMBINATIONS = 100_000


def small_tables(query: Query, context: FunctionContext) -> SmallTables | None:
    """Return the rows of all tables that a query reads; None if Spark has to run the query.

    Raises:
        PostgresError: a table cannot be read.
    """
    most = int(context.session.setting(SETTING))
    items = list(tables_of(query))
    tables = {(item.relation.oid, item.inherit): item for item in items}
    is_simple = (
        is_answerable(query, context.environment)
        and not any(item.is_catalog for item in items)
        and not is_recursive(query)
        and not any(set_functions_of(query))
    )
    if not most or not tables or not is_simple:
        return None
    found: SmallTables = {}
    for place, item in tables.items():
        table = _small_table(item, context, most)
        if table is None:
            return None
        found[place] = table
    sizes = (max(1, len(found[item.relation.oid, item.inherit].rows)) for item in items)
    return found if len(items) == 1 or prod(sizes) <= _MOST_COMBINATIONS else None


def _small_table(item: FromTable, context: FunctionContext, most: int) -> SmallTable | None:
    relation = item.relation
    assert isinstance(relation, Relation)
    # Queries of catalogs do not need these imports
    from replctl.lake.catalog_name import named_tables
    from replctl.lake.small_table import small_rows
    from replctl.lake.table_read import relation_leaves

    catalog = context.catalog
    leaves = relation_leaves(catalog, relation, inherit=item.inherit, cluster=context.cluster)
    if named_tables(catalog, [oid for oid, _source in leaves]):  # Spark knows where a name leads
        return None
    rows: list[list[Any]] = []
    for oid, source in leaves:
        numbers = [column.attnum for column in source.columns]
        found = small_rows(source, most - len(rows))
        if found is None:
            return None
        for row in found:
            values = dict(zip(numbers, row.values, strict=True))
            rows.append([*(_stored(c, values.get(c.attnum)) for c in relation.columns), oid])
    names = [*(f"c{column.attnum}" for column in relation.columns), f"c{TABLEOID}"]
    return SmallTable(tuple(names), rows)


def _stored(column: Column, value: str | None) -> Any:
    return None if value is None else stored(column.type, value)
