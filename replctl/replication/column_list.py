"""Column lists: which columns of a table are published.

PostgreSQL's documentation, section 31.4, "Column Lists".
"""

from __future__ import annotations

from replctl.catalog.pg_class import Relation


def published_columns(relation: Relation, column_list: tuple[int, ...] | None) -> tuple[int, ...]:
    """Attnums of the columns that are sent: those of the list, or all; generated columns never
    are."""
    return tuple(
        column.attnum
        for column in relation.columns
        if not column.generated and (column_list is None or column.attnum in column_list)
    )
