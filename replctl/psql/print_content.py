"""Tables to print, their options, and the pieces of text that make up the output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from replctl.record import dataclass

Format: TypeAlias = Literal[
    "aligned",
    "unaligned",
    "csv",
    "wrapped",
    "html",
    "latex",
    "latex-longtable",
    "troff-ms",
    "asciidoc",
    "json",
]
Alignment: TypeAlias = Literal["l", "r"]


@dataclass(frozen=True, slots=True)
class Table:
    """The table to print.

    Args:
        columns: their names, which may contain newlines.
        rows: None is NULL; other values are in PostgreSQL's text form.
        alignments: "r" for columns of numbers (int2, int4, int8, float4, float8, numeric, oid, xid,
            xid8, cid, money), "l" for others; empty: all "l".
        title: printed before the title of the options.
        footers: lines below the table; None means the row count, if the options ask for it.
        notes: lines after the footers.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str | None]]
    alignments: Sequence[Alignment] = ()
    title: str | None = None
    footers: Sequence[str] | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """The options of `\\pset`, with psql's defaults.

    Args:
        columns: the width for wrapped and expanded "auto"; 0 for no limit (psql uses the terminal's
            width).
        record_separator: a zero byte also ends the last record.
    """

    format: Format = "aligned"
    expanded: Literal["off", "on", "auto"] = "off"
    border: int = 1
    linestyle: Literal["ascii", "unicode"] = "ascii"
    null: str = ""
    tuples_only: bool = False
    footer: bool = True
    title: str | None = None
    table_attributes: str | None = None
    numeric_locale: bool = False
    columns: int = 0
    field_separator: str = "|"
    record_separator: str = "\n"
    csv_field_separator: str = ","


class Header(str):
    """A piece of the output that names a column."""


class Rule(str):
    """A piece of the output that draws a line."""


class Null(str):
    """A value, and later a piece of the output, that represents NULL."""


class Content(NamedTuple):
    """A table with its options applied, for the formats.

    Args:
        title: None for no title.
        footers: the table's own.
        row_count: the line printed instead of footers; None if there are footers, or should be
            none. Formats that number the records omit it.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    alignments: Sequence[Alignment]
    title: str | None
    footers: Sequence[str]
    row_count: str | None
    options: PrintOptions

    @property
    def all_footers(self) -> Sequence[str]:
        """The footers or, if there are none, the row count."""
        return self.footers if self.row_count is None else (self.row_count, *self.footers)
