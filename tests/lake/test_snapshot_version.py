"""A query sees the tables as they were when its snapshot of the catalog began."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fix_replication import Database, connect

from replctl.lake import table_read


def _another(database: Database) -> Database:
    session = database.session
    return connect(session.cluster, session.database_name, session.engine())


def _during_query(
    monkeypatch: pytest.MonkeyPatch, other: Database, script: str, function: str
) -> None:
    """Let another session run a script once, while a query has its snapshot of the catalog.

    Args:
        function: the script runs before this function of table_read.
    """
    pending = [script]
    original: Callable[..., object] = getattr(table_read, function)

    def interrupted(*args: object, **options: object) -> object:
        while pending:
            other.run(pending.pop())
        return original(*args, **options)

    monkeypatch.setattr(table_read, function, interrupted)


@pytest.mark.parametrize("small", [100, 0], ids=["small", "spark"])
@pytest.mark.parametrize("before", ["visible_versions", "queried_source"])
def test_a_query_does_not_see_a_block_that_began_later(
    publisher: Database, monkeypatch: pytest.MonkeyPatch, small: int, before: str
) -> None:
    publisher.run("CREATE TABLE t (a int); CREATE TABLE u (a int); INSERT INTO t VALUES (1)")
    other = _another(publisher)
    publisher.run(f"SET replctl.small_table_rows = {small}")
    script = "BEGIN; INSERT INTO t VALUES (2); INSERT INTO u VALUES (2)"
    _during_query(monkeypatch, other, script, before)
    query = "SELECT t.a, u.a FROM t LEFT JOIN u ON true ORDER BY t.a"
    assert publisher.rows(query) == [("1", None)]
    assert publisher.rows(query) == [("1", None)]
    other.run("COMMIT")
    assert publisher.rows(query) == [("1", "2"), ("2", "2")]


@pytest.mark.parametrize("small", [100, 0], ids=["small", "spark"])
def test_a_query_sees_nothing_that_is_committed_later(
    publisher: Database, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    publisher.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
    other = _another(publisher)
    publisher.run(f"SET replctl.small_table_rows = {small}")
    _during_query(monkeypatch, other, "INSERT INTO t VALUES (2)", "queried_source")
    assert publisher.rows("SELECT a FROM t ORDER BY a") == [("1",)]
    assert publisher.rows("SELECT a FROM t ORDER BY a") == [("1",), ("2",)]


def test_a_query_looks_for_versions_once(
    publisher: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite runs the query, after replctl has translated it for Spark."""
    publisher.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
    looks = []
    found = table_read.visible_versions

    def counted(*args: Any) -> object:
        looks.append(args)
        return found(*args)

    monkeypatch.setattr(table_read, "visible_versions", counted)
    assert publisher.rows("SELECT a FROM t") == [("1",)]
    assert len(looks) == 1


def test_a_query_sees_commits_of_other_programs(publisher: Database, tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    publisher.run(
        f"CREATE TABLE t (a int) USING delta LOCATION '{location}'; INSERT INTO t VALUES (1)"
    )
    publisher.session.engine().run(f"INSERT INTO delta.`{location}` VALUES (2)")
    assert publisher.rows("SELECT a FROM t ORDER BY a") == [("1",), ("2",)]
