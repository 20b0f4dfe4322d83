"""replctl refuses tables and clusters inside the directory of another one, and leaves existing ones
alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from fix_lake import Lake
from golden_script import answer_of

from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.standby import create_standby
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.backup import back_up
from replctl.session import Session


def table_at(session: Session, name: str, place: object) -> tuple[str, ...]:
    """Return the answer to a CREATE TABLE with a LOCATION."""
    return answer_of(session, f"create table {name} (a int) using delta location '{place}'")


def test_no_location_has_another_one_in_it(session: Session, tmp_path: Path) -> None:
    inner, outer = tmp_path / "lake" / "outer" / "inner", tmp_path / "lake" / "outer"
    assert table_at(session, "i", inner) == ("CREATE TABLE",)
    answer, *_ = table_at(session, "o", outer)
    assert answer.startswith('ERROR 42P17: the directory of table "i" is inside location')


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("", "22023: the location of a table must not be empty"),  # the current directory
        ("file://elsewhere/t", '22023: location "file://elsewhere/t" is on another machine'),
        ("file://[1/t", '22023: invalid location "file://[1/t": Invalid IPv6 URL'),
    ],
)
def test_a_location_names_a_directory(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    assert table_at(session, "t", place)[0] == f"ERROR {error}"
    assert set(tmp_path.iterdir()) == before
    assert table_at(session, "t", f"file://localhost{tmp_path}/lake/t") == ("CREATE TABLE",)


def test_a_cluster_and_a_backup_lie_in_no_table(session: Session, tmp_path: Path) -> None:
    table = tmp_path / "lake"
    write_deltalake(str(table), pa.table({"a": [1]}))
    with pytest.raises(ObjectNotInPrerequisiteState, match="lies in the Delta table at"):
        open_cluster(table / "folder" / "home")
    with pytest.raises(ObjectNotInPrerequisiteState, match="lies in the Delta table at"):
        back_up(session.cluster, table / "backup")
    (tmp_path / "link").symlink_to(table)
    for home in (table / "standby", tmp_path / "link" / "standby"):
        with pytest.raises(ObjectNotInPrerequisiteState, match="lies in the Delta table at"):
            create_standby(session.cluster.path, home, "s")
        assert not home.exists()
    assert not (table / "folder").exists()
    assert not (table / "backup").exists()


def test_a_cluster_and_a_backup_lie_in_no_cluster(session: Session, tmp_path: Path) -> None:
    home, other = session.cluster.path, tmp_path / "other"
    open_cluster(other).close()
    (tmp_path / "link").symlink_to(other)
    for place in (home, other, tmp_path / "link"):
        inner = place / "base" / "inner"
        wanted = f'lies in the directory of the cluster in "{place.resolve()}"'
        with pytest.raises(ObjectNotInPrerequisiteState, match=wanted):
            open_cluster(inner)
        with pytest.raises(ObjectNotInPrerequisiteState, match=wanted):
            back_up(session.cluster, inner)
        with pytest.raises(ObjectNotInPrerequisiteState, match=wanted):
            create_standby(home, inner, "s")
        assert not inner.exists()


def test_vacuum_leaves_what_lies_in_a_table_but_is_another_s(lake: Lake) -> None:
    root = Path(lake.location)
    write_deltalake(str(root / "inner"), pa.table({"a": [1]}))
    (root / "home" / "base").mkdir(parents=True)
    (root / "home" / "catalog.db").write_text("a catalog")
    name = "part-00000-955246d2-fb60-4bb1-8dff-bfc1b4c86684-c000.snappy.parquet"
    orphan, theirs = root / "a=1" / name, root / "home" / "base" / name
    orphan.parent.mkdir()
    for path in (orphan, theirs):
        path.write_text("rows")
    old = time.time() - 30 * 86400
    for path in root.rglob("*"):
        if path.is_file():
            os.utime(path, (old, old))
    before = {path for path in root.rglob("*") if path.is_file()}
    with lake.session.cluster.begin(write=True) as connection:
        connection.exec_driver_sql("UPDATE storage_table SET was_empty = 1")
    lake.run("vacuum")
    gone = before - {path for path in root.rglob("*") if path.is_file()}
    assert gone == {orphan}


@pytest.mark.parametrize("size", [None, 0])
def test_tables_whose_catalog_is_lost_are_no_place_for_a_cluster(
    tmp_path: Path, size: int | None
) -> None:
    home = tmp_path / "home"
    open_cluster(home).close()
    (home / "base" / "5" / "16384").mkdir(parents=True)
    for path in home.glob("catalog.db*"):
        path.unlink()
    if size is not None:
        (home / "catalog.db").touch()
    assert not Cluster.exists(home)
    with pytest.raises(ObjectNotInPrerequisiteState, match="exists but is not empty"):
        open_cluster(home)
    (home / "base" / "5" / "16384").rmdir()
    (home / "base" / "5").rmdir()
    open_cluster(home).close()  # as after an interrupted initdb


def test_a_location_means_the_same_everywhere(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert table_at(session, "r", "sub/rel") == ("CREATE TABLE",)
    with session.read() as catalog:
        stored = catalog.driver_rows("SELECT location FROM storage_table")
    assert str(tmp_path / "sub" / "rel") in [str(row[0]) for row in stored]
    answer, *_ = table_at(session, "f", "ftp://x/y")
    assert answer.startswith("ERROR 58030: ")
    assert 'no file system for "ftp:" is known' in answer
