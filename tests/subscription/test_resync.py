"""resync = auto reconciles a table with which a subscription cannot continue, if all its rows are
the subscription's own."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from fix_replication import Database

from replctl.errors import Notice, PostgresError
from replctl.lake.delta_log import latest_version
from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_STATES = (
    "SELECT relname, srsubstate FROM pg_subscription_rel JOIN pg_class ON oid = srrelid"
    " ORDER BY relname"
)


class Copy:
    """Table t of twenty rows, which its owner keeps at a place, and its copy.  u is another
    table."""

    def __init__(
        self, source: Database, target: Database, engine: Engine, folder: Path, *options: str
    ) -> None:
        self.source, self.target, self.engine = source, target, engine
        self.location, self.backup = folder / "lake", folder / "backup"
        self.warnings: list[Notice] = []
        target.session.on_notice = self._note
        source.run(
            f"CREATE TABLE t (id int PRIMARY KEY, v text) USING delta LOCATION '{self.location}';"
            " CREATE TABLE u (id int PRIMARY KEY);"
            " INSERT INTO t SELECT g, 'row ' || g FROM generate_series(1, 20) g;"
            " CREATE PUBLICATION p FOR TABLE t, u"
        )
        target.run(
            "CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE u (id int PRIMARY KEY)"
        )
        target.run(
            "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p"
            f" WITH ({', '.join(['resync = auto', *options])})"
        )
        assert target.sync() == []
        shutil.copytree(self.location, self.backup)
        self.warnings.clear()

    def _note(self, notice: Notice) -> None:
        if notice.severity == "WARNING":
            self.warnings.append(notice)

    def put_back(self) -> None:
        """Restore the table from a backup, which breaks its chain of versions."""
        self.source.run("UPDATE t SET v = 'before' WHERE id = 1")
        shutil.rmtree(self.location)
        shutil.copytree(self.backup, self.location)

    def write(self, statement: str) -> None:
        """Write the table as a program without knowledge of replctl does."""
        self.engine.run(statement.replace("{t}", f"delta.`{self.location}`"))

    def write_copy(self, statement: str) -> None:
        """Write the copy as a program without knowledge of replctl does."""
        ((path,),) = self.target.rows("SELECT pg_relation_filepath('t')")
        version = latest_version(path or "")
        found = statement.replace("{t}", f"delta.`{path}`").replace("{v}", str(version))
        self.engine.run(found)

    def assert_equal(self) -> None:
        for table in ("t", "u"):
            query = f"SELECT * FROM {table} ORDER BY id"
            assert self.target.rows(query) == self.source.rows(query)

    @property
    def messages(self) -> list[str]:
        return [f"{warning.severity}: {warning.message}" for warning in self.warnings]


_AGAIN = 'WARNING: table "public.t" of subscription "s" is synchronized again'


def test_what_is_the_subscriptions_own_is_reconciled_by_itself(
    publisher: Database, subscriber: Database, engine: Engine, tmp_path: Path
) -> None:
    copy = Copy(publisher, subscriber, engine, tmp_path, "disable_on_error = true")
    # The chain of versions is broken
    copy.put_back()
    copy.write("DELETE FROM {t} WHERE id = 2")
    publisher.run("INSERT INTO u VALUES (1)")
    assert subscriber.sync() == []
    assert copy.messages == [_AGAIN]
    assert copy.warnings[0].sqlstate == "01000"
    assert 'table "public.t" was replaced or restored' in (copy.warnings[0].detail or "")
    copy.assert_equal()

    # A file with changes is missing; the newest version does not need it
    copy.warnings.clear()
    copy.write("ALTER TABLE {t} SET TBLPROPERTIES (delta.enableChangeDataFeed = false)")
    known = set(copy.location.glob("*.parquet"))
    copy.write("INSERT INTO {t} VALUES (21, 'gone')")
    gone = set(copy.location.glob("*.parquet")) - known
    # After this version, no end of a range needs the file
    copy.write("ALTER TABLE {t} SET TBLPROPERTIES ('joined' = 'false')")
    copy.write("DELETE FROM {t} WHERE id = 21")
    copy.write("OPTIMIZE {t}")
    for path in gone:
        path.unlink()
    assert subscriber.sync() == []
    assert copy.messages == [_AGAIN]
    copy.assert_equal()
    assert subscriber.rows("SELECT subenabled FROM pg_subscription") == [("t",)]


def test_too_many_rows_are_not_deleted_without_being_asked(
    publisher: Database, subscriber: Database, engine: Engine, tmp_path: Path
) -> None:
    """The owner may have emptied the table in order to load it again."""
    copy = Copy(publisher, subscriber, engine, tmp_path, "resync_max_delete = 15")
    copy.put_back()
    copy.write("DELETE FROM {t} WHERE id > 16")
    publisher.run("INSERT INTO u VALUES (1)")
    (failure,) = subscriber.sync()
    error = failure.error
    assert error.sqlstate == "55000"
    assert error.message == (
        'table "public.t" cannot be reconciled automatically: 4 of its 20 rows would be deleted'
    )
    assert "more than 15 percent, which resync_max_delete allows" in (error.detail or "")
    assert error.hint == "ALTER SUBSCRIPTION s REFRESH TABLE public.t;"
    assert subscriber.rows("SELECT count(*) FROM t") == [("20",)]
    assert subscriber.rows("TABLE u") == [("1",)]  # the other tables continue

    # The HINT helps, and so does a load of the rows by the owner
    subscriber.run(error.hint)
    assert subscriber.sync() == []
    copy.assert_equal()
    copy.put_back()
    copy.write("DELETE FROM {t}")
    assert "16 of its 16 rows" in subscriber.sync()[0].error.message
    copy.write("INSERT INTO {t} SELECT id, 'again' FROM range(3, 25) r(id)")
    assert subscriber.sync() == []
    copy.assert_equal()


def test_rows_that_others_have_changed_are_not_touched_without_being_asked(
    publisher: Database, subscriber: Database, engine: Engine, tmp_path: Path
) -> None:
    copy = Copy(publisher, subscriber, engine, tmp_path)
    copy.write_copy("INSERT INTO {t} VALUES (100, 'local')")
    copy.put_back()
    (failure,) = subscriber.sync()
    assert "Others have changed rows of the table" in (failure.error.detail or "")
    assert failure.error.hint == "ALTER SUBSCRIPTION s REFRESH TABLE public.t;"
    assert copy.messages == []
    subscriber.run(failure.error.hint)
    subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE t WITH (delete = all)")
    assert subscriber.sync() == []
    copy.assert_equal()

    # RESTORE is a change by others; after TRUNCATE all rows belong to the subscription again
    publisher.run("UPDATE t SET v = 'new' WHERE id = 3")
    assert subscriber.sync() == []
    copy.write_copy("RESTORE TABLE {t} TO VERSION AS OF 0")
    (failure,) = subscriber.sync()
    assert "were replaced by another program" in failure.error.message
    assert "Others have changed rows of the table" in (failure.error.detail or "")
    subscriber.run("TRUNCATE t")
    assert subscriber.sync() == []
    assert copy.messages == [_AGAIN]
    copy.assert_equal()


def test_a_table_that_catches_up_is_reconciled_too(
    publisher: Database,
    subscriber: Database,
    engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The table is in state f, with a fault on either side.  Without auto, REFRESH TABLE ends the
    fault."""
    copy = Copy(publisher, subscriber, engine, tmp_path, "resync_max_delete = 100")
    for step, resync in enumerate(("auto", "manual")):
        subscriber.run(f"ALTER SUBSCRIPTION s SET (resync = {resync})")
        subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE t")
        with monkeypatch.context() as patch:
            patch.setenv("REPLCTL_INJECTION_POINT", "tablesync.after-finishedcopy:error")
            patch.setattr("replctl.injection_point._visits", Counter())
            assert len(subscriber.sync()) == 1
        assert ("t", "f") in subscriber.rows(_STATES)
        publisher.run("UPDATE t SET v = 'lost' WHERE id = 4")
        if step == 0:
            shutil.rmtree(copy.location)
            shutil.copytree(copy.backup, copy.location)
            assert subscriber.sync() == []
            assert copy.messages == [_AGAIN]
        else:
            copy.write_copy("INSERT OVERWRITE {t} VALUES (1, 'alone')")
            publisher.run("INSERT INTO u VALUES (9)")
            (failure,) = subscriber.sync()
            assert "were replaced by another program" in failure.error.message
            with pytest.raises(PostgresError, match="is being synchronized") as raised:
                subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE t WITH (copy_data = false)")
            assert (
                raised.value.hint
                == "Finish the synchronization with \\sync, then repeat the command."
            )
            assert ("t", "f") in subscriber.rows(_STATES)
            assert subscriber.rows("TABLE u") == [("9",)]
            assert failure.error.hint == "ALTER SUBSCRIPTION s REFRESH TABLE public.t;"
            subscriber.run(failure.error.hint)
            assert subscriber.sync() == []
            subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE t WITH (copy_data = false)")
        copy.assert_equal()


