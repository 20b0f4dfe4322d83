"""Values at the edges of their types are copied and changed, into the same types and into
others."""

from __future__ import annotations

import pytest
from fix_replication import Database

pytestmark = pytest.mark.spark

#: (type, a value, another type for the subscriber's column)
_COLUMNS = [
    ("smallint", "-32768", "bigint"),
    ("bigint", "9223372036854775807", "numeric"),
    ("numeric", "1e-30", "text"),
    ("numeric(8,2)", "-0.50", "double precision"),
    ("real", "NaN", "text"),
    ("double precision", "-Infinity", "text"),
    ("boolean", "t", "text"),
    ("text", "", "varchar(3)"),
    ("varchar(5)", "äß€", "text"),
    ("char(4)", "ab", "text"),
    ("date", "infinity", "text"),
    ("time", "24:00:00", "text"),
    ("timestamp", "4713-01-01 00:00:00 BC", "text"),
    ("timestamptz", "-infinity", "text"),
    ("interval", "-1 mons +3 days -04:05:06.7", "text"),
    ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "text"),
    ("bytea", "\\x00ff", "text"),
    ("jsonb", '{"a": [1, null]}', "json"),
    ("int[]", "{1,NULL,3}", "text"),
    ("int[]", "{1,NULL,3}", "bigint[]"),
    ("numeric", "1.50", "numeric(6,2)"),
    ("text", "{1,2}", "int[]"),
    ("text", "{a,b}", "varchar(4)[]"),
    ("text", "1 day", "interval"),
    ("timestamptz", "2024-01-01 00:00:00+00", "timestamptz(0)"),
    ("text[]", '{"a b",NULL,""}', "text"),
    ("mood", "it''s ${x} \\", "mood"),  # each database has its own
    ("mood", "sad", "text"),
    ("text", "it''s ${x} \\", "mood"),
    ("varchar(5)", "sad", "mood"),
]


def test_edges_of_types(publisher: Database, subscriber: Database) -> None:
    columns = ", ".join(f"c{i} {type_}" for i, (type_, _value, _other) in enumerate(_COLUMNS))
    others = ", ".join(f"c{i} {other}" for i, (_type, _value, other) in enumerate(_COLUMNS))
    values = ", ".join(f"'{value}'" for _type, value, _other in _COLUMNS)
    for database in (publisher, subscriber):
        database.run("CREATE TYPE mood AS ENUM ('sad', 'it''s ${x} \\')")
    for name, defined in (("same", columns), ("other", others)):
        publisher.run(f"CREATE TABLE {name} (id int PRIMARY KEY, n int, {columns})")
        subscriber.run(f"CREATE TABLE {name} (id int PRIMARY KEY, n int, {defined})")
        publisher.run(
            f"INSERT INTO {name} VALUES (1, 1, {values}), (2, 1{', NULL' * len(_COLUMNS)})"
        )
    publisher.run("CREATE PUBLICATION p FOR TABLE same WHERE (id < 10), other")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT * FROM same ORDER BY id") == publisher.rows(
        "SELECT * FROM same ORDER BY id"
    )
    publisher.run("UPDATE same SET n = 2; UPDATE other SET n = 2")
    assert subscriber.sync() == []
    expected = publisher.rows("SELECT * FROM same ORDER BY id")
    assert subscriber.rows("SELECT * FROM same ORDER BY id") == expected
    assert [row[:2] for row in expected] == [("1", "2"), ("2", "2")]
    copied = subscriber.rows("SELECT * FROM other ORDER BY id")
    different = [
        (type_, other, sent, received)
        for (type_, _value, other), sent, received in zip(
            _COLUMNS, expected[0][2:], copied[0][2:], strict=True
        )
        if sent != received
    ]
    assert different == [("numeric(8,2)", "double precision", "-0.50", "-0.5")]

    no_label = "un|happy +%20 ${x} é\n"
    from_text = next(
        i for i, (type_, _, other) in enumerate(_COLUMNS) if (type_, other) == ("text", "mood")
    )
    publisher.run(f"UPDATE other SET c{from_text} = '{no_label}' WHERE id = 2")
    (failure,) = subscriber.sync()
    assert failure.error.sqlstate == "22P02"
    assert failure.error.message == f'invalid input value for enum public.mood: "{no_label}"'
    assert f'column "c{from_text}"' in str(failure.error.context)
