"""The entries of a dump, one for each created object, and their order (pg_dump_sort.c,
pg_backup_archiver.c).
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import field
from typing import TypeAlias

from replctl.record import dataclass

#: An object of a catalog: the catalog's name and its OID.
ObjectKey: TypeAlias = tuple[str, int]

#: Kinds of entries, in the order of a dump; those on one line share a position.
_ORDER = (
    ("SCHEMA",),
    ("TYPE", "DOMAIN"),
    ("FUNCTION",),
    ("OPERATOR",),
    ("TABLE", "SEQUENCE", "VIEW", "MATERIALIZED VIEW"),
    ("TABLE ATTACH",),
    ("DEFAULT",),
    ("TABLE DATA",),
    ("SEQUENCE SET",),
    ("CONSTRAINT",),
    ("INDEX",),
    ("FK CONSTRAINT",),
    ("ROW SECURITY", "POLICY"),
    ("PUBLICATION",),
    ("PUBLICATION TABLE",),
    ("PUBLICATION TABLES IN SCHEMA",),
    ("SUBSCRIPTION",),
    ("ACL",),
    ("DEFAULT ACL",),
    ("MATERIALIZED VIEW DATA",),
)
_PRIORITIES = {kind: i for i, kinds in enumerate(_ORDER) for kind in kinds}


@dataclass(frozen=True, slots=True)
class Entry:
    """The statements that create an object, or a part of one (TocEntry).

    Attributes:
        kind: one of _ORDER; or COMMENT, which follows its object.
        name: the name in its heading.
        text: the statements, each with a newline at its end.
        schema: None for objects without a schema.
        owner: a role's name; "" without an owner.
        owned: the object in ALTER ... OWNER TO: `TABLE public.t`; "" without an owner.
        order: sort key among entries of its kind, instead of the name.
        key: the object that other entries may need.
        needs: the objects that must exist before it.
        comments: the comments that follow it.
    """

    kind: str
    name: str
    text: str
    schema: str | None = None
    owner: str = ""
    owned: str = ""
    order: tuple[str, ...] = ()
    key: ObjectKey | None = None
    needs: frozenset[ObjectKey] = frozenset()
    comments: tuple[Entry, ...] = field(default=())

    def shown(self) -> str:
        """Return the entry under its heading."""
        label = "Data for Name" if self.kind == "TABLE DATA" else "Name"
        heading = (
            f"{label}: {_on_one_line(self.name)}; Type: {self.kind};"
            f" Schema: {_on_one_line(self.schema or '-')}; Owner: {_on_one_line(self.owner)}"
        )
        text = f"--\n-- {heading}\n--\n\n{self.text}\n\n"
        if self.owned:
            from replctl.types.quote import quote_identifier

            text += f"ALTER {self.owned} OWNER TO {quote_identifier(self.owner)};\n\n"
        return text + "".join(comment.shown() for comment in self.comments)


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Sort entries by kind, schema and name, but put needed ones before those that need them.

    Like TopoSort(), it goes from the last to the first, and takes the last entry that no remaining
    one needs.  Entries in a cycle keep their places.
    """
    ordered = sorted(entries, key=_sort_key)
    places = {entry.key: i for i, entry in enumerate(ordered) if entry.key is not None}
    needs = [_places(entry.needs, places, i) for i, entry in enumerate(ordered)]
    users: dict[int, int] = defaultdict(int)
    for needed in needs:
        for place in needed:
            users[place] += 1
    free = [-i for i in range(len(ordered)) if not users[i]]
    heapq.heapify(free)
    result: list[int] = []
    while free:
        place = -heapq.heappop(free)
        result.append(place)
        for needed_place in needs[place]:
            users[needed_place] -= 1
            if not users[needed_place]:
                heapq.heappush(free, -needed_place)
    result.reverse()
    left = sorted(set(range(len(ordered))).difference(result))
    return [ordered[i] for i in (*left, *result)]


def _places(keys: Collection[ObjectKey], places: dict[ObjectKey, int], own: int) -> Sequence[int]:
    return sorted({places[key] for key in keys if key in places} - {own})


def _sort_key(entry: Entry) -> tuple[int, str, tuple[str, ...], str]:
    return _PRIORITIES[entry.kind], entry.schema or "", entry.order or (entry.name,), entry.name


def _on_one_line(text: str) -> str:
    """Return a name on one line, so that it does not end a comment (sanitize_line)."""
    return text.replace("\n", " ").replace("\r", " ")
