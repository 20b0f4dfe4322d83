"""Connection strings that do not lead to a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from replctl import open_node
from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.pg_authid import find_role
from replctl.catalog.pg_subscription import Subscription
from replctl.conninfo import leads_to_own_cluster, parse_conninfo
from replctl.errors import ConnectionFailure, FeatureNotSupported, PasswordRequired, PostgresError
from replctl.execute import execute
from replctl.launcher import sync
from replctl.open_node import open_publisher, open_subscriber
from replctl.relation_name import RelationName
from replctl.session import Session

SOCKET = 'could not connect to the publisher: connection to server on socket "/tmp/.s.PGSQL.5432"'


def _subscription(conninfo: str, owner: int = 10, *, requires: bool = True) -> Subscription:
    return Subscription(1, 5, "s", owner, conninfo, ("p",), None, password_required=requires)


def _run(session: Session, script: str) -> None:
    for statement in script.split(";"):
        list(execute(session, statement))


def test_a_directory_without_a_cluster(session: Session, tmp_path: Path) -> None:
    other = tmp_path / "other"
    conninfo = f"host={other} dbname=postgres"
    open_cluster(other).close()
    with open_publisher(session, _subscription(conninfo)) as publisher:
        assert publisher.tables.missing_publications(["p"]) == ["p"]
    other.rename(tmp_path / "gone")
    with (
        pytest.raises(ConnectionFailure) as caught,
        open_publisher(session, _subscription(conninfo)),
    ):
        pass
    assert caught.value.message == (
        "could not connect to the publisher:"
        f' connection to server on socket "{other}/.s.PGSQL.5432" failed: No such file or directory'
    )
    assert caught.value.detail == (
        f'There is no cluster in "{other}". Sockets of PostgreSQL servers are not supported yet.'
    )
    assert not other.exists()
    assert caught.value.hint == (
        "Name the directory of the publisher's cluster: host=DIRECTORY. If it was moved, use ALTER"
        " SUBSCRIPTION ... CONNECTION."
    )
    named = f"host={tmp_path / 'gone'}"
    with open_publisher(session, _subscription(f"{named} dbname=postgres")) as publisher:
        assert publisher.tables.missing_publications(["p"]) == ["p"]


def test_a_server(session: Session) -> None:
    with (
        pytest.raises(FeatureNotSupported, match=r'server at "db\.example", port 5432 failed'),
        open_publisher(session, _subscription("host=db.example dbname=postgres")),
    ):
        pass


@pytest.mark.parametrize("local", ["", " dbname=postgres", " host=localhost"])
def test_a_service(session: Session, local: str) -> None:
    """A service does not lead to the cluster's own database."""
    conninfo = f"service=prod{local}"
    assert not leads_to_own_cluster(parse_conninfo(conninfo))
    with (
        pytest.raises(FeatureNotSupported, match='service "prod" is not supported') as caught,
        open_publisher(session, _subscription(conninfo)),
    ):
        pass
    assert caught.value.hint == (
        "Write the parameters of the service into the connection string: host and dbname."
    )
    with open_publisher(session, _subscription("host=localhost dbname=postgres")) as publisher:
        assert publisher.tables.missing_publications(["p"]) == ["p"]


@pytest.mark.parametrize(
    ("options", "policy", "message"),
    [
        (
            "options=-crow_security=off",
            "id > 0",
            'affected by row-level security policy for table "t"',
        ),
        ("", "id IN (SELECT id FROM u)", 'policy "p" for table "t" has a subquery'),
    ],
)
def test_copies_that_policies_stop(
    session: Session, options: str, policy: str, message: str
) -> None:
    for statement in (
        "CREATE ROLE reader LOGIN REPLICATION",
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE TABLE u (id int)",
        "GRANT SELECT ON t TO reader",
        "CREATE PUBLICATION p FOR TABLE t",
        f"CREATE POLICY p ON t USING ({policy})",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
    ):
        for _result in execute(session, statement):
            pass
    subscription = _subscription(f"dbname=postgres user=reader {options}")
    with open_publisher(session, subscription) as publisher:
        snapshot = publisher.tables.snapshot(RelationName("public", "t"))
        copy = publisher.tables.copy(["p"], RelationName("public", "t"), snapshot)
        with pytest.raises(ConnectionFailure, match=message), copy:
            pass


