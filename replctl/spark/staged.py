"""Descriptions of rows that replctl keeps for several jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from replctl.record import dataclass
from replctl.spark.data_type import element_type, quote, storage_type, value_literal
from replctl.spark.spark_query import Query, reading

if TYPE_CHECKING:
    import pyarrow as pa


class StagedColumn(NamedTuple):
    """A column of a query to be computed once: its name in the query, and its PostgreSQL type."""

    name: str
    type: str
    typmod: int = -1


@dataclass(frozen=True, slots=True)
class Staged:
    """The rows of a query that was computed once.

    Attributes:
        source: the name of the temporary view with the rows, or a function that makes the view when
            SQL first needs it, and returns its name; or a query for the rows.
        columns: the columns of the view.
        rows: the rows in wire form (data_type.wire) if they are few, else None.
    """

    source: str | Callable[[], str] | Query
    columns: tuple[StagedColumn, ...]
    rows: pa.Table | None

    @property
    def view(self) -> str:
        """Return the name of the temporary view with the rows, or a query in parentheses, for
        SQL."""
        if isinstance(self.source, Query):
            return f"({self.source})"
        return self.source if isinstance(self.source, str) else self.source()

    @property
    def query(self) -> Query:
        """Return a query for the rows."""
        rows = view_rows(self.view)
        return reading(rows.sql, self.source) if isinstance(self.source, Query) else rows

    @property
    def is_small(self) -> bool:
        return self.rows is not None

    def values(self, name: str) -> list[Any]:
        """Return the values of a column, in wire form.  The rows must be few."""
        assert self.rows is not None
        values: list[Any] = self.rows.column(name).to_pylist()
        return values

    def literals(self, name: str) -> list[str]:
        """Return the values of a column as Spark literals.  The rows must be few."""
        column = next(column for column in self.columns if column.name == name)
        return [wire_literal(column.type, column.typmod, value) for value in self.values(name)]


def view_rows(view: str) -> Query:
    """Return a query for the rows of a view that keeps rows."""
    return Query(f"SELECT * FROM {view}", views=frozenset({view}))


def wire_literal(type_name: str, typmod: int, value: Any) -> str:
    """Convert a value from its wire form to a Spark literal."""
    if value is None:
        return value_literal(type_name, typmod, None)
    if isinstance(value, str):  # the wire form is the stored form
        return quote(value)
    element = element_type(type_name)
    if element is not None:
        items = ", ".join(wire_literal(element, typmod, item) for item in value)
        return f"CAST(array({items}) AS {storage_type(type_name, typmod)})"
    if type_name == "interval":
        value = (value["m"], value["d"], value["us"])
    return value_literal(type_name, typmod, value)
