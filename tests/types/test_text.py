"""Conversion of values to and from text: golden files of a server, and properties of every value.

.ci/generate_type_golden.py sends data/inputs/*.tsv to a PostgreSQL 17 server, and writes the
answers to data/*.tsv.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replctl.errors import CharacterNotInRepertoire, FeatureNotSupported, PostgresError
from replctl.types import builtin
from replctl.types.array_ import BoundedArray
from replctl.types.text import (
    canonical,
    coerce_typmod,
    format_type,
    is_supported,
    parse,
    render,
    typmod_in,
)

DATA = Path(__file__).parent / "data"
FILES = sorted(path.stem for path in DATA.glob("*.tsv"))
VALUE_FILES = [name for name in FILES if name not in ("coercion", "type_modifier")]
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "v": "\v", "f": "\f", "b": "\b", "\\": "\\"}

NOW = datetime(2024, 2, 29, 12, 34, 56, 789000, tzinfo=UTC)


@dataclass(frozen=True)
class Outcome:
    """An output, or the fields of an error."""

    output: str | None = None
    sqlstate: str | None = None
    message: str | None = None
    detail: str | None = None
    hint: str | None = None
    context: str | None = None


def golden(name: str) -> list[tuple[dict[str, str], Outcome]]:
    """Return the lines of a file: the columns of each input, and the server's answer."""
    header, *lines = (DATA / f"{name}.tsv").read_text(encoding="utf-8").split("\n")[:-1]
    names = header.split("\t")
    first = names.index("output")
    rows = [[unescape(field) for field in line.split("\t")] for line in lines]
    return [
        (dict(zip(names[:first], map(str, row), strict=False)), Outcome(*row[first:]))
        for row in rows
    ]


def unescape(field: str) -> str | None:
    """Return the value of a field in COPY's text format; None for NULL."""
    if field == "\\N":
        return None
    return re.sub(r"\\(.)", lambda match: ESCAPES[match[1]], field)


def outcome(function: Callable[..., object], *args: object, **kwargs: object) -> Outcome:
    """Return what `function` returns, or the error that it raises."""
    try:
        return Outcome(str(function(*args, **kwargs)))
    except PostgresError as error:
        return Outcome(None, error.sqlstate, error.message, error.detail, error.hint, error.context)


@pytest.mark.parametrize("name", VALUE_FILES)
def test_values_are_read_and_printed_as_by_the_server(name: str) -> None:
    expected, actual = {}, {}
    for asked, answer in golden(name):
        key = (asked["type"], asked["modifiers"], asked["input"])
        got = outcome(canonical, asked["type"], asked["input"], int(asked["typmod"]))
        if asked["type"] == "xml":  # the server has the DETAIL of libxml, and replctl that of expat
            got, answer = replace(got, detail=None), replace(answer, detail=None)
        expected[key], actual[key] = answer, got
    assert actual == expected


#: Outputs that the server itself refuses, or reads as a different value.
UNREADABLE = {
    ("interval", "-2562047788:00:54.775808"),
    ("jsonpath", '(1 == $."a" * 2.type())'),  # parentheses are missing
    ("jsonpath", 'exists ($."a")."b"'),
    ("xml", "\n<a/>"),  # the server removes one leading line break each time
    ("xml", "\n\n<a/>\n"),
}


@pytest.mark.parametrize("name", VALUE_FILES)
def test_what_the_server_prints_is_read_as_the_same_value(name: str) -> None:
    outputs = {(asked["type"], answer.output) for asked, answer in golden(name)}
    expected = {(type_, output) for type_, output in outputs - UNREADABLE if output is not None}
    actual = {(type_, outcome(canonical, type_, output).output) for type_, output in expected}
    assert actual == expected


def coerced(asked: dict[str, str]) -> str:
    """Return the output of a value after its type's length coercion.  `asked` is a line of
    coercion.tsv."""
    type_name, is_explicit = asked["type"], asked["is_explicit"] == "t"
    value = parse(type_name, asked["input"])
    value = coerce_typmod(type_name, value, int(asked["typmod"]), explicit=is_explicit)
    return render(type_name, value)


def test_values_are_coerced_as_by_the_server() -> None:
    expected, actual = {}, {}
    for asked, answer in golden("coercion"):
        key = tuple(asked.values())
        expected[key], actual[key] = answer, outcome(coerced, asked)
    assert actual == expected


