"""Print the name of a subscription's table, and the name of its published table if that differs."""

from __future__ import annotations

from replctl.catalog.table_map import shown_pair
from replctl.relation_name import RelationName


def shown_table(target: RelationName, published: RelationName) -> str:
    """Return the text of a cell: the table's name or, if the names differ, both as in table_map."""
    return str(target) if target == published else shown_pair(published, target)


def published_fields(published: RelationName) -> dict[str, str]:
    """Return schema and name of the published table as JSON fields."""
    return dict(zip(("schema", "name"), published, strict=True))
