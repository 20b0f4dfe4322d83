"""The results and the exit code of `replctl verify`."""

from __future__ import annotations

import json
from pathlib import Path
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
    """Make a cluster with the subscriptions s and own, which nobody has synchronized."""
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


_SECRETS = r"""
CREATE ROLE clerk LOGIN REPLICATION PASSWORD 'x';
GRANT pg_create_subscription TO clerk;
CREATE DATABASE there;
GRANT CREATE ON DATABASE postgres TO clerk;
CREATE TABLE secret (id int PRIMARY KEY);
CREATE SCHEMA hidden;
CREATE TABLE hidden.secret (id int PRIMARY KEY);
INSERT INTO secret VALUES (42);
INSERT INTO hidden.secret VALUES (43);
\c there
CREATE TABLE secret (id int PRIMARY KEY);
GRANT SELECT ON secret TO clerk;
CREATE PUBLICATION p FOR TABLE secret;
\c postgres clerk
CREATE SUBSCRIPTION plain CONNECTION 'dbname=there user=clerk password=x' PUBLICATION p
  WITH (copy_data = false);
CREATE SUBSCRIPTION mapped CONNECTION 'dbname=there user=clerk password=x' PUBLICATION p
  WITH (copy_data = false, table_map = 'public.secret = hidden.secret');
"""
_AS_CLERK = "ALTER SUBSCRIPTION {} SET (run_as_owner = true)"
_FORCED = "ALTER TABLE secret ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"


@pytest.mark.parametrize(
    ("name", "before", "message"),
    [
        ("plain", "", 'role "clerk" cannot SET ROLE to "postgres"'),
        ("plain", _AS_CLERK.format("plain"), "permission denied for table secret"),
        ("mapped", _AS_CLERK.format("mapped"), "permission denied for schema hidden"),
        (
            "plain",
            f"ALTER TABLE secret OWNER TO clerk; {_FORCED}",
            'query would be affected by row-level security policy for table "secret"',
        ),
    ],
)
def test_rows_are_only_compared_if_the_subscription_may_read_them(
    psql: Psql, name: str, before: str, message: str
) -> None:
    made = psql("-X", "-q", script=f"{_SECRETS}\\c postgres postgres\n{before};")
    assert "ERROR" not in made.stderr
    found = psql("verify", "-U", "clerk", name, "--json")
    ((table,),) = (item["tables"] for item in json.loads(found.stdout))
    assert (table["error"]["sqlstate"], table["error"]["message"]) == ("42501", message)
    assert "42" not in found.stdout.replace("42501", "")
    refreshed = psql(
        "-X", "-U", "clerk", "-c", f"ALTER SUBSCRIPTION {name} REFRESH TABLE"
        f" {'hidden.' * (name == 'mapped')}secret"
    )  # fmt: skip
    assert message in refreshed.stderr
    assert "rows" not in refreshed.stderr


# ---------------------------------------------------------------------------------------------
# With Spark

_TABLES = r"""
CREATE TABLE keyed (id numeric PRIMARY KEY, region text, f float8, tags text[], at timestamp);
CREATE TABLE plain (a int, b text);
CREATE TABLE kept (id int PRIMARY KEY, n int);
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
CREATE PUBLICATION p FOR TABLE keyed (id, region, f, tags, at) WHERE (region = 'eu'), plain;
CREATE PUBLICATION inserts FOR TABLE kept WITH (publish = 'insert');
\c test_sub
CREATE TABLE keyed (id numeric PRIMARY KEY, region varchar(10), f float8, tags text[], at timestamp,
  own text DEFAULT 'mine');
CREATE TABLE plain (b text, a bigint);
CREATE TABLE kept (id int PRIMARY KEY, n int);
CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p, inserts;
"""
#: Faults of each kind, which another writer makes in the targets.
_FAULTS = {
    "keyed": """
USING (SELECT explode(array('1', '4', '2.50', '9', 'again')) AS k) s ON t.id = s.k
WHEN MATCHED AND s.k = '2.50' THEN DELETE
WHEN MATCHED AND s.k = '1' THEN UPDATE SET id = '1.00', f = CAST('-0' AS DOUBLE), own = 'changed'
WHEN MATCHED THEN UPDATE SET tags = array(CAST(NULL AS STRING))
WHEN NOT MATCHED AND s.k = 'again' THEN INSERT (id, region) VALUES ('4', 'eu')
WHEN NOT MATCHED THEN INSERT (id, region) VALUES (s.k, 'eu')""",
    "plain": """
USING (SELECT explode(array(2, 0)) AS k) s ON t.a = s.k
WHEN MATCHED THEN UPDATE SET a = 7
WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1, 'a')""",
    "kept": """
USING (SELECT explode(array(1, 2, 100)) AS k) s ON t.id = s.k
WHEN MATCHED THEN UPDATE SET n = 100
WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.k, 1)""",
}


