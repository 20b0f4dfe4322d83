"""The catalog of a subscriber in a separate cluster was restored from a backup, with or without its
tables.  The HINTs, followed word for word, make the rows equal."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database, connect

from replctl.catalog.open_cluster import open_cluster
from replctl.errors import PostgresError
from replctl.lake.promotion_without_primary import accept_restored_catalog

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_TABLES = "CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE u (v text)"
_ALL = "SELECT id, v FROM t UNION ALL SELECT -1, v FROM u ORDER BY 1, 2"
_RESTORED = 'run "replctl cluster identify --restored'
#: Maximum number of HINTs to follow.
_MOST_HINTS = 6


def _mend(subscriber: Database) -> int:
    """Follow HINTs until no error stops the subscription, and return their number."""
    for count in range(_MOST_HINTS):
        failures = subscriber.sync()
        if not failures:
            return count
        _follow(subscriber, failures[0].error)
    raise AssertionError(f"no end: {subscriber.sync()}")


def _follow(subscriber: Database, error: PostgresError) -> None:
    assert error.hint is not None, error
    if _RESTORED in error.hint:
        accept_restored_catalog(subscriber.session.cluster)
        return
    try:
        subscriber.run(error.hint)
    except PostgresError as other:  # the error of a table has another HINT
        _follow(subscriber, other)


def _put_back(home: Path, source: Path, *, catalog: bool, tables: bool) -> None:
    if catalog:
        shutil.copy(source / "catalog.db", home / "catalog.db")
    if tables:
        shutil.rmtree(home / "base")
        shutil.copytree(source / "base", home / "base")


def test_a_subscriber_that_was_put_back_gets_equal_rows(tmp_path: Path, engine: Engine) -> None:
    home, days = tmp_path / "b", tmp_path / "days"
    with closing(open_cluster(tmp_path / "a")) as cluster:
        publisher = connect(cluster, "shop", engine)
        publisher.run(_TABLES)
        publisher.run("ALTER TABLE u REPLICA IDENTITY FULL; CREATE PUBLICATION p FOR TABLE t, u")

        def in_home(act: Callable[[Database], object]) -> None:
            with closing(open_cluster(home)) as own:
                act(connect(own, "branch", engine))

        def create(subscriber: Database) -> None:
            subscriber.run(_TABLES)
            connection = f"CONNECTION 'host={tmp_path / 'a'} dbname=shop'"
            subscriber.run(f"CREATE SUBSCRIPTION s {connection} PUBLICATION p")

        def day(number: int) -> None:
            publisher.run(f"INSERT INTO t VALUES ({number}, 'v'); INSERT INTO u VALUES ('u')")
            in_home(lambda subscriber: subscriber.sync())
            shutil.copytree(home, days / str(number))

        in_home(create)
        for number in (1, 2, 3):
            day(number)
        expected = publisher.rows(_ALL)

        for catalog_day, tables_day in ((2, 3), (2, 1)):
            _put_back(home, days / str(catalog_day), catalog=True, tables=False)
            _put_back(home, days / str(tables_day), catalog=False, tables=True)

            def check(subscriber: Database, *, days: tuple[int, int]) -> None:
                hints = _mend(subscriber)
                assert hints, days
                assert subscriber.rows(_ALL) == expected, days

            in_home(lambda s, d=(catalog_day, tables_day): check(s, days=d))  # type: ignore[misc]
            shutil.rmtree(home)
            shutil.copytree(days / "3", home)
