"""Two normal forms are equal if and only if PostgreSQL treats the values as equal."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from replctl import spark
from replctl.errors import FeatureNotSupported, UndefinedFunction
from replctl.spark import SqlValue, StagedColumn, storage_type
from replctl.spark.normal_form import _NUMBER, _STRING, matching_values, normal_form
from replctl.spark.staging import wire_table

if TYPE_CHECKING:
    from replctl.spark.engine import Engine


def stored(type_name: str, typmod: int = -1) -> SqlValue:
    return SqlValue("c1", type_name, storage_type(type_name, typmod))


# ---------------------------------------------------------------------------------------------
# Without Spark


@pytest.mark.parametrize(
    "type_name",
    ["int4", "float8", "text", "uuid", "timetz", "inet", "bytea", "date", "tstzrange", "@16400"],
)
def test_what_is_stored_alike_is_its_own_normal_form(type_name: str) -> None:
    value = stored(type_name)
    assert normal_form(value) is value


@pytest.mark.parametrize(
    ("type_name", "typmod"), [("numeric", 655366), ("_int4", -1), ("_float8", -1), ("_text", -1)]
)
def test_decimals_and_arrays_of_what_is_stored_alike_too(type_name: str, typmod: int) -> None:
    value = stored(type_name, typmod)
    assert normal_form(value) is value


@pytest.mark.parametrize(
    ("type_name", "sql", "spark"),
    [
        ("bpchar", "rtrim(c1)", "STRING"),
        ("_bpchar", "transform(c1, item_ -> rtrim(item_))", "ARRAY<STRING>"),
        (
            "interval",
            "(CAST(((c1).m * 30L + (c1).d) AS DECIMAL(38,0)) * 86400000000BD + (c1).us)",
            "DECIMAL(38,0)",
        ),
    ],
)
def test_normal_forms_that_are_short(type_name: str, sql: str, spark: str) -> None:
    assert normal_form(stored(type_name)) == SqlValue(sql, type_name, spark)


def test_arrays_of_numbers_become_arrays_of_normal_numbers() -> None:
    number = normal_form(SqlValue("item_", "numeric", "STRING"))
    assert normal_form(stored("_numeric")).text == f"transform(c1, item_ -> {number.text})"


def test_long_values_are_computed_once() -> None:
    long = SqlValue("coalesce(c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13)", "interval",
                    storage_type("interval"))  # fmt: skip
    assert normal_form(long).text.count("coalesce") == 1


@pytest.mark.parametrize("type_name", ["json", "xml", "point", "_json"])
def test_types_without_equality(type_name: str) -> None:
    with pytest.raises(UndefinedFunction, match="could not identify an equality operator"):
        normal_form(stored(type_name))


def test_types_whose_equality_is_not_known() -> None:
    with pytest.raises(FeatureNotSupported, match="equality of type record"):
        normal_form(stored("record"))


@pytest.mark.parametrize(
    ("number", "normal"),
    [
        ("1", "1"), ("10", "10"), ("100.00", "100"), ("1.50", "1.5"), ("1.0050", "1.005"),
        ("0.000", "0"), ("-0", "0"), ("-0.00", "0"), ("-0.50", "-0.5"), ("-0.05", "-0.05"),
        ("-10.0", "-10"), ("NaN", "NaN"), ("-Infinity", "-Infinity"), ("0.10203000", "0.10203"),
    ],
)  # fmt: skip
def test_numbers(number: str, normal: str) -> None:
    assert re.sub(_NUMBER, r"\1", number) == normal


@pytest.mark.parametrize(
    ("document", "normal"),
    [
        ('{"1.0": "-0.00 \\" 2.50", "a": [1.0, -0.0, 2.50]}',
         '{"1.0": "-0.00 \\" 2.50", "a": [1, 0, 2.5]}'),
        ('"1.00\\\\"', '"1.00\\\\"'),
        ('["a\\\\", 1.0, "b"]', '["a\\\\", 1, "b"]'),
    ],
)  # fmt: skip
def test_numbers_in_documents(document: str, normal: str) -> None:
    assert re.sub(f"{_STRING}|{_NUMBER}", r"\1\2", document) == normal


# ---------------------------------------------------------------------------------------------
# Against a server

_SETTINGS = "-c timezone=UTC -c datestyle=ISO,MDY -c intervalstyle=postgres -c lc_monetary=C"
_EXAMPLES = 120
_SEED = 27
#: Marks at which zeros may be added: after a number without a fraction, and after one with a
#: fraction.
_WHOLE, _FRACTION = "\u00a7", "\u00b6"
_NUMBERS = st.builds(
    lambda sign, digits: f"{sign}{digits}{_FRACTION if '.' in digits else _WHOLE}",
    st.sampled_from(["", "-"]),
    st.sampled_from(["0", "1", "10", "0.1", "1.50", "0.05", "100", "12345678901234567890.5"]),
)
_NUMERICS = _NUMBERS | st.sampled_from(["NaN", "1e3", "1000.00"])
_WORDS = st.text('a1.0 "\\-é', max_size=4)
_DOCUMENTS = st.recursive(
    _NUMBERS | _WORDS.map(json.dumps) | st.sampled_from(["null", "true", "false", '"1.0"']),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(_WORDS, inner), max_size=3).map(
            lambda items: "{" + ", ".join(f"{json.dumps(k)}:{v}" for k, v in items) + "}"
        )
    ),
    max_leaves=4,
)
_INTERVALS = st.builds(
    lambda months, days, hours: f"{months} mons {days} days {hours}:00:00",
    st.sampled_from([0, 1, -1]),
    st.sampled_from([0, 30, -30, -1]),
    st.sampled_from([0, 24, 720, -720]),
) | st.sampled_from(
    ["178956970 years", "-178956970 years", "2147483647 days", "71582788 mons 7 days", "0.000001 s"]
)


def _bounds(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return a strategy for ranges without an upper bound, and for ranges with equal bounds."""
    return st.builds(
        lambda low, flags: f"{flags[0]}{low},{flags[1]}",
        values,
        st.sampled_from(["[]", "[)", "(]", "()"]),
    ) | st.builds(
        lambda bound, flags: f"{flags[0]}{bound},{bound}{flags[1]}",
        values,
        st.sampled_from(["[]", "[)", "(]", "()"]),
    )


