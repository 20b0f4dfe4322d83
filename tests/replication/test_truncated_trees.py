"""TRUNCATE of partitioned tables: what publications send, and what a subscriber logs.

A server's answers to these scripts are the same.
"""

from __future__ import annotations

import pytest
from fix_psql import Psql
from fix_spark import spark_options

pytestmark = pytest.mark.spark

_TREE = """
CREATE TABLE r (a int, b int) PARTITION BY LIST (a);
CREATE TABLE m PARTITION OF r FOR VALUES IN (1, 2) PARTITION BY LIST (b);
CREATE TABLE l PARTITION OF m FOR VALUES IN (1, 2);
"""
_SUBSCRIBED = (
    "CREATE SUBSCRIPTION s CONNECTION 'host=localhost dbname=a' PUBLICATION {publications}"
    " WITH (copy_data = false);"
)


def _answer(psql: Psql, *parts: str) -> list[str]:
    script = "\n".join(("CREATE DATABASE a;", "CREATE DATABASE b;", *parts))
    outcome = psql(*spark_options(), "-X", "-q", "-A", "-t", script=script)
    assert "ERROR" not in outcome.stderr, outcome.stderr
    return outcome.stdout.split("\n")[:-1]


def test_the_root_is_not_sent_without_publish_via_partition_root(psql: Psql) -> None:
    rows = _answer(
        psql,
        rf"\c a{_TREE}",
        "CREATE PUBLICATION inserts FOR TABLE r"
        " WITH (publish_via_partition_root, publish = 'insert');",
        "CREATE PUBLICATION truncates FOR TABLE r WITH (publish = 'truncate');",
        r"\c b",
        "CREATE TABLE r (a int, b int);",
        "INSERT INTO r VALUES (1, 1);",
        _SUBSCRIBED.format(publications="inserts, truncates"),
        r"\c a",
        "TRUNCATE r;",
        r"\c b",
        r"\sync",
        "SELECT * FROM r;",
    )
    assert rows[-1] == "1|1"


def test_a_subscriber_needs_only_the_leaf_partitions(psql: Psql) -> None:
    rows = _answer(
        psql,
        rf"\c a{_TREE}",
        "CREATE PUBLICATION p FOR ALL TABLES;",
        r"\c b",
        "CREATE TABLE l (a int, b int);",
        "INSERT INTO l VALUES (1, 1);",
        _SUBSCRIBED.format(publications="p"),
        r"\c a",
        "TRUNCATE r;",
        r"\c b",
        r"\sync",
        "SELECT count(*) FROM l;",
    )
    assert rows[-1] == "0"


def test_a_replicated_truncate_names_all_tables_of_the_tree_and_no_cascade(psql: Psql) -> None:
    rows = _answer(
        psql,
        r"\c a",
        "CREATE TABLE r (a int, b int);",
        "CREATE PUBLICATION p FOR TABLE r;",
        rf"\c b{_TREE}",
        "CREATE PUBLICATION middle FOR TABLE m WITH (publish_via_partition_root);",
        "SELECT FROM pg_create_logical_replication_slot('lines', 'test_decoding');",
        "SELECT FROM pg_create_logical_replication_slot('sent', 'pgoutput');",
        _SUBSCRIBED.format(publications="p"),
        r"\c a",
        "TRUNCATE r CASCADE;",
        r"\c b",
        r"\sync",
        "SELECT data FROM pg_logical_slot_get_changes('lines', NULL, NULL, 'include-xids', '0',"
        " 'skip-empty-xacts', '1');",
        "SELECT chr(get_byte(data, 0)) FROM pg_logical_slot_get_binary_changes('sent', NULL, NULL,"
        " 'proto_version', '1', 'publication_names', 'middle');",
    )
    assert rows[-8:] == [
        "BEGIN",
        "table public.r, public.m, public.l: TRUNCATE: (no-flags)",
        "COMMIT",
        *"BORTC",
    ]


def test_a_foreign_key_to_a_middle_table_stops_a_replicated_truncate(psql: Psql) -> None:
    script = "\n".join((
        "CREATE DATABASE a;",
        "CREATE DATABASE b;",
        r"\c a",
        "CREATE TABLE r (a int, b int);",
        "CREATE PUBLICATION p FOR TABLE r;",
        rf"\c b{_TREE}",
        "ALTER TABLE m ADD PRIMARY KEY (a, b);",
        "CREATE TABLE f (a int, b int, FOREIGN KEY (a, b) REFERENCES m);",
        _SUBSCRIBED.format(publications="p"),
        r"\c a",
        "TRUNCATE r;",
        r"\c b",
        r"\sync",
    ))  # fmt: skip
    error = psql(*spark_options(), "-X", "-q", script=script).stderr
    assert "cannot truncate a table referenced in a foreign key constraint" in error
