"""The databases template1 and template0: the roles that may connect, and the changes that a session
may make in them."""

from __future__ import annotations

import pytest

from replctl.errors import DatabaseNotAcceptingConnections, FeatureNotSupported
from replctl.execute import execute
from replctl.session import Session


@pytest.fixture
def template(session: Session) -> Session:
    return Session.connect(session.cluster, "template1", "postgres")


def test_nobody_connects_to_template0(session: Session) -> None:
    with pytest.raises(DatabaseNotAcceptingConnections) as caught:
        Session.connect(session.cluster, "template0", "postgres")
    error = caught.value
    assert (error.severity, error.sqlstate) == ("FATAL", "55000")
    assert error.message == 'database "template0" is not currently accepting connections'


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (a int)",
        "CREATE TEMP TABLE t (a int)",
        "CREATE SCHEMA s",
        "CREATE SCHEMA s CREATE TABLE t (a int)",
        "DROP SCHEMA public",
        "ALTER SCHEMA public RENAME TO s",
        "GRANT CREATE ON SCHEMA public TO PUBLIC",
        "COMMENT ON SCHEMA public IS 'x'",
        "CREATE PUBLICATION p",
    ],
)
def test_objects_of_a_template_are_not_changed(template: Session, statement: str) -> None:
    with pytest.raises(FeatureNotSupported) as caught:
        list(execute(template, statement))
    assert caught.value.message == (
        'changing objects of template database "template1" is not supported'
    )
    (result,) = execute(template, "SELECT nspname FROM pg_namespace WHERE oid = 2200")
    assert result.rows == [["public"]]


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE ROLE r CREATEDB", "ALTER ROLE r LOGIN", "COMMENT ON ROLE r IS 'x'", "DROP ROLE r"),
        ("CREATE DATABASE d", "COMMENT ON DATABASE d IS 'x'", "DROP DATABASE d"),
        ("GRANT CREATE ON DATABASE template1 TO PUBLIC",),
        ("SELECT pg_create_physical_replication_slot('x')",),
        ("ANALYZE",),
    ],
)
def test_objects_of_the_cluster_are_changed(template: Session, statements: tuple[str, ...]) -> None:
    for statement in statements:
        list(execute(template, statement))
