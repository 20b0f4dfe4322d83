"""delta-rs finds rows by hostile keys in hostile folders, or leaves them to Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from hostile_texts import HOSTILE, LONG, NAMES

from replctl.spark.key_lookup import found_rows
from replctl.spark.values import TableColumn, TableSource

TEXTS = [*HOSTILE.values(), "", LONG]
COLUMNS = (TableColumn(1, "text", -1, "k"), TableColumn(2, "int4", -1, "n"))


def test_hostile_keys_are_found_in_any_folder(tmp_path: Path) -> None:
    place = tmp_path / "t"
    rows = pa.table({"k": TEXTS, "n": pa.array(range(len(TEXTS)), pa.int32())})
    write_deltalake(str(place), rows)
    looked_up = 0
    for name in NAMES.values():
        if "/" in name or name == "..":
            continue
        place = place.rename(tmp_path / name)
        for texts in (TEXTS, TEXTS[::2]):
            found = found_rows(TableSource(str(place), COLUMNS, 0), COLUMNS, {1: texts})
            if found is not None:
                looked_up += 1
                values = [tuple(row.values()) for row in found.to_pylist()]
                assert sorted(values, key=lambda row: row[1]) == [
                    (text, number) for number, text in enumerate(TEXTS) if text in texts
                ], name
    assert looked_up > len(NAMES)
