"""A neighbour changes a subscription's table: DML of others is allowed, as in PostgreSQL.

The test runs every fifth action of owner_actions on a copy of its own, by turns with and without a
change feed.  The subscription continues: later changes apply to the rows that are there.  For each
second table, REFRESH TABLE then restores the publisher's rows.  With REPLCTL_TEST_ALL=1,
the test runs all actions with and without a feed, and REFRESH TABLE for all tables.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from long_tests import sampled
from owned_lake import OwnedLake, Row, with_feeds
from owner_actions import AT_A_TARGET, write_rows

from replctl.catalog.cluster import Cluster

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = [pytest.mark.spark, pytest.mark.slow(2)]

_ACTIONS = sampled(AT_A_TARGET, 5)
_TABLES = {name: (action, has_feed) for name, action, has_feed in with_feeds(_ACTIONS)}
_REFRESHED = sampled(list(_TABLES), 2)


def _with_later_changes(acted: list[Row], published: list[Row]) -> list[Row]:
    """Return rows with the publisher's later changes, as PostgreSQL applies them: an update or a
    delete whose row is missing changes nothing."""
    rows, new = ({row[0]: row for row in side} for side in (acted, published))
    rows |= {key: new[key] for key in ("4", "7") if key in rows}
    rows.pop("10", None)
    rows["200"] = new["200"]
    return sorted(rows.values(), key=str)


def test_later_changes_apply_to_what_is_there(
    shared_cluster: Cluster, engine: Engine, tmp_path: Path
) -> None:
    """The test runs all actions, then a sync, then a sync after REFRESH TABLE.  It is one test,
    because each worker would repeat the actions for its own."""
    lake = OwnedLake(shared_cluster, engine, tmp_path)
    tables = {
        name: lake.make(name, has_feed=has_feed) for name, (_action, has_feed) in _TABLES.items()
    }
    sources, targets = (
        [getattr(t, side) for t in tables.values()] for side in ("source", "target")
    )
    lake.subscribe("s", list(tables.values()))
    for name, (action, _has_feed) in _TABLES.items():
        action.act(tables[name].target)
    acted = lake.rows(targets)
    for table in sources:
        table.update("later", "id IN (4, 7)")
        table.delete("id = 10")
        write_rows(table.location, [200], "later")
    assert lake.sync() == {}
    applied = lake.rows(targets)
    lake.target.run(f"ALTER SUBSCRIPTION s REFRESH TABLE {', '.join(_REFRESHED)}")
    assert lake.sync() == {}
    published = lake.rows(sources)
    refreshed = lake.rows(tables[name].target for name in _REFRESHED)
    expected = {
        table.target.location: _with_later_changes(
            acted[table.target.location], published[table.source.location]
        )
        for table in tables.values()
    }
    assert applied == expected
    assert refreshed == {
        tables[name].target.location: published[tables[name].source.location] for name in _REFRESHED
    }
