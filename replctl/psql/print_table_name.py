"""The names of a table of a subscription and of the published one, which may be different."""

from __future__ import annotations

from replctl.catalog.table_map import shown_pair
from replctl.relation_name import RelationName


def shown_table(target: RelationName, published: RelationName) -> str:
    """Return what a cell shows: the table's own name, or both as table_map has them."""
    return str(target) if target == published else shown_pair(published, target)


def published_fields(published: RelationName) -> dict[str, str]:
    """Return the published table, under names for programs."""
    return dict(zip(("schema", "name"), published, strict=True))
