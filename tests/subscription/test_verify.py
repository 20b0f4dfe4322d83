"""`replctl verify`: what it finds, and its exit code."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fix_psql import Outcome, Psql
from fix_spark import opened_engine, spark_options

# ---------------------------------------------------------------------------------------------
# Without Spark

_SUBSCRIPTIONS = r"""
CREATE DATABASE test_pub;
CREATE DATABASE test_sub;
\c test_pub
CREATE TABLE t (id int PRIMARY KEY);
CREATE SCHEMA more;
CREATE TABLE more.t (id int PRIMARY KEY);
CREATE PUBLICATION p FOR TABLE t, more.t;
\c test_sub
CREATE TABLE t (id int PRIMARY KEY);
CREATE SCHEMA more;
CREATE TABLE more.t (id int PRIMARY KEY);
CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p;
CREATE SUBSCRIPTION own CONNECTION 'dbname=test_pub' PUBLICATION p
  WITH (origin = none, copy_data = false);
CREATE ROLE guest LOGIN;
"""


@pytest.fixture
def subscriptions(psql: Psql) -> Psql:
    """A cluster with the subscription s, which nobody has synchronized, and own."""
    made = psql("-X", "-q", script=_SUBSCRIPTIONS)
    assert "ERROR" not in made.stderr
    return psql


def test_without_subscriptions_all_is_equal(psql: Psql) -> None:
    found = psql("verify", "--json")
    assert (found.stdout, found.exit_code) == ("[]\n", 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing"], 'ERROR:  subscription "missing" does not exist'),
        (
            ["s", "u"],
            'ERROR:  table "u" is not part of subscription "s"\n'
            'DETAIL:  Its tables are "more.t", "public.t".',
        ),
        (
            ["s", "t"],
            'ERROR:  table name "t" is ambiguous\nHINT:  Run: replctl verify s more.t',
        ),
        (["s", "a..b"], "ERROR:  invalid name syntax"),
        (["-U", "guest", "s"], "ERROR:  must be owner of subscription s"),
        (["--limit", "x"], "Invalid value for '--limit'"),
    ],
)
def test_what_cannot_be_compared_is_exit_code_2(
    subscriptions: Psql, arguments: list[str], said: str
) -> None:
    found = subscriptions("verify", *arguments)
    assert said in found.stderr
    assert found.exit_code == 2


def test_a_table_that_is_not_synchronized_cannot_be_compared(subscriptions: Psql) -> None:
    found = subscriptions("verify", "s", "more.t", "--json")
    ((table,),) = (item["tables"] for item in json.loads(found.stdout))
    assert (table["schema"], table["result"]) == ("more", "unknown")
    assert table["error"]["message"] == 'table "more.t" is not synchronized yet'
    assert table["error"]["hint"] == "Run: replctl sync s"
    assert 'ERROR:  table "more.t" is not synchronized yet' in found.stderr
    assert 'CONTEXT:  subscription "s"' in found.stderr
    assert found.exit_code == 2


def test_a_subscription_with_origin_none_cannot_be_compared(subscriptions: Psql) -> None:
    found = subscriptions("verify", "own", "--json")
    (item,) = json.loads(found.stdout)
    assert item["error"]["message"] == ('subscription "own" cannot be compared with its publisher')
    assert found.exit_code == 2


# ---------------------------------------------------------------------------------------------
# With Spark

_TABLES = r"""
CREATE TABLE keyed (id numeric PRIMARY KEY, region text, f float8, tags text[], at timestamp);
CREATE TABLE plain (a int, b text);
CREATE TABLE kept (id int PRIMARY KEY, n int);
CREATE TABLE parts (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (100);
"""
_SETUP = rf"""
CREATE DATABASE test_pub;
CREATE DATABASE test_sub;
\c test_pub
{_TABLES}
ALTER TABLE plain REPLICA IDENTITY FULL;
INSERT INTO keyed VALUES
  (1, 'eu', 0.0, ARRAY['a', NULL], '2024-01-01'), (2.50, 'eu', 'NaN', NULL, 'infinity'),
  (3, 'us', 1, NULL, NULL), (4, 'eu', 1, ARRAY[]::text[], NULL);
INSERT INTO plain VALUES (1, 'a'), (1, 'a'), (2, NULL);
INSERT INTO kept SELECT i, i FROM generate_series(1, 4) AS i;
INSERT INTO parts SELECT i, i FROM generate_series(5, 15) AS i;
CREATE PUBLICATION p FOR TABLE keyed (id, region, f, tags, at) WHERE (region = 'eu'), plain,
  parts WITH (publish_via_partition_root = true);
CREATE PUBLICATION inserts FOR TABLE kept WITH (publish = 'insert');
\c test_sub
CREATE TABLE keyed (id numeric PRIMARY KEY, region varchar(10), f float8, tags text[], at timestamp,
  own text DEFAULT 'mine');
CREATE TABLE plain (b text, a bigint);
CREATE TABLE kept (id int PRIMARY KEY, n int);
CREATE TABLE parts (n int, id int PRIMARY KEY);
CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p, inserts;
"""
#: The source goes on, and the targets get faults of each kind.
_FAULTS = r"""
\c test_pub
INSERT INTO keyed VALUES (5, 'eu', 5, NULL, NULL);
UPDATE parts SET n = 0;
\c test_sub
UPDATE keyed SET f = '-0', id = 1.00, own = 'changed' WHERE id = 1;
UPDATE keyed SET tags = ARRAY[NULL]::text[] WHERE id = 4;
DELETE FROM keyed WHERE id = 2.5;
INSERT INTO keyed (id, region) VALUES (9, 'eu');
UPDATE plain SET a = 7 WHERE b IS NULL;
INSERT INTO plain VALUES ('a', 1);
UPDATE kept SET n = 100 WHERE id <= 2;
INSERT INTO kept VALUES (100, 1);
UPDATE parts SET n = -1 WHERE id IN (5, 15);
"""


def _verified(psql: Psql, *arguments: str) -> tuple[dict[str, dict[str, Any]], Outcome]:
    """The tables of s by name, and all that the command printed."""
    found = psql("verify", "s", *arguments, "--json", *spark_options())
    (subscription,) = json.loads(found.stdout)
    assert subscription["subscription"] == "s"
    return {table["name"]: table for table in subscription["tables"]}, found


def _rows(table: dict[str, Any], kind: str) -> list[Any]:
    return [list(item["row"].values()) for item in table[kind]["first"]]


def _double(psql: Psql, table: str, condition: str) -> None:
    """Another writer adds rows of a target once more."""
    query = f"SELECT pg_relation_filepath('{table}')"
    path = psql("-X", "-A", "-t", "-d", "test_sub", "-c", query).stdout.strip()
    rows = f"SELECT * FROM delta.`{path}` WHERE {condition}"
    opened_engine().run(f"INSERT INTO delta.`{path}` {rows}")


@pytest.mark.spark
def test_planted_faults_are_found(psql: Psql) -> None:
    options = ["-X", "-q", "-v", "ON_ERROR_STOP=1", *spark_options()]
    assert psql(*options, script=f"{_SETUP}\n\\sync\n").exit_code == 0

    tables, found = _verified(psql)
    assert {name: table["result"] for name, table in tables.items()} == dict.fromkeys(
        ["keyed", "kept", "parts", "plain"], "equal"
    ), found
    assert (tables["keyed"]["published_rows"], tables["keyed"]["rows"]) == (3, 3)
    assert found.exit_code == 0
    (status,) = json.loads(psql("status", "s", "--json").stdout)
    verified = {table["name"]: table["verified_lsn"] for table in status["tables"]}
    assert verified == {name: table["lsn"] for name, table in tables.items()}
    assert all(table["verified_at"] for table in status["tables"])

    assert psql(*options, script=_FAULTS).exit_code == 0
    _double(psql, "parts", "id = 7")
    tables, found = _verified(psql)
    assert found.exit_code == 1
    keyed, plain, kept, parts = (tables[name] for name in ("keyed", "plain", "kept", "parts"))
    assert _rows(keyed, "missing") == [["2.50"]]
    assert _rows(keyed, "extra") == [["9"]]
    assert keyed["different"] == {
        "count": 2,
        "first": [
            {"row": {"id": "1"}, "columns": ["id", "f"]},
            {"row": {"id": "4"}, "columns": ["tags"]},
        ],
        "columns": {"id": 1, "f": 1, "tags": 1},
    }
    assert _rows(plain, "missing") == [[None, "2"]]
    assert _rows(plain, "extra") == [[None, "7"], ["a", "1"]]
    assert (kept["result"], kept["apart"]) == ("equal", {"extra": 1, "different": 2})
    assert _rows(parts, "extra") == [["7"]]
    assert _rows(parts, "different") == [["5"], ["15"]]

    tables, found = _verified(psql, "public.parts", "--limit", "1")
    assert list(tables) == ["parts"]
    assert tables["parts"]["different"] == {
        "count": 2,
        "first": [{"row": {"id": "5"}, "columns": ["n"]}],
        "columns": {"n": 2},
    }
    shown = psql("verify", "s", "parts", *spark_options())
    assert shown.exit_code == 1
    assert " different | 5  | n\n" in shown.stdout
    (after,) = json.loads(psql("status", "s", "--json").stdout)
    assert {table["name"]: table["verified_lsn"] for table in after["tables"]} == verified
