"""The views of information_schema, which the SQL standard defines (information_schema.sql)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from replctl.errors import FeatureNotSupported
from replctl.functions.function_context import FunctionContext
from replctl.query.information_schema import (
    columns,
    composites,
    domains,
    privileges,
    relations,
    routines,
    table_constraints,
    usage,
)
from replctl.query.information_schema.visibility import Row

#: Views that are always empty, such as those of triggers and foreign tables.
_EMPTY = frozenset(
    """_pg_foreign_data_wrappers _pg_foreign_servers _pg_foreign_table_columns _pg_foreign_tables
    _pg_user_mappings column_options
    foreign_data_wrapper_options foreign_data_wrappers
    foreign_server_options foreign_servers foreign_table_options foreign_tables
    routine_column_usage routine_routine_usage routine_sequence_usage routine_table_usage transforms
    triggered_update_columns triggers user_mapping_options
    user_mappings""".split()
)

_VIEWS: dict[str, Callable[[FunctionContext], Iterator[Row]]] = {
    **relations.VIEWS,
    **columns.VIEWS,
    **table_constraints.VIEWS,
    **domains.VIEWS,
    **composites.VIEWS,
    **privileges.VIEWS,
    **routines.VIEWS,
    **usage.VIEWS,
}


def information_schema(name: str) -> Callable[[FunctionContext], Iterator[Row]]:
    """Return a function that yields the rows of a view, as dicts without columns that are NULL.

    Raises:
        FeatureNotSupported: replctl does not have this view or table.
    """
    if name in _EMPTY:
        return lambda context: iter(())
    if name not in _VIEWS:
        kind = "table" if name.startswith("sql_") else "view"
        raise FeatureNotSupported(f'{kind} "information_schema.{name}" is not supported')
    return _VIEWS[name]
