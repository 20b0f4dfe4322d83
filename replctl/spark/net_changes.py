"""Combine successive changes of one transaction into changes of the rows that existed before it.

If keys change, or if there is no key, keys do not identify rows.  So replctl follows each row from
change to change, from the start of the transaction to its end.  Only then must this process read
all changes of a transaction.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from replctl.record import dataclass
from replctl.replication.update_transformation import Action
from replctl.spark.normal_form import grouped_value, matches, matching_values, stored_form
from replctl.spark.outcome import RowOp
from replctl.spark.spark_query import Query, reading
from replctl.spark.staged import Staged, StagedColumn
from replctl.spark.staging import fetched, late_view
from replctl.spark.values import IMAGES, Target, TargetColumn

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

#: The values of a row's key, in a form that is equal for equal keys; without a key, all sent
#: values.
_Identity: TypeAlias = tuple[Hashable, ...]
#: The stored values of a row without a key, as literals.
_Form: TypeAlias = tuple[str, ...]
_Identified: TypeAlias = tuple[_Identity, _Form]


@dataclass
class _Row:
    """A row that replctl follows from change to change.

    Attributes:
        start: the index of the change that found the row in the table; None for a new row.
        image: the index of the change that set the current values; None while there is none.
        last: the index of the row's last change.
        is_gone: a change has deleted the row.
    """

    start: int | None
    image: int | None
    last: int
    is_gone: bool = False


@contextmanager
def net_changes(
    engine: Engine, target: Target, changes: Staged, existing: Query
) -> Iterator[Staged]:
    """Combine the changes of one or more commits into simultaneous changes: position, action,
    o<attnum>, n<attnum>, `is_missing` and `is_clash`.  A change that cannot be applied is missing
    if its row is missing, and a clash if the key of the new or moved row already exists.

    Args:
        changes: the result of replicated_change.converted.
        existing: a query for the table's rows that the changes may affect.
    """
    changes = fetched(engine, changes)
    sent = [column for column in target.columns if column.sent is not None]
    identity = target.key or tuple(column.attnum for column in sent)
    identifying = [target.column(attnum) for attnum in identity]
    is_keyed = bool(target.key)
    olds, news = (_identified(changes, image, identifying, is_keyed=is_keyed) for image in IMAGES)
    there = _counted(engine, existing, changes, identifying, is_keyed=is_keyed)
    followed = _FollowedRows(changes, olds, news, there, is_keyed=is_keyed)
    followed.follow()
    rows = followed.net()
    import pyarrow as pa

    assert changes.rows is not None
    columns = {
        "position": pa.array([changes.values("position")[row[1]] for row in rows], pa.int64()),
        "action": pa.array([row[0] for row in rows], pa.string()),
        "is_missing": pa.array([row[4] == RowOp.MISSING for row in rows], pa.bool_()),
        "is_clash": pa.array([row[4] == RowOp.CONFLICT for row in rows], pa.bool_()),
    }
    for image, place in zip(IMAGES, (2, 3), strict=True):
        taken = pa.array([row[place] for row in rows], pa.int64())
        for name in (f"{image}{column.attnum}" for column in sent):
            columns[name] = changes.rows.column(name).take(taken)
    wanted = [*changes.columns, *(StagedColumn(n, "bool") for n in ("is_missing", "is_clash"))]
    table = pa.table({column.name: columns[column.name] for column in wanted})
    with late_view(engine, table, wanted) as view:
        yield Staged(view, tuple(wanted), table)


class _FollowedRows:
    def __init__(
        self,
        changes: Staged,
        olds: Sequence[_Identified],
        news: Sequence[_Identified],
        existing: defaultdict[_Identity, Counter[_Form]],
        *,
        is_keyed: bool,
    ) -> None:
        self._positions = changes.values("position")
        self._actions = [Action(action) for action in changes.values("action")]
        self._olds, self._news = olds, news
        self._existing = existing
        self._present: defaultdict[_Identity, list[tuple[_Form, _Row]]] = defaultdict(list)
        self._rows: list[_Row] = []
        self._missing: list[int] = []
        self._clashes: list[int] = []
        self._is_keyed = is_keyed

    def follow(self) -> None:
        """Follow the changes in order.  Changes at the same position are simultaneous."""
        order = sorted(range(len(self._actions)), key=lambda i: int(self._positions[i]))
        for _position, group in groupby(order, key=lambda i: int(self._positions[i])):
            together = list(group)
            taken = {i: self._take(i) for i in together if self._actions[i] != Action.INSERT}
            for i in together:
                self._change(i, taken.get(i))

    def _take(self, i: int) -> _Row | None:
        """Remove and return the row that an UPDATE or DELETE finds; None if it is missing.  Among
        equal rows, prefer a row that is stored identically, then a row that existed before.
        """
        identity, form = self._olds[i]
        existing, present = self._existing[identity], self._present[identity]
        alike = next((place for place, (other, _row) in enumerate(present) if other == form), None)
        if existing[form] == 0 and alike is not None:
            return present.pop(alike)[1]
        found = form if existing[form] > 0 else next(iter(+existing), None)
        if found is None:
            return present.pop(0)[1] if present else None
        existing[found] -= 1
        self._rows.append(_Row(i, None, i))
        return self._rows[-1]

    def _change(self, i: int, row: _Row | None) -> None:
        if self._actions[i] == Action.INSERT:
            row = _Row(None, i, i)
            self._rows.append(row)
        elif row is None:
            self._missing.append(i)
            return
        row.last = i
        if self._actions[i] == Action.DELETE:
            row.is_gone = True
            return
        row.image = i
        identity, form = self._news[i]
        if self._is_keyed and (+self._existing[identity] or self._present[identity]):
            self._clashes.append(i)
        self._present[identity].append((form, row))

    def net(self) -> list[tuple[Action, int, int | None, int | None, RowOp | None]]:
        """Return the net changes.

        Returns:
            a tuple for each net change: its action, three indexes, and CONFLICT or MISSING if it
            cannot be applied.  The indexes are those of the changes with its position, with its old
            image, and with its new image.
        """
        result: list[tuple[Action, int, int | None, int | None, RowOp | None]] = []
        for row in self._rows:
            if row.start is None:
                if not row.is_gone:
                    result.append((Action.INSERT, row.last, None, row.image, None))
            elif row.is_gone:
                result.append((Action.DELETE, row.last, row.start, None, None))
            else:
                result.append((Action.UPDATE, row.last, row.start, row.image, None))
        result += [(self._actions[i], i, None, i, RowOp.CONFLICT) for i in self._clashes]
        result += [(self._actions[i], i, i, i, RowOp.MISSING) for i in self._missing]
        return result


def _identified(
    rows: Staged, image: str, columns: Sequence[TargetColumn], *, is_keyed: bool
) -> list[_Identified]:
    """Return the identity and the stored form of each row.

    Args:
        image: the prefix of the columns, before the attnum.
    """
    names = [f"{image}{column.attnum}" for column in columns]
    count = rows.rows.num_rows if rows.rows is not None else 0
    values = [
        matching_values(column, rows.values(name))
        for column, name in zip(columns, names, strict=True)
    ]
    literals = [] if is_keyed else [rows.literals(name) for name in names]
    identities = list(zip(*values, strict=True)) if values else [()] * count
    forms = list(zip(*literals, strict=True)) if literals else [()] * count
    return list(zip(identities, forms, strict=True))


def _counted(
    engine: Engine,
    existing: Query,
    changes: Staged,
    columns: Sequence[TargetColumn],
    *,
    is_keyed: bool,
) -> defaultdict[_Identity, Counter[_Form]]:
    """Count, by identity and stored form, the table's rows whose identity also occurs in the
    changes."""
    named = " UNION ".join(
        f"SELECT {', '.join(f'{image}{c.attnum} AS c{c.attnum}' for c in columns) or '1 AS c0'}"
        f" FROM {changes.view}"
        for image in IMAGES
    )
    equal = " AND ".join(matches(c, f"t.c{c.attnum}", f"s.c{c.attnum}", "<=>") for c in columns)
    shown = ", ".join(f"{grouped_value(c.type, f't.c{c.attnum}')} AS c{c.attnum}" for c in columns)
    forms = ", ".join(stored_form(c.type, f"t.c{c.attnum}") for c in columns)
    text = (
        f"SELECT {f'{shown}, ' if shown else ''}count(*) AS number FROM ({existing}) t"
        f" LEFT SEMI JOIN ({named}) s ON {equal or 'TRUE'} GROUP BY {forms or 'TRUE'}"
    )
    kept = (StagedColumn(f"c{c.attnum}", c.type, c.typmod) for c in columns)
    rows = Staged(
        reading(text, existing, changes.query), (*kept, StagedColumn("number", "int8")), None
    )
    counted = fetched(engine, rows)
    result: defaultdict[_Identity, Counter[_Form]] = defaultdict(Counter)
    identified = _identified(counted, "c", columns, is_keyed=is_keyed)
    for (identity, form), number in zip(identified, counted.values("number"), strict=True):
        result[identity][form] += number
    return result
