"""A publisher only needs to read its storage.  A user who may write only its own home adopts,
publishes and copies tables of others, and applies their changes."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from other_user import READS_ALL, replctl_process

from replctl.spark.java import find_java
from replctl.spark.maven import delta_jars

pytestmark = pytest.mark.spark

_SPARK = ("--master", "local[2]")
_TABLES = ("fed", "bare")


class Reader:
    """A user with a home: another user if this process runs as root, else its own user."""

    def __init__(self, home: Path) -> None:
        self.home = home
        cached = delta_jars(find_java())[0].parent
        shutil.copytree(cached, home / ".cache" / "replctl" / cached.name)
        if os.getuid() == 0:
            user = pwd.getpwnam("nobody")
            subprocess.run(["chown", "-R", f"{user.pw_uid}:{user.pw_gid}", home], check=True)
        kept = ("PATH", "PYTHONPATH", "JAVA_HOME", "LANG")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment |= {"HOME": str(home), "REPLCTL_HOME": str(home / "cluster")}
        self._process = subprocess.Popen(
            replctl_process(READS_ALL),
            cwd=home,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

        assert self._answer("-X", "-c", "SELECT")[0] == 0  # makes the cluster, and says so

    def _answer(self, *arguments: str) -> tuple[int, str, str]:
        stdin, stdout = self._stream(self._process.stdin), self._stream(self._process.stdout)
        stdin.write(f"{json.dumps(arguments)}\n")
        stdin.flush()
        code, out, err = json.loads(stdout.readline())
        return code, out, err

    def run(self, *arguments: str) -> str:
        """Run the command, and return its output.  An error fails the test."""
        code, out, err = self._answer(*arguments)
        told = [line for line in err.splitlines() if not line.startswith("LOG: ")]
        assert (code, told) == (0, []), (arguments, out, err)
        return out

    def sql(self, database: str, *statements: str) -> str:
        settings = "SET client_min_messages = warning"
        commands = [item for text in (settings, *statements) for item in ("-c", text)]
        return self.run(*_SPARK, "-X", "-q", "-A", "-t", "-d", database, *commands)

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream

    def stop(self) -> None:
        self._process.communicate(timeout=60)
        assert self._process.returncode == 0


class Storage:
    """Tables that this process owns and writes, and that nobody else may write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self) -> None:
        for name in _TABLES:
            properties = {"delta.enableChangeDataFeed": str(name == "fed").lower()}
            rows = pa.table({"id": pa.array(range(20), pa.int32()), "v": ["x"] * 20})
            write_deltalake(self.folder / name, rows, configuration=properties)
        self._seal()

    def change(self) -> None:
        """Insert, update and delete rows of each table, each in a separate version."""
        for folder in self.folder.rglob("*"):
            folder.chmod(0o700 if folder.is_dir() else 0o600)
        for name in _TABLES:
            rows = pa.table({"id": pa.array([100], pa.int32()), "v": ["new"]})
            write_deltalake(self.folder / name, rows, mode="append")
            DeltaTable(self.folder / name).update(updates={"v": "'changed'"}, predicate="id < 3")
            DeltaTable(self.folder / name).delete(predicate="id > 10 AND id < 15")
        self._seal()

    def _seal(self) -> None:
        for path in self.folder.rglob("*"):
            path.chmod(0o555 if path.is_dir() else 0o444)

    def state(self) -> Mapping[str, tuple[int, int, str]]:
        """Return the size, time and digest of each file, and the size and time of each
        directory."""
        return {
            str(path): (
                path.stat().st_size,
                path.stat().st_mtime_ns,
                hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            )
            for path in sorted(self.folder.rglob("*"))
        }


@pytest.fixture
def reader(open_folder: Path) -> Iterator[Reader]:
    home = open_folder / "home"
    home.mkdir(mode=0o700)
    found = Reader(home)
    yield found
    found.stop()


def test_a_publisher_needs_to_read_only(open_folder: Path, reader: Reader) -> None:
    (open_folder / "lake").mkdir()
    storage = Storage(open_folder / "lake")
    storage.write()
    before = storage.state()
    reader.sql("postgres", "CREATE DATABASE copy")
    for name in _TABLES:
        location = f"USING delta LOCATION '{storage.folder / name}'"
        reader.sql("postgres", f"CREATE TABLE {name} (PRIMARY KEY (id)) {location}")
        reader.sql("copy", f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
    assert reader.sql("postgres", "\\d fed") == "id|integer||not null|\nv|text|||\n"
    reader.sql("postgres", "CREATE PUBLICATION p FOR TABLE fed, bare")
    connection = "CONNECTION 'dbname=postgres' PUBLICATION p"
    reader.sql("copy", f"CREATE SUBSCRIPTION s {connection}", "\\sync")
    assert storage.state() == before

    storage.change()
    before = storage.state()
    reader.sql("copy", "\\sync")
    for name in _TABLES:
        rows = f"SELECT * FROM {name} ORDER BY id"
        copied = reader.sql("copy", rows)
        assert copied == reader.sql("postgres", rows)
        assert copied.splitlines()[:3] == ["0|changed", "1|changed", "2|changed"]
    reader.run("verify", "-d", "copy", *_SPARK)
    reader.run("status", "-d", "copy")
    assert storage.state() == before
