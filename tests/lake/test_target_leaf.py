"""Another program adds a column to a partition whose root lacks this column, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from fix_cluster import relation_of
from fix_replication import Database
from owners_log import OwnersLog, field

from replctl.errors import FeatureNotSupported, ObjectNotInPrerequisiteState
from replctl.lake.partition_tree import partition_tree
from replctl.lake.table_read import enter_foreign_versions
from replctl.lake.target import local_target, replication_target
from replctl.replication.node import RemoteColumn, RemoteRelation
from replctl.session import Session
from replctl.spark import Target

_COLUMNS = [field("id", type_="integer"), field("v")]
_REMOTE = RemoteRelation(
    "public", "t", (RemoteColumn("id", "int4", -1), RemoteColumn("v", "text", -1)), ("id",)
)


@pytest.fixture
def database(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    """Return a database with table t.  Another program adds a column to the Delta table of its
    partition `low`.
    """
    monkeypatch.setattr("replctl.commands.attach.require_partition_rows", lambda *_args: None)
    owner = OwnersLog(tmp_path / "low", is_mapped=False)
    owner.commit(_COLUMNS)
    database = Database(session)
    database.run(
        "CREATE TABLE t (id int, v text) PARTITION BY RANGE (id);"
        " CREATE TABLE high PARTITION OF t FOR VALUES FROM (10) TO (20);"
        f" CREATE TABLE low USING delta LOCATION '{tmp_path / 'low'}';"
        " ALTER TABLE t ATTACH PARTITION low FOR VALUES FROM (0) TO (10)"
    )
    owner.commit([*_COLUMNS, field("extra")])
    enter_foreign_versions(session)
    return database


def _targets(session: Session) -> tuple[Target, Target]:
    """Return the target of statements, and that of replication."""
    with session.read() as catalog:
        root = relation_of(session)
        tree = partition_tree(catalog, root)
    return local_target(root, tree), replication_target(root, _REMOTE, tree)


def test_it_is_left_out(session: Session, database: Database) -> None:
    for target in _targets(session):
        assert {leaf.name: leaf.source.left_out for leaf in target.leaves} == {
            "low": ("extra",),
            "high": (),
        }
        assert [column.name for column in target.columns] == ["id", "v"]
    database.run("ALTER TABLE t ADD COLUMN extra text")
    assert [leaf.source.left_out for leaf in _targets(session)[0].leaves] == [(), ()]


def test_constraints_that_use_it(
    session: Session, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("replctl.commands.constraint.require_check", lambda *_args: None)
    database.run("ALTER TABLE low ADD CHECK (extra <> v)")
    with pytest.raises(FeatureNotSupported) as caught:
        _targets(session)
    assert caught.value.message == (
        'cannot write partition "low": its constraints or indexes use column "extra", which table'
        ' "t" lacks'
    )
    assert caught.value.hint is not None
    database.run(caught.value.hint[caught.value.hint.index("ALTER") :])
    assert [leaf.name for leaf in _targets(session)[0].leaves] == ["high"]


def test_the_hint_for_columns_that_a_partition_lacks(session: Session, database: Database) -> None:
    """A partition gets its columns from its root."""
    with session.read() as catalog:
        leaf = relation_of(session, "low")
        tree = partition_tree(catalog, leaf)
    columns = (*_REMOTE.columns, RemoteColumn("w", "text", -1))
    with pytest.raises(ObjectNotInPrerequisiteState) as caught:
        replication_target(leaf, RemoteRelation("public", "low", columns, ("id",)), tree)
    hint = caught.value.hint or ""
    assert hint.endswith("use ALTER TABLE public.t ADD COLUMN w text;")
    database.run("ALTER TABLE t ADD COLUMN w text")
    assert relation_of(session, "low").column("w") is not None