def _arrays(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    quoted = values.map(lambda v: '"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"')
    return st.lists(quoted | st.just("NULL"), max_size=3).map(lambda v: "{" + ",".join(v) + "}")


class Kind(NamedTuple):
    """A type as declared and in the catalog, with texts of its values, some of which are equal."""

    declared: str
    type: str
    texts: st.SearchStrategy[str]
    typmod: int = -1


_DECIMAL_10_2 = ((10 << 16) | 2) + 4
_FLOATS = st.sampled_from(["0", "-0", "NaN", "-nan", "1", "1.0", "Infinity", "-Infinity", "5e-324"])
_REALS = st.sampled_from(["0", "-0", "NaN", "1", "1.0", "Infinity", "0.1", "0.10000000149"])
_CHARS = st.sampled_from(["", " ", "a", "a ", "a  ", " a", "a\n", "a\t "])
_DATES = st.sampled_from(["2024-01-01", "2023-12-31", "infinity", "-infinity", "2024-1-1"])
_TIMES = st.sampled_from(
    ["2024-01-01 00:00:00+00", "2024-01-01 01:00:00+01", "2024-01-01 00:00:00.000001+00",
     "infinity", "-infinity"]
)  # fmt: skip
_UUIDS = st.sampled_from(
    ["550e8400-e29b-41d4-a716-446655440000", "{550E8400E29B41D4A716446655440000}",
     "550e8400-e29b-41d4-a716-446655440001"]
)  # fmt: skip
_INTEGERS = st.sampled_from(["0", "-0", "1", "01", "-1", "2"])
_KINDS = [
    Kind("boolean", "bool", st.sampled_from(["t", "yes", "f", "0"])),
    Kind("smallint", "int2", _INTEGERS),
    Kind("integer", "int4", _INTEGERS),
    Kind("bigint", "int8", _INTEGERS),
    Kind("oid", "oid", st.sampled_from(["0", "1", "4294967295", "-1"])),
    Kind("numeric", "numeric", _NUMERICS),
    Kind("numeric(10,2)", "numeric", st.sampled_from(["1", "1.00", "1.004", "-0.001", "0", "2.5"]),
         _DECIMAL_10_2),
    Kind("real", "float4", _REALS),
    Kind("double precision", "float8", _FLOATS),
    Kind("money", "money", st.sampled_from(["1", "1.00", "$1", "-0", "0", "1.01"])),
    Kind("text", "text", _CHARS),
    Kind("varchar", "varchar", _CHARS),
    Kind("bpchar", "bpchar", _CHARS),
    Kind("name", "name", _CHARS),
    Kind('"char"', "char", st.sampled_from(["", "a", "b", " "])),
    Kind("bytea", "bytea", st.sampled_from(["\\x", "\\x61", "a", "\\x00", "\\x6100", "\\141"])),
    Kind("date", "date", _DATES),
    Kind("time", "time", st.sampled_from(["00:00", "24:00:00", "00:00:00.0", "12:00:00.5"])),
    Kind("timetz", "timetz", st.sampled_from(
        ["12:00+00", "13:00+01", "12:00:00.0+00:00", "24:00+00", "00:00+00", "12:00-00"])),
    Kind("timestamp", "timestamp", _TIMES),
    Kind("timestamptz", "timestamptz", _TIMES),
    Kind("interval", "interval", _INTERVALS),
    Kind("uuid", "uuid", _UUIDS),
    Kind("jsonb", "jsonb", _DOCUMENTS),
    Kind("bit(3)", "bit", st.sampled_from(["000", "001", "100"])),
    Kind("varbit", "varbit", st.sampled_from(["", "0", "00", "1", "10"])),
    Kind("inet", "inet", st.sampled_from(
        ["10.0.0.1", "10.0.0.1/32", "10.0.0.1/8", "10.0.0.0/8", "::1", "0:0::1/128",
         "::ffff:1.2.3.4", "::FFFF:102:304"])),
    Kind("cidr", "cidr", st.sampled_from(["10.0.0.0/8", "10", "10.0.0.0/9", "::/0", "0::/0"])),
    Kind("macaddr", "macaddr", st.sampled_from(
        ["08:00:2b:01:02:03", "08002B010203", "1-1-1-1-1-1"])),
    Kind("macaddr8", "macaddr8", st.sampled_from(["08002B0102030405", "08:00:2b:01:02:03"])),
    Kind("pg_lsn", "pg_lsn", st.sampled_from(
        ["0/0", "0/A", "0/0a", "1/0", "7FFFFFFF/FFFFFFFF", "80000000/0", "FFFFFFFF/FFFFFFFF"])),
    Kind("tsvector", "tsvector", st.sampled_from(
        ["a b", "b a", "'a':1 'b':2", "a:1A b", "a:1 b", "'a' 'b'", ""])),
    Kind("tsquery", "tsquery", st.sampled_from(
        ["a", "a:*", "a:B", "'a'", "b", "a & b", "a:A & !b:*", "a & !b",
         "'it''s:B'", "'it''s':B"])),
    Kind("shade", "@16400", st.sampled_from(["light", "dark", "Light"])),
    Kind("int4range", "int4range", _bounds(_INTEGERS) | st.just("empty")),
    Kind("numrange", "numrange", _bounds(_NUMBERS) | st.just("empty")),
    Kind("daterange", "daterange", _bounds(_DATES)),
    Kind("tsrange", "tsrange", _bounds(_TIMES)),
    Kind("tstzrange", "tstzrange", _bounds(_TIMES)),
    Kind("nummultirange", "nummultirange",
         st.lists(_bounds(_NUMBERS), max_size=2).map(lambda v: "{" + ",".join(v) + "}")),
    Kind("numeric[]", "_numeric", _arrays(_NUMBERS | st.just("NaN"))),
    Kind("interval[]", "_interval", _arrays(_INTERVALS)),
    Kind("float8[]", "_float8", _arrays(_FLOATS)),
    Kind("bpchar[]", "_bpchar", _arrays(_CHARS)),
    Kind("jsonb[]", "_jsonb", _arrays(_DOCUMENTS)),
    Kind("integer[]", "_int4", _arrays(_INTEGERS)),
    Kind("text[]", "_text", _arrays(_CHARS)),
    Kind("timestamptz[]", "_timestamptz", _arrays(_TIMES)),
    Kind("numrange[]", "_numrange", _arrays(_bounds(_NUMBERS))),
]  # fmt: skip


@pytest.fixture(scope="module")
def server(postgres_server: str) -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection whose transaction creates the enum, and roll it back afterwards."""
    with psycopg.connect(postgres_server, dbname="postgres", options=_SETTINGS) as connection:
        connection.execute("CREATE TYPE shade AS ENUM ('light', 'dark', 'Light')")
        yield connection
        connection.rollback()


def drawn_texts() -> list[list[str]]:
    """Return the texts that Hypothesis draws for each kind, always the same ones.  Each text
    appears without and with zeros at the end of its numbers."""
    texts: list[dict[str, None]] = [{} for _ in _KINDS]

    @seed(_SEED)
    @settings(max_examples=_EXAMPLES, database=None)
    @given(st.tuples(*(kind.texts for kind in _KINDS)))
    def draw(values: tuple[str, ...]) -> None:
        for found, text in zip(texts, values, strict=True):
            found[text.replace(_WHOLE, "").replace(_FRACTION, "")] = None
            found[text.replace(_WHOLE, ".00").replace(_FRACTION, "0")] = None

    draw()
    return [list(found) for found in texts]


def classes_of_server(
    server: psycopg.Connection[Any], kind: Kind, texts: Sequence[str]
) -> tuple[list[str], list[int]]:
    """Return the canonical text of each value, and the number of the first value that is equal to
    it."""
    found = server.execute(
        "WITH value AS MATERIALIZED (SELECT n,"
        f" t::{kind.declared} AS v FROM unnest(%s::text[]) WITH ORDINALITY AS x(t, n))"
        " SELECT format('%%s', v), min(n) OVER (PARTITION BY v) FROM value ORDER BY n",
        (list(texts),),
    ).fetchall()
    return [text for text, _ in found], [int(first) for _, first in found]


def classes_sql(position: int, kind: Kind) -> str:
    """Return the SQL of a column with all values of a kind: number, normal form and its hash."""
    value = SqlValue(f"v{position}", kind.type, storage_type(kind.type, kind.typmod))
    normal = normal_form(value).text
    found = f"named_struct('n', n, 'v', {normal}, 'h', xxhash64({normal}))"
    return (
        f"array_sort(collect_list({found}) FILTER (WHERE v{position} IS NOT NULL)) AS a{position}"
    )


def test_values_here_are_equal_where_the_server_says_so(
    server: psycopg.Connection[Any],
) -> None:
    for kind, texts in zip(_KINDS, drawn_texts(), strict=True):
        canonical, expected = classes_of_server(server, kind, texts)
        column = StagedColumn("v", "text" if kind.type.startswith("@") else kind.type, kind.typmod)
        wire = wire_table([column], [[text] for text in canonical]).column("v").to_pylist()
        first_of: dict[Any, int] = {}
        for number, (value, first) in enumerate(
            zip(matching_values(column, wire), expected, strict=True), start=1
        ):
            actual = first_of.setdefault(value, number)
            said = (kind.declared, canonical[number - 1], canonical[actual - 1])
            assert said == (kind.declared, canonical[number - 1], canonical[first - 1])


@pytest.mark.spark
def test_values_are_equal_where_the_server_says_so(
    engine: Engine, server: psycopg.Connection[Any]
) -> None:
    texts = drawn_texts()
    canonical, expected = zip(
        *(classes_of_server(server, *item) for item in zip(_KINDS, texts, strict=True)),
        strict=True,
    )
    columns = [StagedColumn("n", "int4")]
    for position, kind in enumerate(_KINDS):
        staged_type = "text" if kind.type.startswith("@") else kind.type
        columns.append(StagedColumn(f"v{position}", staged_type, kind.typmod))
    rows = [
        [str(n), *values] for n, values in enumerate(itertools.zip_longest(*canonical), start=1)
    ]
    lists = ", ".join(classes_sql(position, kind) for position, kind in enumerate(_KINDS))
    same = "transform(filter({0}, y -> y.v = x.v), y -> y.n)"
    hashes = "size(array_distinct(transform(filter({0}, y -> y.v = x.v), y -> y.h)))"
    shown = ", ".join(
        f"to_json(transform(a{i}, x -> array(array_min({same.format(f'a{i}')}),"
        f" {hashes.format(f'a{i}')}))) AS r{i}"
        for i in range(len(_KINDS))
    )
    local = spark.LocalRows(columns)
    local.add(rows)
    with local.view(engine) as view:
        (found,) = engine.rows(f"SELECT {shown} FROM (SELECT {lists} FROM {view})")
    for kind, values, classes, result in zip(_KINDS, canonical, expected, found, strict=True):
        pairs = zip(values, classes, json.loads(result), strict=True)
        for text, first, (actual, hash_count) in pairs:
            said = (kind.declared, text, values[actual - 1], hash_count)
            assert said == (kind.declared, text, values[first - 1], 1)
