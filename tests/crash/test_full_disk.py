"""With a full disk, a statement fails and leaves nothing, and the next statement works."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database, connect

from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.errors import DiskFull

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

_SIZE = 32 * 2**20
#: Some 2 MB that cannot be compressed.
_ROWS = "select i, string_agg(md5(i::text || j::text), '') from generate_series({}, {}) i,"
_ROWS += " generate_series(1, 20) j group by i"


class SmallDisk:
    """A disk of 32 MB."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self, free: int) -> None:
        """Fill the disk, except for `free` bytes."""
        with (self.path / "filler").open("wb") as filler:
            status = os.statvfs(self.path)
            filler.write(bytes(status.f_bavail * status.f_frsize - free))

    def empty(self) -> None:
        (self.path / "filler").unlink()

    def files(self) -> set[Path]:
        """Return all files except the filler."""
        return {path for path in self.path.rglob("*") if path.is_file()} - {self.path / "filler"}


class Disk(SmallDisk):
    """A small disk with a cluster, which has table t, and table u for small statements."""

    def __init__(self, path: Path, cluster: Cluster, engine: Engine) -> None:
        super().__init__(path)
        self.database = connect(cluster, "sub", engine)
        self.database.run("create table t (id int primary key, v text); create table u (a int)")
        self.database.run("insert into u values (0)")
        self._small = 0

    def insert(self) -> None:
        """Run a small INSERT, for which the disk has room."""
        self._small += 1
        self.database.run(f"insert into u values ({self._small})")
        assert self.database.rows("select count(*) from u") == [(str(self._small + 1),)]

    def stray_files(self) -> set[str]:
        """Return the data files that no log names, and the unfinished files of logs."""
        files = [path for path in (self.path / "home/base").rglob("*") if path.is_file()]
        logs = [path for path in files if path.parent.name == "_delta_log"]
        named = set(re.findall(r"(?:part|cdc)-[\w.-]+\.parquet", "".join(map(_text, logs))))
        data = {path.name for path in files if path.name.startswith(("part-", "cdc-"))}
        return (data - named) | {path.name for path in logs if path.suffix == ".tmp"}


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.suffix == ".json" else ""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Yield the directory at which a small disk is mounted."""
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE},mode=0700", "tmpfs", str(path)]
    if os.getuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only who may mount a file system has a small one")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.fixture
def disk(place: Path, engine: Engine) -> Iterator[Disk]:
    cluster = open_cluster(place / "home")
    yield Disk(place, cluster, engine)
    cluster.close()


@pytest.mark.spark
def test_a_full_disk_leaves_nothing_of_a_statement(disk: Disk, tmp_path: Path) -> None:
    rows, database = tmp_path / "rows", disk.database
    database.run(f"copy ({_ROWS.format(1, 3000)}) to '{rows}'")
    disk.fill(900_000)
    with pytest.raises(DiskFull) as caught:
        database.run(f"copy t from '{rows}'")
    assert (caught.value.sqlstate, caught.value.hint) == ("53100", "Check free disk space.")
    assert disk.stray_files() == set()
    disk.insert()


@pytest.mark.spark
def test_a_full_disk_leaves_nothing_of_copy_and_apply(disk: Disk, publisher: Database) -> None:
    home, database = publisher.session.cluster.path, disk.database
    publisher.run("create table t (id int primary key, v text); create publication p for table t")
    database.run(f"create subscription s connection 'host={home} dbname=test_pub' publication p")
    for first in (1, 3001):
        publisher.run(f"insert into t {_ROWS.format(first, first + 2999)}")
        disk.fill(900_000)
        (failure,) = database.sync()
        assert failure.error.sqlstate == "53100"
        assert disk.stray_files() == set()
        disk.insert()
        disk.empty()
        assert database.sync() == []
    assert database.rows("select count(*) from t") == [("6000",)]


@pytest.mark.spark
def test_a_full_disk_elsewhere_fills_with_no_more_files(
    place: Path, publisher: Database, subscriber: Database
) -> None:
    """replctl removes no files of a table with a LOCATION.  The first attempt may leave files, and
    the next ones leave none."""
    disk = SmallDisk(place)
    publisher.run("create table t (id int primary key, v text); create publication p for table t")
    subscriber.run(
        f"create table t (id int primary key, v text) using delta location '{place / 't'}'"
    )
    subscriber.run("create subscription s connection 'dbname=test_pub' publication p")
    assert subscriber.sync() == []
    publisher.run(f"insert into t {_ROWS.format(1, 3000)}")
    disk.fill(900_000)
    left = []
    for _attempt in range(3):
        (failure,) = subscriber.sync()
        assert failure.error.sqlstate == "53100"
        left.append(disk.files())
    assert left[1] == left[2] == left[0]
    disk.empty()
    assert subscriber.sync() == []
    assert subscriber.rows("select count(*) from t") == [("3000",)]
