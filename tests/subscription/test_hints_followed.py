"""The HINTs of subscriptions, followed word for word, end the error."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from fix_replication import Database

from replctl.errors import PostgresError
from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_CREATE = "CREATE SUBSCRIPTION \"My s\" CONNECTION 'dbname=test_pub' PUBLICATION p"
_REFRESH = 'ALTER SUBSCRIPTION "My s" REFRESH TABLE public."My t"'
_AGAIN = "Use DROP SUBSCRIPTION, then CREATE SUBSCRIPTION ... WITH (copy_data = reconcile)."
_ROWS = 'SELECT id, v FROM "My t" ORDER BY id'


class Pair:
    """A published table of six rows, and its copy."""

    def __init__(self, source: Database, target: Database, engine: Engine, options: str) -> None:
        self.source, self.target, self.engine = source, target, engine
        for database in (source, target):
            database.run('CREATE TABLE "My t" (id int PRIMARY KEY, v text)')
        source.run("INSERT INTO \"My t\" SELECT g, 'row ' || g FROM generate_series(1, 6) g")
        source.run('CREATE PUBLICATION p FOR TABLE "My t"')
        target.run(f"{_CREATE} WITH (slot_name = s, {options})")
        assert target.sync() == []

    def folder(self, database: Database) -> Path:
        ((path,),) = database.rows("SELECT pg_relation_filepath('\"My t\"')")
        return Path(path or "")

    def hint(self, message: str) -> str:
        """Return the hint of the error that stops the subscription."""
        (failure,) = self.target.sync()
        assert message in failure.error.message
        assert failure.error.hint is not None
        return failure.error.hint

    def refused(self, statement: str) -> str:
        """Return the hint of a statement that is refused."""
        with pytest.raises(PostgresError) as raised:
            self.target.run(statement)
        assert raised.value.hint is not None
        return raised.value.hint

    def assert_equal(self) -> None:
        """Check that the fault has ended: changes arrive, and the rows are equal."""
        self.source.run("UPDATE \"My t\" SET v = v || '.' WHERE id = 3")
        assert self.target.sync() == []
        assert self.target.rows(_ROWS) == self.source.rows(_ROWS)


def test_one_statement_is_enough_where_the_error_disables_the_subscription(
    publisher: Database, subscriber: Database, engine: Engine
) -> None:
    pair = Pair(publisher, subscriber, engine, "disable_on_error = true")
    target, source = pair.folder(subscriber), pair.folder(publisher)
    engine.run(f"RESTORE TABLE delta.`{target}` TO VERSION AS OF 0")
    hint = pair.hint("were replaced by another program")
    assert hint == f"{_REFRESH} WITH (enabled = true);"
    assert subscriber.sync() == []  # the subscription is disabled
    subscriber.run(hint)
    pair.assert_equal()

    # A file of the target is missing: its rows are replaced
    for path in target.glob("*.parquet"):
        path.unlink()
    publisher.run("UPDATE \"My t\" SET v = 'x' WHERE id = 1")
    hint = pair.hint("does not exist")
    assert hint == f"{_REFRESH} WITH (replace = true, enabled = true);"
    subscriber.run(hint)
    pair.assert_equal()

    # Files of changes are missing, and the newest version does not need them
    publisher.run("INSERT INTO \"My t\" VALUES (7, 'gone')")
    engine.run(f"OPTIMIZE delta.`{source}`")
    kept = {Path(uri).name for uri in _files(engine, source)}
    for path in source.rglob("*.parquet"):
        if path.name not in kept and "_delta_log" not in path.parts:
            path.unlink()
    hint = pair.hint("were removed before they were read")
    assert hint == f"{_REFRESH} WITH (enabled = true);"
    subscriber.run(hint)
    pair.assert_equal()


def _files(engine: Engine, folder: Path) -> list[str]:
    shown = f"delta.`{folder}`"
    return [name for (name,) in engine.rows(f"SELECT DISTINCT _metadata.file_path FROM {shown}")]


def test_hints_of_a_reconcile(publisher: Database, subscriber: Database, engine: Engine) -> None:
    pair = Pair(publisher, subscriber, engine, "resync = manual")
    publisher.run("ALTER PUBLICATION p SET (publish = 'insert')")
    hint = pair.refused(f"{_REFRESH} WITH (delete = all)")
    assert hint == f"{_REFRESH} WITH (delete = none);"
    subscriber.run(hint)
    publisher.run("ALTER PUBLICATION p SET (publish = 'insert, update, delete')")

    # The column of the filter is not sent
    publisher.run(
        "CREATE TABLE u (id int PRIMARY KEY, region int); INSERT INTO u VALUES (1, 1), (2, 2);"
        " CREATE PUBLICATION q FOR TABLE u (id) WHERE (region = 1)"
    )
    subscriber.run("CREATE TABLE u (id int PRIMARY KEY)")
    subscriber.run('ALTER SUBSCRIPTION "My s" ADD PUBLICATION q')
    assert subscriber.sync() == []
    refresh = 'ALTER SUBSCRIPTION "My s" REFRESH TABLE public.u'
    hint = pair.refused(f"{refresh} WITH (delete = scope)")
    assert hint == f"{refresh} WITH (delete = none);"
    subscriber.run(hint)
    pair.assert_equal()
    assert subscriber.rows("TABLE u") == [("1",)]


def test_a_shallow_clone_at_a_source(
    publisher: Database, subscriber: Database, engine: Engine, tmp_path: Path
) -> None:
    """The owner of the table declares that its log can be trusted.  replctl's own table gets the
    files."""
    pair = Pair(publisher, subscriber, engine, "resync_max_delete = 100")
    place = tmp_path / "lake"
    rows = "SELECT id, CONCAT('clone ', id) AS v FROM range(2, 9) r(id)"
    engine.run(f"CREATE TABLE delta.`{tmp_path / 'other'}` USING delta AS {_as_int(rows)}")
    engine.run(f"CREATE TABLE delta.`{place}` (id INT, v STRING) USING delta")
    publisher.run(f"CREATE TABLE \"Lake\" (PRIMARY KEY (id)) USING delta LOCATION '{place}'")
    publisher.run('ALTER PUBLICATION p ADD TABLE "Lake"')
    subscriber.run('CREATE TABLE "Lake" (id int PRIMARY KEY, v text)')
    subscriber.run('ALTER SUBSCRIPTION "My s" REFRESH PUBLICATION')
    assert subscriber.sync() == []

    clone = f"SHALLOW CLONE delta.`{tmp_path / 'other'}`"
    engine.run(f"CREATE OR REPLACE TABLE delta.`{place}` {clone}")
    hint = pair.hint("is outside the directory of table")
    assert hint.endswith(
        ': in database "test_pub", use ALTER TABLE public."Lake" SET (foreign_files = on);'
    )
    publisher.run(hint.partition("use ")[2])
    pair.assert_equal()
    shown = 'SELECT * FROM "Lake" ORDER BY id'
    assert subscriber.rows(shown) == publisher.rows(shown)

    source = pair.folder(publisher)
    engine.run(f"DELETE FROM delta.`{source}`")
    engine.run(f"CREATE OR REPLACE TABLE delta.`{source}` {clone}")
    engine.run(pair.hint("is outside the directory of table").partition("use Spark: ")[2])
    subscriber.run(pair.hint("was replaced or restored"))
    pair.assert_equal()


def _as_int(rows: str) -> str:
    return f"SELECT CAST(id AS INT) AS id, v FROM ({rows})"


def test_subscriptions_that_are_made_again(
    publisher: Database, subscriber: Database, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Pair(publisher, subscriber, engine, "binary = false")
    ((origin,),) = subscriber.rows("SELECT 'pg_' || oid FROM pg_subscription")

    # Sync finishes the work that a crash has left unfinished, and then the statement works
    publisher.run("INSERT INTO \"My t\" VALUES (8, 'half')")
    with monkeypatch.context() as patch:
        patch.setenv("REPLCTL_INJECTION_POINT", "apply.before-progress:error")
        patch.setattr("replctl.injection_point._visits", Counter())
        assert len(subscriber.sync()) == 1
    alter = 'ALTER TABLE "My t" ALTER COLUMN id TYPE bigint'
    hint = pair.refused('DROP SUBSCRIPTION "My s"')
    assert hint is not None
    assert hint.startswith("Finish them with \\sync, or give them up")
    assert pair.refused(alter) == "Synchronize the subscription first."
    assert subscriber.sync() == []
    subscriber.run(alter)
    pair.assert_equal()

    # The publisher's log ends before the applied position
    subscriber.run('ALTER SUBSCRIPTION "My s" DISABLE')
    subscriber.run(f"SELECT pg_replication_origin_advance('{origin}', 'FF/0')")
    subscriber.run('ALTER SUBSCRIPTION "My s" ENABLE')
    hint = pair.hint("is ahead of the WAL flush position")
    assert hint == f"{_REFRESH};"
    subscriber.run(hint)
    pair.assert_equal()

    # Another writer has taken the transaction identifier of the subscription
    ((oid,),) = subscriber.rows("SELECT oid FROM pg_subscription")
    ((relid,),) = subscriber.rows("SELECT '\"My t\"'::regclass::oid")
    application = f"replctl-{subscriber.session.cluster.system_identifier}-{oid}-{relid}"
    _forge(pair, application)
    publisher.run("UPDATE \"My t\" SET v = 'forged' WHERE id = 2")
    assert pair.hint("was not carried out") == _AGAIN
    subscriber.run('DROP SUBSCRIPTION "My s"')
    subscriber.run(f"{_CREATE} WITH (slot_name = s, copy_data = reconcile)")
    pair.assert_equal()


def _forge(pair: Pair, application: str) -> None:
    """Write a commit that marks all steps of a subscription as done."""
    log = pair.folder(pair.target) / "_delta_log"
    version = max(int(path.stem) for path in log.glob("*.json")) + 1
    actions = [
        {"commitInfo": {"timestamp": 0, "operation": "WRITE"}},
        {"txn": {"appId": application, "version": 2**62 + 1}},
    ]
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (log / f"{version:020d}.json").write_text(text)


@pytest.mark.parametrize("option", ["replace = true", "delete = all"])
def test_copies_that_remove_rows_of_another_subscription(
    publisher: Database, subscriber: Database, option: str
) -> None:
    publisher.run(
        "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2), (11), (12);"
        " CREATE PUBLICATION low FOR TABLE t WHERE (id < 10);"
        " CREATE PUBLICATION high FOR TABLE t WHERE (id >= 10)"
    )
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY)")
    for name in ("low", "high"):
        subscriber.run(
            f"CREATE SUBSCRIPTION {name} CONNECTION 'dbname=test_pub' PUBLICATION {name}"
        )
    assert subscriber.sync() == []
    publisher.run("DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (3)")
    subscriber.run(f"ALTER SUBSCRIPTION high REFRESH TABLE t WITH ({option})")
    subscriber.sync()
    (failure,) = subscriber.sync()
    assert failure.subscription == "low"
    assert failure.error.message == (
        'rows of target table "public.t" were replaced by another copy'
    )
    assert failure.error.hint is not None
    subscriber.run(failure.error.hint)
    assert subscriber.sync() == []
    rows = "SELECT id FROM t ORDER BY id"
    assert subscriber.rows(rows) == publisher.rows(rows)


def test_values_that_the_owner_has_widened(
    publisher: Database, subscriber: Database, engine: Engine, tmp_path: Path
) -> None:
    """The copy has columns of the types that the published columns had when it was made."""
    table = f"delta.`{tmp_path / 't'}`"
    engine.run(
        f"CREATE TABLE {table} (id INT, n INT, D DECIMAL(4,1)) USING delta"
        " TBLPROPERTIES (delta.enableTypeWidening = true)"
    )
    engine.run(f"INSERT INTO {table} VALUES (1, 1, 1)")
    publisher.run(f"CREATE TABLE t (PRIMARY KEY (id)) USING delta LOCATION '{tmp_path / 't'}'")
    publisher.run("CREATE PUBLICATION p FOR TABLE t")
    subscriber.run('CREATE TABLE t (id int PRIMARY KEY, n int, "D" numeric(4,1))')
    subscriber.run(f"{_CREATE} WITH (slot_name = s, disable_on_error = true)")
    assert subscriber.sync() == []
    engine.run(f"ALTER TABLE {table} ALTER COLUMN n TYPE BIGINT")
    engine.run(f"ALTER TABLE {table} ALTER COLUMN D TYPE DECIMAL(8,1)")
    engine.run(f"UPDATE {table} SET n = 30000000000, D = 12345.5 WHERE id = 1")
    for column, wider in (("n", "bigint"), ('"D"', "numeric(8,1)")):
        (failure,) = subscriber.sync()
        assert failure.error.sqlstate == "22003"
        hint = failure.error.hint or ""
        assert hint == (
            f"Use ALTER TABLE public.t ALTER COLUMN {column} TYPE {wider};"
            ' ALTER SUBSCRIPTION "My s" ENABLE;'
        )
        subscriber.run(hint.removeprefix("Use "))
    assert subscriber.sync() == []
    rows = engine.rows(f"SELECT * FROM delta.`{subscriber.location()}`")
    assert rows == engine.rows(f"SELECT * FROM {table}")
