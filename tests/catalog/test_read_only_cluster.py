"""replctl refuses statements that write a read-only cluster.  These tests need no other user or
file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from replctl.catalog.cluster import Cluster
from replctl.catalog.read_only_cluster import ReadOnlyCluster
from replctl.errors import FileAccessDenied, ObjectNotInPrerequisiteState
from replctl.session import Session

_REFUSAL = FileAccessDenied('could not use directory "x": Permission denied')


def test_what_writes_is_refused_with_the_reason(cluster: Cluster) -> None:
    opened = ReadOnlyCluster(cluster.path, _REFUSAL)
    assert opened.system_identifier == cluster.system_identifier
    session = Session.connect(opened, "postgres", "postgres")
    with session.read() as catalog:
        assert catalog.database_oid == session.database_oid
    for write in (opened.begin(write=True), session.write(), opened.lock("any")):
        with pytest.raises(FileAccessDenied, match="Permission denied"), write:
            pass
    assert opened.is_alive(cluster.backend)
    assert not opened.is_alive("1-dead")
    session.close()
    opened.close()


def test_a_catalog_of_another_revision_is_refused(cluster: Cluster) -> None:
    with cluster.begin(write=True) as connection:
        connection.exec_driver_sql("update alembic_version set version_num = 'other'")
    with pytest.raises(ObjectNotInPrerequisiteState, match="has revision other"):
        ReadOnlyCluster(cluster.path, _REFUSAL)


def test_a_catalog_that_was_never_complete_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").touch()
    with pytest.raises(FileAccessDenied):
        ReadOnlyCluster(tmp_path, _REFUSAL)
