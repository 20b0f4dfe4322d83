"""catalog.db is restored next to the -wal of another state, or while a process has it open."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from replctl.catalog.catalog_file import check_wal
from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster, other_cluster
from replctl.catalog.standby import attached, create_standby, receive
from replctl.errors import CannotConnectNow, ObjectNotInPrerequisiteState
from replctl.execute import execute
from replctl.lake.promotion_without_primary import accept_restored_catalog
from replctl.own_command import own_command
from replctl.session import Session
from replctl.watch import Watch

_CATALOG, _WAL = "catalog.db", "catalog.db-wal"


def run(home: Path, *statements: str) -> list[tuple[object, ...]]:
    """Return the rows of the last statement."""
    with closing(open_cluster(home)) as cluster:
        session = Session.connect(cluster, "postgres", "postgres")
        results = [result for statement in statements for result in execute(session, statement)]
        session.close()
    return [tuple(row) for row in results[-1].rows] if results else []


def crash_after(home: Path, *statements: str) -> None:
    """Run statements in a process that is killed, so that its -wal remains."""
    code = (
        "import os, sys; from replctl.catalog.open_cluster import open_cluster;"
        " from replctl.execute import execute; from replctl.session import Session;"
        " session = Session.connect(open_cluster(sys.argv[1]), 'postgres', 'postgres');"
        " [list(execute(session, statement)) for statement in sys.argv[2:]];"
        " os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(home), *statements], check=False)
    assert (home / _WAL).stat().st_size > 0


def tables(prefix: str, count: int) -> list[str]:
    return [f"CREATE TABLE {prefix}{number} (x int PRIMARY KEY)" for number in range(count)]


def integrity(home: Path) -> str:
    with closing(sqlite3.connect(home / _CATALOG)) as connection:
        (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    return str(found)


@pytest.mark.parametrize(("before", "lost", "after"), [(20, 15, 10), (3, 1, 1), (3, 0, 8)])
def test_a_catalog_next_to_a_later_wal_is_refused(
    tmp_path: Path, before: int, lost: int, after: int
) -> None:
    home, backup = tmp_path / "home", tmp_path / "backup.db"
    run(home, *tables("a", before))
    shutil.copy(home / _CATALOG, backup)
    for number in range(lost):
        run(home, f"DROP TABLE a{number}; CREATE TABLE b{number} (x int PRIMARY KEY, y text)")
    crash_after(home, *tables("c", after))
    shutil.copy(backup, home / _CATALOG)
    if not lost:  # the -wal has all changes after the backup
        assert run(home, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [
            (str(before + after),)
        ]
        return
    stale = (home / _CATALOG).read_bytes(), (home / _WAL).read_bytes()
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        open_cluster(home)
    error = caught.value
    assert error.message == f'"{_WAL}" in "{home}" does not belong to the "{_CATALOG}" there'
    assert "was restored without its" in (error.detail or "")
    assert stale == ((home / _CATALOG).read_bytes(), (home / _WAL).read_bytes())
    assert list((home / "tmp").iterdir()) == []

    for name in (_WAL, f"{_CATALOG}-shm"):  # as the HINT says
        assert f'"{home / name}"' in (error.hint or "")
        (home / name).unlink(missing_ok=True)
    with closing(open_cluster(home)) as cluster:
        accept_restored_catalog(cluster)
    count = run(home, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
    assert count == [(str(before),)]
    assert integrity(home) == "ok"


def test_copies_of_killed_processes_are_removed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    crash_after(home, "CREATE TABLE a (x int)")
    for number in range(2):  # each was killed while it examined the -wal
        left = home / "tmp" / f"catalog-{number}"
        left.mkdir(parents=True)
        shutil.copy(home / _CATALOG, left)
    run(home, "SELECT 1")
    assert list((home / "tmp").iterdir()) == []


def test_the_catalog_of_a_standby_next_to_a_later_wal(cluster: Cluster, tmp_path: Path) -> None:
    """A round brings several commits in one transaction of SQLite.  The HINT is `standby sync`."""
    home, backup = tmp_path / "standby", tmp_path / "backup.db"
    run(cluster.path, *tables("t", 1))
    create_standby(cluster.path, home, "standby1")
    shutil.copy(home / _CATALOG, backup)
    run(cluster.path, *tables("a", 2))
    with closing(open_cluster(home)) as standby:
        receive(standby)
    run(cluster.path, *tables("b", 3))
    _kill_after_a_round(home)
    shutil.copytree(home, tmp_path / "copy")
    count = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    assert run(home, count) == [("6",)]
    for path in (tmp_path / "copy").glob(f"{_CATALOG}*"):
        shutil.copy(path, home / path.name)
    shutil.copy(backup, home / _CATALOG)
    with pytest.raises(ObjectNotInPrerequisiteState, match="does not belong") as caught:
        open_cluster(home)
    command = own_command("standby", "sync", home=home)
    assert f'and run "{command}".' in (caught.value.hint or "")
    for name in (_WAL, f"{_CATALOG}-shm"):
        (home / name).unlink(missing_ok=True)
    with closing(open_cluster(home)) as standby:
        receive(standby)
    assert run(home, count) == [("6",)]


def _kill_after_a_round(home: Path) -> None:
    environment = {**os.environ, "REPLCTL_INJECTION_POINT": "standby.before-confirmation:kill"}
    command = [sys.executable, "-m", "replctl", "standby", "sync", "--home", str(home)]
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL
    assert (home / _WAL).stat().st_size > 0


def test_a_newer_catalog_next_to_an_old_wal_is_refused(tmp_path: Path) -> None:
    home, saved = tmp_path / "home", tmp_path / "saved"
    run(home, *tables("a", 3))
    crash_after(home, *tables("b", 3))
    shutil.copytree(home, saved)
    run(home, *tables("c", 3))
    assert not (home / _WAL).exists()
    shutil.copy(saved / _WAL, home / _WAL)
    with pytest.raises(ObjectNotInPrerequisiteState, match="does not belong"):
        open_cluster(home)


def test_what_a_crash_leaves_is_opened(tmp_path: Path) -> None:
    crash_after(tmp_path, *tables("a", 3))
    crash_after(tmp_path, *tables("b", 3))
    shutil.copytree(tmp_path, tmp_path / "copy")
    assert run(tmp_path, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [("6",)]
    for path in tmp_path.glob(f"{_CATALOG}-*"):
        path.unlink()
    for path in (tmp_path / "copy").glob(f"{_CATALOG}*"):  # with its -wal and -shm
        shutil.copy(path, tmp_path / path.name)
    assert run(tmp_path, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [("6",)]


def _move(home: Path, backup: Path) -> None:
    os.replace(backup, home / _CATALOG)


def _move_alone(home: Path, backup: Path) -> None:
    for path in home.glob(f"{_CATALOG}-*"):
        path.unlink()
    os.replace(backup, home / _CATALOG)


def _copy_alone(home: Path, backup: Path) -> None:
    for path in home.glob(f"{_CATALOG}-*"):
        path.unlink()
    shutil.copy(backup, home / _CATALOG)


@pytest.mark.parametrize("put_back", [_move, _move_alone, _copy_alone])
def test_a_catalog_that_is_replaced_under_a_process_is_noticed(
    tmp_path: Path, put_back: object
) -> None:
    home, backup = tmp_path / "home", tmp_path / "backup.db"
    run(home, *tables("a", 3))
    shutil.copy(home / _CATALOG, backup)
    run(home, "CREATE TABLE lost (x int)")
    cluster = open_cluster(home)
    session = Session.connect(cluster, "postgres", "postgres")
    list(execute(session, "CREATE TABLE b (x int)"))
    put_back(home, backup)  # type: ignore[operator]
    assert cluster.is_replaced
    if put_back is _move:  # the -wal belongs to the other file, which is in use
        with pytest.raises(ObjectNotInPrerequisiteState, match="does not belong"):
            open_cluster(home)
    with pytest.raises(CannotConnectNow) as caught:
        list(execute(session, "CREATE TABLE c (x int)"))
    assert caught.value.message == (
        f'the catalog in "{home}" was replaced while this program had it open'
    )
    session.close()
    cluster.close()
    if put_back is not _move:
        command = [sys.executable, "-m", "replctl", "-XAtq", "--home", str(home), "-c"]
        said = subprocess.run(  # SQLite keeps a process from having both open
            [*command, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"],
            capture_output=True, check=False, text=True,
        )  # fmt: skip
        assert (said.stdout, said.stderr) == ("3\n", "")
    else:
        with pytest.raises(ObjectNotInPrerequisiteState, match="does not belong"):
            open_cluster(home)


def test_a_connection_that_is_closed_replaces_nothing(cluster: Cluster) -> None:
    """SQLAlchemy closes the connection of a statement that Ctrl-C or a timeout has interrupted."""
    with cluster.engine.connect() as connection:
        connection.invalidate()
    assert not cluster.is_replaced
    with cluster.begin(write=True):
        pass


def test_the_catalog_of_another_cluster_is_opened_again(tmp_path: Path, cluster: Cluster) -> None:
    """A subscriber opens its publisher's catalog again in each round."""
    home, backup = tmp_path / "other", tmp_path / "backup.db"
    run(home, *tables("a", 1))
    shutil.copy(home / _CATALOG, backup)
    first = other_cluster(cluster, home)
    _move_alone(home, backup)
    second = other_cluster(cluster, home)
    assert second is not first
    assert not second.is_replaced