def test_modifiers_are_read_as_by_the_server() -> None:
    expected, actual = {}, {}
    for asked, answer in golden("type_modifier"):
        modifiers = tuple(filter(None, asked["modifiers"].split(",")))
        key = (asked["type"], modifiers)
        expected[key] = answer
        actual[key] = outcome(typmod_in, asked["type"], modifiers)
    assert actual == expected


def test_types_are_named_as_by_format_type() -> None:
    expected, actual = {}, {}
    for asked, answer in golden("type_modifier"):
        type_ = builtin.types()[asked["type"]]
        typmod = None if answer.output is None else int(answer.output)
        key = (asked["type"], typmod)
        expected[key], actual[key] = asked["name"], format_type(type_, typmod)
    assert actual == expected


@pytest.mark.parametrize(
    ("type_name", "text", "value"),
    [
        ("bool", "on", True),
        ("int8", "-9223372036854775808", -(2**63)),
        ("xid8", "18446744073709551615", 2**64 - 1),
        ("pg_lsn", "16/B374D848", 0x16B374D848),
        ("float4", "0.1", 0.10000000149011612),
        ("float8", "-infinity", -math.inf),
        ("bytea", "\\x6100ff", b"a\x00\xff"),
        ("date", "1970-01-02", 1),
        ("date", "0001-12-31 BC", -719163),
        ("date", "infinity", 2**31 - 1),
        ("date", "-infinity", -(2**31)),
        ("timestamp", "1969-12-31 23:59:59.999999", -1),
        ("timestamp", "infinity", 2**63 - 1),
        ("timestamptz", "1970-01-01 01:00+01", 0),
        ("timestamptz", "-infinity", -(2**63)),
        ("time", "24:00", 86_400_000_000),
        ("timetz", "00:00:00.000001+01", (1, -3600)),
        ("interval", "1 mon 2 days 3us", (1, 2, 3)),
        ("interval", "infinity", (2**31 - 1, 2**31 - 1, 2**63 - 1)),
        ("interval", "-infinity", (-(2**31), -(2**31), -(2**63))),
        ("bit", "X5", "0101"),
        ("int2vector", "1 2", (1, 2)),
        ("_int4", "{}", []),
        ("_int4", "{1,NULL}", [1, None]),
        ("_text", "{{a,b},{c,d}}", [["a", "b"], ["c", "d"]]),
        ("_int4", "[0:1]={ 1,2}", BoundedArray("[0:1]={1,2}")),
        ("_bytea", '{"\\\\x61"}', [b"a"]),
        ("jsonb", '{"b":1,"a":[]}', '{"a": [], "b": 1}'),
        ("json", '{"b":1,"a":[]}', '{"b":1,"a":[]}'),
        ("uuid", "{A0EEBC999C0B4EF8BB6D6BB9BD380A11}", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ],
)
def test_a_value_in_python(type_name: str, text: str, value: object) -> None:
    parsed = parse(type_name, text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("text", "exponent"), [("1.10", -2), ("1e3", 0), ("-0.00", -2), ("1.5e1", 0), ("0e-5", -5)]
)
def test_a_numeric_keeps_its_scale(text: str, exponent: int) -> None:
    value = parse("numeric", text)
    assert isinstance(value, Decimal)
    assert value.as_tuple().exponent == exponent
    assert not value.is_signed()


def test_a_numeric_has_as_many_digits_as_in_postgresql() -> None:
    digits = "1" * 131072 + "." + "2" * 16383
    assert canonical("numeric", digits) == digits


@pytest.mark.parametrize(
    ("type_name", "text", "output"),
    [
        ("date", "today", "2024-02-29"),
        ("date", "tomorrow", "2024-03-01"),
        ("date", "now", "2024-02-29"),
        ("timestamp", "now", "2024-02-29 12:34:56.789"),
        ("timestamp", "today 04:05", "2024-02-29 04:05:00"),
        ("timestamptz", "yesterday", "2024-02-28 00:00:00+00"),
        ("timestamptz", "tomorrow 10:00 EST", "2024-03-01 15:00:00+00"),
        ("time", "now", "12:34:56.789"),
        ("timetz", "now", "12:34:56.789+00"),
        ("timetz", "12:00 IRKT", "12:00:00+08"),
        ("_date", "{yesterday,today}", "{2024-02-28,2024-02-29}"),
        ("daterange", "[today,tomorrow]", "[2024-02-29,2024-03-02)"),
        ("tstzmultirange", "{[today,now]}", None),
    ],
)
def test_words_are_relative_to_the_transaction(
    type_name: str, text: str, output: str | None
) -> None:
    elsewhere = NOW.astimezone(timezone(timedelta(hours=13)))
    output = output or '{["2024-02-29 00:00:00+00","2024-02-29 12:34:56.789+00"]}'
    assert canonical(type_name, text, now=NOW) == output
    assert canonical(type_name, text, now=elsewhere) == output


def test_now_is_the_current_time_by_default() -> None:
    microseconds = parse("timestamptz", "now")
    now = datetime.now(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    assert isinstance(microseconds, int)
    assert abs(now - timedelta(microseconds=microseconds)) < timedelta(minutes=1)


@pytest.mark.parametrize("type_name", ["regclass", "_regclass", "record", "_unknown", "nonsense"])
def test_other_types_are_refused(type_name: str) -> None:
    assert not is_supported(type_name)
    with pytest.raises(FeatureNotSupported):
        parse(type_name, "x")
    with pytest.raises(FeatureNotSupported):
        render(type_name, "x")


@pytest.mark.parametrize("text", ["294247-01-10 04:00:54.775807", "294276-12-31"])
@pytest.mark.parametrize("type_name", ["timestamp", "timestamptz"])
def test_a_timestamp_beyond_64_bits_is_refused(type_name: str, text: str) -> None:
    with pytest.raises(FeatureNotSupported):
        parse(type_name, text)


def test_the_character_0_is_refused() -> None:
    with pytest.raises(CharacterNotInRepertoire):
        parse("text", "a\0b")


def test_deep_json_is_refused_where_python_cannot_read_it() -> None:
    text = "[" * 100_000 + "]" * 100_000
    assert canonical("json", text) == text
    with pytest.raises(FeatureNotSupported):
        parse("jsonb", text)


def test_import_loads_no_module_of_a_type() -> None:
    code = (
        "import sys, replctl.types.text as t\n"
        "assert t.canonical('int4', ' 1') == '1'\n"
        "loaded = {'json', 'zoneinfo', 'replctl.types.timestamp', 'replctl.types.builtin'}\n"
        "assert not loaded & set(sys.modules), loaded & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
INT4 = st.integers(-(2**31), 2**31 - 1)
DECIMALS = st.builds(
    lambda digits, scale: Decimal(digits).scaleb(-scale) if digits else Decimal((0, (0,), -scale)),
    st.integers(-(10**25), 10**25),
    st.integers(0, 30),
) | st.sampled_from([Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity")])

#: Values of each type that must survive a round trip.
VALUES: dict[str, st.SearchStrategy[object]] = {
    "bool": st.booleans(),
    "int2": st.integers(-(2**15), 2**15 - 1),
    "int4": INT4,
    "int8": st.integers(-(2**63), 2**63 - 1),
    "oid": st.integers(0, 2**32 - 1),
    "xid8": st.integers(0, 2**64 - 1),
    "pg_lsn": st.integers(0, 2**64 - 1),
    "float4": st.floats(width=32),
    "float8": st.floats(),
    "numeric": DECIMALS,
    "text": TEXTS,
    "bytea": st.binary(max_size=30),
    "varbit": st.text("01", max_size=40),
    "date": st.integers(-2440588, 2145042905) | st.sampled_from([2**31 - 1, -(2**31)]),
    "timestamp": st.integers(-210866803200000000, 2**63 - 1) | st.just(-(2**63)),
    "timestamptz": st.integers(-210866803200000000, 2**63 - 1) | st.just(-(2**63)),
    "time": st.integers(0, 86_400_000_000),
    "timetz": st.tuples(st.integers(0, 86_400_000_000), st.integers(-57599, 57599)),
    "interval": st.tuples(INT4, INT4, st.integers(-(2**63) + 1, 2**63 - 1)),
    "int2vector": st.lists(st.integers(-(2**15), 2**15 - 1)).map(tuple),
    "_int4": st.lists(INT4 | st.none()),
    "_text": st.lists(TEXTS | st.none()),
    "_numeric": st.integers(1, 3).flatmap(
        lambda length: st.lists(st.lists(DECIMALS, min_size=length, max_size=length), max_size=3)
    ),
    "_timestamp": st.lists(st.integers(-210866803200000000, 2**62)),
    "_bytea": st.lists(st.binary(max_size=5)),
    "uuid": st.uuids().map(str),
    "json": st.recursive(st.none() | TEXTS | INT4, st.lists).map(json.dumps),
}


@pytest.mark.parametrize("type_name", VALUES)
def test_a_value_survives_printing_and_reading(type_name: str) -> None:
    @settings(max_examples=60, database=None)
    @given(VALUES[type_name])
    def check(value: object) -> None:
        text = render(type_name, value)
        again = parse(type_name, text)
        # repr() distinguishes -0.0 from 0.0 and 1.10 from 1.1, and makes NaN equal to itself.
        assert repr(again) == repr(value)

    check()


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | TEXTS | INT4 | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)
WORDS = st.text("ab'\\ :&|!<>é", min_size=1, max_size=5)
SMALL_RANGES = st.builds(
    "{}{},{}{}".format,
    st.sampled_from("[("),
    st.integers(0, 20),
    st.integers(20, 40),
    st.sampled_from("])"),
)

#: Texts of types whose value is their canonical text.
CANONICAL_TEXTS: dict[str, st.SearchStrategy[str]] = {
    "jsonb": JSON_VALUES.map(json.dumps),
    "inet": st.ip_addresses().map(str),
    "cidr": st.ip_addresses().map(str),
    "macaddr": st.binary(min_size=6, max_size=6).map(bytes.hex),
    "macaddr8": st.binary(min_size=8, max_size=8).map(bytes.hex),
    "money": st.integers(-(2**62), 2**62).map(lambda cents: f"{cents}.{abs(cents) % 100:02}"),
    "point": st.tuples(st.floats(), st.floats()).map(str),
    "box": st.tuples(*[st.floats(-1e300, 1e300)] * 4).map(str),
    "int4range": SMALL_RANGES,
    "numrange": SMALL_RANGES,
    "int8multirange": st.lists(SMALL_RANGES, max_size=5).map(lambda r: "{" + ",".join(r) + "}"),
    "tsvector": st.lists(WORDS.map(lambda word: canonical("tsvector", quoted(word)))).map(" ".join),
    "tsquery": st.recursive(
        WORDS.map(lambda word: quoted(word)),
        lambda inner: (
            st.builds("({} {} {})".format, inner, st.sampled_from(["&", "|", "<->", "<3>"]), inner)
            | inner.map("!{}".format)
        ),
        max_leaves=6,
    ),
    "jsonpath": st.recursive(
        st.sampled_from(["$", "$.a", "1", '"x"', "$v", "$[*]"]),
        lambda inner: (
            st.builds("({} {} {})".format, inner, st.sampled_from("+-*/%"), inner)
            | inner.map("-{}".format)
        ),
        max_leaves=6,
    ),
}


def quoted(word: str) -> str:
    """Return a word between quotes, for tsvector and tsquery."""
    doubled = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{doubled}'"


@pytest.mark.parametrize("type_name", CANONICAL_TEXTS)
def test_a_canonical_text_is_its_own(type_name: str) -> None:
    @settings(max_examples=60, database=None)
    @given(CANONICAL_TEXTS[type_name])
    def check(text: str) -> None:
        try:
            once = canonical(type_name, text)
        except PostgresError as error:
            assert error.sqlstate in ("22003", "22000", "22P02")  # noqa: PT017
            return
        assert canonical(type_name, once) == once

    check()


@pytest.mark.parametrize("type_name", ["numeric", "timestamp", "interval", "float8", "time"])
@settings(max_examples=50, database=None)
@given(data=st.data())
def test_junk_is_an_error_of_postgresql(type_name: str, data: st.DataObject) -> None:
    text = data.draw(TEXTS)
    result = outcome(canonical, type_name, text)
    assert (result.output is None) != (result.sqlstate is None)
    assert result.sqlstate is None or result.sqlstate.startswith("22")
