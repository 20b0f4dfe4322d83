"""A batch, written in part, conflicts with rows that another program has written in the meantime.
replctl undoes the written part.  Then it applies the transactions before the failing one, and no
others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from failed_undo import failed_undo
from fix_replication import Database

from replctl.errors import InternalError
from replctl.injection_point import injection_point
from replctl.lake import batch_apply
from replctl.lake.batch_apply import BatchApply
from replctl.lake.delta_log import latest_version
from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_TABLES = (  # written in this order
    "CREATE TABLE n (id int, v text); CREATE TABLE t (id int PRIMARY KEY, v text);"
    " CREATE TABLE u (id int PRIMARY KEY, v text)"
)
#: The first transaction fits; the second one also changes another table, and fails there.
_FIRST = "INSERT INTO t VALUES (2, 'first'); UPDATE t SET v = 'first' WHERE id = 1"


class Copies:
    """Tables t and u with a key, table n without a key, and their copies."""

    def __init__(self, source: Database, target: Database, engine: Engine) -> None:
        self.source, self.target, self.engine = source, target, engine
        source.run(f"{_TABLES}; ALTER TABLE n REPLICA IDENTITY FULL")
        source.run("CREATE PUBLICATION p FOR ALL TABLES")
        target.run(_TABLES)
        for table in "tun":
            source.run(f"INSERT INTO {table} VALUES (1, 'old')")
        target.run("ALTER SYSTEM SET max_parallel_apply_workers_per_subscription = 0")
        target.run("SELECT pg_reload_conf()")
        target.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
        assert target.sync() == []

    def place(self, table: str) -> str:
        ((path,),) = self.target.rows(f"SELECT pg_relation_filepath('{table}')")
        return str(Path(path or ""))

    def versions(self) -> dict[str, int | None]:
        return {table: latest_version(self.place(table)) for table in "tun"}

    def write_other(self, before: dict[str, int | None], written: str, rows: str) -> str:
        """Let another program write rows into the table of two that is not written yet.  Return its
        name."""
        (other,) = [name for name in written if self.versions()[name] == before[name]]
        self.engine.run(f"INSERT INTO delta.`{self.place(other)}` VALUES {rows}")
        return other

    def rows(self, table: str) -> list[tuple[str | None, ...]]:
        return self.target.rows(f"SELECT * FROM {table} ORDER BY id, v")

    def assert_equal(self) -> None:
        for table in "tun":
            assert self.rows(table) == self.source.rows(f"SELECT * FROM {table} ORDER BY id, v")


def _write_one_table(patch: pytest.MonkeyPatch) -> None:
    """Let a batch fail after its first table is written."""
    write, written = BatchApply._write_table, list[object]()

    def write_first(self: BatchApply, *arguments: Any) -> None:
        if written:
            raise InternalError("not written")
        written.append(self)
        write(self, *arguments)

    patch.setattr(BatchApply, "_write_table", write_first)


def test_what_was_written_before_a_crash_is_undone(
    publisher: Database, subscriber: Database, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = Copies(publisher, subscriber, engine)
    publisher.run(_FIRST)
    publisher.run("BEGIN; INSERT INTO t VALUES (3, 's'); INSERT INTO u VALUES (3, 's'); COMMIT")
    before = copies.versions()
    with monkeypatch.context() as patch:
        _write_one_table(patch)
        assert len(subscriber.sync()) == 1
    other = copies.write_other(before, "tu", "(3, 'foreign')")
    publisher.run("INSERT INTO n VALUES (4, 'later')")

    (failure,) = subscriber.sync()
    assert f'unique constraint "{other}_pkey"' in failure.error.message
    assert "written in part" not in (failure.error.detail or "")
    foreign = [("3", "foreign")]
    assert copies.rows("t") == [("1", "first"), ("2", "first")] + foreign * (other == "t")
    assert copies.rows("u") == [("1", "old")] + foreign * (other == "u")
    subscriber.run(f"DELETE FROM {other} WHERE id = 3")
    assert subscriber.sync() == []
    copies.assert_equal()

    # A table without a key neither loses nor doubles a row
    publisher.run("BEGIN; INSERT INTO n VALUES (4, 'later'); INSERT INTO u VALUES (5, 's'); COMMIT")
    before = copies.versions()
    with monkeypatch.context() as patch:
        _write_one_table(patch)
        assert len(subscriber.sync()) == 1
    assert copies.write_other(before, "nu", "(5, 'foreign')") == "u"
    assert len(subscriber.sync()) == 1
    assert copies.rows("n") == [("1", "old"), ("4", "later")]
    subscriber.run("DELETE FROM u WHERE id = 5")
    assert subscriber.sync() == []
    copies.assert_equal()


def test_what_was_written_meanwhile_is_undone(
    publisher: Database, subscriber: Database, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program writes between two tables of a batch.  Then the transaction is skipped."""
    copies = Copies(publisher, subscriber, engine)
    publisher.run(_FIRST)
    publisher.run("BEGIN; INSERT INTO t VALUES (3, 's'); INSERT INTO u VALUES (3, 's'); COMMIT")
    publisher.run("INSERT INTO t VALUES (4, 'later')")
    before, others = copies.versions(), list[str]()

    def meanwhile(name: str) -> None:
        if name == "apply.after-first-table" and not others:
            others.append(copies.write_other(before, "tu", "(3, 'foreign')"))
        injection_point(name)

    with monkeypatch.context() as patch:
        patch.setattr(batch_apply, "injection_point", meanwhile)
        (failure,) = subscriber.sync()
    (other,) = others
    assert f'unique constraint "{other}_pkey"' in failure.error.message
    foreign = [("3", "foreign")]
    assert copies.rows("t") == [("1", "first"), ("2", "first")] + foreign * (other == "t")
    finish = (failure.error.context or "").rpartition("finished at ")[2]
    subscriber.run(f"ALTER SUBSCRIPTION s SKIP (lsn = '{finish}')")
    assert subscriber.sync() == []
    expected = [("1", "first"), ("2", "first"), *(foreign * (other == "t")), ("4", "later")]
    assert copies.rows("t") == expected
    assert copies.rows("u") == [("1", "old")] + foreign * (other == "u")


