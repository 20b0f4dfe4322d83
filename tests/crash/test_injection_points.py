"""kill -9 at every named point of copy, apply and local writes: the next sync makes all well."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from fix_spark import spark_options

from replctl.injection_point import POINTS
from replctl.psql.main import run

pytestmark = pytest.mark.spark

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
_QUERIES = (
    "SELECT * FROM keyed ORDER BY id",
    "SELECT a, b, count(*) FROM loose GROUP BY a, b ORDER BY a, b",
    "SELECT * FROM parted ORDER BY id",
)


@dataclass
class Command:
    """The command as a process of its own."""

    home: Path
    remote: str

    def run(self, *arguments: str, script: str = "", kill_at: str = "") -> tuple[int, str]:
        """Exit code and stdout; what it says on stderr fails the test unless it was killed.

        It is a process of its own where it is killed, with its Spark elsewhere; else this one saves
        the time to start it.  It has the session of the other tests: PySpark cannot have sessions
        of its own JVM and of Connect servers in one process.
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
            with redirect_stdout(stdout), redirect_stderr(stderr):
                code = run(argv)
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
        """`\\sync`; its exit code."""
        return self.run("-c", r"\sync", kill_at=kill_at)[0]

    def answers(self, database: str) -> str:
        """What the tables of a database hold."""
        arguments = [part for query in _QUERIES for part in ("-c", query)]
        return self.run("-d", database, "-A", "-t", *arguments)[1]


def _text(written: io.TextIOWrapper) -> str:
    written.seek(0)
    return written.read()


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory, connect_server: str) -> Command:
    """A cluster with a publisher and a subscriber; every test leaves them equal."""
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


def _subscribe(command: Command) -> None:
    command.run(
        "-d",
        "test_sub",
        script="TRUNCATE keyed, loose, parted;\n"
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p;\n",
    )


def _killed_at_each(command: Command, points: Sequence[str]) -> None:
    """Syncs, each of which goes on where the one before was killed, and is killed further on."""
    for point in points:
        assert command.sync(kill_at=point) == -signal.SIGKILL, point


def test_a_copy_survives(command: Command) -> None:
    _subscribe(command)
    _killed_at_each(command, [point for point in POINTS if point.startswith("tablesync.")])
    assert command.sync() == 0
    assert command.answers("test_sub") == command.answers("test_pub")
    command.run("-d", "test_sub", script="DROP SUBSCRIPTION s;\n")


@pytest.mark.parametrize(
    ("option", "point"),
    [
        ("replace = true", "tablesync.after-copy"),
        ("replace = true", "tablesync.before-finishedcopy"),
        ("delete = all", "tablesync.before-write"),
        ("delete = all", "tablesync.after-copy"),
        ("delete = all", "tablesync.before-finishedcopy"),
        ("delete = all", "tablesync.after-finishedcopy"),
    ],
)
def test_a_copy_into_a_table_with_rows_survives(command: Command, option: str, point: str) -> None:
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
    assert command.sync(kill_at=point) == -signal.SIGKILL
    halfway = command.run("-d", "test_sub", "-At", "-c", _QUERIES[2])[1]
    published = command.run("-d", "test_pub", "-At", "-c", _QUERIES[2])[1]
    # A leaf that is written is not seen without the other
    is_there = point == "tablesync.after-finishedcopy"
    assert halfway == (published if is_there else "1|own\n99|own\n")
    assert command.sync() == 0
    assert command.run("-d", "test_sub", "-At", "-c", _QUERIES[2])[1] == published
    command.run("-d", "test_sub", script="DROP SUBSCRIPTION r;\n")
    command.run("-d", "test_pub", script="DROP PUBLICATION r;\n")


def test_apply_survives(command: Command) -> None:
    _subscribe(command)
    command.sync()
    before = command.answers("test_sub")
    command.run("-d", "test_pub", script=_CHANGES)
    _killed_at_each(command, [point for point in POINTS if point.startswith("apply.")])
    assert command.sync() == 0
    assert before != command.answers("test_sub") == command.answers("test_pub")
    command.run("-d", "test_sub", script="DROP SUBSCRIPTION s;\n")


@pytest.mark.parametrize("point", [p for p in POINTS if p.startswith("batches.")])
def test_a_backlog_survives(command: Command, point: str) -> None:
    _subscribe(command)
    command.sync()
    before = command.answers("test_sub")
    command.run("-d", "test_pub", script=_CHANGES)
    sync = ["-c", "SET replctl.max_batch_changes = 1", "-c", r"\sync"]
    assert command.run(*sync, kill_at=point)[0] == -signal.SIGKILL
    halfway = command.answers("test_sub")
    published = command.answers("test_pub")
    assert before != halfway != published
    command.sync()
    assert command.answers("test_sub") == published
    command.run("-d", "test_sub", script="DROP SUBSCRIPTION s;\n")


