"""Detect published columns that other programs have replaced: they dropped or renamed a column, and
another column now has its name.  Detect also columns that they have dropped and restored, if the
target was copied in between.  Detect also a published name that another adopted table has now.

This changes no row, so PostgreSQL's rule would keep the values that the subscriber has.  Within
PostgreSQL the user changes both tables; the owner of an adopted table does not know the
subscribers, and an adopted table has rows that no transaction has inserted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field

from replctl.catalog.column_origin import ColumnOrigin, Origins
from replctl.errors import ObjectNotInPrerequisiteState
from replctl.record import dataclass
from replctl.relation_name import RelationName

#: What has happened to columns, and its consequence.
_REPLACED = (
    "replaced",
    "The earlier columns with these names, or fields of them, were dropped or renamed.",
)
_RESTORED = (
    "dropped and restored",
    "The table was copied in between, so the copy lacks the values of the restored columns.",
)


@dataclass(frozen=True, slots=True)
class ForeignColumns:
    """Published columns of a table whose values the target lacks, by their names.

    Attributes:
        replaced: columns that have the names of other columns now.
        restored: columns that were dropped, and restored with their values.
        is_another_table: all columns belong to another adopted table, which has the name now.
    """

    replaced: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    is_another_table: bool = False

    def error(self, table: RelationName) -> ObjectNotInPrerequisiteState:
        """Return the error for a published table."""
        if self.is_another_table:
            return ObjectNotInPrerequisiteState(
                f'published table "{table}" is no longer the same table',
                detail="The earlier table was dropped or renamed. The rows that the table had when"
                " it was adopted were not sent.",
            )
        columns = self.replaced or self.restored
        what, detail = _REPLACED if self.replaced else _RESTORED
        shown = ", ".join(f'"{column}"' for column in columns)
        noun, verb = ("column", "was") if len(columns) == 1 else ("columns", "were")
        return ObjectNotInPrerequisiteState(
            f'{noun} {shown} of published table "{table}" {verb} {what} by another program',
            detail=detail,
        )


@dataclass(frozen=True, slots=True)
class OriginChange:
    """The origins of the published columns of adopted tables at the ends of a range of the log.

    Attributes:
        before, after: the origins by table.
        foreign: the numbers of the columns that other programs have dropped or renamed, rather than
            ALTER TABLE, by the OIDs of the tables.
        restored: the names of the columns that other programs have restored in the range, by table.
    """

    before: Mapping[RelationName, Origins]
    after: Mapping[RelationName, Origins]
    foreign: Mapping[int, Collection[int]]
    restored: Mapping[RelationName, Collection[str]] = field(default_factory=dict)

    def lacking(
        self, table: RelationName, known: Origins, columns: Collection[str], *, is_followed: bool
    ) -> ForeignColumns:
        """Return the columns of a table whose values the target lacks.

        Args:
            known: the origins of the values in the target's columns, by the columns' names.
            columns: the names of the target's columns.
            is_followed: the target drops and adds columns like the published table.  So only the
                fields of STRUCTs can be replaced, and a restored column that the target lacks is
                reported when it cannot be added.
        """
        origins = [(known[name], now) for name, now in self.after[table].items() if name in known]
        if any(origin.is_of_another_table(now) for origin, now in origins):
            return ForeignColumns(is_another_table=True)
        restored = [
            name
            for name in self.restored.get(table, ())
            if _lacks_values(known.get(name)) and (name in columns or not is_followed)
        ]
        replaced = self._replaced(table, known, is_followed=is_followed)
        return ForeignColumns(tuple(replaced), tuple(sorted(restored)))

    def _replaced(self, table: RelationName, known: Origins, *, is_followed: bool) -> list[str]:
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
            known, is_followed: see `lacking`.
        """
        recorded = dict(known)
        for name, now in self.after[table].items():
            origin = known.get(name, now)
            if not (is_followed and origin.is_another(now)):  # the target is not changed yet
                recorded[name] = origin.followed_by(now)
        return recorded


def _lacks_values(origin: ColumnOrigin | None) -> bool:
    """Return whether rows of the target lack the values of a published column."""
    return origin is None or origin.is_partial
