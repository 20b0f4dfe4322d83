"""The upgrade of a catalog, with an invented migration, because no revision is released yet."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import replctl.catalog.migrations
from replctl.catalog import schema
from replctl.catalog.open_cluster import open_cluster
from replctl.errors import CannotConnectNow, ObjectNotInPrerequisiteState
from replctl.execute import execute
from replctl.session import Session

_NEW = "29990101a"
_FIRST = f"""
from alembic import op
from replctl.catalog import schema, state_schema
from replctl.catalog.schema_table import metadata
revision, down_revision = "{schema.REVISION}", None
def upgrade():
    metadata.create_all(op.get_bind())
"""
_SECOND = f"""
from alembic import op
revision, down_revision = "{_NEW}", "{schema.REVISION}"
def upgrade():
    op.execute("CREATE TABLE made_up (xacts INTEGER)")
    op.execute("ALTER TABLE pg_control ADD COLUMN made_up INTEGER")
    op.execute("INSERT INTO made_up SELECT count(*) FROM pg_xact")
"""
#: A program of the new revision, which opens a home and runs a statement.
_PROGRAM = """
import sys
from replctl.catalog import revision, schema
from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.errors import PostgresError
from replctl.execute import execute
from replctl.session import Session
home, revision._MIGRATIONS, schema.REVISION, statement = sys.argv[1:]
try:
    cluster = open_cluster(home)
except PostgresError as error:
    sys.exit(f"{error.sqlstate} {error.message} {error.detail} {error.hint}")
list(execute(Session.connect(cluster, "postgres", "postgres"), statement))
print(cluster.upgraded_from)
cluster.close()
"""


class NewProgram:
    """A program with one more migration."""

    def __init__(self, path: Path) -> None:
        self._migrations = path / "migrations"
        (self._migrations / "versions").mkdir(parents=True)
        own = Path(next(iter(replctl.catalog.migrations.__path__)))
        shutil.copy(own / "env.py", self._migrations)
        (self._migrations / "versions" / "first.py").write_text(_FIRST)
        (self._migrations / "versions" / "second.py").write_text(_SECOND)

    def start(self, home: Path, number: int = 1, point: str = "") -> subprocess.Popen[str]:
        """Let the program open a home and create a table."""
        arguments = [str(home), str(self._migrations), _NEW, f"CREATE TABLE new{number} (x int)"]
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *arguments],
            env={**os.environ, "REPLCTL_INJECTION_POINT": point},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, home: Path, number: int = 1, point: str = "") -> tuple[int, str, str]:
        """Run `start`, and return the exit code and the output."""
        with self.start(home, number, point) as program:
            said, complaint = program.communicate(timeout=120)
        return program.returncode, said.strip(), complaint.strip()


@pytest.fixture
def new_program(tmp_path: Path) -> NewProgram:
    return NewProgram(tmp_path)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a cluster of this revision, with a table."""
    path = tmp_path / "home"
    use(path, "CREATE TABLE old (x int)")
    return path


def use(home: Path, statement: str) -> None:
    """Run a statement with this revision of replctl."""
    with closing(open_cluster(home)) as cluster:
        list(execute(Session.connect(cluster, "postgres", "postgres"), statement))


def rows(file: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return list(connection.execute(query))


def test_an_upgrade_keeps_a_copy_and_the_old_program_out(
    home: Path, new_program: NewProgram
) -> None:
    assert new_program.run(home) == (0, schema.REVISION, "")
    catalog, copy = home / "catalog.db", home / f"catalog.db.{schema.REVISION}"
    for table in ("alembic_version", "pg_control"):
        column = "version_num" if table == "alembic_version" else "revision"
        assert rows(catalog, f"SELECT {column} FROM {table}") == [(_NEW,)]
        assert rows(copy, f"SELECT {column} FROM {table}") == [(schema.REVISION,)]
    assert rows(catalog, "SELECT count(*) FROM made_up") == [(1,)]
    names = "SELECT relname FROM pg_class WHERE relkind = 'r' ORDER BY 1"
    assert rows(catalog, names) == [("new1",), ("old",)]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert new_program.run(home, 2) == (0, "None", "")  # no second upgrade

    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        open_cluster(home)
    assert caught.value.message == (
        f'catalog of cluster "{home}" has revision {_NEW}, which this replctl does not support'
    )
    assert (
        caught.value.detail == f"This replctl supports revision {schema.REVISION}, which is older."
    )
    assert "newer replctl" in (caught.value.hint or "")

    for path in home.glob("catalog.db-*"):  # restore the copy for the old program
        path.unlink()
    shutil.copy(copy, catalog)
    use(home, "CREATE TABLE again (x int)")


def test_an_upgrade_that_is_killed_is_undone(home: Path, new_program: NewProgram) -> None:
    code, _said, _complaint = new_program.run(home, point="upgrade.before-commit:kill")
    assert code == -signal.SIGKILL
    use(home, "CREATE TABLE meanwhile (x int)")
    assert new_program.run(home) == (0, schema.REVISION, "")
    assert rows(home / "catalog.db", "SELECT count(*) FROM made_up") == [(1,)]


def test_a_cluster_whose_making_is_killed_is_made_again(
    tmp_path: Path, new_program: NewProgram
) -> None:
    home = tmp_path / "new"
    code, _said, _complaint = new_program.run(home, point="upgrade.before-commit:kill")
    assert code == -signal.SIGKILL
    use(home, "CREATE TABLE t (x int)")


def test_of_two_programs_one_upgrades_and_the_other_waits(
    home: Path, new_program: NewProgram
) -> None:
    first = new_program.start(home, 1, "upgrade.before-commit:stop")
    os.waitid(os.P_PID, first.pid, os.WSTOPPED | os.WNOWAIT)
    second = new_program.start(home, 2)
    time.sleep(3)
    assert second.poll() is None
    os.kill(first.pid, signal.SIGCONT)
    said = [program.communicate(timeout=120) for program in (first, second)]
    assert said == [(f"{schema.REVISION}\n", ""), ("None\n", "")]
    assert (first.returncode, second.returncode) == (0, 0)
    assert rows(home / "catalog.db", "SELECT count(*) FROM made_up") == [(1,)]


def test_a_cluster_in_use_is_not_upgraded(home: Path, new_program: NewProgram) -> None:
    with closing(open_cluster(home)):
        code, _said, complaint = new_program.run(home)
        assert code == 1
        assert complaint.startswith(
            f'55006 catalog of cluster "{home}" cannot be upgraded from revision {schema.REVISION}'
            f" to {_NEW}: it is being used by other programs"
        )
        assert f"Processes that use it: {os.getpid()}." in complaint
    assert not list(home.glob("catalog.db.*"))
    assert new_program.run(home)[0] == 0


def test_a_program_that_has_it_open_does_not_write_an_upgraded_catalog(home: Path) -> None:
    with closing(open_cluster(home)) as cluster:
        session = Session.connect(cluster, "postgres", "postgres")
        with closing(sqlite3.connect(home / "catalog.db")) as other, other:
            other.execute("UPDATE pg_control SET revision = ?", (_NEW,))
        with pytest.raises(CannotConnectNow) as caught:
            list(execute(session, "CREATE TABLE t (x int)"))
        assert _NEW in caught.value.message
        assert schema.REVISION in (caught.value.detail or "")
