"""The catalog cannot be written or read for a while, for example because the disk is full: a block
that fails then stays failed, and the end of a session causes no traceback.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, TypeAlias

import pytest
from fix_psql import Psql
from fix_replication import Database

from replctl.catalog.cluster import Cluster
from replctl.errors import DiskFull, InFailedSqlTransaction, IoError
from replctl.execute import execute
from replctl.psql.psql_settings import PsqlSettings
from replctl.session import Session

Without: TypeAlias = Callable[[], AbstractContextManager[None]]


@pytest.fixture(params=["full disk", "no access"])
def without_catalog(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], AbstractContextManager[None]]:
    """Return a context in which transactions of the catalog fail: those that write, or all."""
    begin = Cluster.begin

    @contextmanager
    def failing(cluster: Cluster, *, write: bool, **options: bool) -> Iterator[Any]:
        if request.param == "no access":
            raise IoError("could not stat file")
        if write:
            raise DiskFull("the disk is full")
        with begin(cluster, write=write, **options) as connection:
            yield connection

    @contextmanager
    def without() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(Cluster, "begin", failing)
            yield

    return without


@pytest.fixture
def database(session: Session) -> Database:
    return Database(session)


def _tables(database: Database) -> list[str | None]:
    names = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 2200 ORDER BY 1"
    return [name for (name,) in database.rows(names)]


def test_a_block_that_fails_stays_failed(database: Database, without_catalog: Without) -> None:
    database.run("BEGIN")
    database.run("CREATE TABLE a ()")
    with without_catalog(), pytest.raises((DiskFull, IoError)):
        database.run("CREATE TABLE b ()")
    with pytest.raises(InFailedSqlTransaction):
        database.run("CREATE TABLE c ()")
    assert database.run("COMMIT") == ["ROLLBACK"]
    assert _tables(database) == []
    database.run("CREATE TABLE a ()")  # no lock is left


def test_a_commit_that_fails_ends_the_block(database: Database, without_catalog: Without) -> None:
    database.run("BEGIN")
    database.run("CREATE TABLE a ()")
    with without_catalog(), pytest.raises((DiskFull, IoError)):
        database.run("COMMIT")
    assert database.session.block is None
    assert _tables(database) == []
    database.run("CREATE TABLE a ()")  # no lock is left


def test_statements_of_a_failed_query_string_are_not_committed_later(
    database: Database, without_catalog: Without
) -> None:
    rest = execute(database.session, "CREATE TABLE a (); SELECT 1")
    assert next(rest).tag == "CREATE TABLE"
    with without_catalog(), pytest.raises((DiskFull, IoError)):
        next(rest)
    assert database.session.block is None
    database.run("CREATE TABLE c ()")
    assert _tables(database) == ["c"]


def test_a_rollback_is_completed_later(database: Database, without_catalog: Without) -> None:
    database.run("BEGIN")
    database.run("CREATE TABLE a ()")
    with without_catalog(), suppress(IoError):  # not even readable
        database.run("ROLLBACK")
    assert database.session.block is None
    other = Session.connect(database.session.cluster, "postgres", "postgres")
    Database(other).run("CREATE TABLE a ()")
    assert _tables(database) == ["a"]


@pytest.mark.parametrize(
    "statements",
    [
        "BEGIN; CREATE TABLE a ();",
        "SELECT pg_create_logical_replication_slot('s', 'pgoutput', true);",
        "SELECT pg_replication_origin_create('o'), pg_replication_origin_session_setup('o');",
        "CREATE TEMP TABLE a ();",
    ],
)
def test_the_end_of_a_session_is_no_traceback(
    psql: Psql, without_catalog: Without, monkeypatch: pytest.MonkeyPatch, statements: str
) -> None:
    leave = PsqlSettings.release_session

    def release(settings: PsqlSettings) -> None:
        with without_catalog():
            leave(settings)

    monkeypatch.setattr(PsqlSettings, "release_session", release)
    outcome = psql("-X", script=statements)
    assert outcome.exit_code == 0
    assert "Traceback" not in outcome.stderr
    assert re.search("the disk is full|could not stat file", outcome.stderr)


def test_a_query_string_whose_results_cannot_be_printed_is_rolled_back(psql: Psql) -> None:
    script = r"""
        \o /dev/full
        CREATE TABLE a (x int)\; SELECT 1\; SELECT 2;
        \o
        CREATE TABLE c (x int);
        SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 2200;
    """
    assert psql("-X", "-A", "-t", script=script).stdout == "CREATE TABLE\nc\n"
