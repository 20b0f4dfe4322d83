"""Record which published column the values of a target's column come from.

Other programs may drop a published column of their table, and add another one with its name.  This
changes no row, so the target would keep the values of the former column.  pg_subscription_rel
stores the origins of the target's columns, so that this is noticed at any later time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import astuple, field, replace
from typing import TypeAlias

from sqlalchemy import Connection, select, update

from replctl.catalog import state_schema
from replctl.record import dataclass


@dataclass(frozen=True, slots=True)
class ColumnOrigin:
    """A published column of an adopted table.

    Attributes:
        relid: OID of the published table at the publisher.
        attnum: the column's number there.
        fields: the names in data files of the fields of its STRUCTs, by their paths in the schema
            (Column.field_names).  The empty path is the column.  Empty for other columns.
        cluster: the publisher's system identifier; 0 if it does not matter.
        is_partial: a copy has added rows while the column was not sent, so they lack its values.
    """

    relid: int
    attnum: int
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)
    cluster: int = 0
    is_partial: bool = False

    def is_another(self, later: ColumnOrigin) -> bool:
        """Return whether `later` is another column of the same table."""
        return self.place == later.place and self.attnum != later.attnum

    def is_of_another_table(self, later: ColumnOrigin) -> bool:
        """Return whether `later` is a column of another table of the same publisher."""
        return self.cluster == later.cluster and self.relid != later.relid

    @property
    def place(self) -> tuple[int, int]:
        """Return the table: its publisher's system identifier, and its OID there."""
        return self.cluster, self.relid

    def has_other_fields(self, later: ColumnOrigin) -> bool:
        """Return whether `later` is the same column, but fields of it were dropped or renamed, and
        other fields now have their names.
        """
        if not self._is_kept(later):
            return False
        return any(later.fields.get(path, name) != name for path, name in self.fields.items())

    def followed_by(self, later: ColumnOrigin) -> ColumnOrigin:
        """Return the origin to record if the column's new values come from `later`.  Fields that
        the column no longer has stay recorded.
        """
        if not self._is_kept(later):
            return later
        return replace(later, fields={**self.fields, **later.fields})

    def _is_kept(self, later: ColumnOrigin) -> bool:
        """Return whether `later` is the same column, and the table has not been written again.  A
        table that is written again has new names in data files, and its rows are sent again.
        """
        here, there = (self.place, self.attnum), (later.place, later.attnum)
        return here == there and self.fields.get("") == later.fields.get("")


#: Origins by the names of published columns.
Origins: TypeAlias = Mapping[str, ColumnOrigin]


def column_origins(
    connection: Connection, subscription_oid: int, relids: Collection[int]
) -> dict[int, dict[int, ColumnOrigin]]:
    """Return the recorded origins of columns of a subscription's tables, by OID and attnum."""
    table = state_schema.pg_subscription_rel
    query = select(table.c.srrelid, table.c.column_origins).where(
        table.c.srsubid == subscription_oid,
        table.c.srrelid.in_(list(relids)),
        table.c.column_origins.is_not(None),
    )
    return {
        int(row.srrelid): {
            int(attnum): ColumnOrigin(*origin)
            for attnum, origin in json.loads(row.column_origins).items()
        }
        for row in connection.execute(query)
    }


def put_column_origins(
    connection: Connection,
    subscription_oid: int,
    relid: int,
    origins: Mapping[int, ColumnOrigin],
) -> None:
    """Record the origins of the columns of a subscription's table, by attnum."""
    table = state_schema.pg_subscription_rel
    text = json.dumps({str(n): astuple(origin) for n, origin in sorted(origins.items())})
    connection.execute(
        update(table)
        .where(table.c.srsubid == subscription_oid, table.c.srrelid == relid)
        .values(column_origins=text if origins else None)
    )


def changed_by_others(connection: Connection, relids: Collection[int]) -> dict[int, set[int]]:
    """Return the columns of adopted tables that other programs have dropped, renamed or restored:
    their numbers by the tables' OIDs.
    """
    table = state_schema.storage_column
    found: dict[int, set[int]] = defaultdict(set)
    query = select(table.c.relid, table.c.attnum).where(
        table.c.relid.in_(list(relids)), table.c.renamed_version.is_not(None)
    )
    for row in connection.execute(query):
        found[int(row.relid)].add(int(row.attnum))
    return found
