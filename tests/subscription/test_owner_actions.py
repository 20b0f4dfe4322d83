"""What the owner of a published table does besides DML: the copy ends equal, without help.

Each action of owner_actions is done to a table of its own, with a change feed or without, in turn;
by delta-rs where it has it, for Spark's DML, OPTIMIZE, overwrites and RESTORE are done in
test_published_only.py and test_feed_and_files.py.  With REPLCTL_TEST_ALL_ACTIONS=1 each is done
with a feed and without, by Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from owned_lake import TRIES_ALL, CopiedTable, OwnedLake, Row, with_feeds
from owner_actions import AT_A_SOURCE

from replctl.catalog.cluster import Cluster

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_TABLES = {name: (action, has_feed) for name, action, has_feed in with_feeds(AT_A_SOURCE)}


@pytest.fixture(scope="module")
def ends(
    shared_cluster: Cluster, engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[list[Row], list[Row]]]:
    """The rows of each table and of its copy, after all actions and one sync."""
    lake = OwnedLake(shared_cluster, engine, tmp_path_factory.mktemp("lake"))
    tables: dict[str, CopiedTable] = {
        name: lake.make(name, has_feed=has_feed) for name, (_action, has_feed) in _TABLES.items()
    }
    lake.target.run("; ".join(f"ALTER TABLE {name} ADD extra text" for name in tables))
    lake.subscribe("s", list(tables.values()))
    for name, (action, _has_feed) in _TABLES.items():
        action.act(tables[name].source, is_quick=not TRIES_ALL)
        tables[name].source.update("later", "id IN (4, 7)")
    assert lake.sync() == {}
    rows = lake.rows(owned for table in tables.values() for owned in (table.source, table.target))
    return {
        name: (rows[table.source.location], rows[table.target.location])
        for name, table in tables.items()
    }


@pytest.mark.parametrize("table", _TABLES)
def test_a_copy_ends_equal_without_help(
    ends: dict[str, tuple[list[Row], list[Row]]], table: str
) -> None:
    owned, copied = ends[table]
    assert copied == owned