def _plant_faults(psql: Psql) -> None:
    query = ", ".join(f"pg_relation_filepath('{table}')" for table in _FAULTS)
    paths = psql("-X", "-A", "-t", "-d", "test_sub", "-c", f"SELECT {query}").stdout.strip()
    for path, merge in zip(paths.split("|"), _FAULTS.values(), strict=True):
        opened_engine().run(f"MERGE INTO delta.`{path}` t {merge}")


def _verified(psql: Psql, *arguments: str) -> tuple[dict[str, dict[str, Any]], Outcome]:
    """Return the tables of s by name, and the output of the command."""
    found = psql("verify", "s", *arguments, "--json", *spark_options())
    (subscription,) = json.loads(found.stdout)
    assert subscription["subscription"] == "s"
    return {table["name"]: table for table in subscription["tables"]}, found


def _rows(table: dict[str, Any], kind: str) -> list[Any]:
    return [list(item["row"].values()) for item in table[kind]["first"]]


@pytest.mark.spark
def test_planted_faults_are_found(psql: Psql) -> None:
    options = ["-X", "-q", "-v", "ON_ERROR_STOP=1", *spark_options()]
    assert psql(*options, script=f"{_SETUP}\n\\sync\n").exit_code == 0

    tables, found = _verified(psql)
    assert {name: table["result"] for name, table in tables.items()} == dict.fromkeys(
        ["keyed", "kept", "plain"], "equal"
    ), found
    assert (tables["keyed"]["published_rows"], tables["keyed"]["rows"]) == (3, 3)
    assert found.exit_code == 0
    (status,) = json.loads(psql("status", "s", "--json").stdout)
    verified = {table["name"]: table["verified_lsn"] for table in status["tables"]}
    assert verified == {name: table["lsn"] for name, table in tables.items()}
    assert all(table["verified_at"] for table in status["tables"])

    _plant_faults(psql)
    later = "INSERT INTO keyed VALUES (5, 'eu', 5, NULL, NULL)"
    assert psql(*options, "-d", "test_pub", "-c", later).exit_code == 0
    tables, found = _verified(psql)
    assert found.exit_code == 1
    keyed, plain, kept = (tables[name] for name in ("keyed", "plain", "kept"))
    assert _rows(keyed, "missing") == [["2.50"]]
    assert _rows(keyed, "extra") == [["4"], ["9"]]
    assert keyed["different"] == {
        "count": 2,
        "first": [
            {"row": {"id": "1"}, "columns": ["id", "f"]},
            {"row": {"id": "4"}, "columns": ["f", "tags"]},
        ],
        "columns": {"id": 1, "f": 2, "tags": 1},
    }
    assert _rows(plain, "missing") == [[None, "2"]]
    assert _rows(plain, "extra") == [[None, "7"], ["a", "1"]]
    assert (kept["result"], kept["apart"]) == ("equal", {"extra": 1, "different": 2})

    shown = psql("verify", "s", "public.keyed", "--limit", "1", *spark_options())
    assert shown.exit_code == 1
    assert [line.split(" | ") for line in shown.stdout.splitlines()[-5:-2]] == [
        [" missing  ", "2.50", ""],
        [" extra    ", "4   ", ""],
        [" different", "1   ", "id, f"],
    ]
    (after,) = json.loads(psql("status", "s", "--json").stdout)
    assert {table["name"]: table["verified_lsn"] for table in after["tables"]} == verified


@pytest.mark.spark
def test_a_published_table_with_narrower_types(psql: Psql, tmp_path: Path) -> None:
    options = ["-X", "-q", "-v", "ON_ERROR_STOP=1", *spark_options()]
    source, target = (f"delta.`{tmp_path / name}`" for name in ("source", "target"))
    engine = opened_engine()
    engine.run(f"CREATE TABLE {source} USING delta AS SELECT id FROM range(9)")
    key = "(PRIMARY KEY (id)) USING delta LOCATION"
    setup = f"""
        CREATE DATABASE test_pub; CREATE DATABASE test_sub;
        \\c test_pub
        CREATE TABLE t {key} '{tmp_path / "source"}'; CREATE PUBLICATION p FOR TABLE t;
        \\c test_sub
        CREATE TABLE t (id bigint PRIMARY KEY) USING delta LOCATION '{tmp_path / "target"}';
        CREATE SUBSCRIPTION s CONNECTION 'host=localhost dbname=test_pub' PUBLICATION p;
        \\sync
    """
    assert psql(*options, script=setup).exit_code == 0
    # The relation keeps the wider type
    engine.run(f"CREATE OR REPLACE TABLE {source} USING delta AS SELECT INT(id) FROM {source}")
    assert psql("sync", *spark_options()).exit_code == 0
    engine.run(f"UPDATE {target} SET id = id + 10 WHERE id < 4")
    tables, _found = _verified(psql)
    assert _rows(tables["t"], "missing") == [[str(i)] for i in range(4)]
    assert _rows(tables["t"], "extra") == [[str(i)] for i in range(10, 14)]
