"""Tables whose files are all rewritten: replctl hashes both sides first."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fix_replication import Database, connect
from long_tests import LONG, with_long

from replctl.catalog.cluster import Cluster
from replctl.spark import narrowed_version, query_size, staging

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_COLUMNS = "id int, v text, f float8"
_PROPERTIES = {
    "by key": "delta.enableDeletionVectors = true",
    "by row id": "delta.enableRowTracking = true",
    "no key": "delta.enableRowTracking = false",
}
_VALUES = "VALUES (1, 'a', 0D), (2, 'b', 0D), (3, 'c', 1D), (4, 'd', double('nan')), (5, null, 2D)"


class Owner:
    """The owner of a published table, and a copy of the table."""

    def __init__(self, cluster: Cluster, engine: Engine, folder: Path, kind: str) -> None:
        self._engine, self._table = engine, f"delta.`{folder / 't'}`"
        self.source = connect(cluster, "source", engine)
        self.target = connect(cluster, "target", engine)
        self.write(
            f"CREATE TABLE {{t}} (id INT, v STRING, f DOUBLE) USING delta"
            f" TBLPROPERTIES ({_PROPERTIES[kind]})",
            f"INSERT INTO {{t}} {_VALUES}",
        )
        key = "" if kind == "no key" else "(PRIMARY KEY (id)) "
        self.source.run(
            f"CREATE TABLE t {key}USING delta LOCATION '{folder / 't'}';"
            "CREATE PUBLICATION p FOR TABLE t"
        )
        if kind == "no key":
            self.source.run("ALTER TABLE t REPLICA IDENTITY FULL")
        own_key = "" if kind == "no key" else ", PRIMARY KEY (id)"
        self.target.run(f"CREATE TABLE t ({_COLUMNS}{own_key})")
        self.target.run(
            "CREATE SUBSCRIPTION s CONNECTION 'host=localhost dbname=source' PUBLICATION p"
        )

    def write(self, *statements: str) -> None:
        for statement in statements:
            self._engine.run(statement.format(t=self._table))

    def check_equal(self) -> None:
        """Bring the copy up to date, and compare it with the source."""
        assert self.target.sync() == []
        assert _rows(self.target) == _rows(self.source)


def _rows(database: Database) -> list[tuple[str | None, ...]]:
    return sorted(database.rows("SELECT id, v, f::text FROM t"), key=str)


@pytest.fixture
def buckets(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that receives the number of differing buckets each time that replctl hashes."""
    found: list[int] = []
    query = narrowed_version.images_query

    def recorded(source, version, compared, buckets):  # type: ignore[no-untyped-def]
        found.append(len(buckets))
        return query(source, version, compared, buckets)

    monkeypatch.setattr(narrowed_version, "images_query", recorded)
    return found


