"""The primary dies, its standby replaces it, and the subscriber continues there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fix_replication import connect

from replctl.catalog.cluster import Cluster
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.promotion import promote
from replctl.catalog.standby import create_standby, receive
from replctl.lake.promotion_without_primary import FoundInStorage, promote_without_primary
from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_ROWS = "SELECT id, note FROM t ORDER BY id"


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[Callable[[str], Cluster]]:
    """Yield a function that opens a cluster by its name.  Close all clusters afterwards."""
    opened: dict[str, Cluster] = {}

    def cluster(name: str) -> Cluster:
        if name not in opened:
            opened[name] = open_cluster(tmp_path / name)
        return opened[name]

    yield cluster
    for each in opened.values():
        each.close()


def _die_in_a_block(home: Path, engine: Engine) -> None:
    """Write two tables in a transaction, then give up its locks without an end, as if the process
    had died."""
    dying = open_cluster(home)
    database = connect(dying, "d", engine)
    for statement in ("BEGIN", "UPDATE t SET note = 'lost'", "DELETE FROM u"):
        database.run(statement)
    assert database.session.block is not None
    database.session.block.locks.close()
    dying.close()


def test_the_primary_s_catalog_is_lost(
    clusters: Callable[[str], Cluster], engine: Engine, tmp_path: Path
) -> None:
    primary = connect(clusters("primary"), "d", engine)
    primary.run("CREATE TABLE t (id int PRIMARY KEY, note text); CREATE TABLE u (id int)")
    primary.run("INSERT INTO t VALUES (1, 'a')")
    create_standby(tmp_path / "primary", tmp_path / "standby", "standby1")
    primary.run("INSERT INTO t VALUES (2, 'b')")
    primary.run("INSERT INTO u VALUES (1)")
    _die_in_a_block(tmp_path / "primary", engine)
    for file in (tmp_path / "primary").glob("catalog.db*"):
        file.unlink()
    assert promote_without_primary(clusters("standby")) == FoundInStorage(entered=2, undone=1)
    standby = connect(clusters("standby"), "d", engine)
    kept = [("1", "a"), ("2", "b")]
    assert standby.rows(_ROWS) == kept
    assert standby.rows("SELECT id FROM u") == [("1",)]
    standby.run("INSERT INTO t VALUES (3, 'c')")
    assert standby.rows(_ROWS) == [*kept, ("3", "c")]


def test_failover(clusters: Callable[[str], Cluster], engine: Engine, tmp_path: Path) -> None:
    primary = connect(clusters("primary"), "d", engine)
    subscriber = connect(clusters("subscriber"), "d", engine)
    tables = "CREATE TABLE t (id int PRIMARY KEY, note text); CREATE TABLE u (id int)"
    primary.run(f"{tables}; CREATE PUBLICATION p FOR TABLE t WHERE (id < 100)")
    primary.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (100, 'hidden')")
    primary.run("INSERT INTO u VALUES (1)")
    subscriber.run(tables)
    subscriber.run(
        f"CREATE SUBSCRIPTION s CONNECTION 'host={tmp_path}/primary dbname=d' PUBLICATION p"
        " WITH (failover = true)"
    )
    assert subscriber.sync() == []

    create_standby(tmp_path / "primary", tmp_path / "standby", "standby1")
    primary.run("ALTER SYSTEM SET synchronized_standby_slots = 'standby1'")
    standby = connect(clusters("standby"), "d", engine)
    primary.run("UPDATE t SET note = 'c' WHERE id = 2")
    assert standby.rows(_ROWS) == [("1", "a"), ("2", "b"), ("100", "hidden")]
    assert subscriber.sync() == []
    assert subscriber.rows(_ROWS) == [("1", "a"), ("2", "b")], "the standby does not have it"
    receive(clusters("standby"))
    assert standby.rows(_ROWS) == [("1", "a"), ("2", "c"), ("100", "hidden")]
    assert standby.sync() == []
    assert subscriber.sync() == []
    assert subscriber.rows(_ROWS) == [("1", "a"), ("2", "c")]

    primary.run("INSERT INTO t VALUES (3, 'not yet at the standby')")
    _die_in_a_block(tmp_path / "primary", engine)
    promote(clusters("standby"))
    ready = (
        "SELECT slot_name, synced AND NOT temporary AND NOT conflicting FROM pg_replication_slots"
    )
    assert standby.rows(ready) == [("s", "t")]
    kept = [("1", "a"), ("2", "c"), ("3", "not yet at the standby")]
    assert standby.rows(_ROWS) == [*kept, ("100", "hidden")]
    (failure,) = subscriber.sync()
    assert "not accepting connections" in failure.error.message

    subscriber.run(f"ALTER SUBSCRIPTION s CONNECTION 'host={tmp_path}/standby dbname=d'")
    standby.run("UPDATE t SET note = 'd' WHERE id IN (1, 100)")
    standby.run("INSERT INTO u VALUES (2); CREATE TABLE v (a int); INSERT INTO v VALUES (1)")
    assert subscriber.sync() == []
    assert subscriber.rows(_ROWS) == [("1", "d"), *kept[1:]]
    assert standby.rows(_ROWS) == [("1", "d"), *kept[1:], ("100", "d")]
    assert standby.rows("SELECT id FROM u ORDER BY id") == [("1",), ("2",)]
    ((path,),) = standby.rows("SELECT pg_relation_filepath('v')")
    assert path is not None
    assert path.startswith(str(tmp_path / "standby"))


def test_a_subscription_follows_a_standby(
    clusters: Callable[[str], Cluster], engine: Engine, tmp_path: Path
) -> None:
    primary = connect(clusters("primary"), "d", engine)
    subscriber = connect(clusters("subscriber"), "d", engine)
    primary.run("CREATE TABLE t (id int PRIMARY KEY, note text); CREATE PUBLICATION p FOR TABLE t")
    primary.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    create_standby(tmp_path / "primary", tmp_path / "standby", "standby1")
    standby = clusters("standby")
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, note text)")
    subscriber.run(
        f"CREATE SUBSCRIPTION s CONNECTION 'host={tmp_path}/standby dbname=d' PUBLICATION p"
    )
    assert subscriber.sync() == []
    assert subscriber.rows(_ROWS) == [("1", "a"), ("2", "b")]
    primary.run("SET replctl.vacuum_retention = 0")
    for note in ("c", "d"):
        primary.run(f"UPDATE t SET note = '{note}' WHERE id = 1")
    primary.run("DELETE FROM t WHERE id = 2")
    receive(standby)
    primary.run("VACUUM")
    receive(standby)
    assert subscriber.sync() == []
    assert subscriber.rows(_ROWS) == [("1", "d")]
    promote(standby)
    connect(standby, "d", engine).run("INSERT INTO t VALUES (3, 'after the promotion')")
    assert subscriber.sync() == []
    assert subscriber.rows(_ROWS) == [("1", "d"), ("3", "after the promotion")]
