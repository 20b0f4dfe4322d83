"""Texts of values at the edges of each type, for rows and for literals.

Hypothesis adds values of its own to the listed ones (`value_texts`).
"""

from __future__ import annotations

from datetime import date, datetime
from functools import cache

from hypothesis import strategies as st

from replctl.types import builtin

_DATES = (
    "2024-02-29 2023-12-31 2000-01-01 1999-12-31 infinity -infinity 1969-12-31 2024-01-31"
    " 1582-10-15 1900-02-28 2024-12-30 0001-01-01 9999-12-31 2038-01-19".split()
)
#: The hours when clocks of Berlin and New York change, midnights, month ends, rounding.
_TIMESTAMPS = [
    "2024-03-31 01:30:00", "2024-10-27 00:30:00", "2024-10-27 02:30:00", "2024-03-10 02:30:00",
    "2024-11-03 01:30:00", "2024-02-29 23:59:59.999999", "2000-01-01 00:00:00",
    "1999-12-31 23:59:59.5", "1969-12-31 23:59:59.999999", "infinity", "-infinity",
    "2024-01-31 10:20:30.000001", "0044-03-15 12:00:00 BC", "2038-01-19 03:14:08",
    "1900-01-01 00:00:00", "9999-12-31 23:59:59.123457",
]  # fmt: skip


def _in_utc(timestamp: str) -> str:
    if timestamp.endswith("infinity"):
        return timestamp
    return f"{timestamp[:19]}+00 BC" if timestamp.endswith("BC") else f"{timestamp}+00"


#: Edges of each base type, in any text form that its input takes.
EDGES: dict[str, list[str]] = {
    "bool": ["t", "f"],
    "int2": ["0", "1", "-1", "2", "5", "7", "32767", "-32768"],
    "int4": ["0", "1", "-1", "2", "5", "-7", "42", "100", "2147483647", "-2147483648"],
    "int8": ["0", "1", "-1", "3", "10", "4294967296", "9223372036854775807",
             "-9223372036854775808"],
    "numeric": ["0", "1", "-1", "0.5", "1.50", "-2.25", "100.00", "0.1", "12345678901234567890.5",
                "1e-20", "NaN", "Infinity", "-Infinity", "99.995", "-0.00049", "2.5", "3.5"],
    "float4": ["0", "-0", "1", "0.1", "-2.5", "3.4e38", "1e-40", "NaN", "Infinity", "-Infinity",
               "16777217"],
    "float8": ["0", "-0", "1", "0.1", "2.5", "-0.5", "1.7e308", "5e-324", "NaN", "Infinity",
               "-Infinity", "1e15", "123456789.125", "9007199254740993"],
    "text": ["", "a", "abc", "ABC", " a ", "été", "ß", "😀", "a%c_d\\e", "%", "12", "-3.5", "t",
             "2024-02-29", "line1\nline2", "Quick brown_Fox", "a.b.c", "İI"],
    "varchar": ["", "a", "abc", "Abc ", "été", "12", "a_c", "x y"],
    "bpchar": ["", "a", "ab ", "abc", "é", "x  y", "12"],
    "name": ["", "a", "abc", "pg_class", "Été", "a b"],
    "bytea": ["\\x", "\\x00", "\\xff", "\\xdeadbeef", "\\x616263", "\\x5c7f80"],
    "date": _DATES,
    "time": ["00:00:00", "24:00:00", "23:59:59.999999", "12:30:45.123456", "00:00:00.5", "05:00"],
    "timetz": ["00:00:00+00", "24:00:00+02", "23:59:59.999999-05", "12:30:45.5+05:30",
               "01:02:03-15:59"],
    "timestamp": _TIMESTAMPS,
    "timestamptz": [*map(_in_utc, _TIMESTAMPS)],
    "interval": ["0", "1 mon", "-1 mon", "30 days", "1 day", "-00:00:01", "24:00:00",
                 "1 year 2 mons 3 days 04:05:06.789", "-1 year -2 mons +3 days", "1.5 days",
                 "100 years", "00:00:00.000001", "infinity", "-infinity"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
             "550e8400-e29b-41d4-a716-446655440000", "C232AB00-9414-11EC-B3C8-9E6BDECED846",
             "{01890a5d-ac96-774b-bcce-b302099a8057}"],
    "json": ["null", "1", "\"a\"", "{}", "[]", '{"a": 1, "b" : [1, 2 ]}', "[1,\"two\",null]",
             '{"a":null,"a":2}', "12.50", "true", '{"a": {"b": "c"}}'],
    "jsonb": ["null", "1", "1.0", "\"a\"", "{}", "[]", '{"a": 1, "b": [1, 2]}',
              '[1, "two", null, true]', '{"b": {"c": "x"}, "a": null}', "12.50", "true", '["a"]',
              "[[1], 2]", "-3e2", '"été"'],
    "bit": ["10101010", "00000000", "11111111", "00000001", "10000000"],
    "varbit": ["", "0", "1", "101", "10000001", "0000000000001"],
    "inet": ["192.168.1.5/24", "10.0.0.1", "::1", "0.0.0.0/0", "255.255.255.255", "fe80::1/64",
             "192.168.1.255/24", "::ffff:1.2.3.4"],
    "cidr": ["192.168.1.0/24", "10.0.0.0/8", "::/0", "0.0.0.0/0", "192.168.1.5/32", "fe80::/64"],
    "int4range": ["empty", "[1,10)", "(,5)", "(,)", "[5,6)", "[2147483640,)"],
    "int8range": ["empty", "[1,10)", "(,5)", "[5,6)"],
    "numrange": ["empty", "[1.5,2.5]", "(0.1,0.2)", "(,)", "[5,5]", "(,-5)"],
    "daterange": ["empty", "[2024-01-01,2024-02-29]", "(,2000-01-01)", "[2024-02-29,infinity)"],
    "tsrange": ["empty", "[2024-01-01,2024-02-29 12:00)", "(,infinity]"],
    "tstzrange": ["empty", "[2024-01-01 00:00+00,2024-02-29 12:00+00)", "[2000-01-01 00:00+00,)"],
}  # fmt: skip

