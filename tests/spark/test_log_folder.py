"""Logs that replctl writes for Spark: replctl removes unused logs, regardless of the clock."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from replctl.spark import log_folder
from replctl.spark.log_folder import LogFolder


def _log(number: int) -> str:
    actions = [
        {"protocol": {"minReaderVersion": 1}},
        {"metaData": {"id": str(number)}},
        {"add": {"path": f"part-{number}", "size": 1}},
    ]
    return "\n".join(map(json.dumps, actions))


def test_only_a_log_that_has_not_been_used_for_long_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_folder, "_MANY", 2)
    now = 0.0
    folder = LogFolder(tmp_path, lambda: now)
    first, second, third = (Path(folder.place(_log(number))) for number in range(3))
    for table in (first, second, third):  # as if the time of day had jumped
        os.utime(table, (0, 0))
    assert all(table.exists() for table in (first, second, third))
    fourth = Path(folder.place(_log(3)))
    assert all(table.exists() for table in (first, second, third, fourth))
    now = 3000.0
    assert folder.place(_log(1)) == str(second)
    now = 4000.0
    folder.place(_log(4))
    assert [table.exists() for table in (first, second, third, fourth)] == [False, True] + [
        False
    ] * 2
    assert folder.place(_log(0)) == str(first)
    assert first.exists()
    folder.close()
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_somebody_has_removed_or_that_is_there_in_part_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = LogFolder(tmp_path)
    table = Path(folder.place(_log(0)))
    shutil.rmtree(table)
    assert folder.place(_log(0)) == str(table)
    commit = table / "_delta_log" / f"{0:020d}.json"
    assert commit.read_text("utf-8") == _log(0)

    def full(_path: Path, _text: str, **_named: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(OSError, match="No space"):
            folder.place(_log(1))
    assert (Path(folder.place(_log(1))) / "_delta_log" / commit.name).read_text("utf-8") == _log(1)
