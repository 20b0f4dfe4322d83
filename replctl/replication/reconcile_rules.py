"""Which rows of a subscriber's table a reconcile may delete: those that are the subscription's.

The rows that the publisher does not send are deleted only if the publications publish deletes, and:

1. all of them, where every commit that changed rows since the table was empty, copied or reconciled
   is the subscription's own;
2. else those that pass any row filter that was applied since then, where one subscription feeds the
   partition tree, its origin is `any`, and the filters' columns are replicated without a change of
   type;
3. else those that the statement says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from replctl.catalog.pg_subscription import SubscriptionRelation
from replctl.catalog.table_copy import AppliedFilter, Deletion
from replctl.expr import nodes, pg_node_tree
from replctl.record import dataclass
from replctl.replication.node import RemoteRelation


@dataclass(frozen=True, slots=True)
class LocalColumn:
    """A column of the subscriber's table."""

    attnum: int
    type: str
    typmod: int


@dataclass(frozen=True, slots=True)
class Scope:
    """The rows of a table that pass any row filter that was applied.

    Attributes:
        filters: in the numbering of the subscriber's table; () if every row passes.
        problem: why that cannot be told from the rows; None if it can.
    """

    filters: tuple[nodes.Expr, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class RowOwnership:
    """The known facts of the rows of a subscriber's table.

    Attributes:
        publishes_delete: the publications publish deletes of it.
        is_own: every commit that changed rows since it was empty, copied or reconciled is the
            subscription's own, for this published table.
        has_other_feeds: another subscription writes into the partition tree, or this one writes
            rows of another published table into the same leaves.
        has_any_origin: the subscription takes changes of any origin.
        scope: which rows pass a filter that was applied.
    """

    publishes_delete: bool
    is_own: bool
    has_other_feeds: bool
    has_any_origin: bool
    scope: Scope


@dataclass(frozen=True, slots=True)
class UnpublishedRows:
    """How many rows of a table the publisher does not send.

    Attributes:
        in_scope: that pass a row filter; None if that cannot be told.
        total: all.
    """

    in_scope: int | None
    total: int


def deletion_of(ownership: RowOwnership, said: Deletion | None) -> Deletion | None:
    """Return which rows a reconcile deletes; None: the statement has to say it.

    Args:
        said: what the statement says, if anything.
    """
    if not ownership.publishes_delete:
        return Deletion.NONE
    if said is not None:
        return said
    if ownership.is_own:
        return Deletion.ALL
    return None if undecided_reasons(ownership) else Deletion.SCOPE


def loses_too_many(deleted: int, total: int, percentage: int) -> bool:
    """Return whether a reconcile that nobody has asked for deletes too many rows.

    Args:
        deleted: that the publisher does not send.
        total: that the subscriber's table has.
        percentage: how many of these it may delete.
    """
    return deleted * 100 > total * percentage


def owned_conditions(
    ownership: RowOwnership, said: Deletion | None = None
) -> tuple[nodes.Expr, ...] | None:
    """Return the conditions of which a row satisfies one that a reconcile deletes if the publisher
    does not send it; () for all rows, None for none.

    Where the statement has to say it and does not, the rows of the scope count, if it is known.

    Args:
        said: as in `deletion_of`.
    """
    match deletion_of(ownership, said):
        case Deletion.ALL:
            return ()
        case Deletion.NONE:
            return None
        case _:
            return ownership.scope.filters


def undecided_reasons(ownership: RowOwnership) -> list[str]:
    """Return why it cannot be told by a row's values whether it is the subscription's."""
    reasons = []
    if ownership.has_other_feeds:
        reasons.append("Rows of other subscriptions or tables are written into it.")
    if not ownership.has_any_origin:
        reasons.append("The subscription has origin = none.")
    if ownership.scope.problem is not None:
        reasons.append(ownership.scope.problem)
    return reasons


def scope_of(
    filters: Iterable[AppliedFilter], remote: RemoteRelation, columns: Mapping[str, LocalColumn]
) -> Scope:
    """Return the rows of the subscriber's table that pass any of some row filters.

    Args:
        filters: that were applied, and that are in force.
        remote: the published table as it is sent.
        columns: of the subscriber's table, by name.
    """
    found = list(filters)
    if any(item.passes_every_row for item in found):
        return Scope()
    sent = {column.name for column in remote.columns}
    result = []
    for item in found:
        for name, type_, typmod in item.columns:
            local = columns.get(name)
            if local is None or name not in sent:
                return Scope(problem=f'Column "{name}" of a row filter is not replicated.')
            if (local.type, local.typmod) != (type_, typmod):
                return Scope(
                    problem=f'Column "{name}" of a row filter has another type at the publisher.'
                )
        numbers = {i: columns[name].attnum for i, (name, *_) in enumerate(item.columns, start=1)}
        result.append(nodes.renumber(pg_node_tree.loads(item.expression), numbers))
    return Scope(tuple(dict.fromkeys(result)))


def has_changed(member: SubscriptionRelation, remote: RemoteRelation) -> bool:
    """Return whether the row filter or column list of a table has changed since its copy."""
    return member.state.is_copied and member.definition not in (None, remote.definition)
