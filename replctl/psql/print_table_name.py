"""The names of a table of a subscription and of the published one, which may be different."""

from __future__ import annotations

from replctl.catalog.table_map import Name, shown_pair


def shown_table(target: Name, published: Name) -> str:
    """Return what a cell shows: the table's own name, or both as table_map has them."""
    return ".".join(target) if target == published else shown_pair(published, target)


def published_fields(published: Name) -> dict[str, str]:
    """Return the published table, under names for programs."""
    return dict(zip(("schema", "name"), published, strict=True))
