"""Some tables are synchronized while others are ready."""

from __future__ import annotations

from collections import Counter

import pytest
from fix_replication import Database, connect
from follow_hint import follow_hint
from patience import wait_until

from replctl import apply_worker
from replctl.catalog.cluster import Cluster
from replctl.errors import InternalError, PostgresError, SerializationFailure
from replctl.lake.delta_log import commits_after, latest_version
from replctl.relation_name import RelationName
from replctl.replication.subscription_run import SubscriptionRun
from replctl.replication.tablesync import synchronize
from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

CONNECTION = "CONNECTION 'host=localhost dbname=test_pub'"
_TABLES = """
CREATE TABLE first (id int PRIMARY KEY, v int);
CREATE TABLE second (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
CREATE TABLE second_low PARTITION OF second FOR VALUES FROM (MINVALUE) TO (50);
CREATE TABLE second_high PARTITION OF second FOR VALUES FROM (50) TO (MAXVALUE);
"""
_STATES = (
    "SELECT relname, srsubstate FROM pg_subscription_rel JOIN pg_class ON oid = srrelid"
    " ORDER BY relname"
)
_OWN_SLOTS = (
    "SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE 'pg!_%!_sync!_%' ESCAPE '!'"
)


def _subscribe(publisher: Database, subscriber: Database, rows: str) -> None:
    publisher.run(_TABLES)
    publisher.run(rows)
    publisher.run("CREATE PUBLICATION p FOR ALL TABLES WITH (publish_via_partition_root)")
    subscriber.run(_TABLES)


def _assert_equal(publisher: Database, subscriber: Database) -> None:
    for table in ("first", "second"):
        query = f"SELECT id, v FROM {table} ORDER BY id"
        assert subscriber.rows(query) == publisher.rows(query)


def test_a_copy_that_fails_stops_its_table_alone(publisher: Database, subscriber: Database) -> None:
    _subscribe(publisher, subscriber, "INSERT INTO second VALUES (1, 1), (60, -1)")
    subscriber.run("ALTER TABLE second ADD CHECK (v > 0)")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    (failure,) = subscriber.sync()
    assert "violates check constraint" in failure.error.message
    assert subscriber.rows(_STATES) == [("first", "r"), ("second", "d")]
    assert subscriber.rows(_OWN_SLOTS) == [("1",)]
    publisher.run("INSERT INTO first VALUES (1, 1)")
    publisher.run("INSERT INTO second VALUES (2, 2)")
    assert len(subscriber.sync()) == 1
    assert subscriber.rows("SELECT id FROM first") == [("1",)]
    assert subscriber.rows("SELECT id FROM second") == []
    assert subscriber.rows("SELECT sync_error_count FROM pg_stat_subscription_stats") == [("2",)]
    subscriber.run("ALTER TABLE second DROP CONSTRAINT second_v_check")
    assert subscriber.sync() == []
    _assert_equal(publisher, subscriber)
    assert subscriber.rows(_STATES) == [("first", "r"), ("second", "r")]
    assert subscriber.rows(_OWN_SLOTS) == [("0",)]
    assert len(subscriber.rows("SELECT roname FROM pg_replication_origin")) == 1


