"""The commits of tables are on the disk before the catalog has them."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable
from fix_lake import Lake, table_location
from golden_script import answer_of

from replctl import durable_file
from replctl.lake.durable_version import sync_versions
from replctl.session import Session


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return a list that gets the path of each file and directory that is forced to the disk."""
    paths: list[Path] = []

    def fsync(descriptor: int) -> None:
        paths.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))

    monkeypatch.setattr(os, "fsync", fsync)
    return paths


def test_a_version_is_synced_after_its_files_and_with_its_folders(
    lake: Lake, synced: list[Path]
) -> None:
    location = Path(lake.location).resolve()
    before = {str(path) for path in location.glob("*.parquet")}
    lake.write({"id": [7]})
    sync_versions(lake.location, 0)
    (new,) = {str(path) for path in location.glob("*.parquet")} - before
    version = location / "_delta_log" / f"{1:020d}.json"
    assert synced[:2] == [Path(new), version]
    assert set(synced[2:]) == {location, location / "_delta_log"}


def test_older_versions_and_removed_files_need_nothing(lake: Lake, synced: list[Path]) -> None:
    sync_versions(lake.location, 0)
    assert not synced
    lake.write({"id": [7]})
    for path in Path(lake.location).glob("*.parquet"):
        path.unlink()
    sync_versions(lake.location, 0)
    assert synced


def test_statements_sync_what_they_write(session: Session, synced: list[Path]) -> None:
    answer_of(session, "create table t (id int)")
    assert answer_of(session, "insert into t values (1)") == ("INSERT 0 1",)
    location = table_location(session, "t").resolve()
    assert {path.suffix for path in location.rglob("*") if path in synced} >= {".parquet", ".json"}
    assert {location, location.parent, location.parent.parent} <= set(synced)


def test_a_failure_of_the_disk_undoes_the_statement(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_of(session, "create table t (id int) with (deletion_vectors = off)")
    answer_of(session, "insert into t values (1)")
    sync = durable_file._fsync

    def failing(path: Path | str) -> None:
        if str(path).endswith(".parquet"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(path)

    with monkeypatch.context() as patched:
        patched.setattr(durable_file, "_fsync", failing)
        error, *_rest = answer_of(session, "insert into t values (2)")
    assert error.startswith('ERROR 58030: could not fsync file "')
    assert error.endswith('.parquet": Input/output error')
    assert answer_of(session, "insert into t values (3)") == ("INSERT 0 1",)
    rows = DeltaTable(table_location(session, "t")).to_pyarrow_table()
    assert sorted(rows.column(0).to_pylist()) == [1, 3]


def test_catalogs_reach_the_disk_with_each_commit(tmp_path: Path) -> None:
    program = """
from pathlib import Path
from replctl.catalog.open_cluster import open_cluster
cluster = open_cluster(Path("home"))
with cluster.begin(write=False) as connection:
    print(connection.exec_driver_sql("PRAGMA synchronous").scalar())
cluster.close()
"""
    command = [sys.executable, "-c", program]  # conftest.py changes the setting in this process
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert printed.stdout == "2\n"  # FULL
