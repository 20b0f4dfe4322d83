"""The results of statements."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result: its name and the catalog name of its type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one statement.

    Attributes:
        tag: the command tag: `INSERT 0 1`, `CREATE TABLE`.
        columns: the columns of a query; None for a command that returns no rows.
        rows: values in the text form of their types; None for NULL.
    """

    tag: str
    columns: tuple[ResultColumn, ...] | None = None
    rows: Sequence[Sequence[str | None]] = ()

    @property
    def row_count(self) -> int:
        """Return the number of rows returned or changed: ROW_COUNT in psql."""
        if self.columns is not None:
            return len(self.rows)
        last = self.tag.rsplit(" ", 1)[-1]
        return int(last) if last.isdigit() else 0
