"""replctl only reads a published table, with or without a change data feed, and the copy is equal
after every action of its owner."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database, connect

from replctl.catalog.cluster import Cluster

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_FEED = "delta.enableChangeDataFeed"


class Owner:
    """Writes a table with Spark, as somebody who does not know replctl."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self.folder = folder

    def run(self, *statements: str) -> None:
        for statement in statements:
            self._engine.run(statement.format(t=f"delta.`{self.folder}`"))

    def files(self) -> dict[str, tuple[int, int, str]]:
        """Return the name, time, size and digest of each file."""
        return {
            str(path): (
                path.stat().st_mtime_ns,
                path.stat().st_size,
                hashlib.sha256(path.read_bytes()).hexdigest(),
            )
            for path in self.folder.rglob("*")
            if path.is_file()
        }


class Replica:
    """A table of others, adopted and published, and its copy."""

    def __init__(self, cluster: Cluster, engine: Engine) -> None:
        self.source = connect(cluster, "source", engine)
        self.target = connect(cluster, "target", engine)

    def adopt(self, folder: Path, *, has_key: bool = True) -> None:
        key, identity = ("(PRIMARY KEY (id)) ", "") if has_key else ("", " REPLICA IDENTITY FULL")
        self.source.run(f"CREATE TABLE t {key}USING delta LOCATION '{folder}'")
        if identity:
            self.source.run(f"ALTER TABLE t{identity}")
        self.source.run("CREATE PUBLICATION p FOR TABLE t")
        shown = "int PRIMARY KEY" if has_key else "int"
        self.target.run(f"CREATE TABLE t (id {shown}, r text, v double precision)")
        self.target.run(
            "CREATE SUBSCRIPTION s CONNECTION 'host=localhost dbname=source' PUBLICATION p"
        )

    def check(self) -> None:
        assert self.target.sync() == []
        rows = "SELECT id, r, v FROM t ORDER BY id, r, v"
        assert self.target.rows(rows) == self.source.rows(rows)


@pytest.fixture
def owner(engine: Engine, tmp_path: Path) -> Owner:
    return Owner(engine, tmp_path / "table")


@pytest.fixture
def replica(cluster: Cluster, engine: Engine) -> Replica:
    return Replica(cluster, engine)


def _make(owner: Owner, clauses: str = "") -> None:
    owner.run(
        f"CREATE TABLE {{t}} (id INT, r STRING, v DOUBLE) USING delta {clauses}",
        "INSERT INTO {t} SELECT id, if(id % 2 = 0, 'a b', NULL), id FROM range(1, 9)",
    )


