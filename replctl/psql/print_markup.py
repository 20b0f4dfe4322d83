"""The formats for documents: html, latex, latex-longtable, troff-ms and asciidoc."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replctl.psql.print_content import Content

_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "<br />\n"})
_LATEX = str.maketrans(
    {character: f"\\{character}" for character in "#$%&_{}"}
    | {
        "<": "\\textless{}",
        ">": "\\textgreater{}",
        "\\": "\\textbackslash{}",
        "^": "\\^{}",
        "|": "\\textbar{}",
        "~": "\\~{}",
        "\n": "\\\\",
    }
)
_ASCIIDOC_FRAMES = {
    0: ',frame="none",grid="none"',
    1: ',frame="none"',
    2: ',frame="all",grid="all"',
}


def html(content: Content) -> Iterator[str]:
    """Yield a <table> with a <tr> for each row, and a line of text for each value."""
    options = content.options
    yield from _html_start(content)
    if not options.tuples_only:
        yield "  <tr>\n"
        for name in content.columns:
            yield f'    <th align="center">{_html(name)}</th>\n'
        yield "  </tr>\n"
    for row in content.rows if content.columns else ():
        yield '  <tr valign="top">\n'
        for value, alignment in zip(row, content.alignments, strict=True):
            yield f"    {_html_cell(value, alignment)}\n"
        yield "  </tr>\n"
    yield from _html_end(content.all_footers)


def html_expanded(content: Content) -> Iterator[str]:
    """Yield a <table> with a <tr> for each value, and a numbered <tr> before each record."""
    yield from _html_start(content)
    for number, row in enumerate(content.rows if content.columns else (), start=1):
        if content.options.tuples_only:
            yield '\n  <tr><td colspan="2">&nbsp;</td></tr>\n'
        else:
            yield f'\n  <tr><td colspan="2" align="center">Record {number}</td></tr>\n'
        for name, value, alignment in zip(content.columns, row, content.alignments, strict=True):
            yield '  <tr valign="top">\n'
            yield f"    <th>{_html(name)}</th>\n"
            yield f"    {_html_cell(value, alignment)}\n"
            yield "  </tr>\n"
    yield from _html_end(content.footers)


def _html_start(content: Content) -> Iterator[str]:
    options = content.options
    attributes = "" if options.table_attributes is None else f" {options.table_attributes}"
    yield f'<table border="{options.border}"{attributes}>\n'
    if content.title is not None:
        yield f"  <caption>{_html(content.title)}</caption>\n"


def _html_cell(value: str, alignment: str) -> str:
    name = "right" if alignment == "r" else "left"
    return f'<td align="{name}">{"&nbsp; " if _is_blank(value) else _html(value)}</td>'


def _html_end(footers: Sequence[str]) -> Iterator[str]:
    yield "</table>\n"
    if footers:
        yield "<p>" + "".join(f"{_html(footer)}<br />\n" for footer in footers) + "</p>"
    yield "\n"


def _html(text: str) -> str:
    # Keep leading spaces, which indent the lines of EXPLAIN.
    stripped = text.lstrip(" ")
    return "&nbsp;" * (len(text) - len(stripped)) + stripped.translate(_HTML)


def latex(content: Content) -> Iterator[str]:
    """Yield a tabular environment with a line for each row."""
    options = content.options
    border = options.border
    yield from _latex_title(content)
    columns = (" | " if border else "").join(content.alignments)
    yield f"\\begin{{tabular}}{{{f'| {columns} |' if border >= 2 else columns}}}\n"
    if not options.tuples_only:
        if border >= 2:
            yield "\\hline\n"
        yield " & ".join(f"\\textit{{{_latex(name)}}}" for name in content.columns)
        yield " \\\\\n\\hline\n"
    for row in content.rows if content.columns else ():
        yield " & ".join(_latex(value) for value in row) + " \\\\\n"
        if border == 3:
            yield "\\hline\n"
    yield "\\hline\n" if border == 2 else ""
    yield from _latex_end(content.all_footers)


def latex_expanded(content: Content) -> Iterator[str]:
    """Yield a tabular environment with a line for each value, and a numbered line per record."""
    options = content.options
    border = min(options.border, 2)
    yield from _latex_title(content)
    yield f"\\begin{{tabular}}{{{('cl', 'c|l', '|c|l|')[border]}}}\n"
    for number, row in enumerate(content.rows if content.columns else (), start=1):
        if not options.tuples_only:
            yield "\\hline\n" if border == 2 else ""
            columns = "|c|" if border == 2 else "c"
            yield f"\\multicolumn{{2}}{{{columns}}}{{\\textit{{Record {number}}}}} \\\\\n"
        yield "\\hline\n" if border else ""
        for name, value in zip(content.columns, row, strict=True):
            yield f"{_latex(name)} & {_latex(value)} \\\\\n"
    yield "\\hline\n" if border == 2 else ""
    yield from _latex_end(content.footers)


def _latex_title(content: Content) -> Iterator[str]:
    if content.title is not None:
        yield f"\\begin{{center}}\n{_latex(content.title)}\n\\end{{center}}\n\n"


def _latex_end(footers: Sequence[str]) -> Iterator[str]:
    yield "\\end{tabular}\n\n\\noindent "
    for footer in footers:
        yield f"{_latex(footer)} \\\\\n"
    yield "\n"


def longtable(content: Content) -> Iterator[str]:
    """Yield a longtable environment, whose header is repeated on each page."""
    options = content.options
    border = min(options.border, 3)
    columns = (" | " if border else "").join(_longtable_columns(content))
    yield f"\\begin{{longtable}}{{{f'| {columns} |' if border >= 2 else columns}}}\n"
    if not options.tuples_only:
        names = " & ".join(f"\\small\\textbf{{\\textit{{{_latex(n)}}}}}" for n in content.columns)
        top = "\\toprule\n" if border >= 2 else ""
        yield f"{top}{names} \\\\\n\\midrule\n\\endfirsthead\n{top}{names} \\\\\n"
        yield ("\\midrule\n" if border != 3 else "") + "\\endhead\n"
        yield from _longtable_feet(content.title, border)
    for row in content.rows if content.columns else ():
        yield "\n&\n".join(f"\\raggedright{{{_latex(value)}}}" for value in row)
        yield " \\tabularnewline\n" + (" \\hline\n" if border == 3 else "")
    yield "\\end{longtable}\n"


def _longtable_columns(content: Content) -> Iterator[str]:
    """Yield the alignments of the columns.  Left-aligned columns have the widths in the table's
    attributes, if any; the last width applies to all further columns."""
    widths = (content.options.table_attributes or "").split()
    for alignment in content.alignments:
        if alignment == "l" and widths:
            yield f"p{{{widths[0]}\\textwidth}}"
            widths = widths[1:] or widths
        else:
            yield alignment


def _longtable_feet(title: str | None, border: int) -> Iterator[str]:
    rule = "\\bottomrule\n"
    if title is not None:
        shown = _latex(title)
        rule = rule if border == 2 else ""
        yield f"{rule}\\caption[{shown} (Continued)]{{{shown}}}\n\\endfoot\n"
        yield f"{rule}\\caption[{shown}]{{{shown}}}\n\\endlastfoot\n"
    elif border >= 2:
        yield f"{rule}\\endfoot\n{rule}\\endlastfoot\n"


def troff(content: Content) -> Iterator[str]:
    """Yield a table for tbl and the ms macros, with a line for each row."""
    options = content.options
    yield from _troff_start(content)
    yield (" | " if options.border else "").join(content.alignments) + ".\n"
    if not options.tuples_only:
        yield "\t".join(f"\\fI{_troff(name)}\\fP" for name in content.columns) + "\n_\n"
    for row in content.rows if content.columns else ():
        yield "\t".join(_troff(value) for value in row) + "\n"
    yield from _troff_end(content.all_footers)


def troff_expanded(content: Content) -> Iterator[str]:
    """Yield a table as `troff` does, with a line for each value, and a numbered line for each
    record.
    """
    options = content.options
    border = min(options.border, 2)
    yield from _troff_start(content)
    if options.tuples_only:
        yield "c l;\n"
    for number, row in enumerate(content.rows if content.columns else (), start=1):
        if not options.tuples_only:
            rule = "_\n" if border == 2 and number > 1 else ""
            yield f"{rule}{'.T&' + chr(10) if number > 1 else ''}c s.\n"
            yield f"\\fIRecord {number}\\fP\n"
        yield "_\n" if border else ""
        if not options.tuples_only:
            yield ".T&\nc | l.\n" if border == 1 else ".T&\nc l.\n"
        for name, value in zip(content.columns, row, strict=True):
            yield f"{_troff(name)}\t{_troff(value)}\n"
    yield from _troff_end(content.footers)


def _troff_start(content: Content) -> Iterator[str]:
    if content.title is not None:
        yield f".LP\n.DS C\n{_troff(content.title)}\n.DE\n"
    yield ".LP\n.TS\n" + ("center box;\n" if content.options.border >= 2 else "center;\n")


def _troff_end(footers: Sequence[str]) -> Iterator[str]:
    yield ".TE\n.DS L\n" + "".join(f"{_troff(footer)}\n" for footer in footers) + ".DE\n"


def _troff(text: str) -> str:
    return text.replace("\\", "\\(rs")


def _latex(text: str) -> str:
    return text.translate(_LATEX)


def asciidoc(content: Content) -> Iterator[str]:
    """Yield a table block with a line for each row."""
    options = content.options
    columns = ",".join(f"{_asciidoc_alignment(a)}" for a in content.alignments)
    header = "" if options.tuples_only else 'options="header",'
    yield from _asciidoc_start(content, f'{header}cols="{columns}"')
    if not options.tuples_only:
        yield " ".join(f"^l|{_asciidoc(name)}" for name in content.columns) + "\n"
    for row in content.rows if content.columns else ():
        *others, last = (" " if _is_blank(value) else _asciidoc(value) for value in row)
        # A line must not end with a space.
        yield " ".join(f"|{value}" for value in [*others, "" if _is_blank(last) else last]) + "\n"
    yield from _asciidoc_end(content.all_footers)


def asciidoc_expanded(content: Content) -> Iterator[str]:
    """Yield a table block with a line for each value, and a numbered line for each record."""
    yield from _asciidoc_start(content, 'cols="h,l"')
    for number, row in enumerate(content.rows if content.columns else (), start=1):
        yield "2+|\n" if content.options.tuples_only else f"2+^|Record {number}\n"
        for name, value, alignment in zip(content.columns, row, content.alignments, strict=True):
            shown = " " if _is_blank(value) else _asciidoc(value)
            yield f"<l|{_asciidoc(name)} {_asciidoc_alignment(alignment)}|{shown}\n"
    yield from _asciidoc_end(content.footers)


def _asciidoc_start(content: Content, attributes: str) -> Iterator[str]:
    yield "\n"
    if content.title is not None:
        yield f".{content.title}\n"
    yield f"[{attributes}{_ASCIIDOC_FRAMES.get(content.options.border, '')}]\n|====\n"


def _asciidoc_end(footers: Sequence[str]) -> Iterator[str]:
    yield "|====\n"
    if footers:
        yield "\n....\n" + "".join(f"{footer}\n" for footer in footers) + "....\n"


def _asciidoc_alignment(alignment: str) -> str:
    return ">l" if alignment == "r" else "<l"


def _asciidoc(text: str) -> str:
    return text.replace("|", "\\|")


def _is_blank(value: str) -> bool:
    return not value.strip(" \t")
