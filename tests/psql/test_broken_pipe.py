"""Exit codes without a reader of the output, and daemons that continue without output.

The failing subscription of these tests has a publisher that does not exist, so it needs no Spark.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from fix_replication import Database
from patience import wait_until

from replctl.catalog.cluster import Cluster
from replctl.catalog.server_log import ServerLog
from replctl.catalog.standby import create_standby
from replctl.session import Session

_COMMAND = [sys.executable, "-m", "replctl"]
#: psql's exit code in a shell, which SIGPIPE kills.
_BROKEN_PIPE = 141


@pytest.fixture
def failing(cluster: Cluster) -> Database:
    """Return a database with an enabled subscription that fails."""
    database = Database(Session.connect(cluster, "postgres", "postgres"))
    database.run(
        "CREATE SUBSCRIPTION s CONNECTION 'host=/nowhere' PUBLICATION p WITH (connect = false)"
    )
    database.run("ALTER SUBSCRIPTION s ENABLE")
    return database


@contextmanager
def _pipe_without_reader() -> Iterator[int]:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        yield writing
    finally:
        os.close(writing)


def _run(cluster: Cluster, *arguments: str, stdout: int, stderr: int) -> int:
    environment = {**os.environ, "REPLCTL_HOME": str(cluster.path), "PYTHONUNBUFFERED": ""}
    return subprocess.run(
        [*_COMMAND, *arguments], stdout=stdout, stderr=stderr, env=environment, check=False
    ).returncode


@pytest.mark.parametrize(
    "arguments",
    [
        ("-X", "-c", r"\echo x"),
        ("-X", "-c", "SELECT 1"),
        ("-X", "-l"),
        ("--version",),
        ("status",),
        ("sync", "--help"),
        ("cluster", "identify"),
        ("cluster", "--help"),
    ],
)
def test_a_closed_stdout_has_the_code_of_sigpipe(
    cluster: Cluster, arguments: tuple[str, ...]
) -> None:
    with _pipe_without_reader() as pipe:
        code = _run(cluster, *arguments, stdout=pipe, stderr=subprocess.DEVNULL)
    assert code == _BROKEN_PIPE


@pytest.mark.parametrize(
    "arguments", [("sync",), ("-X", "-c", "SELECT nothing"), ("-X", "-d", "nowhere"), ("--wrong",)]
)
def test_a_closed_stderr_has_the_code_of_sigpipe(
    cluster: Cluster, failing: Database, arguments: tuple[str, ...]
) -> None:
    with _pipe_without_reader() as pipe:
        code = _run(cluster, *arguments, stdout=subprocess.DEVNULL, stderr=pipe)
    assert code == _BROKEN_PIPE


def test_a_script_stops_when_nobody_reads_it(cluster: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text("\\echo x\nCREATE TABLE t (a int);\n")
    with _pipe_without_reader() as pipe:
        code = _run(cluster, "-X", "-f", str(script), stdout=pipe, stderr=subprocess.DEVNULL)
    assert code == _BROKEN_PIPE
    rows = Database(Session.connect(cluster, "postgres", "postgres")).rows(
        "SELECT relname FROM pg_class WHERE relname = 't'"
    )
    assert rows == []


def test_a_script_continues_when_its_program_ends(cluster: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    lines = [
        "\\o |true",
        "\\! sleep 0.2",
        "SELECT 1;",
        "\\qecho x",
        "COPY (SELECT 2) TO STDOUT;",
        "\\o",
        "COPY (SELECT 3) TO STDOUT \\g |true",
        "\\echo after",
    ]
    script.write_text("\n".join(lines) + "\n")
    ended = subprocess.run(
        [*_COMMAND, "--home", str(cluster.path), "-X", "-f", str(script)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("COPY 1\nafter\n", "", 0)


@contextmanager
def _watching(cluster: Cluster, output: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [*_COMMAND, "sync", "--watch", "--interval", "0.05", "--home", str(cluster.path)]
    process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _counted_failures(cluster: Cluster) -> int:
    path = cluster.log_file
    return path.read_text().count('"ERROR"') if path.exists() else 0


def _continues(cluster: Cluster, process: subprocess.Popen[bytes]) -> None:
    """Check that the daemon retries the failed subscription, and that SIGTERM ends it with 0."""
    wait_until(lambda: process.poll() is not None or _counted_failures(cluster) > 1)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_a_watch_continues_when_nobody_reads_it(cluster: Cluster, failing: Database) -> None:
    with _pipe_without_reader() as pipe, _watching(cluster, pipe) as process:
        _continues(cluster, process)


def test_a_standby_continues_when_nobody_reads_it(cluster: Cluster, tmp_path: Path) -> None:
    home = tmp_path / "standby"
    create_standby(cluster.path, home, "standby")
    cluster.path.rename(tmp_path / "away")  # the standby reports that its primary is gone
    command = [*_COMMAND, "standby", "sync", "--watch", "--interval", "0.05", "--home", str(home)]
    with _pipe_without_reader() as pipe, subprocess.Popen(command, stderr=pipe) as process:
        try:
            stderr = Path(f"/proc/{process.pid}/fd/2")
            wait_until(lambda: process.poll() is not None or str(stderr.readlink()) == os.devnull)
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
    (tmp_path / "away").rename(cluster.path)


def test_a_watch_continues_when_the_disk_of_stderr_is_full(
    cluster: Cluster, failing: Database
) -> None:
    with open("/dev/full", "w") as full, _watching(cluster, full.fileno()) as process:
        _continues(cluster, process)


def test_a_full_stderr_changes_no_exit_code(cluster: Cluster, failing: Database) -> None:
    with open("/dev/full", "w") as full:
        place = full.fileno()
        assert _run(cluster, "sync", stdout=place, stderr=place) == 1
        assert _run(cluster, "-X", "-c", "x", "-c", "CREATE TABLE t (a int)", "-q",
                    stdout=subprocess.DEVNULL, stderr=place) == 0  # fmt: skip


def test_the_log_cannot_be_written_nor_the_word_about_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log").mkdir()
    log = ServerLog(tmp_path / "log", lambda _seconds: nullcontext())  # it is a directory
    with open("/dev/full", "w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", full)
        log.report("event", backend_type="client backend")
