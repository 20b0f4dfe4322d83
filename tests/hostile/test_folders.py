"""Tables whose LOCATION is a folder with a hostile name, without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from fix_replication import Database
from hostile_texts import NAMES

from replctl.errors import ObjectNotInPrerequisiteState
from replctl.session import Session
from replctl.types.quote import quote_string

FOLDERS = [name for name in NAMES.values() if "/" not in name and name != ".."]


@pytest.fixture
def notices(session: Session) -> list[str]:
    """Return the notices of the session."""
    told: list[str] = []
    session.on_notice = lambda notice: told.append(f"{notice.message} {notice.detail}")
    return told


def test_tables_in_any_folder_are_adopted_and_left(
    session: Session, notices: list[str], tmp_path: Path
) -> None:
    database = Database(session)
    rows = pa.table({"id": pa.array([1, 2], pa.int32())})
    for number, name in enumerate(FOLDERS):
        folder = tmp_path / "lake" / name
        properties = {"delta.enableChangeDataFeed": "true"}
        write_deltalake(str(tmp_path / "made"), rows, configuration=properties)
        folder.parent.mkdir(exist_ok=True)
        (tmp_path / "made").rename(folder)
        location = quote_string(str(folder))
        database.run(f"CREATE TABLE t{number} USING delta LOCATION {location}")
        database.run(f"VACUUM t{number}")
    found = database.rows(
        "SELECT count(*) FROM pg_attribute JOIN pg_class c ON attrelid = c.oid"
        " WHERE attname = 'id' AND relnamespace = 'public'::regnamespace"
    )
    assert found == [(str(len(FOLDERS)),)]
    for number, name in enumerate(FOLDERS):
        notices.clear()
        database.run(f"DROP TABLE t{number}")
        folder = tmp_path / "lake" / name
        assert any(str(folder) in notice for notice in notices), (name, notices)
        assert (folder / "_delta_log").is_dir(), name


def test_a_folder_of_any_name_that_holds_other_things_is_refused(
    session: Session, tmp_path: Path
) -> None:
    for number, name in enumerate(FOLDERS):
        folder = tmp_path / "lake" / name
        folder.mkdir(parents=True)
        (folder / name).touch()
        location = quote_string(str(folder))
        with pytest.raises(ObjectNotInPrerequisiteState) as caught:
            Database(session).run(f"CREATE TABLE t{number} (a int) USING delta LOCATION {location}")
        assert caught.value.message == f'directory "{folder}" exists but is not empty'
        assert (folder / name).exists()
