"""Targets not named like the published tables: three filtered copies of one table in one
database."""

from __future__ import annotations

import pytest
from fix_replication import Database, connect

from replctl.catalog.cluster import Cluster
from replctl.dump.dumped_database import DumpOptions, dump_database
from replctl.explain import explain_sync
from replctl.spark.engine import Engine
from replctl.verify import verify

_REGIONS = ("north", "south", "west")


@pytest.fixture
def copies(publisher: Database, subscriber: Database) -> tuple[Database, Database]:
    """Copy table orders to gold.orders_north, gold.orders_south and gold.orders_west.  Return the
    databases."""
    publisher.run("CREATE TABLE orders (id int PRIMARY KEY, region text, n int)")
    publisher.run("ALTER TABLE orders REPLICA IDENTITY FULL")
    publisher.run(
        "INSERT INTO orders VALUES (1, 'north', 1), (2, 'south', 2), (3, 'west', 3), (4, 'east', 4)"
    )
    subscriber.run("CREATE SCHEMA gold")
    for region in _REGIONS:
        publisher.run(f"CREATE PUBLICATION {region} FOR TABLE orders WHERE (region = '{region}')")
        subscriber.run(
            f"CREATE TABLE gold.orders_{region} (id int PRIMARY KEY, region text, n int)"
        )
        subscriber.run(
            f"CREATE SUBSCRIPTION {region} CONNECTION 'dbname=test_pub' PUBLICATION {region}"
            f" WITH (table_map = 'public.orders = gold.orders_{region}')"
        )
    assert subscriber.sync() == []
    return publisher, subscriber


def _rows(subscriber: Database) -> dict[str, list[tuple[str | None, ...]]]:
    return {
        region: subscriber.rows(f"SELECT id, n FROM gold.orders_{region} ORDER BY id")
        for region in _REGIONS
    }


def test_changes_of_every_kind_reach_the_copies(copies: tuple[Database, Database]) -> None:
    publisher, subscriber = copies
    assert _rows(subscriber) == {
        "north": [("1", "1")], "south": [("2", "2")], "west": [("3", "3")],
    }  # fmt: skip
    publisher.run("INSERT INTO orders VALUES (5, 'north', 5), (6, 'south', 6)")
    publisher.run("UPDATE orders SET n = n + 10 WHERE id IN (1, 4)")
    publisher.run("UPDATE orders SET region = 'west' WHERE id = 2")
    publisher.run("DELETE FROM orders WHERE id = 3")
    (plan, *_others) = explain_sync(subscriber.session, ["north"])
    (table,) = plan.tables
    assert (table.schema, table.name) == ("gold", "orders_north")
    assert table.published == ("public", "orders")
    assert subscriber.sync() == []
    assert _rows(subscriber) == {
        "north": [("1", "11"), ("5", "5")], "south": [("6", "6")], "west": [("2", "2")],
    }  # fmt: skip
    found = verify(subscriber.session)
    assert [(t.schema, t.name, t.published, t.result) for s in found for t in s.tables] == [
        ("gold", f"orders_{region}", ("public", "orders"), "equal") for region in _REGIONS
    ]
    subscriber.run("DELETE FROM gold.orders_west")
    assert [t.result for s in verify(subscriber.session) for t in s.tables] == [
        "equal", "equal", "different",
    ]  # fmt: skip
    subscriber.run("ALTER SUBSCRIPTION west REFRESH TABLE gold.orders_west")
    assert subscriber.sync() == []
    assert _rows(subscriber)["west"] == [("2", "2")]
    publisher.run("TRUNCATE orders")
    publisher.run("INSERT INTO orders VALUES (7, 'west', 7)")
    assert subscriber.sync() == []
    assert _rows(subscriber) == {"north": [], "south": [], "west": [("7", "7")]}


def test_errors_have_both_names(copies: tuple[Database, Database]) -> None:
    publisher, subscriber = copies
    subscriber.run("INSERT INTO gold.orders_south VALUES (5, 'south', 0)")
    publisher.run("INSERT INTO orders VALUES (5, 'south', 5)")
    (failure,) = subscriber.sync()
    assert failure.error.message == (
        'duplicate key value violates unique constraint "orders_south_pkey"'
    )
    assert (
        'for replication target relation "gold.orders_south" of published relation "public.orders"'
        " in transaction"
    ) in (failure.error.context or "")
    subscriber.run("DELETE FROM gold.orders_south WHERE id = 5")
    assert subscriber.sync() == []
    subscriber.run("ALTER TABLE gold.orders_south DROP COLUMN n")
    publisher.run("INSERT INTO orders VALUES (6, 'south', 5)")
    (failure,) = subscriber.sync()
    assert failure.error.message == (
        'logical replication target relation "gold.orders_south" is missing replicated column: "n"'
    )
    subscriber.run("ALTER TABLE gold.orders_south RENAME TO elsewhere")
    (failure,) = subscriber.sync()
    assert failure.error.message == (
        'logical replication target relation "gold.orders_south" does not exist'
    )
    assert failure.error.detail == 'It is the target of published table "public.orders".'


