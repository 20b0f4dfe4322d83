"""The publisher sends updates that change nothing, and the subscriber does not write equal rows
again.

All tables have each step in one sync.  Keys have many columns, and some rows differ in only one of
them.  If a type treated equal values as different, changes of each row would be lost.  If a type
treated different values as equal, a change would affect two rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest
from fix_replication import Database, connect

from replctl.catalog.cluster import Cluster
from replctl.lake.delta_log import latest_version

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

#: Columns that replctl reads from the target as Arrow, with values at their edges.
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
#: Types with values that only Spark passes on or compares.
_OTHERS = {"interval": "-1 mons +3 days -04:05:06.7", "int[]": "{1,NULL,3}"}


#: The tables whose updates change nothing.
_WIDE = {"here": _COLUMNS, "spark": _COLUMNS | _OTHERS}
#: Columns of a key, each with two values.  delta-rs finds the rows of `key_here`.  Spark finds the
#: rows of `key_spark`, because delta-rs has no literals of these values.
_KEYS = {
    "key_here": {
        "smallint": ("-32768", "5"),
        "text": ("it's \\ \"", "b"),
        "timestamp": ("infinity", "2024-02-29 12:00:00.000001"),
        "numeric": ("1.50", "NaN"),
        "uuid": ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000"),
        "time": ("00:00:00.000001", "24:00:00"),
        "jsonb": ('{"a": [1, null]}', "{}"),
        "char(4)": ("a", "ab"),
    },
    "key_spark": {
        "date": ("-infinity", "0044-03-15 BC"),
        "timestamptz": ("-infinity", "2024-02-29 12:00:00.000001+00"),
        "numeric(8,2)": ("1.50", "-0.01"),
        "double precision": ("-0", "NaN"),
        "boolean": ("t", "f"),
        "bytea": ("\\x", "\\x27"),
        "integer[]": ("{}", "{1,NULL,3}"),
        "text[]": ('{"a,b"}', "{b}"),
        "interval": ("1 mon -1 day", "30 days 24:00:00"),
    },
}

#: The column that has -0.
_FLOAT = f"c{list(_COLUMNS).index('double precision')}"

Rows: TypeAlias = list[tuple[str | None, ...]]


@dataclass(frozen=True)
class Ends:
    """The rows of a table, or of a query, at both ends."""

    published: Rows
    replicated: Rows


@dataclass(frozen=True)
class History:
    """The tables of _WIDE and _KEYS, which change twice.

    Attributes:
        versions: the versions of the tables of _WIDE at the subscriber, before and after the first
            changes.
        changed: the tables of _KEYS after the first changes.
        ended: all tables.
    """

    versions: dict[str, tuple[int, int]]
    changed: dict[str, Ends]
    ended: dict[str, Ends]


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _version(database: Database, table: str) -> int:
    ((location,),) = database.rows(f"SELECT pg_relation_filepath('{table}')")
    version = latest_version(str(Path(str(location))))
    assert version is not None
    return version


def _key_rows(columns: dict[str, tuple[str, str]]) -> list[str]:
    """Return keys as lists of literals.  The first key has the first values of all columns.  Each
    other key has the second value of one column, and the first values of the others."""
    first = [_literal(one) for one, _two in columns.values()]
    others = [
        [*first[:place], _literal(two), *first[place + 1 :]]
        for place, (_one, two) in enumerate(columns.values())
    ]
    return [", ".join(row) for row in (first, *others)]


def _defined(columns: Iterable[str]) -> str:
    return ", ".join(f"c{place} {type_}" for place, type_ in enumerate(columns))


@pytest.fixture(scope="module")
def history(shared_cluster: Cluster, engine: Engine) -> History:
    publisher, subscriber = (connect(shared_cluster, n, engine) for n in ("test_pub", "test_sub"))
    keys = {table: ", ".join(f"c{i}" for i in range(len(_KEYS[table]))) for table in _KEYS}
    for database in (publisher, subscriber):
        for table, types in _WIDE.items():
            database.run(
                f"CREATE TABLE {table} (id int, name text, {_defined(types)},"
                " PRIMARY KEY (id, name))"
            )
        for table, pairs in _KEYS.items():
            database.run(
                f"CREATE TABLE {table} (n int, {_defined(pairs)}, PRIMARY KEY ({keys[table]}))"
            )

    def ends(tables: Iterable[str]) -> dict[str, Ends]:
        queries = {table: f"SELECT * FROM {table} ORDER BY 1" for table in tables}
        return {
            table: Ends(publisher.rows(query), subscriber.rows(query))
            for table, query in queries.items()
        }

    for table, columns in _WIDE.items():
        values, nothing = ", ".join(map(_literal, columns.values())), ", NULL" * len(columns)
        publisher.run(f"INSERT INTO {table} VALUES (1, 'it''s', {values}), (2, 'b'{nothing})")
        publisher.run(f"INSERT INTO {table} (id, name) VALUES (3, 'c')")
    rows = {table: _key_rows(pairs) for table, pairs in _KEYS.items()}
    for table, (first, *_others) in rows.items():
        publisher.run(f"INSERT INTO {table} VALUES (1, {first})")
    publisher.run(f"CREATE PUBLICATION p FOR TABLE {', '.join([*_WIDE, *_KEYS])}")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    before = {table: _version(subscriber, table) for table in _WIDE}

    for table in _WIDE:
        publisher.run(f"UPDATE {table} SET c0 = c0 WHERE id < 3")
    for table, (_first, *others) in rows.items():
        new = ", ".join(f"({number}, {row})" for number, row in enumerate(others, start=3))
        publisher.run(f"UPDATE {table} SET n = 2; INSERT INTO {table} VALUES {new}")
    assert subscriber.sync() == []
    versions = {table: (before[table], _version(subscriber, table)) for table in _WIDE}
    changed = ends(_KEYS)

    for table in _WIDE:
        publisher.run(f"UPDATE {table} SET c0 = 7 WHERE id = 2")
        publisher.run(f"UPDATE {table} SET {_FLOAT} = 0 WHERE id = 1")  # it was -0
        publisher.run(f"UPDATE {table} SET c0 = c0 WHERE id < 3")
    for table, (first, *_others) in rows.items():
        publisher.run(f"DELETE FROM {table} WHERE ({keys[table]}) = ({first})")
        publisher.run(f"UPDATE {table} SET n = n + 100")
    assert subscriber.sync() == []
    return History(versions, changed, ends([*_WIDE, *_KEYS]))


def test_updates_that_change_nothing_and_keys_of_each_type(history: History) -> None:
    """This is one test, because each worker would need a history of its own."""
    assert {before == after for before, after in history.versions.values()} == {True}
    for table in _WIDE:
        assert history.ended[table].replicated == history.ended[table].published
        first, *_others = history.ended[table].published
        assert first[2 + list(_COLUMNS).index("double precision")] == "0"
    for table, pairs in _KEYS.items():
        for ends, numbers in (
            (history.changed[table], range(2, len(pairs) + 3)),
            (history.ended[table], range(103, len(pairs) + 103)),
        ):
            assert ends.replicated == ends.published
            assert [row[0] for row in ends.replicated] == [str(number) for number in numbers]
