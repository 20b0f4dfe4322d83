"""The formats for other programs: unaligned, csv, and json, which psql does not have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from json import dumps

from replctl.psql.print_content import Content, Header, Null

_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


def unaligned(content: Content) -> Iterator[str]:
    """Yield a line for each row: `n|t`, `22|x`, `(1 row)`, with any separators."""
    separator = content.options.record_separator
    is_first = True
    for record in _records(content):
        if not is_first:
            yield separator
        is_first = False
        yield from record
    if not is_first:
        yield _end(separator)


def _records(content: Content) -> Iterator[Sequence[str]]:
    separator = content.options.field_separator
    if content.title is not None:
        yield [content.title]
    if not content.options.tuples_only:
        yield _interleaved([Header(name) for name in content.columns], separator)
    if content.columns:
        for row in content.rows:
            yield _interleaved(row, separator)
    for footer in content.all_footers:
        yield [footer]


def _interleaved(values: Sequence[str], separator: str) -> Sequence[str]:
    pieces = [separator] * (len(values) * 2 - 1)
    pieces[::2] = values
    return pieces


def unaligned_expanded(content: Content) -> Iterator[str]:
    """Yield a line for each value, `n|22`, `t|x`, and an empty line between rows."""
    options = content.options
    separator = options.record_separator
    is_first = content.title is None
    if content.title is not None:
        yield content.title
    for row in content.rows if content.columns else ():
        if not is_first:
            yield separator * 2
        is_first = False
        for number, (name, value) in enumerate(zip(content.columns, row, strict=True)):
            yield separator if number else ""
            yield from (Header(name), options.field_separator, value)
    if content.footers:
        yield separator
    for footer in content.footers:
        yield separator + footer
    if not is_first:
        yield _end(separator)


def _end(record_separator: str) -> str:
    # Like `find -print0`, end the output with a zero byte.  Other separators only separate records.
    return record_separator if record_separator == "\0" else "\n"


def csv(content: Content) -> Iterator[str]:
    """Yield a line for each row: `n,t`, `22,"a ""b"", c"`.  There is no title and no footer."""
    separator = content.options.csv_field_separator
    if not content.options.tuples_only:
        yield separator.join(_csv_field(name, separator) for name in content.columns) + "\n"
    if content.columns:
        for row in content.rows:
            yield separator.join([_csv_field(value, separator) for value in row]) + "\n"


def csv_expanded(content: Content) -> Iterator[str]:
    """Yield a line for each value: `n,22`, `t,"a ""b"", c"`."""
    separator = content.options.csv_field_separator
    names = [_csv_field(name, separator) for name in content.columns]
    for row in content.rows:
        for name, value in zip(names, row, strict=True):
            yield f"{name}{separator}{_csv_field(value, separator)}\n"


def _csv_field(value: str, separator: str) -> str:
    # COPY would treat a line with only \. as the end of its input.
    if value == "\\." or any(special in value for special in (separator, '"', "\n", "\r")):
        return '"' + value.replace('"', '""') + '"'
    return value


def json(content: Content) -> Iterator[str]:
    """Yield an array with a line for each row: `{"n": 22, "t": "x"}`.  There is no title and no
    footer.

    Values of right-aligned columns become numbers with the digits that PostgreSQL prints, unless
    JSON has no such number (NaN, money).  All other values are strings, including booleans (`"t"`).
    If columns have the same name, the name occurs several times.
    """
    names = [dumps(name, ensure_ascii=False) for name in content.columns]
    end = "[\n"
    for row in content.rows:
        values = [_json_value(v, a) for v, a in zip(row, content.alignments, strict=True)]
        fields = [f"{name}: {value}" for name, value in zip(names, values, strict=True)]
        yield f"{end}{{{', '.join(fields)}}}"
        end = ",\n"
    yield "\n]\n" if content.rows else "[]\n"


def _json_value(value: str, alignment: str) -> str:
    if isinstance(value, Null):
        return "null"
    if alignment == "r" and _JSON_NUMBER.fullmatch(value):
        return value
    return dumps(value, ensure_ascii=False)