def test_a_reconcile_that_is_written_in_part_ends_when_its_source_is_gone(
    publisher: Database, subscriber: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two partitions is written.  Then VACUUM removes the files of the published rows."""
    parts = (
        "CREATE TABLE parted (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);"
        " CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (50);"
        " CREATE TABLE high PARTITION OF parted FOR VALUES FROM (50) TO (100);"
    )
    publisher.run(f"{parts} INSERT INTO parted SELECT g, g FROM generate_series(0, 99, 10) g")
    publisher.run("CREATE PUBLICATION p FOR TABLE parted WITH (publish_via_partition_root)")
    subscriber.run(parts)
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    subscriber.run("UPDATE parted SET v = -1")
    subscriber.run("ALTER SUBSCRIPTION s REFRESH TABLE parted")
    with monkeypatch.context() as patch:
        patch.setenv("REPLCTL_INJECTION_POINT", "tablesync.after-copy:error")
        patch.setattr("replctl.injection_point._visits", Counter())
        assert len(subscriber.sync()) == 1
    assert subscriber.rows(_STATES) == [("parted", "d")]
    publisher.run("UPDATE parted SET v = v + 1")
    for table in ("low", "high"):
        ((path,),) = publisher.rows(f"SELECT pg_relation_filepath('{table}')")
        folder = Path(path or "")
        newest = publisher.session.engine().rows(
            f"SELECT DISTINCT _metadata.file_name FROM delta.`{folder}`"
        )
        kept = {name for (name,) in newest}
        for file in folder.glob("*.parquet"):
            if file.name not in kept:
                file.unlink()
    assert subscriber.sync() == []
    query = "SELECT id, v FROM parted ORDER BY id"
    assert subscriber.rows(query) == publisher.rows(query)


def test_a_batch_that_is_written_in_part_continues_without_the_table(
    publisher: Database,
    subscriber: Database,
    engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The changes of the table can no longer be read.  The changes of the other table in the batch
    can be read."""
    copy = Copy(publisher, subscriber, engine, tmp_path)
    copy.write("UPDATE {t} SET v = 'half' WHERE id < 4")
    publisher.run("INSERT INTO u VALUES (7)")
    with monkeypatch.context() as patch:
        patch.setenv("REPLCTL_INJECTION_POINT", "apply.before-progress:error")
        patch.setattr("replctl.injection_point._visits", Counter())
        assert len(subscriber.sync()) == 1
    copy.warnings.clear()
    shutil.rmtree(copy.location)
    shutil.copytree(copy.backup, copy.location)
    copy.write("UPDATE {t} SET v = 'put back' WHERE id = 5")
    assert subscriber.sync() == []
    assert copy.messages == [_AGAIN]
    copy.assert_equal()
    copy.write("DELETE FROM {t} WHERE id = 6")
    publisher.run("INSERT INTO u VALUES (8)")
    assert subscriber.sync() == []
    copy.assert_equal()
