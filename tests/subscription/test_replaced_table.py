"""The owner of a published table restores it from a backup, or writes it again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fix_replication import Database

pytestmark = pytest.mark.spark

_SORTED = "SELECT * FROM t ORDER BY id"


def test_a_table_that_was_put_back_stops_its_subscription_until_it_is_copied_again(
    publisher: Database, subscriber: Database, tmp_path: Path
) -> None:
    location, backup = tmp_path / "lake", tmp_path / "backup"
    publisher.run(
        f"CREATE TABLE t (id int PRIMARY KEY) USING delta LOCATION '{location}';"
        " CREATE TABLE u (id int PRIMARY KEY); INSERT INTO t VALUES (1);"
        " CREATE PUBLICATION p FOR TABLE t, u"
    )
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int PRIMARY KEY)")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    shutil.copytree(location, backup)
    publisher.run("INSERT INTO t VALUES (2)")
    assert subscriber.sync() == []
    publisher.run("INSERT INTO u VALUES (7)")
    shutil.rmtree(location)
    shutil.move(backup, location)

    # Earlier commits are applied; then the subscription stops at each attempt
    for _attempt in range(2):
        (failure,) = subscriber.sync()
        assert 'table "public.t" was replaced or restored' in failure.error.message
        assert failure.error.hint == "ALTER SUBSCRIPTION s REFRESH TABLE public.t;"
    assert subscriber.rows("SELECT * FROM u") == publisher.rows("SELECT * FROM u")
    assert publisher.rows(_SORTED) == [("1",)]

    # Following the hint helps
    subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE public.t")
    assert subscriber.sync() == []
    publisher.run("INSERT INTO t VALUES (3)")
    assert subscriber.sync() == []
    assert subscriber.rows(_SORTED) == publisher.rows(_SORTED) == [("1",), ("3",)]