def test_a_table_catches_up_by_itself(
    publisher: Database, subscriber: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apply continues while the other table stops between its copy and the handover."""
    _subscribe(publisher, subscriber, "INSERT INTO second VALUES (1, 1), (2, 2), (60, 60)")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    for point, changes in (
        ("after-finishedcopy", "UPDATE second SET id = 101 - id WHERE id < 50"),
        ("before-syncdone", "TRUNCATE second; INSERT INTO second VALUES (3, 3), (70, 70)"),
    ):
        monkeypatch.setenv("REPLCTL_INJECTION_POINT", f"tablesync.{point}:error")
        failures = subscriber.sync()
        assert [failure.error.message for failure in failures] == [f"injected at tablesync.{point}"]
        monkeypatch.delenv("REPLCTL_INJECTION_POINT")
        assert subscriber.rows(
            "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate = 'f'"
        ) == [("1",)]
        publisher.run("INSERT INTO first SELECT coalesce(max(id), 0) + 1, 0 FROM first")
        publisher.run(changes)
    publisher.run("UPDATE second SET v = v + 1")
    assert subscriber.sync() == []
    _assert_equal(publisher, subscriber)


def test_changes_of_ready_tables_do_not_wait_for_a_copy(
    publisher: Database, subscriber: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.run(_TABLES)
    publisher.run("CREATE PUBLICATION p FOR TABLE first")
    subscriber.run(_TABLES)
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("ALTER PUBLICATION p ADD TABLE second_low, second_high")
    publisher.run("INSERT INTO second VALUES (1, 1), (60, 60)")
    subscriber.run("ALTER SUBSCRIPTION s REFRESH PUBLICATION")
    publisher.run("INSERT INTO first VALUES (1, 1)")
    seen = []

    def synchronize_late(run: SubscriptionRun, name: RelationName) -> None:
        wait_until(lambda: bool(subscriber.rows("SELECT 1 FROM first")))
        seen.append(subscriber.rows("SELECT id FROM first"))
        synchronize(run, name)

    monkeypatch.setattr(apply_worker, "_PATIENCE", 0.1)
    monkeypatch.setattr(apply_worker, "synchronize", synchronize_late)
    assert subscriber.sync() == []
    assert seen == [[("1",)], [("1",)]]
    _assert_equal(publisher, subscriber)


def test_a_subscription_that_is_dropped_leaves_no_half_copy(
    publisher: Database, subscriber: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    _subscribe(publisher, subscriber, "INSERT INTO second VALUES (1, 1), (60, 60)")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    monkeypatch.setenv("REPLCTL_INJECTION_POINT", "tablesync.after-copy:error")
    assert len(subscriber.sync()) == 1
    monkeypatch.delenv("REPLCTL_INJECTION_POINT")
    assert subscriber.rows("SELECT id FROM second") == []
    subscriber.run("DROP SUBSCRIPTION s")
    subscriber.run("INSERT INTO second VALUES (2, 2)")
    assert subscriber.rows("SELECT id FROM second") == [("2",)]
    assert subscriber.rows("SELECT slot_name FROM pg_replication_slots") == []
    assert subscriber.rows("SELECT roname FROM pg_replication_origin") == []


@pytest.mark.parametrize("is_reconcile", [False, True])
def test_rows_that_another_program_replaces_before_the_copy_ends(
    publisher: Database,
    subscriber: Database,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_reconcile: bool,
) -> None:
    """An interrupted copy has written the table.  Another program restores an empty version."""
    for database in (publisher, subscriber):
        database.run("CREATE TABLE loose (a int); INSERT INTO loose VALUES (0); DELETE FROM loose")
    ((path,),) = subscriber.rows("SELECT pg_relation_filepath('loose')")
    empty = latest_version(path or "")
    publisher.run("INSERT INTO loose VALUES (1), (2)")
    publisher.run("CREATE PUBLICATION p FOR TABLE loose")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    if is_reconcile:
        assert subscriber.sync() == []
        publisher.run("INSERT INTO loose VALUES (3)")
        subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE loose")
    with monkeypatch.context() as patch:
        patch.setenv("REPLCTL_INJECTION_POINT", "tablesync.after-copy:error")
        patch.setattr("replctl.injection_point._visits", Counter())
        assert len(subscriber.sync()) == 1
    assert subscriber.rows(_STATES) == [("loose", "d")]
    engine.run(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF {empty}")
    failures = subscriber.sync()
    if not is_reconcile:
        (failure,) = failures
        assert failure.error.message == (
            'rows of target table "public.loose" were replaced by another program'
        )
        follow_hint(failure.error.hint, subscriber, lambda _name: publisher)
        failures = subscriber.sync()
    assert failures == []
    query = "SELECT a FROM loose ORDER BY a"
    assert subscriber.rows(query) == publisher.rows(query)


def test_tables_are_synchronized_again(
    cluster: Cluster, publisher: Database, subscriber: Database, engine: Engine
) -> None:
    """REFRESH TABLE WITH (replace) replaces the rows of each table in one commit.  It also replaces
    changes of the subscriber, and the subscriber's own subscribers receive them.  A table that
    leaves a publication and comes back is also copied again."""
    publisher.run(_TABLES)
    publisher.run("INSERT INTO first SELECT g, g FROM generate_series(1, 6) g")
    publisher.run("INSERT INTO second VALUES (1, 1), (2, 2), (60, 60), (61, 61)")
    publisher.run("CREATE PUBLICATION one FOR TABLE first WHERE (id < 100)")
    publisher.run("CREATE PUBLICATION two FOR TABLE second")
    publisher.run("ALTER PUBLICATION two SET (publish_via_partition_root)")
    subscriber.run(_TABLES)
    subscriber.run("ALTER TABLE first ADD own int DEFAULT 7; CREATE TABLE other (a int)")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION one, two")
    subscriber.run("CREATE PUBLICATION on_ FOR TABLE first, second_low, second_high")
    down = connect(cluster, "test_down", engine)
    down.run(_TABLES)
    down.run("ALTER TABLE first ADD own int")
    down.run("CREATE SUBSCRIPTION d CONNECTION 'dbname=test_sub' PUBLICATION on_")
    assert subscriber.sync() == []

    for table, message in (
        ("nowhere", 'relation "nowhere" does not exist'),
        ("other", 'relation "other" is not part of the subscription'),
        ("second_low", 'relation "second_low" is not part of the subscription'),
    ):
        with pytest.raises(PostgresError) as raised:
            subscriber.run(f"ALTER SUBSCRIPTION s REFRESH TABLE {table} WITH (copy_data = true)")
        assert raised.value.message == message

    subscriber.run("DELETE FROM first WHERE id = 1; UPDATE first SET v = -1, own = 8 WHERE id = 2")
    subscriber.run("INSERT INTO first VALUES (99, 99)")
    subscriber.run("DELETE FROM second WHERE id > 2; UPDATE second SET id = 70 WHERE id = 1")
    ((path,),) = subscriber.rows("SELECT pg_relation_filepath('first')")
    assert path is not None
    before = latest_version(path)
    subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE public.first, second WITH (replace)")
    assert subscriber.rows(_STATES) == [("first", "i"), ("second", "i")]
    assert subscriber.rows("SELECT count(*) FROM first") == [("6",)]
    publisher.run("INSERT INTO first VALUES (7, 7), (100, 100); DELETE FROM first WHERE id = 3")
    assert subscriber.sync() == []
    (operation,) = [
        commit.operation for commit in commits_after(path, before or 0) if commit.changes_data
    ]
    assert operation == "WRITE"
    assert subscriber.rows(_STATES) == [("first", "r"), ("second", "r")]
    expected = [(str(i), str(i), "7") for i in (1, 2, 4, 5, 6, 7)]
    for node in (subscriber, down):
        assert node.rows("SELECT id, v, own FROM first ORDER BY id") == expected
        assert node.rows("SELECT id, v FROM second ORDER BY id") == publisher.rows(
            "SELECT id, v FROM second ORDER BY id"
        )

    publisher.run("UPDATE first SET v = 0 WHERE id < 3")
    subscriber.run("ALTER SUBSCRIPTION s DROP PUBLICATION one")
    assert subscriber.sync() == []
    subscriber.run("TRUNCATE first")
    publisher.run("DELETE FROM second WHERE id = 1; INSERT INTO first VALUES (8, 8)")
    subscriber.run("ALTER SUBSCRIPTION s ADD PUBLICATION one")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT id, v FROM first ORDER BY id") == publisher.rows(
        "SELECT id, v FROM first WHERE id < 100 ORDER BY id"
    )
    assert down.rows("SELECT id FROM first ORDER BY id") == subscriber.rows(
        "SELECT id FROM first ORDER BY id"
    )


def test_a_copy_of_many_rows_with_a_value_twice(publisher: Database, subscriber: Database) -> None:
    publisher.run(
        "CREATE TABLE many (id int PRIMARY KEY, code int);"
        " INSERT INTO many SELECT g, CASE WHEN g = 2500 THEN 7 ELSE g END"
        " FROM generate_series(1, 2500) g;"
        " CREATE PUBLICATION p FOR TABLE many"
    )
    subscriber.run("CREATE TABLE many (id int PRIMARY KEY, code int UNIQUE)")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")

    (failure,) = subscriber.sync()
    assert failure.error.message == (
        'duplicate key value violates unique constraint "many_code_key"'
    )
    assert failure.error.detail == "Key (code)=(7) already exists."
    assert subscriber.rows("SELECT count(*) FROM many") == [("0",)]

    publisher.run("UPDATE many SET code = 2500 WHERE id = 2500")
    assert subscriber.sync() == []
    assert subscriber.rows("SELECT count(*), sum(code) FROM many") == [("2500", "3126250")]


def _make_partitions(database: Database) -> None:
    database.run(
        "CREATE TABLE loose (a int) PARTITION BY RANGE (a);"
        "CREATE TABLE low PARTITION OF loose FOR VALUES FROM (0) TO (50);"
        "CREATE TABLE high PARTITION OF loose FOR VALUES FROM (50) TO (100)"
    )


@pytest.mark.parametrize("own", ["2", "98"])
def test_a_statement_undoes_a_half_copy(
    publisher: Database, subscriber: Database, monkeypatch: pytest.MonkeyPatch, own: str
) -> None:
    """The copy has written `low`, and not yet `high`."""
    _make_partitions(publisher)
    _make_partitions(subscriber)
    publisher.run("INSERT INTO loose VALUES (1), (60)")
    publisher.run("CREATE PUBLICATION p FOR TABLE loose WITH (publish_via_partition_root)")
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    query = "SELECT a FROM loose ORDER BY a"
    with monkeypatch.context() as patch:
        patch.setenv("REPLCTL_INJECTION_POINT", "tablesync.after-copy:error")
        patch.setattr("replctl.injection_point._visits", Counter())
        assert len(subscriber.sync()) == 1
    subscriber.run(f"INSERT INTO loose VALUES ({own}), (7); UPDATE loose SET a = 8 WHERE a = 7")
    assert subscriber.rows(query) == sorted([(own,), ("8",)], key=lambda row: int(row[0]))
    assert subscriber.sync() == []
    assert subscriber.rows(query) == [(str(a),) for a in sorted([1, 8, 60, int(own)])]


def test_a_copy_with_a_new_step_writes_a_shared_partition_once(
    publisher: Database, subscriber: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables `loose` and `low` share a partition.  The copy of `low` begins after that of `loose`
    and ends before it, so that of `loose` needs a new step.  Then another program commits first."""
    publisher.run("CREATE TABLE loose (a int); CREATE TABLE low (a int)")
    publisher.run("INSERT INTO loose VALUES (1), (60); INSERT INTO low VALUES (2)")
    publisher.run("CREATE PUBLICATION p FOR TABLE loose, low")
    _make_partitions(subscriber)
    subscriber.run(f"CREATE SUBSCRIPTION s {CONNECTION} PUBLICATION p")
    wanted = ["loose"]

    def synchronize_wanted(run: SubscriptionRun, name: RelationName) -> None:
        if name.name not in wanted:
            raise InternalError("not yet")
        synchronize(run, name)

    with monkeypatch.context() as patch:
        patch.setattr(apply_worker, "synchronize", synchronize_wanted)
        patch.setenv("REPLCTL_INJECTION_POINT", "tablesync.after-snapshot:error")
        patch.setattr("replctl.injection_point._visits", Counter())
        assert len(subscriber.sync()) == 1
        patch.delenv("REPLCTL_INJECTION_POINT")
        wanted[:] = ["low"]
        assert len(subscriber.sync()) == 1
    assert subscriber.rows(_STATES) == [("loose", "d"), ("low", "r")]
    visits = Counter[str]()

    def lose_once(name: str) -> None:
        visits[name] += 1
        if name == "tablesync.after-copy" and visits[name] == 1:
            raise SerializationFailure("could not serialize access due to concurrent update")

    with monkeypatch.context() as patch:
        patch.setattr("replctl.lake.target_copy.injection_point", lose_once)
        assert subscriber.sync() == []
    assert visits["tablesync.before-write"] == 2
    assert subscriber.rows("SELECT a FROM loose ORDER BY a") == [("1",), ("2",), ("60",)]
