r"""`\crosstabview`: a result whose rows become the cells of a grid (psql's crosstabview.c).

r | c | v             r | x | y
--+---+--            ---+---+---
a | x | 1      →      a | 1 | 2
a | y | 2             b |   | 3
b | y | 3
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from replctl.psql.print_content import Table
from replctl.psql.scan_slash import dequote
from replctl.psql.variables import PsqlError
from replctl.record import dataclass

_MAX_COLUMNS = 1600


@dataclass(frozen=True, slots=True)
class Crosstab:
    """The arguments of the command: the columns with row headers, column headers and values,
    and the column that sorts the column headers."""

    rows: str | None = None
    columns: str | None = None
    values: str | None = None
    sort: str | None = None


def crosstab(said: Crosstab, table: Table, null: str) -> Table:
    """Return a result as a grid.

    Args:
        null: the text that shows NULL.

    Raises:
        PsqlError: a column is missing, or two rows of the result belong to one cell.
    """
    names = table.columns
    if len(names) < 3:
        raise PsqlError("\\crosstabview: query must return at least three columns")
    row_field = 0 if said.rows is None else _column(said.rows, names)
    column_field = 1 if said.columns is None else _column(said.columns, names)
    if row_field == column_field:
        raise PsqlError("\\crosstabview: vertical and horizontal headers must be different columns")
    value_field = _value_field(said, names, row_field, column_field)
    sort_field = None if said.sort is None else _column(said.sort, names)
    row_names: dict[str | None, int] = {}
    column_names: dict[str | None, int] = {}
    ranks: dict[str | None, int] = {}
    for row in table.rows:
        row_names.setdefault(row[row_field], len(row_names))
        name = row[column_field]
        if name not in column_names:
            column_names[name] = len(column_names)
            ranks[name] = 0 if sort_field is None else _rank(row[sort_field])
        if len(column_names) > _MAX_COLUMNS:
            raise PsqlError(f"\\crosstabview: maximum number of columns ({_MAX_COLUMNS}) exceeded")
    ordered = sorted(column_names, key=lambda name: ranks[name])
    places = {name: number for number, name in enumerate(ordered)}
    cells: list[list[str | None]] = [[name, *[""] * len(ordered)] for name in row_names]
    is_filled: set[tuple[int, int]] = set()
    for row in table.rows:
        place = row_names[row[row_field]], places[row[column_field]]
        if place in is_filled:
            raise _filled(row[row_field], row[column_field], null)
        is_filled.add(place)
        cells[place[0]][place[1] + 1] = row[value_field]
    of_row, of_value = table.alignments[row_field], table.alignments[value_field]
    headers = [null if name is None else name for name in ordered]
    return Table([names[row_field], *headers], cells, [of_row, *[of_value] * len(ordered)])


def _filled(row: str | None, column: str | None, null: str) -> PsqlError:
    shown = [(null or "(null)") if value is None else value for value in (row, column)]
    return PsqlError(
        "\\crosstabview: query result contains multiple data values for row"
        f' "{shown[0]}", column "{shown[1]}"'
    )


def _value_field(said: Crosstab, names: Sequence[str], *headers: int) -> int:
    if said.values is not None:
        return _column(said.values, names)
    if len(names) > 3:
        raise PsqlError(
            "\\crosstabview: data column must be specified when query returns more than three"
            " columns"
        )
    return next(number for number in range(3) if number not in headers)


def _column(said: str, names: Sequence[str]) -> int:
    """Return the index of the column with a number or a name (indexOfColumn)."""
    if re.fullmatch(r"[0-9]+", said):
        number = int(said)
        if not 1 <= number <= len(names):
            raise PsqlError(
                f"\\crosstabview: column number {number} is out of range 1..{len(names)}"
            )
        return number - 1
    wanted = dequote(said, downcase=True)
    found = [number for number, name in enumerate(names) if name == wanted]
    if len(found) > 1:
        raise PsqlError(f'\\crosstabview: ambiguous column name: "{wanted}"')
    if not found:
        raise PsqlError(f'\\crosstabview: column name not found: "{wanted}"')
    return found[0]


def _rank(value: str | None) -> int:
    """Return the sort position of a column header; text that is not a number counts as 0."""
    return int(value) if value is not None and re.fullmatch(r"-?[0-9]+", value) else 0
