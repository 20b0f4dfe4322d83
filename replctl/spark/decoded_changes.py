"""Decode the changes of a published relation: keep them for a batch, list or count them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from replctl.replication.update_transformation import ROW_ACTIONS, Action
from replctl.spark.change_data_feed import changes_sql, ordered_changes_sql
from replctl.spark.narrowed_version import narrowed
from replctl.spark.shared_feed import SharedFeeds
from replctl.spark.spark_query import reading, union_text
from replctl.spark.staged import Staged, StagedColumn
from replctl.spark.staging import SMALL, staged
from replctl.spark.values import IMAGES, ChangeSource, SentColumn

if TYPE_CHECKING:
    from replctl.spark.engine import Engine


@contextmanager
def decoded(
    engine: Engine,
    sources: Sequence[ChangeSource],
    sent: Sequence[SentColumn],
    count: int,
    feeds: SharedFeeds | None = None,
) -> Iterator[Staged]:
    """Yield the changes of one published relation, from all its tables.

    Args:
        count: estimated number of changes to read.
        feeds: the feeds that several subscriptions share; None for one subscription.
    """
    with ExitStack() as stack:
        if feeds is None:
            narrow = [stack.enter_context(narrowed(engine, source, count)) for source in sources]
            query = union_text([*map(changes_sql, narrow)])
        else:
            pairs = [stack.enter_context(feeds.pairs(engine, source, count)) for source in sources]
            query = union_text([*map(changes_sql, sources, pairs)])
        is_many = count > SMALL if feeds is None else None
        yield stack.enter_context(staged(engine, query, _columns(sent), is_many=is_many))


def listed_changes(
    engine: Engine, source: ChangeSource, sent: Sequence[SentColumn], count: int
) -> list[list[str | None]]:
    """Return the changes of one table as texts: position, action, old row, new row.  Their order is
    that of `ordered_changes_sql`.

    Args:
        count: estimated number of changes.
    """
    with narrowed(engine, source, count) as narrow:
        return engine.fetch(ordered_changes_sql(narrow), _columns(sent))


def count_actions(engine: Engine, changes: Staged, first: int, last: int) -> dict[Action, int]:
    """Return the number of changes of each kind in a range of positions."""
    counts = (
        f"SELECT action, count(*) FROM {changes.view} WHERE position BETWEEN {first} AND {last}"
        " GROUP BY action"
    )
    counted = engine.rows(reading(counts, changes.query))
    return {Action(action): int(count) for action, count in counted}


def first_action(
    engine: Engine, changes: Staged, first: int, last: int, actions: Iterable[Action] = ROW_ACTIONS
) -> tuple[int, Action] | None:
    """Return the position and kind of the first change in a range of positions that has one of the
    kinds `actions`; None without such a change."""
    listed = ", ".join(f"'{action}'" for action in actions)
    chosen = (
        f"SELECT position, action FROM {changes.view} WHERE position BETWEEN {first} AND {last}"
        f" AND action IN ({listed}) ORDER BY position LIMIT 1"
    )
    found = engine.rows(reading(chosen, changes.query))
    return (int(found[0][0]), Action(found[0][1])) if found else None


def _columns(sent: Sequence[SentColumn]) -> list[StagedColumn]:
    """Return the columns of the changes: position, action, and the old and the new image."""
    images = [
        StagedColumn(f"{image}{i}", column.type, column.typmod)
        for image in IMAGES
        for i, column in enumerate(sent, start=1)
    ]
    return [StagedColumn("position", "int8"), StagedColumn("action", "text"), *images]
