"""The catalog of a publisher in a separate cluster was restored from a backup.  The HINT makes the
rows equal, with and without a key."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database, connect

from replctl.catalog.open_cluster import open_cluster, other_cluster
from replctl.lake.promotion_without_primary import accept_restored_catalog

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_TABLES = "CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE u (v text)"
_ALL = "SELECT id, v FROM t UNION ALL SELECT -1, v FROM u ORDER BY 1, 2"


def _insert(database: Database, id_: int) -> None:
    database.run(f"INSERT INTO t VALUES ({id_}, 'v{id_}'); INSERT INTO u VALUES ('v{id_}')")


def test_rows_of_a_forked_log_are_reconciled(tmp_path: Path, engine: Engine) -> None:
    home, backup = tmp_path / "a", tmp_path / "catalog.db"
    with closing(open_cluster(home)) as cluster:
        publisher = connect(cluster, "shop", engine)
        publisher.run(_TABLES)
        publisher.run("ALTER TABLE u REPLICA IDENTITY FULL; CREATE PUBLICATION p FOR TABLE t, u")
        _insert(publisher, 1)
    with closing(open_cluster(tmp_path / "b")) as cluster:
        subscriber = connect(cluster, "branch", engine)
        subscriber.run(_TABLES)
        connection = f"CONNECTION 'host={home} dbname=shop'"
        subscriber.run(f"CREATE SUBSCRIPTION s {connection} PUBLICATION p")
        assert subscriber.sync() == []
    shutil.copy(home / "catalog.db", backup)
    with closing(open_cluster(home)) as cluster:
        _insert(connect(cluster, "shop", engine), 2)
    with closing(open_cluster(tmp_path / "b")) as cluster:
        assert connect(cluster, "branch", engine).sync() == []
    shutil.copy(backup, home / "catalog.db")
    with closing(open_cluster(home)) as cluster:
        accept_restored_catalog(cluster)
        publisher = connect(cluster, "shop", engine)
        publisher.run("UPDATE t SET v = 'changed' WHERE id = 1; DELETE FROM u WHERE v = 'v1'")
        publisher.run("COMMENT ON TABLE t IS 'longer than the former log';" * 9)
    with closing(open_cluster(tmp_path / "b")) as cluster:
        subscriber = connect(cluster, "branch", engine)
        (failure,) = subscriber.sync()
        assert "is not in this server's history" in failure.error.message
        assert failure.error.hint == "ALTER SUBSCRIPTION s REFRESH TABLE public.t, public.u;"
        subscriber.run(failure.error.hint)
        assert subscriber.sync() == []
        publisher = connect(other_cluster(cluster, home), "shop", engine)
        publisher.run("INSERT INTO u VALUES ('after')")
        assert subscriber.sync() == []
        assert subscriber.rows(_ALL) == publisher.rows(_ALL)
