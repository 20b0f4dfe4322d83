"""The base of all nodes of the syntax tree."""

from __future__ import annotations

from dataclasses import field

from replctl.record import dataclass


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    """The base of all nodes.  It defines equality for all of them, because a definition in each
    class would make the start slower.

    Fields that do not count in comparisons, such as positions, are keyword-only.
    """

    pos: int = field(default=-1, kw_only=True)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash((type(self), _values(self)))

    def __repr__(self) -> str:
        names: tuple[str, ...] = self.__match_args__
        fields = zip(names, _values(self), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in fields)})"


def _values(node: object) -> tuple[object, ...]:
    names: tuple[str, ...] = getattr(node, "__match_args__", ())
    return tuple(getattr(node, name) for name in names)