def test_an_error_of_a_copy_has_both_names(publisher: Database, subscriber: Database) -> None:
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, n int)")
    publisher.run("INSERT INTO t VALUES (1, 1)")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run("CREATE TABLE u (id int PRIMARY KEY)")
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p"
        " WITH (table_map = 't = u')"
    )
    (failure,) = subscriber.sync()
    assert failure.error.message == (
        'logical replication target relation "public.u" is missing replicated column: "n"'
    )
    assert (
        'synchronizing replication target relation "public.u" with published relation "public.t"'
        in (failure.error.context or "")
    )


def test_a_replaced_source_is_mended_by_the_hint(copies: tuple[Database, Database]) -> None:
    publisher, subscriber = copies
    subscriber.run("ALTER SUBSCRIPTION north DISABLE")
    publisher.run("INSERT INTO orders VALUES (8, 'north', 8)")
    publisher.run("SELECT pg_drop_replication_slot('north')")
    subscriber.run("ALTER SUBSCRIPTION north ENABLE")
    (failure,) = subscriber.sync()
    assert failure.error.hint == "ALTER SUBSCRIPTION north REFRESH TABLE gold.orders_north;"
    subscriber.run(failure.error.hint)
    assert subscriber.sync() == []
    assert _rows(subscriber)["north"] == [("1", "1"), ("8", "8")]


def test_a_copy_that_is_begun_goes_to_the_new_target(
    publisher: Database, subscriber: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.run("CREATE TABLE a (id int PRIMARY KEY)")
    publisher.run("INSERT INTO a VALUES (1)")
    publisher.run("CREATE PUBLICATION p FOR TABLE a")
    subscriber.run("CREATE TABLE x (id int PRIMARY KEY)")
    subscriber.run("CREATE TABLE y (id int PRIMARY KEY)")
    subscriber.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p"
        " WITH (table_map = 'a = x')"
    )

    def fail(*arguments: object, **options: object) -> None:
        raise AssertionError("the hand-over fails")

    with monkeypatch.context() as patch:
        patch.setattr("replctl.apply_worker.hand_over", fail)
        with pytest.raises(AssertionError, match="the hand-over fails"):
            subscriber.sync()
    assert subscriber.rows("SELECT srsubstate FROM pg_subscription_rel") == [("f",)]
    subscriber.run("ALTER SUBSCRIPTION s SET (table_map = 'a = y')")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id FROM y") == [("1",)]
    assert subscriber.rows("SELECT id FROM x") == [("1",)]  # that copy was complete
    slots = publisher.rows("SELECT slot_name FROM pg_replication_slots")
    assert slots == [("s",)]


def test_a_dump_makes_the_copies_again(
    cluster: Cluster, engine: Engine, copies: tuple[Database, Database]
) -> None:
    publisher, subscriber = copies
    script = "".join(
        dump_database(subscriber.session, DumpOptions(subscriptions=True, schema_only=True))
    )
    statements = [line for line in script.splitlines() if "table_map = " in line]
    for region in _REGIONS:
        subscriber.run(f"ALTER SUBSCRIPTION {region} DISABLE")
        subscriber.run(f"ALTER SUBSCRIPTION {region} SET (slot_name = NONE)")
        subscriber.run(f"DROP SUBSCRIPTION {region}")
    again = connect(cluster, "again", engine)
    again.run("CREATE SCHEMA gold")
    for region, statement in zip(_REGIONS, statements, strict=True):
        again.run(f"CREATE TABLE gold.orders_{region} (id int PRIMARY KEY, region text, n int)")
        again.run(statement)
        again.run(f"ALTER SUBSCRIPTION {region} ENABLE")
        again.run(f"ALTER SUBSCRIPTION {region} REFRESH PUBLICATION")
    publisher.run("INSERT INTO orders VALUES (9, 'south', 9)")
    assert again.sync() == []
    assert _rows(again) == {
        "north": [("1", "1")], "south": [("2", "2"), ("9", "9")], "west": [("3", "3")],
    }  # fmt: skip


def test_a_table_is_copied_within_its_database(publisher: Database) -> None:
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, n int)")
    publisher.run("ALTER TABLE t REPLICA IDENTITY FULL")
    publisher.run("CREATE TABLE few (id int PRIMARY KEY, n int)")
    publisher.run("INSERT INTO t SELECT i, i FROM generate_series(1, 5) AS i")
    publisher.run("CREATE PUBLICATION p FOR TABLE t WHERE (n > 3)")
    publisher.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p"
        " WITH (table_map = 't = few')"
    )
    assert publisher.sync() == []
    publisher.run("UPDATE t SET n = 9 WHERE id = 1")
    publisher.run("DELETE FROM t WHERE id = 5")
    assert publisher.sync() == []
    assert publisher.rows("SELECT id, n FROM few ORDER BY id") == [("1", "9"), ("4", "4")]
