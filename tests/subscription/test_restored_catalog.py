"""A catalog that is older than its tables, because a copy of it was restored."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from fix_replication import Database

from replctl.errors import ObjectNotInPrerequisiteState
from replctl.lake.promotion_without_primary import accept_restored_catalog

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
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        publisher.run("INSERT INTO t VALUES (3, 'three')")
    assert "replctl cluster identify --restored" in (caught.value.hint or "")
    accept_restored_catalog(publisher.session.cluster)
    publisher.run("INSERT INTO t VALUES (3, 'three')")
    publisher.run("CREATE TABLE again (b text)")
    assert publisher.rows("SELECT * FROM again") == []
    assert subscriber.sync() == []  # the changes that it had applied are undone, and applied again
    assert subscriber.rows("SELECT * FROM t ORDER BY id") == publisher.rows(
        "SELECT * FROM t ORDER BY id"
    )
    publisher.run("INSERT INTO t VALUES (4, 'four')")
    assert subscriber.sync() == []
    assert len(subscriber.rows("SELECT * FROM t")) == 4
