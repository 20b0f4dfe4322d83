"""A batch that cannot be finished stops its subscription, and statements that write its tables."""

from __future__ import annotations

import pytest
from failed_undo import failed_undo
from fix_replication import Database

from replctl.errors import (
    IoError,
    Notice,
    ObjectNotInPrerequisiteState,
)

pytestmark = pytest.mark.spark

_ROWS = "SELECT * FROM t ORDER BY id"
_REFRESH = "ALTER SUBSCRIPTION s REFRESH TABLE public.t"


def _fail(name: str) -> None:
    if name == "apply.after-tables":
        raise IoError("could not write a file", hint=f"{_REFRESH};")


def test_an_unfinished_batch_stops_no_other_writer(
    publisher: Database, subscriber: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, v text); CREATE PUBLICATION p FOR TABLE t")
    publisher.run("INSERT INTO t VALUES (1, 'a')")
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE own (a int)")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("INSERT INTO t VALUES (2, 'b')")
    with monkeypatch.context() as patch:
        patch.setattr("replctl.lake.batch_apply.injection_point", _fail)
        (failure,) = subscriber.sync()
        assert failure.error.detail is not None
        assert failure.error.detail.endswith(
            'Changes of table "public.t" of database "test_sub" are written in part.'
        )
        publisher.run("INSERT INTO t VALUES (3, 'c')")
        subscriber.run("INSERT INTO own VALUES (1)")
        subscriber.run("VACUUM")
        assert subscriber.rows(_ROWS) == [("1", "a")]  # as before the batch
        with pytest.raises(ObjectNotInPrerequisiteState, match=r"public[.]t") as caught:
            subscriber.run("INSERT INTO t VALUES (9, 'own')")
        assert caught.value.detail == "They cannot be finished: could not write a file."
        assert caught.value.hint == f"{_REFRESH};"
        subscriber.run("ALTER SUBSCRIPTION s DISABLE")
        subscriber.run(f"{_REFRESH} WITH (enabled = true)")
    subscriber.run("INSERT INTO t VALUES (9, 'own')")
    subscriber.run("DELETE FROM t WHERE id = 9")
    subscriber.run(f"{_REFRESH} WITH (delete = all)")
    assert subscriber.sync() == []
    publisher.run("UPDATE t SET v = 'new' WHERE id = 2")
    assert subscriber.sync() == []
    assert subscriber.rows(_ROWS) == publisher.rows(_ROWS)


def test_a_writer_finishes_the_batch_of_its_table(
    publisher: Database, subscriber: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.run("CREATE TABLE t (id int PRIMARY KEY, v text); CREATE PUBLICATION p FOR TABLE t")
    subscriber.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    subscriber.run("CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION p")
    assert subscriber.sync() == []
    publisher.run("INSERT INTO t VALUES (1, 'a')")
    with monkeypatch.context() as patch:
        patch.setattr("replctl.lake.batch_apply.injection_point", _fail)
        assert len(subscriber.sync()) == 1
    assert subscriber.rows(_ROWS) == []
    subscriber.run("INSERT INTO t VALUES (9, 'own')")
    assert subscriber.rows(_ROWS) == [("1", "a"), ("9", "own")]


@pytest.mark.parametrize(
    "definition",
    [
        '("No" int GENERATED ALWAYS AS (7) STORED, id int PRIMARY KEY)',
        '(id int); CREATE PUBLICATION q FOR TABLE "My t"',
    ],
)
def test_what_cannot_be_undone_is_undone_later(
    subscriber: Database, monkeypatch: pytest.MonkeyPatch, definition: str
) -> None:
    """A statement fails after its commit, and its undo fails too.  The WARNING names the statement
    that undoes it."""
    subscriber.run(f'CREATE TABLE "My t" {definition}; INSERT INTO "My t" (id) VALUES (1)')
    told: list[Notice] = []
    subscriber.session.on_notice = told.append

    with failed_undo(monkeypatch):
        subscriber.run('INSERT INTO "My t" (id) VALUES (2)')
    (warning,) = told
    assert (warning.severity, warning.detail) == ("WARNING", "the disk is full")
    assert warning.hint == (
        'When the cause is gone, use INSERT INTO public."My t" (id) SELECT NULL WHERE false;'
    )
    ((path,),) = subscriber.rows("SELECT pg_relation_filepath('\"My t\"')")
    stored = f"SELECT id FROM delta.`{path}` ORDER BY id"
    engine = subscriber.session.engine()
    assert engine.rows(stored) == [(1,), (2,)]
    subscriber.run(warning.hint.partition(", use ")[2])
    assert engine.rows(stored) == [(1,)]
    assert subscriber.rows('SELECT id FROM "My t"') == [("1",)]