def test_columns_that_are_renamed_meanwhile(
    publisher: Database, subscriber: Database, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a write, the owner of a table renames a column, and another column gets its name.
    replctl still undoes the write, and keeps later changes of others."""
    copies = Copies(publisher, subscriber, engine)
    table = f"delta.`{copies.place('t')}`"
    mapping = "'delta.columnMapping.mode' = 'name'"
    engine.run(f"ALTER TABLE {table} SET TBLPROPERTIES ({mapping})")
    publisher.run("INSERT INTO t VALUES (6, 'six'), (7, 'seven')")
    assert subscriber.sync() == []

    publisher.run(
        "BEGIN; UPDATE t SET v = 's' WHERE id < 7; DELETE FROM t WHERE id = 7;"
        " INSERT INTO u VALUES (3, 's'); COMMIT"
    )
    before = copies.versions()
    with monkeypatch.context() as patch:
        _write_one_table(patch)
        assert len(subscriber.sync()) == 1
    assert copies.write_other(before, "tu", "(3, 'foreign')") == "u"
    engine.run(f"ALTER TABLE {table} RENAME COLUMN v TO w")
    engine.run(f"ALTER TABLE {table} ADD COLUMNS (v STRING)")
    engine.run(f"INSERT INTO {table} (id, w, v) VALUES (8, 'foreign', 'other')")
    (failure,) = subscriber.sync()
    assert 'unique constraint "u_pkey"' in failure.error.message
    foreign = (8, "foreign", "other")
    read = f"SELECT id, w, v FROM {table} ORDER BY id"
    before_batch = [(1, "old", None), (6, "six", None), (7, "seven", None), foreign]
    assert engine.rows(read) == before_batch
    subscriber.run("DELETE FROM u WHERE id = 3")
    assert subscriber.sync() == []
    applied = [(1, "s", None), (6, "s", None), foreign]
    assert engine.rows(read) == applied

    # A statement that cannot be undone at once
    with failed_undo(monkeypatch):
        subscriber.run("UPDATE t SET v = 'bad'")
    engine.run(f"ALTER TABLE {table} RENAME COLUMN w TO z")
    subscriber.run("DELETE FROM t WHERE false")
    assert engine.rows(read.replace("w", "z", 1)) == applied
