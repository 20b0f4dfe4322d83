"""Dataclasses that are cheap to declare.

`dataclasses` writes the source of each method of each class and compiles it, which was a fifth of
the time of a command that only reads a catalog.  Here the methods of all classes are made by the
same few functions; that a class is frozen is for mypy to see.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses

    def dataclass(*, frozen, slots=False, eq=True, repr=True):
        """As dataclasses.dataclass: values can be compared, and hashed; but nothing keeps a frozen
        one from being changed."""
        assert frozen, "it can be hashed"

        def declare(cls):
            own = vars(cls)
            made = dataclasses.dataclass(slots=slots, eq=False, repr=False)(cls)
            fields = dataclasses.fields(made)
            if eq and "__eq__" not in own:
                made.__eq__ = _equality([f.name for f in fields if f.compare])
                if "__hash__" not in own:
                    counts = [f.compare if f.hash is None else f.hash for f in fields]
                    hashed = zip(fields, counts, strict=True)
                    made.__hash__ = _hash([f.name for f, is_hashed in hashed if is_hashed])
            if repr and "__repr__" not in own:
                made.__repr__ = _representation([f.name for f in fields if f.repr])
            return made

        return declare


def _equality(names: list[str]) -> Any:
    values = _values(names)

    def equal(self: object, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return equal


def _hash(names: list[str]) -> Any:
    values = _values(names)
    return lambda self: hash(values(self))


def _representation(names: list[str]) -> Any:
    def represent(self: object) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    return represent


def _values(names: list[str]) -> Any:
    """A function of an object that gives the values of its attributes."""
    return attrgetter(*names) if names else lambda self: ()
