"""Slots and origins between sessions, without Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from replctl.catalog.cluster import Cluster
from replctl.catalog.commit_digest import LogPosition
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.pg_replication_slots import (
    advance_origin,
    create_origin,
    origin_position,
    put_origin,
)
from replctl.errors import ObjectInUse, UndefinedObject
from replctl.execute import execute
from replctl.lake import logical_decoding
from replctl.lake.publisher import LakePublisher
from replctl.replication.output_plugin import DecodedTransaction
from replctl.session import Session

_TEMPORARY = "SELECT slot_name FROM pg_create_logical_replication_slot('s', 'test_decoding', true)"


def _rows(session: Session, query: str) -> list[list[str | None]]:
    (result,) = execute(session, query)
    return [list(row) for row in result.rows]


@pytest.fixture
def other(cluster: Cluster) -> Session:
    """Return a second session of the database."""
    return Session.connect(cluster, "postgres", "postgres")


def test_a_temporary_slot_is_its_session_s_alone(session: Session, other: Session) -> None:
    _rows(session, _TEMPORARY)
    pid = os.getpid()
    query = "SELECT slot_name, temporary, active, active_pid FROM pg_replication_slots"
    assert _rows(other, query) == [["s", "t", "t", str(pid)]]
    for call in (
        "pg_drop_replication_slot('s')",
        "pg_replication_slot_advance('s', pg_current_wal_lsn())",
        "data FROM pg_logical_slot_get_changes('s', NULL, NULL)",
    ):
        with pytest.raises(ObjectInUse, match=f'slot "s" is active for PID {pid}'):
            _rows(other, f"SELECT {call}")
    session.close()
    assert _rows(other, query) == []


@pytest.mark.parametrize(("wanted", "decoded"), [(-1, []), (1, [1]), (4, [2]), (0, [5])])
def test_no_more_is_decoded_than_is_wanted(
    session: Session, monkeypatch: pytest.MonkeyPatch, wanted: int, decoded: list[int]
) -> None:
    """A transaction has three rows here.  At least one transaction is decoded."""
    read: list[int] = []

    def seen(batch: Any) -> Iterator[DecodedTransaction]:
        read.append(len(batch._commits))
        return transactions(batch)

    transactions = logical_decoding._Batch.transactions
    monkeypatch.setattr(logical_decoding._Batch, "transactions", seen)
    _rows(session, _TEMPORARY)
    for number in range(5):
        _rows(session, f"SELECT pg_logical_emit_message(true, 'm', '{number}')")
    query = f"SELECT data FROM pg_logical_slot_get_changes('s', NULL, {wanted})"
    whole = [3 * number for number in range(6)]
    wanted_rows = next(rows for rows in whole if rows >= wanted) if wanted else whole[-1]
    assert len(_rows(session, query)) == wanted_rows
    assert read == decoded
    rest = "SELECT data FROM pg_logical_slot_get_changes('s', NULL, NULL)"
    assert len(_rows(session, rest)) == whole[-1] - wanted_rows


def test_an_error_drops_temporary_slots(session: Session) -> None:
    _rows(session, _TEMPORARY)
    with pytest.raises(UndefinedObject):
        _rows(session, "SELECT pg_drop_replication_slot('none')")
    assert _rows(session, "SELECT slot_name FROM pg_replication_slots") == []


def test_a_dead_process_leaves_no_temporary_slot(cluster: Cluster) -> None:
    dying = open_cluster(cluster.path)
    _rows(Session.connect(dying, "postgres", "postgres"), _TEMPORARY)
    dying.close()
    session = Session.connect(cluster, "postgres", "postgres")
    assert _rows(session, "SELECT slot_name FROM pg_replication_slots") == []


def test_an_origin_is_set_up_in_one_session(session: Session, other: Session) -> None:
    _rows(session, "SELECT pg_replication_origin_create('o')")
    _rows(session, "SELECT pg_replication_origin_session_setup('o')")
    active = f"replication origin with ID 1 is already active for PID {os.getpid()}"
    for call in (
        "pg_replication_origin_session_setup('o')",
        "pg_replication_origin_advance('o', '0/1')",
    ):
        with pytest.raises(ObjectInUse, match=active):
            _rows(other, f"SELECT {call}")
    with pytest.raises(ObjectInUse, match="could not drop replication origin with ID 1, in use"):
        _rows(other, "SELECT pg_replication_origin_drop('o')")
    session.close()
    _rows(other, "SELECT pg_replication_origin_drop('o')")


@pytest.mark.parametrize(
    ("known", "position", "expected"),
    [
        (LogPosition(5, "e"), LogPosition(7, "g"), LogPosition(7, "g")),
        (LogPosition(5, "e"), LogPosition(7), LogPosition(7)),
        (LogPosition(9), LogPosition(7, "g"), LogPosition(9)),  # a user has skipped changes
        (LogPosition(9, "i"), LogPosition(7, "g"), LogPosition(9, "i")),
        (LogPosition(7), LogPosition(7, "g"), LogPosition(7, "g")),
        (LogPosition(7, "g"), LogPosition(7), LogPosition(7, "g")),
    ],
)
def test_a_worker_moves_its_origin_only_forward(
    session: Session, known: LogPosition, position: LogPosition, expected: LogPosition
) -> None:
    with session.cluster.begin(write=True) as connection:
        create_origin(connection, "o", LogPosition(8, "h"))
        put_origin(connection, "o", known, None)
        assert origin_position(connection, "o") == known
        advance_origin(connection, "o", position, 3)
        assert origin_position(connection, "o") == expected


def _clock(monkeypatch: pytest.MonkeyPatch, second: int) -> None:
    monkeypatch.setattr("time.time_ns", lambda: (1_800_000_000 + second) * 1_000_000_000)


def _inactive_since(session: Session) -> int | None:
    (row,) = _rows(session, "SELECT extract(epoch FROM inactive_since) FROM pg_replication_slots")
    return None if row[0] is None else int(float(row[0])) - 1_800_000_000


def test_a_slot_is_inactive_since_its_last_release(
    session: Session, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    _clock(monkeypatch, 0)
    _rows(session, "SELECT slot_name FROM pg_create_logical_replication_slot('s', 'test_decoding')")
    publisher = LakePublisher(session)
    seen = []
    for second in (10, 20):
        _clock(monkeypatch, second)
        publisher.slots.start_replication("s", "1/1", "s", ["p"])
        seen.append(_inactive_since(session))
        publisher.slots.end_replication("s", stays=True)
        with monkeypatch.context() as ended:  # as `replctl sync` ends, without a message
            ended.setattr(cluster, "is_alive", lambda backend: False)
            seen.append(_inactive_since(session))
        publisher.slots.end_replication("s", stays=False)
    assert seen == [None, 10, None, 20]
    statements = (
        "SELECT pg_replication_slot_advance('s', pg_current_wal_lsn())",
        "SELECT data FROM pg_logical_slot_peek_changes('s', NULL, NULL)",
        "SELECT data FROM pg_logical_slot_get_changes('s', NULL, NULL)",
    )
    for second, statement in enumerate(statements, start=30):
        _clock(monkeypatch, second)
        _rows(session, statement)
        assert _inactive_since(session) == second
    _rows(session, "SELECT slot_name FROM pg_replication_slots")
    assert _inactive_since(session) == 32


def test_a_slot_is_inactive_since_its_reader_was_killed(
    session: Session, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    _clock(monkeypatch, 0)
    _rows(session, "SELECT slot_name FROM pg_create_logical_replication_slot('s', 'test_decoding')")
    publisher = LakePublisher(session)
    publisher.slots.start_replication("s", "1/1", "s", ["p"])
    _clock(monkeypatch, 60)
    publisher.slots.report_end("s")
    monkeypatch.setattr(cluster, "is_alive", lambda backend: False)
    assert _inactive_since(session) == 60


def test_an_earlier_attempt_of_this_process_holds_no_slot(
    session: Session, cluster: Cluster
) -> None:
    """The end of a copy could not be recorded, because the publisher's home was away or full."""
    create = "SELECT slot_name FROM pg_create_logical_replication_slot('s', 'pgoutput')"
    _rows(session, create)
    slots = LakePublisher(session).slots
    slots.start_replication("s", "1/1", "s", ["p"])
    slots.drop("s")
    _rows(session, create)
    process = open_cluster(cluster.path)
    LakePublisher(Session.connect(process, "postgres", "postgres")).slots.start_replication(
        "s", "1/1", "s", ["p"]
    )
    with pytest.raises(ObjectInUse, match=f'slot "s" is active for PID {os.getpid()}'):
        slots.drop("s")
    process.close()
    slots.drop("s")
