"""Only the owner of a cluster can read its directory, whatever the umask is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fix_psql import Psql

from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.standby import create_standby
from replctl.execute import execute
from replctl.lake.backup import back_up
from replctl.session import Session


def modes(directory: Path) -> dict[str, int]:
    """Return the modes of a cluster's directory and of everything in it except locks, by name."""
    found = {".": stat.S_IMODE(directory.stat().st_mode)}
    for path in directory.rglob("*"):
        if path.parent.name != "lock" and path.suffix != ".lock":
            found[str(path.relative_to(directory))] = stat.S_IMODE(path.stat().st_mode)
    return found


@pytest.fixture(params=[0o000, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    old = os.umask(request.param)
    yield request.param
    os.umask(old)


@pytest.mark.usefixtures("umask")
def test_what_a_cluster_makes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(0o755)
    home.chmod(0o755)
    cluster = open_cluster(home)
    session = Session.connect(cluster, "postgres", "postgres")
    list(execute(session, "ALTER SYSTEM SET max_slot_wal_keep_size = '1GB'"))
    cluster.log.report("hello", backend_type="client backend")
    create_standby(home, tmp_path / "standby", "standby")
    back_up(cluster, tmp_path / "backup")
    catalog = {".": 0o700, "catalog.db": 0o600, "postgresql.auto.conf": 0o600}
    wal = {"catalog.db-wal": 0o600, "catalog.db-shm": 0o600}
    log = {"lock": 0o700, "log": 0o700, "log/replctl.log": 0o600}
    assert modes(home) == catalog | wal | log
    assert modes(tmp_path / "backup") == catalog
    standby = modes(tmp_path / "standby")
    assert standby | wal | log == catalog | wal | log
    cluster.close()


@pytest.mark.parametrize("umask", [0o777, 0o300])
def test_a_umask_that_takes_the_owners_rights(psql: Psql, umask: int) -> None:
    usual = os.umask(umask)
    try:
        assert psql("-q", "-c", "CREATE TABLE t (i int)").stderr == ""
        assert os.umask(0) == umask & 0o077
    finally:
        os.umask(usual)
    home = Path(os.environ["REPLCTL_HOME"])
    for path in home.rglob("*"):
        assert os.stat(path).st_mode & 0o700 == (0o700 if path.is_dir() else 0o600), path


def test_what_is_too_open_is_closed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = open_cluster(home)
    first.log.report("hello", backend_type="client backend")
    open_files = ("catalog.db", "catalog.db-wal", "catalog.db-shm", "log/replctl.log")
    home.chmod(0o755)
    for name in open_files:
        (home / name).chmod(0o666)
    second = open_cluster(home)
    second.log.report("hello again", backend_type="client backend")
    assert {modes(home)[name] for name in open_files} == {0o600}
    assert modes(home)["."] == 0o700
    home.chmod(0o750)  # PostgreSQL lets the group read, too
    open_cluster(home).close()
    assert modes(home)["."] == 0o750
    second.close()
    first.close()


def test_the_log_holds_no_passwords(psql: Psql, tmp_path: Path) -> None:
    script = (
        "CREATE ROLE a PASSWORD 'secret1' LOGIN PASSWORD 'secret2';\n"
        "CREATE SUBSCRIPTION s CONNECTION 'host=/nowhere password=secret3' PUBLICATION p;\n"
        "CREATE SUBSCRIPTION s CONNECTION 'postgresql://u:secret4@nowhere/x' PUBLICATION p;\n"
    )
    assert "ERROR" in psql("-X", script=script).stderr
    with closing(open_cluster(tmp_path / "home")) as cluster:
        for text in ("ALTER ROLE a PASSWORD 'it''s secret5'", "PASSWORD E'secret\\'6'"):
            cluster.log.report_fault(ValueError(text))
    log = (tmp_path / "home" / "log" / "replctl.log").read_text("utf-8")
    assert "PASSWORD ***" in log
    assert "secret" not in log
