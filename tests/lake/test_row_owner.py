"""The catalog and the log show the writer of the rows of a subscriber's table, without Spark."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from sqlalchemy import select

from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_class import load_relations
from replctl.catalog.pg_subscription import (
    Subscription,
    SubscriptionRelation,
    find_subscription,
    subscription_relations,
)
from replctl.catalog.pg_wal import BREAK, CHANGE, TRUNCATE, enter
from replctl.catalog.state_schema import pg_wal
from replctl.catalog.table_copy import CopyMethod, Deletion
from replctl.catalog.transaction import begin_transaction, commit_transaction
from replctl.catalog.vacuum_horizon import Horizon, trim
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.execute import execute
from replctl.lake.partition_tree import partition_tree
from replctl.lake.row_owner import copied_member, note_lost_rows, row_ownership
from replctl.lake.target_fault import check_faults
from replctl.open_node import open_publisher
from replctl.replication.reconcile_rules import RowOwnership, deletion_of
from replctl.session import Session

_TABLES = """
CREATE TABLE t (id int PRIMARY KEY, a int);
CREATE TABLE parted (id int PRIMARY KEY, a int) PARTITION BY RANGE (id);
CREATE TABLE low PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (50);
CREATE TABLE high PARTITION OF parted FOR VALUES FROM (50) TO (MAXVALUE);
"""


class Node:
    """A publisher and a subscriber without Spark."""

    def __init__(self, cluster: Cluster) -> None:
        first = Session.connect(cluster, "postgres", "postgres")
        for name in ("pub", "sub"):
            self._run(first, f"CREATE DATABASE {name}")
        self.publisher, self.session = (
            Session.connect(cluster, name, "postgres") for name in ("pub", "sub")
        )
        self._run(self.publisher, _TABLES)
        self._run(self.session, _TABLES)
        self._version = 0

    def _run(self, session: Session, sql: str) -> None:
        for _result in execute(session, sql):
            pass

    def publish(self, sql: str) -> None:
        self._run(self.publisher, sql)

    def run(self, sql: str) -> None:
        self._run(self.session, sql)

    def subscribe(self, name: str, publication: str, options: str = "copy_data = false") -> None:
        self.run(
            f"CREATE SUBSCRIPTION {name} CONNECTION 'dbname=pub' PUBLICATION {publication}"
            f" WITH ({options})"
        )

    def subscription(self, name: str) -> Subscription:
        with self.session.read() as catalog:
            found = find_subscription(catalog, name)
        assert found is not None
        return found

    def member(self, name: str, table: str) -> SubscriptionRelation:
        with self.session.read() as catalog:
            oid = self.session.environment(catalog).relation_oid(None, table)
            known = subscription_relations(catalog, self.subscription(name).oid)
        return next(item for item in known if item.relid == oid)

    def write(
        self,
        table: str,
        origin: str | None,
        action: str = CHANGE,
        *,
        own: bool = True,
        is_committed: bool = True,
    ) -> int:
        """Enter a commit of a table, and return the end of the log."""
        self._version += 1
        with self.session.cluster.write(self.session.database_oid) as catalog:
            oid = self.session.environment(catalog).relation_oid(None, table)
            assert oid is not None
            xid = begin_transaction(catalog.connection, catalog.database_oid, catalog.backend)
            mark = f"mark {self._version}" if own else None
            version = None if action == TRUNCATE else self._version
            lsn = enter(catalog, xid, oid, version, action, mark=mark)
            if is_committed:
                commit_transaction(catalog.connection, xid, changes_catalog=False, origin=origin)
        return lsn

    def ownership(
        self, name: str, table: str, member: SubscriptionRelation | None = None
    ) -> RowOwnership:
        subscription = self.subscription(name)
        with open_publisher(self.session, subscription) as publisher:
            remote = next(
                item
                for item in publisher.tables.relations(subscription.publications)
                if item.name == table
            )
        with self.session.read() as catalog:
            known = member or self.member(name, table)
            root = load_relations(catalog, [known.relid])[known.relid]
            tree = partition_tree(catalog, root)
            return row_ownership(catalog, subscription, known, remote, root, tree)


@pytest.fixture
def node(cluster: Cluster) -> Node:
    return Node(cluster)


@pytest.mark.parametrize(
    ("writes", "is_own"),
    [
        ([], True),
        ([("own", CHANGE, True)], True),
        ([("own", CHANGE, True), (None, CHANGE, True)], False),  # a local statement
        ([("own", CHANGE, True), (None, CHANGE, False)], False),  # Spark
        ([("own", CHANGE, False)], False),  # within a transaction of the subscription
        ([("other", CHANGE, True)], False),
        ([(None, CHANGE, True), (None, TRUNCATE, True), ("own", CHANGE, True)], True),
        ([(None, TRUNCATE, True), (None, CHANGE, True)], False),
        ([("own", CHANGE, True), (None, BREAK, False)], False),
        ([("table", CHANGE, True)], True),
    ],
)
def test_whose_commits_there_are(
    node: Node, writes: Sequence[tuple[str | None, str, bool]], is_own: bool
) -> None:
    node.publish("CREATE PUBLICATION p FOR TABLE t")
    node.subscribe("s", "p")
    subscription, member = node.subscription("s"), node.member("s", "t")
    origins = {
        "own": subscription.origin_name,
        "table": subscription.table_origin_name(member.relid),
        "other": "pg_1",
    }
    for who, action, own in writes:
        node.write("t", None if who is None else origins[who], action, own=own)
    found = node.ownership("s", "t")
    assert found.is_own == is_own
    assert (found.publishes_delete, found.has_other_feeds, found.has_any_origin) == (
        True,
        False,
        True,
    )


def test_a_truncate_of_an_open_block_does_not_count(node: Node) -> None:
    node.publish("CREATE PUBLICATION p FOR TABLE t")
    node.subscribe("s", "p")
    node.write("t", None)
    node.write("t", None, TRUNCATE, is_committed=False)
    assert not node.ownership("s", "t").is_own


def test_what_was_there_before_a_copy_that_replaces_does_not_count(node: Node) -> None:
    node.publish("CREATE PUBLICATION p FOR TABLE t WHERE (a > 1)")
    node.subscribe("s", "p", "copy_data = false, origin = none")
    member, subscription = node.member("s", "t"), node.subscription("s")
    with open_publisher(node.session, subscription) as publisher:
        (remote,) = publisher.tables.relations(subscription.publications)
    end = node.write("t", None)
    replaced = copied_member(replace(member, method=CopyMethod.REPLACE), remote, None, end)
    assert node.ownership("s", "t", replaced).is_own
    assert replaced.applied == remote.filters
    added = copied_member(member, remote, None, end)
    assert not node.ownership("s", "t", added).is_own
    scoped = copied_member(member, remote, Deletion.SCOPE, end)
    assert scoped.owned_since is None
    assert not node.ownership("s", "t", scoped).has_any_origin


def test_filters_are_kept_until_their_rows_are_gone(node: Node) -> None:
    node.publish("CREATE PUBLICATION p FOR TABLE t WHERE (a > 1)")
    node.subscribe("s", "p")
    subscription = node.subscription("s")
    member = node.member("s", "t")
    for row_filter in ("a > 2", "a > 3"):
        node.publish(f"ALTER PUBLICATION p SET TABLE t WHERE ({row_filter})")
        with open_publisher(node.session, subscription) as publisher:
            (remote,) = publisher.tables.relations(subscription.publications)
        assert member.definition != remote.definition
        member = copied_member(member, remote, None, 1)
        assert member.definition == remote.definition
    assert len(member.applied) == 2
    assert len(node.ownership("s", "t", member).scope.filters) == 2
    assert len(copied_member(member, remote, Deletion.NONE, 1).applied) == 2
    assert copied_member(member, remote, Deletion.SCOPE, 1).applied == remote.filters
    assert copied_member(member, remote, Deletion.ALL, 7).owned_since == 7


def test_what_else_is_written_into_a_partition_tree(node: Node) -> None:
    node.publish(
        "CREATE PUBLICATION leaves FOR TABLE parted;"
        " CREATE PUBLICATION one FOR TABLE low;"
        " CREATE PUBLICATION root FOR TABLE parted WITH (publish_via_partition_root)"
    )
    node.subscribe("s", "leaves")
    for table in ("low", "high"):
        found = node.ownership("s", table)
        assert found.is_own
        assert not found.has_other_feeds
    node.subscribe("other", "one")  # feeds `low`, too
    assert node.ownership("s", "low").has_other_feeds
    assert node.ownership("s", "high").has_other_feeds
    node.run("DROP SUBSCRIPTION other")
    node.run("DROP SUBSCRIPTION s")
    node.subscribe("r", "root")
    low = node.member("r", "parted")
    node.write("low", node.subscription("r").origin_name)
    assert node.ownership("r", "parted").is_own
    node.write("high", None)
    assert not node.ownership("r", "parted").is_own
    assert not node.ownership("r", "parted", low).has_other_feeds


@pytest.mark.parametrize("count", [0, 2])
def test_rows_of_an_adopted_table_are_those_of_others(
    node: Node, tmp_path: Path, count: int
) -> None:
    names, ids = ["north", "south"][:count], pa.array(range(count), pa.int32())
    write_deltalake(str(tmp_path / "t"), pa.table({"id": ids, "region": names}))
    node.publish("CREATE TABLE g (id int PRIMARY KEY, region text); CREATE PUBLICATION p")
    node.publish("ALTER PUBLICATION p SET TABLE g WHERE (region = 'north'), TABLE t")
    node.publish("ALTER TABLE g REPLICA IDENTITY FULL")
    node.run(
        f"CREATE TABLE g (PRIMARY KEY (id) NOT ENFORCED) USING delta LOCATION '{tmp_path / 't'}'"
    )
    node.subscribe("s", "p")
    assert node.ownership("s", "g").is_own == (count == 0)
    assert deletion_of(node.ownership("s", "g"), None) is (
        Deletion.SCOPE if count else Deletion.ALL
    )
    with node.session.cluster.begin(write=True) as connection:
        trim(connection, Horizon(2**62, 2**62))
    assert node.ownership("s", "g").is_own == (count == 0)
    node.write("g", None, TRUNCATE)
    assert node.ownership("s", "g").is_own


def test_vacuum_keeps_who_has_changed_a_table(node: Node) -> None:
    node.publish("CREATE PUBLICATION p FOR TABLE t")
    node.subscribe("s", "p")
    own = node.subscription("s").origin_name
    for origin in (None, None, own, own):
        end = node.write("t", origin)
    now = time.time_ns() // 1000 + 1_000_000
    with node.session.cluster.begin(write=True) as connection:
        trim(connection, Horizon(end + 1_000_000, now))
        kept = connection.execute(select(pg_wal.c.version).order_by(pg_wal.c.lsn)).scalars().all()
    assert kept == [2, 4]
    assert not node.ownership("s", "t").is_own


@pytest.mark.parametrize(
    ("method", "said", "is_fault"),
    [
        (CopyMethod.REPLACE, None, True),
        (CopyMethod.RECONCILE, Deletion.ALL, True),
        (CopyMethod.RECONCILE, Deletion.SCOPE, False),
        (CopyMethod.APPEND, None, False),
    ],
)
def test_a_copy_that_removes_rows_of_another_subscription_stops_it(
    node: Node, method: CopyMethod, said: Deletion | None, is_fault: bool
) -> None:
    node.publish(
        "CREATE PUBLICATION root FOR TABLE parted WITH (publish_via_partition_root);"
        " CREATE PUBLICATION one FOR TABLE low, t; CREATE PUBLICATION two FOR TABLE high"
    )
    for name, publication in (("s", "root"), ("one", "one"), ("two", "two")):
        node.subscribe(name, publication)
    removing = replace(node.member("one", "low"), method=method, deletion=said)
    with node.session.cluster.write(node.session.database_oid) as catalog:
        low = load_relations(catalog, [removing.relid])[removing.relid]
        tree = partition_tree(catalog, low)
        note_lost_rows(catalog, node.subscription("one"), removing, low, tree)
    faults = [
        node.member(*place).fault for place in (("one", "low"), ("one", "t"), ("two", "high"))
    ]
    assert faults == [None] * 3
    with node.session.read() as catalog:
        if not is_fault:
            check_faults(catalog, node.subscription("s"))
            return
        with pytest.raises(ObjectNotInPrerequisiteState) as caught:
            check_faults(catalog, node.subscription("s"))
    error = caught.value
    assert error.message == 'rows of target table "public.parted" were replaced by another copy'
    assert error.detail == (
        'Subscription "one" has removed them by REFRESH TABLE of table "public.low".'
    )
    assert error.hint == "ALTER SUBSCRIPTION s REFRESH TABLE public.parted WITH (delete = none);"
