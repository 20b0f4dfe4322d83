"""The directory of a cluster: replctl creates, upgrades or refuses it, and processes share it."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from replctl.catalog import schema, schema_table
from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster, other_cluster
from replctl.catalog.pg_control import read_control
from replctl.errors import (
    DataCorrupted,
    IoError,
    LockNotAvailable,
    ObjectNotInPrerequisiteState,
    UndefinedFile,
)
from replctl.execute import execute
from replctl.session import Session


def test_first_use_makes_what_initdb_makes(tmp_path: Path) -> None:
    cluster = open_cluster(tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    session = Session.connect(cluster, "postgres", "postgres")
    (result,) = execute(session, "SELECT rolname, rolsuper FROM pg_roles ORDER BY oid")
    assert list(map(tuple, result.rows)) == [
        ("postgres", "t"),
        ("pg_monitor", "f"),
        ("pg_read_all_settings", "f"),
        ("pg_read_all_stats", "f"),
        ("pg_stat_scan_tables", "f"),
        ("pg_signal_backend", "f"),
        ("pg_checkpoint", "f"),
        ("pg_use_reserved_connections", "f"),
        ("pg_read_server_files", "f"),
        ("pg_write_server_files", "f"),
        ("pg_execute_server_program", "f"),
        ("pg_database_owner", "f"),
        ("pg_read_all_data", "f"),
        ("pg_write_all_data", "f"),
        ("pg_create_subscription", "f"),
        ("pg_maintain", "f"),
    ]
    (result,) = execute(
        session,
        "SELECT roleid::regrole, member::regrole FROM pg_auth_members ORDER BY roleid",
    )
    assert list(map(tuple, result.rows)) == [
        ("pg_read_all_settings", "pg_monitor"),
        ("pg_read_all_stats", "pg_monitor"),
        ("pg_stat_scan_tables", "pg_monitor"),
    ]
    identifier = cluster.system_identifier
    cluster.close()
    assert open_cluster(tmp_path / "new").system_identifier == identifier


@pytest.mark.parametrize("revision", ["0017", "9999"])
def test_a_catalog_of_another_revision_is_refused(tmp_path: Path, revision: str) -> None:
    cluster = open_cluster(tmp_path)
    with cluster.begin(write=True) as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{revision}'")
    cluster.close()
    with pytest.raises(ObjectNotInPrerequisiteState, match=f"revision {revision}") as caught:
        open_cluster(tmp_path)
    assert schema.REVISION in (caught.value.detail or "")
    assert str(tmp_path) in caught.value.message
    assert caught.value.hint is not None


def test_the_migrations_lead_to_the_schema(tmp_path: Path) -> None:
    cluster = open_cluster(tmp_path)
    with cluster.begin(write=False) as connection:
        rows = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = {str(name) for (name,) in rows}
    assert {table.name for table in schema_table.metadata.sorted_tables} <= names


def test_what_is_no_catalog_is_refused(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_bytes(b"not a database" * 100)
    with pytest.raises(DataCorrupted):
        open_cluster(tmp_path)


def test_a_file_is_no_home(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(IoError, match="could not use directory"):
        open_cluster(tmp_path / "file")


def test_processes_make_a_cluster_together(tmp_path: Path) -> None:
    home = str(tmp_path / "shared")

    def create(number: int) -> str:
        statement = f"CREATE SCHEMA s{number}; CREATE TABLE s{number}.t (a int)"
        command = [sys.executable, "-m", "replctl", "-X", "-q", "--home", home, "-c", statement]
        return subprocess.run(command, capture_output=True, check=False, text=True).stderr

    with ThreadPoolExecutor(4) as pool:
        said = sorted(pool.map(create, range(6)))
    assert said == [""] * 5 + [f'NOTICE:  created cluster "{home}"\n']  # only one has created it
    session = Session.connect(open_cluster(home), "postgres", "postgres")
    (result,) = execute(session, "SELECT count(*) FROM pg_class WHERE relname = 't'")
    assert list(map(tuple, result.rows)) == [("6",)]


def test_a_lock_is_one_process_s(cluster: Cluster) -> None:
    with (
        cluster.lock("relation-1"),
        pytest.raises(LockNotAvailable),
        cluster.lock("relation-1", timeout=0),
    ):
        pass
    assert cluster.is_alive(cluster.backend)
    assert not cluster.is_alive("1-gone")


def test_threads_are_one_process_to_another_cluster(cluster: Cluster, tmp_path: Path) -> None:
    open_cluster(tmp_path / "other").close()
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(partial(other_cluster, cluster), [tmp_path / "other"] * 8))
    assert len({id(other) for other in opened}) == 1


def test_a_directory_with_other_things_is_no_home(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("")
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        open_cluster(tmp_path)
    assert caught.value.message == f'directory "{tmp_path}" exists but is not empty'
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def _kill_after_first_use(home: Path) -> None:
    code = (
        "import os, sys; from replctl.catalog.open_cluster import open_cluster;"
        " cluster = open_cluster(sys.argv[1]); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(home)], check=False)


def test_a_new_catalog_is_whole_without_its_log(tmp_path: Path) -> None:
    """A backup may have catalog.db alone."""
    _kill_after_first_use(tmp_path)
    assert (tmp_path / "catalog.db-wal").stat().st_size > 0
    whole, alone = tmp_path / "whole", tmp_path / "alone"
    for copy, names in ((whole, ("catalog.db", "catalog.db-wal")), (alone, ("catalog.db",))):
        copy.mkdir()
        for name in names:
            shutil.copy(tmp_path / name, copy / name)
    found = []
    for copy in (whole, alone):
        with closing(open_cluster(copy, is_checked=False)) as cluster:
            found.append((cluster.system_identifier, cluster.signing_key))
    assert found[0] == found[1]


def _empty_database(home: Path) -> None:
    """Make the file that a process leaves which was killed while it created a cluster."""
    with closing(sqlite3.connect(home / "catalog.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    assert (home / "catalog.db").stat().st_size == 4096


def test_a_cluster_whose_catalog_is_lost_is_not_made_again(tmp_path: Path) -> None:
    _empty_database(tmp_path)
    (tmp_path / "base" / "16384").mkdir(parents=True)
    with pytest.raises(UndefinedFile, match="there is no cluster"):
        open_cluster(tmp_path, is_made=False)
    with pytest.raises(ObjectNotInPrerequisiteState, match="exists but is not empty"):
        open_cluster(tmp_path)
    assert (tmp_path / "catalog.db").stat().st_size == 4096


def test_a_cluster_that_was_not_made_to_the_end_is_made(tmp_path: Path) -> None:
    _empty_database(tmp_path)
    with pytest.raises(UndefinedFile, match="there is no cluster"):
        open_cluster(tmp_path, is_made=False)
    open_cluster(tmp_path).close()


@pytest.mark.parametrize("names", [("pages",), ("alembic_version", "pages")])
@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_the_database_of_another_program_is_no_catalog(
    tmp_path: Path, mode: str, names: tuple[str, ...]
) -> None:
    catalog = tmp_path / "catalog.db"
    with closing(sqlite3.connect(catalog)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        for name in names:
            connection.execute(f"CREATE TABLE {name} (number)")
        connection.commit()
    before = catalog.read_bytes(), catalog.stat().st_mode
    with pytest.raises(UndefinedFile, match="there is no cluster"):
        open_cluster(tmp_path, is_made=False)
    with pytest.raises(ObjectNotInPrerequisiteState, match="exists but is not empty"):
        open_cluster(tmp_path)
    assert (catalog.read_bytes(), catalog.stat().st_mode) == before
    assert list(tmp_path.iterdir()) == [catalog]


def test_the_database_in_another_program_s_log_is_no_catalog(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE pages (number)")
        connection.commit()
        for is_made in (True, False):
            with pytest.raises((ObjectNotInPrerequisiteState, UndefinedFile)):
                open_cluster(tmp_path, is_made=is_made)
        rows = connection.execute("SELECT name FROM sqlite_master").fetchall()
    assert rows == [("pages",)]


def test_files_of_dead_processes_are_removed(cluster: Cluster) -> None:
    session = Session.connect(cluster, "postgres", "postgres")
    code = (
        "import os, sys; from replctl.catalog.open_cluster import open_cluster;"
        " from replctl.session import Session;"
        " Session.connect(open_cluster(sys.argv[1]), 'postgres', 'postgres');"
        " os.kill(os.getpid(), 15)"
    )
    folder = cluster.path / "lock"
    own = {path.name for path in folder.iterdir()}
    assert {name.partition(cluster.backend)[0] for name in own} >= {"backend-", "connection."}
    subprocess.run([sys.executable, "-c", code, str(cluster.path)], check=False)
    (folder / "connection.99-gone.1.10").touch()  # its lock file is removed already
    assert len(list(folder.iterdir())) == len(own) + 3
    with closing(open_cluster(cluster.path)) as other:
        assert other.is_alive(cluster.backend)
    assert {path.name for path in folder.iterdir()} == own
    session.close()


@pytest.mark.parametrize("year", [2038, 2039, 2107, 2500])
def test_a_cluster_is_made_in_any_year(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, year: int
) -> None:
    now = datetime(year, 2, 1, tzinfo=UTC).timestamp()
    monkeypatch.setattr("replctl.catalog.initdb.time.time", lambda: now)
    with closing(open_cluster(tmp_path)) as cluster:
        assert 0 < cluster.system_identifier < 2**63
        with cluster.begin(write=False) as connection:
            assert read_control(connection).system_identifier == cluster.system_identifier


def test_only_a_directory_that_was_made_is_new(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name, is_new in (("empty", False), ("made", True), ("made", False)):
        cluster = open_cluster(tmp_path / name)
        assert cluster.is_new == is_new
        cluster.close()
