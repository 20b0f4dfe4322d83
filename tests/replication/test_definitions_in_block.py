"""A transaction changes rows, and then drops the table or no longer publishes it.

PostgreSQL decodes each change under the definitions at that time.
"""

from __future__ import annotations

import pytest
from fix_psql import Psql
from fix_spark import spark_options

pytestmark = pytest.mark.spark

_TABLES = """
CREATE TABLE t (a int PRIMARY KEY);
CREATE TABLE r (a int PRIMARY KEY) PARTITION BY LIST (a);
CREATE TABLE l PARTITION OF r FOR VALUES IN (1);
CREATE SCHEMA other;
"""


@pytest.mark.parametrize(
    ("block", "emptied"),
    [
        ("TRUNCATE t; DROP TABLE t;", "t"),
        ("TRUNCATE t; ALTER PUBLICATION p DROP TABLE t;", "t"),
        ("TRUNCATE l; ALTER TABLE r DETACH PARTITION l;", "l"),
        ("TRUNCATE l, t; DROP TABLE t; ALTER TABLE r DETACH PARTITION l;", "l t"),
        ("ALTER PUBLICATION p DROP TABLE t; TRUNCATE t;", ""),
        ("ALTER TABLE r DETACH PARTITION l; TRUNCATE l;", ""),
        ("TRUNCATE t; ALTER PUBLICATION p DROP TABLE t, r; TRUNCATE l;", "t"),
        ("CREATE TABLE n (a int); TRUNCATE t; ALTER PUBLICATION p ADD TABLE n;", "t"),
        ("SAVEPOINT s; CREATE TABLE n (); ROLLBACK TO s; TRUNCATE t; DROP TABLE t;", "t"),
        ("SAVEPOINT s; TRUNCATE t; DROP TABLE t; ROLLBACK TO s; TRUNCATE l;", "l"),
        ("TRUNCATE l RESTART IDENTITY; TRUNCATE t; DROP TABLE t;", "l t"),
    ],
)
def test_changes_before_a_change_of_definitions_are_sent(
    psql: Psql, block: str, emptied: str
) -> None:
    script = "\n".join((
        "CREATE DATABASE a;",
        "CREATE DATABASE b;",
        rf"\c a{_TABLES}",
        "CREATE PUBLICATION p FOR TABLE t, r;",
        "SELECT FROM pg_create_logical_replication_slot('lines', 'test_decoding');",
        "SELECT FROM pg_create_logical_replication_slot('sent', 'pgoutput');",
        rf"\c b{_TABLES}",
        "INSERT INTO t VALUES (1);",
        "INSERT INTO l VALUES (1);",
        "CREATE SUBSCRIPTION s CONNECTION 'host=localhost dbname=a' PUBLICATION p"
        " WITH (copy_data = false);",
        r"\c a",
        f"BEGIN; {block} COMMIT;",
        r"\c b",
        r"\sync",
        "SELECT 'emptied: ' || coalesce(string_agg(name, ' '), '') FROM ("
        "SELECT 'l' WHERE NOT EXISTS (SELECT FROM l) UNION ALL"
        " SELECT 't' WHERE NOT EXISTS (SELECT FROM t)) AS x (name);",
        r"\c a",
        "SELECT 'sent: ' || count(*) FROM pg_logical_slot_get_binary_changes('sent', NULL, NULL,"
        " 'proto_version', '1', 'publication_names', 'p') WHERE get_byte(data, 0) = 84;",
    ))  # fmt: skip
    outcome = psql(*spark_options(), "-X", "-q", "-A", "-t", script=script)
    assert "ERROR" not in outcome.stderr, outcome.stderr
    rows = outcome.stdout.splitlines()
    assert f"emptied: {emptied}" in rows
    assert ("sent: 0" in rows) == (not emptied)


def test_a_table_is_published_and_no_longer_published_between_two_syncs(psql: Psql) -> None:
    script = "\n".join((
        "CREATE DATABASE a;",
        "CREATE DATABASE b;",
        rf"\c a{_TABLES}",
        "CREATE PUBLICATION p FOR TABLE t, r;",
        rf"\c b{_TABLES}",
        "INSERT INTO t VALUES (1);",
        "CREATE SUBSCRIPTION s CONNECTION 'host=localhost dbname=a' PUBLICATION p"
        " WITH (copy_data = false);",
        r"\c a",
        "ALTER PUBLICATION p DROP TABLE t;",
        "TRUNCATE l;",
        "ALTER PUBLICATION p ADD TABLE t;",
        "BEGIN; TRUNCATE t; ALTER PUBLICATION p DROP TABLE t; COMMIT;",
        r"\c b",
        r"\sync",
        "SELECT 'rows: ' || count(*) FROM t;",
    ))  # fmt: skip
    outcome = psql(*spark_options(), "-X", "-q", "-A", "-t", script=script)
    assert "ERROR" not in outcome.stderr, outcome.stderr
    assert outcome.stdout.splitlines()[-1] == "rows: 0"


def test_a_publication_may_be_created_after_changes_of_other_tables(psql: Psql) -> None:
    script = "\n".join((
        "CREATE TABLE t (a int); CREATE TABLE u (a int);",
        "SELECT FROM pg_create_logical_replication_slot('sent', 'pgoutput');",
        "BEGIN; TRUNCATE u; CREATE PUBLICATION p FOR TABLE t; COMMIT;",
        "TRUNCATE t;",
        "SELECT count(*) FROM pg_logical_slot_get_binary_changes('sent', NULL, NULL,"
        " 'proto_version', '1', 'publication_names', 'p') WHERE get_byte(data, 0) = 84;",
    ))  # fmt: skip
    outcome = psql(*spark_options(), "-X", "-q", "-A", "-t", script=script)
    assert outcome.stdout.splitlines()[-1] == "1", outcome.stderr


def test_test_decoding_shows_a_table_that_was_dropped_later(psql: Psql) -> None:
    script = "\n".join((
        "CREATE TABLE t (a int);",
        "SELECT FROM pg_create_logical_replication_slot('lines', 'test_decoding');",
        "BEGIN; TRUNCATE t; DROP TABLE t; COMMIT;",
        "SELECT data FROM pg_logical_slot_get_changes('lines', NULL, NULL, 'include-xids', '0');",
    ))  # fmt: skip
    rows = psql(*spark_options(), "-X", "-q", "-A", "-t", script=script).stdout.splitlines()
    assert rows[-3:] == ["BEGIN", "table public.t: TRUNCATE: (no-flags)", "COMMIT"]
