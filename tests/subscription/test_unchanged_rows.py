"""Updates that change nothing are sent, and rows that are there already are not written again."""

from __future__ import annotations

from pathlib import Path

import pytest
from fix_replication import Database

from replctl.lake.delta_log import latest_version

pytestmark = pytest.mark.spark

#: Columns that are read from the target as Arrow has them, with values at their edges.
_COLUMNS = {
    "smallint": "-32768",
    "bigint": "-9223372036854775808",
    "numeric": "1e-30",
    "numeric(8,2)": "-0.50",
    "numeric(38,0)": "9" * 38,
    "real": "NaN",
    "double precision": "-0",
    "boolean": "f",
    "text": "it's \\ \"",
    "varchar(5)": "äß€",
    "char(4)": "ab",
    "date": "-infinity",
    "time": "24:00:00",
    "timestamp": "4713-01-01 00:00:00 BC",
    "timestamp(0)": "infinity",
    "timestamptz": "-infinity",
    "timestamptz(3)": "294247-01-10 04:00:54.775+00",
    "uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "bytea": "\\x00ff27",
    "jsonb": '{"a": [1, null]}',
}
#: Types with values that travel, or are compared, by Spark alone.
_OTHERS = {"interval": "-1 mons +3 days -04:05:06.7", "int[]": "{1,NULL,3}"}


def _version(database: Database) -> int:
    ((location,),) = database.rows("SELECT pg_relation_filepath('t')")
    version = latest_version(str(Path(str(location))))
    assert version is not None
    return version


@pytest.mark.parametrize("columns", [_COLUMNS, _COLUMNS | _OTHERS], ids=["here", "spark"])
def test_an_update_that_changes_nothing(
    publisher: Database, subscriber: Database, columns: dict[str, str]
) -> None:
    defined = ", ".join(f"c{i} {type_}" for i, type_ in enumerate(columns))
    values = ", ".join("'" + value.replace("'", "''") + "'" for value in columns.values())
    for database in (publisher, subscriber):
        database.run(f"CREATE TABLE t (id int, name text, {defined}, PRIMARY KEY (id, name))")
    nothing = ", NULL" * len(columns)
    publisher.run(f"INSERT INTO t VALUES (1, 'it''s', {values}), (2, 'b'{nothing})")
    publisher.run("INSERT INTO t (id, name) VALUES (3, 'c')")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    before = _version(subscriber)
    publisher.run("UPDATE t SET c0 = c0 WHERE id < 3")
    assert subscriber.sync() == []
    assert _version(subscriber) == before
    publisher.run("UPDATE t SET c0 = 7 WHERE id = 2; UPDATE t SET c0 = c0 WHERE id < 3")
    assert subscriber.sync() == []
    query = "SELECT * FROM t ORDER BY id"
    assert subscriber.rows(query) == publisher.rows(query)


@pytest.mark.parametrize(
    ("type_", "keys"),
    [
        ("smallint", ["-32768", "5"]),
        ("text", ["it's \\ \"", "b"]),
        ("date", ["-infinity", "0044-03-15 BC"]),
        ("timestamp", ["infinity", "2024-02-29 12:00:00.000001"]),
        ("timestamptz", ["-infinity", "2024-02-29 12:00:00.000001+00"]),
        ("numeric", ["1.50", "NaN"]),
        ("numeric(8,2)", ["1.50", "-0.01"]),
        ("double precision", ["-0", "NaN"]),
        ("boolean", ["t", "f"]),
        ("uuid", ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000"]),
        ("bytea", ["\\x", "\\x27"]),
        ("integer[]", ["{}", "{1,NULL,3}"]),
        ("text[]", ['{"a,b"}', "{b}"]),
        ("interval", ["1 mon -1 day", "30 days 24:00:00"]),
        ("time", ["00:00:00.000001", "24:00:00"]),
        ("jsonb", ['{"a": [1, null]}', "{}"]),
        ("char(4)", ["a", "ab"]),
    ],
)
def test_a_key_of_each_type(
    publisher: Database, subscriber: Database, type_: str, keys: list[str]
) -> None:
    for database in (publisher, subscriber):
        database.run(f"CREATE TABLE t (k {type_} PRIMARY KEY, n int)")
    one, two = ("'" + key.replace("'", "''") + "'" for key in keys)
    publisher.run(f"INSERT INTO t VALUES ({one}, 1); CREATE PUBLICATION p FOR TABLE t")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run(f"UPDATE t SET n = 2; INSERT INTO t VALUES ({two}, 1)")
    assert subscriber.sync() == []
    query = "SELECT * FROM t ORDER BY n"
    assert subscriber.rows(query) == publisher.rows(query)
    publisher.run(f"DELETE FROM t WHERE k = {one}; UPDATE t SET n = 3")
    assert subscriber.sync() == []
    assert subscriber.rows(query) == publisher.rows(query)
    assert len(subscriber.rows(query)) == 1