@pytest.mark.parametrize("point", [p for p in POINTS if p.startswith("write.")])
def test_a_statement_is_done_as_a_whole_or_not_at_all(command: Command, point: str) -> None:
    before = command.answers("test_pub")
    statement = "UPDATE parted SET id = 101 - id;\n"
    code, _ = command.run("-d", "test_pub", script=statement, kill_at=point)
    assert code == -signal.SIGKILL
    command.run("-d", "test_pub", script="INSERT INTO parted VALUES (-1, 'new');\n")
    command.run("-d", "test_pub", script="DELETE FROM parted WHERE id = -1;\n")
    after = command.answers("test_pub")
    assert (after != before) == (point == "write.after-log")


@pytest.mark.parametrize("point", [p for p in POINTS if p.startswith("rewrite.")])
def test_a_type_is_changed_as_a_whole_or_not_at_all(command: Command, point: str) -> None:
    before = command.answers("test_pub")
    statement = "ALTER TABLE keyed ALTER v TYPE int USING length(v);\n"
    code, _ = command.run("-d", "test_pub", script=statement, kill_at=point)
    assert code == -signal.SIGKILL
    block = f"BEGIN;\nINSERT INTO keyed VALUES (-1, 'block');\n{statement}COMMIT;\n"
    code, _ = command.run("-d", "test_pub", script=block, kill_at=point)
    assert code == -signal.SIGKILL
    touch = "INSERT INTO keyed VALUES (-1, 'new');\nDELETE FROM keyed WHERE id = -1;\n"
    command.run("-d", "test_pub", script=touch)
    assert command.answers("test_pub") == before
    again = "ALTER TABLE keyed ADD v_1 int;\nALTER TABLE keyed ALTER v TYPE varchar(90);\n"
    command.run("-d", "test_pub", script=again)
    command.run("-d", "test_pub", script="ALTER TABLE keyed DROP v_1;\n")
    assert command.answers("test_pub") == before


@pytest.mark.parametrize("point", [p for p in POINTS if p.startswith("block.")])
def test_a_block_is_done_as_a_whole_or_not_at_all(command: Command, point: str) -> None:
    before = command.answers("test_pub")
    block = (
        "BEGIN;\nCREATE TABLE made (a int);\nINSERT INTO loose VALUES (7, 'block');\nSAVEPOINT s;\n"
        "DELETE FROM loose;\nROLLBACK TO s;\nUPDATE parted SET id = 101 - id;\nCOMMIT;\n"
    )
    code, _ = command.run("-d", "test_pub", script=block, kill_at=point)
    assert code == -signal.SIGKILL
    made = command.run(
        "-d", "test_pub", "-At", script="SELECT count(*) FROM pg_class WHERE relname = 'made';\n"
    )[1]
    command.run("-d", "test_pub", script="DROP TABLE IF EXISTS made;\nCREATE TABLE made (b int);\n")
    command.run("-d", "test_pub", script="DROP TABLE made;\n")
    touch = (
        "INSERT INTO parted VALUES (-1, 'new');\nDELETE FROM parted WHERE id = -1;\n"
        "INSERT INTO loose VALUES (-1, 'new');\nDELETE FROM loose WHERE a = -1;\n"
    )
    command.run("-d", "test_pub", script=touch)
    is_done = point == "block.after-commit"
    assert made == ("1\n" if is_done else "0\n")
    assert (command.answers("test_pub") != before) == is_done


def test_definitions_of_another_database_leave_what_is_unfinished_to_be_undone(
    command: Command,
) -> None:
    before = command.answers("test_pub")
    statement = "UPDATE parted SET id = 101 - id;\n"
    command.run("-d", "test_pub", script=statement, kill_at="write.before-log")
    command.run("-d", "test_sub", script="CREATE SCHEMA elsewhere;\nDROP SCHEMA elsewhere;\n")
    touch = "INSERT INTO parted VALUES (-1, 'new');\nDELETE FROM parted WHERE id = -1;\n"
    command.run("-d", "test_pub", script=touch)
    assert command.answers("test_pub") == before


@pytest.mark.parametrize("point", [p for p in POINTS if p.startswith("undo.")])
def test_an_undo_survives(command: Command, point: str) -> None:
    before = command.answers("test_pub")
    statement = "UPDATE parted SET id = 101 - id;\n"
    command.run("-d", "test_pub", script=statement, kill_at="write.before-log")
    touch = "INSERT INTO parted VALUES (-1, 'new');\nDELETE FROM parted WHERE id = -1;\n"
    code, _ = command.run("-d", "test_pub", script=touch, kill_at=point)
    assert code == -signal.SIGKILL
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
