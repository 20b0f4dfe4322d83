"""Column lists: find the published columns of a table.

PostgreSQL's documentation, section 31.4, "Column Lists".
"""

from __future__ import annotations

from replctl.catalog.pg_class import Relation


def published_columns(relation: Relation, column_list: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the attnums of the published columns: those of the list, or all without a list.
    Generated columns are never published.
    """
    return tuple(
        column.attnum
        for column in relation.columns
        if not column.generated and (column_list is None or column.attnum in column_list)
    )
