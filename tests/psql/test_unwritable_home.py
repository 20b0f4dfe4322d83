"""The commands that work in a home that is read-only, full or without permission, and their
messages, without Spark."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from other_user import READS_ALL, replctl_process

_QUERIES = (
    "SELECT 1",
    "SELECT relname FROM pg_class WHERE relname = 't'",
    "SELECT slot_name, wal_status FROM pg_replication_slots",
    r"\d t",
    r"\dRp+",
    r"\dRs+",
)
_READS: tuple[tuple[str, ...], ...] = (
    ("status", "--json"),
    ("-X", "-v", "ON_ERROR_STOP=1", *(word for query in _QUERIES for word in ("-c", query))),
)
_SQL = ("CREATE TABLE u (a int)", "SELECT nextval('q')")
_WRITES: tuple[tuple[str, ...], ...] = (
    ("sync",),
    ("sync", "--watch"),
    ("spark", "start"),
    *(("-X", "-c", statement) for statement in _SQL),
)


@dataclass(frozen=True)
class Answer:
    """The exit code and the output of a command."""

    returncode: int
    stdout: str
    stderr: str


class Home:
    """A cluster's directory, and a process that uses it.  If this process is root's, that one
    is another user's.

    Args:
        capability: what the other user may do with files of others; None runs it as this user.
    """

    def __init__(self, path: Path, capability: str | None = None) -> None:
        self.path = path
        environment = {**os.environ, "REPLCTL_HOME": str(path), "HOME": str(path.parent)}
        self._process = subprocess.Popen(
            replctl_process(capability),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(self, *arguments: str) -> Answer:
        """Run the command."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{json.dumps(arguments)}\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            pytest.skip("the other user may not read the interpreter")
        return Answer(*json.loads(line))

    def stop(self) -> None:
        """End the process."""
        self._process.communicate(timeout=60)

    def fill(self) -> None:
        """Make a cluster with a subscription."""
        for database, statements in (
            (
                "postgres",
                "CREATE TABLE t (id int PRIMARY KEY); CREATE PUBLICATION p FOR TABLE t;"
                " CREATE SEQUENCE q; CREATE DATABASE sub",
            ),
            (
                "sub",
                "CREATE TABLE t (id int PRIMARY KEY); CREATE SUBSCRIPTION s CONNECTION"
                " 'dbname=postgres' PUBLICATION p WITH (copy_data = false)",
            ),
        ):
            commands = [word for text in statements.split("; ") for word in ("-c", text)]
            done = self.run("-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", database, *commands)
            assert done.returncode == 0, done

    def check(self, reason: str, reads: Sequence[Sequence[str]] = _READS) -> None:
        """Check the commands that work, and that all others name the directory and the reason."""
        for arguments in reads:
            done = self.run(*arguments)
            assert (done.returncode, done.stderr) == (0, ""), (arguments, done.stderr)
            assert '"state": "inactive"' in done.stdout or 'Table "public.t"' in done.stdout
        for arguments in _WRITES:
            done = self.run(*arguments)
            assert done.returncode == 1, (arguments, done)
            assert f'"{self.path}' in done.stderr
            assert reason in done.stderr
            assert "Traceback" not in done.stderr
            assert "HINT:  Until this is corrected, only status and queries" in done.stderr


@pytest.fixture
def home(open_folder: Path) -> Iterator[Home]:
    """Yield the cluster of a user who is not root."""
    parent = open_folder / "own"
    parent.mkdir()
    if os.getuid() == 0:
        user = pwd.getpwnam("nobody")
        os.chown(parent, user.pw_uid, user.pw_gid)
    made = Home(parent / "home", READS_ALL)
    made.fill()
    yield made
    made.stop()


def _close(home: Home, mode: int = 0o500) -> None:
    home.path.chmod(mode)
    (home.path / "lock").chmod(mode)