ROLES = """
create role owner login replication password 'own';
create role expired login replication password 'x' valid until '2020-01-01';
create role silent login replication;
create role plain login password 'x';
create role out replication password 'x';
create role full login replication password 'x' connection limit 0;
create role many login replication password 'x' connection limit 1;
create database closed;
revoke connect on database closed from public
"""

#: The owner, the connection string, and the result: the role of the session, or the error.
CONNECTIONS = [
    ("postgres", "dbname=postgres", "postgres"),
    ("postgres", "dbname=postgres user=owner", "owner"),
    ("postgres", "dbname=postgres user=owner password=wrong", "owner"),  # of a superuser: trusted
    ("postgres", "user=expired dbname=postgres", "expired"),
    ("postgres", "user=nobody dbname=postgres", 'FATAL:  role "nobody" does not exist'),
    ("owner", "dbname=postgres user=owner password=own", "owner"),
    ("owner", "dbname=postgres password=own", "owner"),  # not postgres
    ("owner", "dbname=postgres user='' password=own", "owner"),
    ("owner", "dbname=postgres user=many password=x", "many"),
    *(
        ("owner", f"dbname={database} user={user} password={password}",
         f'FATAL:  password authentication failed for user "{user}"')
        for database, user, password in [
            ("postgres", "owner", "wrong"),
            ("postgres", "expired", "x"),
            ("postgres", "silent", "x"),
            ("postgres", "postgres", "x"),
            ("postgres", "nobody", "x"),
            ("nosuch", "nobody", "x"),
            ("postgres", "out", "wrong"),
        ]
    ),
    ("owner", "dbname=postgres user=out password=x",
     'FATAL:  role "out" is not permitted to log in'),
    ("owner", "dbname=postgres user=full password=x",
     'FATAL:  too many connections for role "full"'),
    ("owner", "dbname=postgres user=plain password=x",
     "FATAL:  permission denied to start WAL sender\nDETAIL:  Only roles with the REPLICATION"
     " attribute may start a WAL sender process."),
    ("owner", "dbname=closed password=own",
     'FATAL:  permission denied for database "closed"\n'
     "DETAIL:  User does not have CONNECT privilege."),
    ("owner", "dbname=nosuch password=own", 'FATAL:  database "nosuch" does not exist'),
]  # fmt: skip


def test_roles_of_connections_are_authenticated(session: Session) -> None:
    _run(session, ROLES)
    for owner, conninfo, expected in CONNECTIONS:
        with session.read() as catalog:
            role = find_role(catalog, owner)
            assert role is not None
        for _again in range(2):  # ended sessions do not count in a limit
            try:
                with open_publisher(session, _subscription(conninfo, role.oid)) as publisher:
                    found = publisher.slots._session.login_name  # type: ignore[attr-defined]
            except ConnectionFailure as error:
                found = error.message.removeprefix(f"{SOCKET} failed: ")
            assert (owner, conninfo, found) == (owner, conninfo, expected)


def test_superusers_vouch_for_connections_without_password(session: Session) -> None:
    _run(session, ROLES)
    with session.read() as catalog:
        owner = find_role(catalog, "owner")
        assert owner is not None
    for conninfo in ("dbname=postgres", "user=postgres", "user=postgres password=''"):
        subscription = _subscription(conninfo, owner.oid)
        with pytest.raises(PasswordRequired) as raised, open_publisher(session, subscription):
            pass
        assert raised.value.sqlstate == "2F003"
    subscription = _subscription("user=postgres", owner.oid, requires=False)
    with open_publisher(session, subscription):
        pass
    subscription = _subscription("user=postgres password=x", owner.oid, requires=False)
    with (
        pytest.raises(ConnectionFailure, match="password authentication failed"),
        open_publisher(session, subscription),
    ):
        pass


