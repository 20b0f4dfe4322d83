"""Tables with a LOCATION are files of the server: the roles that may read and write them, without
Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from replctl.catalog.open_cluster import open_cluster
from replctl.errors import ConnectionFailure, InsufficientPrivilege, InternalError
from replctl.execute import execute
from replctl.lake.publisher import LakePublisher
from replctl.relation_name import RelationName
from replctl.session import Session

_ROLES = """
CREATE ROLE nobody; CREATE ROLE reader; CREATE ROLE writer; CREATE ROLE rw; CREATE ROLE su SUPERUSER;
GRANT CREATE ON SCHEMA public TO nobody, reader, writer, rw;
GRANT pg_read_server_files TO reader, rw; GRANT pg_write_server_files TO writer, rw;
GRANT pg_execute_server_program TO writer
"""  # noqa: E501
_ALL = ("nobody", "reader", "writer", "rw", "su")


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Yield a session in a cluster with roles that may read or write the server's files, or
    neither."""
    cluster = open_cluster(tmp_path_factory.mktemp("files") / "cluster")
    session = Session.connect(cluster, "postgres", "postgres")
    list(execute(session, _ROLES))
    yield session
    cluster.close()


def _delta_table(path: Path, *, has_feed: bool) -> Path:
    properties = {"delta.enableChangeDataFeed": "true"} if has_feed else {}
    rows = pa.table({"id": pa.array([1, 2], pa.int32())})
    write_deltalake(path, rows, configuration=properties)
    return path


def _answer(session: Session, role: str, statement: str) -> str:
    """Return `ok`, or the message.  A statement that asks for Spark has passed all checks."""
    list(execute(session, f"BEGIN; SET LOCAL ROLE {role}"))
    try:
        list(execute(session, statement))
    except InternalError as error:
        return "ok" if "has no Spark" in error.message else error.message
    except InsufficientPrivilege as error:
        return error.message if error.sqlstate == "42501" else str(error.sqlstate)
    else:
        return "ok"
    finally:
        list(execute(session, "ROLLBACK"))


_REFUSED = "permission denied to use LOCATION"


@pytest.mark.parametrize(
    ("statement", "permitted", "refused"),
    [
        ("CREATE TABLE new (a int) USING delta LOCATION '{}/new'", "rw su", _REFUSED),
        ("CREATE TABLE new USING delta LOCATION '{}/fed'", "reader rw su", _REFUSED),
        ("CREATE TABLE new USING delta LOCATION '{}/unfed'", "reader rw su", _REFUSED),
        ("COPY (SELECT 1) TO '{}/out'", "writer rw su", "permission denied to COPY to a file"),
        (
            "COPY nothing FROM '{}/in'",
            "reader rw su",
            "permission denied to COPY from a file",
        ),
    ],
)
def test_files_of_the_server_take_a_predefined_role(
    roles: Session, tmp_path: Path, statement: str, permitted: str, refused: str
) -> None:
    _delta_table(tmp_path / "fed", has_feed=True)
    _delta_table(tmp_path / "unfed", has_feed=False)
    (tmp_path / "in").write_text("")
    list(execute(roles, "CREATE TABLE IF NOT EXISTS nothing (a int)"))
    list(execute(roles, "GRANT INSERT ON nothing TO PUBLIC"))
    answers = {role: _answer(roles, role, statement.format(tmp_path)) for role in _ALL}
    assert answers == {role: "ok" if role in permitted.split() else refused for role in _ALL}


