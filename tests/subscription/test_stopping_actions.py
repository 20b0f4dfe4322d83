"""What may stop a subscription, done by the owner of a published table or by a neighbour to a copy.

The copy ends equal, or the subscription stops with an error whose HINT, word for word, makes it
equal.  Each action of owner_actions is done to a table of its own, with a change feed or without,
in turn.  With REPLCTL_TEST_ALL_ACTIONS=1 each is done with a feed and without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from follow_hint import follow_hint
from owned_lake import OwnedLake, Row, with_feeds
from owner_actions import STOPS_AT_A_SOURCE, STOPS_AT_A_TARGET

from replctl.catalog.cluster import Cluster
from replctl.errors import PostgresError

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_TABLES = {
    f"{side}_{name}": (side, action, has_feed)
    for side, actions in (("source", STOPS_AT_A_SOURCE), ("target", STOPS_AT_A_TARGET))
    for name, action, has_feed in with_feeds(actions)
    if (side, action.name) != ("target", "log lost")  # DML of others: the subscription goes on
}


#: The key is a column of the table no more: the HINT takes the table out of the publication.
_LEAVES = "key_column_gone"


@dataclass(frozen=True)
class Ends:
    """A table after an action, and after the HINTs of what stopped.

    Attributes:
        errors: that stopped the subscription, in turn.
        owned, copied: rows.
        is_member: the subscription has the table.
    """

    errors: tuple[PostgresError, ...]
    owned: list[Row]
    copied: list[Row]
    is_member: bool


@pytest.fixture(scope="module")
def ends(
    shared_cluster: Cluster, engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Ends]:
    """All actions done; after two rounds of HINTs at most, all subscriptions go on."""
    lake = OwnedLake(shared_cluster, engine, tmp_path_factory.mktemp("lake"))
    tables = {
        name: lake.make(name, has_feed=has_feed)
        for name, (_side, _action, has_feed) in _TABLES.items()
    }
    for name, table in tables.items():
        lake.subscribe(name, [table])
        for owned in (table.source, table.target):
            owned.save()
            owned.update("since the backup", "id = 3")
    assert lake.sync() == {}
    for name, (side, action, _has_feed) in _TABLES.items():
        action.act(getattr(tables[name], side))
        tables[name].source.update("later", "n = 1")
    errors: dict[str, list[PostgresError]] = {name: [] for name in tables}
    for _round in range(3):
        failures = lake.sync()
        for name, failure in failures.items():
            errors[name].append(failure.error)
            follow_hint(failure.error, lake.target, lake.database)
            tables[name].source.update("after the hint", "n = 0")
    assert failures == {}
    members = {
        name
        for (name,) in lake.target.rows(
            "SELECT relname FROM pg_subscription_rel JOIN pg_class ON oid = srrelid"
        )
    }
    whole = [table for name, table in tables.items() if _LEAVES not in name]
    rows = lake.rows(owned for table in whole for owned in (table.source, table.target))
    return {
        name: Ends(
            tuple(errors[name]),
            rows.get(table.source.location, []),
            rows.get(table.target.location, []),
            name in members,
        )
        for name, table in tables.items()
    }


@pytest.mark.parametrize("table", _TABLES)
def test_the_hint_makes_a_copy_equal(ends: dict[str, Ends], table: str) -> None:
    found = ends[table]
    assert found.copied == found.owned, found.errors
    assert found.is_member == (_LEAVES not in table)