def test_a_password_is_required_as_long_as_the_owner_is_no_superuser(session: Session) -> None:
    _run(session, ROLES)
    _run(session, "create publication p; grant pg_create_subscription to owner")
    _run(session, "grant create on database postgres to owner; set role owner")
    create = "create subscription s connection '{}' publication p with (slot_name = made)"
    for conninfo, message in (
        ("dbname=postgres user=owner", "password is required"),
        ("dbname=postgres password=no", 'password authentication failed for user "owner"'),
        ("dbname=postgres user=postgres password=own", "password authentication failed"),
    ):
        with pytest.raises(PostgresError, match=message):
            _run(session, create.format(conninfo))
    _run(session, create.format("dbname=postgres password=own"))
    assert sync(session) == []
    _run(session, "reset role; alter role owner password 'new'")
    refresh = "alter subscription s refresh publication"
    for statement in (refresh, "drop subscription s"):
        with pytest.raises(ConnectionFailure, match="password authentication failed for user"):
            _run(session, statement)
    (failure,) = sync(session)
    assert "password authentication failed" in failure.error.message
    with pytest.raises(PasswordRequired):  # the owner's rights count, not the superuser's
        _run(session, "alter subscription s connection 'dbname=postgres'")
    _run(session, "alter role owner superuser")
    _run(session, "alter subscription s connection 'dbname=postgres'")
    _run(session, refresh)
    assert sync(session) == []
    _run(session, "alter role owner nosuperuser")
    for statement in (refresh, "drop subscription s"):
        with pytest.raises(PasswordRequired):
            _run(session, statement)
    (failure,) = sync(session)
    assert failure.error.sqlstate == "2F003"
    _run(session, "alter subscription s set (password_required = false)")
    assert sync(session) == []
    _run(session, "alter role owner noreplication")
    (failure,) = sync(session)  # as owner: nobody has named postgres
    assert "permission denied to start WAL sender" in failure.error.message
    _run(session, "alter subscription s disable; alter subscription s set (slot_name = none)")
    _run(session, "drop subscription s; select pg_drop_replication_slot('made')")


def test_the_cluster_of_another_user_of_the_system(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables of a cluster can have any location."""
    _run(session, ROLES)
    with session.read() as catalog:
        owner = find_role(catalog, "owner")
        assert owner is not None
    other = open_cluster(tmp_path / "other")
    _run(Session.connect(other, "postgres", "postgres"), ROLES)
    conninfo = f"host={other.path} dbname=postgres password=own"
    with open_publisher(session, _subscription(conninfo, owner.oid)):
        pass
    if os.geteuid() == 0:
        os.chown(other.path, 65534, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 65534)
    with (
        pytest.raises(ConnectionFailure) as raised,
        open_publisher(session, _subscription(conninfo, owner.oid)),
    ):
        pass
    assert "failed: the directory belongs to another user of the system" in raised.value.message
    assert raised.value.hint == "Use GRANT pg_read_server_files TO owner."
    for subscription in (
        _subscription(conninfo, owner.oid, requires=False),
        _subscription(conninfo),  # of a superuser
    ):
        with open_publisher(session, subscription):
            pass
    with open_publisher(session, _subscription(conninfo, owner.oid), is_leaving=True):
        pass
    _run(session, raised.value.hint.removeprefix("Use ").removesuffix("."))
    with open_publisher(session, _subscription(conninfo, owner.oid)):
        pass
    other.close()


@pytest.mark.parametrize(
    ("role", "shown"), [("low", "off"), ("owner", "on"), ("member", "on"), ("postgres", "on")]
)
def test_only_the_owners_rights_allow_writes_that_endanger_tables(
    session: Session, monkeypatch: pytest.MonkeyPatch, role: str, shown: str
) -> None:
    monkeypatch.setattr(open_node, "LakeSubscriber", lambda own, _subscription: own.setting)
    _run(session, "CREATE ROLE low; CREATE ROLE owner; CREATE ROLE member IN ROLE owner")
    with session.read() as catalog:
        owner = find_role(catalog, "owner")
    assert owner is not None
    _run(session, f"SET ROLE {role}; SET replctl.s3_single_writer = on")
    _run(session, "SET replctl.max_batch_changes = 5")
    with open_subscriber(session, _subscription("dbname=postgres", owner.oid)) as opened:
        setting = cast(Callable[[str], str], opened)
        assert setting("replctl.s3_single_writer") == shown
        assert setting("replctl.max_batch_changes") == "5"
