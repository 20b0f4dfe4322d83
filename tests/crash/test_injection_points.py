"""After kill -9 at any named point of copy, apply or local writes, the next sync completes the
work."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from fix_spark import spark_options
from long_tests import LONG, sampled

from replctl.injection_point import POINTS
from replctl.psql.main import run

pytestmark = [pytest.mark.spark, pytest.mark.slow(5)]

_TABLES = """
CREATE TABLE keyed (id int PRIMARY KEY, v text);
CREATE TABLE loose (a int, b text);
ALTER TABLE loose REPLICA IDENTITY FULL;
CREATE TABLE parted (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (50);
CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (50) TO (MAXVALUE);
"""
_CHANGES = """
INSERT INTO keyed SELECT coalesce(max(id), 0) + 1, 'next' FROM keyed;
UPDATE keyed SET v = v || '+' WHERE id % 2 = 0;
INSERT INTO loose VALUES (1, 'x'), (1, 'x');
UPDATE parted SET id = 101 - id;
"""
_ROWS = """
SELECT 'keyed', id, v, 1 FROM keyed UNION ALL
SELECT 'loose', a, b, count(*) FROM loose GROUP BY a, b UNION ALL
SELECT 'parted', id, v, 1 FROM parted ORDER BY 1, 2, 3
"""
_ROWS_OF_PARTED = "SELECT * FROM parted ORDER BY id"


@dataclass
class Command:
    """The command with a cluster and the address of a Spark server."""

    home: Path
    remote: str

    def run(self, *arguments: str, script: str = "", kill_at: str = "") -> tuple[int, str]:
        """Run the command, and return its exit code and stdout.

        With `kill_at`, the command runs in a process of its own, with a Spark server elsewhere, and
        is killed.  Otherwise it runs in this process, which is faster, and the test fails if the
        command fails.  It shares the Spark session of the other tests, because PySpark cannot have
        sessions of its own JVM and of Connect servers in one process.
        """
        argv = ["-X", "-q", "-v", "ON_ERROR_STOP=1", *arguments]
        environment = {"REPLCTL_HOME": str(self.home)}
        if kill_at:
            return self._run_process(
                argv, script, {**environment, "SPARK_REMOTE": self.remote}, kill_at
            )
        argv += spark_options()
        stdin, stdout, stderr = (io.TextIOWrapper(io.BytesIO()) for _ in range(3))
        stdin.buffer.write(script.encode())
        stdin.buffer.seek(0)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdin", stdin)
            limit = sys.getrecursionlimit()
            with redirect_stdout(stdout), redirect_stderr(stderr):
                code = run(argv)
            sys.setrecursionlimit(limit)  # other tests reach the default
        assert code == 0, _text(stderr)
        return code, _text(stdout)

    @staticmethod
    def _run_process(
        argv: list[str], script: str, environment: dict[str, str], kill_at: str
    ) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "replctl", *argv],
            input=script,
            env={**os.environ, **environment, "REPLCTL_INJECTION_POINT": f"{kill_at}:kill"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return done.returncode, done.stdout

    def sync(self, kill_at: str = "") -> int:
        """Run `\\sync`, and return its exit code."""
        return self.run("-c", r"\sync", kill_at=kill_at)[0]

    def answers(self, database: str) -> str:
        """Return the rows of the tables of a database."""
        return self.run("-d", database, "-A", "-t", "-c", _ROWS)[1]

    def rows_of_parted(self, database: str) -> str:
        return self.run("-d", database, "-A", "-t", "-c", _ROWS_OF_PARTED)[1]


def _text(written: io.TextIOWrapper) -> str:
    written.seek(0)
    return written.read()


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory, connect_server: str) -> Command:
    """Return a command whose cluster has a publisher and a subscriber.

    Every test leaves both equal.
    """
    built = Command(tmp_path_factory.mktemp("crash") / "cluster", connect_server)
    built.run(script="CREATE DATABASE test_pub;\nCREATE DATABASE test_sub;\n")
    built.run(
        script=f"\\c test_pub\n{_TABLES}\n"
        "INSERT INTO keyed SELECT g, 'row ' || g FROM generate_series(1, 6) g;\n"
        "INSERT INTO loose VALUES (1, 'x'), (1, 'x'), (2, NULL);\n"
        "INSERT INTO parted SELECT g, 'row' FROM generate_series(40, 60, 5) g;\n"
        f"CREATE PUBLICATION p FOR ALL TABLES;\n\\c test_sub\n{_TABLES}"
    )
    return built


def _points(kind: str) -> list[str]:
    return [point for point in POINTS if point.startswith(f"{kind}.")]


def _killed_at_each(command: Command, points: Sequence[str]) -> None:
    """Run syncs.  Each continues where the previous one was killed, and is killed at a later
    point."""
    for point in points:
        assert command.sync(kill_at=point) == -signal.SIGKILL, point


@pytest.mark.parametrize(
    ("option", "points"),
    [
        pytest.param("replace = true", ["after-copy", "before-finishedcopy"], marks=LONG),
        (
            "delete = all",
            ["before-write", "after-copy", "before-finishedcopy", "after-finishedcopy"],
        ),
    ],
)
def test_a_copy_into_a_table_with_rows_survives(
    command: Command, option: str, points: Sequence[str]
) -> None:
    command.run(
        "-d",
        "test_pub",
        script="CREATE PUBLICATION r FOR TABLE parted WITH (publish_via_partition_root);\n",
    )
    command.run(
        "-d",
        "test_sub",
        script="TRUNCATE parted;\nINSERT INTO parted VALUES (1, 'own'), (99, 'own');\n"
        "CREATE SUBSCRIPTION r CONNECTION 'dbname=test_pub' PUBLICATION r"
        " WITH (copy_data = false);\n"
        f"ALTER SUBSCRIPTION r REFRESH TABLE parted WITH ({option});\n",
    )
    published = command.rows_of_parted("test_pub")
    for point in points:
        assert command.sync(kill_at=f"tablesync.{point}") == -signal.SIGKILL, point
        # No query sees the written partition before the other partition is written
        is_there = point == "after-finishedcopy"
        halfway = command.rows_of_parted("test_sub")
        assert halfway == (published if is_there else "1|own\n99|own\n"), point
    assert command.sync() == 0
    assert command.rows_of_parted("test_sub") == published
    command.run("-d", "test_sub", script="DROP SUBSCRIPTION r;\n")
    command.run("-d", "test_pub", script="DROP PUBLICATION r;\n")


@pytest.fixture(scope="module")
def subscribed(command: Command) -> Command:
    """Return `command` with a subscription, whose copy was killed at each point.

    No test drops the subscription.
    """
    command.run(
        "-d",
        "test_sub",
        script="TRUNCATE keyed, loose, parted;\n"
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p;\n",
    )
    _killed_at_each(command, _points("tablesync"))
    return command


def test_a_copy_survives(subscribed: Command) -> None:
    assert subscribed.sync() == 0
    assert subscribed.answers("test_sub") == subscribed.answers("test_pub")


def test_apply_survives(subscribed: Command) -> None:
    subscribed.sync()
    before = subscribed.answers("test_sub")
    subscribed.run("-d", "test_pub", script=_CHANGES)
    _killed_at_each(subscribed, _points("apply"))
    assert subscribed.sync() == 0
    assert before != subscribed.answers("test_sub") == subscribed.answers("test_pub")


def test_versions_that_are_compared_together_survive(command: Command, tmp_path: Path) -> None:
    place = tmp_path / "t"
    ids = pa.array(range(1, 7), pa.int32())
    write_deltalake(str(place), pa.table({"id": ids, "v": ["old"] * 6}))
    command.run(script="CREATE DATABASE joined_pub;\nCREATE DATABASE joined_sub;\n")
    command.run(
        "-d",
        "joined_pub",
        script="CREATE TABLE t (PRIMARY KEY (id) NOT ENFORCED) USING delta"
        f" LOCATION '{place}';\nCREATE PUBLICATION j FOR TABLE t;\n",
    )
    command.run(
        "-d",
        "joined_sub",
        script="CREATE TABLE t (id int PRIMARY KEY, v text);\n"
        "CREATE SUBSCRIPTION j CONNECTION 'dbname=joined_pub' PUBLICATION j;\n",
    )
    assert command.sync() == 0
    table = DeltaTable(str(place))
    table.update(updates={"v": "'new'"}, predicate="id > 3")
    table.delete("id IN (1, 5)")
    table.update(updates={"v": "'newer'"}, predicate="id = 6")
    _killed_at_each(command, sampled(_points("apply"), 3))
    assert command.sync() == 0
    rows = command.run("-d", "joined_sub", "-A", "-t", "-c", "SELECT * FROM t ORDER BY id")[1]
    assert rows == "2|old\n3|old\n4|new\n6|newer\n"


def test_a_reconcile_by_itself_survives(command: Command, tmp_path: Path) -> None:
    """The subscription has resync = auto.  The test replaces the published table at first and after
    some kills, so that the chain of its versions breaks.  Changes come before and after that."""
    place, backup = tmp_path / "t", tmp_path / "backup"
    ids = pa.array(range(1, 41), pa.int32())
    write_deltalake(str(place), pa.table({"id": ids, "v": ["old"] * 40}))
    command.run(script="CREATE DATABASE auto_pub;\nCREATE DATABASE auto_sub;\n")
    command.run(
        "-d",
        "auto_pub",
        script="CREATE TABLE t (PRIMARY KEY (id) NOT ENFORCED) USING delta"
        f" LOCATION '{place}';\nCREATE PUBLICATION a FOR TABLE t;\n",
    )
    command.run(
        "-d",
        "auto_sub",
        script="CREATE TABLE t (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);\n"
        "CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (20);\n"
        "CREATE TABLE high PARTITION OF t FOR VALUES FROM (20) TO (100);\n"
        "CREATE SUBSCRIPTION a CONNECTION 'dbname=auto_pub' PUBLICATION a"
        " WITH (resync = auto, resync_max_delete = 100);\n",
    )
    assert command.sync() == 0
    shutil.copytree(place, backup)
    # A partly written batch continues without the table
    DeltaTable(str(place)).update(updates={"v": "'half'"}, predicate="id IN (3, 30)")
    assert command.sync(kill_at="apply.after-first-table") == -signal.SIGKILL
    # test_a_copy_survives kills the points that all copies share
    parts = ("after-snapshot", "after-copy", "before-finishedcopy", "before-ready")
    points = [*_points("resync"), *(f"tablesync.{part}" for part in parts)]
    for number, point in enumerate(sampled(points, 2)):
        if number in (0, 2, 3):  # the files of earlier copies are gone
            shutil.rmtree(place)
            shutil.copytree(backup, place)
        table = DeltaTable(str(place))
        table.update(updates={"v": f"'{number}'"}, predicate="id IN (1, 20, 21)")
        table.delete(f"id = {40 - number}")
        assert command.sync(kill_at=point) == -signal.SIGKILL, point
    DeltaTable(str(place)).update(updates={"v": "'later'"}, predicate="id = 21")
    assert command.sync() == 0
    rows = command.run("-d", "auto_sub", "-A", "-t", "-c", "SELECT * FROM t ORDER BY id")[1]
    published = DeltaTable(str(place)).to_pyarrow_table().sort_by("id").to_pylist()
    assert rows == "".join(f"{row['id']}|{row['v']}\n" for row in published)


@pytest.mark.parametrize("point", _points("batches"))
def test_a_backlog_survives(subscribed: Command, point: str) -> None:
    subscribed.sync()
    before = subscribed.answers("test_sub")
    subscribed.run("-d", "test_pub", script=_CHANGES)
    sync = ["-c", "SET replctl.max_batch_changes = 1", "-c", r"\sync"]
    assert subscribed.run(*sync, kill_at=point)[0] == -signal.SIGKILL
    halfway = subscribed.answers("test_sub")
    published = subscribed.answers("test_pub")
    assert before != halfway != published
    subscribed.sync()
    assert subscribed.answers("test_sub") == published


def test_a_statement_is_done_as_a_whole_or_not_at_all(command: Command) -> None:
    before = command.answers("test_pub")
    statement = "UPDATE parted SET id = 101 - id;\n"
    touch = "INSERT INTO parted VALUES (-1, 'new');\n", "DELETE FROM parted WHERE id = -1;\n"
    for point in _points("write"):
        code, _ = command.run("-d", "test_pub", script=statement, kill_at=point)
        assert code == -signal.SIGKILL, point
        for script in touch:
            command.run("-d", "test_pub", script=script)
        after = command.answers("test_pub")
        assert (after != before) == (point == "write.after-log"), point
        before = after


def test_few_rows_are_written_as_a_whole_or_not_at_all(command: Command) -> None:
    """replctl writes few rows without Spark.  A statement with one commit is complete after the
    commit."""
    before = command.answers("test_pub")
    touch = "INSERT INTO {0} VALUES (-1, 'new');\nDELETE FROM {0} WHERE {1} = -1;\n"
    for statement, table, key, points in (
        ("UPDATE keyed SET v = v || '!' WHERE id IN (1, 4)", "keyed", "id", _points("small")),
        ("DELETE FROM keyed WHERE id = 2", "keyed", "id", sampled(_points("small"), 2)),
        ("TRUNCATE loose", "loose", "a", ["small.after-version"]),
    ):
        for point in points:
            code, _ = command.run("-d", "test_pub", script=f"{statement};\n", kill_at=point)
            assert code == -signal.SIGKILL, point
            command.run("-d", "test_pub", script=touch.format(table, key))
            after = command.answers("test_pub")
            is_done = point == "small.after-version" and table == "keyed"
            assert (after != before) == is_done, (statement, point)
            before = after


def test_a_type_is_changed_as_a_whole_or_not_at_all(command: Command) -> None:
    before = command.answers("test_pub")
    statement = "ALTER TABLE keyed ALTER v TYPE int USING length(v);\n"
    block = f"BEGIN;\nINSERT INTO keyed VALUES (-1, 'block');\n{statement}COMMIT;\n"
    touch = "INSERT INTO keyed VALUES (-1, 'new');\nDELETE FROM keyed WHERE id = -1;\n"
    for point in _points("rewrite"):
        for script in (statement, block):
            code, _ = command.run("-d", "test_pub", script=script, kill_at=point)
            assert code == -signal.SIGKILL, point
        command.run("-d", "test_pub", script=touch)
        assert command.answers("test_pub") == before, point
    again = "ALTER TABLE keyed ADD v_1 int;\nALTER TABLE keyed ALTER v TYPE varchar(90);\n"
    command.run("-d", "test_pub", script=again)
    command.run("-d", "test_pub", script="ALTER TABLE keyed DROP v_1;\n")
    command.run("-d", "test_pub", script=touch)
    assert command.answers("test_pub") == before
    assert _names_in_storage(command) == ["id", "v"]


@pytest.mark.parametrize("point", [*_points("columns"), "write.before-log"])
def test_the_next_write_drops_and_renames_columns(command: Command, point: str) -> None:
    before = command.answers("test_pub")
    make = (
        "ALTER TABLE keyed ADD gone text, ADD kept int;\nUPDATE keyed SET gone = '', kept = id;\n"
        "ALTER TABLE keyed DROP gone;\nALTER TABLE keyed RENAME kept TO gone;\n"
    )
    command.run("-d", "test_pub", script=make)
    written = "INSERT INTO keyed VALUES (-1, 'new');\n"
    code, _ = command.run("-d", "test_pub", script=written, kill_at=point)
    assert code == -signal.SIGKILL
    command.run("-d", "test_pub", script="DELETE FROM keyed WHERE id = -1;\n")
    assert _names_in_storage(command) == ["id", "v", "gone"]
    wrong = "SELECT count(*) FROM keyed WHERE gone IS DISTINCT FROM id"
    assert command.run("-d", "test_pub", "-A", "-t", "-c", wrong)[1].strip() == "0"
    command.run("-d", "test_pub", script="ALTER TABLE keyed DROP gone;\n")
    assert command.answers("test_pub") == before


def test_metadata_of_columns_changes_as_a_whole_or_not_at_all(command: Command) -> None:
    command.run(script="CREATE DATABASE mapped;\n")
    make = (
        "CREATE TABLE t (id int PRIMARY KEY, a int, b text) WITH (schema_changes = metadata);\n"
        "INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y');\n"
        "ALTER TABLE t DROP a;\nALTER TABLE t RENAME b TO a;\n"
    )
    command.run("-d", "mapped", script=make)
    write = "UPDATE t SET a = a || 'z';\n"
    for point in ("mapping.after-step", "mapping.after-step", "widening.after-commit"):
        is_type = point.startswith("widening")
        script = "ALTER TABLE t ALTER id TYPE bigint;\n" if is_type else write
        code, _ = command.run("-d", "mapped", script=script, kill_at=point)
        assert code == -signal.SIGKILL, point
    last = f"{write}ALTER TABLE t ALTER id TYPE bigint;\nINSERT INTO t VALUES (3000000000, 'w');\n"
    command.run("-d", "mapped", script=last)
    rows = command.run("-d", "mapped", "-A", "-t", "-c", "SELECT * FROM t ORDER BY id")[1]
    assert rows == "1|xz\n2|yz\n3000000000|w\n"


def _names_in_storage(command: Command) -> list[str]:
    """Return the names of the columns of the Delta table of keyed."""
    path = "SELECT pg_relation_filepath('keyed')"
    place = command.run("-d", "test_pub", "-A", "-t", "-c", path)[1].strip()
    return [field.name for field in DeltaTable(str(command.home / place)).schema().fields]


def test_a_block_is_done_as_a_whole_or_not_at_all(command: Command) -> None:
    before = command.answers("test_pub")
    block = (
        "BEGIN;\nCREATE TABLE made (a int);\nINSERT INTO loose VALUES (7, 'block');\nSAVEPOINT s;\n"
        "DELETE FROM loose;\nROLLBACK TO s;\nUPDATE parted SET id = 101 - id;\nCOMMIT;\n"
    )
    touch = (
        "INSERT INTO parted VALUES (-1, 'new');\nDELETE FROM parted WHERE id = -1;\n"
        "INSERT INTO loose VALUES (-1, 'new');\nDELETE FROM loose WHERE a = -1;\n"
    )
    count = "SELECT count(*) FROM pg_class WHERE relname = 'made';\n"
    for point in _points("block"):
        code, _ = command.run("-d", "test_pub", script=block, kill_at=point)
        assert code == -signal.SIGKILL, point
        made = command.run("-d", "test_pub", "-At", script=count)[1]
        again = "DROP TABLE IF EXISTS made;\nCREATE TABLE made (b int);\n"
        command.run("-d", "test_pub", script=again)
        command.run("-d", "test_pub", script="DROP TABLE made;\n")
        command.run("-d", "test_pub", script=touch)
        is_done = point == "block.after-commit"
        assert made == ("1\n" if is_done else "0\n"), point
        after = command.answers("test_pub")
        assert (after != before) == is_done, point
        before = after


def test_an_undo_survives(command: Command) -> None:
    before = command.answers("test_pub")
    statement = "UPDATE parted SET id = 101 - id;\n"
    command.run("-d", "test_pub", script=statement, kill_at="write.before-log")
    # A statement in another database does not undo the unfinished work
    command.run("-d", "test_sub", script="CREATE SCHEMA elsewhere;\nDROP SCHEMA elsewhere;\n")
    touch = "INSERT INTO parted VALUES (-1, 'new');\nDELETE FROM parted WHERE id = -1;\n"
    for point in _points("undo"):
        code, _ = command.run("-d", "test_pub", script=touch, kill_at=point)
        assert code == -signal.SIGKILL, point
    command.run("-d", "test_pub", script=touch)
    assert command.answers("test_pub") == before


def test_a_statement_that_is_found_later_carries_its_session_s_origin(command: Command) -> None:
    made = """
    SELECT pg_replication_origin_create('far');
    CREATE TABLE from_far (id int PRIMARY KEY);
    SELECT slot_name FROM pg_create_logical_replication_slot('local', 'test_decoding');
    """
    command.run("-d", "test_pub", script=made)
    written = """
    SELECT pg_replication_origin_session_setup('far');
    SELECT pg_replication_origin_xact_setup('0/AA', '2020-01-01 00:00:00+00');
    INSERT INTO from_far VALUES (1);
    """
    code, _ = command.run("-d", "test_pub", script=written, kill_at="write.before-log")
    assert code == -signal.SIGKILL
    read = """
    INSERT INTO from_far VALUES (2);
    SELECT data FROM pg_logical_slot_get_changes('local', NULL, NULL, 'include-xids', '0',
        'include-timestamp', '1') WHERE data LIKE '%INSERT%' OR data LIKE '%2020%';
    SELECT remote_lsn FROM pg_replication_origin_status WHERE external_id = 'far';
    SELECT pg_drop_replication_slot('local'), pg_replication_origin_drop('far');
    """
    _, answer = command.run("-d", "test_pub", "-A", "-t", script=read)
    assert answer.splitlines() == [
        "table public.from_far: INSERT: id[integer]:1",
        "COMMIT (at 2020-01-01 00:00:00+00)",
        "table public.from_far: INSERT: id[integer]:2",
        "0/AA",
        "|",
    ]
