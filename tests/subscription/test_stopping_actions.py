"""Actions that may stop a subscription: of the owner on a published table, or of a neighbour on a
copy.

Afterwards the copy is equal, or the subscription stops with an error whose HINT, word for word,
makes it equal.  Every second action of owner_actions at a source, and every fifth one at a
target, runs on a table of its own, by turns with and without a change feed.  With
REPLCTL_TEST_ALL=1 all actions run with and without a feed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from follow_hint import follow_hint
from long_tests import sampled
from owned_lake import OwnedLake, with_feeds
from owner_actions import STOPS_AT_A_SOURCE, STOPS_AT_A_TARGET

from replctl.catalog.cluster import Cluster

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = [pytest.mark.spark, pytest.mark.slow(2)]

_AT_A_SOURCE = sampled(STOPS_AT_A_SOURCE, 2)
_AT_A_TARGET = sampled(STOPS_AT_A_TARGET, 5)
_TABLES = {
    f"{side}_{name}": (side, action, has_feed)
    for side, actions in (("source", _AT_A_SOURCE), ("target", _AT_A_TARGET))
    for name, action, has_feed in with_feeds(actions)
    if (side, action.name) != ("target", "log lost")  # DML of others: the subscription continues
}


#: The table no longer has the key column: the HINT removes the table from the publication.
_LEAVES = "key_column_gone"
#: The clone lacks the copy's own column.  Before rows are copied, the column must be added again.
_LOSES_A_COLUMN = "clone_into_the_emptied_table"


def test_the_hints_make_copies_equal(
    shared_cluster: Cluster, engine: Engine, tmp_path: Path
) -> None:
    """After all actions, and at most two rounds of HINTs, all subscriptions continue.  This is one
    test, because each worker would repeat the actions for its own."""
    lake = OwnedLake(shared_cluster, engine, tmp_path)
    tables = {
        name: lake.make(name, has_feed=has_feed)
        for name, (_side, _action, has_feed) in _TABLES.items()
    }
    for name, (side, action, _has_feed) in _TABLES.items():
        if (side, action.word) == ("target", _LOSES_A_COLUMN):
            lake.target.run(f"ALTER TABLE {name} ADD extra text")
    for name, table in tables.items():
        lake.subscribe(name, [table])
        for owned in (table.source, table.target):
            owned.save()
            owned.update("since the backup", "id = 3")
    assert lake.sync() == {}
    for name, (side, action, _has_feed) in _TABLES.items():
        action.act(getattr(tables[name], side))
        tables[name].source.update("later", "n = 1")
    errors: dict[str, list[str]] = {name: [] for name in tables}
    for _round in range(3):
        failures = lake.sync()
        for name, failure in failures.items():
            errors[name].append(str(failure.error))
            follow_hint(failure.error.hint, lake.target, lake.database)
            tables[name].source.update("after the hint", "n = 0")
    assert failures == {}
    members = {
        str(name)
        for (name,) in lake.target.rows(
            "SELECT relname FROM pg_subscription_rel JOIN pg_class ON oid = srrelid"
        )
    }
    assert members == {name for name in tables if _LEAVES not in name}
    rows = lake.rows(
        owned for name in members for owned in (tables[name].source, tables[name].target)
    )
    copies, sources = (
        {name: rows[getattr(tables[name], side).location] for name in members}
        for side in ("target", "source")
    )
    assert copies == sources, errors
