"""kill -9 at every named point of copy, apply and local writes: the next sync makes all well."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from replctl.injection_point import POINTS

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
        """Exit code and stdout; what it says on stderr fails the test unless it was killed."""
        environment = {**os.environ, "REPLCTL_HOME": str(self.home), "SPARK_REMOTE": self.remote}
        if kill_at:
            environment["REPLCTL_INJECTION_POINT"] = f"{kill_at}:kill"
        done = subprocess.run(
            [sys.executable, "-m", "replctl", "-X", "-q", "-v", "ON_ERROR_STOP=1", *arguments],
            input=script,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if not kill_at:
            assert done.returncode == 0, done.stderr
        return done.returncode, done.stdout

    def sync(self, kill_at: str = "") -> int:
        """`\\sync`; its exit code."""
        return self.run("-c", r"\sync", kill_at=kill_at)[0]

    def answers(self, database: str) -> str:
        """What the tables of a database hold."""
        arguments = [part for query in _QUERIES for part in ("-c", query)]
        return self.run("-d", database, "-A", "-t", *arguments)[1]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory, connect_server: str) -> Iterator[Command]:
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


@pytest.mark.parametrize("point", [p for p in POINTS if p.startswith("tablesync.")])
def test_a_copy_survives(command: Command, point: str) -> None:
    _subscribe(command)
    assert command.sync(kill_at=point) == -signal.SIGKILL
    assert command.sync() == 0
    assert command.answers("test_sub") == command.answers("test_pub")
    command.run("-d", "test_sub", script="DROP SUBSCRIPTION s;\n")


@pytest.mark.parametrize("point", [p for p in POINTS if p.startswith("apply.")])
def test_apply_survives(command: Command, point: str) -> None:
    _subscribe(command)
    command.sync()
    command.run("-d", "test_pub", script=_CHANGES)
    assert command.sync(kill_at=point) == -signal.SIGKILL
    assert command.sync() == 0
    assert command.answers("test_sub") == command.answers("test_pub")
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
