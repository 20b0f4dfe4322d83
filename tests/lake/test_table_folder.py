"""A table's folder is the same whether it is local or reached through pyarrow's file systems."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest
from pyarrow import parquet

from replctl.lake.table_folder import TableFolder


@pytest.fixture(params=["local", "remote"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> TableFolder:
    root = tmp_path / "a table"
    for name in (
        "_delta_log/1.json",
        ".hidden",
        "_change_data/c.parquet",
        "p=1/d.parquet",
        "e.bin",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name, encoding="utf-8")
    parquet.write_table(
        pa.table({"a": [{"b": 1, "c": 2}], "d": [3]}), root / "_delta_log/2.parquet"
    )
    if request.param == "local":
        return TableFolder.of(str(root))
    return TableFolder(root.as_uri(), is_local=False)


def test_it_is_read(folder: TableFolder) -> None:
    assert sorted(folder.names("_delta_log")) == ["1.json", "2.parquet"]
    assert folder.read("_delta_log/1.json") == b"_delta_log/1.json"
    assert folder.read_parquet("_delta_log/2.parquet", ["a.b", "x"]) == [{"a": {"b": 1}}]
    assert folder.has("p=1/d.parquet")
    assert not folder.has("p=2/d.parquet")
    with pytest.raises(FileNotFoundError):
        folder.names("nothing")
    with pytest.raises(FileNotFoundError):
        folder.read("_delta_log/3.json")


@pytest.mark.parametrize("name", ["a table", "a table/"])
def test_links_are_not_followed(tmp_path: Path, name: str) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/letter.txt").write_text("x")
    folder = TableFolder.of(f"{tmp_path}/{name}")
    assert folder.is_empty()
    (tmp_path / "a table").mkdir()
    assert folder.is_empty()
    (tmp_path / "a table/linked").symlink_to(tmp_path / "theirs")
    (tmp_path / "a table/letter.txt").symlink_to(tmp_path / "theirs/letter.txt")
    assert not folder.is_empty()
    assert list(folder.all_files()) == list(folder.files_in("linked")) == []
    for path in ("linked/letter.txt", "../theirs/letter.txt", f"{tmp_path}/theirs/letter.txt"):
        with pytest.raises(OSError, match=r"."):
            folder.delete(path)
    assert not folder.remove_empty()
    assert (tmp_path / "theirs/letter.txt").read_text() == "x"


def test_data_files_are_those_that_are_not_hidden(folder: TableFolder) -> None:
    found = dict(folder.data_files())
    assert sorted(found) == ["_change_data/c.parquet", "e.bin", "p=1/d.parquet"]
    assert all(changed > 1_500_000_000 for changed in found.values())


def test_a_file_is_created_once(tmp_path: Path) -> None:
    folder = TableFolder.of(str(tmp_path))
    assert folder.create("_delta_log/1.json", b"x")
    assert not folder.create("_delta_log/1.json", b"y")
    assert folder.read("_delta_log/1.json") == b"x"
    assert folder.create("_delta_log/1.json", b"y", replaces=True)
    assert folder.read("_delta_log/1.json") == b"y"
    assert folder.names("_delta_log") == ["1.json"]


def test_a_file_is_created_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAT has no hard links."""
    refused = OSError(errno.EPERM, os.strerror(errno.EPERM))
    monkeypatch.setattr(os, "link", Mock(side_effect=refused))
    test_a_file_is_created_once(tmp_path)


def test_a_link_may_be_made_although_an_error_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS reports an error if the answer of the server is lost."""
    link = os.link

    def link_twice(old: Path, new: Path) -> None:
        link(old, new)
        link(old, new)

    monkeypatch.setattr(os, "link", link_twice)
    test_a_file_is_created_once(tmp_path)


def test_a_check_sum_does_not_outlive_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hadoop would compare it with the next file of that name."""
    for name in ("1.json", ".1.json.crc"):
        (tmp_path / name).write_text(name)
    unlink = os.unlink

    def unlink_once(name: str, **options: int) -> None:
        unlink(name, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "unlink", unlink_once)
    with pytest.raises(KeyboardInterrupt):
        TableFolder.of(str(tmp_path)).delete("1.json")
    assert [path.name for path in tmp_path.iterdir()] == ["1.json"]


def test_files_are_deleted_once(folder: TableFolder) -> None:
    folder.delete("p=1/d.parquet")
    folder.delete("p=1/d.parquet")
    assert "p=1/d.parquet" not in dict(folder.data_files())
    assert not folder.remove_empty()
    for path, _changed in list(folder.all_files()):
        folder.delete(path)
    assert list(folder.all_files()) == []
    if folder.is_local:  # object storage has no folders
        assert folder.remove_empty()
        assert folder.is_empty()


def test_one_name_for_a_place(tmp_path: Path) -> None:
    (tmp_path / "b").symlink_to(tmp_path / "a")
    places = (f"{tmp_path}/a", f"{tmp_path}/b/", f"file://{tmp_path}/c/../a", f"{tmp_path}//a")
    assert {TableFolder.of(place).canonical() for place in places} == {f"{tmp_path}/a"}
    assert TableFolder.of("s3a://b/c/").canonical() == TableFolder.of("s3://b/c").canonical()
    parents = [parent.location for parent in TableFolder.of("s3://b/c/d").parents()]
    assert parents == ["s3://b/c", "s3://b"]


@pytest.mark.parametrize(
    ("spelling", "place"),
    [
        ("s3n://b//c", "s3://b/c"),
        ("S3A://b/c/./d/../e/", "s3://b/c/e"),
        ("s3://b/c?d#e", "s3://b/c?d#e"),
        ("s3a://b", "s3://b"),
        ("gs://b/c/", "gs://b/c"),
    ],
)
def test_one_name_for_a_place_in_object_storage(spelling: str, place: str) -> None:
    assert TableFolder.of(spelling).canonical() == place


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("file:/t/a%20b?c#d", "/t/a b?c#d"),
        ("FILE:///t/./file:a/", "/t/file:a"),
        ("/t/a%20b?c#d", "/t/a%20b?c#d"),
        ("/t/file:x", "/t/file:x"),
    ],
)
def test_a_local_location_is_a_path(location: str, path: str) -> None:
    assert TableFolder.absolute(location) == path
    assert TableFolder.of(location).canonical() == TableFolder.of(path).location == path


def test_schemes_are_kept_in_lower_case() -> None:
    assert TableFolder.absolute("S3A://B/T?x#y") == "s3a://B/T?x#y"
