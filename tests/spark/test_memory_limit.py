"""A heap that fits into the memory of the machine, or of the container."""

from __future__ import annotations

from pathlib import Path

import pytest

from replctl.spark.memory import cached_logs, heap, memory_limit

_GB = 2**30


@pytest.mark.parametrize(
    ("wanted", "limit", "expected"),
    [
        (4 * _GB, None, "4096m"),
        (4 * _GB, 64 * _GB, "4096m"),
        (4 * _GB, 2 * _GB, "1024m"),
        (2 * _GB, 3 * _GB, "1536m"),
        (4 * _GB, _GB // 2, "512m"),  # it may be too little, but Spark does not start with less
    ],
)
def test_heap(wanted: int, limit: int | None, expected: str) -> None:
    assert heap(wanted, limit) == expected


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/\n", {"memory.max": "1073741824"}, _GB),
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "1073741824"}, _GB),
        ("0::/a/b\n", {"a/b/memory.max": "4096", "a/memory.max": "1073741824"}, 4096),
        ("9:cpu,memory:/d\n", {"memory/d/memory.limit_in_bytes": "1073741824"}, _GB),
        ("0::/gone\n", {"memory.max": "1073741824"}, _GB),
        ("9:cpu:/d\n", {"memory/d/memory.limit_in_bytes": "4096"}, None),
    ],
)
def test_the_limit_of_a_container(
    own: str, files: dict[str, str], expected: int | None, tmp_path: Path
) -> None:
    machine = memory_limit(tmp_path / "none", tmp_path / "none")
    for name, text in files.items():
        (tmp_path / "cgroup" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "cgroup" / name).write_text(f"{text}\n", "utf-8")
    (tmp_path / "own").write_text(own, "utf-8")
    found = memory_limit(tmp_path / "cgroup", tmp_path / "own")
    assert found == (machine if expected is None else expected)


@pytest.mark.parametrize(
    ("size", "logs"),
    [("2g", 256), ("2048m", 256), ("3GB", 384), (str(1 << 30), 128), ("100m", 64), ("much", 64)],
)
def test_cached_logs(size: str, logs: int) -> None:
    assert cached_logs(size) == logs
