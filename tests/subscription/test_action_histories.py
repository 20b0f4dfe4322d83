"""Random histories of the actions of owners and neighbours, with syncs and reconciles in between.

Actions are drawn evenly from owner_actions, and use delta-rs if it can write the table.  Plain
Spark compares the tables at the end.  Only some actions may stop a subscription, and then its HINT
makes the tables equal.  REPLCTL_TEST_HISTORIES is the number of histories (default: 5 short ones).
REPLCTL_TEST_SEED changes them.  Each has a table and a subscription of its own, and one sync
serves a batch.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from follow_hint import follow_hint
from owned_lake import CopiedTable, OwnedLake
from owner_actions import (
    AT_A_SOURCE,
    AT_A_TARGET,
    INCOMPATIBLE,
    STOPS_AT_A_SOURCE,
    STOPS_AT_A_TARGET,
)

from replctl.catalog.cluster import Cluster
from replctl.errors import PostgresError
from replctl.launcher import SyncFailure

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

pytestmark = pytest.mark.spark

_HISTORIES = int(os.environ.get("REPLCTL_TEST_HISTORIES", "5"))
_SEED = int(os.environ.get("REPLCTL_TEST_SEED", "1"))
_BATCH = 20
#: Number of actions of a history, and of syncs.
_ACTIONS, _ROUNDS = (6, 3) if "REPLCTL_TEST_HISTORIES" in os.environ else (3, 2)
#: (side, action, whether it may stop the subscription)
_MATRIX = [
    (side, action, action in stops)
    for side, continuing, stops in (
        ("source", AT_A_SOURCE, STOPS_AT_A_SOURCE),
        ("target", AT_A_TARGET, STOPS_AT_A_TARGET),
    )
    for action in [*continuing, *stops]
    if action not in INCOMPATIBLE  # other actions need the columns
]


#: The statement that helps after a shallow clone by the owner, which the subscriber cannot detect.
_TRUSTED = re.compile(r'If the table is a shallow clone.+: in database ".+", use (ALTER TABLE .+;)')


@dataclass
class History:
    """The actions on a table and its copy.

    Attributes:
        may_stop: since the last sync, something was done that may stop the subscription.
        is_behind: since the last sync, the owner has acted.
        is_touched: since the last reconcile, a neighbour has acted on the copy.
        is_torn: since the last reconcile, the copy has lost files that a later sync may need.
        steps: the actions so far.
        problems: the failures so far.
    """

    table: CopiedTable
    random: Random
    may_stop: bool = False
    is_behind: bool = False
    is_touched: bool = False
    is_torn: bool = False
    steps: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.table.name}: {'; '.join(self.steps)}: {'; '.join(self.problems)}"

    def act(self) -> None:
        """Do a random action.  Spark may refuse it, or carry out only a part of it."""
        side, action, stops = self.random.choice(_MATRIX)
        self.steps.append(f"{action.name} ({side})")
        self.may_stop |= stops or (action.name == "log cleaned" and self.is_behind)
        owned = self.table.source if side == "source" else self.table.target
        if side == "source":
            self.is_behind = True
        else:
            self.is_touched = True
            self.is_torn |= action.name == "files lost"
        try:
            action.act(owned, is_quick=True)
        except PostgresError as error:
            self.steps.append(f"refused: {error.message[:200]}")

    def note_failure(self, error: PostgresError) -> None:
        self.steps.append(f"stopped: {error.message} {error.hint}")
        if not (self.may_stop or self.is_torn):
            self.problems.append("it may not stop here")

    def note_sync(self) -> None:
        """Record a sync that has applied all changes.  Save the tables in half of the cases."""
        self.steps.append("sync")
        self.may_stop = self.is_behind = False
        if self.random.random() < 0.5:
            self.table.source.save()
            self.table.target.save()


class Batch:
    """Histories that share their syncs."""

    def __init__(self, lake: OwnedLake, numbers: Sequence[int]) -> None:
        self._lake = lake
        self.histories: dict[str, History] = {}
        for number in numbers:
            random = Random(f"{_SEED} {number}")
            table = lake.make(f"history_{number}", has_feed=random.random() < 0.5)
            lake.target.run(f"ALTER TABLE {table.name} ADD extra text")
            lake.subscribe(table.name, [table])
            table.source.save()
            table.target.save()
            self.histories[table.name] = History(table, random)

    def run(self) -> list[str]:
        """Run the histories; return those that have problems."""
        for _round in range(_ROUNDS):
            for history in self._going():
                for _action in range(history.random.randint(1, 2 * _ACTIONS // _ROUNDS - 1)):
                    history.act()
            self._sync()
            self._compare()
        for history in self._going():
            if history.is_touched:
                self._reconcile(history)
        self._sync()
        self._compare()
        for history in self._going():
            self._lake.target.run(f"DROP SUBSCRIPTION {history.table.name}")
        return [str(history) for history in self.histories.values() if history.problems]

    def _going(self) -> Iterator[History]:
        return (history for history in self.histories.values() if not history.problems)

    def _reconcile(self, history: History) -> None:
        name = history.table.name
        history.steps.append("reconcile")
        history.is_touched = False
        try:
            self._lake.target.run(f"ALTER SUBSCRIPTION {name} REFRESH TABLE {name}")
        except PostgresError as error:
            history.problems.append(f"{error.message} {error.detail} {error.hint}")

    def _sync(self) -> None:
        """Sync and follow the HINTs, in at most four rounds, until no subscription fails."""
        for _attempt in range(4):
            failures = self._lake.sync()
            for name, failure in failures.items():
                self._follow(self.histories[name], failure)
            if not failures:
                break
        for name in failures:
            self.histories[name].problems.append("the HINT does not help")
        for history in self._going():
            history.note_sync()

    def _follow(self, history: History, failure: SyncFailure) -> None:
        history.note_failure(failure.error)
        trusted = _TRUSTED.fullmatch(failure.error.hint or "")
        try:
            if trusted is not None:
                self._lake.source.run(trusted[1])
            else:
                follow_hint(failure.error.hint, self._lake.target, self._lake.database)
        except (PostgresError, AssertionError) as error:
            history.problems.append(f"the HINT fails: {error}")
        if history.problems:
            self._lake.target.run(f"ALTER SUBSCRIPTION {history.table.name} DISABLE")
        if "REFRESH TABLE" in (failure.error.hint or ""):
            history.is_touched = history.is_torn = False

    def _compare(self) -> None:
        going = [history for history in self._going() if not history.is_touched]
        tables = [history.table for history in going]
        rows = self._lake.rows(owned for table in tables for owned in (table.source, table.target))
        for history in going:
            owned, copied = (
                rows[place.location] for place in (history.table.source, history.table.target)
            )
            if owned != copied:
                history.problems.append(f"{copied} are not {owned}")


@pytest.mark.parametrize("first", range(0, _HISTORIES, _BATCH))
def test_histories_end_equal(
    shared_cluster: Cluster,
    engine: Engine,
    tmp_path: Path,
    first: int,
) -> None:
    lake = OwnedLake(shared_cluster, engine, tmp_path)
    batch = Batch(lake, range(first, min(first + _BATCH, _HISTORIES)))
    problems = batch.run()
    assert not problems, "\n".join(problems)
