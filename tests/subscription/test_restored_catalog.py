"""A catalog that is of an earlier time than its tables: a copy of it was put back."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from fix_replication import Database

pytestmark = pytest.mark.spark

_TABLES = "CREATE TABLE t (id int PRIMARY KEY, v text)"


def _copy(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


def test_what_the_catalog_has_forgotten_is_not_taken_for_applied(
    publisher: Database, subscriber: Database, tmp_path: Path
) -> None:
    catalog = subscriber.session.cluster.path / "catalog.db"
    for database in (publisher, subscriber):
        database.run(_TABLES)
    publisher.run("INSERT INTO t VALUES (1, 'one'); CREATE PUBLICATION p FOR TABLE t")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    _copy(catalog, tmp_path / "copy.db")
    publisher.run("INSERT INTO t VALUES (2, 'two')")
    assert subscriber.sync() == []
    publisher.run("CREATE TABLE other (a int); INSERT INTO other VALUES (1)")
    _copy(tmp_path / "copy.db", catalog)
    publisher.run("INSERT INTO t VALUES (3, 'three')")
    publisher.run("CREATE TABLE again (b text)")
    assert publisher.rows("SELECT * FROM again") == []
    (failure,) = subscriber.sync()
    assert failure.error.sqlstate == "XX001"
    assert failure.error.message == (
        'table "public.t" has changes of subscription "s" that the catalog does not know of'
    )
    assert len(subscriber.rows("SELECT * FROM t")) == 2
    subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE t WITH (copy_data = true)")
    assert subscriber.sync() == []
    publisher.run("INSERT INTO t VALUES (4, 'four')")
    assert subscriber.sync() == []
    assert len(subscriber.rows("SELECT * FROM t")) == 4
