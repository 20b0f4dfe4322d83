"""The columns of an owner's table at both ends of versions that are compared together, without
Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from fix_cluster import relation_of
from fix_replication import Database
from owners_log import OwnersLog, field

from replctl.catalog.pg_wal import CHANGE, TRUNCATE, LogEntry
from replctl.lake.change_source import change_source, sent_entry
from replctl.lake.table_read import enter_foreign_versions
from replctl.replication.published_relation import PublicationSet
from replctl.session import Session
from replctl.spark import FeedVersion, TableColumn


def _column(session: Session, number: int) -> TableColumn:
    """Return a column of table t as decoding reads it in version 1, and in versions 3 and 4
    together.
    """
    enter_foreign_versions(session)
    with session.read() as catalog:
        published = PublicationSet.of_names(catalog, ["p"]).changes_of(relation_of(session))
    assert published is not None
    versions = [FeedVersion(1, 1), FeedVersion(4, 2, is_compared=True, first=3)]
    return change_source(published, versions).source.column(number)


def test_joined_versions_are_read_by_the_names_before_the_first(
    session: Session, tmp_path: Path
) -> None:
    owner = OwnersLog(tmp_path / "t")

    def named(name: str) -> None:
        owner.commit([field("id", "c1", "integer"), field(name, "c2")])

    named("c")
    database = Database(session)
    database.run(f"CREATE TABLE t USING delta LOCATION '{tmp_path / 't'}'")
    database.run("CREATE PUBLICATION p FOR TABLE t; ALTER TABLE t RENAME COLUMN c TO mine")
    owner.commit(added=[{}])
    named("d")
    owner.commit(added=[{}])
    owner.commit(added=[{}])
    named("e")
    column = _column(session, 2)
    assert [column.at(version).storage_name for version in (0, 1, 2, 4)] == ["c", "c", "d", "d"]


def test_joined_versions_are_read_in_the_zone_before_the_first(
    session: Session, tmp_path: Path
) -> None:
    """The owner has stopped to partition the table by column c in version 2."""
    owner = OwnersLog(tmp_path / "t", is_mapped=False)
    fields = [field("id", type_="integer"), field("c", type_="timestamp")]
    owner.commit(fields, partitioned_by=["c"])
    database = Database(session)
    database.run(
        f"CREATE TABLE t USING delta LOCATION '{tmp_path / 't'}'"
        " WITH (partition_timezone = 'Asia/Tokyo')"
    )
    database.run("CREATE PUBLICATION p FOR TABLE t")
    owner.commit(added=[{"c": "2026-11-30 00:00:00"}])
    owner.commit(fields)
    owner.commit(added=[{}])
    owner.commit(added=[{}])
    column = _column(session, 2)
    zones = [column.at(version).zone for version in (0, 1, 2, 4)]
    assert [None if zone is None else zone.name for zone in zones] == [
        *["Asia/Tokyo"] * 2,
        *[None] * 2,
    ]


@pytest.mark.parametrize(
    ("publication", "version", "action"),
    [("root", 5, CHANGE), ("root", None, TRUNCATE), ("leaves", 5, TRUNCATE)],
)
def test_the_truncate_of_a_partition_by_another_program_removes_its_rows(
    session: Session, publication: str, version: int | None, action: str
) -> None:
    database = Database(session)
    database.run("CREATE TABLE t (id int) PARTITION BY LIST (id)")
    database.run("CREATE TABLE part PARTITION OF t DEFAULT; CREATE PUBLICATION leaves FOR TABLE t")
    database.run("CREATE PUBLICATION root FOR TABLE t WITH (publish_via_partition_root)")
    with session.read() as catalog:
        leaf = relation_of(session, "part")
        published = PublicationSet.of_names(catalog, [publication]).changes_of(leaf)
    assert published is not None
    entry = LogEntry(1, 2, 3, 0, None, leaf.oid, version, TRUNCATE, {})
    assert sent_entry(entry, published).action == action
