"""Protocol and metadata of the newest version of a Delta table, without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from fix_replication import Database

from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.table_state import table_state
from replctl.session import Session


def _cleaned(place: Path) -> None:
    """Make a table whose log has a checkpoint of version 1, and only the commits after it."""
    for number in range(4):
        rows = pa.table({"id": pa.array([number], pa.int32())})
        write_deltalake(str(place), rows, mode="append")
        if number == 1:
            DeltaTable(str(place)).create_checkpoint()
    for version in (0, 1):
        (place / "_delta_log" / f"{version:020d}.json").unlink()


def test_a_log_may_begin_with_a_checkpoint(session: Session, tmp_path: Path) -> None:
    place = tmp_path / "t"
    _cleaned(place)
    Database(session).run(f"CREATE TABLE t USING delta LOCATION '{place}'")
    state = table_state(str(place))
    assert state.version == 3
    assert state.protocol["minWriterVersion"] == 2
    assert state.metadata["id"] == str(DeltaTable(str(place)).metadata().id)


def test_a_log_without_metadata_is_an_error(tmp_path: Path) -> None:
    _cleaned(tmp_path)
    for name in (tmp_path / "_delta_log").glob("*.checkpoint.parquet"):
        name.unlink()
    with pytest.raises(ObjectNotInPrerequisiteState, match="is not complete"):
        table_state(str(tmp_path))
