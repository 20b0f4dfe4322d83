"""Roles in ways that a script of one session cannot test: logins, names of databases, and catalogs
with secrets."""

from __future__ import annotations

import pytest

from replctl.errors import (
    ConnectNotPermitted,
    InsufficientPrivilege,
    InvalidAuthorizationSpecification,
)
from replctl.execute import execute
from replctl.session import Session


def run(session: Session, text: str) -> list[list[str | None]]:
    return [list(row) for result in execute(session, text) for row in result.rows]


def connect(session: Session, role: str) -> Session:
    return Session.connect(session.cluster, "postgres", role)


def test_only_roles_that_may_log_in_connect(session: Session) -> None:
    run(session, "create role a; create role b login")
    with pytest.raises(InvalidAuthorizationSpecification) as caught:
        connect(session, "a")
    assert caught.value.message == 'role "a" is not permitted to log in'
    assert run(connect(session, "b"), "select current_user, session_user") == [["b", "b"]]


def test_connecting_takes_a_privilege_of_the_database(session: Session) -> None:
    run(session, "create role b login; revoke connect on database postgres from public")
    with pytest.raises(ConnectNotPermitted) as caught:
        connect(session, "b")
    assert caught.value.message == 'permission denied for database "postgres"'
    run(session, "grant connect on database postgres to b")
    connect(session, "b")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("create schema s", "permission denied for database postgres"),
        ("create publication p", "permission denied for database postgres"),
        ("select * from pg_authid", "permission denied for table pg_authid"),
        ("select subconninfo from pg_subscription", "permission denied for table pg_subscription"),
        ("select pg_replication_origin_create('o')", "permission denied for function"),
        ("checkpoint", "permission denied to execute CHECKPOINT command"),
        ("create table t using delta location '/x'", "permission denied to use LOCATION"),
    ],
)
def test_others_are_refused(session: Session, statement: str, message: str) -> None:
    run(session, "create role b login")
    with pytest.raises(InsufficientPrivilege, match=message):
        run(connect(session, "b"), statement)


def test_subscription_needs_role_password_and_database(session: Session) -> None:
    create = "create subscription s connection '{}' publication p with (connect = false{})"
    run(session, "create role b login; grant pg_create_subscription to b")
    user = connect(session, "b")
    with pytest.raises(InsufficientPrivilege, match="permission denied for database postgres"):
        run(user, create.format("dbname=postgres", ""))
    run(session, "grant create on database postgres to b")
    with pytest.raises(InsufficientPrivilege, match="password_required=false is superuser-only"):
        run(user, create.format("dbname=postgres", ", password_required = false"))
    with pytest.raises(Exception, match="password is required"):
        run(user, create.format("dbname=postgres", ""))
    run(user, create.format("dbname=postgres password=x", ""))
    assert run(user, "select subname from pg_subscription") == [["s"]]


def test_owner_without_password_renames_no_subscription(session: Session) -> None:
    run(session, "create role b login; grant pg_create_subscription to b")
    run(session, "grant create on database postgres to b")
    run(
        session,
        "create subscription s connection 'dbname=x' publication p"
        " with (connect = false, password_required = false)",
    )
    run(session, "alter subscription s owner to b")
    with pytest.raises(InsufficientPrivilege, match="password_required=false is superuser-only"):
        run(connect(session, "b"), "alter subscription s rename to t")
    run(session, "revoke create on database postgres from b")
    with pytest.raises(InsufficientPrivilege, match="permission denied for database postgres"):
        run(connect(session, "b"), "alter subscription s rename to t")


def test_role_in_a_block_goes_with_it(session: Session) -> None:
    run(session, "create role b")
    run(session, "begin")
    run(session, "set role b")
    assert run(session, "select current_user") == [["b"]]
    run(session, "rollback")
    assert run(session, "select current_user") == [["postgres"]]