def test_a_refused_role_learns_nothing_of_a_directory(roles: Session, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").write_text("")
    for place in ("full", "absent"):
        for columns in ("(a int) ", ""):
            statement = f"CREATE TABLE new {columns}USING delta LOCATION '{tmp_path}/{place}'"
            assert _answer(roles, "writer", statement) == _REFUSED


def test_programs_take_a_predefined_role(roles: Session) -> None:
    refused = "permission denied to COPY to or from an external program"
    for statement in ("COPY (SELECT 1) TO PROGRAM 'cat'", "COPY nothing FROM PROGRAM 'cat'"):
        assert _answer(roles, "rw", statement) == refused
        with pytest.raises(Exception, match="COPY with PROGRAM is not supported"):
            _answer(roles, "writer", statement)


@pytest.fixture
def adopted(session: Session, tmp_path: Path) -> Session:
    """Return a session in which table t has a LOCATION.

    The owner of t has all rights on files, and role `other` has all rights on t.
    """
    list(execute(session, _ROLES))
    place = _delta_table(tmp_path / "lake", has_feed=True)
    for statement in (
        f"CREATE TABLE t USING delta LOCATION '{place}'",
        "ALTER TABLE t OWNER TO rw",
        "CREATE ROLE other REPLICATION",
        "GRANT ALL ON t TO other",
        "CREATE VIEW v AS SELECT id FROM t",
        "GRANT SELECT ON v TO PUBLIC",
        "CREATE PUBLICATION p FOR TABLE t WITH (publish = 'insert')",
    ):
        list(execute(session, statement))
    session.on_copy_out = lambda lines: None
    return session


_READS = ("SELECT id FROM t", "SELECT id FROM v", "COPY t TO STDOUT", "SELECT count(*) FROM t")
_WRITES = (
    "INSERT INTO t VALUES (9)",
    "UPDATE t SET id = 7 WHERE id = 1",
    "DELETE FROM t",
    "TRUNCATE t",
)


def test_the_owner_needs_the_role_at_each_read_and_write(adopted: Session) -> None:
    def answers(role: str) -> tuple[set[str], set[str]]:
        reads = {_answer(adopted, role, statement) for statement in _READS}
        return reads, {_answer(adopted, role, statement) for statement in _WRITES}

    denied = 'permission denied to {} the files of table "t"'
    for role in ("other", "su"):
        assert answers(role) == ({"ok"}, {"ok"})
    list(execute(adopted, "ALTER TABLE t OWNER TO reader"))
    for role in ("other", "reader", "su"):
        assert answers(role) == ({"ok"}, {denied.format("write")})
    list(execute(adopted, "REVOKE pg_read_server_files FROM reader"))
    for role in ("other", "reader", "su"):
        assert answers(role)[0] == {denied.format("read")}
    check = "ALTER TABLE t ADD CHECK (id > 1)"
    assert _answer(adopted, "reader", check) == denied.format("read")
    with pytest.raises(InsufficientPrivilege) as caught:
        list(execute(adopted, "SELECT id FROM t"))
    assert caught.value.detail == (
        'The table has a LOCATION, and its owner "reader" does not have privileges of the'
        ' "pg_read_server_files" role.'
    )
    assert caught.value.hint == "Use GRANT pg_read_server_files TO reader."
    list(execute(adopted, "ALTER TABLE t OWNER TO su"))
    assert answers("other") == ({"ok"}, {"ok"})


def test_copy_asks_for_the_owner_too(adopted: Session, tmp_path: Path) -> None:
    list(execute(adopted, "ALTER TABLE t OWNER TO nobody"))
    (tmp_path / "in").write_text("5\n")
    copy = f"COPY t FROM '{tmp_path}/in'"
    denied = 'permission denied to write the files of table "t"'
    assert _answer(adopted, "su", copy) == denied


def test_publishing_reads_the_files(adopted: Session) -> None:
    # Otherwise a copy sends rows to Spark
    list(execute(adopted, "SET replctl.small_table_rows = 0"))
    publisher = LakePublisher(adopted)
    snapshot = publisher.tables.snapshot(RelationName("public", "t"))
    with publisher.tables.copy(["p"], RelationName("public", "t"), snapshot):
        pass
    list(execute(adopted, "ALTER TABLE t OWNER TO nobody"))
    copy = publisher.tables.copy(["p"], RelationName("public", "t"), snapshot)
    with pytest.raises(ConnectionFailure, match='denied to read the files of table "t"'), copy:
        pass


def test_vacuum_removes_no_files_that_the_owner_may_not_write(session: Session) -> None:
    list(execute(session, _ROLES))
    told: list[str] = []
    session.on_notice = lambda notice: told.append(f"{notice.severity}: {notice.message}")
    place = session.cluster.path.parent / "made"
    list(execute(session, f"CREATE TABLE t (a int) USING delta LOCATION '{place}'"))
    list(execute(session, "VACUUM t"))
    assert told == []
    list(execute(session, "ALTER TABLE t OWNER TO reader"))
    list(execute(session, "VACUUM t"))
    assert told == ['WARNING: skipping "t" --- permission denied to write the files of table "t"']
    assert DeltaTable.is_deltatable(str(place))
