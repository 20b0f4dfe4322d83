"""`replctl.max_batch_changes`: replctl applies a long backlog in batches of whole transactions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fix_psql import Outcome, Psql
from fix_spark import spark_options

pytestmark = pytest.mark.spark

_TABLES = "CREATE TABLE t (a int PRIMARY KEY, b text);\nCREATE TABLE u (a int PRIMARY KEY);\n"
_SETUP = rf"""
CREATE DATABASE test_pub;
CREATE DATABASE test_sub;
\c test_pub
{_TABLES}
CREATE TABLE other (a int);
CREATE PUBLICATION p FOR TABLE t, u;
\c test_sub
{_TABLES}
CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p WITH (copy_data = false);
"""
_APPLIED = re.compile(
    r'LOG:  subscription "s" has applied batch (\d+) of (\d+), up to [0-9A-F]+/[0-9A-F]+\n'
)


def run(psql: Psql, database: str, script: str) -> str:
    """Return what a script prints; an error fails the test."""
    options = ["-X", "-q", "-A", "-t", "-d", database, "-v", "ON_ERROR_STOP=1"]
    outcome = psql(*options, *spark_options(), script=script)
    assert outcome.exit_code == 0, outcome.stderr
    return outcome.stdout


def sync(psql: Psql, *arguments: str) -> Outcome:
    outcome = psql("sync", *arguments, *spark_options())
    assert outcome.exit_code == 0, outcome.stderr
    return outcome


def applied(outcome: Outcome) -> list[tuple[str, str]]:
    """Return the messages about batches.  There may be no other messages."""
    assert _APPLIED.sub("", outcome.stderr) == ""
    return _APPLIED.findall(outcome.stderr)


def versions(psql: Psql, table: str) -> int:
    """Return the number of commits of a table of the subscriber."""
    location = run(psql, "test_sub", f"SELECT pg_relation_filepath('{table}');").strip()
    return len(list((Path(location) / "_delta_log").glob("*.json")))


@pytest.mark.slow(1)
def test_a_backlog_in_batches(psql: Psql) -> None:
    run(psql, "postgres", _SETUP)
    sync(psql)
    inserts = [
        f"INSERT INTO t SELECT g, 'x' FROM generate_series({n}1, {n}3) g;\n" for n in range(1, 4)
    ]
    run(psql, "test_pub", "".join(inserts) + "INSERT INTO other SELECT generate_series(1, 100);\n")
    assert applied(sync(psql, "--max-batch-changes", "6")) == [("1", "2")]
    assert versions(psql, "t") == 1 + 2  # the first commit makes the table
    assert run(psql, "test_sub", "SELECT count(*) FROM t;") == "9\n"

    # A large transaction is also one batch.  Deleted rows count like new ones
    block = "BEGIN;\nUPDATE t SET b = 'y';\nINSERT INTO u SELECT generate_series(1, 15);\nCOMMIT;\n"
    run(psql, "test_pub", f"INSERT INTO u VALUES (0);\n{block}DELETE FROM t;\n")
    said = applied(sync(psql, "--max-batch-changes", "10"))
    assert said == [("1", "3"), ("2", "3")]
    assert versions(psql, "t") == 3 + 2
    counts = "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM u);"
    assert run(psql, "test_sub", counts) == "0|16\n"

    # The database of the subscription sets the limit, and SET sets it for a session
    more = "INSERT INTO u VALUES (21);\nINSERT INTO u VALUES (22);\n"
    assert run(psql, "test_sub", "SHOW replctl.max_batch_changes;") == "10000000\n"
    run(psql, "test_sub", "ALTER DATABASE test_sub SET replctl.max_batch_changes = 1;")
    run(psql, "test_pub", more)
    assert applied(sync(psql)) == [("1", "2")]
    run(psql, "test_pub", more.replace("(2", "(3"))
    assert applied(sync(psql, "--max-batch-changes", "0")) == []
    assert run(psql, "test_sub", counts) == "0|20\n"


def test_a_batch_that_fails_leaves_those_before_it(psql: Psql) -> None:
    run(psql, "postgres", _SETUP)
    sync(psql)
    run(psql, "test_sub", "INSERT INTO t VALUES (3, 'own');")
    run(psql, "test_pub", "".join(f"INSERT INTO t VALUES ({a}, 'x');\n" for a in range(1, 5)))
    outcome = psql("sync", "--max-batch-changes", "1", *spark_options())
    assert outcome.exit_code == 1
    assert len(_APPLIED.findall(outcome.stderr)) == 2
    assert "Key (a)=(3) already exists." in outcome.stderr
    assert run(psql, "test_sub", "SELECT a, b FROM t ORDER BY a;") == "1|x\n2|x\n3|own\n"
    behind = (
        "SELECT count(*) FROM pg_replication_origin_status o, pg_replication_slots s"
        " WHERE o.remote_lsn = s.confirmed_flush_lsn;"
    )
    assert run(psql, "test_sub", behind) == "1\n"
    run(psql, "test_sub", "DELETE FROM t WHERE a = 3;")
    sync(psql)
    assert run(psql, "test_sub", "SELECT a, b FROM t ORDER BY a;") == "1|x\n2|x\n3|x\n4|x\n"


def test_a_limit_that_is_none(psql: Psql) -> None:
    outcome = psql("sync", "--max-batch-changes", "many")
    assert outcome.exit_code == 1
    problem = 'invalid value for parameter "replctl.max_batch_changes": "many"'
    assert outcome.stderr == f"ERROR:  {problem}\n"
