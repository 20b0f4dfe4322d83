"""Describe the part of a row that an error may show to a role (execMain.c, genam.c,
ri_triggers.c)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from replctl.catalog.acl import Privilege
from replctl.catalog.aclchk import Privileges
from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.pg_policy import is_row_security_active
from replctl.record import dataclass
from replctl.types.quote import quote_identifier
from replctl.types.shown import shown
from replctl.types.value_format import CANONICAL, ValueFormat

_MAX_FIELD_LENGTH = 64  # bytes of a value that are shown


@dataclass(frozen=True, slots=True)
class RowReader:
    """Describes rejected rows for the role that sees the error.

    Attributes:
        privileges: the role's privileges.
        supplied: names of the columns whose values the role's statement supplies.
        named: the table that the statement names, if the row may belong to a descendant of it.  In
            this case the row is shown as a row of the named table.
        value_format: the output format of values.
    """

    privileges: Privileges
    supplied: Collection[str] = ()
    named: Relation | None = None
    value_format: ValueFormat = CANONICAL

    def row(self, relation: Relation, values: Mapping[int, str | None]) -> str | None:
        """Describe a row: `(1, null)`, or `(a, b) = (1, null)` if the role may see only some
        columns.  Return None if it may see none (ExecBuildSlotValueDescription).

        Args:
            values: the values of the row, by attnum of `relation`.
        """
        described = self.named or relation
        if is_row_security_active(self.privileges, described):
            return None
        by_name = {
            c.name: self._value(c, values[c.attnum]) for c in relation.columns if c.attnum in values
        }
        columns = [column for column in described.columns if column.name in by_name]
        if self._may_read(described):
            return _values([by_name[column.name] for column in columns])
        shown = [
            column.name
            for column in columns
            if column.name in self.supplied or self._may_read(described, [column.attnum])
        ]
        if not shown:
            return None
        return f"({', '.join(shown)}) = {_values([by_name[name] for name in shown])}"

    def key(
        self, relation: Relation, names: Sequence[str], values: Sequence[str | None], sep: str = "="
    ) -> str | None:
        """Describe a key: `(a, b)=(1, null)`.  Return None if the role may not see all columns
        (BuildIndexValueDescription, ExecBuildSlotPartitionKeyDescription).

        Args:
            relation: the table or partition that has the columns.
            names: the names of the key's columns.
            sep: the separator between names and values.
        """
        if is_row_security_active(self.privileges, relation):
            return None
        columns = [relation.column(name) for name in names]
        attnums = [column.attnum for column in columns if column is not None]
        if not self._may_read(relation) and (
            len(attnums) < len(names) or not self._may_read(relation, attnums)
        ):
            return None
        texts = [
            value if column is None else self._value(column, value)
            for column, value in zip(columns, values, strict=True)
        ]
        return f"({', '.join(map(quote_identifier, names))}){sep}{_values(texts)}"

    def _value(self, column: Column, value: str | None) -> str | None:
        return None if value is None else shown(column.type, value, self.value_format)

    def _may_read(self, relation: Relation, attnums: Sequence[int] | None = None) -> bool:
        return self.privileges.has_on_relation(relation, Privilege.SELECT, attnums)


def _values(values: Sequence[str | None]) -> str:
    return f"({', '.join(map(_shown, values))})"


def _shown(value: str | None) -> str:
    if value is None:
        return "null"
    encoded = value.encode()
    if len(encoded) <= _MAX_FIELD_LENGTH:
        return value
    return encoded[:_MAX_FIELD_LENGTH].decode(errors="ignore") + "..."