def _copy_over(home: Path, backup: Path) -> None:
    shutil.copy(backup, home / _CATALOG)


@pytest.mark.parametrize("put_back", [_move_alone, _copy_alone, _copy_over])
def test_a_watch_checks_the_catalogs_of_publishers(
    session: Session, tmp_path: Path, put_back: Callable[[Path, Path], None]
) -> None:
    """The process cannot open a file again that was overwritten."""
    home, backup = tmp_path / "other", tmp_path / "backup.db"
    run(home, *tables("a", 1))
    _subscribe(session, home)
    shutil.copy(home / _CATALOG, backup)
    run(home, *tables("lost", 2))
    opened = other_cluster(session.cluster, home)
    _checkpoint(opened)
    publisher = Session.connect(opened, "postgres", "postgres")
    list(execute(publisher, "COMMENT ON TABLE lost1 IS 'in the -wal'"))
    publisher.close()
    watch = Watch(session)
    assert watch.round() == []
    put_back(home, backup)
    if put_back is _move_alone:
        watch.round()
        assert not watch.must_end
        assert other_cluster(session.cluster, home) is not opened
        return
    for attempt in (watch.round, partial(other_cluster, session.cluster, home)):
        with pytest.raises(CannotConnectNow, match="was replaced while this program had it open"):
            attempt()
    assert watch.must_end
    list(execute(session, f"ALTER SUBSCRIPTION {home.name} DISABLE"))
    assert watch.round() == []  # no subscription needs the publisher
    assert not watch.must_end


