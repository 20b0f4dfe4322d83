"""A reconcile writes only the differences between a table and the published rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fix_replication import Database

from replctl import spark
from replctl.errors import PostgresError
from replctl.lake import replicated_table
from replctl.lake.delta_log import commits_after, latest_version
from replctl.spark import reconcile
from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

CONNECTION = "CONNECTION 'dbname=test_pub'"
_PARTS = """
CREATE TABLE parted (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE low PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (50);
CREATE TABLE high PARTITION OF parted FOR VALUES FROM (50) TO (MAXVALUE);
CREATE TABLE loose (a int, b text);
"""
_STATES = (
    "SELECT relname, srsubstate FROM pg_subscription_rel JOIN pg_class ON oid = srrelid"
    " ORDER BY relname"
)


def folder(database: Database, table: str) -> str:
    ((path,),) = database.rows(f"SELECT pg_relation_filepath('{table}')")
    assert path is not None
    return path


def commits(database: Database, table: str, since: int) -> int:
    """Return the number of commits that have changed rows of a table since a version."""
    return sum(c.changes_data for c in commits_after(folder(database, table), since))


def version(database: Database, table: str) -> int:
    return latest_version(folder(database, table)) or 0


def refusal(database: Database, sql: str) -> PostgresError:
    with pytest.raises(PostgresError) as raised:
        database.run(sql)
    return raised.value


@pytest.fixture
def _all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat all tables as large.  Their rows are hashed before they are compared."""
    monkeypatch.setattr(reconcile, "_is_large", lambda _engine, _rows: True)


@pytest.mark.usefixtures("_all_are_large")
def test_only_what_differs_is_written(publisher: Database, subscriber: Database) -> None:
    """The subscriber's own rows outside the filter and the values of its own columns stay.  A
    target without a key is matched as a multiset.  Each partition gets one commit."""
    publisher.run(
        "CREATE TABLE t (id numeric PRIMARY KEY, v float8, region text);"
        " INSERT INTO t VALUES (1.0, 1, 'a'), (2, 0, 'a'), (3, 3, 'a'), (4, 4, 'b'), (5, 5, 'a');"
        " CREATE PUBLICATION p FOR TABLE t WHERE (region = 'a')"
    )
    publisher.run(
        f"{_PARTS} ALTER TABLE loose REPLICA IDENTITY FULL;"
        " INSERT INTO loose VALUES (1, 'x'), (1, 'x'), (2, NULL), (3, 'z');"
        " INSERT INTO parted VALUES (1, 'one'), (2, 'two'), (60, 'sixty'), (62, 'more');"
        " CREATE TABLE zeros (v float8); ALTER TABLE zeros REPLICA IDENTITY FULL;"
        " INSERT INTO zeros VALUES (0), (0), (1);"
        " CREATE PUBLICATION q FOR TABLE parted, loose, zeros WITH (publish_via_partition_root)"
    )
    subscriber.run(
        "CREATE TABLE zeros (v float8);"
        " CREATE TABLE t (id numeric PRIMARY KEY, v float8, region text, own serial,"
        " twice float8 GENERATED ALWAYS AS (v * 2) STORED)"
    )
    subscriber.run(f"{_PARTS} ALTER TABLE loose ADD own int DEFAULT 7")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p, q")
    assert subscriber.sync() == []

    subscriber.run(
        "UPDATE t SET own = 100 * id, id = CASE WHEN id = 1 THEN 1.00 ELSE id END,"
        " v = CASE WHEN id = 1 THEN -1 WHEN id = 2 THEN '-0' ELSE v END;"
        " DELETE FROM t WHERE id = 5;"
        " INSERT INTO t VALUES (4, 44, 'b', 400), (6, 6, 'b', 600), (7, 7, 'a', 700)"
    )
    subscriber.run(
        "INSERT INTO loose VALUES (1, 'x', 8), (2, NULL, 8), (9, 'local', 9);"
        " DELETE FROM loose WHERE a = 3; INSERT INTO zeros VALUES ('-0');"
        " UPDATE parted SET id = id + 1, v = 'local' WHERE id IN (2, 60)"
    )
    tables = ("t", "loose", "zeros", "low", "high")
    before = {table: version(subscriber, table) for table in tables}
    subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE t, loose, zeros, public.parted")
    publisher.run("INSERT INTO t VALUES (8, 8, 'a')")
    assert subscriber.sync() == []

    assert subscriber.rows("SELECT id, v, region, own, twice FROM t ORDER BY id") == [
        ("1.0", "1", "a", "100", "2"),
        ("2", "0", "a", "200", "0"),
        ("3", "3", "a", "300", "6"),
        ("4", "44", "b", "400", "88"),
        ("5", "5", "a", "5", "10"),
        ("6", "6", "b", "600", "12"),
        ("8", "8", "a", "6", "16"),
    ]
    published = "SELECT a, b FROM loose ORDER BY a, b"
    assert subscriber.rows(published) == publisher.rows(published)
    assert subscriber.rows("SELECT own FROM loose") == [("7",)] * 4
    assert subscriber.rows("SELECT v FROM zeros ORDER BY v") == [("0",), ("0",), ("1",)]
    published = "SELECT id, v FROM parted ORDER BY id"
    assert subscriber.rows(published) == publisher.rows(published)
    written = {table: commits(subscriber, table, before[table]) for table in tables}
    assert written == dict.fromkeys(tables, 1)

    # Nothing differs: nothing is written
    before = {table: version(subscriber, table) for table in tables}
    subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE t, loose")
    assert subscriber.sync() == []
    assert {table: version(subscriber, table) for table in tables} == before


def test_what_is_not_published_stays(publisher: Database, subscriber: Database) -> None:
    """replctl writes updates and deletes only if they are published.  If all commits are the
    subscription's own, it deletes rows that are gone at the publisher."""
    table = "CREATE TABLE t (id int PRIMARY KEY, v int)"
    publisher.run(
        f"{table}; INSERT INTO t SELECT g, g FROM generate_series(1, 4) g;"
        " CREATE PUBLICATION p FOR TABLE t WITH (publish = 'insert')"
    )
    subscriber.run(table)
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("DELETE FROM t WHERE id = 1; UPDATE t SET v = 0 WHERE id = 2")
    publisher.run("INSERT INTO t VALUES (5, 5)")
    expected = {
        "insert": ["1 1", "2 2", "3 3", "4 4", "5 5"],
        "insert, update": ["1 1", "2 0", "3 3", "4 4", "5 5"],
        "insert, update, delete": ["2 0", "3 3", "4 4", "5 5"],
    }
    for published, rows in expected.items():
        publisher.run(f"ALTER PUBLICATION p SET (publish = '{published}')")
        subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE t")
        assert subscriber.sync() == []
        found = subscriber.rows("SELECT id || ' ' || v FROM t ORDER BY id")
        assert [row for (row,) in found] == rows


def test_the_statement_says_which_rows_are_deleted(
    publisher: Database, subscriber: Database
) -> None:
    table = "CREATE TABLE t (id int PRIMARY KEY, v int)"
    publisher.run(
        f"{table}; INSERT INTO t VALUES (1, 1), (2, 2), (-1, -1);"
        " CREATE PUBLICATION p FOR TABLE t WHERE (id > 0)"
    )
    subscriber.run(f"{table}; INSERT INTO t VALUES (2, 0), (3, 3), (-3, -3), (-4, -4)")
    create = f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p"
    error = refusal(subscriber, f"{create} WITH (copy_data = reconcile, origin = none)")
    assert error.sqlstate == "55000"
    assert error.message == (
        'cannot determine which rows of table "public.t" belong to subscription "s"'
    )
    assert error.detail == (
        "Other writers have changed the table. The subscription has origin = none."
        " delete = scope deletes 1 row, delete = all deletes 3 rows, delete = none deletes 0 rows."
    )
    subscriber.run(f"{create} WITH (copy_data = reconcile, origin = none, delete = none)")
    assert subscriber.sync() == []
    ids = "SELECT id FROM t ORDER BY id"
    assert subscriber.rows(ids) == [("-4",), ("-3",), ("1",), ("2",), ("3",)]
    assert subscriber.rows("SELECT v FROM t WHERE id = 2") == [("2",)]

    # The HINT is a statement that helps
    error = refusal(subscriber, "ALTER SUBSCRIPTION s REFRESH TABLE t")
    assert error.hint == "ALTER SUBSCRIPTION s REFRESH TABLE public.t WITH (delete = scope);"
    subscriber.run(error.hint)
    assert subscriber.sync() == []
    assert subscriber.rows(ids) == [("-4",), ("-3",), ("1",), ("2",)]

    # A filter that has changed since
    assert subscriber.run("ALTER SUBSCRIPTION s REFRESH PUBLICATION WITH (reconcile)")
    assert subscriber.rows(_STATES) == [("t", "r")]
    publisher.run("ALTER PUBLICATION p SET TABLE t WHERE (id < 2)")
    subscriber.run("ALTER SUBSCRIPTION s SET (origin = any)")
    subscriber.run("ALTER SUBSCRIPTION s REFRESH PUBLICATION WITH (reconcile)")
    assert subscriber.rows(_STATES) == [("t", "i")]
    assert subscriber.sync() == []  # both filters were applied: every row passes one of them
    assert subscriber.rows(ids) == [("-1",), ("1",)]

    subscriber.run("INSERT INTO t VALUES (9, 9)")
    subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE t WITH (delete = all)")
    assert subscriber.sync() == []
    assert subscriber.rows(ids) == [("-1",), ("1",)]
    subscriber.run("UPDATE t SET v = 5; INSERT INTO t VALUES (9, 9)")
    subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE t WITH (replace)")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT v FROM t ORDER BY id") == [("-1",), ("1",)]


