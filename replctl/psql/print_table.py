"""Print query results and the tables of `\\d` commands, byte for byte like psql.

The rows ("1", None) and ("22", "x") of the columns n and t become

     n  | t
    ----+---
      1 |
     22 | x
    (2 rows)

The formats are in print_aligned (aligned, wrapped, expanded), print_markup (html, latex, troff,
asciidoc) and print_records (unaligned, csv, json), as in print.c.  Each format yields pieces of
text.  Pieces that have a style on a terminal have their own class.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO, assert_never

from replctl.psql import print_aligned, print_markup, print_records
from replctl.psql.print_content import Content, Header, Null, PrintOptions, Rule, Table


def print_table(out: TextIO, table: Table, options: PrintOptions, *, styled: bool = False) -> None:
    """Write `table` to `out`.  If `styled`, use bold headers and dim lines and nulls, for a
    terminal.
    """
    pieces = _formatter(options)(_content(table, options))
    out.writelines(_styled(pieces) if styled else pieces)


def _formatter(options: PrintOptions) -> Callable[[Content], Iterable[str]]:
    is_expanded = options.expanded == "on"
    match options.format:
        case "aligned" | "wrapped":
            return print_aligned.expanded if is_expanded else print_aligned.aligned
        case "unaligned":
            return print_records.unaligned_expanded if is_expanded else print_records.unaligned
        case "csv":
            return print_records.csv_expanded if is_expanded else print_records.csv
        case "json":
            return print_records.json
        case "html":
            return print_markup.html_expanded if is_expanded else print_markup.html
        case "latex":
            return print_markup.latex_expanded if is_expanded else print_markup.latex
        case "latex-longtable":
            return print_markup.latex_expanded if is_expanded else print_markup.longtable
        case "troff-ms":
            return print_markup.troff_expanded if is_expanded else print_markup.troff
        case "asciidoc":
            return print_markup.asciidoc_expanded if is_expanded else print_markup.asciidoc
    assert_never(options.format)


def _content(table: Table, options: PrintOptions) -> Content:
    null = Null(options.null)
    alignments = table.alignments or ["l"] * len(table.columns)
    rows = [[null if value is None else value for value in row] for row in table.rows]
    if options.numeric_locale and options.format != "json":
        for row in rows:
            row[:] = [_grouped(v) if a == "r" else v for v, a in zip(row, alignments, strict=True)]
    title = table.title if table.title is not None else options.title
    footers = table.footers
    count = len(rows)
    has_row_count = footers is None and options.footer and not options.tuples_only
    return Content(
        columns=table.columns,
        rows=rows,
        alignments=alignments,
        title=None if options.tuples_only else title,
        footers=() if options.tuples_only else (*(footers or ()), *table.notes),
        row_count=f"({count} row{'' if count == 1 else 's'})" if has_row_count else None,
        options=options,
    )


def _grouped(number: str) -> str:
    """Group the digits of a number as psql does in locale C: `-1234567.25` -> `-1,234,567.25`."""
    match = re.fullmatch(r"([-+]?)([0-9]*)([-+.eE0-9]*)", number)
    if match is None or isinstance(number, Null):
        return number
    sign, integer, rest = match.groups()
    first = len(integer) % 3
    groups = [integer[:first]] if first else []
    groups += [integer[start : start + 3] for start in range(first, len(integer), 3)]
    return sign + ",".join(groups) + rest


def _styled(pieces: Iterable[str]) -> Iterator[str]:
    from rich.style import Style

    styles = {Header: Style(bold=True), Rule: Style(dim=True), Null: Style(dim=True)}
    for piece in pieces:
        style = styles.get(type(piece))
        yield piece if style is None else style.render(piece)
