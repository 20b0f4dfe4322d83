"""Describe the history of the rows in a subscription's table: its copies, and the row filters of
its changes. pg_subscription_rel stores this.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from typing import Any

from replctl.record import dataclass


class CopyMethod(Enum):
    """The effect of a table's synchronization on existing rows.

    APPEND adds rows to them, and REPLACE replaces them.  RECONCILE (by a statement) and RESYNC (by
    the subscription itself, resync = auto) write only the differences.
    """

    APPEND = "append"
    REPLACE = "replace"
    RECONCILE = "reconcile"
    RESYNC = "resync"

    @property
    def compares(self) -> bool:
        return self in (CopyMethod.RECONCILE, CopyMethod.RESYNC)


class Deletion(Enum):
    """The rows that a reconcile deletes if the publisher does not have them: rows that pass an
    applied row filter, all rows, or none.
    """

    SCOPE = "scope"
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class AppliedFilter:
    """A row filter of a published relation.

    Attributes:
        expression: the filter as text (nodes.dumps), with the columns numbered from 1 in the order
            of `columns`; empty if every row passes.
        columns: name, type and typmod of the publisher's columns that the expression uses.
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
        filters: the table's row filters.  The publisher sends a row that passes any of them.
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
    """Parse the result of `dump_filters`."""
    return () if text is None else tuple(map(_filter, json.loads(text)))


def dump_definition(definition: CopiedDefinition | None) -> str | None:
    """Return the stored form of a definition; None if there is none."""
    if definition is None:
        return None
    filters = sorted(map(_filter_value, definition.filters))
    return json.dumps({"filters": filters, "columns": definition.columns})


def load_definition(text: str | None) -> CopiedDefinition | None:
    """Parse the result of `dump_definition`."""
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
