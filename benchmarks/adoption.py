"""Adopt tables with long logs, and compare with Spark's own first read of them."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from itertools import count
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from benchmarks.lake import Lake
from benchmarks.measure import REPLCTL, Run, short

_GROUP = "adoption"
_FIRST_READ = "Spark's first read"
_ROWS = 100
#: Number of log entries after the newest checkpoint, if there is one.
_TAIL = 10


def measure(run: Run) -> None:
    """Measure a log with a checkpoint near its end, and one without a checkpoint."""
    entries = run.at(1000, 10_000, 10_000)
    cases = {
        f"{short(entries)} entries, checkpoint at {entries - _TAIL}": entries - _TAIL,
        f"{short(entries)} entries, no checkpoint": None,
    }
    wanted = {case: checkpoint for case, checkpoint in cases.items() if run.wants(case)}
    if not wanted:
        return
    folders = tempfile.TemporaryDirectory(dir=run.scratch, ignore_cleanup_errors=True)
    with run.lake() as lake, folders as folder:
        lake.create_databases("pub")
        for number, (case, checkpoint) in enumerate(wanted.items()):
            table = Path(folder) / f"table{number}"
            _write_log(lake, table, entries, checkpoint)
            _measure_case(run, lake, case, table)


def _measure_case(run: Run, lake: Lake, case: str, table: Path) -> None:
    """Measure each round with a table at a new place, because Spark keeps the states of tables that
    it has read.
    """
    numbers = count(1)
    place = table

    def before() -> None:
        nonlocal place
        place = _linked(table, next(numbers))

    def adopted() -> None:
        lake.run("pub", f"CREATE TABLE t USING delta LOCATION '{place}'")

    def read() -> None:
        found = lake.lean.sql(f"SELECT count(*) FROM delta.`{place}`").collect()[0][0]
        if found != _ROWS:
            raise RuntimeError(f"Spark has found {found} rows")

    def after() -> None:
        lake.run("pub", "DROP TABLE t")
        shutil.rmtree(place)

    run.compare(
        _GROUP,
        {case: {REPLCTL: adopted, _FIRST_READ: read}},
        before=before,
        after=after,
        lake=lake,
    )


def _linked(table: Path, number: int) -> Path:
    """Link the files of a table into a new place, and return this place."""
    copy = table.with_name(f"{table.name}-{number}")
    for folder in (table, table / "_delta_log"):
        place = copy / folder.relative_to(table)
        place.mkdir(parents=True)
        for file in folder.iterdir():
            if file.is_file():
                os.link(file, place / file.name)
    return copy


def _write_log(lake: Lake, table: Path, entries: int, checkpoint: int | None) -> None:
    """Make a table of one file, which each version replaces by another file."""
    lake.write_table(str(table), _ROWS)
    log = table / "_delta_log"
    adds = [a["add"] for n in range(2) for a in _actions(log, n) if "add" in a]
    for name in ("*.crc", "_last_checkpoint"):
        for file in log.glob(name):
            file.unlink()
    (add,) = adds
    newest = max(int(file.stem) for file in log.glob("*.json"))
    for version in range(newest + 1, entries):
        path = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
        os.link(table / add["path"], table / path)
        removed = {
            "path": add["path"],
            "deletionTimestamp": add["modificationTime"],
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": {},
            "size": add["size"],
        }
        add = {**add, "path": path}
        note = {"timestamp": add["modificationTime"] + version, "operation": "WRITE"}
        lines = ({"commitInfo": note}, {"remove": removed}, {"add": add})
        content = "".join(f"{json.dumps(line)}\n" for line in lines)
        (log / f"{version:020d}.json").write_text(content, "utf-8")
        if version == checkpoint:
            DeltaTable(str(table)).create_checkpoint()


def _actions(log: Path, version: int) -> list[dict[str, Any]]:
    lines = (log / f"{version:020d}.json").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]
