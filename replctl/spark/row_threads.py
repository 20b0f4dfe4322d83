"""Changes of one transaction that follow each other, as changes of the rows that were there before.

Where keys change, or there is none, a row cannot be told by its key: each is followed from change
to change, from what it was before the transaction to what it is at its end.  Transactions of
several statements that do that are the only changes that come to this process as a whole.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from replctl.spark.staging import Staged, StagedColumn, fetched, local_view
from replctl.spark.values import Target

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

#: What a row is told by: its key, or all that is sent of it, as literals.
_Identity: TypeAlias = tuple[str, ...]


@dataclass
class _Row:
    """A row on its way.

    Attributes:
        start: the change that found it in the table, None of a new row.
        image: the change that made it what it is, None as long as it is what it was.
        last: the last change of it.
        is_gone: it was deleted.
    """

    start: int | None
    image: int | None
    last: int
    is_gone: bool = False


@contextmanager
def net_changes(engine: Engine, target: Target, changes: Staged, existing: str) -> Iterator[Staged]:
    """Changes of several commits as changes that happen at once: position, action, o<attnum>,
    n<attnum>, and `is_settled`: an INSERT or a moved row meets its key (action I), or the row
    to change is missing (U, D).

    Args:
        changes: as replicated_change.converted gives them.
        existing: a query of the table's rows that they may concern.
    """
    changes = fetched(engine, changes)
    names = [f"{image}{c.attnum}" for c in target.columns if c.sent is not None for image in "on"]
    identity = target.key or tuple(c.attnum for c in target.columns if c.sent is not None)
    olds, news = (_identities(changes, image, identity) for image in "on")
    there = _counted(engine, existing, changes, identity)
    threads = _Threads(changes, olds, news, there, is_keyed=bool(target.key))
    threads.follow()
    rows = threads.net()
    import pyarrow as pa

    assert changes.rows is not None
    columns = {
        "position": pa.array([changes.values("position")[row[1]] for row in rows], pa.int64()),
        "action": pa.array([row[0] for row in rows], pa.string()),
        "is_settled": pa.array([row[4] for row in rows], pa.bool_()),
    }
    for name in names:
        taken = pa.array([row[2 if name[0] == "o" else 3] for row in rows], pa.int64())
        columns[name] = changes.rows.column(name).take(taken)
    wanted = [*changes.columns, StagedColumn("is_settled", "bool")]
    table = pa.table({column.name: columns[column.name] for column in wanted})
    with local_view(engine, table, wanted) as view:
        yield Staged(view, tuple(wanted), table)


class _Threads:
    def __init__(
        self,
        changes: Staged,
        olds: Sequence[_Identity],
        news: Sequence[_Identity],
        existing: Counter[_Identity],
        *,
        is_keyed: bool,
    ) -> None:
        self._positions, self._actions = changes.values("position"), changes.values("action")
        self._olds, self._news = olds, news
        self._existing = existing
        self._present: defaultdict[_Identity, list[_Row]] = defaultdict(list)
        self._rows: list[_Row] = []
        self._missing: list[int] = []
        self._clashes: list[int] = []
        self._is_keyed = is_keyed

    def follow(self) -> None:
        """Go through the changes; those of one position happen at once."""
        order = sorted(range(len(self._actions)), key=lambda i: int(self._positions[i]))
        for _position, group in groupby(order, key=lambda i: int(self._positions[i])):
            together = list(group)
            taken = {i: self._take(i) for i in together if self._actions[i] != "I"}
            for i in together:
                self._change(i, taken.get(i))

    def _take(self, i: int) -> _Row | None:
        """Return the row that an UPDATE or DELETE finds: of equal rows one that was there
        before."""
        identity = self._olds[i]
        if self._existing[identity] > 0:
            self._existing[identity] -= 1
            self._rows.append(_Row(i, None, i))
            return self._rows[-1]
        return self._present[identity].pop(0) if self._present[identity] else None

    def _change(self, i: int, row: _Row | None) -> None:
        if self._actions[i] == "I":
            row = _Row(None, i, i)
            self._rows.append(row)
        elif row is None:
            self._missing.append(i)
            return
        row.last = i
        if self._actions[i] == "D":
            row.is_gone = True
            return
        row.image = i
        identity = self._news[i]
        if self._is_keyed and (self._existing[identity] > 0 or self._present[identity]):
            self._clashes.append(i)
        self._present[identity].append(row)

    def net(self) -> list[tuple[str, int, int | None, int | None, bool]]:
        """Return the changes that remain: action, and the changes that have the position, the old
        image and the new one; whether it is settled what comes of it."""
        result: list[tuple[str, int, int | None, int | None, bool]] = []
        for row in self._rows:
            if row.start is None:
                if not row.is_gone:
                    result.append(("I", row.last, None, row.image, False))
            elif row.is_gone:
                result.append(("D", row.last, row.start, None, False))
            else:
                result.append(("U", row.last, row.start, row.image, False))
        result += [("I", i, None, i, True) for i in self._clashes]
        result += [(self._actions[i], i, i, i, True) for i in self._missing]
        return result


def _identities(changes: Staged, image: str, attnums: Sequence[int]) -> list[_Identity]:
    literals = [changes.literals(f"{image}{attnum}") for attnum in attnums]
    if not literals:
        return [()] * len(changes.values("action"))
    return list(zip(*literals, strict=True))


def _counted(
    engine: Engine, existing: str, changes: Staged, identity: Sequence[int]
) -> Counter[_Identity]:
    """Return how many rows of the table there are of each that the changes name."""
    names = ", ".join(f"t.c{attnum}" for attnum in identity) or "1"
    named = " UNION ".join(
        f"SELECT {', '.join(f'{image}{a} AS c{a}' for a in identity) or '1 AS c0'}"
        f" FROM {changes.view}"
        for image in "on"
    )
    equal = " AND ".join(f"t.c{a} <=> s.c{a}" for a in identity) or "TRUE"
    columns = [
        column._replace(name=f"c{column.name[1:]}")
        for column in changes.columns
        if column.name[0] == "o" and int(column.name[1:]) in identity
    ]
    counted = fetched(
        engine,
        Staged(
            f"(SELECT {names}, count(*) AS number FROM ({existing}) t"
            f" LEFT SEMI JOIN ({named}) s ON {equal} GROUP BY ALL)",
            (*columns, StagedColumn("number", "int8")),
            None,
        ),
    )
    literals = [counted.literals(f"c{attnum}") for attnum in identity]
    numbers = counted.values("number")
    keys = list(zip(*literals, strict=True)) if literals else [()] * len(numbers)
    return Counter(dict(zip(keys, numbers, strict=True)))
