"""Roles may run the same statements as on a PostgreSQL 17 server, without Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from privilege_table import SCRIPTS, read_answers, read_script

from replctl.catalog.open_cluster import open_cluster
from replctl.catalog.pg_authid import find_role
from replctl.catalog.worker import Walsender, claim_walsender
from replctl.errors import InsufficientPrivilege, InternalError, PostgresError
from replctl.execute import execute
from replctl.session import Session

#: SQLSTATEs of statements that replctl lacks.  It refuses each by name, also for superusers.
_NOT_SUPPORTED = ("0A000",)
_MANY = 15


@pytest.fixture(scope="module", params=SCRIPTS)
def prepared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Session]]:
    """Yield the name of a script, and a session in a cluster with the objects and roles of the
    script."""
    name = request.param
    cluster = open_cluster(tmp_path_factory.mktemp(name) / "cluster")
    session = Session.connect(cluster, "postgres", "postgres")
    # The test rolls each statement back.  Without Spark, it could not remove written rows
    list(execute(session, "SET replctl.small_table_rows = 0"))
    setup, _statements = read_script(name)
    for statement in setup:
        list(execute(session, statement))
    yield name, session
    cluster.close()


def answer(session: Session, role: str, statement: str) -> str:
    """Return `ok`, or the SQLSTATE.  A statement that asks for Spark has passed all checks."""
    list(execute(session, "BEGIN"))
    try:
        list(execute(session, f"SET LOCAL ROLE {role}"))
        list(execute(session, statement))
    except InternalError as error:
        return "ok" if "has no Spark" in error.message else error.message
    except PostgresError as error:
        return error.sqlstate
    else:
        return "ok"
    finally:
        list(execute(session, "ROLLBACK"))


def test_a_role_may_do_what_a_server_lets_it(
    prepared: tuple[str, Session], subtests: pytest.Subtests
) -> None:
    name, session = prepared
    answers = read_answers(name)
    assert list(answers) == read_script(name)[1]
    for number, (statement, rights) in enumerate(answers.items()):
        with subtests.test(statement):
            tried = chosen(rights, number)
            found = {role: answer(session, role, statement) for role in tried}
            wrong = {
                role: (found[role], rights[role])
                for role in tried
                if found[role] not in (rights[role], *_NOT_SUPPORTED)
            }
            assert wrong == {}


def chosen(rights: dict[str, str], number: int) -> list[str]:
    """Return the roles that try the statement with this number.

    If there are many roles, only every third role with no more rights than `nobody` tries it.
    These roles change from one statement to the next.
    """
    if len(rights) <= _MANY:
        return list(rights)
    usual = [role for role, right in rights.items() if right == rights["nobody"]]
    return [role for role in rights if role not in usual or usual.index(role) % 3 == number % 3]


@pytest.mark.parametrize(
    ("grant", "seen"),
    [
        ("", None),
        ("GRANT UPDATE ON SEQUENCE s TO reader", None),
        ("GRANT USAGE ON SEQUENCE s TO reader", "7"),
        ("GRANT SELECT ON SEQUENCE s TO reader", "7"),
        ("GRANT pg_read_all_data TO reader", "7"),
    ],
)
def test_pg_sequences_has_the_last_value_for_who_may_read_it(
    session: Session, grant: str, seen: str | None
) -> None:
    for statement in ("CREATE ROLE reader", "CREATE SEQUENCE s", "SELECT setval('s', 7)", grant):
        list(execute(session, statement))
    list(execute(session, "SET ROLE reader"))
    (found,) = execute(session, "SELECT sequencename, last_value FROM pg_sequences")
    assert list(found.rows) == [["s", seen]]


@pytest.mark.parametrize(
    ("statement", "owned"),
    [
        ("DROP INDEX t_pkey", "index t_pkey"),  # the constraint needs it
        ("DROP SEQUENCE t_n_seq", "sequence t_n_seq"),  # the column needs it
        ("COMMENT ON CONSTRAINT t_pkey ON t IS 'x'", "relation t"),
    ],
)
def test_only_owners_learn_what_forbids_a_statement(
    session: Session, statement: str, owned: str
) -> None:
    made = "CREATE TABLE t (id int PRIMARY KEY, n int GENERATED ALWAYS AS IDENTITY)"
    for text in ("CREATE ROLE nobody", made, "SET ROLE nobody"):
        list(execute(session, text))
    with pytest.raises(InsufficientPrivilege, match=f"must be owner of {owned}$"):
        list(execute(session, statement))


def test_statistics_of_others_are_masked(session: Session) -> None:
    """pg_stat_get_wal_senders() and pg_stat_get_activity() mask them.  A golden script cannot test
    this, because it has no walsender."""
    for statement in (
        "CREATE ROLE nobody; CREATE ROLE sender REPLICATION; CREATE ROLE stats",
        "GRANT pg_read_all_stats TO stats",
        "SELECT pg_create_logical_replication_slot('slot', 'pgoutput')",
    ):
        list(execute(session, statement))
    with session.read() as catalog:
        sender = find_role(catalog, "sender")
    assert sender is not None
    walsender = Walsender("slot", "client", "app", sender.oid)
    claim_walsender(session.cluster, walsender, maximum=10)
    rows = {}
    for role in ("nobody", "sender", "stats", "postgres"):
        list(execute(session, f"SET ROLE {role}"))
        (result,) = execute(
            session,
            "SELECT usename, application_name, backend_start IS NULL, state, sent_lsn IS NULL,"
            " sync_state FROM pg_stat_replication",
        )
        (activity,) = execute(session, "SELECT usename, state, query FROM pg_stat_activity")
        rows[role] = (*result.rows[0], *activity.rows[0])
    seen = ("sender", "app", "f", "catchup", "f", "async", "postgres", "active", None)
    masked = ("postgres", None, "<insufficient privilege>")
    assert rows == {
        "nobody": ("sender", "app", "t", None, "t", None, *masked),
        "sender": ("sender", "app", "f", None, "t", None, *masked),
        "stats": seen,
        "postgres": seen,
    }
