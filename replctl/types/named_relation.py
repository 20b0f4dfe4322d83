"""Give the forms of a relation's qualified name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replctl.relation_name import RelationName
from replctl.types.quote import quote_qualified_identifier


class NamedRelation:
    """A base of the classes that describe a relation, with its schema and its name."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def schema(self) -> str: ...

        @property
        def name(self) -> str: ...

    @property
    def relation_name(self) -> RelationName:
        """Return schema and name."""
        return RelationName(self.schema, self.name)

    @property
    def qualified_name(self) -> str:
        """Return `schema.name` as in messages of logical replication, without quotes."""
        return str(self.relation_name)

    @property
    def quoted_name(self) -> str:
        """Return `schema.name` as in SQL, with quotes if necessary."""
        return quote_qualified_identifier(self.schema, self.name)
