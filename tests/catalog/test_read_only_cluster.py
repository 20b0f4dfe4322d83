"""replctl refuses statements that write a read-only cluster.  These tests need no other user or
file system."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fix_psql import Psql

from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster, other_cluster
from replctl.catalog.read_only_cluster import ReadOnlyCluster
from replctl.errors import FileAccessDenied, ObjectNotInPrerequisiteState
from replctl.psql.stop_signals import StopSignals
from replctl.session import Session

_REFUSAL = FileAccessDenied('could not use directory "x": Permission denied')


def test_what_writes_is_refused_with_the_reason(cluster: Cluster) -> None:
    opened = ReadOnlyCluster(cluster.path, _REFUSAL)
    assert opened.system_identifier == cluster.system_identifier
    session = Session.connect(opened, "postgres", "postgres")
    with session.read() as catalog:
        assert catalog.database_oid == session.database_oid
    for write in (opened.begin(write=True), session.write(), opened.lock("any")):
        with pytest.raises(FileAccessDenied, match="Permission denied"), write:
            pass
    assert opened.is_alive(cluster.backend)
    assert not opened.is_alive("1-dead")
    session.close()
    opened.close()


def test_a_catalog_of_another_revision_is_refused(cluster: Cluster) -> None:
    with cluster.begin(write=True) as connection:
        connection.exec_driver_sql("update alembic_version set version_num = 'other'")
    with pytest.raises(ObjectNotInPrerequisiteState, match="has revision other"):
        ReadOnlyCluster(cluster.path, _REFUSAL)


def test_a_catalog_that_was_never_complete_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").touch()
    with pytest.raises(FileAccessDenied):
        ReadOnlyCluster(tmp_path, _REFUSAL)


@contextmanager
def _unwritable(home: Path) -> Iterator[None]:
    """Let nobody open a home for writing, not even root."""
    lock = home / "cluster.lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()
    yield
    lock.rmdir()


def test_another_cluster_is_written_as_soon_as_that_is_possible(
    cluster: Cluster, tmp_path: Path
) -> None:
    """A watch opens the home of its publisher while that home cannot be written."""
    open_cluster(tmp_path / "other").close()
    with _unwritable(tmp_path / "other"):
        assert other_cluster(cluster, tmp_path / "other").refusal is not None
    other = other_cluster(cluster, tmp_path / "other")
    with other.begin(write=True):
        pass
    assert other_cluster(cluster, tmp_path / "other") is other


def test_rows_of_a_read_only_home_are_its_own_in_every_working_directory(
    psql: Psql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first tables of two clusters have the same relative location."""
    home, other = tmp_path / "home", tmp_path / "other"
    for path, row in ((home, 1), (other, 2)):
        made = psql(
            "--home", str(path), script=f"CREATE TABLE t (id int); INSERT INTO t VALUES ({row});"
        )
        assert made.exit_code == 0
    command = ("-X", "-A", "-t", "-c", "TABLE t", "-c", "SELECT pg_relation_filepath('t')")
    for path in (other, tmp_path):
        monkeypatch.chdir(path)
        written = psql("--home", str(home), *command)
        assert written.stdout.startswith(f"1\n{home}/base/")
        with _unwritable(home):
            assert psql("--home", str(home), *command) == written


def test_a_standby_that_cannot_be_written_does_not_watch(
    psql: Psql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its home is opened only once, so the watch would not notice that the home is writable."""

    def sleep(signals: StopSignals, _seconds: float) -> None:
        signals.has_come = True

    monkeypatch.setattr(StopSignals, "sleep", sleep)
    home = tmp_path / "standby"
    created = psql("standby", "create", "--primary", str(tmp_path / "home"), "--home", str(home))
    assert created.exit_code == 0
    with _unwritable(home):
        outcome = psql("standby", "sync", "--watch", "--home", str(home))
    assert outcome.exit_code == 1
    assert outcome.stderr.startswith(f'ERROR:  could not use directory "{home}/cluster.lock": ')
