"""After actions of a published table's owner other than DML, the copy is equal without help.

Every fifth action of owner_actions runs on a table of its own, by turns with and without a change
feed; test_neighbour_actions.py runs others at a copy.  An action uses delta-rs if possible,
because test_published_only.py and test_feed_and_files.py test DML, OPTIMIZE, overwrites and RESTORE
of Spark.  With REPLCTL_TEST_ALL=1 all actions run with and without a feed, in Spark.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from long_tests import RUNS_ALL, sampled
from owned_lake import OwnedLake, with_feeds
from owner_actions import AT_A_SOURCE

from replctl.catalog.cluster import Cluster

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = [pytest.mark.spark, pytest.mark.slow(2.5)]

_ACTIONS = sampled(AT_A_SOURCE, 5, 1)
_TABLES = {name: (action, has_feed) for name, action, has_feed in with_feeds(_ACTIONS)}


def test_copies_end_equal_without_help(
    shared_cluster: Cluster, engine: Engine, tmp_path: Path
) -> None:
    """The test runs all actions and then one sync.  It is one test, because each worker would
    repeat the actions for its own."""
    lake = OwnedLake(shared_cluster, engine, tmp_path)
    tables = {
        name: lake.make(name, has_feed=has_feed) for name, (_action, has_feed) in _TABLES.items()
    }
    for name, (action, _has_feed) in _TABLES.items():
        if action.adds_column:
            lake.target.run(f"ALTER TABLE {name} ADD extra text")
    lake.subscribe("s", list(tables.values()))
    for name, (action, _has_feed) in _TABLES.items():
        action.act(tables[name].source, is_quick=not RUNS_ALL)
        tables[name].source.update("later", "id IN (4, 7)")
    assert lake.sync() == {}
    rows = lake.rows(owned for table in tables.values() for owned in (table.source, table.target))
    copied, owned = (
        {name: rows[getattr(table, side).location] for name, table in tables.items()}
        for side in ("target", "source")
    )
    assert copied == owned
