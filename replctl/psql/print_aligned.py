"""The formats for people: aligned columns, optionally wrapped to a width, and expanded records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from replctl.psql.display import Line, display_lines, display_width
from replctl.psql.print_content import Content, Header, Null, PrintOptions, Rule


class _RuleStyle(NamedTuple):
    """The characters of a horizontal line."""

    dash: str
    left: str
    crossing: str
    right: str


class _LineStyle(NamedTuple):
    """The characters of a line style."""

    edge: str  # the vertical line at both ends of a row
    vertical: str  # the line between columns
    top: _RuleStyle
    middle: _RuleStyle
    bottom: _RuleStyle
    newline: str  # after a line that ends with a newline of the value
    wrap: str  # after a wrapped line, and before its continuation


_ASCII_RULE = _RuleStyle("-", "+", "+", "+")
_ASCII = _LineStyle("|", "|", _ASCII_RULE, _ASCII_RULE, _ASCII_RULE, newline="+", wrap=".")
#: Characters of single and double lines; a pair is for two styles (unicode_style in print.c).
_DASHES = {"single": "─", "double": "═"}
_VERTICALS = {"single": "│", "double": "║"}
#: border -> corners at the top and at the bottom.
_CORNERS = {"single": ("┌┐", "└┘"), "double": ("╔╗", "╚╝")}
#: header, border -> the ends of the line below the header.
_ENDS = {
    ("single", "single"): "├┤",
    ("single", "double"): "╟╢",
    ("double", "single"): "╞╡",
    ("double", "double"): "╠╣",
}
#: column, and border or header -> the crossings at the top, in the middle and at the bottom.
_CROSSINGS = {
    ("single", "single"): "┬┼┴",
    ("single", "double"): "╤╪╧",
    ("double", "single"): "╥╫╨",
    ("double", "double"): "╦╬╩",
}


def _line_style(options: PrintOptions) -> _LineStyle:
    """Return the line style of some options (refresh_utf8format)."""
    if options.linestyle == "ascii":
        return _ASCII
    border, column = options.unicode_border_linestyle, options.unicode_column_linestyle
    header = options.unicode_header_linestyle
    over, under = _CORNERS[border]
    ends, dash = _ENDS[header, border], _DASHES[border]
    return _LineStyle(
        _VERTICALS[border],
        _VERTICALS[column],
        top=_RuleStyle(dash, over[0], _CROSSINGS[column, border][0], over[1]),
        middle=_RuleStyle(_DASHES[header], ends[0], _CROSSINGS[column, header][1], ends[1]),
        bottom=_RuleStyle(dash, under[0], _CROSSINGS[column, border][2], under[1]),
        newline="↵",
        wrap="…",
    )


# Minimum width of the values of wrapped expanded records.
_MIN_VALUE_WIDTH = 3


def aligned(content: Content) -> Iterator[str]:
    """Yield a line for each row, in aligned columns; or records if expanded is "auto" and the table
    is too wide.

     n  | t
    ----+---
     22 | x
    """
    options = content.options
    grid = _Grid(content)
    widest = max(grid.width, grid.header_width)
    if options.expanded == "auto" and len(content.columns) > 1 and 0 < options.columns < widest:
        yield from expanded(content)
        return
    if content.title is not None:
        indent = (grid.width - display_width(content.title)) // 2
        yield f"{' ' * indent}{content.title}\n"
    if not options.tuples_only:
        if grid.border == 2:
            yield from grid.rule(grid.style.top)
        yield from grid.header()
        yield from grid.rule(grid.style.middle)
    if content.columns:
        for row in content.rows:
            yield from grid.row(row)
    if grid.border == 2:
        yield from grid.rule(grid.style.bottom)
    for footer in content.all_footers:
        yield f"{footer}\n"
    yield "\n"


class _Grid:
    """Draws a table: its columns with their widths, and the lines between them."""

    def __init__(self, content: Content) -> None:
        options = content.options
        self.style = _line_style(options)
        self.border = min(options.border, 2)
        self._content = content
        self._is_wrapped = options.format == "wrapped"
        header_widths = [display_width(name) for name in content.columns]
        values = zip(*content.rows, strict=True) if content.rows else [()] * len(header_widths)
        value_widths = [[display_width(value) for value in column] for column in values]
        self._widths = [max([h, *v]) for h, v in zip(header_widths, value_widths, strict=True)]
        frame_width = self._frame_width()
        self.header_width = sum(header_widths) + frame_width
        if self._is_wrapped and options.columns >= self.header_width:
            averages = [sum(column) // max(len(column), 1) for column in value_widths]
            _shrink(self._widths, header_widths, averages, options.columns - frame_width)
        self.width = sum(self._widths) + frame_width

    def _frame_width(self) -> int:
        count = len(self._content.columns)
        if self.border == 0:
            return count
        return count * 3 + (1 if self.border == 2 else -1 if count else 0)

    def rule(self, rule: _RuleStyle) -> Iterator[str]:
        dash, left, crossing, right = rule
        bars = [dash * width for width in self._widths]
        if self.border == 0:
            line = " ".join(bars)
        else:
            line = dash + f"{dash}{crossing}{dash}".join(bars) + dash
        yield Rule(left + line + right if self.border == 2 else line)
        yield "\n"

    def header(self) -> Iterator[str]:
        columns = [display_lines(name) for name in self._content.columns]
        for number in range(max(map(len, columns), default=0)):
            for column, (lines, width) in enumerate(zip(columns, self._widths, strict=True)):
                line = lines[number] if number < len(lines) else Line("", 0)
                indent = (width - line.width) // 2
                mark = self.style.newline if number + 1 < len(lines) else " "
                yield self._before(column) + " " * indent
                yield Header(line.text)
                yield " " * (width - line.width - indent) + mark
            yield self._end_of_line

    def row(self, row: Sequence[str]) -> Iterator[str]:
        columns = [
            display_lines(value, width if self._is_wrapped else None)
            for value, width in zip(row, self._widths, strict=True)
        ]
        pieces: list[str] = []
        for number in range(max(map(len, columns))):
            for column, lines in enumerate(columns):
                pieces += self._cell(column, lines, number, is_null=isinstance(row[column], Null))
            pieces.append(self._end_of_line)
        if any(isinstance(value, Null) for value in row):
            yield from pieces
        else:
            yield "".join(pieces)

    def _cell(
        self, column: int, lines: Sequence[Line], number: int, *, is_null: bool
    ) -> Iterator[str]:
        """Yield the pieces of text of a column in line `number` of a row."""
        width = self._widths[column]
        is_padded = self.border == 2 or column < len(self._widths) - 1
        if number >= len(lines):
            yield self._before(column) + (" " * (width + 1) if is_padded else "")
            return
        line = lines[number]
        mark = " " if is_padded else ""
        if number + 1 < len(lines):
            mark = self.style.wrap if line.is_wrapped else self.style.newline
        padding = " " * (width - line.width)
        is_continued = number > 0 and lines[number - 1].is_wrapped
        before = self._before(column, self.style.wrap if is_continued else " ")
        text = Null(line.text) if is_null else line.text
        if self._content.alignments[column] == "r":
            yield from (before + padding, text, mark)
        else:
            yield from (before, text, padding + mark if mark else "")

    def _before(self, column: int, mark: str = " ") -> str:
        if self.border == 0:
            return ""
        if column == 0:
            return self.style.edge + mark if self.border == 2 else mark
        return self.style.vertical + mark

    @property
    def _end_of_line(self) -> str:
        return f"{self.style.edge}\n" if self.border == 2 else "\n"


def _shrink(
    widths: list[int], header_widths: Sequence[int], averages: Sequence[int], available: int
) -> None:
    """Narrow the columns, as far as their headers allow, until they fit into `available`.

    Each step narrows the column whose widest value exceeds the column's average most.  Usually this
    wraps the fewest values.  Of equal columns, it is the leftmost one.
    """
    native = list(widths)
    while sum(widths) > available:
        ratios = {
            column: width / averages[column] + native[column] * 0.01
            for column, width in enumerate(widths)
            if averages[column] and width > header_widths[column]
        }
        if not ratios:
            return
        widths[max(ratios, key=ratios.__getitem__)] -= 1


def expanded(content: Content) -> Iterator[str]:
    """Yield a block of lines for each row, with the names of the columns on the left.

    -[ RECORD 1 ]
    n | 22
    t | x
    """
    options = content.options
    if not content.rows or not content.columns:
        for footer in content.all_footers:
            yield f"{footer}\n"
        yield "\n"
        return
    if content.title is not None:
        yield f"{content.title}\n"
    block = _Block(content)
    for number, row in enumerate(content.rows, start=1):
        rule = block.style.top if number == 1 else block.style.middle
        if not options.tuples_only:
            yield from block.rule(rule, number)
        elif number > 1 or block.border == 2:
            yield from block.rule(rule)
        yield from block.record(row)
    if block.border == 2:
        yield from block.rule(block.style.bottom)
    if content.footers and block.border < 2:
        yield "\n"
    for footer in content.footers:
        yield f"{footer}\n"
    yield "\n"


class _Block:
    """Draws expanded records, which have two columns: names and values."""

    def __init__(self, content: Content) -> None:
        options = content.options
        self.style = _line_style(options)
        self.border = min(options.border, 2)
        self._names = [display_lines(name) for name in content.columns]
        self._name_width = max(line.width for lines in self._names for line in lines)
        self._value_width = max(display_width(value) for row in content.rows for value in row)
        # Whether the output has a column for the marks after names, and one for those after values.
        self._has_name_marks = any(len(lines) > 1 for lines in self._names)
        self._has_value_marks = any("\n" in value for row in content.rows for value in row)
        self._wrap_width: int | None = None
        if options.format == "wrapped":
            self._fit(options.columns, 0 if options.tuples_only else len(str(len(content.rows))))

    def _fit(self, available: int, number_width: int) -> None:
        """Choose the width of the values, so that records and their headers fit if possible.

        Args:
            number_width: the width of the record numbers; 0 if there are none.
        """
        frame_width = (1, 3, 7)[self.border]
        if self.border == 0 and self._has_name_marks:
            frame_width += 1
        if self.border < 2 and self._has_value_marks:
            frame_width += 1
        # The length of "* RECORD ", "-[ RECORD  ]" or "+-[ RECORD  ]-+", and of the number
        record_width = number_width + (9, 12, 15)[self.border] if number_width else 0
        fixed_width = self._name_width + frame_width
        width = max(fixed_width + self._value_width, record_width)
        if 0 < available < width:
            width = max(available, fixed_width + _MIN_VALUE_WIDTH, record_width)
        value_width = width - fixed_width
        if value_width < self._value_width and not self._has_value_marks and self.border < 2:
            self._has_value_marks = True
            self._fit(available, number_width)
        else:
            self._value_width = self._wrap_width = value_width

    def rule(self, rule: _RuleStyle, number: int | None = None) -> Iterator[str]:
        """Yield the line above a record, with the record's number, or the line below the last
        record.
        """
        dash, left, crossing, right = rule
        if self.border == 0:
            label = "" if number is None else f"* Record {number}"
            line = label.ljust(self._name_width + self._value_width)
        else:
            label = dash if number is None else f"{dash}[ RECORD {number} ]"
            margin = dash if self.border == 2 else ""
            line = margin + dash * (self._name_width + 1) + crossing
            line += dash * (self._value_width + 1)
            line = label + line[len(label) :] + margin
        yield Rule(left + line + right if self.border == 2 else line)
        yield "\n"

    def record(self, row: Sequence[str]) -> Iterator[str]:
        for name, value in zip(self._names, row, strict=True):
            lines = display_lines(value, self._wrap_width)
            for number in range(max(len(name), len(lines))):
                yield from self._name(name, number)
                yield from self._value(lines, number, is_null=isinstance(value, Null))
                yield "\n"

    def _name(self, lines: Sequence[Line], number: int) -> Iterator[str]:
        has_mark = self.border > 0 or self._has_name_marks
        if self.border == 2:
            yield self.style.edge + " "
        if number < len(lines):
            line = lines[number]
            yield Header(line.text)
            mark = self.style.newline if number + 1 < len(lines) else " "
            yield " " * (self._name_width - line.width) + (mark if has_mark else "")
        else:
            # A rule has at least one character, even if the column has no name.
            yield " " * max(self._name_width + has_mark, 1 if self.border < 2 else 0)
        if self.border > 0:
            yield self.style.vertical

    def _value(self, lines: Sequence[Line], number: int, *, is_null: bool) -> Iterator[str]:
        end = self.style.edge if self.border == 2 else ""
        if number >= len(lines):
            if self.border == 2:
                yield " " * (self._value_width + 2) + end
            return
        line = lines[number]
        yield self.style.wrap if number > 0 and lines[number - 1].is_wrapped else " "
        yield Null(line.text) if is_null else line.text
        if number + 1 < len(lines):
            mark = self.style.wrap if line.is_wrapped else self.style.newline
        else:
            mark = " " if self.border == 2 else ""
        if mark and (self.border == 2 or self._has_value_marks):
            yield " " * (self._value_width - line.width) + mark + end