def _subscribe(session: Session, home: Path) -> None:
    """Subscribe to a publication without tables in another home.  Its name is the home's."""
    run(home, "CREATE PUBLICATION p")
    subscription = f"{home.name} CONNECTION 'host={home} dbname=postgres' PUBLICATION p"
    list(execute(session, f"CREATE SUBSCRIPTION {subscription}"))


def test_a_home_out_of_reach_hides_no_overwritten_one(session: Session, tmp_path: Path) -> None:
    away, overwritten = homes = [tmp_path / name for name in ("away", "overwritten")]
    for home in homes:
        run(home, *tables("a", 1))
        _subscribe(session, home)
    shutil.copy(overwritten / _CATALOG, tmp_path / "backup.db")
    run(overwritten, *tables("lost", 2))
    _checkpoint(other_cluster(session.cluster, overwritten))
    watch = Watch(session)
    assert watch.round() == []
    away.rename(tmp_path / "elsewhere")
    away.symlink_to(away.name)  # each access fails with ELOOP
    _copy_over(overwritten, tmp_path / "backup.db")
    with pytest.raises(CannotConnectNow, match="was replaced while this program had it open"):
        watch.round()
    assert watch.must_end
    away.unlink()
    (tmp_path / "elsewhere").rename(away)


@pytest.mark.parametrize("whose", ["standby", "primary"])
def test_a_standby_checks_both_catalogs(cluster: Cluster, tmp_path: Path, whose: str) -> None:
    run(cluster.path, *tables("t", 1))
    create_standby(cluster.path, tmp_path / "standby", "standby1")
    home = cluster.path if whose == "primary" else tmp_path / "standby"
    with closing(open_cluster(tmp_path / "standby")) as standby, attached(standby) as receiver:
        receiver.receive()
        _checkpoint(standby, receiver.primary)
        shutil.copy(home / _CATALOG, tmp_path / "backup.db")
        run(cluster.path, *tables("a", 2))
        receiver.receive()
        _checkpoint(standby, receiver.primary)
        receiver.receive()
        _copy_over(home, tmp_path / "backup.db")
        with pytest.raises(CannotConnectNow, match="was replaced") as caught:
            receiver.receive()
        assert str(home) in caught.value.message


