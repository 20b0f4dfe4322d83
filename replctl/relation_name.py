"""The qualified names of relations and domains."""

from __future__ import annotations

from typing import NamedTuple


class RelationName(NamedTuple):
    """The schema and the name of a relation, without its database."""

    schema: str
    name: str

    def __str__(self) -> str:
        """Return `schema.name` as in messages of logical replication, without quotes."""
        return f"{self.schema}.{self.name}"


class DomainName(NamedTuple):
    """The schema and the name of a domain, and its name in messages (format_type)."""

    schema: str
    name: str
    shown: str
