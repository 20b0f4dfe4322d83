"""`replctl spark` starts a server that commands find, that no other user can use, and that ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database, connect
from patience import PATIENCE, wait_until

from replctl.catalog.open_cluster import open_cluster
from replctl.spark import find_server, stop_server
from replctl.spark.java_start import BRIEF_OPTIONS

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

_NOT_RUNNING = 3
#: Options for JVMs that live only briefly.
_BRIEF = ("--conf", f"spark.driver.extraJavaOptions={BRIEF_OPTIONS}")
_ROOT = Path(__file__).parents[2]


class Command:
    """`replctl` as a process, with a cluster of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        unset = ("SPARK_REMOTE", "SPARK_CONNECT_AUTHENTICATE_TOKEN")
        self.environment = {name: value for name, value in os.environ.items() if name not in unset}
        self.environment["REPLCTL_HOME"] = str(home)

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "replctl", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )

    def spark(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self("spark", *arguments)

    def start(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        memory = ("--conf", "spark.driver.memory=1g")
        options = ["--no-warm-up", "--master", "local[1]", *memory, *_BRIEF]
        return self.spark("start", *options, *arguments)

    def pid(self) -> int:
        return int(json.loads(self.spark("status", "--json").stdout)["pid"])


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    made = Command(tmp_path / "cluster")
    yield made
    made.spark("stop")


def _is_confirmed(publisher: Database, lsn: str) -> bool:
    """Return whether the only slot of a database has confirmed everything up to an LSN."""
    behind = f"select confirmed_flush_lsn < '{lsn}' from pg_replication_slots"
    return publisher.rows(behind) == [("f",)]


def jvms_of(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8")
    return [int(child) for child in children.split()]


def listening_addresses(pid: int) -> set[str]:
    """Return the addresses at which a process listens, in the hexadecimal form of /proc."""
    descriptors = Path(f"/proc/{pid}/fd").iterdir()
    sockets = {os.readlink(descriptor) for descriptor in descriptors}
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{name}").read_text("utf-8").splitlines()[1:]
    ]
    return {
        row[1].split(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets
    }


def wait_until_gone(pid: int) -> None:
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.spark
def test_a_server_is_started_once_and_found(command: Command, tmp_path: Path) -> None:
    # Ten commands at the same moment, in a directory without a cluster
    with ThreadPoolExecutor(10) as pool:
        starts = [pool.submit(command.start) for _ in range(4)]
        queries = [pool.submit(command, "-X", "-A", "-t", "-c", "select 1") for _ in range(6)]
    answers = [future.result() for future in (*starts, *queries)]
    assert [answer.returncode for answer in answers] == [0] * 10
    assert [answer.stdout for answer in answers[4:]] == ["1\n"] * 6
    assert sum(answer.stderr.count("created cluster") for answer in answers) == 1
    assert len({answer.stdout.partition("PID: ")[2] for answer in answers[:4]}) == 1
    assert sum("already" not in answer.stdout for answer in answers[:4]) == 1
    status = command.spark("status")
    assert status.returncode == 0
    found = json.loads(command.spark("status", "--json").stdout)
    pid, port = int(found["pid"]), found["port"]
    assert f"PID: {pid}" in status.stdout

    again = command.spark("start", "--conf", "spark.driver.memory=9g")
    assert (again.returncode, "other options" in again.stderr) == (0, True)

    description = command.home / "spark" / "server.json"
    assert description.stat().st_mode & 0o077 == 0
    token = json.loads(description.read_text("utf-8"))["token"]
    (jvm,) = jvms_of(pid)
    assert token not in Path(f"/proc/{jvm}/cmdline").read_text("utf-8")
    assert listening_addresses(jvm) <= {"0100007F", "0000000000000000FFFF00000100007F"}  # 127.0.0.1

    answer = command("-X", "-c", "create table t (a int)", "-c", "insert into t select 1")
    assert (answer.stdout, answer.stderr) == ("CREATE TABLE\nINSERT 0 1\n", "")
    assert jvms_of(pid) == [jvm]  # the server still has only this JVM
    (scratch,) = [path for path in (command.home / "tmp").iterdir() if path.is_dir()]
    assert (command.home / "tmp").stat().st_mode & 0o077 == scratch.stat().st_mode & 0o077 == 0
    environment = Path(f"/proc/{jvm}/environ").read_text("utf-8").split("\0")
    assert f"TMPDIR={scratch}" in environment
    assert f"-Djava.io.tmpdir={scratch}" in Path(f"/proc/{jvm}/cmdline").read_text("utf-8")

    command("-X", "-c", "alter database postgres set replctl.small_table_rows = 0")
    stranger = command("-X", "--remote", f"sc://localhost:{port}", "-c", "select * from t")
    assert stranger.returncode != 0
    assert "ERROR:  the Spark Connect server refuses this user" in stranger.stderr

    address = f"sc://127.0.0.1:{port}/;token={token}"
    answer = command("-X", "-At", "--remote", address, "-c", "select * from t")
    assert (answer.stdout, answer.stderr) == ("1\n", "")

    # The JVM ends with the process that watches over it.  A command reports the dead server once,
    # and continues without it
    os.kill(pid, signal.SIGKILL)
    wait_until_gone(jvm)
    assert command.spark("status").returncode == _NOT_RUNNING
    answer = command("-X", "-At", "-c", "select * from t")
    assert answer.stdout == "1\n"
    assert "WARNING:  the Spark server of this cluster (PID " in answer.stderr
    assert "has died" in answer.stderr
    assert "replctl spark start" in answer.stderr


@pytest.mark.spark
def test_a_watch_outlives_its_server(command: Command, engine: Engine) -> None:
    """Only the watch uses the server.  Spark of this process writes and checks the rows.

    The watch starts a JVM of its own after the JVM of the server is killed, and another one after
    that JVM is killed.
    """
    assert command.start().returncode == 0
    cluster = open_cluster(command.home)
    publisher, subscriber = connect(cluster, "pub", engine), connect(cluster, "sub", engine)
    table = "create table t (a int primary key)"
    publisher.run(f"{table}; create publication p for table t")
    subscriber.run(table)
    subscriber.run("create subscription s connection 'dbname=pub' publication p")
    watch = subprocess.Popen(
        [sys.executable, "-m", "replctl", "sync", "--watch", "--interval", "0.5"],
        env={**command.environment, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        server = command.pid()
        for number, killed in ((1, None), (2, server), (3, watch.pid)):
            if killed is not None:
                (jvm,) = jvms_of(killed)
                os.kill(jvm, signal.SIGKILL)
            publisher.run(f"insert into t values ({number})")
            ((written,),) = publisher.rows("select pg_current_wal_lsn()")
            assert written is not None
            wait_until(partial(_is_confirmed, publisher, written))
            assert subscriber.rows("select max(a) from t") == [(str(number),)]
        watch.send_signal(signal.SIGINT)
        _, errors = watch.communicate(timeout=PATIENCE)
    finally:
        watch.kill()
        cluster.close()
    assert "ERROR:  could not connect to the Spark Connect server" in errors
    assert "ERROR:  the Java process that runs Spark has ended" in errors
    assert "WARNING:  the Spark server of this cluster (PID " in errors
    assert watch.returncode == 0


def test_a_server_that_cannot_be_reached(command: Command) -> None:
    assert command("-X", "-c", "create table t (a int)").returncode == 0
    answer = command("-X", "--remote", "sc://127.0.0.1:1", "-c", "insert into t select 1")
    first, detail, *others = answer.stderr.splitlines()
    assert first == "ERROR:  could not connect to the Spark Connect server"
    assert detail.startswith("DETAIL:  failed to connect to all addresses")
    hint = (
        "HINT:  Start the server, or leave --remote and SPARK_REMOTE out: replctl then runs Spark"
    )
    assert (others, answer.returncode) == ([f"{hint} itself."], 1)


@pytest.mark.spark
def test_a_server_ends(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command.start("--idle-timeout", "1").returncode == 0
    wait_until(lambda: command.spark("status").returncode != 0)
    assert command.spark("status", "--json").stdout == '{"running": false}\n'
    assert not (command.home / "spark" / "server.json").exists()

    # First stop the JVM, then the process that watches over it
    for who in ("jvm", "pid"):
        assert command.start().returncode == 0
        server = find_server(command.home)
        assert server is not None
        os.kill(getattr(server, who), signal.SIGSTOP)
        if who == "jvm":
            assert json.loads(command.spark("status", "--json").stdout)["answers"] is False
            assert command.spark("stop").stdout == f"Spark server stopped (PID: {server.pid})\n"
        else:
            monkeypatch.setattr("replctl.spark.server._STOP_TIMEOUT", 0.5)
            assert stop_server(command.home) == server
        wait_until_gone(server.jvm)
        wait_until_gone(server.pid)
    stopped = command.spark("stop")
    assert (stopped.stdout, stopped.returncode) == ("no Spark server is running\n", _NOT_RUNNING)


def test_mistakes_are_named(command: Command) -> None:
    assert command.spark("status").returncode != 0
    assert "there is no cluster in" in command.spark("status").stderr
    wrong = command.spark("start", "--conf", "x")
    assert wrong.returncode != 0
    assert "is not NAME=VALUE" in wrong.stderr
    assert not command.home.exists()


@pytest.mark.spark
def test_two_installations_share_a_server(
    tmp_path: Path, connect_server: str, command: Command
) -> None:
    """Each installation sends its own modules to the server's Python, at the same moment and more
    than once."""
    query, total = "select sum(a / 3) from t", "1.00000000000000000000\n"
    made = ("create table t (a numeric)", "insert into t values (1), (2)")
    for name in ("one", "two"):
        (tmp_path / f"cluster-{name}").mkdir()
        for folder in ("replctl", "grammar"):
            shutil.copytree(_ROOT / folder, tmp_path / name / folder)
        (tmp_path / name / "replctl" / "difference.py").write_text(f'"""{name}"""\n', "utf-8")
    for statements, answer in (
        ((*made, query), f"CREATE TABLE\nINSERT 0 2\n{total}"),
        ((query, query), f"{total}{total}"),
    ):
        arguments = [argument for statement in statements for argument in ("-c", statement)]
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "replctl", "-X", "-At", *arguments],
                env=command.environment
                | {
                    "PYTHONPATH": str(tmp_path / name),
                    "SPARK_REMOTE": connect_server,
                    "REPLCTL_HOME": str(tmp_path / f"cluster-{name}"),
                },
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for name in ("one", "two")
        ]
        answers = [process.communicate(timeout=240) for process in processes]
        assert answers == [(answer, "")] * 2
