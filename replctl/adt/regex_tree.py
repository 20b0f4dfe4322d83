"""Divide the match of a regular expression among its parts (PostgreSQL's regcomp.c).

Only relevant parts have a node: capturing groups, back references, and parts that prefer a
different length than the parts around them.  The rest is matched as a whole.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from replctl.adt.regex_syntax import (
    Alternatives,
    BackReference,
    Branch,
    Constraint,
    Expression,
    Group,
    Item,
    Look,
    Repeat,
)
from replctl.record import dataclass

# Flags of a part: its preference and its contents (regguts.h).
_LONGER, _SHORTER, _MIXED, _CAPTURES, _REFERS = 1, 2, 4, 8, 16
_INHERITED = _MIXED | _CAPTURES | _REFERS
_PREFERENCE = _LONGER | _SHORTER


@dataclass(slots=True, eq=False)
class Node:
    """A part of an expression.

    Attributes:
        kind: `plain` has no parts, `concat` has two, `either` several, `repeat` one.  `back` is a
            back reference.  `capture` adds a group around its only part.
        language: the expression; for a back reference, one that matches all that its group can.
        capture: the number of the group that gets the match.
        group: the group to which a back reference refers.
        least, most: the number of repetitions of a repeat or back reference.
    """

    kind: Literal["plain", "concat", "either", "repeat", "back", "capture"]
    flags: int
    language: Branch
    children: list[Node] = field(default_factory=list)
    capture: int | None = None
    group: int = 0
    least: int = 1
    most: int | None = 1
    is_referenced: bool = False

    @property
    def prefers_shorter(self) -> bool:
        return bool(self.flags & _SHORTER)

    @property
    def refers(self) -> bool:
        """Return whether the expression has back references."""
        return bool(self.flags & _REFERS)


def tree_of(expression: Expression, *, captures: bool) -> Node:
    """Return the tree of an expression's parts.

    Args:
        captures: the caller needs the matches of groups.  If false, groups only matter for back
            references.
    """
    tree = _Builder().alternatives(expression.tree)
    if not captures:
        _remove_captures(tree)
    return tree


class _Builder:
    def __init__(self) -> None:
        self._groups: dict[int, Node] = {}

    def alternatives(self, tree: Alternatives) -> Node:
        branches = [self._branch(branch) for branch in tree.branches]
        if len(branches) == 1:
            return branches[0]
        flags = _LONGER
        for branch in branches:
            flags |= _inherited(flags | branch.flags)
        language = (Group(tree, None),)
        if not flags & _INHERITED:
            return Node("plain", flags, language)
        return Node("either", flags, language, branches)

    def _branch(self, branch: Branch) -> Node:
        """Return the node of a concatenation; its kind is `plain` if it has no relevant parts."""
        flags = 0
        for i, item in enumerate(branch):
            if isinstance(item, Constraint | Look):
                continue
            atom, least, most, preference = _quantified(item)
            node = self._atom(atom)
            if (least, most) == (0, 0):
                continue
            together = flags | preference | (node.flags if node is not None else 0)
            is_group = isinstance(atom, BackReference) or _captures(atom)
            if is_group or _inherited(together) & _INHERITED:
                node = node or Node("plain", 0, (atom,))
                weight = _combined(preference, node.flags)
                prefix = Node("plain", flags, branch[:i])
                return self._divided(branch, i, prefix, self._repeated(node, item), weight)
            flags = together
        return Node("plain", flags, branch)

    def _atom(self, atom: Item) -> Node | None:
        match atom:
            case BackReference(group):
                assert group.number is not None
                self._groups[group.number].is_referenced = True
                return Node("back", _REFERS, (atom,), group=group.number)
            case Group(inner, number):
                node = self.alternatives(inner)
                if number is None:
                    return node
                if node.capture is not None:
                    node = Node("capture", node.flags, node.language, [node])
                node.flags |= _CAPTURES
                node.capture = number
                self._groups[number] = node
                return node
        return None

    def _repeated(self, atom: Node, item: Item) -> Node:
        """Return the node of a relevant part with its quantifier."""
        repeated, least, most, preference = _quantified(item)
        language = (item,)
        flags = _combined(preference, atom.flags)
        if isinstance(repeated, BackReference):
            atom.language, atom.least, atom.most = language, least, most
            atom.flags |= flags
            return atom
        own = atom.flags & (_PREFERENCE | _MIXED)
        if least == most == 1 and (not preference or not own or preference == own):
            return atom
        if not atom.flags & (_CAPTURES | _REFERS):
            return Node("plain", flags, language)
        if least > 0 and not atom.flags & _REFERS:
            assert isinstance(item, Repeat)
            more = None if most is None else most - 1
            others = (Repeat(item.item, least - 1, more, item.is_greedy),)
            prefix = Node("plain", flags & _PREFERENCE, others)
            return Node("concat", flags, language, [prefix, atom])
        return Node("repeat", flags, language, [atom], least=least, most=most)

    def _divided(self, branch: Branch, i: int, prefix: Node, part: Node, weight: int) -> Node:
        """Return the node of a branch: the parts before a relevant part, this part, and the rest.

        Args:
            weight: the part's preference without its repetition.
        """
        if i + 1 == len(branch):
            if i == 0:
                return part
            flags = prefix.flags | _combined(prefix.flags, part.flags)
            return Node("concat", flags, branch, [prefix, part])
        rest = self._branch(branch[i + 1 :])
        weight |= _combined(weight, rest.flags)
        flags = prefix.flags | _combined(prefix.flags, weight)
        if i == 0:
            return Node("concat", flags, branch, [part, rest])
        end = Node("concat", weight, branch[i:], [part, rest])
        is_plain = part.kind == rest.kind == "plain"
        if is_plain and not _inherited(part.flags | rest.flags) & _INHERITED:
            end = Node("plain", _combined(part.flags, rest.flags), branch[i:])
        return Node("concat", flags, branch, [prefix, end])


def _quantified(item: Item) -> tuple[Item, int, int | None, int]:
    """Return an item's atom, its minimum and maximum, and the quantifier's preference."""
    if not isinstance(item, Repeat):
        return item, 1, 1, 0
    preference = {None: 0, True: _LONGER, False: _SHORTER}[item.is_greedy]
    return item.item, item.least, item.most, preference


def _captures(atom: Item) -> bool:
    return isinstance(atom, Group) and atom.number is not None


def _inherited(flags: int) -> int:
    """Return the flags that a part passes to the part around it: MIXED if its own parts prefer
    different lengths.
    """
    is_mixed = flags & _PREFERENCE == _PREFERENCE
    return flags & _INHERITED | (_MIXED if is_mixed else 0)


def _combined(first: int, second: int) -> int:
    """Return the flags of a concatenation; the first preference decides."""
    preference = first & _PREFERENCE or second & _PREFERENCE
    return _inherited(first | second) | preference


def _remove_captures(node: Node) -> None:
    """Remove groups to which no back reference refers; match parts without groups and back
    references as a whole.
    """
    if not node.is_referenced:
        node.capture = None
        node.flags &= ~_CAPTURES
    for child in node.children:
        _remove_captures(child)
        node.flags |= child.flags & _CAPTURES
    if not node.flags & (_CAPTURES | _REFERS):
        node.kind, node.children = "plain", []
        node.flags &= ~_MIXED
