"""The history of rows in a subscription's table, as kept in pg_subscription_rel: its copies, and
the row filters of its changes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from typing import Any

from replctl.record import dataclass


class CopyMethod(Enum):
    """The effect of a table's synchronization on existing rows: add to them, replace them, or write
    only the differences, by a statement (reconcile) or automatically (resync = auto).
    """

    APPEND = "append"
    REPLACE = "replace"
    RECONCILE = "reconcile"
    RESYNC = "resync"

    @property
    def compares(self) -> bool:
        return self in (CopyMethod.RECONCILE, CopyMethod.RESYNC)


class Deletion(Enum):
    """The rows without a published counterpart that a reconcile deletes: those that pass an applied
    row filter, all, or none.
    """

    SCOPE = "scope"
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class AppliedFilter:
    """A row filter of a published relation.

    Attributes:
        expression: the result of nodes.dumps, with columns numbered from 1 as in `columns`; empty
            if every row passes.
        columns: name, type and typmod of the publisher's columns in the expression.
    """

    expression: str = ""
    columns: tuple[tuple[str, str, int], ...] = ()

    @property
    def passes_every_row(self) -> bool:
        return not self.expression


#: The filter of a table without row filters.
EVERY_ROW = AppliedFilter()


@dataclass(frozen=True, slots=True)
class CopiedDefinition:
    """The published part of a table at its last copy.

    Attributes:
        filters: its row filters; a row is sent if it passes any of them.
        columns: the names of the published columns.
    """

    filters: frozenset[AppliedFilter]
    columns: tuple[str, ...]


def merged_filters(
    known: Sequence[AppliedFilter], new: Sequence[AppliedFilter]
) -> tuple[AppliedFilter, ...]:
    """Return `known` and the filters of `new` that it lacks."""
    return tuple(dict.fromkeys([*known, *new]))


def dump_filters(filters: Sequence[AppliedFilter]) -> str | None:
    """Return the stored form of filters; None if there are none."""
    return json.dumps([_filter_value(item) for item in filters]) if filters else None


def load_filters(text: str | None) -> tuple[AppliedFilter, ...]:
    """Return the filters that `dump_filters` wrote."""
    return () if text is None else tuple(map(_filter, json.loads(text)))


def dump_definition(definition: CopiedDefinition | None) -> str | None:
    """Return the stored form of a definition."""
    if definition is None:
        return None
    filters = sorted(map(_filter_value, definition.filters))
    return json.dumps({"filters": filters, "columns": definition.columns})


def load_definition(text: str | None) -> CopiedDefinition | None:
    """Return the definition that `dump_definition` wrote."""
    if text is None:
        return None
    fields = json.loads(text)
    return CopiedDefinition(frozenset(map(_filter, fields["filters"])), tuple(fields["columns"]))


def _filter_value(item: AppliedFilter) -> list[Any]:
    return [item.expression, item.columns]


def _filter(value: list[Any]) -> AppliedFilter:
    expression, columns = value
    return AppliedFilter(
        expression, tuple((name, type_, typmod) for name, type_, typmod in columns)
    )
