"""`replctl verify` finds a fault in a column of each type, with and without a key, and rows that
are missing, extra or doubled.  REFRESH TABLE repairs all of them."""

from __future__ import annotations

import json

import pytest
from fix_psql import Psql
from fix_spark import opened_engine, spark_options

pytestmark = pytest.mark.spark

#: A type, and two values that differ only a little.
_TYPES = [
    ("boolean", "f", "t"),
    ("smallint", "-32768", "-32767"),
    ("integer", "0", "1"),
    ("bigint", "9223372036854775807", "9223372036854775806"),
    ("real", "0.1", "0.10000001"),
    ("real", "NaN", "Infinity"),
    ("double precision", "0", "-0"),
    ("numeric", "1.0", "1.00"),
    ("numeric", "1e-40", "2e-40"),
    ("numeric(10,2)", "1.10", "1.11"),
    ("text", "a", "a "),
    ("text", "\u00e9", "e\u0301"),
    ("varchar(9)", "", " "),
    ("char(4)", "ab", "Ab"),
    ('"char"', "x", "y"),
    ("name", "x", "y"),
    ("bytea", "\\x00", "\\x0000"),
    ("date", "2024-02-29", "infinity"),
    ("time", "24:00:00", "00:00:00"),
    ("timetz", "12:00:00+01", "11:00:00+00"),
    ("timestamp", "2024-01-01 00:00:00.000001", "2024-01-01 00:00:00.000002"),
    ("timestamptz", "infinity", "-infinity"),
    ("interval", "1 month", "30 days"),
    ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12"),
    ("json", '{"a": 1}', '{"a":1}'),
    ("jsonb", '{"a": 1}', '{"a": 1.0}'),
    ("inet", "10.0.0.1", "10.0.0.1/8"),
    ("cidr", "10.0.0.0/8", "10.0.0.0/9"),
    ("macaddr", "08:00:2b:01:02:03", "08:00:2b:01:02:04"),
    ("bit(3)", "101", "100"),
    ("varbit", "1", "10"),
    ("oid", "4294967295", "0"),
    ("mood", "sad", "glad"),
    ("int[]", "{1,NULL}", "{1}"),
    ("text[]", '{"NULL"}', "{NULL}"),
    ("numeric[]", "{1.0}", "{1.00}"),
    ("int4range", "[1,3)", "[1,4)"),
]
_COLUMNS = [f"c{number}" for number in range(len(_TYPES))]
_DEFINED = ", ".join(
    f"{name} {type_}" for name, (type_, *_values) in zip(_COLUMNS, _TYPES, strict=True)
)
_TABLES = {
    "keyed": f"CREATE TABLE keyed (id int PRIMARY KEY, {_DEFINED});",
    "plain": f"CREATE TABLE plain (id int, {_DEFINED});",
}
_CREATE = f"CREATE TYPE mood AS ENUM ('sad', 'glad'); {' '.join(_TABLES.values())}"


def _values(which: int) -> str:
    return ", ".join(f"'{values[which]}'::{type_}" for type_, *values in _TYPES)


def _rows(table: str) -> str:
    """Return statements that insert row 0 with the other values, a row for each column, and two
    more rows."""
    return (
        f"INSERT INTO {table} VALUES (0, {_values(1)});"
        f" INSERT INTO {table} SELECT g, v.* FROM (VALUES ({_values(0)})) v,"
        f" generate_series(1, {len(_TYPES) + 2}) g;"
    )


_SETUP = rf"""
CREATE DATABASE test_pub;
CREATE DATABASE test_sub;
\c test_pub
{_CREATE}
ALTER TABLE plain REPLICA IDENTITY FULL;
{" ".join(_rows(table) for table in _TABLES)}
CREATE PUBLICATION p FOR TABLE keyed, plain;
\c test_sub
{_CREATE}
CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p;
\sync
"""


def _plant_faults(psql: Psql) -> None:
    """Give column i of row i the value of row 0.  Remove one row, add one, and double one."""
    last = len(_TYPES)
    changes = ", ".join(
        f"{name} = CASE WHEN t.id = {number} THEN s.{name} ELSE t.{name} END"
        for number, name in enumerate(_COLUMNS, 1)
    )
    for table in _TABLES:
        query = f"SELECT pg_relation_filepath('{table}')"
        place = psql("-X", "-A", "-t", "-d", "test_sub", "-c", query).stdout.strip()
        target = f"delta.`{place}`"
        new = f"SELECT CASE WHEN id = 0 THEN 99 ELSE id END AS id, * EXCEPT (id) FROM {target}"
        opened_engine().run(
            f"MERGE INTO {target} t USING (SELECT * FROM {target} WHERE id = 0) s ON t.id > 0"
            f" WHEN MATCHED AND t.id = {last + 1} THEN DELETE"
            f" WHEN MATCHED AND t.id <= {last} THEN UPDATE SET {changes}"
        )
        opened_engine().run(f"INSERT INTO {target} {new} WHERE id IN (0, {last + 2})")


def test_a_fault_of_each_type_is_found_and_mended(psql: Psql) -> None:
    options = ["-X", "-q", "-v", "ON_ERROR_STOP=1", *spark_options()]
    made = psql(*options, script=_SETUP)
    assert made.exit_code == 0, made.stderr
    _plant_faults(psql)
    found = psql("verify", "s", "--json", "--limit", "1000", *spark_options())
    assert found.exit_code == 1, found.stderr
    ((keyed, plain),) = (item["tables"] for item in json.loads(found.stdout))
    last = len(_TYPES)

    assert keyed["different"]["columns"] == dict.fromkeys(_COLUMNS, 1)
    assert [(item["row"]["id"], item["columns"]) for item in keyed["different"]["first"]] == [
        (str(number), [name]) for number, name in enumerate(_COLUMNS, 1)
    ]
    ids = [[item["row"]["id"] for item in keyed[kind]["first"]] for kind in ("missing", "extra")]
    assert ids == [[str(last + 1)], [str(last + 2), "99"]]

    ids = [[item["row"]["id"] for item in plain[kind]["first"]] for kind in ("missing", "extra")]
    changed = [str(number) for number in range(1, last + 1)]
    assert [sorted(of_a_kind, key=int) for of_a_kind in ids] == [
        [*changed, str(last + 1)],
        [*changed, str(last + 2), "99"],
    ]

    mended = "ALTER SUBSCRIPTION s REFRESH TABLE keyed, plain WITH (delete = all)"
    answer = psql(*options, "-d", "test_sub", "-c", mended, "-c", r"\sync")
    assert answer.exit_code == 0, answer.stderr
    found = psql("verify", "s", *spark_options())
    assert found.exit_code == 0, found.stdout