@pytest.fixture
def hashed(buckets: list[int], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Hash tables of any size, and return the list of `buckets`."""
    monkeypatch.setattr(narrowed_version, "_WORTH_HASHING", 0)
    return buckets


@pytest.mark.parametrize(
    ("kind", "few"),
    [
        ("by key", staging.SMALL),
        ("by row id", 1),
        pytest.param("no key", staging.SMALL, marks=LONG),
    ],
)
def test_the_copy_follows(
    cluster: Cluster,
    engine: Engine,
    tmp_path: Path,
    hashed: list[int],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    few: int,
) -> None:
    for module in (staging, narrowed_version):
        monkeypatch.setattr(module, "SMALL", few)
    owner = Owner(cluster, engine, tmp_path, kind)
    assert owner.target.sync() == []

    owner.write("INSERT OVERWRITE {t} SELECT * FROM {t}")  # no row changes
    owner.check_equal()
    assert hashed == [0]

    # a value, a sign, a removed row, an added row, a NULL
    owner.write(
        "INSERT OVERWRITE {t} VALUES (1, 'A', 0D), (2, 'b', -0D), (4, 'd', double('nan')),"
        " (5, 'e', 2D), (6, null, null)"
    )
    owner.check_equal()
    assert hashed[1:] == [len({1, 2, 3, 5, 6})] if kind != "no key" else hashed[1:]

    # two exchanged keys, and a changed one, in rows that stay in their files
    owner.write("UPDATE {t} SET id = CASE id WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE id + 10 END")
    owner.check_equal()

    if kind == "no key":  # equal rows, one of which is removed
        owner.write(
            "INSERT OVERWRITE {t} SELECT * FROM {t} UNION ALL SELECT * FROM {t}",
            "INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id <> 1 UNION ALL VALUES (1, 'b', -0D)",
        )
        owner.check_equal()
    assert len(hashed) > 2


@pytest.mark.parametrize("kind", with_long(list(_PROPERTIES), 2, 1))
def test_a_key_of_another_type(
    cluster: Cluster, engine: Engine, tmp_path: Path, hashed: list[int], kind: str
) -> None:
    owner = Owner(cluster, engine, tmp_path, kind)
    assert owner.target.sync() == []
    replace = f"CREATE OR REPLACE TABLE {{t}} USING delta TBLPROPERTIES ({_PROPERTIES[kind]}) AS"
    owner.write(f"{replace} SELECT CAST(id AS BIGINT) AS id, v, f FROM {{t}} WHERE id > 2")
    owner.check_equal()
    assert len(_rows(owner.target)) == 3
    # The relation keeps the wider type
    owner.write(f"{replace} SELECT CAST(id AS INT) AS id, v, f FROM {{t}} WHERE id <> 3")
    owner.check_equal()
    assert len(hashed) == 2


def test_each_side_of_a_small_version_is_read_once(
    cluster: Cluster, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every read of a Delta table needs several jobs that read its log."""
    owner = Owner(cluster, engine, tmp_path, "by row id")
    assert owner.target.sync() == []
    owner.write(
        "UPDATE {t} SET id = id + 1",
        "INSERT OVERWRITE {t} SELECT id, concat(v, v), f FROM {t}",
    )
    reads: Counter[str] = Counter()
    query = type(engine).sql

    def counted(self, text, *, has_few_rows=False):  # type: ignore[no-untyped-def]
        reads.update(re.findall("delta.`([^`]*)`", str(text)))
        return query(self, text, has_few_rows=has_few_rows)

    monkeypatch.setattr(type(engine), "sql", counted)
    owner.check_equal()
    sides = {place: count for place, count in reads.items() if "replctl-spark" in place}
    assert set(sides.values()) == {1}, sides


def test_few_changes_of_large_files_are_hashed(
    cluster: Cluster,
    engine: Engine,
    tmp_path: Path,
    buckets: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise replctl would keep all rows of the files."""
    owner = Owner(cluster, engine, tmp_path, "by row id")
    assert owner.target.sync() == []
    monkeypatch.setattr(query_size, "_SMALL_TABLE", 1)
    owner.write("INSERT OVERWRITE {t} SELECT id, if(id = 2, 'B', v), f FROM {t}")
    owner.check_equal()
    assert buckets == [1]


def test_where_most_rows_differ_all_are_compared(
    cluster: Cluster,
    engine: Engine,
    tmp_path: Path,
    hashed: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(narrowed_version, "_MANY_BUCKETS", 1)
    owner = Owner(cluster, engine, tmp_path, "by key")
    assert owner.target.sync() == []
    owner.write("INSERT OVERWRITE {t} SELECT id, concat(v, v), f FROM {t}")
    owner.check_equal()
    assert hashed == [4]  # one row has NULL


def test_a_double_key_is_an_error(
    cluster: Cluster, engine: Engine, tmp_path: Path, hashed: list[int]
) -> None:
    owner = Owner(cluster, engine, tmp_path, "by key")
    assert owner.target.sync() == []
    owner.write(
        "INSERT OVERWRITE {t} SELECT * FROM {t} UNION ALL VALUES (7, 'y', 0D), (7, 'z', 0D)"
    )
    (failure,) = owner.target.sync()
    assert "several rows with one key" in failure.error.message
