"""Decide which rows of a subscriber's table a reconcile may delete: rows of the subscription.

A reconcile deletes only rows that the publisher does not have, and only if the publications publish
deletes.  Three rules decide which of these rows it deletes:

1. All of them, if the subscription itself has made every commit that has changed rows since the
   table was empty, copied or reconciled.
2. If others have changed rows, the rows that pass any row filter that was applied since then.  This
   requires that only one subscription writes the partition tree, that its origin is `any`, and that
   the columns of the filters are replicated without a change of type.
3. If these requirements are not met, the rows that the statement specifies.
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
    """The rows of a table that pass any of the applied row filters.

    Attributes:
        filters: the conditions, with the column numbers of the subscriber's table; () if every row
            passes.
        problem: the reason why a row's values do not show whether it passes; None if they do.
    """

    filters: tuple[nodes.Expr, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class RowOwnership:
    """The facts that decide which rows of a subscriber's table belong to the subscription.

    Attributes:
        publishes_delete: the publications publish deletes of the table.
        is_own: every commit that has changed rows since the table was empty, copied or reconciled
            comes from the subscription itself, and from this published table.
        has_other_feeds: another subscription writes into the same partition tree, or this
            subscription writes rows of another published table into the same leaf partitions.
        has_any_origin: the subscription has `origin = any`.
        scope: the rows that pass an applied row filter.
    """

    publishes_delete: bool
    is_own: bool
    has_other_feeds: bool
    has_any_origin: bool
    scope: Scope


@dataclass(frozen=True, slots=True)
class UnpublishedRows:
    """The number of rows of a table that the publisher does not send.

    Attributes:
        in_scope: the number of these rows that pass an applied row filter; None if it is unknown.
        total: the number of all these rows.
    """

    in_scope: int | None
    total: int


def deletion_of(ownership: RowOwnership, said: Deletion | None) -> Deletion | None:
    """Return which unpublished rows a reconcile deletes; None if the statement must specify this.

    Args:
        said: the rule in the statement, if any."""
    if not ownership.publishes_delete:
        return Deletion.NONE
    if said is not None:
        return said
    if ownership.is_own:
        return Deletion.ALL
    if undecided_reasons(ownership):
        return None
    return Deletion.SCOPE if ownership.scope.filters else Deletion.ALL  # every row is in the scope


def loses_too_many(deleted: int, total: int, percentage: int) -> bool:
    """Return whether an automatic reconcile would delete too many rows.

    Args:
        deleted: the number of rows to delete.
        total: the number of rows in the subscriber's table.
        percentage: the maximum percentage of rows that may be deleted.
    """
    return deleted * 100 > total * percentage


def owned_conditions(
    ownership: RowOwnership, said: Deletion | None = None
) -> tuple[nodes.Expr, ...] | None:
    """Return the conditions for the rows that a reconcile deletes if the publisher does not have
    them; () for all rows, None for no rows.

    If the statement must specify the rows, but does not, return the conditions of the scope; () if
    the scope is unknown.

    Args:
        said: the rule in the statement, if any.
    """
    match deletion_of(ownership, said):
        case Deletion.ALL:
            return ()
        case Deletion.NONE:
            return None
        case _:
            return ownership.scope.filters


def undecided_reasons(ownership: RowOwnership) -> list[str]:
    """Return the reasons why a row's values do not show whether it belongs to the subscription."""
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
    """Return the rows of the subscriber's table that pass any of these row filters.

    Args:
        filters: the applied filters and the current filters.
        remote: the publisher's description of the table.
        columns: the columns of the subscriber's table, by name.
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
