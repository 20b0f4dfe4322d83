"""Row versions in a transaction of the catalogs."""

from __future__ import annotations

from sqlalchemy import event, select

from replctl.catalog import schema
from replctl.catalog.cluster import Cluster
from replctl.catalog.initdb import POSTGRES_DATABASE
from replctl.catalog.transaction import Catalog
from replctl.execute import execute
from replctl.session import Session

_ROLES, _COMMENTS = schema.pg_authid, schema.pg_shdescription


def stored_names(catalog: Catalog, oid: int) -> list[tuple[str, bool]]:
    """Return the stored versions of a role: its name, and whether a transaction has removed it."""
    query = (
        select(_ROLES.c.rolname, _ROLES.c.xmax != 0)
        .where(_ROLES.c.oid == oid)
        .order_by(_ROLES.c.rolname)
    )
    return [(str(name), bool(is_removed)) for name, is_removed in catalog.connection.execute(query)]


def test_a_deletion_of_nothing_changes_nothing(cluster: Cluster) -> None:
    with cluster.write(POSTGRES_DATABASE) as catalog:
        assert catalog.delete(_ROLES, _ROLES.c.rolname == "nobody") == 0
        assert catalog.update(_ROLES, _ROLES.c.rolname == "nobody", rolname="somebody") == 0
        assert not catalog.has_xid


def test_a_row_of_another_transaction_stays_for_its_readers(cluster: Cluster) -> None:
    session = Session.connect(cluster, "postgres", "postgres")
    with session.write() as catalog:
        catalog.insert(_ROLES, oid=77777, rolname="a")
        catalog.insert(_COMMENTS, objoid=77777, classoid=1260, description="first")
    with session.write() as catalog:
        assert catalog.update(_ROLES, _ROLES.c.oid == 77777, rolname="b") == 1
        assert stored_names(catalog, 77777) == [("a", True), ("b", False)]
        # The row of this transaction has no readers yet
        assert catalog.update(_ROLES, _ROLES.c.oid == 77777, rolname="c") == 1
        assert stored_names(catalog, 77777) == [("a", True), ("c", False)]
        assert catalog.delete(_ROLES, _ROLES.c.oid == 77777) == 1
        assert stored_names(catalog, 77777) == [("a", True)]
        assert catalog.first(_COMMENTS, _COMMENTS.c.objoid == 77777) is None


def test_one_deletion_of_rows_of_several_transactions(cluster: Cluster) -> None:
    session = Session.connect(cluster, "postgres", "postgres")
    with session.write() as catalog:
        catalog.insert(_ROLES, oid=77777, rolname="a")
    with session.write() as catalog:
        catalog.insert(_ROLES, oid=77778, rolname="b")
        assert catalog.delete(_ROLES, _ROLES.c.oid.in_((77777, 77778))) == 2
        assert stored_names(catalog, 77777) == [("a", True)]
        assert stored_names(catalog, 77778) == []


def test_statements_send_few_statements_to_sqlite(cluster: Cluster) -> None:
    """A statement of SQLite costs a short command about as much time as 30 lines of Python."""
    sent: list[str] = []
    event.listen(cluster.engine, "before_cursor_execute", lambda *sql: sent.append(sql[2]))
    session = Session.connect(cluster, "postgres", "postgres")
    counts = [len(sent)]
    for statement in ("CREATE TABLE t (a int PRIMARY KEY)", "DROP TABLE t"):
        sent.clear()
        for _result in execute(session, statement):
            pass
        counts.append(len(sent))
    assert counts[0] <= 17
    assert counts[1] <= 86
    assert counts[2] <= 200
