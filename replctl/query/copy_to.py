"""COPY TO: write the rows of a table or a query to a file (copyto.c)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from replctl.catalog.acl import Privilege
from replctl.catalog.pg_class import Relation
from replctl.catalog.relation_kind import RelKind
from replctl.does_not_exist import no_column
from replctl.errors import (
    FeatureNotSupported,
    InvalidName,
    UndefinedColumn,
    UntranslatableCharacter,
    WrongObjectType,
)
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.copy_options import CopyFormat, copy_format
from replctl.query.copy_relation import column_numbers, copied_relation, file_error, write_error
from replctl.query.select import select
from replctl.query.settings_rewrite import shown_result
from replctl.result import Result
from replctl.session import Session
from replctl.types.encoding import codec

_KIND_WORDS: dict[str, str] = {
    RelKind.VIEW: "view",
    RelKind.MATERIALIZED_VIEW: "materialized view",
    RelKind.SEQUENCE: "sequence",
    RelKind.PARTITIONED_TABLE: "partitioned table",
}
_LETTERS = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v"}


def copy_to(session: Session, statement: ast.Copy) -> Result:
    """Write the rows of a table or a query to a file, or to the client.

    Raises:
        PostgresError: the statement is wrong, or the file cannot be written.
    """
    if statement.relation is not None:
        query, format_ = _table_query(session, statement, statement.relation)
    else:
        format_ = copy_format(statement.options, is_from=False)
        query = _query(statement)
    if statement.file is not None and not os.path.isabs(statement.file):
        raise InvalidName("relative path not allowed for COPY to file")
    result = shown_result(session, select(session, query))
    assert result.columns is not None
    names = [column.name for column in result.columns]
    if statement.relation is None and format_.force_quote != "*":
        _check_quoted(format_.force_quote, names)
    lines = _lines(format_, names, result.rows)
    if statement.file is None:
        session.on_copy_out(lines)
    else:
        _write(statement.file, lines)
    return Result(f"COPY {len(result.rows)}")


def _table_query(
    session: Session, statement: ast.Copy, name: ast.RangeVar
) -> tuple[ast.SelectStmt, CopyFormat]:
    """Return a query for a table's own rows, without those of its children."""
    with session.read() as catalog:
        analyzer = QueryAnalyzer(session.environment(catalog), session.transaction_start)
        relation = copied_relation(analyzer, name)
        if isinstance(relation, Relation):
            numbers = column_numbers(relation, statement.columns)
            columns = [relation.column_at(number).name for number in numbers]
        else:
            columns = [column for column, _type in relation.columns]
            for column in statement.columns:
                if column not in columns:
                    raise no_column(column, relation.name)
            columns = list(statement.columns) or columns
            numbers = []
        if relation.kind in _KIND_WORDS:
            if isinstance(relation, Relation):  # PostgreSQL checks the kind last
                privileges = analyzer.environment.privileges
                privileges.check_relation(relation, Privilege.SELECT, numbers)
            hint = "Try the COPY (SELECT ...) TO variant."
            raise WrongObjectType(
                f'cannot copy from {_KIND_WORDS[relation.kind]} "{relation.name}"',
                hint=None if relation.kind == RelKind.SEQUENCE else hint,
            )
        format_ = copy_format(statement.options, is_from=False)
        if isinstance(relation, Relation) and format_.force_quote not in ("*", ()):
            column_numbers(relation, format_.force_quote, numbers, "FORCE_QUOTE")
    targets = tuple(ast.ResTarget(ast.ColumnRef((column,))) for column in columns)
    return ast.SelectStmt(targets, from_clause=(replace(name, inherit=False),)), format_


def _query(statement: ast.Copy) -> ast.SelectStmt:
    query = statement.query
    if not isinstance(query, ast.SelectStmt):
        assert query is not None
        if not query.returning:
            raise FeatureNotSupported("COPY query must have a RETURNING clause")
        raise FeatureNotSupported("RETURNING in COPY is not supported")
    if query.into is not None:
        raise FeatureNotSupported("COPY (SELECT INTO) is not supported")
    return query


def _check_quoted(quoted: Sequence[str], names: Sequence[str]) -> None:
    for name in quoted:
        if name not in names:
            raise UndefinedColumn(f'column "{name}" does not exist')


def _write(path: str, lines: Iterator[bytes]) -> None:
    """Write a file that only its owner may change."""
    mask = os.umask(0o022)
    try:
        file = open(path, "wb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise file_error(path, error, is_from=False) from error
    finally:
        os.umask(mask)
    try:
        with file:
            file.writelines(lines)
    except OSError as error:
        raise write_error(error) from error


# ---------------------------------------------------------------------------------------------
# Text


def _lines(
    format_: CopyFormat, names: Sequence[str], rows: Sequence[Sequence[str | None]]
) -> Iterator[bytes]:
    """Yield the file's lines; the header comes first."""
    encoded = _encoder(format_.encoding)
    quoted = [format_.force_quote == "*" or name in format_.force_quote for name in names]
    if format_.is_csv:
        quote = _csv_field(format_, len(names) == 1)
        plain, fields = quote, quote
    else:
        text = _text_field(format_.delimiter)
        plain = fields = lambda value, is_forced: text(value)
    if format_.header == "yes":
        yield encoded(format_.delimiter.join(plain(name, False) for name in names) + "\n")
    for row in rows:
        values = (
            format_.null if value is None else fields(value, is_forced)
            for value, is_forced in zip(row, quoted, strict=True)
        )
        yield encoded(format_.delimiter.join(values) + "\n")


def _text_field(delimiter: str) -> Callable[[str], str]:
    """Return a function that escapes values: `a<tab>b` becomes `a\\tb` (CopyAttributeOutText)."""
    special = re.compile(f"[\\\\\b\f\n\r\t\v{re.escape(delimiter)}]")

    def escaped(found: re.Match[str]) -> str:
        return "\\" + _LETTERS.get(found[0], found[0])

    return lambda value: special.sub(escaped, value)


def _csv_field(format_: CopyFormat, is_only: bool) -> Callable[[str, bool], str]:
    """Return a function that quotes values: `a "b", c` becomes `"a ""b"", c"`
    (CopyAttributeOutCSV).

    Args:
        is_only: the row has only one field. A value `\\.` then needs quotes, so that nobody reads
            it as the end of the data.
    """
    quote, escape = format_.quote, format_.escape
    needing = re.compile(f"[\n\r{re.escape(format_.delimiter + quote)}]")
    special = re.compile(f"[{re.escape(quote + escape)}]")

    def field(value: str, is_forced: bool) -> str:
        is_quoted = (
            is_forced
            or value == format_.null
            or (is_only and value == "\\.")
            or needing.search(value) is not None
        )
        if not is_quoted:
            return value
        return quote + special.sub(lambda found: escape + found[0], value) + quote

    return field


def _encoder(encoding: str) -> Callable[[str], bytes]:
    name = codec(encoding)

    def encoded(text: str) -> bytes:
        try:
            return text.encode(name)
        except UnicodeEncodeError as error:
            shown = " ".join(f"0x{byte:02x}" for byte in text[error.start].encode())
            raise UntranslatableCharacter(
                f'character with byte sequence {shown} in encoding "UTF8" has no equivalent in'
                f' encoding "{encoding}"'
            ) from None

    return encoded