#: Actions of an owner between syncs.  After each sync, the copies are equal.
_HISTORY: tuple[tuple[str, ...], ...] = (
    (
        "UPDATE {t} SET v = -v WHERE id < 3",
        "DELETE FROM {t} WHERE id = 4",
        "UPDATE {t} SET id = id + 100 WHERE id = 5",
        "INSERT INTO {t} VALUES (20, NULL, 0.0), (21, 'n', double('NaN'))",
        "UPDATE {t} SET v = -0.0 WHERE id = 20",
        "OPTIMIZE {t}",
        "MERGE INTO {t} t USING (SELECT 1 AS id UNION ALL SELECT 30) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET r = 'm' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        "RESTORE TABLE {t} TO VERSION AS OF 3",
        "INSERT OVERWRITE {t} SELECT id, 'o', v FROM {t} WHERE id <> 2",
    ),
    (
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({_FEED} = true)",
        "DELETE FROM {t} WHERE id = 1",
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({_FEED} = false)",
        "DELETE FROM {t} WHERE id = 3",
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({_FEED} = true)",
        "INSERT INTO {t} VALUES (1, 'again', 1)",
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({_FEED} = false,"
        " delta.enableDeletionVectors = true)",
        "INSERT INTO {t} SELECT id, 'dv', id FROM range(1000, 1100)",
        "DELETE FROM {t} WHERE id % 7 = 0",
        "UPDATE {t} SET r = 'w' WHERE id % 11 = 0",
        "REORG TABLE {t} APPLY (PURGE)",
        "CREATE OR REPLACE TABLE {t} USING delta AS SELECT id, r, -v AS v FROM {t} WHERE id < 1050",
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({_FEED} = true)",
        "DELETE FROM {t} WHERE id = 1041",
        "ALTER TABLE {t} SET TBLPROPERTIES (delta.columnMapping.mode = 'name')",
        "UPDATE {t} SET v = 7 WHERE id = 1042",
    ),
)


def test_copies_equal_a_table_that_is_only_read(owner: Owner, replica: Replica) -> None:
    _make(owner)
    before = owner.files()
    replica.adopt(owner.folder)
    replica.check()
    assert owner.files() == before
    for statements in _HISTORY:
        owner.run(*statements)
        before = owner.files()
        replica.check()
        assert owner.files() == before


def test_a_log_that_was_cleaned_before_and_behind(owner: Owner, replica: Replica) -> None:
    _make(owner, "PARTITIONED BY (r) TBLPROPERTIES (delta.checkpointInterval = 2)")
    owner.run("UPDATE {t} SET v = 10 WHERE id = 1", "UPDATE {t} SET v = 20 WHERE id = 2")
    _clean(owner)
    replica.adopt(owner.folder)
    replica.check()
    owner.run("UPDATE {t} SET v = 60 WHERE id = 6", "DELETE FROM {t} WHERE id = 1")
    _clean(owner, first=3)  # the adopted version, which Delta itself can no longer read
    replica.check()


def _clean(owner: Owner, first: int | None = None) -> None:
    """Keep the newest checkpoint, and the commits from `first` or from the checkpoint on."""
    log = owner.folder / "_delta_log"
    newest = max(int(path.name[:20]) for path in log.glob("*.checkpoint.parquet"))
    for path in log.glob("*"):
        if path.name[:20].isdigit() and int(path.name[:20]) < (first or newest):
            path.unlink()


def test_a_feed_whose_files_were_removed(owner: Owner, replica: Replica) -> None:
    _make(owner, f"TBLPROPERTIES ({_FEED} = true)")
    replica.adopt(owner.folder)
    replica.check()
    owner.run("UPDATE {t} SET v = 0 WHERE id = 2", "INSERT INTO {t} VALUES (90, 'x', 1)")
    for path in (owner.folder / "_change_data").rglob("*"):
        path.unlink()
    replica.check()


def test_rows_without_a_key_are_a_multiset(owner: Owner, replica: Replica) -> None:
    owner.run(
        "CREATE TABLE {t} (id INT, r STRING, v DOUBLE) USING delta",
        "INSERT INTO {t} VALUES (1, 'a', 1), (1, 'a', 1), (1, 'a', 1), (NULL, 'n', NULL)",
        "INSERT INTO {t} VALUES (NULL, 'n', NULL)",
    )
    replica.adopt(owner.folder, has_key=False)
    replica.check()
    owner.run(
        "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 2)",
        "INSERT OVERWRITE {t} VALUES (1, 'a', 1), (1, 'a', 1), (NULL, 'n', NULL),"
        " (2, 'b', -0.0), (2, 'b', 0.0)",
        "UPDATE {t} SET v = 3 WHERE id = 2",
    )
    replica.check()


def _decoded(source: Database) -> list[str]:
    """Return the new changes of table t in the slot d."""
    query = "SELECT data FROM pg_logical_slot_get_changes('d', NULL, NULL)"
    found = [row[0] or "" for row in source.rows(query)]
    return sorted(text.removeprefix("table public.t: ") for text in found if " public.t: " in text)


def test_how_images_are_paired(owner: Owner, replica: Replica) -> None:
    _make(owner)
    source = replica.source
    source.run(f"CREATE TABLE t (PRIMARY KEY (id)) USING delta LOCATION '{owner.folder}'")
    source.run("SELECT pg_create_logical_replication_slot('d', 'test_decoding')")
    owner.run("UPDATE {t} SET v = 10 WHERE id = 1", "UPDATE {t} SET id = 20 WHERE id = 2")
    assert _decoded(source) == [
        "DELETE: id[integer]:2",
        "INSERT: id[integer]:20 r[text]:'a b' v[double precision]:2",
        "UPDATE: id[integer]:1 r[text]:null v[double precision]:10",
    ]
    owner.run("ALTER TABLE {t} SET TBLPROPERTIES (delta.enableRowTracking = true)")
    owner.run(
        "UPDATE {t} SET id = 30 WHERE id = 3",
        "INSERT OVERWRITE {t} SELECT if(id = 4, 40, id) AS id, r, v FROM {t} WHERE id <> 5",
    )
    assert _decoded(source) == [
        "DELETE: id[integer]:4",
        "DELETE: id[integer]:5",
        "INSERT: id[integer]:40 r[text]:'a b' v[double precision]:4",
        "UPDATE: old-key: id[integer]:3 new-tuple: id[integer]:30 r[text]:null"
        " v[double precision]:3",
    ]
