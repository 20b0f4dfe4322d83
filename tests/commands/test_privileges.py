"""Which role may do what: the answers of a PostgreSQL 17 server, without Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from privilege_table import read_answers, read_script

from replctl.catalog.cluster import Cluster
from replctl.errors import InternalError, PostgresError
from replctl.execute import execute
from replctl.session import Session

#: What replctl does not have, or has in another way; each is refused by name.
_NOT_SUPPORTED = ("0A000",)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session in a cluster with the objects and roles of the script."""
    cluster = Cluster.open(tmp_path_factory.mktemp("privileges") / "cluster")
    session = Session.connect(cluster, "postgres", "postgres")
    setup, _statements = read_script()
    for statement in setup:
        list(execute(session, statement))
    yield session
    cluster.close()


def answer(session: Session, role: str, statement: str) -> str:
    """`ok`, or the SQLSTATE; who comes so far as to need Spark has passed all checks."""
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


@pytest.mark.parametrize("statement", read_script()[1])
def test_a_role_may_do_what_a_server_lets_it(prepared: Session, statement: str) -> None:
    answers = {role: right for found, role, right in read_answers() if found == statement}
    found = {role: answer(prepared, role, statement) for role in answers}
    wrong = {
        role: (found[role], right)
        for role, right in answers.items()
        if found[role] != right and not (right == "ok" and found[role] in _NOT_SUPPORTED)
    }
    assert wrong == {}


def test_the_answers_are_those_of_the_script() -> None:
    assert {statement for statement, _role, _answer in read_answers()} == set(read_script()[1])
