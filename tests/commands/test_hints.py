"""replctl's own HINTs: the error ends when the test follows the HINT.  None of them needs Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from fix_lake import Lake
from golden_script import answer_of

from replctl.errors import PostgresError
from replctl.execute import execute
from replctl.session import Session


def _delta_table(path: Path) -> str:
    write_deltalake(str(path), pa.table({"id": pa.array([1, 2], pa.int32())}))
    return str(path)


def _run(session: Session, statement: str) -> None:
    for _result in execute(session, statement):
        pass


def _hint(session: Session, statement: str) -> str:
    """Return the HINT of a statement that fails."""
    with pytest.raises(PostgresError) as raised:
        _run(session, statement)
    assert raised.value.hint is not None
    return raised.value.hint


def test_hints_of_tables_with_a_location(session: Session, tmp_path: Path) -> None:
    lake, full = _delta_table(tmp_path / "lake"), tmp_path / "full"
    full.mkdir()
    (full / "file").write_text("")
    hint = _hint(session, f"CREATE TABLE a (id int) LOCATION '{tmp_path}/new'")
    assert hint == "Write USING delta before LOCATION."
    _run(session, f"CREATE TABLE a (id int) USING delta LOCATION '{tmp_path}/new'")

    _run(session, f"CREATE TABLE b USING delta LOCATION '{lake}'")

    hint = _hint(session, f"CREATE TABLE c (id int) USING delta LOCATION '{full}'")
    assert hint.endswith("choose one that is empty or does not exist.")
    (full / "file").unlink()
    _run(session, f"CREATE TABLE c (id int) USING delta LOCATION '{full}'")
    for inside in (f"{lake}/inside", str(tmp_path)):
        hint = _hint(session, f"CREATE TABLE d (id int) USING delta LOCATION '{inside}'")
        assert hint in (
            "Choose a directory that nothing else uses.",
            "A new table needs a directory of its own: choose one that is empty or does not exist.",
        )
    inner = _delta_table(tmp_path / "outer" / "inner")
    _run(session, f"CREATE TABLE d USING delta LOCATION '{inner}'")
    outer = _delta_table(tmp_path / "outer")
    hint = _hint(session, f"CREATE TABLE e USING delta LOCATION '{outer}'")
    assert hint == "Choose a directory that nothing else uses."
    _run(session, f"CREATE TABLE e USING delta LOCATION '{_delta_table(tmp_path / 'other')}'")


def test_hints_of_keys_and_properties(session: Session, tmp_path: Path) -> None:
    lake = _delta_table(tmp_path / "lake")
    hint = _hint(session, "CREATE TABLE a (id int, PRIMARY KEY (id) NOT ENFORCED)")
    assert hint == "Use CREATE TABLE ... (PRIMARY KEY (...) NOT ENFORCED) USING delta LOCATION."
    _run(
        session,
        f"CREATE TABLE \"My a\" (PRIMARY KEY (id) NOT ENFORCED) USING delta LOCATION '{lake}'",
    )
    hint = _hint(session, 'ALTER TABLE "My a" RESET (delta.enableChangeDataFeed)')
    assert hint == 'Use ALTER TABLE public."My a" SET (delta.enableChangeDataFeed = false).'
    # Setting a property needs Spark.  The error shows that replctl accepts the statement
    answer = answer_of(session, hint.removeprefix("Use ").removesuffix("."))
    assert "has no Spark" in answer[0] or answer == ("ALTER TABLE",)


def test_hints_of_a_log_with_a_hole(lake: Lake, tmp_path: Path) -> None:
    lake.update()
    end = lake.enter()
    lake.update(0)
    path = Path(lake.location) / "_delta_log" / "00000000000000000002.json"
    backup = tmp_path / path.name
    from deltalake import DeltaTable

    for value in ("x", "y"):
        DeltaTable(lake.location).update(updates={"v": f"'{value}'"}, predicate="id = 2")
    shutil.move(path, backup)
    with pytest.raises(PostgresError, match="no longer has version 2") as raised:
        lake.enter()
    assert raised.value.hint == "Restore its file from a backup."
    shutil.move(backup, path)
    assert lake.enter() > end


def test_hints_of_roles_that_may_not_read_files(session: Session, tmp_path: Path) -> None:
    lake = _delta_table(tmp_path / "lake")
    _run(session, f"CREATE TABLE t USING delta LOCATION '{lake}'; CREATE ROLE \"An owner\"")
    _run(session, 'ALTER TABLE t OWNER TO "An owner"')
    hint = _hint(session, "TABLE t")
    assert hint == 'Use GRANT pg_read_server_files TO "An owner".'
    _run(session, hint.removeprefix("Use ").removesuffix("."))
    _run(session, "TABLE t")


def test_hints_of_options_of_a_subscription(session: Session) -> None:
    _run(session, "CREATE DATABASE pub")
    publisher = Session.connect(session.cluster, "pub", "postgres")
    _run(publisher, "CREATE TABLE t (id int PRIMARY KEY); CREATE PUBLICATION p FOR TABLE t")
    _run(session, "CREATE TABLE t (id int PRIMARY KEY)")
    create = "CREATE SUBSCRIPTION s CONNECTION 'dbname=pub' PUBLICATION p"
    hint = _hint(session, f"{create} WITH (delete = none)")
    assert hint == "Add copy_data = reconcile to the options."
    hint = _hint(session, f"{create} WITH (copy_data = reconcile, delete = some)")
    assert hint == "Available values: scope, all, none."
    hint = _hint(session, f"{create} WITH (resync = never)")
    assert hint == "Available values: manual, auto."
    _run(session, f"{create} WITH (copy_data = reconcile, delete = none, resync = manual)")
