"""Slots that hold back too much, or whose tables are cleaned by their owners; without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from fix_lake import Lake
from golden_script import answer_of

from replctl.catalog.cluster import Cluster
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.publisher import LakePublisher
from replctl.session import Session

_MB = 1024 * 1024
_STATUS = (
    "select slot_name, wal_status, safe_wal_size, invalidation_reason, restart_lsn is null"
    " from pg_replication_slots"
)


def _grow(session: Session, segments: int) -> None:
    for _number in range(segments):
        answer_of(session, "select pg_switch_wal()")
        answer_of(session, "select txid_current()")
        answer_of(session, "create table grown (a int)")
        answer_of(session, "drop table grown")


def _session(cluster: Cluster, *settings: str) -> Session:
    session = Session.connect(cluster, "postgres", "postgres")
    for setting in settings:
        assert answer_of(session, f"alter system set {setting}") == ("ALTER SYSTEM",)
    return Session.connect(cluster, "postgres", "postgres")


def test_a_slot_passes_through_all_states(cluster: Cluster) -> None:
    session = _session(cluster, "max_slot_wal_keep_size = '64MB'", "max_wal_size = '32MB'")
    _grow(session, 1)
    answer_of(session, "select pg_create_logical_replication_slot('s', 'pgoutput')")
    seen = []
    for _number in range(6):
        (row, _tag) = answer_of(session, _STATUS)
        _name, status, safe, reason, is_null = row.removeprefix("| ").split(" | ")
        assert (reason, is_null) == ("NULL", "f")
        seen.append((status, round(int(safe) / _MB)))
        _grow(session, 1)
    assert [status for status, _safe in seen] == ["reserved"] * 4 + ["extended", "unreserved"]
    assert [safe for _status, safe in seen] == [80, 64, 48, 32, 16, 0]
    publisher = LakePublisher(session)
    notices: list[str] = []
    session.on_notice = lambda notice: notices.append(f"{notice.severity}: {notice.message}")
    publisher.slot_position("s")
    assert notices == [
        'WARNING: replication slot "s" is going to be invalidated by the next VACUUM or CHECKPOINT'
    ]
    answer = answer_of(session, "checkpoint")
    assert answer[0] == 'WARNING 01000: invalidating obsolete replication slot "s"'
    assert answer[1].startswith("DETAIL: The slot's restart_lsn 0/")
    assert answer[2:] == (
        'HINT: You might need to increase "max_slot_wal_keep_size".',
        "CHECKPOINT",
    )
    assert answer_of(session, _STATUS)[0] == "| s | lost | NULL | wal_removed | t"
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        publisher.slot_position("s")
    assert caught.value.message == 'can no longer get changes from replication slot "s"'
    assert caught.value.detail == (
        "This slot has been invalidated because it exceeded the maximum reserved size."
    )
    publisher.advance_slot("s", publisher.current_lsn())
    assert answer_of(session, _STATUS)[0] == "| s | lost | NULL | wal_removed | t"
    assert answer_of(session, "select pg_replication_slot_advance('s', pg_current_wal_lsn())") == (
        'ERROR 55000: replication slot "s" cannot be advanced',
        "DETAIL: This slot has never previously reserved WAL, or it has been invalidated.",
    )
    assert answer_of(session, "select pg_copy_logical_replication_slot('s', 'u')") == (
        "ERROR 55000: cannot copy a replication slot that doesn't reserve WAL",
    )
    assert answer_of(session, "checkpoint") == ("CHECKPOINT",)
    answer_of(session, "select pg_drop_replication_slot('s')")


def test_vacuum_warns_before_and_frees_what_a_lost_slot_held(lake: Lake, cluster: Cluster) -> None:
    session = lake.session = _session(
        cluster, "max_slot_wal_keep_size = '16MB'", "replctl.vacuum_retention = 0"
    )
    lake.update(2)
    lake.run("select pg_create_logical_replication_slot('s', 'pgoutput')")
    lake.update(2)
    assert lake.run("vacuum") == ("VACUUM",)
    _grow(session, 1)
    assert lake.run("vacuum")[:3:2] == (
        'WARNING 01000: replication slot "s" is close to "max_slot_wal_keep_size"',
        "HINT: Synchronize its subscription before.",
    )
    assert [lake.reads(version) for version in range(5)] == [False] * 2 + [True] * 3
    _grow(session, 1)
    assert lake.run("vacuum t")[0].startswith(
        'WARNING 01000: replication slot "s" is going to be invalidated'
    )
    assert lake.reads(2)
    assert lake.run("vacuum")[0] == 'WARNING 01000: invalidating obsolete replication slot "s"'
    assert [lake.reads(version) for version in range(5)] == [False] * 4 + [True]


def test_a_slot_that_is_read_is_left(cluster: Cluster) -> None:
    session = _session(cluster, "max_slot_wal_keep_size = 0")
    answer_of(session, "select pg_create_logical_replication_slot('s', 'pgoutput')")
    publisher = LakePublisher(session)
    publisher.start_replication("s", "1/1", "s")
    _grow(session, 1)
    assert answer_of(session, "checkpoint") == ("CHECKPOINT",)
    publisher.end_replication("s", stays=False)
    assert answer_of(session, "checkpoint")[-1] == "CHECKPOINT"
    assert answer_of(session, _STATUS)[0] == "| s | lost | NULL | wal_removed | t"


def test_wal_keep_size_counts_too(cluster: Cluster) -> None:
    session = _session(cluster, "max_slot_wal_keep_size = '16MB'", "wal_keep_size = '64MB'")
    answer_of(session, "select pg_create_logical_replication_slot('s', 'pgoutput')")
    _grow(session, 4)
    assert answer_of(session, _STATUS)[0].startswith("| s | reserved | ")
    _grow(session, 1)
    assert answer_of(session, _STATUS)[0].startswith("| s | unreserved | ")


def test_an_adopted_table_whose_owner_cleans_it_loses_the_slot(lake: Lake) -> None:
    with lake.session.cluster.begin(write=True) as connection:
        connection.exec_driver_sql("update storage_table set is_adopted = 1")
    lake.run("select pg_create_logical_replication_slot('s', 'pgoutput')")
    assert lake.run("vacuum") == ("VACUUM",)
    lake.update(2)
    assert lake.run("vacuum") == ("VACUUM",)
    with lake.session.cluster.begin(write=True) as connection:
        connection.exec_driver_sql("update pg_xact set commit_time = commit_time - 518400000000")
    assert lake.run("vacuum") == (
        'WARNING 01000: retention of table "public.t" is about to remove changes that replication'
        ' slot "s" needs',
        "DETAIL: The oldest of them is 6 days old, and delta.deletedFileRetentionDuration is"
        " 7 days.",
        "HINT: Synchronize the subscription of the slot, or let the table's owner prolong its"
        " retention.",
        "VACUUM",
    )
    table = DeltaTable(lake.location)
    table.alter.set_table_properties(
        {
            "delta.deletedFileRetentionDuration": "interval 10 days",
            "delta.logRetentionDuration": "interval 9 days",
        }
    )
    assert lake.run("vacuum") == ("VACUUM",)
    (Path(lake.location) / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises(ObjectNotInPrerequisiteState, match="can no longer get changes"):
        LakePublisher(lake.session).slot_position("s")
    assert lake.run(_STATUS)[0] == "| s | lost | NULL | wal_removed | t"


@pytest.mark.parametrize("age", [0, 691_200_000_000])
def test_an_adopted_table_whose_files_are_gone_loses_the_slot(lake: Lake, age: int) -> None:
    lake.run("select pg_create_logical_replication_slot('s', 'pgoutput')")
    before = lake.files()
    lake.update(1)
    with lake.session.cluster.begin(write=True) as connection:
        connection.exec_driver_sql("update storage_table set is_adopted = 1")
        connection.exec_driver_sql(f"update pg_xact set commit_time = commit_time - {age}")
    lost = (
        'WARNING 01000: invalidating obsolete replication slot "s"',
        'DETAIL: Changes of table "public.t" that it needs have been removed by the table\'s own'
        " retention.",
        "VACUUM",
    )
    remove(lake, {name for name in lake.files() if name.startswith("_change_data")})
    assert lake.run("vacuum") != lost  # the files of the rows are still there
    remove(lake, {name for name in before if name.endswith(".parquet")})
    assert lake.run("vacuum") == lost
    assert lake.run(_STATUS)[0] == "| s | lost | NULL | wal_removed | t"


def remove(lake: Lake, names: set[str]) -> None:
    """Remove files of the table."""
    for name in names:
        (Path(lake.location) / name).unlink()
