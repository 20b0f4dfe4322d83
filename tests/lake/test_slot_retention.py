"""Slots that retain too much, or whose tables their owners clean, without Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from deltalake import DeltaTable
from fix_lake import Lake
from golden_script import answer_of

from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_subscription import Subscription
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.publisher import LakePublisher
from replctl.relation_name import RelationName
from replctl.replication.apply_error import DecodingFailure
from replctl.replication.log_range import LogRange
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
    publisher.slots.position("s")
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
        publisher.slots.position("s")
    assert caught.value.message == 'can no longer get changes from replication slot "s"'
    assert caught.value.detail == (
        "This slot has been invalidated because it exceeded the maximum reserved size."
    )
    publisher.slots.advance("s", publisher.slots.current_lsn())
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
        "HINT: Synchronize its subscription first.",
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
    publisher.slots.start_replication("s", "1/1", "s", ["p"])
    _grow(session, 1)
    assert answer_of(session, "checkpoint") == ("CHECKPOINT",)
    publisher.slots.end_replication("s", stays=False)
    assert answer_of(session, "checkpoint")[-1] == "CHECKPOINT"
    assert answer_of(session, _STATUS)[0] == "| s | lost | NULL | wal_removed | t"


def test_wal_keep_size_counts_too(cluster: Cluster) -> None:
    session = _session(cluster, "max_slot_wal_keep_size = '16MB'", "wal_keep_size = '64MB'")
    answer_of(session, "select pg_create_logical_replication_slot('s', 'pgoutput')")
    _grow(session, 4)
    assert answer_of(session, _STATUS)[0].startswith("| s | reserved | ")
    _grow(session, 1)
    assert answer_of(session, _STATUS)[0].startswith("| s | unreserved | ")


def adopt(lake: Lake) -> None:
    """Mark the table as the table of another program."""
    with lake.session.cluster.begin(write=True) as connection:
        connection.exec_driver_sql("update storage_table set is_adopted = 1")


def age(lake: Lake, days: float) -> None:
    """Make the newest commit, which is not entered yet, older."""
    version = DeltaTable(lake.location).version()
    path = Path(lake.location) / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        for kind, name in (("commitInfo", "timestamp"), ("remove", "deletionTimestamp")):
            if kind in action:
                action[kind][name] -= int(days * 86_400_000)
    path.write_text("\n".join(map(json.dumps, actions)))


def retentions(lake: Lake, files: str, log: str) -> None:
    DeltaTable(lake.location).alter.set_table_properties(
        {
            "delta.deletedFileRetentionDuration": f"interval {files}",
            "delta.logRetentionDuration": f"interval {log}",
        }
    )


def update_aged(lake: Lake, days: float) -> None:
    DeltaTable(lake.location).update(updates={"v": "'aged'"}, predicate="id = 1")
    age(lake, days)
    lake.enter()


_WARNING = (
    'WARNING 01000: retention of table "public.t" is about to remove changes that replication slot'
    ' "s" needs'
)


def test_a_slot_is_warned_before_the_retention_of_its_owner_removes_what_it_needs(
    lake: Lake,
) -> None:
    adopt(lake)
    lake.run("select pg_create_logical_replication_slot('s', 'pgoutput')")
    assert lake.run("vacuum") == ("VACUUM",)
    update_aged(lake, 5)
    assert lake.run("vacuum") == ("VACUUM",)
    update_aged(lake, 6)
    warning, detail, hint, _tag = lake.run("vacuum")
    assert warning == _WARNING
    assert re.fullmatch(
        r"DETAIL: delta.deletedFileRetentionDuration \(7 days\) keeps them until"
        r" \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00\.",
        detail,
    )
    assert hint == (
        "HINT: Synchronize the subscription of the slot, or ask the table's owner to extend its"
        " retention."
    )
    assert lake.run(_STATUS)[0] == "| s | reserved | NULL | NULL | f"
    retentions(lake, "10 days", "9 days")
    assert lake.run("vacuum") == ("VACUUM",)
    retentions(lake, "30 days", "6 days")
    assert "DETAIL: delta.logRetentionDuration (6 days)" in lake.run("vacuum")[1]
    retentions(lake, "5 days", "7 days")
    lake.run("vacuum")
    assert lake.run(_STATUS)[0] == "| s | unreserved | NULL | NULL | f"
    assert lake.run("checkpoint")[-1] == "CHECKPOINT"
    LakePublisher(lake.session).slots.advance("s", lake.enter())
    assert lake.run("vacuum") == ("VACUUM",)
    assert lake.run(_STATUS)[0] == "| s | reserved | NULL | NULL | f"


def test_rows_that_were_only_added_are_not_in_danger(lake: Lake) -> None:
    adopt(lake)
    retentions(lake, "7 days", "30 days")
    lake.enter()
    lake.run("select pg_create_logical_replication_slot('s', 'pgoutput')")
    lake.write({"id": [8]}, mode="append")
    age(lake, 20)
    lake.enter()
    assert lake.run("vacuum") == ("VACUUM",)
    lake.write({"id": [9]}, mode="append")
    DeltaTable(lake.location).optimize.compact()
    age(lake, 6)
    lake.enter()
    assert lake.run("vacuum")[0] == _WARNING


def test_only_slots_that_publish_the_table_are_warned(lake: Lake) -> None:
    adopt(lake)
    lake.run("create table other (a int primary key)")
    lake.run("create publication p for table t")
    lake.run("create publication q for table other")
    publisher = LakePublisher(lake.session)
    for slot, publication in (("s", "p"), ("elsewhere", "q")):
        publisher.slots.create(slot, two_phase=False, failover=False, publications=[publication])
    update_aged(lake, 6)
    answer = lake.run("vacuum")
    assert [line for line in answer if line.startswith("WARNING")] == [_WARNING]
    (log_of(lake) / f"{1:020d}.json").unlink()
    lake.run("vacuum")
    statuses = [line.split(" | ")[:2] for line in lake.run(_STATUS)[:2]]
    assert statuses == [["| elsewhere", "reserved"], ["| s", "lost"]]


def log_of(lake: Lake) -> Path:
    return Path(lake.location) / "_delta_log"


def changes_of(lake: Lake, start: int) -> None:
    """Decode the table for a subscription."""
    publisher = LakePublisher(lake.session)
    end = publisher.slots.current_lsn([RelationName("public", "t")])
    log = LogRange(start, end, ["p"], {RelationName("public", "t"): start}, "any")
    with publisher.decoding.changes(log, lambda _remote: True, 1):
        pass


@pytest.mark.parametrize(
    ("is_entered", "cleaned"), [(True, range(4)), (False, range(4)), (False, range(2, 4))]
)
def test_a_cleaned_log_loses_the_slot_until_the_table_is_copied_again(
    lake: Lake, cleaned: Sequence[int], *, is_entered: bool
) -> None:
    adopt(lake)
    lake.run("create publication p for table t")
    publisher = LakePublisher(lake.session)
    publisher.slots.create("s", two_phase=False, failover=False, publications=["p"])
    start = lake.update()
    publisher.slots.advance("s", start)
    for number in range(3):
        DeltaTable(lake.location).update(updates={"v": f"'{number}'"}, predicate="id = 1")
    if is_entered:
        lake.enter()
    DeltaTable(lake.location).create_checkpoint()
    for number in cleaned:
        (log_of(lake) / f"{number:020d}.json").unlink()
    with pytest.raises(DecodingFailure) as caught:
        changes_of(lake, start)
    error = caught.value.reported(Subscription(0, 0, "s", 10, "", ("p",), "s"))
    assert error.message == 'changes of table "public.t" were removed before they were read'
    assert error.hint == "ALTER SUBSCRIPTION s REFRESH TABLE public.t;"
    assert publisher.slots.position("s") == start
    assert lake.run(_STATUS)[0] == "| s | lost | NULL | NULL | f"
    publisher.slots.advance("s", publisher.slots.current_lsn())
    publisher.slots.position("s")
    assert lake.run(_STATUS)[0] == "| s | reserved | NULL | NULL | f"


def remove(lake: Lake, names: set[str]) -> None:
    """Remove files of the table."""
    for name in names:
        (Path(lake.location) / name).unlink()


def test_files_of_changes_that_are_gone_lose_the_slot(lake: Lake) -> None:
    lake.run("select pg_create_logical_replication_slot('s', 'pgoutput')")
    before = lake.files()
    adopt(lake)
    lake.update(1)
    remove(lake, {name for name in lake.files() if name.startswith("_change_data")})
    assert lake.run("vacuum") == ("VACUUM",)
    assert lake.run(_STATUS)[0] == "| s | reserved | NULL | NULL | f"  # the rows are still there
    remove(lake, {name for name in before if name.endswith(".parquet")})
    assert lake.run("vacuum") == ("VACUUM",)
    assert lake.run(_STATUS)[0] == "| s | lost | NULL | NULL | f"


def test_a_table_that_cannot_be_read_does_not_stop_slots(lake: Lake) -> None:
    adopt(lake)
    lake.run("select pg_create_logical_replication_slot('s', 'pgoutput')")
    lake.update(2)
    log_of(lake).rename(log_of(lake).with_name("elsewhere"))
    LakePublisher(lake.session).slots.position("s")