#: Element types of the arrays.
ARRAY_ELEMENTS = ("int4", "text", "numeric", "float8", "date", "bool", "uuid", "timestamptz")
TYPES = (*EDGES, *(f"_{element}" for element in ARRAY_ELEMENTS))

_ALPHABET = "abzABZ019 .,_%-\\'\"éß😀\n"


def value_texts(type_: str) -> st.SearchStrategy[str]:
    """Return a strategy for texts that the type's input function accepts, mostly edge cases."""
    return _value_texts(type_)


@cache
def _value_texts(type_: str) -> st.SearchStrategy[str]:
    if type_.startswith("_"):
        element = value_texts(type_[1:])
        items = st.lists(st.one_of(element.map(_array_item), st.just("NULL")), max_size=4)
        return items.map(lambda texts: "{" + ",".join(texts) + "}")
    edges = st.sampled_from(EDGES[type_])
    others = _others(type_)
    return edges if others is None else st.one_of(edges, edges, others)


def _array_item(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _others(type_: str) -> st.SearchStrategy[str] | None:
    match type_:
        case "int2" | "int4" | "int8":
            bound = 2 ** (8 * builtin.types()[type_].length - 1)
            return st.integers(-bound, bound - 1).map(str)
        case "numeric":
            return st.decimals(-(10**12), 10**12, allow_nan=False, places=3).map(str)
        case "float4":
            return st.floats(width=32).map(repr)
        case "float8":
            return st.floats(width=64).map(repr)
        case "text" | "varchar" | "bpchar":
            return st.text(_ALPHABET, max_size=8)
        case "bytea":
            return st.binary(max_size=6).map(lambda value: f"\\x{value.hex()}")
        case "date":
            return st.dates(date(1600, 1, 1)).map(str)
        case "timestamp":
            return st.datetimes(datetime(1600, 1, 1)).map(str)
        case "timestamptz":
            return st.datetimes(datetime(1600, 1, 1)).map(lambda value: f"{value}+00")
        case "time":
            return st.times().map(str)
        case "interval":
            fields = st.tuples(*[st.integers(-(10**4), 10**4)] * 2, st.integers(-(10**12), 10**12))
            return fields.map(lambda f: f"{f[0]} mons {f[1]} days {f[2] / 10**6:.6f} secs")
        case "uuid":
            return st.uuids().map(str)
        case "varbit":
            return st.text("01", max_size=12)
    return None
