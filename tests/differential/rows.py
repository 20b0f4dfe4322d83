"""The table of the expressions: one column for each type, and two for frequent types."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from replctl.expr.environment import Column
from replctl.types import builtin

from .values import ARRAY_ELEMENTS, value_texts

TABLE = "dt"
#: Name, declared type, and the type's name in the catalog, of each column except the key.
COLUMNS: list[tuple[str, str, str]] = [
    ("b", "boolean", "bool"),
    ("i2", "smallint", "int2"),
    ("i4", "integer", "int4"),
    ("j4", "integer", "int4"),
    ("i8", "bigint", "int8"),
    ("n", "numeric", "numeric"),
    ("m", "numeric", "numeric"),
    ("n2", "numeric(10,2)", "numeric"),
    ("f4", "real", "float4"),
    ("f8", "double precision", "float8"),
    ("t", "text", "text"),
    ("s", "text", "text"),
    ("v", "varchar(10)", "varchar"),
    ("c", "char(5)", "bpchar"),
    ("nm", "name", "name"),
    ("by", "bytea", "bytea"),
    ("d", "date", "date"),
    ("e", "date", "date"),
    ("tm", "time", "time"),
    ("tmz", "timetz", "timetz"),
    ("ts", "timestamp", "timestamp"),
    ("tu", "timestamp", "timestamp"),
    ("tz", "timestamptz", "timestamptz"),
    ("iv", "interval", "interval"),
    ("u", "uuid", "uuid"),
    ("js", "json", "json"),
    ("jb", "jsonb", "jsonb"),
    ("bt", "bit(8)", "bit"),
    ("vb", "varbit", "varbit"),
    ("ip", "inet", "inet"),
    ("ci", "cidr", "cidr"),
    ("r4", "int4range", "int4range"),
    ("r8", "int8range", "int8range"),
    ("rn", "numrange", "numrange"),
    ("rd", "daterange", "daterange"),
    ("rts", "tsrange", "tsrange"),
    ("rtz", "tstzrange", "tstzrange"),
    *((f"a{element}", f"{element}[]", f"_{element}") for element in ARRAY_ELEMENTS),
]
ROWS = 10


def setup_sql() -> str:
    """Return SQL that creates the empty table.  Column k numbers its rows."""
    declared = ", ".join(f"{name} {declared}" for name, declared, _ in COLUMNS)
    return f"CREATE TABLE {TABLE} (k integer, {declared})"


@st.composite
def tables(draw: Any) -> list[list[str | None]]:
    """Return rows of texts.  The first row has only NULLs."""
    rows: list[list[str | None]] = [["1", *[None] * len(COLUMNS)]]
    for number in range(2, ROWS + 1):
        rows.append([str(number), *(draw(_cell(declared, t)) for _, declared, t in COLUMNS)])
    return rows


def _cell(declared: str, type_: str) -> st.SearchStrategy[str | None]:
    texts = value_texts(type_)
    if declared == "numeric(10,2)":  # a decimal of Spark has no NaN
        texts = st.integers(-(10**10) + 1, 10**10 - 1).map(lambda value: f"{value / 100:.2f}")
    elif declared == "varchar(10)" or declared == "char(5)":
        length = int(declared.rstrip(")").partition("(")[2])
        texts = texts.map(lambda value: value[:length])
    return st.one_of(texts, texts, texts, texts, st.none())


def typed_columns(typmods: list[int]) -> tuple[Column, ...]:
    """Return the typed columns, with the type modifiers of the server."""
    types = ["int4", *(type_ for _, _, type_ in COLUMNS)]
    names = ["k", *(name for name, _, _ in COLUMNS)]
    return tuple(
        Column(name, number, type_, typmod, builtin.types()[type_].collation)
        for number, (name, type_, typmod) in enumerate(
            zip(names, types, typmods, strict=True), start=1
        )
    )
