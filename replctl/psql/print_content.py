"""Tables to print, the options of printing, and the pieces of text in the output."""

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
UnicodeLines: TypeAlias = Literal["single", "double"]


@dataclass(frozen=True, slots=True)
class Table:
    """The table to print.

    Args:
        columns: the names of the columns, which may contain newlines.
        rows: the values in PostgreSQL's text form; None for NULL.
        alignments: "r" for columns of numbers (int2, int4, int8, float4, float8, numeric, oid, xid,
            xid8, cid, money), "l" for others; if empty, "l" for all.
        title: a title, which takes precedence over the title of the options.
        footers: lines below the table; None for the row count, if the options have it.
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
        columns: the width for the format wrapped and for expanded "auto"; 0 for no limit (psql uses
            the terminal's width).
        record_separator: a zero byte also ends the last record.
    """

    format: Format = "aligned"
    expanded: Literal["off", "on", "auto"] = "off"
    border: int = 1
    linestyle: Literal["ascii", "unicode"] = "ascii"
    unicode_border_linestyle: UnicodeLines = "single"
    unicode_column_linestyle: UnicodeLines = "single"
    unicode_header_linestyle: UnicodeLines = "single"
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
    """A value that represents NULL; also the piece of the output for this value."""


class Content(NamedTuple):
    """The content of a table after its options were applied, for the formats.

    Args:
        title: the title; None for no title.
        footers: the table's own footers.
        row_count: the line that replaces missing footers; None if there are footers, or if there
            should be none.  Formats that number the records omit this line.
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
        """Return the footers or, if there are none, the row count."""
        return self.footers if self.row_count is None else (self.row_count, *self.footers)
