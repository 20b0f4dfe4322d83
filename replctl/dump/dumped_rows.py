"""Dump the rows of tables and the values of sequences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.pg_sequence import get_sequence, sequence_state
from replctl.catalog.relation_kind import Identity, RelKind
from replctl.dump.dialect import ELSE, END, IF_REPLCTL, is_adopted
from replctl.dump.entry import Entry
from replctl.dump.source import Source
from replctl.parser import ast
from replctl.parser.parse import parse
from replctl.query.select import select
from replctl.session import Session
from replctl.types.quote import quote_identifier, quote_string

#: Maximum number of rows in one INSERT. Each INSERT is one commit of a Delta table.
_ROWS_PER_INSERT = 1000
#: Types whose values have no quotes if they are digits (dumpTableData_insert).
_NUMBERS = frozenset(("int2", "int4", "int8", "oid", "numeric"))
_BOOLEANS = {"t": "true", "f": "false"}


def sequence_values(source: Source, relations: Mapping[int, Relation]) -> Iterator[Entry]:
    """Yield the values of sequences (dumpSequenceData)."""
    for relation in relations.values():
        if relation.kind != RelKind.SEQUENCE or get_sequence(source.catalog, relation.oid) is None:
            continue
        value, is_called = sequence_state(source.catalog, relation.oid)
        yield Entry(
            "SEQUENCE SET",
            relation.name,
            f"SELECT pg_catalog.setval({quote_string(relation.quoted_name)},"
            f" {value}, {'true' if is_called else 'false'});\n",
            relation.schema,
            source.role_name(relation.owner),
        )


def table_rows(session: Session, table: Relation, owner: str) -> Entry:
    """Return the entry with a table's own rows, without those of its children.

    Raises:
        InsufficientPrivilege: the session's role may not read the rows.
    """
    columns = [column for column in table.columns if not column.generated]
    names = ", ".join(quote_identifier(column.name) for column in columns)
    (statement,) = parse(f"SELECT {names} FROM ONLY {table.quoted_name}")
    assert isinstance(statement, ast.SelectStmt)
    text = "".join(_inserts(table, columns, select(session, statement).rows))
    if is_adopted(table):
        text = f"{IF_REPLCTL}-- They are there.\n{ELSE}{text}{END}"
    return Entry("TABLE DATA", table.name, text, table.schema, owner)


def _inserts(
    table: Relation, columns: Sequence[Column], rows: Sequence[Sequence[str | None]]
) -> Iterator[str]:
    if not columns:
        yield from (f"INSERT INTO {table.quoted_name} DEFAULT VALUES;\n" for _row in rows)
        return
    names = ", ".join(quote_identifier(column.name) for column in columns)
    overriding = any(column.identity == Identity.ALWAYS for column in columns)
    words = " OVERRIDING SYSTEM VALUE VALUES" if overriding else " VALUES"
    for start in range(0, len(rows), _ROWS_PER_INSERT):
        shown = ",\n".join(
            f"\t({', '.join(map(_literal, [column.type for column in columns], row))})"
            for row in rows[start : start + _ROWS_PER_INSERT]
        )
        yield f"INSERT INTO {table.quoted_name} ({names}){words}\n{shown};\n"


def _literal(type_name: str, value: str | None) -> str:
    if value is None:
        return "NULL"
    if type_name in _NUMBERS and not value.strip("0123456789 +-eE."):
        return value
    if type_name == "bool":
        return _BOOLEANS[value]
    return quote_string(value)
