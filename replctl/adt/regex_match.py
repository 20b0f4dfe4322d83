"""Match regular expressions: find the leftmost match (the longest or the shortest, as the
expression prefers), and then the matches of its groups (PostgreSQL's regexec.c).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from replctl.adt import case_mapping
from replctl.adt.regex_automaton import Alphabet, Automaton, State
from replctl.adt.regex_lexer import Options, too_complex
from replctl.adt.regex_syntax import Branch, Expression, Group, Look, parsed
from replctl.adt.regex_tree import Node, tree_of
from replctl.errors import InvalidRegularExpression

#: Beginnings and ends of a match and of its groups; None for a group without a match.
Spans: TypeAlias = list[tuple[int, int] | None]


@lru_cache(500)
def compiled(pattern: str, options: Options, *, ascii_only: bool, captures: bool) -> Regex:
    """Return an expression that is ready to match.

    Args:
        ascii_only: the collation maps only the letters of ASCII.
        captures: the caller needs the matches of groups.

    Raises:
        InvalidRegularExpression: the pattern is not valid.
    """
    try:
        expression = parsed(pattern, options, ascii_only=ascii_only)
        return Regex(expression, ascii_only=ascii_only, captures=captures)
    except RecursionError:
        raise too_complex() from None


class Regex:
    """A compiled expression.

    Attributes:
        groups: the number of capturing groups.
    """

    def __init__(self, expression: Expression, *, ascii_only: bool, captures: bool) -> None:
        self.groups = expression.groups
        self.tree = tree_of(expression, captures=captures)
        self.alphabet = Alphabet(expression.tree, ascii_only=ascii_only)
        self.ignore_case, self.ascii_only = expression.ignore_case, ascii_only
        self.looks: list[Look] = []
        self._automata: dict[Node, Automaton] = {}
        self._look_automata: dict[int, Automaton] = {}
        self.searching = self._automaton((Group(expression.tree, None),), searches=True)
        self.whole = self.automaton(self.tree)

    def search(self, text: str) -> Spans | None:
        """Return the first match."""
        return _Matching(self, text).find(0)

    def find_all(self, text: str, start: int = 0) -> Iterator[tuple[int, int, Spans]]:
        """Yield successive matches with their beginnings and ends.  After an empty match, continue
        the search one character further.
        """
        matching = _Matching(self, text)
        while True:
            spans = matching.find(start)
            if spans is None:
                return
            assert spans[0] is not None
            begin, end = spans[0]
            yield begin, end, spans
            start = end + (begin == end)

    def matches(self, text: str) -> bool:
        """Return whether there is a match."""
        matching = _Matching(self, text)
        if self.tree.refers:
            return matching.find(0) is not None
        return matching.first_end(self.searching, 0) is not None

    def automaton(self, node: Node) -> Automaton:
        """Return the automaton of a part."""
        found = self._automata.get(node)
        if found is None:
            found = self._automata[node] = self._automaton(node.language)
        return found

    def look_automaton(self, number: int) -> Automaton:
        """Return the automaton of a look-around.  A match of a lookbehind may begin at each
        character.
        """
        found = self._look_automata.get(number)
        if found is None:
            look = self.looks[number]
            found = self._automaton((Group(look.inner, None),), searches=not look.ahead)
            self._look_automata[number] = found
        return found

    def _automaton(self, branch: Branch, *, searches: bool = False) -> Automaton:
        return Automaton(branch, self.alphabet, self.looks, searches=searches)


class _Matching:
    """The matching of one text."""

    def __init__(self, regex: Regex, text: str) -> None:
        self._regex, self._text = regex, text
        self._length = len(text)
        edge = regex.alphabet.edge
        # The edge follows the text; as item -1 it also precedes the text.
        self._colours = [*map(regex.alphabet.__getitem__, text), edge]
        self._ahead: dict[tuple[int, int], bool] = {}
        self._behind: dict[int, frozenset[int]] = {}
        self._spans: Spans = []

    def find(self, start: int) -> Spans | None:
        """Return the first match that begins at or after `start`.

        Raises:
            InvalidRegularExpression: the parts of the expression are nested too deeply.
        """
        if start > self._length:
            return None
        try:
            return self._find(start)
        except RecursionError:
            raise InvalidRegularExpression(
                "regular expression failed: regular expression is too complex"
            ) from None

    def _find(self, start: int) -> Spans | None:
        tree = self._regex.tree
        self._spans = [None] * (self._regex.groups + 1)
        last = self.first_end(self._regex.searching, start)
        while last is not None:
            for begin in range(start, last + 1):
                for end in self._candidates(begin):
                    if self.dissect(tree, begin, end):
                        self._spans[0] = (begin, end)
                        return self._spans
            # Only expressions with back references get here.  Like cfindloop, do not try the end of
            # the text.
            start = last + 1
            last = self.first_end(self._regex.searching, start) if start < self._length else None
        return None

    def _candidates(self, begin: int) -> list[int]:
        """Return the possible ends of a match that begins here, in order of preference.  Return
        only the first if no back reference can refuse it.
        """
        whole, tree = self._regex.whole, self._regex.tree
        if tree.prefers_shorter and not tree.refers:
            end = self.first_end(whole, begin)
            return [] if end is None else [end]
        ends = list(self._ends(whole, begin, self._length))
        if tree.refers:
            return ends if tree.prefers_shorter else ends[::-1]
        return ends[-1:]

    # -----------------------------------------------------------------------------------------
    # Automata on the text

    def first_end(self, automaton: Automaton, start: int) -> int | None:
        """Return the end of the shortest match from `start`."""
        return next(self._ends(automaton, start, self._length), None)

    def _ends(self, automaton: Automaton, start: int, limit: int) -> Iterator[int]:
        """Yield all ends, up to `limit`, of matches that begin at `start`, in order."""
        state: State | None = automaton.start(self._colours[start - 1])
        colours = self._colours
        for place in range(start, limit + 1):
            assert state is not None
            colour = colours[place]
            if state.looks:
                accepts, state = self._step(automaton, state, place)
            else:
                found = state.steps.get(colour)
                accepts, state = found if found is not None else automaton.step(state, colour)
            if accepts:
                yield place
            if state is None:
                return

    def _step(self, automaton: Automaton, state: State, place: int) -> tuple[bool, State | None]:
        """Return the effect of the next character if it depends on look-arounds."""
        outcomes = tuple(self._holds(number, place) for number in state.looks)
        colour = self._colours[place]
        found = state.steps.get((colour, *outcomes))
        return found if found is not None else automaton.step(state, colour, outcomes)

    def _holds(self, number: int, place: int) -> bool:
        look, automaton = self._regex.looks[number], self._regex.look_automaton(number)
        if not look.ahead:
            if number not in self._behind:
                self._behind[number] = frozenset(self._ends(automaton, 0, self._length))
            return (place in self._behind[number]) is not look.negative
        found = self._ahead.get((number, place))
        if found is None:
            found = (self.first_end(automaton, place) is not None) is not look.negative
            self._ahead[number, place] = found
        return found

    def part_ends(self, node: Node, start: int, limit: int) -> list[int]:
        """Return the possible ends of a part.  For a back reference whose group has matched, use
        the text of this match.
        """
        if node.kind == "back" and self._spans[node.group] is not None:
            return self._repetitions(node, start, limit)
        return list(self._ends(self._regex.automaton(node), start, limit))

    def _reaches(self, node: Node, start: int, end: int) -> bool:
        return self.part_ends(node, start, end)[-1:] == [end]

    # -----------------------------------------------------------------------------------------
    # Parts of a match

    def dissect(self, node: Node, begin: int, end: int) -> bool:
        """Divide a match that the automaton has found among the parts; return whether this is
        possible.

        Only back references can make it impossible.
        """
        match node.kind:
            case "plain":
                found = True
            case "back":
                found = end in self._repetitions(node, begin, end)
            case "concat":
                found = self._dissect_concat(node, begin, end)
            case "either":
                found = any(
                    self._reaches(child, begin, end) and self.dissect(child, begin, end)
                    for child in node.children
                )
            case "capture":
                found = self.dissect(node.children[0], begin, end)
            case "repeat":
                found = _Division(self, node, begin, end).find()
        if found and node.capture is not None:
            self._spans[node.capture] = (begin, end)
        return found

    def _dissect_concat(self, node: Node, begin: int, end: int) -> bool:
        left, right = node.children
        middles = self.part_ends(left, begin, end)
        for middle in middles if left.prefers_shorter else middles[::-1]:
            if self._reaches(right, middle, end) and self.dissect(left, begin, middle):
                if self.dissect(right, middle, end):
                    return True
                self.forget(left)
        return False

    def _repetitions(self, node: Node, start: int, limit: int) -> list[int]:
        """Return the possible ends of a back reference; an empty group can repeat any number of
        times.
        """
        span = self._spans[node.group]
        if span is None:
            return []
        repeated = self._folded(self._text[span[0] : span[1]])
        if not repeated:
            return [start]
        ends, end, count = [], start, 0
        while True:
            if count >= node.least:
                ends.append(end)
            following = end + len(repeated)
            if count == node.most or following > limit:
                return ends
            if self._folded(self._text[end:following]) != repeated:
                return ends
            end, count = following, count + 1

    def _folded(self, text: str) -> str:
        if not self._regex.ignore_case:
            return text
        return case_mapping.lower(text, ascii_only=self._regex.ascii_only)

    def forget(self, node: Node) -> None:
        if node.capture is not None:
            self._spans[node.capture] = None
        for child in node.children:
            self.forget(child)


class _Division:
    """The division of a match among the repetitions of a part.

    Each repetition is as long or as short as the part prefers.  If the rest does not match, the
    last repetitions are changed first.  An empty repetition is used only to reach the minimum.
    """

    def __init__(self, matching: _Matching, node: Node, begin: int, end: int) -> None:
        self._matching, self._child = matching, node.children[0]
        self._begin, self._end = begin, end
        self._may_be_none = node.least == 0
        self._least = max(node.least, 1)
        most = end - begin if node.most is None else min(end - begin, node.most)
        self._most = max(most, self._least)
        self._ends: dict[int, list[int]] = {}
        self._failed: set[tuple[int, int]] = set()

    def find(self) -> bool:
        # PostgreSQL prefers one empty repetition to none only if the part prefers longer matches.
        if self._begin == self._end and self._may_be_none:
            if self._child.prefers_shorter:
                return True
            return self._find() or True
        return self._find()

    def _find(self) -> bool:
        """Search depth-first without recursion.  `places` has the ends so far, `waiting` the ends
        that are left to try for each repetition.
        """
        places, waiting = [self._begin], [self._choices(1, self._begin)]
        verified = 0
        while waiting:
            if not waiting[-1]:
                waiting.pop()
                if not self._child.refers:
                    self._failed.add((len(places), places[-1]))
                places.pop()
                verified = min(verified, len(places) - 1)
                continue
            place, count = waiting[-1].pop(), len(places)
            verified = min(verified, count - 1)
            if place != self._end:
                if count < self._most and (count + 1, place) not in self._failed:
                    places.append(place)
                    waiting.append(self._choices(count + 1, place))
                continue
            if count < self._least:
                continue
            verified = self._verified([*places, place], verified)
            if verified == count:
                return True
            # Next, change the repetition that does not match.
            del places[verified + 1 :], waiting[verified + 1 :]
        return False

    def _choices(self, count: int, start: int) -> list[int]:
        """Return the possible ends of the count-th repetition, with the preferred one last."""
        if start not in self._ends:
            self._ends[start] = self._matching.part_ends(self._child, start, self._end)
        ends = self._ends[start]
        missing = self._least - count
        if missing < max(self._end - start, 1) and start != self._end:
            ends = ends[bisect_right(ends, start) :]
        if count >= self._most:
            ends = ends[bisect_left(ends, self._end) :]
        return ends[::-1] if self._child.prefers_shorter else ends[:]

    def _verified(self, places: list[int], count: int) -> int:
        """Return the number of repetitions that match; the first `count` are known to match."""
        for i in range(count, len(places) - 1):
            self._matching.forget(self._child)
            if not self._matching.dissect(self._child, places[i], places[i + 1]):
                return i
        return len(places) - 1
