"""Subscriptions with different filters that read the same change feed."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from fix_replication import Database, connect
from long_tests import LONG

from replctl.spark import shared_feed, staging

pytestmark = pytest.mark.spark

_TABLE = "CREATE TABLE t (id int PRIMARY KEY, region text, v numeric, w char(3))"
_REGIONS = ("a", "b", "c")


@pytest.mark.parametrize(
    "count", [pytest.param(10, marks=LONG), 3000], ids=["few changes", "many changes"]
)
def test_each_gets_its_own(
    publisher: Database, subscriber: Database, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.run(f"{_TABLE}; ALTER TABLE t REPLICA IDENTITY FULL")
    session = subscriber.session
    databases = [subscriber, *(connect(session.cluster, n, session.engine()) for n in "bc")]
    for region, database in zip(_REGIONS, databases, strict=True):
        publisher.run(f"CREATE PUBLICATION {region} FOR TABLE t WHERE (region = '{region}')")
        database.run(_TABLE)
        database.run(
            f"CREATE SUBSCRIPTION {region} CONNECTION 'host=localhost dbname=test_pub' PUBLICATION"
            f" {region} WITH (copy_data = false)"
        )
    reading = Mock(side_effect=staging.staged)
    monkeypatch.setattr(shared_feed, "staged", reading)
    publisher.run(
        "INSERT INTO t SELECT i, substr('abc', 1 + i % 3, 1), i / 8.0, 'x'"
        f" FROM generate_series(1, {count}) i"
    )
    publisher.run(
        "UPDATE t SET region = 'b', v = NULL WHERE id % 5 = 0; DELETE FROM t WHERE id = 7"
    )
    publisher.run("UPDATE t SET id = -id WHERE id = 8")
    assert subscriber.sync() == []
    assert reading.call_count == 1
    for region, database in zip(_REGIONS, databases, strict=True):
        wanted = publisher.rows(f"SELECT * FROM t WHERE region = '{region}' ORDER BY id")
        assert len(wanted) > 1
        assert database.rows("SELECT * FROM t ORDER BY id") == wanted
