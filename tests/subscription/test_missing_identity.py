"""Another program updates or deletes rows of a published table that cannot be identified.
PostgreSQL refuses such a statement at the publisher; here the HINT, or resync, lets the
subscription continue."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from fix_replication import Database

from replctl.errors import PostgresError

pytestmark = pytest.mark.spark

_TABLES = ("keyless", "keyed", "listed")


def _failed(database: Database, message: str) -> PostgresError:
    (failure,) = database.sync()
    assert failure.error.sqlstate == "55000"
    assert message in failure.error.message
    return failure.error


def _follow(publisher: Database, subscriber: Database, hint: str | None) -> None:
    """Follow a HINT with a statement for each side."""
    first, second = (hint or "").removeprefix("At the publisher, use ").split("; then use ")
    publisher.run(first)
    subscriber.run(second)


@pytest.fixture
def places(publisher: Database, subscriber: Database, tmp_path: Path) -> dict[str, Path]:
    """Return the places of published tables without a key.  The copies of `keyed` and `listed` have
    one; that of `listed` is a column of its own."""
    places = {name: tmp_path / name for name in _TABLES}
    for name, place in places.items():
        rows = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "v": ["a", "b", "c"]})
        write_deltalake(str(place), rows)
        publisher.run(f"CREATE TABLE {name} USING delta LOCATION '{place}'")
    publisher.run("CREATE PUBLICATION p FOR TABLE keyless, keyed, listed (v)")
    subscriber.run(
        "CREATE TABLE keyless (id int, v text); CREATE TABLE keyed (id int PRIMARY KEY, v text);"
        " CREATE TABLE listed (own serial PRIMARY KEY, v text)"
    )
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    return places


def test_the_hint_ends_with_equal_rows(
    publisher: Database, subscriber: Database, places: dict[str, Path]
) -> None:
    DeltaTable(str(places["keyless"])).delete("id = 1")
    error = _failed(subscriber, "neither REPLICA IDENTITY index nor PRIMARY KEY column")
    _follow(publisher, subscriber, error.hint)
    assert subscriber.sync() == []
    DeltaTable(str(places["keyed"])).update({"v": "'new'"}, predicate="id = 2")
    error = _failed(subscriber, "publisher did not send replica identity column")
    _follow(publisher, subscriber, error.hint)
    assert subscriber.sync() == []
    DeltaTable(str(places["keyless"])).update({"v": "'new'"}, predicate="id = 2")
    DeltaTable(str(places["keyed"])).delete("id = 1")
    assert subscriber.sync() == []
    for table in ("keyless", "keyed"):
        read = f"SELECT id, v FROM {table} ORDER BY id"
        assert subscriber.rows(read) == publisher.rows(read)

    DeltaTable(str(places["listed"])).delete("id = 1")
    error = _failed(subscriber, "publisher did not send replica identity column")
    assert error.hint is not None
    assert error.hint.startswith("Publish (own), or give the target a primary key of published")
    subscriber.run("ALTER TABLE listed DROP CONSTRAINT listed_pkey, ADD PRIMARY KEY (v)")
    publisher.run("ALTER TABLE listed REPLICA IDENTITY FULL")
    subscriber.run(error.hint.split(", then use ")[1])
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT v FROM listed ORDER BY v") == [("b",), ("c",)]


def test_resync_reconciles_the_table(
    publisher: Database, subscriber: Database, places: dict[str, Path]
) -> None:
    subscriber.run("ALTER SUBSCRIPTION s SET (resync = auto, resync_max_delete = 50)")
    DeltaTable(str(places["keyless"])).delete("id = 1")
    DeltaTable(str(places["keyed"])).update({"v": "'new'"}, predicate="id = 2")
    assert subscriber.sync() == []
    for table in ("keyless", "keyed"):
        read = f"SELECT id, v FROM {table} ORDER BY id"
        assert subscriber.rows(read) == publisher.rows(read)
