"""Roles that may log in open sessions, with a password if the login requires one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from replctl.catalog.cluster import Cluster
from replctl.catalog.scram import is_password, scram_verifier
from replctl.errors import InvalidPassword, TooManyConnections
from replctl.execute import execute
from replctl.session import Session

#: The verifier of the password `geheim` on a PostgreSQL 17 server.
VERIFIER = (
    "SCRAM-SHA-256$4096:sKqbZgZFsZtyoER6ZWt2LA==$LsCd+zR/ZjBmhQ7N8DM+R0kPsQ96FWwsOOzodddB2Bg="
    ":Noh8ZFkYpXdEyiBa4epU7xHstMAv5EJFCz/nO1QAEyo="
)


def run(session: Session, script: str) -> None:
    for statement in script.split(";"):
        list(execute(session, statement))


def connect(cluster: Cluster, role: str, password: str | None = None) -> Session:
    return Session.connect(cluster, "postgres", role, password=password)


def test_verifiers() -> None:
    assert is_password("geheim", VERIFIER)
    assert not is_password("Geheim", VERIFIER)
    assert not is_password(VERIFIER, VERIFIER)
    assert scram_verifier(VERIFIER, 4096) == VERIFIER
    for password in ("", "ö", "x" * 5000, "SCRAM-SHA-256$", "SCRAM-SHA-256$4096:no$verifier"):
        made = scram_verifier(password, 4096)
        assert made != password
        assert is_password(password, made)
        assert not is_password(f"{password} ", made)
    assert not is_password("x", "SCRAM-SHA-256$0:x$y:z")


@pytest.mark.parametrize(
    ("definition", "password", "reason"),
    [
        ("role b login password 'x'", "x", None),
        (f"role b login password '{VERIFIER}'", "geheim", None),
        ("role b login password 'x' valid until 'infinity'", "x", None),
        ("role b login password 'x' valid until '2100-01-01'", "x", None),
        ("role b login password 'x'", "X", 'Password does not match for user "b".'),
        (f"role b login password '{VERIFIER}'", VERIFIER, "Password does not match"),
        ("role b login", "x", 'User "b" has no password assigned.'),
        ("role b login password null", "", 'User "b" has no password assigned.'),
        ("role other", "x", 'Role "b" does not exist.'),
        ("role b password 'x' nologin", "y", "Password does not match"),
        ("role b superuser login password 'x'", "y", "Password does not match"),
        (
            "role b login password 'x' valid until '2020-01-01'",
            "x",
            'User "b" has an expired password.',
        ),
        (
            "role b login password 'x' valid until '-infinity'",
            "x",
            'User "b" has an expired password.',
        ),
    ],
)
def test_passwords(session: Session, definition: str, password: str, reason: str | None) -> None:
    run(session, f"create {definition}")
    if reason is None:
        assert connect(session.cluster, "b", password).login_name == "b"
        return
    with pytest.raises(InvalidPassword) as raised:
        connect(session.cluster, "b", password)
    assert raised.value.sqlstate == "28P01"
    assert raised.value.message == 'password authentication failed for user "b"'
    assert raised.value.detail is None  # the client does not learn why
    (line,) = session.cluster.log_file.read_text("utf-8").splitlines()
    assert json.loads(line)["detail"].startswith(reason)


def test_connections_of_a_role_are_limited(session: Session) -> None:
    cluster = session.cluster
    run(session, "create role b login connection limit 2; create role s superuser login")
    run(session, "alter role s connection limit 0; create role nobody login connection limit 0")
    first, second = connect(cluster, "b"), connect(cluster, "b")
    with pytest.raises(TooManyConnections) as raised:
        connect(cluster, "b")
    assert (raised.value.sqlstate, raised.value.severity) == ("53300", "FATAL")
    assert raised.value.message == 'too many connections for role "b"'
    Session.connect(cluster, "postgres", "b", is_worker=True)  # background work is not counted
    connect(cluster, "s")  # a superuser is not limited
    with pytest.raises(TooManyConnections):
        connect(cluster, "nobody")
    first.close()
    third = connect(cluster, "b")
    run(session, "alter role b connection limit 1")
    second.close()
    third.close()
    run(session, "revoke connect on database postgres from public")
    for _attempt in range(3):  # an attempt that fails does not count
        with pytest.raises(Exception, match="permission denied for database"):
            connect(cluster, "b")
    run(session, "grant connect on database postgres to b")
    connect(cluster, "b")


def test_connections_of_a_process_that_has_died_do_not_count(session: Session) -> None:
    cluster = session.cluster
    run(session, "create role b login connection limit 1")
    program = (
        "import sys, time; from replctl.catalog.open_cluster import open_cluster;"
        " from replctl.session import Session;"
        " session = Session.connect(open_cluster(sys.argv[1]), 'postgres', 'b');"
        " print('open', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(cluster.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(TooManyConnections):
            connect(cluster, "b")
        other.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while True:
        try:
            connect(cluster, "b")
            break
        except TooManyConnections:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    marks = list((cluster.path / "lock").glob("connection.*"))
    assert all(mark.stat().st_mode & 0o777 == 0o600 for mark in marks)
