"""Messages about slots that have lost needed changes, or will lose them soon, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from fix_lake import Lake
from golden_script import answer_of
from test_slot_retention import adopt, age, log_of, remove, retentions, update_aged

from replctl.catalog.cluster import Cluster
from replctl.session import Session
from replctl.status import SubscriptionStatus, subscription_status

_STATUS = "select wal_status from pg_replication_slots where slot_name = 's'"


@pytest.fixture
def subscriber(lake: Lake, cluster: Cluster) -> Session:
    """Return a session in a database with a subscription to table t, which another program owns."""
    adopt(lake)
    lake.run("create publication p for table t")
    lake.run("create database sub")
    session = Session.connect(cluster, "sub", "postgres")
    answer_of(session, "create table t (id int primary key, v text)")
    created = answer_of(
        session,
        "create subscription s connection 'dbname=postgres' publication p with (copy_data = false)",
    )
    assert created[-1] == "CREATE SUBSCRIPTION"
    return session


def _state(session: Session) -> SubscriptionStatus:
    (status,) = subscription_status(session)
    return status


def test_a_table_that_no_slot_publishes_loses_none(lake: Lake, cluster: Cluster) -> None:
    """Its owner may clean it."""
    lake.run("create table other (a int primary key)")
    lake.run("create publication p for table other")
    lake.run("create database sub")
    session = Session.connect(cluster, "sub", "postgres")
    answer_of(session, "create table other (a int primary key)")
    answer_of(session, "create subscription s connection 'dbname=postgres' publication p")
    adopt(lake)
    update_aged(lake, 8)
    (log_of(lake) / f"{1:020d}.json").unlink()
    assert lake.run("vacuum") == ("VACUUM",)
    assert lake.run(_STATUS) == ("| reserved", "SELECT 1")
    assert _state(session).error is None


def test_status_and_wal_status_say_it_before_sync(lake: Lake, subscriber: Session) -> None:
    lake.update(3)
    assert _state(subscriber).error is None
    assert lake.run(_STATUS)[0] == "| reserved"
    DeltaTable(lake.location).create_checkpoint()
    for number in range(3):
        (log_of(lake) / f"{number:020d}.json").unlink()
    assert lake.run(_STATUS)[0] == "| lost"
    for state in ("enable", "disable"):
        assert answer_of(subscriber, f"alter subscription s {state}") == ("ALTER SUBSCRIPTION",)
        found = _state(subscriber)
        assert found.state == "broken"
        assert found.error is not None
        assert found.error.message == (
            'changes of table "public.t" were removed before they were read'
        )
    answer_of(subscriber, "alter subscription s set (resync = auto)")
    assert _state(subscriber).state == "disabled"
    answer_of(subscriber, "alter subscription s set (resync = manual)")
    refreshed = "alter subscription s refresh table t with (enabled = true, delete = all)"
    assert answer_of(subscriber, refreshed) == ("ALTER SUBSCRIPTION",)
    assert _state(subscriber).state == "copying"


def test_files_of_later_changes_are_looked_for_when_their_time_is_over(lake: Lake) -> None:
    """The file of the first change exists.  The file of the second change is missing."""
    adopt(lake)
    retentions(lake, "5 days", "30 days")
    lake.enter()
    lake.run("select pg_create_logical_replication_slot('s', 'pgoutput')")
    lake.write({"id": [8]})
    age(lake, 6)
    lake.enter()
    before = lake.files()
    update_aged(lake, 6)
    assert lake.run(_STATUS)[0] == "| unreserved"
    gone = {name for name in lake.files() if name.startswith("_change_data")}
    gone |= {name for name in before if name.endswith(".parquet")}
    remove(lake, {name for name in gone if (Path(lake.location) / name).exists()})
    assert lake.run(_STATUS)[0] == "| lost"


def test_the_hint_is_for_who_reads_the_slot(cluster: Cluster) -> None:
    session = Session.connect(cluster, "postgres", "postgres")
    answer_of(session, "alter system set max_slot_wal_keep_size = 0")
    session = Session.connect(cluster, "postgres", "postgres")
    answer_of(session, "create publication p")
    answer_of(session, "select pg_create_logical_replication_slot('s', 'test_decoding')")
    answer_of(session, "create database sub")
    subscriber = Session.connect(cluster, "sub", "postgres")
    answer_of(subscriber, "create subscription u connection 'dbname=postgres' publication p")
    answer_of(subscriber, "alter subscription u disable")
    answer_of(session, "select pg_switch_wal()")
    answer_of(session, "create table grown (a int)")
    answer_of(session, "checkpoint")
    read = "select data from pg_logical_slot_get_changes('s', null, null)"
    error, detail, hint = answer_of(session, read)
    assert error == 'ERROR 55000: can no longer get changes from replication slot "s"'
    assert detail.startswith("DETAIL: This slot has been invalidated because it exceeded")
    drop, create = hint.removeprefix("HINT: Use ").split(", then ")
    answer_of(session, drop)
    answer_of(session, create.partition(":")[0])
    assert answer_of(session, read) == ("SELECT 0",)
    status = _state(subscriber)
    assert (status.enabled, status.state) == (False, "broken")
    assert status.error is not None
    assert "exceeded the maximum reserved size" in status.error.message
