"""Automata of regular expressions: find all ends of matches in one pass over the text.

States are built when a text reaches them (PostgreSQL's rege_dfa.c).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from replctl.adt.character_class import Ranges, ranges
from replctl.adt.regex_lexer import too_complex
from replctl.adt.regex_syntax import (
    Alternatives,
    BackReference,
    Branch,
    Characters,
    Constraint,
    Group,
    Item,
    Look,
    Repeat,
)

_MOST_PLACES, _MOST_STATES = 50_000, 10_000
_NEWLINE = ((10, 10),)
#: Properties of a colour, for constraints on the characters before and after a position.
_NEWLINE_FLAG, _WORD_FLAG, _EDGE_FLAG = 1, 2, 4
_EDGE_KINDS, _LINE_KINDS = frozenset("AZ"), frozenset("^$")


class Alphabet(dict[str, int]):
    """Maps characters to colours.  Characters that no part of an expression distinguishes share
    one.

    Attributes:
        edge: the colour of the positions before and after the text.
        flags: the properties of each colour: newline, word character, edge.
    """

    def __init__(self, tree: Alternatives, *, ascii_only: bool) -> None:
        super().__init__()
        items = list(items_of(tree))
        kinds = {item.kind for item in items if isinstance(item, Constraint)}
        flags: dict[Ranges, int] = {}
        if kinds & _LINE_KINDS:
            flags[_NEWLINE] = _NEWLINE_FLAG
        if kinds - _LINE_KINDS - _EDGE_KINDS:
            flags[ranges("word", ascii_only=ascii_only)] = _WORD_FLAG
        self._paint(
            list({item.codes for item in items if isinstance(item, Characters)} | set(flags))
        )
        self.edge = len(self._members)
        self.flags = [0] * self.edge + [_EDGE_FLAG]
        for codes, flag in flags.items():
            for colour in self._colours_of[codes]:
                self.flags[colour] |= flag

    def _paint(self, sets: list[Ranges]) -> None:
        """Assign one colour to all code points that belong to the same sets."""
        changes: dict[int, list[int]] = {0: []}
        for i, codes in enumerate(sets):
            for low, high in codes:
                changes.setdefault(low, []).append(i)
                changes.setdefault(high + 1, []).append(i)
        self._starts = sorted(changes)
        self._members: dict[frozenset[int], int] = {}
        current: set[int] = set()
        self._colours = []
        for start in self._starts:
            current ^= set(changes[start])
            colour = self._members.setdefault(frozenset(current), len(self._members))
            self._colours.append(colour)
        self._colours_of = {
            codes: frozenset(colour for members, colour in self._members.items() if i in members)
            for i, codes in enumerate(sets)
        }

    def __missing__(self, char: str) -> int:
        colour = self._colours[bisect_right(self._starts, ord(char)) - 1]
        self[char] = colour
        return colour

    def colours(self, codes: Ranges) -> frozenset[int]:
        """Return the colours of the characters in one of the expression's sets."""
        return self._colours_of[codes]


def items_of(tree: Alternatives) -> Iterator[Item]:
    """Yield all parts of a tree, including nested ones."""
    for branch in tree.branches:
        for item in branch:
            yield from _parts(item)


def _parts(item: Item) -> Iterator[Item]:
    yield item
    match item:
        case Repeat():
            yield from _parts(item.item)
        case Group() | Look():
            yield from items_of(item.inner)


class _Net:
    """A nondeterministic automaton: places, and the transitions between them.

    Attributes:
        free: transitions without a condition.
        guarded: transitions that require a constraint.
        taking: transitions that consume a character of one of these colours.
    """

    def __init__(self, alphabet: Alphabet, looks: list[Look]) -> None:
        self._alphabet, self._looks = alphabet, looks
        self.free: list[list[int]] = []
        self.guarded: list[list[tuple[Constraint | int, int]]] = []
        self.taking: list[list[tuple[frozenset[int], int]]] = []

    def place(self) -> int:
        if len(self.free) >= _MOST_PLACES:
            raise too_complex()
        for rows in (self.free, self.guarded, self.taking):
            rows.append([])
        return len(self.free) - 1

    def branch(self, branch: Branch, start: int, *, is_free: bool = False) -> int:
        """Append the transitions of a branch to the place `start`.

        Args:
            is_free: ignore constraints.

        Returns:
            The place at which the branch ends.
        """
        for item in branch:
            start = self._item(item, start, is_free)
        return start

    def _item(self, item: Item, start: int, is_free: bool) -> int:
        match item:
            case Characters():
                end = self.place()
                self.taking[start].append((self._alphabet.colours(item.codes), end))
                return end
            case Constraint() | Look():
                if is_free:
                    return start
                end = self.place()
                test = item if isinstance(item, Constraint) else self._look(item)
                self.guarded[start].append((test, end))
                return end
            case Group():
                return self._group(item, start, is_free)
            case BackReference():
                return self._group(item.group, start, True)
        return self._repeat(item, start, is_free)

    def _look(self, look: Look) -> int:
        if look not in self._looks:
            self._looks.append(look)
        return self._looks.index(look)

    def _group(self, group: Group, start: int, is_free: bool) -> int:
        end = self.place()
        for branch in group.inner.branches:
            first = self.place()
            self.free[start].append(first)
            self.free[self.branch(branch, first, is_free=is_free)].append(end)
        return end

    def _repeat(self, repeat: Repeat, start: int, is_free: bool) -> int:
        for _ in range(repeat.least):
            start = self._item(repeat.item, start, is_free)
        if repeat.most is None:
            loop, end = self.place(), self.place()
            self.free[start].append(loop)
            self.free[self._item(repeat.item, loop, is_free)].append(loop)
            self.free[loop].append(end)
            return end
        end = self.place()
        for _ in range(repeat.most - repeat.least):
            self.free[start].append(end)
            start = self._item(repeat.item, start, is_free)
        self.free[start].append(end)
        return end


