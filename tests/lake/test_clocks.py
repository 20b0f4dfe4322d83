"""VACUUM, slots and the order of commits with wrong clocks, and with days that are longer or
shorter, without Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import pytest
from fix_lake import Lake

from replctl.catalog.pg_replication_slots import list_slots
from replctl.catalog.vacuum_horizon import Horizon, oldest_needed_version
from replctl.lake.publisher import LakePublisher

_DAY = 86400
#: Days on which wall clocks change.  A week still has the same length.
_DAYS = ("2027-03-28", "2027-10-31", "2026-12-31", "2028-02-29")
_ZONES = ("UTC", "Europe/Zurich", "America/New_York", "Australia/Lord_Howe")


def _date_commits(lake: Lake, days: Sequence[float], now: float) -> None:
    """Give the newest commits of the log times some days before a moment, and all others a much
    earlier time."""
    with lake.session.cluster.begin(write=True) as connection:
        long_ago = int((now - 60 * _DAY) * 1_000_000)
        connection.exec_driver_sql(
            f"update pg_xact set commit_time = {long_ago} where status = 'c'"
        )
        xids = connection.exec_driver_sql(
            "select distinct xact.xid from pg_xact xact join pg_wal wal on wal.xid = xact.xid"
            " where xact.status = 'c' order by xact.commit_lsn"
        ).scalars()
        for xid, day in zip(list(xids)[-len(days) :], days, strict=True):
            made = int((now + day * _DAY) * 1_000_000)
            connection.exec_driver_sql(f"update pg_xact set commit_time = {made} where xid = {xid}")


@pytest.mark.parametrize(
    ("days", "kept"),
    [
        # All clocks are right
        ((-40, -30, -20, -10, -1), 5),
        ((-40, -30, -20, -3, -1), 4),
        # A clock was a year ahead: the commits before and after a commit show the right time
        ((-40, 365, -20, -10, -1), 5),
        ((365, -30, -20, -10, -1), 5),
        ((365, 364, 363, -10, -1), 5),
        ((-40, -30, -20, 365, -1), 4),
        ((-40, -30, -20, -10, 365), 5),
        ((-40, -30, -3, 365, -1), 3),
        ((365, 365, 365, 365, 365), 1),
        # A clock was behind: this does not make earlier commits older
        ((-5, -4, -3, -20000, -1), 1),
        ((-5, 365, -20000, -20000, -1), 1),
    ],
)
def test_a_wrong_clock_decides_only_for_its_own_commit(
    lake: Lake, days: Sequence[float], kept: int
) -> None:
    """A wrong clock does not change the age of other commits.

    Args:
        days: the dates of five commits, in days from now.  The first is the table's second version.
        kept: the oldest of them that is younger than a week, counted from 1.
    """
    lake.update(5)
    now = time.time()
    _date_commits(lake, (-50, *days), now)
    end = lake.enter()
    micros = int(now * 1_000_000)
    with lake.session.read() as catalog:
        horizon = Horizon.of(catalog.connection, end, micros - 7 * _DAY * 1_000_000, micros)
        assert oldest_needed_version(catalog, lake.oid, horizon) == kept - 1


def test_vacuum_removes_what_is_older_than_a_commit_of_a_clock_ahead(lake: Lake) -> None:
    lake.run("set replctl.vacuum_retention = '7d'")
    lake.update(5)
    _date_commits(lake, (-50, -40, 365, -20, -10, -1), time.time())
    lake.run("vacuum")
    assert [lake.reads(version) for version in range(6)] == [False] * 4 + [True] * 2
    with lake.session.cluster.begin(write=False) as connection:
        left = connection.exec_driver_sql("select count(*) from pg_wal where version < 4")
        assert left.scalar_one() == 0


@pytest.fixture(params=_ZONES)
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Set the local time zone, and yield its name."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def test_a_week_is_seven_times_24_hours(
    lake: Lake, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.run("set replctl.vacuum_retention = '7d'")
    lake.update(2)
    for day in _DAYS:
        noon = datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC).timestamp()
        _date_commits(lake, (-50, -50, 0), noon)
        for seconds, keeps in ((7 * _DAY - 1, 1), (7 * _DAY, 2)):
            now = int((noon + seconds) * 1_000_000)
            end = lake.enter()
            with lake.session.read() as catalog:
                horizon = Horizon.of(catalog.connection, end, now - 7 * _DAY * 1_000_000, now)
                assert oldest_needed_version(catalog, lake.oid, horizon) == keeps, (zone, day)


def test_reports_continue_after_a_clock_was_ahead(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns()
    lake.run("select pg_create_logical_replication_slot('s', 'pgoutput')")
    publisher = LakePublisher(lake.session)
    with monkeypatch.context() as ahead:
        ahead.setattr("time.time_ns", lambda: now + 365 * _DAY * 10**9)
        publisher.slots.start_replication("s", "1/1", "s", ["p"])
        publisher.slots.report_end("s")
    publisher.slots.report_end("s")
    with lake.session.cluster.begin(write=False) as connection:
        (reply,) = connection.exec_driver_sql("select reply_time from walsender").scalars()
        assert reply < (now // 1000) + 3600 * 1_000_000
    publisher.slots.end_replication("s", stays=False)
    with lake.session.cluster.begin(write=False) as connection:
        (slot,) = list_slots(connection)
    assert slot.inactive_since is not None
    assert slot.inactive_since < (now // 1000) + 3600 * 1_000_000
