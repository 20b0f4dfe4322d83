"""A subscription that has written a part of a batch, and cannot finish it.

The tests need no Spark.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from fix_lake import Lake
from golden_script import answer_of

from replctl.catalog.apply_batch import ApplyBatch, get_apply_batch, insert_apply_batch
from replctl.catalog.apply_step import WriteStep
from replctl.catalog.commit_nonce import make_nonces
from replctl.catalog.intent import Intent, insert_abandoned, intents_of
from replctl.catalog.pg_class import Relation, load_relations
from replctl.catalog.pg_subscription import (
    RelState,
    Subscription,
    SubscriptionRelation,
    insert_subscription,
    insert_subscription_relation,
)
from replctl.catalog.pg_wal import entries_between
from replctl.catalog.transaction import begin_transaction, next_xid
from replctl.errors import (
    ConnectionFailure,
    DiskFull,
    FileAccessDenied,
    InternalError,
    Notice,
    PostgresError,
    UnfinishedBatch,
)
from replctl.lake import commit_log, recovery
from replctl.lake.commit_mark import CommitMark
from replctl.lake.delta_log import latest_version
from replctl.lake.recovery import recover
from replctl.lake.table_read import visible_versions
from replctl.lake.table_write import writing
from replctl.lake.undo import undo_commits
from replctl.lake.unfinished_batch import leave_batch, note_part_written, unfinished_error
from replctl.lake.waiting import when_free
from replctl.lsn import INVALID_LSN
from replctl.own_command import own_command
from replctl.relation_lock import lock_relations
from replctl.session import Session

_FROM_LSN = 7


class Batch:
    """A subscription with a batch that has written one more version of table t."""

    def __init__(self, lake: Lake, *others: int) -> None:
        self.lake = lake
        with lake.session.write() as catalog:
            self.subscription = Subscription(
                catalog.new_oid(), catalog.database_oid, "s", 10, "dbname=elsewhere", ("p",), "s"
            )
            insert_subscription(catalog, self.subscription)
            member = SubscriptionRelation(self.subscription.oid, lake.oid, RelState.READY)
            insert_subscription_relation(catalog, member)
        newest = latest_version(lake.location)
        with lake.session.cluster.write(lake.session.database_oid) as catalog:
            self.xid = begin_transaction(catalog.connection, catalog.database_oid, "1-dead")
            targets = dict.fromkeys((lake.oid, *others), WriteStep(newest, 1))
            insert_apply_batch(
                catalog, ApplyBatch(self.subscription.oid, _FROM_LSN, 9, self.xid, (targets,))
            )
            nonce = make_nonces(catalog.connection, self.xid, [lake.oid])[lake.oid]
        mark = CommitMark(nonce, 1, self.xid, origin=self.subscription.origin_name)
        text = commit_log.marked_text(lake.session.cluster, mark, lake.oid)
        actions: list[dict[str, object]] = [
            {"commitInfo": {"timestamp": 1, "operation": "MERGE", "userMetadata": text}},
            {"add": {"path": "part-1.parquet", "size": 1, "dataChange": True,
                     "partitionValues": {}, "modificationTime": 1}},
        ]  # fmt: skip
        path = Path(lake.location) / "_delta_log" / f"{(newest or 0) + 1:020d}.json"
        path.write_text("\n".join(map(json.dumps, actions)))

    def leave(self) -> None:
        session = self.lake.session
        with session.write() as catalog:
            leave_batch(catalog, session, self.subscription, [self.lake.oid])

    def left(self) -> ApplyBatch | None:
        with self.lake.session.read() as catalog:
            return get_apply_batch(catalog, self.subscription.oid)

    def is_in_progress(self) -> bool:
        with self.lake.session.read() as catalog:
            return self.xid in catalog.snapshot.in_progress

    def entered(self) -> list[str | None]:
        """Enter new versions, and return the origins of all versions after the first."""
        end = self.lake.enter()
        with self.lake.session.read() as catalog:
            entries = entries_between(catalog, INVALID_LSN, end)
        return [e.origin for e in entries if e.relid == self.lake.oid and e.version]


def _write(lake: Lake, oid: int) -> None:
    with lake.session.read() as catalog:
        relation = load_relations(catalog, [oid])[oid]
    with writing(lake.session, [relation], is_whole=True):
        pass


def _other_table(lake: Lake) -> int:
    lake.run("create table u (a int)")
    with lake.session.read() as catalog:
        oid = lake.session.environment(catalog).relation_oid(None, "u")
    assert oid is not None
    return oid


def test_a_batch_concerns_only_who_writes_its_tables(lake: Lake) -> None:
    other = _other_table(lake)
    batch = Batch(lake)
    _write(lake, other)
    with pytest.raises(UnfinishedBatch) as caught:
        _write(lake, lake.oid)
    assert caught.value.subscriptions == {batch.subscription.oid}
    assert caught.value.relids == {lake.oid}
    with lake.session.cluster.lock(f"relation-{lake.oid}", timeout=0):  # the lock is free
        pass
    assert batch.is_in_progress()


def test_a_statement_is_repeated_when_the_batch_is_finished(lake: Lake) -> None:
    batch = Batch(lake)
    seen = []

    def finish(found: UnfinishedBatch) -> None:
        seen.append(found.relids)
        batch.leave()

    lake.session.finish_batches = finish
    when_free(lake.session, lambda: _write(lake, lake.oid))
    assert seen == [{lake.oid}]


def test_a_statement_fails_with_the_table_and_the_cause(lake: Lake) -> None:
    """The publisher does not exist, so replctl cannot finish the batch."""
    _other_table(lake)
    batch = Batch(lake)
    message, detail = answer_of(lake.session, "truncate t")
    assert message == (
        'ERROR 55000: cannot write table "public.t": subscription "s" has written changes into it'
        " in part"
    )
    assert detail.startswith("DETAIL: They cannot be finished: could not connect to the publisher")
    assert answer_of(lake.session, "truncate u") == ("TRUNCATE TABLE",)
    assert answer_of(lake.session, "create table more (a int)") == ("CREATE TABLE",)
    assert answer_of(lake.session, "alter subscription s disable") == ("ALTER SUBSCRIPTION",)
    assert batch.left() is not None


def test_a_block_that_has_locked_the_table_does_not_wait_for_itself(lake: Lake) -> None:
    lake.run("begin")
    lock_relations(lake.session, [lake.oid], lake.session.block.locks)  # type: ignore[union-attr]
    Batch(lake)
    assert answer_of(lake.session, "truncate t")[-1] == "HINT: End the transaction, then repeat it."
    lake.run("rollback")


@pytest.mark.parametrize("others", [(), (1,)])
def test_a_table_leaves_a_batch(lake: Lake, others: tuple[int, ...]) -> None:
    batch = Batch(lake, *others)
    origin = batch.subscription.origin_name
    with lake.session.read() as catalog:
        assert visible_versions(catalog, [lake.oid]) == {lake.oid: 0}
    assert batch.entered() == []
    batch.leave()
    assert batch.entered() == [origin]
    with lake.session.read() as catalog:
        assert visible_versions(catalog, [lake.oid]) == {}
    left = batch.left()
    assert set(left.targets if left else {}) == set(others)
    assert batch.is_in_progress() == bool(others)
    _write(lake, lake.oid)
    lake.run("vacuum")
    lake.write({"id": [9]})
    assert batch.entered()[-1] is None


def test_a_table_that_is_in_no_batch_leaves_none(lake: Lake) -> None:
    batch = Batch(lake)
    with lake.session.write() as catalog:
        leave_batch(catalog, lake.session, batch.subscription, [lake.oid + 1])
    assert batch.left() is not None


_REFRESH = "ALTER SUBSCRIPTION s REFRESH TABLE public.t;"


@pytest.mark.parametrize(
    ("cause", "hint"),
    [
        (InternalError("x"), _REFRESH),
        (DiskFull("x"), "Allow replctl to write the table's files, then {}."),
        (FileAccessDenied("x"), "Allow replctl to write the table's files, then {}."),
        (DiskFull("x", hint="Check free disk space."), "Check free disk space."),
        (ConnectionFailure("x"), None),
    ],
)
def test_the_hint_is_the_cause_s(lake: Lake, cause: PostgresError, hint: str | None) -> None:
    batch = Batch(lake)
    shown = None if hint is None else hint.format("repeat the statement")
    error = unfinished_error(lake.session, batch.subscription, [lake.oid], cause)
    assert (error.detail, error.hint) == ("They cannot be finished: x.", shown)
    command = own_command("sync", home=lake.session.cluster.path)
    shown = None if hint is None else hint.format(f'run "{command}"')
    error = note_part_written(lake.session, batch.subscription, cause)
    assert (error.message, error.hint) == ("x", shown)
    assert error.detail == (
        'Changes of table "public.t" of database "postgres" are written in part.'
    )
    assert cause.detail is None


def test_an_error_without_a_batch_is_as_it_is(lake: Lake) -> None:
    batch = Batch(lake)
    batch.leave()
    cause = InternalError("x")
    assert note_part_written(lake.session, batch.subscription, cause) is cause


# -- transactions of dead processes


def _abandon(lake: Lake, *relids: int) -> int:
    """Record that a dead process has written tables, and return the number of its transaction."""
    with lake.session.cluster.write(lake.session.database_oid) as catalog:
        xid = next_xid(catalog.connection)
        begin_transaction(catalog.connection, catalog.database_oid, "1-dead")
        catalog.connection.exec_driver_sql(f"delete from pg_xact where xid = {xid}")
        intents = [Intent(oid, 0 if oid == lake.oid else None, is_whole=False) for oid in relids]
        insert_abandoned(catalog, xid, intents)
    return xid


@pytest.mark.parametrize("reason", [DiskFull("x"), InternalError("x"), ConnectionFailure("x")])
def test_what_cannot_be_undone_in_one_table_stops_no_other(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, reason: PostgresError
) -> None:
    other = _other_table(lake)
    xid = _abandon(lake, lake.oid, other)

    def undo_or_fail(
        session: Session,
        xid: int,
        floors: Mapping[int, int] | None = None,
        only: Collection[int] | None = None,
    ) -> dict[int, Relation]:
        if only is None or lake.oid in only:
            raise reason
        return undo_commits(session, xid, floors, only)

    monkeypatch.setattr(recovery, "undo_commits", undo_or_fail)
    _write(lake, other)
    with pytest.raises(type(reason)):
        _write(lake, lake.oid)
    told: list[Notice] = []
    lake.session.on_notice = told.append
    recover(lake.session)  # as DDL does
    assert [(n.severity, n.message, n.detail) for n in told] == [
        ("WARNING", f"transaction {xid} could not be undone yet", "x")
    ]
    monkeypatch.undo()
    _write(lake, lake.oid)


def test_a_statement_that_could_not_be_undone_is_not_committed_later(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All its changes are present, but the statement has failed."""
    monkeypatch.setattr(recovery, "undo_commits", _fail)
    lake.session.on_notice = lambda _notice: None
    with lake.session.read() as catalog:
        relation = load_relations(catalog, [lake.oid])[lake.oid]
    with pytest.raises(DiskFull), writing(lake.session, [relation], is_whole=True) as writer:
        raise DiskFull("x")
    with lake.session.cluster.begin(write=False) as connection:
        (intent,) = intents_of(connection, writer.xid)
    assert not intent.is_whole
    monkeypatch.undo()
    _write(lake, lake.oid)
    with lake.session.cluster.begin(write=False) as connection:
        assert intents_of(connection, writer.xid) == []


def _fail(*_arguments: object, **_named: object) -> None:
    raise InternalError("x")