def _open(home: Home) -> None:
    home.path.chmod(0o700)
    (home.path / "lock").chmod(0o700)


def test_a_read_only_home_can_be_read(home: Home) -> None:
    _close(home)
    home.check("Permission denied")
    _open(home)
    for arguments in (*_READS, *_WRITES[3:]):
        assert home.run(*arguments).returncode == 0


def test_a_log_of_sqlite_that_a_crash_has_left_is_read(home: Home) -> None:
    """The log is in a directory to which nobody can write."""
    script = (
        "import os\nfrom replctl.catalog.open_cluster import open_cluster\n"
        "from replctl.session import Session\nfrom replctl.execute import execute\n"
        "cluster = open_cluster()\nsession = Session.connect(cluster, 'postgres', 'postgres')\n"
        "list(execute(session, 'create table left_there (a int)'))\nos._exit(0)\n"
    )
    environment = {**os.environ, "REPLCTL_HOME": str(home.path)}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, timeout=60)
    assert (home.path / "catalog.db-wal").stat().st_size
    _close(home)
    query = "SELECT relname FROM pg_class WHERE relname = 'left_there'"
    assert "left_there" in home.run("-X", "-c", query).stdout
    for shared in home.path.glob("catalog.db-shm"):
        shared.unlink()
    assert "left_there" in home.run("-X", "-c", query).stdout


def test_a_home_that_may_not_be_entered_is_named(home: Home) -> None:
    home.path.chmod(0)
    other = Home(home.path, "-all")
    for arguments in (("status",), ("sync",), ("-X", "-c", "SELECT 1"), ("cluster", "identify")):
        done = other.run(*arguments)
        assert done.returncode == 2, done
        assert f'could not use directory "{home.path}": Permission denied' in done.stderr
    other.stop()


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes files that the user cannot open")
def test_files_that_root_has_left_are_named(open_folder: Path) -> None:
    """A command with sudo was killed."""
    user = pwd.getpwnam("nobody")
    os.chown(open_folder, user.pw_uid, user.pw_gid)
    other = Home(open_folder / "home", "-all")
    statement = ("-X", "-q", "-c", "CREATE SCHEMA s; DROP SCHEMA s")
    assert other.run(*statement).returncode == 0
    (other.path / "spark").mkdir(exist_ok=True)
    os.chown(other.path / "spark", user.pw_uid, user.pw_gid)

    def leave(name: str) -> str:
        (other.path / name).touch(mode=0o600)
        return f'could not access file "{other.path / name}": Permission denied'

    leave("lock/backend-99-abc.lock")
    assert other.run(*statement) == Answer(0, "", "")
    for name in ("spark/server.lock", "spark/start.lock"):
        message = leave(name)
        for command in ("status", "stop") if "server" in name else ("start",):
            done = other.run("spark", command)
            assert (done.returncode, done.stderr) == (1, f"ERROR:  {message}\n")
        (other.path / name).unlink()
    (other.path / "cluster.lock").unlink()
    message = leave("cluster.lock")
    done = other.run(*statement)
    assert done.returncode == 1
    assert message in done.stderr
    other.stop()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a small file system."""
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16m,mode=0700", "tmpfs", str(path)]
    if os.getuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only who may mount a file system has a small one")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def test_a_full_home_can_be_read(disk: Path) -> None:
    home = Home(disk / "home")
    home.fill()
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    home.check("No space left on device")
    filler.unlink()
    assert home.run("-X", "-c", _SQL[0]).returncode == 0
    home.stop()


def test_a_home_on_a_read_only_file_system_can_be_read(disk: Path) -> None:
    home = Home(disk / "home")
    home.fill()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    home.check("Read-only file system")
    saved = home.run("cluster", "backup", str(disk.parent / "backup"))
    assert (saved.returncode, saved.stderr) == (0, "")
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    assert home.run("-X", "-c", _SQL[0]).returncode == 0
    home.stop()
