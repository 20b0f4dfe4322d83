"""Implement the option table_map of a subscription, which maps published tables to their local
targets.

By PostgreSQL's rule both have the same schema and name.  Only a table map has other pairs, so code
that knows the name of one side looks up the other side here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from replctl.errors import DuplicateObject, InvalidParameterValue, SqlSyntaxError
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.types.identifier import clipped, stored_name
from replctl.types.quote import quote_qualified_identifier

_TOKEN = re.compile(
    r"""\s*(?: "(?P<quoted>(?:[^"]|"")*)"
             | (?P<plain>[^\x00-@\[-^`{-\x7f][^\x00-#%-/:-@\[-^`{-\x7f]*)
             | (?P<mark>[.,=])
             | (?P<open>".*) | (?P<other>\S) )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_QUALIFIED = 2


@dataclass(frozen=True, slots=True)
class TableMap:
    """Pairs of a published table and its target.  Each name occurs at most once on each side.
    Tables that are not in the map follow PostgreSQL's rule.
    """

    pairs: tuple[tuple[RelationName, RelationName], ...] = ()

    def target(self, published: RelationName) -> RelationName:
        """Return the name of a published table's target."""
        return _targets(self.pairs).get(published, published)

    def published(self, target: RelationName) -> RelationName | None:
        """Return the name of a target's published table; None if the target has none, because the
        published table of the same name has another target.
        """
        found = _published(self.pairs).get(target)
        if found is not None:
            return found
        return None if target in _targets(self.pairs) else target

    def named(self, target: str) -> RelationName | None:
        """Return the published table of a target, given the target's qualified name; None if both
        names are equal.
        """
        return _published_by_text(self.pairs).get(target)

    def check_targets(self, published: Iterable[RelationName]) -> None:
        """Check that no two published tables have the same target.

        Raises:
            InvalidParameterValue: two published tables have the same target (22023).
        """
        known: dict[RelationName, RelationName] = {}
        for name in published:
            other = known.setdefault(self.target(name), name)
            if other != name:
                first, second = sorted((other, name))
                raise InvalidParameterValue(
                    f'published tables "{first}" and "{second}" have the same'
                    f' target "{".".join(self.target(name))}"',
                    hint="Give each of them a target of its own in table_map.",
                )

    def __str__(self) -> str:
        """Return the map in the syntax of the option."""
        return ", ".join(_pair(*pair) for pair in self.pairs)


def shown_pair(published: RelationName, target: RelationName) -> str:
    """Return a pair of names in the syntax of table_map, or only one name if both are equal.

    ("public", "t"), ("public", "t")
        becomes  public.t
    """
    if published == target:
        return quote_qualified_identifier(*target)
    return _pair(published, target)


def _pair(published: RelationName, target: RelationName) -> str:
    return f"{quote_qualified_identifier(*published)} = {quote_qualified_identifier(*target)}"


def parse_table_map(
    text: str, target_schema: Callable[[str], str] = lambda name: "public"
) -> TableMap:
    """Parse the value of the option, such as `public.orders = gold.orders_north, a = b`.

    A published table without a schema belongs to schema public.

    Args:
        target_schema: a function that returns the schema for a target without a schema.

    Raises:
        InvalidParameterValue: the text is not a table map (22023).
        SqlSyntaxError: a name has more than two parts (42601).
        DuplicateObject: a table occurs twice on one side (42710).
    """
    parser = _Parser(text)
    pairs = [
        (
            RelationName(published[0] or "public", published[1]),
            RelationName(target[0] or target_schema(target[1]), target[1]),
        )
        for published, target in parser.pairs()
    ]
    for number, what in enumerate(("published", "target")):
        seen: set[RelationName] = set()
        for pair in pairs:
            if pair[number] in seen:
                raise DuplicateObject(
                    f'{what} table "{".".join(pair[number])}" used more than once in table_map'
                )
            seen.add(pair[number])
    return TableMap(tuple(pairs))


class _Parser:
    """Parses a list of pairs.  Names are quoted as in SQL."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._take()

    def pairs(self) -> Iterator[tuple[tuple[str | None, str], tuple[str | None, str]]]:
        """Yield the pairs of names.  The schema is None for a name without a schema."""
        if self._token is None:
            return
        while True:
            published = self._name()
            self._expect("=")
            yield published, self._name()
            if self._token is None:
                return
            self._expect(",")

    def _name(self) -> tuple[str | None, str]:
        parts = [self._word()]
        while self._mark == ".":
            self._take()
            parts.append(self._word())
        if len(parts) > _QUALIFIED:
            shown = ".".join(parts)
            raise SqlSyntaxError(f"improper relation name (too many dotted names): {shown}")
        return (parts[0] if len(parts) == _QUALIFIED else None), parts[-1]

    def _word(self) -> str:
        token = self._token
        if token is None:
            raise self._error()
        if (plain := token["plain"]) is not None:
            name = stored_name(plain)
        elif (quoted := token["quoted"]) is not None:
            if not quoted:
                raise self._error("zero-length delimited identifier")
            name = clipped(quoted.replace('""', '"'))
        else:
            unterminated = token["open"] is not None
            raise self._error("unterminated quoted identifier" if unterminated else "syntax error")
        self._take()
        return name

    def _expect(self, mark: str) -> None:
        if self._mark != mark:
            raise self._error()
        self._take()

    @property
    def _mark(self) -> str | None:
        return None if self._token is None else self._token["mark"]

    def _take(self) -> None:
        self._token = _TOKEN.match(self._text, self._position)
        if self._token is not None:
            self._position = self._token.end()

    def _error(self, what: str = "syntax error") -> InvalidParameterValue:
        place = "end of input" if self._token is None else f'or near "{self._token[0].strip()}"'
        return InvalidParameterValue(
            f'invalid value for parameter "table_map": "{self._text}"', detail=f"{what} at {place}"
        )


@lru_cache(maxsize=256)
def _targets(
    pairs: tuple[tuple[RelationName, RelationName], ...],
) -> dict[RelationName, RelationName]:
    return dict(pairs)


@lru_cache(maxsize=256)
def _published(
    pairs: tuple[tuple[RelationName, RelationName], ...],
) -> dict[RelationName, RelationName]:
    return {target: published for published, target in pairs}


@lru_cache(maxsize=256)
def _published_by_text(
    pairs: tuple[tuple[RelationName, RelationName], ...],
) -> dict[str, RelationName]:
    return {str(target): published for published, target in pairs if published != target}
