"""`replctl cluster identify --restored` reports for each table whether it matches the catalog."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from fix_lake import Lake, log_file, table_location
from fix_psql import Psql
from golden_script import answer_of
from test_target_fault import subscribe

from replctl.catalog.commit_nonce import find_nonces
from replctl.catalog.intent import Intent, insert_intent, list_intents
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake import commit_log
from replctl.lake.commit_mark import CommitMark
from replctl.lake.table_read import visible_versions
from replctl.lake.target_check import TargetCheck


def identify(lake: Lake) -> list[str]:
    """Return the lines that the command prints."""
    home = str(lake.session.cluster.path)
    command = [sys.executable, "-m", "replctl", "cluster", "identify", "--restored", "--home", home]
    said = subprocess.run(command, capture_output=True, check=True, text=True)
    assert said.stderr == ""
    return said.stdout.splitlines()


def _json_of(lake: Lake, version: int) -> Path:
    return Path(lake.location) / "_delta_log" / f"{version:020d}.json"


def _as_known(lake: Lake) -> None:
    pass


def _newer(lake: Lake) -> None:
    lake.write({"id": [9]})


def _half_done(lake: Lake, version: int = 2) -> None:
    mark = CommitMark(f"lost {version}", 1, 6_000 + version)
    text = commit_log.marked_text(lake.session.cluster, mark, lake.oid)
    info = {"commitInfo": {"timestamp": 1, "operation": "WRITE", "userMetadata": text}}
    add = {"add": {"path": f"p{version}.parquet", "size": 1, "dataChange": True,
                   "partitionValues": {}, "modificationTime": 1}}  # fmt: skip
    _json_of(lake, version).write_text("\n".join(map(json.dumps, (info, add))))


def _older(lake: Lake) -> None:
    _json_of(lake, 1).unlink()


def _older_and_written_since(lake: Lake) -> None:
    _older(lake)
    lake.write({"id": [7]})
    lake.write({"id": [8]})


def _gone(lake: Lake) -> None:
    shutil.rmtree(lake.location)


def _torn(lake: Lake) -> None:
    _json_of(lake, 2).write_text('{"add": {"path"')


_TABLE = "postgres: public.t: "
_STOPS = "its subscriptions stop until it is reconciled"


@pytest.mark.parametrize(
    ("change", "expected", "total"),
    [
        (_as_known, "as the catalog knows it, version 1", (0, 0)),
        (
            _newer,
            "newer than the catalog: it has version 2, the catalog knew version 1; 1 commits"
            " entered, 0 transactions to undo",
            (1, 0),
        ),
        (
            _half_done,
            "newer than the catalog: it has version 2, the catalog knew version 1; 0 commits"
            " entered, 1 transactions to undo",
            (0, 1),
        ),
        (
            _older,
            f"older than the catalog: it has version 0, the catalog knew version 1; {_STOPS}",
            (0, 0),
        ),
        (
            _older_and_written_since,
            f"not the one of the catalog: it has version 2, the catalog knew version 1; {_STOPS}",
            (0, 0),
        ),
        (
            _gone,
            "not there: put its directory back and repeat the command, or drop the table",
            (0, 0),
        ),
        (
            _torn,
            'not readable: the log of the Delta table "LOCATION" is broken; mend it and repeat the'
            " command, or drop the table",
            (0, 0),
        ),
    ],
)
def test_each_table_is_told(
    lake: Lake, change: Callable[[Lake], None], expected: str, total: tuple[int, int]
) -> None:
    lake.update()
    assert DeltaTable(lake.location).version() == 1
    change(lake)
    entered, undone = total
    last = f"{entered} commits of tables entered, {undone} transactions to undo"
    assert identify(lake) == [f"{_TABLE}{expected.replace('LOCATION', lake.location)}", last]


def test_a_torn_log_stops_no_other_table(lake: Lake) -> None:
    lake.run("create table u (a int)")
    lake.run("insert into u values (1)")
    lake.update()
    add = {"add": {"path": "x", "size": 1, "dataChange": True, "partitionValues": {},
                   "modificationTime": 1}}  # fmt: skip
    log_file(table_location(lake.session, "u"), 2).write_text(json.dumps(add))
    _torn(lake)
    said = identify(lake)
    assert "not readable" in said[0]
    assert said[1].startswith("postgres: public.u: newer than the catalog")
    assert said[-1] == "1 commits of tables entered, 0 transactions to undo"
    _json_of(lake, 2).unlink()
    _half_done(lake)  # nothing of the torn table was believed
    assert "has commits of this cluster" in answer_of(lake.session, "table t")[0]
    assert "1 transactions to undo" in identify(lake)[0]


def test_materialized_views_are_tables(lake: Lake) -> None:
    lake.update()
    with lake.session.cluster.begin(write=True) as connection:
        connection.exec_driver_sql(f"UPDATE pg_class SET relkind = 'm' WHERE oid = {lake.oid}")
    _half_done(lake)
    assert "1 transactions to undo" in identify(lake)[0]


def test_sequences_continue_after_lost_values(psql: Psql, tmp_path: Path) -> None:
    home, script = (
        tmp_path / "home",
        "INSERT INTO t (v) VALUES ('x'); INSERT INTO p (v) VALUES (1);",
    )
    made = psql(
        script="CREATE TABLE t (id serial, v text);"
        " CREATE TABLE p (id int GENERATED ALWAYS AS IDENTITY (INCREMENT -1), v int);"
        f" CREATE SEQUENCE s; CREATE TABLE old (id serial); {script}"
    )
    assert (made.exit_code, made.stderr) == (0, "")
    shutil.copy(home / "catalog.db", tmp_path / "saved")
    assert psql(script=script * 2).exit_code == 0
    shutil.copy(tmp_path / "saved", home / "catalog.db")
    said = psql("cluster", "identify", "--restored", "--home", str(home)).stdout.splitlines()
    is_set = "the last value in the new rows of its column"
    assert [line for line in said if "seq: " in line or ".s: " in line] == [
        f"postgres: public.t_id_seq: set to 3, {is_set}",
        f"postgres: public.p_id_seq: set to -3, {is_set}",
        "postgres: public.s: may give values again that it has given since: compare it with the"
        " columns that use it, and use setval()",
    ]
    assert psql(script=script).exit_code == 0
    found = psql(
        "-A", "-t", "-c", "SELECT id FROM t ORDER BY 1", "-c", "SELECT id FROM p ORDER BY 1"
    )
    assert found.stdout.split() == ["1", "2", "3", "4", "-4", "-3", "-2", "-1"]


@pytest.mark.parametrize(
    ("value", "is_own", "expected"),
    [
        (1000, False, None),
        (1000, True, "set to 1000"),
        (2**31 - 1, True, "may give values again"),  # a user's value
    ],
)
def test_sequences_continue_after_values_that_they_can_have_given(
    lake: Lake, value: int, *, is_own: bool, expected: str | None
) -> None:
    lake.run("create sequence s as int owned by t.id")
    lake.update()
    mark = CommitMark("lost", 1, 6_000, whole=True)
    text = commit_log.marked_text(lake.session.cluster, mark, lake.oid)
    rows = pa.table({"id": pa.array([value], pa.int32()), "v": ["x"]})
    metadata = CommitProperties(custom_metadata={"userMetadata": text} if is_own else {})
    write_deltalake(lake.location, rows, mode="append", commit_properties=metadata)
    said = [line for line in identify(lake) if line.startswith("postgres: public.s: ")]
    assert len(said) == (expected is not None)
    assert all(line.startswith(f"postgres: public.s: {expected}") for line in said)


@pytest.mark.parametrize("change", [_older, _older_and_written_since])
def test_a_target_that_is_older_than_the_catalog_stops_its_subscription(
    lake: Lake, change: Callable[[Lake], None]
) -> None:
    lake.update()
    subscription = subscribe(lake)
    change(lake)
    identify(lake)
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        TargetCheck(lake.session, subscription).check_targets()
    assert caught.value.hint == 'ALTER SUBSCRIPTION "My sub" REFRESH TABLE public.t;'


def test_a_directory_that_is_put_back_is_found_then(lake: Lake, tmp_path: Path) -> None:
    lake.write({"id": [9]})
    shutil.move(lake.location, tmp_path / "saved")
    assert "not there" in identify(lake)[0]
    shutil.move(tmp_path / "saved", lake.location)
    assert "1 commits entered" in identify(lake)[0]
    assert "as the catalog knows it" in identify(lake)[0]


def test_transactions_that_are_to_be_undone_are_undone_together(lake: Lake) -> None:
    """Each of them may have rewritten rows of the others."""
    lake.update()
    for version in (2, 3, 4):
        _half_done(lake, version)
    assert "3 transactions to undo" in identify(lake)[0]
    with lake.session.read() as catalog:
        (intent,) = list_intents(catalog.connection)
        assert (intent.relid, intent.version) == (lake.oid, 1)
        assert visible_versions(catalog, [lake.oid]) == {lake.oid: 1}
        (xid,) = catalog.snapshot.in_progress
        nonces = find_nonces(catalog.connection, ["lost 2", "lost 3", "lost 4"])
    assert set(nonces.values()) == {(lake.oid, xid)}
    with lake.session.cluster.begin(write=True) as connection:
        insert_intent(connection, xid + 1, Intent(lake.oid, 3, is_whole=False))
        connection.exec_driver_sql(
            "INSERT INTO pg_xact (xid, dbid, status, backend, block_xid)"
            f" SELECT {xid + 1}, dbid, status, backend, {xid + 1} FROM pg_xact WHERE xid = {xid}"
        )
    with lake.session.read() as catalog:
        assert visible_versions(catalog, [lake.oid]) == {lake.oid: 1}
