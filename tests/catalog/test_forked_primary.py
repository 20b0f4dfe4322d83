"""A primary is restored from a backup and forgets commits: its standby keeps them."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fix_psql import Psql
from fix_replication import Database

from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.promotion import promote
from replctl.catalog.standby import create_standby, receive
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.session import Session

_TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 2200 ORDER BY 1"
_AHEAD = "requested starting point .* is ahead of the WAL flush position of this server"
_FORKED = "requested starting point .* is not in this server's history"


def _run(home: Path, *statements: str) -> list[tuple[str | None, ...]]:
    """Return the rows of the last statement."""
    with closing(open_cluster(home)) as cluster:
        database = Database(Session.connect(cluster, "postgres", "postgres"))
        for statement in statements[:-1]:
            database.run(statement)
        rows = database.rows(statements[-1])
        database.session.close()
        return rows


@pytest.fixture
def primary(tmp_path: Path) -> Path:
    """Return the home of a primary that has lost the commit of table `lost`."""
    home, backup = tmp_path / "primary", tmp_path / "backup.db"
    _run(home, "CREATE TABLE kept (a int)", "SELECT 1")
    create_standby(home, tmp_path / "standby", "standby1")
    shutil.copy(home / "catalog.db", backup)
    _run(
        home,
        "CREATE TABLE lost (a int)",
        "SELECT pg_create_logical_replication_slot('s', 'pgoutput', false, false, true)",
    )
    with closing(open_cluster(tmp_path / "standby")) as standby:
        receive(standby)
    shutil.copy(backup, home / "catalog.db")
    return home


@pytest.fixture
def standby(primary: Path, tmp_path: Path) -> Iterator[Cluster]:
    with closing(open_cluster(tmp_path / "standby")) as cluster:
        yield cluster


def _rows(cluster: Cluster, query: str) -> list[tuple[str | None, ...]]:
    return Database(Session.connect(cluster, "postgres", "postgres")).rows(query)


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (["SELECT 1"], _AHEAD),
        ([*(f"CREATE TABLE other{n} (a int)" for n in range(9)), "SELECT 1"], _FORKED),
    ],
)
def test_a_standby_keeps_what_a_restored_primary_has_lost(
    primary: Path, standby: Cluster, statements: list[str], message: str
) -> None:
    _run(primary, *statements)
    for action in (receive, promote):
        with pytest.raises(ObjectNotInPrerequisiteState, match=message):
            action(standby)
    with pytest.raises(ObjectNotInPrerequisiteState, match=message):
        _rows(standby, "SELECT pg_sync_replication_slots()")
    assert _rows(standby, _TABLES) == [("kept",), ("lost",)]
    slots = "SELECT slot_name FROM pg_replication_slots WHERE synced"
    assert _rows(standby, slots) == [("s",)]
    assert ("kept",) in _run(primary, _TABLES)  # the failed promotion has not replaced it


def test_a_primary_of_an_earlier_timeline_is_not_followed(primary: Path, standby: Cluster) -> None:
    """It does not know that another standby was promoted, and has no other commits."""
    with standby.begin(write=True, in_recovery=True) as connection:
        connection.exec_driver_sql("UPDATE pg_control SET timeline = 2")
    message = "highest timeline 1 of the primary is behind recovery timeline 2"
    with pytest.raises(ObjectNotInPrerequisiteState, match=message):
        receive(standby)


@pytest.mark.parametrize("is_kept", [True, False])
def test_the_hint_of_a_restored_primary(psql: Psql, primary: Path, *, is_kept: bool) -> None:
    home = primary.parent / "standby"
    refused = psql("standby", "sync", "--home", str(home))
    assert refused.exit_code == 1
    promote_, create = re.findall(r'run "(replctl [^"]*)"', refused.stderr)
    if not is_kept:
        shutil.rmtree(home)
    command = shlex.split(promote_ if is_kept else create)[1:]
    assert psql(*command).exit_code == 0
    found = psql("--home", str(home), "-XAtc", _TABLES).stdout.split()
    assert found == (["kept", "lost"] if is_kept else ["kept"])
    assert psql("standby", "sync", "--home", str(home)).exit_code == (1 if is_kept else 0)
