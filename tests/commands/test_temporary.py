"""Temporary relations are dropped when their session ends, however it ends."""

from __future__ import annotations

import pytest
from fix_psql import Psql

from replctl.catalog.cluster import Cluster
from replctl.catalog.pg_namespace import insert_temporary_schema
from replctl.catalog.schema import pg_class
from replctl.errors import InsufficientPrivilege, InvalidTableDefinition
from replctl.execute import execute
from replctl.session import Session

_COUNT = "SELECT count(*) FROM pg_class WHERE relpersistence = 't'"


def test_they_end_with_the_session(psql: Psql) -> None:
    made = psql("-At", "-c", "CREATE TEMP TABLE t (id serial PRIMARY KEY)", "-c", _COUNT)
    assert made.stdout.split() == ["CREATE", "TABLE", "3"], made.stderr
    assert psql("-At", "-c", _COUNT).stdout.split() == ["0"]


def test_other_sessions_have_their_own(cluster: Cluster) -> None:
    one, two = (Session.connect(cluster, "postgres", "postgres") for _ in range(2))
    for session in (one, two):
        list(execute(session, "CREATE TEMP TABLE t (a int)"))
    assert one.temporary_schema != two.temporary_schema
    own = "SELECT pg_is_other_temp_schema(oid) FROM pg_namespace WHERE nspname ~ '^pg_temp_'"
    (answer,) = execute(one, f"{own} ORDER BY 1")
    assert answer.rows == [["f"], ["t"]]
    one.close()
    with two.read() as catalog:
        schemas = {row.relnamespace for row in catalog.select(pg_class)}
    assert len(schemas) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE {}.u (a int)",
        "CREATE TABLE {}.u AS SELECT 1",
        "CREATE VIEW {}.u AS SELECT 1",
        "CREATE MATERIALIZED VIEW {}.u AS SELECT 1",
        "CREATE SEQUENCE {}.u",
        "CREATE SEQUENCE IF NOT EXISTS {}.u",
    ],
)
def test_a_superuser_makes_none_for_other_sessions(cluster: Cluster, statement: str) -> None:
    one, two = (Session.connect(cluster, "postgres", "postgres") for _ in range(2))
    list(execute(one, "CREATE TEMP TABLE t (a int)"))
    assert one.temporary_schema is not None
    with pytest.raises(
        InvalidTableDefinition,
        match="cannot create relations in temporary schemas of other sessions",
    ):
        list(execute(two, statement.format(one.temporary_schema)))


def test_what_a_dead_session_has_left_is_dropped(cluster: Cluster) -> None:
    died = Session.connect(cluster, "postgres", "postgres")
    died.key = "1-never/1"
    list(execute(died, "CREATE TEMP TABLE t (a int)"))
    session = Session.connect(cluster, "postgres", "postgres")
    list(execute(session, "CREATE TEMP TABLE u (a int)"))
    with session.read() as catalog:
        assert [row.relname for row in catalog.select(pg_class)] == ["u"]
    session.close()
    with session.read() as catalog:
        assert not catalog.select(pg_class)


def test_a_number_that_is_taken_is_passed_over(cluster: Cluster) -> None:
    session = Session.connect(cluster, "postgres", "postgres")
    with session.write() as catalog:
        assert insert_temporary_schema(catalog, session.key, 10) == "pg_temp_3"
        assert insert_temporary_schema(catalog, session.key, 10) == "pg_temp_4"


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM {}.t",
        "CREATE TABLE {}.orders (a int)",
        "CREATE TABLE {}.orders AS SELECT 1 AS a",
        "CREATE VIEW {}.orders AS SELECT 1 AS a",
        "CREATE SEQUENCE {}.s",
        "CREATE TYPE {}.mood AS ENUM ('sad')",
        "CREATE DOMAIN {}.positive AS int",
        "CREATE FUNCTION {}.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "ALTER FUNCTION g() SET SCHEMA {}",
    ],
)
def test_roles_cannot_use_the_schema_of_another_session(cluster: Cluster, statement: str) -> None:
    """Else a role could put a table of its own in front of any table that another session uses."""
    victim = Session.connect(cluster, "postgres", "postgres")
    for made in ("CREATE ROLE low LOGIN", "CREATE TEMP TABLE t (a int)"):
        list(execute(victim, made))
    list(execute(victim, "GRANT CREATE ON SCHEMA public TO low"))
    low = Session.connect(cluster, "postgres", "low")
    list(execute(low, "CREATE FUNCTION g() RETURNS int LANGUAGE sql AS 'SELECT 1'"))
    name = victim.temporary_schema
    with pytest.raises(InsufficientPrivilege, match=f"^permission denied for schema {name}$"):
        list(execute(low, statement.format(name)))


def test_a_session_may_use_its_own_schema_in_every_role(cluster: Cluster) -> None:
    session = Session.connect(cluster, "postgres", "postgres")
    for statement in (
        "CREATE ROLE low",
        "SET ROLE low",
        "CREATE TEMP TABLE t (id serial PRIMARY KEY, a int)",
        "INSERT INTO t (a) VALUES (1)",
        "CREATE VIEW pg_temp_3.v AS SELECT a FROM pg_temp_3.t",
        "CREATE FUNCTION pg_temp_3.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "BEGIN",
        "ALTER TABLE pg_temp_3.t ADD COLUMN b int",
        "COMMIT",
        "RESET ROLE",
        "REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC",
        "SET ROLE low",
    ):
        list(execute(session, statement))
    (result,) = execute(session, "SELECT pg_temp_3.f() FROM pg_class WHERE relname = 'v'")
    assert list(result.rows) == [["1"]]
    with pytest.raises(InsufficientPrivilege, match=r"schema pg_temp_3$"):
        list(execute(session, "CREATE SEQUENCE pg_temp_3.s"))