class State:
    """The set of places at which an automaton can be, and the kind of the preceding character.

    Attributes:
        looks: the look-arounds whose results decide the next step.
        steps: whether a match can end before the next character, and the next state.  The key is
            the colour of that character or, if there are `looks`, a tuple of it and their results.
    """

    __slots__ = ("before", "looks", "places", "steps")

    def __init__(self, places: frozenset[int], before: int, looks: tuple[int, ...]) -> None:
        self.places, self.before, self.looks = places, before, looks
        self.steps: dict[object, tuple[bool, State | None]] = {}


class Automaton:
    """The automaton of a part of an expression.

    Args:
        looks: the look-arounds of the expression; the automaton adds its own.
        searches: a match may begin at each character.
    """

    def __init__(
        self, branch: Branch, alphabet: Alphabet, looks: list[Look], *, searches: bool = False
    ) -> None:
        self._alphabet, self._searches = alphabet, searches
        self._net = net = _Net(alphabet, looks)
        start = net.place()
        self._end = net.branch(branch, start)
        self._start = self._entered_from([start])
        self._depends = any(net.guarded)
        self._states: dict[tuple[frozenset[int], int], State] = {}

    def start(self, before: int) -> State:
        """Return the initial state of a match after a character with the colour `before`."""
        return self._state(self._start, before)

    def step(
        self, state: State, colour: int, outcomes: tuple[bool, ...] = ()
    ) -> tuple[bool, State | None]:
        """Return the effect of the next character on a state; see `State.steps`."""
        places = self._entered(state, colour, dict(zip(state.looks, outcomes, strict=True)))
        following: frozenset[int] = frozenset()
        if colour != self._alphabet.edge:
            targets = [
                target
                for place in places
                for colours, target in self._net.taking[place]
                if colour in colours
            ]
            following = self._entered_from(targets) if targets else following
            following = following | self._start if self._searches else following
        behind = self._state(following, colour) if following else None
        result = self._end in places, behind
        state.steps[(colour, *outcomes) if outcomes else colour] = result
        return result

    def _state(self, places: frozenset[int], colour: int) -> State:
        before = self._alphabet.flags[colour] if self._depends else 0
        state = self._states.get((places, before))
        if state is None:
            if len(self._states) >= _MOST_STATES:
                self._states.clear()  # they are built again on demand
            state = State(places, before, self._looks_from(places))
            self._states[places, before] = state
        return state

    def _entered_from(self, places: list[int]) -> frozenset[int]:
        """Return the places that free transitions reach, except places that only have free
        transitions.
        """
        net, seen = self._net, set(places)
        while places:
            for target in net.free[places.pop()]:
                if target not in seen:
                    seen.add(target)
                    places.append(target)
        return frozenset(
            place for place in seen if net.taking[place] or net.guarded[place] or place == self._end
        )

    def _looks_from(self, places: Iterable[int]) -> tuple[int, ...]:
        found: set[int] = set()
        seen, waiting = set(places), list(places)
        while waiting:
            for test, target in self._net.guarded[waiting.pop()]:
                if isinstance(test, int):
                    found.add(test)
                new = self._entered_from([target]) - seen
                seen |= new
                waiting += new
        return tuple(sorted(found))

    def _entered(self, state: State, colour: int, outcomes: dict[int, bool]) -> set[int]:
        """Return the places of a state, and the places reachable through constraints that hold."""
        seen, waiting = set(state.places), list(state.places) if self._depends else []
        ahead = self._alphabet.flags[colour]
        while waiting:
            for test, target in self._net.guarded[waiting.pop()]:
                if (
                    outcomes[test]
                    if isinstance(test, int)
                    else _holds(test.kind, state.before, ahead)
                ):
                    new = self._entered_from([target]) - seen
                    seen |= new
                    waiting += new
        return seen


def _holds(kind: str, before: int, ahead: int) -> bool:
    """Return whether a constraint, such as `^`, holds between two characters.

    Args:
        before: the flags of the character before the position.
        ahead: the flags of the character after it.
    """
    match kind:
        case "A":
            return bool(before & _EDGE_FLAG)
        case "Z":
            return bool(ahead & _EDGE_FLAG)
        case "^":
            return bool(before & (_EDGE_FLAG | _NEWLINE_FLAG))
        case "$":
            return bool(ahead & (_EDGE_FLAG | _NEWLINE_FLAG))
    was_word, is_word = bool(before & _WORD_FLAG), bool(ahead & _WORD_FLAG)
    match kind:
        case "m":
            return is_word and not was_word
        case "M":
            return was_word and not is_word
        case "y":
            return was_word is not is_word
    return was_word is is_word
