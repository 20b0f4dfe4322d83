"""A table's folder is the same whether it is local or reached through pyarrow's file systems."""

from __future__ import annotations

from pathlib import Path

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


def test_data_files_are_those_that_are_not_hidden(folder: TableFolder) -> None:
    found = dict(folder.data_files())
    assert sorted(found) == ["_change_data/c.parquet", "e.bin", "p=1/d.parquet"]
    assert all(changed > 1_500_000_000 for changed in found.values())


def test_files_are_deleted_once(folder: TableFolder) -> None:
    folder.delete("p=1/d.parquet")
    folder.delete("p=1/d.parquet")
    assert "p=1/d.parquet" not in dict(folder.data_files())
    folder.delete_all()
    folder.delete_all()
    with pytest.raises(FileNotFoundError):
        folder.names("_delta_log")
