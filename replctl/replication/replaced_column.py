"""Detect published columns that other programs have replaced: they dropped or renamed a column, and
another column now has its name.

This changes no row, so PostgreSQL's rule would keep the values of the former column at the
subscriber.  Within PostgreSQL the user changes both tables; the owner of an adopted table does not
know the subscribers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from replctl.catalog.column_origin import ColumnOrigin, Origins
from replctl.record import dataclass
from replctl.relation_name import RelationName


@dataclass(frozen=True, slots=True)
class OriginChange:
    """The origins of the published columns of adopted tables at the ends of a range of the log.

    Attributes:
        before, after: the origins by table.
        foreign: the numbers of the columns that other programs have dropped or renamed, rather than
            ALTER TABLE, by the OIDs of the tables.
    """

    before: Mapping[RelationName, Origins]
    after: Mapping[RelationName, Origins]
    foreign: Mapping[int, Collection[int]]

    def replaced(self, table: RelationName, known: Origins, *, is_followed: bool) -> list[str]:
        """Return the columns of a table that were replaced.

        Args:
            known: the origins of the values in the target's columns, by the columns' names.
            is_followed: the target drops and adds columns like the published table.  So only the
                fields of STRUCTs can be replaced.
        """
        found = []
        for name, now in self.after[table].items():
            origin = known.get(name)
            if origin is None:
                continue
            is_foreign = origin.attnum in self.foreign.get(origin.relid, ())
            is_another = origin.is_another(now) and is_foreign and not is_followed
            if is_another or origin.has_other_fields(now):
                found.append(name)
        return found

    def recorded(
        self, table: RelationName, known: Origins, *, is_followed: bool
    ) -> dict[str, ColumnOrigin]:
        """Return the origins to record for a table without replaced columns.  Columns that are no
        longer published keep their origins.

        Args:
            known, is_followed: see `replaced`.
        """
        recorded = dict(known)
        for name, now in self.after[table].items():
            origin = known.get(name, now)
            if not (is_followed and origin.is_another(now)):  # the target is not changed yet
                recorded[name] = origin.followed_by(now)
        return recorded
