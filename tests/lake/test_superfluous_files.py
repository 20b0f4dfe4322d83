"""The number of files that a table would lose if its rows were in large files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from replctl.lake.delta_files import superfluous_files


@pytest.mark.parametrize(
    ("writes", "partition_by", "size", "expected"),
    [
        (0, None, 1 << 20, 0),
        (1, None, 1 << 20, 0),
        (5, None, 1 << 20, 4),
        (6, ["region"], 1 << 20, 4),  # two partitions
        (5, None, 10, 0),  # none of them is small
    ],
)
def test_files_that_could_be_one(
    tmp_path: Path, writes: int, partition_by: list[str] | None, size: int, expected: int
) -> None:
    for number in range(writes):
        rows = pa.table({"id": [number], "region": ["north" if number % 2 else "south"]})
        write_deltalake(tmp_path, rows, mode="append", partition_by=partition_by)
    assert superfluous_files(str(tmp_path), size) == expected


def test_small_files_fill_several_large_ones(tmp_path: Path) -> None:
    for number in range(6):
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append")
    sizes = [path.stat().st_size for path in tmp_path.glob("*.parquet")]
    assert superfluous_files(str(tmp_path), max(sizes) + 1) == 0
    assert superfluous_files(str(tmp_path), 2 * max(sizes) + 1) == 3
