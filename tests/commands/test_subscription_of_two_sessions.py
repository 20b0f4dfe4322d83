"""Two sessions and the apply worker change one subscription at the same time.  No change is lost.

The other session runs its statements after a statement has read the subscription, and before the
statement writes.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fix_replication import Database

from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_subscription import find_subscription
from replctl.commands import subscription, subscription_map
from replctl.errors import PostgresError
from replctl.lake.subscriber_state import SubscriberState
from replctl.launcher import sync
from replctl.session import Session

_TABLES = "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY);"
_PUBLISHER = f"""
{_TABLES}
CREATE PUBLICATION pa FOR TABLE a;
CREATE PUBLICATION pb FOR TABLE b;
CREATE PUBLICATION pab FOR TABLE a, b;
"""
_ROW = """
SELECT subname || ' ' || subenabled || ' ' || subbinary || ' ' || subskiplsn || ' '
  || array_to_string(subpublications, ',') FROM pg_subscription
"""
_MEMBERS = """
SELECT coalesce(string_agg(relname, ',' ORDER BY relname), '')
FROM pg_subscription_rel JOIN pg_class c ON c.oid = srrelid
"""


@pytest.fixture
def both(cluster: Cluster) -> tuple[Database, Database]:
    """Return two sessions of a database with a subscription."""
    postgres = Database(Session.connect(cluster, "postgres", "postgres"))
    for name in ("test_pub", "test_sub"):
        postgres.run(f"CREATE DATABASE {name}")
    Database(Session.connect(cluster, "test_pub", "postgres")).run(_PUBLISHER)
    one, other = (Database(Session.connect(cluster, "test_sub", "postgres")) for _ in range(2))
    one.run(_TABLES)
    one.run(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=test_pub' PUBLICATION pa WITH (copy_data = false)"
    )
    assert sync(one.session) == []
    return one, other


def _before(
    monkeypatch: pytest.MonkeyPatch, step: str, action: Callable[[], object], module: object
) -> None:
    """Let an action run once before a step of a statement."""
    original, done = getattr(module, step), list[str]()

    def late(*args: object) -> object:
        if not done:
            done.append(step)
            action()
        return original(*args)

    monkeypatch.setattr(module, step, late)


_OPTIONS = "WITH (copy_data = false)"


@pytest.mark.parametrize(
    ("statement", "meanwhile", "row", "members"),
    [
        ("REFRESH PUBLICATION", "DISABLE", "s false false 0/0 pa", "a"),
        ("REFRESH PUBLICATION", "RENAME TO new", "new true false 0/0 pa", "a"),
        ("REFRESH PUBLICATION", "SKIP (lsn = '7/0')", "s true false 7/0 pa", "a"),
        ("REFRESH PUBLICATION", f"ADD PUBLICATION pb {_OPTIONS}", "s true false 0/0 pa,pb", "a,b"),
        (
            f"ADD PUBLICATION pb {_OPTIONS}",
            f"ADD PUBLICATION pab {_OPTIONS}",
            "s true false 0/0 pa,pab,pb",
            "a,b",
        ),
        (
            f"SET PUBLICATION pb {_OPTIONS}",
            f"ADD PUBLICATION pab {_OPTIONS}",
            "s true false 0/0 pb",
            "b",
        ),
        ("ADD PUBLICATION pb WITH (refresh = false)", "DISABLE", "s false false 0/0 pa,pb", "a"),
        ("DISABLE", "SET (binary)", "s false true 0/0 pa", "a"),
        ("ENABLE", "SET (binary)", "s true true 0/0 pa", "a"),
        ("SET (binary)", "DISABLE", "s false true 0/0 pa", "a"),
        ("SKIP (lsn = '7/0')", "DISABLE", "s false false 7/0 pa", "a"),
        ("CONNECTION 'dbname=test_pub port='", "DISABLE", "s false false 0/0 pa", "a"),
    ],
)
def test_both_changes_stay(
    both: tuple[Database, Database],
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    meanwhile: str,
    row: str,
    members: str,
) -> None:
    one, other = both
    _before(
        monkeypatch,
        "changing_definitions",
        lambda: other.run(f"ALTER SUBSCRIPTION s {meanwhile}"),
        subscription,
    )
    one.run(f"ALTER SUBSCRIPTION s {statement}")
    assert one.rows(_ROW) == [(row,)]
    assert one.rows(_MEMBERS) == [(members,)]


def test_the_map_and_another_change(
    both: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = both
    _before(
        monkeypatch,
        "changing_definitions",
        lambda: other.run("ALTER SUBSCRIPTION s DISABLE"),
        subscription_map,
    )
    one.run("ALTER SUBSCRIPTION s SET (table_map = 'c = b')")
    assert one.rows(_ROW) == [("s false false 0/0 pa",)]


def test_a_table_comes_back_before_it_leaves(
    both: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first session waits for a sync before it removes table a."""
    one, other = both
    _before(
        monkeypatch,
        "leave_subscription",
        lambda: other.run(f"ALTER SUBSCRIPTION s ADD PUBLICATION pa {_OPTIONS}"),
        subscription,
    )
    one.run(f"ALTER SUBSCRIPTION s SET PUBLICATION pb {_OPTIONS}")
    assert one.rows(_ROW) == [("s true false 0/0 pb,pa",)]
    assert one.rows(_MEMBERS) == [("a,b",)]


def test_a_worker_disables_the_subscription(
    both: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = both
    with other.session.read() as catalog:
        found = find_subscription(catalog, "s")
    assert found is not None
    worker = SubscriberState(other.session, found)
    _before(
        monkeypatch,
        "changing_definitions",
        lambda: worker.note_error("apply", disable=True),
        subscription,
    )
    one.run("ALTER SUBSCRIPTION s REFRESH PUBLICATION")
    assert one.rows(_ROW) == [("s false false 0/0 pa",)]


@pytest.mark.parametrize(
    ("statement", "meanwhile", "message"),
    [
        (
            "REFRESH PUBLICATION",
            "DROP SUBSCRIPTION s",
            'subscription "s" does not exist',
        ),
        (
            "SET (slot_name = NONE)",
            "ALTER SUBSCRIPTION s ENABLE",
            "cannot set slot_name = NONE for enabled subscription",
        ),
        (
            f"ADD PUBLICATION pb {_OPTIONS}",
            f"ALTER SUBSCRIPTION s ADD PUBLICATION pb {_OPTIONS}",
            'publication "pb" is already in subscription "s"',
        ),
    ],
)
def test_the_state_no_longer_allows_the_change(
    both: tuple[Database, Database],
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    meanwhile: str,
    message: str,
) -> None:
    one, other = both
    if "slot_name" in statement:
        one.run("ALTER SUBSCRIPTION s DISABLE")
    _before(monkeypatch, "changing_definitions", lambda: other.run(meanwhile), subscription)
    with pytest.raises(PostgresError) as raised:
        one.run(f"ALTER SUBSCRIPTION s {statement}")
    assert raised.value.message == message
