"""Define and sort the entries of a dump, one for each created object (pg_dump_sort.c,
pg_backup_archiver.c).
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import field
from typing import TypeAlias

from replctl.record import dataclass

#: An object: the name of its catalog, and its OID.
ObjectKey: TypeAlias = tuple[str, int]

#: Kinds of entries, in the order of a dump.  Kinds on one line share a position.
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
    """The statements that create an object, or a part of an object (TocEntry).

    Attributes:
        kind: one of _ORDER; or COMMENT, which follows its object.
        name: the name in the entry's heading.
        text: the statements, each with a newline at its end.
        schema: None for objects without a schema.
        owner: the name of the owner; "" without an owner.
        owned: the object in ALTER ... OWNER TO, such as `TABLE public.t`; "" without an owner.
        order: the sort key among entries of the same kind, if it is not the name.
        key: the object that the entry creates, and that other entries may need.
        parts: further objects that the entry creates, such as the array type of a type.
        needs: the objects that must be created before.
        comments: the COMMENT entries that follow the entry.
    """

    kind: str
    name: str
    text: str
    schema: str | None = None
    owner: str = ""
    owned: str = ""
    order: tuple[str, ...] = ()
    key: ObjectKey | None = None
    parts: tuple[ObjectKey, ...] = ()
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
    """Sort entries by kind, schema and name, but put each entry after the entries that it needs.

    Like TopoSort(), the function fills the result from its end, each time with the last entry that
    no remaining entry needs.  Entries in a cycle keep their places.
    """
    ordered = sorted(entries, key=_sort_key)
    places = {
        key: i
        for i, entry in enumerate(ordered)
        for key in (entry.key, *entry.parts)
        if key is not None
    }
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
    """Return a name without newlines, which would end a comment (sanitize_line)."""
    return text.replace("\n", " ").replace("\r", " ")
