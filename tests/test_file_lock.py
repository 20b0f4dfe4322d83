"""A suspended process holds a lock: a process that waits for the lock names the holder, and waits
only for a limited time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from importlib.metadata import version
from pathlib import Path

import pytest

from replctl.catalog import cluster, server_log
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.server_log import ServerLog
from replctl.errors import (
    CannotConnectNow,
    ConnectionFailure,
    LockNotAvailable,
    ObjectNotInPrerequisiteState,
)
from replctl.execute import execute
from replctl.file_lock import LockTimeout, help_with, holder, locked
from replctl.relation_lock import lock_relations
from replctl.session import Session
from replctl.spark import ServerConf, maven, server, start_server
from replctl.spark.installation import SPARK

_FORKS = """
import os, signal, sys, time
from pathlib import Path
from replctl.file_lock import locked
path = Path(sys.argv[1])
with locked(path, 0):
    child = os.fork()
    if child == 0:
        time.sleep(600)
try:
    with locked(path, 0):
        pass
finally:
    os.kill(child, signal.SIGKILL)
"""


def test_a_lock_has_one_holder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.lock"
    with locked(path, 0):
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(LockTimeout), locked(path, 0.1):
            pass
    with locked(path, 0), pytest.raises(LockTimeout), locked(path, 0):
        pass


def test_a_lock_whose_file_is_removed_during_the_wait(tmp_path: Path) -> None:
    """The next holder locks the file that others find under this name."""
    path = tmp_path / "a.lock"
    with ThreadPoolExecutor(1) as pool, ExitStack() as second:
        with locked(path, 0):
            waiting = pool.submit(lambda: second.enter_context(locked(path, 60)))
            time.sleep(0.1)
            path.unlink()
        waiting.result()
        with pytest.raises(LockTimeout), locked(path, 0):
            pass


def test_a_lock_of_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"), locked(tmp_path / "a.lock", 0):
        pass
    assert not (tmp_path / "victim").exists()


def test_a_lock_is_released_although_a_child_has_inherited_it(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _FORKS, tmp_path / "a.lock"], check=True)


def test_a_cluster_that_another_program_opens_for_ever(
    stopped: Callable[[Path], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    open_cluster(home).close()
    pid = stopped(home / "cluster.lock")
    monkeypatch.setattr(cluster, "_OPENING_PATIENCE", 0.2)
    with pytest.raises(CannotConnectNow) as caught:
        open_cluster(home)
    assert caught.value.message == (
        f'another program has been opening the cluster in "{home}" for 0.2 seconds'
    )
    told = help_with(home / "cluster.lock")
    assert (caught.value.detail, caught.value.hint) == told
    if sys.platform == "linux":
        assert told[0] == f'Process {pid} has locked "{home / "cluster.lock"}".'
        assert f"kill -CONT {pid}" in told[1]
    os.kill(pid, signal.SIGKILL)  # as the hint says
    monkeypatch.setattr(cluster, "_OPENING_PATIENCE", 60.0)
    open_cluster(home).close()


def test_a_log_that_another_program_writes_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The work continues after one wait."""
    waited: list[float] = []

    def lock(timeout: float) -> nullcontext[None]:
        waited.append(timeout)
        raise LockNotAvailable('could not obtain lock "log"')

    monkeypatch.setattr(server_log, "_PATIENCE", 0.2)
    log = ServerLog(tmp_path / "log" / "replctl.log", lock)
    log.report("a", backend_type="b")
    log.report("c", backend_type="b")
    assert waited == [0.2, 0.0]
    assert capfd.readouterr().err.count("could not obtain lock") == 1


def test_a_server_that_another_program_starts_for_ever(
    stopped: Callable[[Path], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(tmp_path / "spark" / "start.lock")
    monkeypatch.setattr(server, "_START_TIMEOUT", 0.2)
    with pytest.raises(ConnectionFailure, match=r"has been starting the Spark server for 0[.]2 s"):
        start_server(tmp_path, ServerConf())


def test_jars_that_another_program_brings_for_ever(
    stopped: Callable[[Path], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(maven, "_REPORT_INTERVAL", 0.1)
    monkeypatch.setattr(maven, "_OTHERS_TIMEOUT", 0.2)
    stopped(tmp_path / "replctl" / f"delta-{version('delta_spark')}-spark-{SPARK}.lock")
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        maven.delta_jars(Path("java"))
    assert "has been downloading it for 0.2 seconds" in (caught.value.detail or "")


def test_the_holder_of_a_lock(tmp_path: Path) -> None:
    lock, locks = tmp_path / "a.lock", tmp_path / "locks"
    lock.touch()
    status = lock.stat()
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    waits = f"1: -> FLOCK  ADVISORY  WRITE 5 {place} 0 EOF\n"
    for lines, expected in (
        (f"{waits}1: FLOCK  ADVISORY  WRITE 7 {place} 0 EOF\n", 7),
        (f"1: FLOCK  ADVISORY  WRITE 0 {place} 0 EOF\n", None),  # a process of another container
        (f"1: POSIX  ADVISORY  WRITE 7 {place} 0 EOF\n", None),
        ("", None),
    ):
        locks.write_text(lines)
        assert holder(lock, locks) == expected
    assert holder(lock, tmp_path / "none") is None
    assert holder(tmp_path / "none", locks) is None


def test_a_lock_whose_holder_is_stopped(
    stopped: Callable[[Path], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_PATIENCE", 0.2)
    opened = open_cluster(tmp_path / "home")
    session = Session.connect(opened, "postgres", "postgres")
    pid = stopped(opened.path / "lock" / "subscription-1.lock")
    writer = stopped(opened.path / "lock" / "relation-7.lock")
    if sys.platform != "linux":
        pytest.skip("the system does not tell who holds a lock")
    with pytest.raises(LockNotAvailable) as caught, opened.lock("subscription-1"):
        pass
    assert caught.value.message == (
        'could not obtain lock "subscription-1": the process that holds it is suspended'
    )
    assert f"kill -CONT {pid}" in (caught.value.hint or "")
    with (
        pytest.raises(LockNotAvailable, match="the process that holds it is suspended"),
        ExitStack() as stack,
    ):
        lock_relations(session, [7], stack)
    os.kill(writer, signal.SIGCONT)
    list(execute(session, "SET lock_timeout = '1s'"))
    with pytest.raises(LockNotAvailable, match="due to lock timeout"), ExitStack() as stack:
        lock_relations(session, [7], stack)
    os.kill(pid, signal.SIGKILL)
    with opened.lock("subscription-1"):
        pass
    opened.close()
