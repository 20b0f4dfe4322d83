"""The lines of `\\d` and `\\d+` about a relation's Delta table, which psql does not print."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from replctl.catalog.pg_class import Column, Relation
from replctl.errors import PostgresError
from replctl.lake.delta_log import UNREADABLE
from replctl.lake.delta_rules import DeltaRules, delta_rules
from replctl.record import dataclass
from replctl.types.delta_type import is_native, native_text
from replctl.types.quote import quote_identifier

if TYPE_CHECKING:
    from replctl.lake.delta_description import DeltaDescription


@dataclass(frozen=True, slots=True)
class DescribedRules:
    """The rules that another program gave to a relation's Delta table, in Spark's SQL.

    Attributes:
        relation: the relation.
        rules: the rules.  If Delta's log cannot be read, there are none, so that `\\d` still works.
        error: the error of reading Delta's log, if any.
    """

    relation: Relation
    rules: DeltaRules
    error: PostgresError | None = None

    @property
    def checks(self) -> list[str]:
        """Return the lines for the Delta table's CHECK constraints."""
        return [f'"{name}" CHECK ({text})' for name, text in self.rules.checks]

    def is_not_null(self, column: Column) -> bool:
        """Return whether the relation or the Delta table has NOT NULL for a column."""
        return column.not_null or self._name(column) in self.rules.not_null

    def value(self, column: Column) -> str | None:
        """Return the clause of a generated or identity column; None for other columns."""
        name = self._name(column)
        text, kind = dict(self.rules.generated).get(name), dict(self.rules.identity).get(name)
        if text is not None:
            return f"generated always as ({text}) stored"
        if kind is not None:
            return f"generated {kind.clause.lower()} as identity"
        return None

    def default(self, column: Column) -> str:
        """Return the default of a column in the Delta table; '' if it has none."""
        return dict(self.rules.defaults).get(self._name(column), "")

    def _name(self, column: Column) -> str:
        storage = self.relation.storage
        stored = None if storage is None else storage.columns.get(column.attnum)
        return "" if stored is None else stored.name


def described_rules(relation: Relation) -> DescribedRules:
    """Read the rules of a relation's Delta table for `\\d`."""
    try:
        return DescribedRules(relation, delta_rules(relation))
    except UNREADABLE as error:  # \d still shows the definition
        return DescribedRules(relation, DeltaRules(), error)


def native_lines(relation: Relation) -> list[str]:
    """Return the lines below `\\d+` with the Delta types of native columns."""
    columns = [column for column in relation.columns if is_native(column.type)]
    shown = (f"{quote_identifier(c.name)} {native_text(c.type)}" for c in columns)
    return [f"Delta types: {', '.join(shown)}"] if columns else []


def delta_lines(described: DescribedRules, verbose: bool) -> list[str]:
    """Return the lines below the output about the Delta table.  There are some if its log cannot be
    read, and for `\\d+` of a table with LOCATION.
    """
    storage = described.relation.storage
    if storage is None:
        return []
    title = f'Delta table: "{storage.location}"'
    if described.error is not None:
        return [title, _unreadable(described.error)]
    if not verbose or not storage.has_location:
        return []
    if not storage.is_made:
        return [title, "    The first write makes it."]
    from replctl.lake.delta_description import delta_description  # few relations need it

    try:
        found = delta_description(storage.location)
    except UNREADABLE as error:  # \d still shows the definition
        return [title, _unreadable(error)]
    return [title, *(f"    {line}" for line in _facts(found, storage.left_out))]


def _unreadable(error: PostgresError) -> str:
    detail = "" if error.detail is None else f" ({error.detail})"
    return f"    It cannot be read: {error.message}{detail}"


def _facts(found: DeltaDescription, left_out: Iterable[str]) -> list[str]:
    facts = {
        "Format": f"delta, reader version {found.reader}, writer version {found.writer}",
        "Table features": ", ".join(found.features),
        "Change data feed": "on" if found.has_feed else "off",
        "Table ID": found.table_id,
        "Partition columns": _names(found.partitions),
        "Clustering columns": _names(found.clustering),
        "Identity columns": ", ".join(
            f"{quote_identifier(name)} (start {start}, increment {step})"
            for name, start, step in found.identity
        ),
        "Columns left out": ", ".join(
            f"{quote_identifier(name)} {found.types[name]}"
            for name in left_out
            if name in found.types
        ),
    }
    return [f"{title}: {text}" for title, text in facts.items() if text]


def _names(columns: Iterable[str]) -> str:
    return ", ".join(map(quote_identifier, columns))