def _checkpoint(*clusters: Cluster) -> None:
    for cluster in clusters:
        with closing(cluster.engine.raw_connection()) as connection:
            connection.cursor().execute("PRAGMA wal_checkpoint").fetchall()


@pytest.mark.parametrize("put_back", [_move_alone, _copy_alone, _copy_over])
def test_a_watch_ends_when_its_catalog_is_replaced(tmp_path: Path, put_back: object) -> None:
    home, backup = tmp_path / "home", tmp_path / "backup.db"
    run(home, *tables("a", 1))
    shutil.copy(home / _CATALOG, backup)
    run(home, "CREATE TABLE lost (x int)")
    command = [sys.executable, "-m", "replctl", "--home", str(home), "sync", "--watch"]
    with subprocess.Popen(
        [*command, "--interval", "0.1"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as watch:
        try:
            deadline = time.monotonic() + 60
            while not list((home / "lock").glob("backend-*")) and time.monotonic() < deadline:
                time.sleep(0.1)
            time.sleep(5)  # its rounds have begun
            assert watch.poll() is None
            run(home, "COMMENT ON TABLE lost IS 'in the -wal'")
            time.sleep(0.5)
            put_back(home, backup)  # type: ignore[operator]
            said, complaint = watch.communicate(timeout=60)
        finally:
            watch.kill()
    assert watch.returncode == 1
    assert complaint.count("was replaced while this program had it open") == 1
    assert said == ""
    if put_back is _copy_over and (home / _WAL).stat().st_size > 0:
        with pytest.raises(ObjectNotInPrerequisiteState, match="does not belong"):
            open_cluster(home)
        for name in (_WAL, f"{_CATALOG}-shm"):
            (home / name).unlink()
    assert integrity(home) == "ok"
    assert run(home, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [("1",)]


def _pages(wal: bytes) -> dict[int, bytes]:
    """Return the newest pages in the complete transactions of a -wal, by number."""
    size = int.from_bytes(wal[8:12], "big")
    found = {}
    for start in range(32, len(wal) - size - 23, size + 24):
        if wal[start + 8 : start + 16] != wal[16:24]:
            break
        found[int.from_bytes(wal[start : start + 4], "big")] = wal[start + 24 : start + 24 + size]
    return found


def test_a_crash_amid_a_checkpoint_is_opened(tmp_path: Path) -> None:
    """A checkpoint writes the pages in order.  The -wal has all of them."""
    home = tmp_path / "home"
    run(home, *tables("a", 30))
    for round_ in range(2):
        crash_after(home, *tables(f"b{round_}", 12), "COMMENT ON TABLE a1 IS 'x'")
    main = bytearray((home / _CATALOG).read_bytes())
    pages = sorted(_pages((home / _WAL).read_bytes()).items())
    assert len(pages) > 20
    for count in range(0, len(pages) + 1, 4):
        torn = bytearray(main)
        for number, page in pages[:count]:
            start = (number - 1) * len(page)
            torn.extend(bytes(max(0, start + len(page) - len(torn))))
            torn[start : start + len(page)] = page
        (home / _CATALOG).write_bytes(torn)
        check_wal(home, [])
    assert run(home, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [("54",)]
