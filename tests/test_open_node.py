"""What a connection string leads to, where that is no cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from replctl.catalog.cluster import Cluster
from replctl.errors import ConnectionFailure, FeatureNotSupported
from replctl.execute import execute
from replctl.open_node import open_publisher
from replctl.session import Session


def test_a_directory_without_a_cluster(session: Session, tmp_path: Path) -> None:
    other = tmp_path / "other"
    conninfo = f"host={other} dbname=postgres"
    Cluster.open(other).close()
    with open_publisher(session, conninfo) as publisher:
        assert publisher.missing_publications(["p"]) == ["p"]
    other.rename(tmp_path / "gone")
    with pytest.raises(ConnectionFailure) as caught, open_publisher(session, conninfo):
        pass
    assert caught.value.message == (
        "could not connect to the publisher:"
        f' connection to server on socket "{other}/.s.PGSQL.5432" failed: No such file or directory'
    )
    assert caught.value.detail == f'There is no cluster in "{other}".'
    assert not other.exists()


def test_a_server(session: Session) -> None:
    with (
        pytest.raises(FeatureNotSupported, match=r'server at "db\.example", port 5432 failed'),
        open_publisher(session, "host=db.example dbname=postgres"),
    ):
        pass


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
    with open_publisher(session, f"dbname=postgres user=reader {options}") as publisher:
        snapshot = publisher.snapshot("public", "t")
        with pytest.raises(ConnectionFailure, match=message):
            publisher.copy(["p"], "public", "t", snapshot)