@pytest.mark.usefixtures("_all_are_large")
def test_keys_that_are_there_twice(
    publisher: Database, subscriber: Database, engine: Engine
) -> None:
    """At the publisher this is an error.  At the target one row remains."""
    publisher.run(
        "CREATE TABLE t (id int, v int); INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);"
        " ALTER TABLE t REPLICA IDENTITY FULL; CREATE PUBLICATION p FOR TABLE t"
    )
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, v int, own int DEFAULT 7)")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []
    path = f"delta.`{folder(subscriber, 't')}`"
    engine.run(f"INSERT INTO {path} SELECT * FROM {path} WHERE id < 3")
    publisher.run("INSERT INTO t VALUES (3, 30)")
    subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE t")
    (failure,) = subscriber.sync()
    assert failure.error.sqlstate == "23505"
    assert failure.error.message == (
        'published table "public.t" has several rows with the same key'
    )
    assert failure.error.detail == "Key (id)=(3) is duplicated."
    publisher.run("DELETE FROM t WHERE v = 30 OR id = 2")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id, v, own FROM t ORDER BY id") == [
        ("1", "1", "7"),
        ("3", "3", "7"),
    ]


def test_only_keys_that_others_have_changed_are_compared_again(
    publisher: Database, subscriber: Database, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer commits between the comparison and the write."""
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, v int)")
    publisher.run("INSERT INTO t SELECT g, g FROM generate_series(1, 6) g")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, v int)")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []
    path = f"delta.`{folder(subscriber, 't')}`"
    publisher.run("ALTER PUBLICATION p SET (publish = 'insert')")
    publisher.run("UPDATE t SET v = 10 WHERE id < 3")
    publisher.run("ALTER PUBLICATION p SET (publish = 'insert, update, delete')")
    statements = [
        f"UPDATE {path} SET v = if(id = 1, 10, -1) WHERE id IN (1, 3)",  # this makes row 1 correct
        f"MERGE INTO {path} t USING (SELECT 4 AS id UNION ALL SELECT 7) s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (7, 7)",
    ]
    compared = []

    def watch(job: str) -> None:
        owner = replicated_table if job == "write_leaf" else spark.jobs
        original = getattr(owner, job)

        def watched(*arguments: Any) -> Any:
            compared.append(job)
            if job == "write_leaf" and statements:
                engine.run(statements.pop(0))
            return original(*arguments)

        monkeypatch.setattr(owner, job, watched)

    for job in ("difference", "renewed_difference", "write_leaf"):
        watch(job)
    subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE t")
    assert subscriber.sync() == []
    assert compared == [
        "difference",
        "write_leaf",
        "renewed_difference",
        "write_leaf",
        "renewed_difference",
        "write_leaf",
    ]
    published = "SELECT id, v FROM t ORDER BY id"
    assert subscriber.rows(published) == publisher.rows(published)


def test_a_published_version_that_is_gone_meanwhile(
    publisher: Database, subscriber: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """replctl reads a newer version."""
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0)")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p WITH (copy_data = reconcile)")
    monkeypatch.setenv("REPLCTL_INJECTION_POINT", "tablesync.after-snapshot:error")
    assert len(subscriber.sync()) == 1
    monkeypatch.delenv("REPLCTL_INJECTION_POINT")
    assert subscriber.rows(_STATES) == [("t", "d")]
    files = set(Path(folder(publisher, "t")).glob("*.parquet"))
    publisher.run("DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (2, 2)")
    for file in files:
        file.unlink()
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id, v FROM t") == [("2", "2")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("delete = some", 'unrecognized delete value: "some"'),
        ("delete", "delete requires a parameter"),
        (
            "replace, delete = all",
            "replace = true and delete = all are mutually exclusive options",
        ),
        (
            "copy_data = false, delete = all",
            "copy_data = false and delete = all are mutually exclusive options",
        ),
        (
            "copy_data = false, replace",
            "copy_data = false and replace = true are mutually exclusive options",
        ),
        ("reconcile", 'unrecognized subscription parameter: "reconcile"'),
    ],
)
def test_options_that_cannot_be_together(
    publisher: Database, subscriber: Database, options: str, message: str
) -> None:
    publisher.run("CREATE TABLE t (a int); CREATE PUBLICATION p FOR TABLE t")
    subscriber.run("CREATE TABLE t (a int)")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p WITH (copy_data = false)")
    error = refusal(subscriber, f"ALTER SUBSCRIPTION s REFRESH TABLE t WITH ({options})")
    assert error.message == message
