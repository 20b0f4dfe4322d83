"""Dataclasses that are cheap to declare: as good as those of the standard library."""

from __future__ import annotations

import dataclasses
from dataclasses import field
from typing import Any

import pytest

from replctl import record


def _classes(dataclass: Any) -> tuple[type, type, type]:
    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: int = 0
        note: str = field(default="", compare=False)
        seen: list[int] = field(default_factory=list, hash=False, repr=False)

    @dataclass(frozen=True, slots=True)
    class Named(Point):
        name: str = "p"

    @dataclass(frozen=True, slots=True)
    class Empty:
        pass

    return Point, Named, Empty


_OURS, _THEIRS = _classes(record.dataclass), _classes(dataclasses.dataclass)


@pytest.mark.parametrize(("ours", "theirs"), list(zip(_OURS, _THEIRS, strict=True)))
def test_values_are_told_and_compared_alike(ours: type, theirs: type) -> None:
    arguments = [()] if not dataclasses.fields(ours) else [(1,), (1, 2), (1, 0, "n"), (2,)]
    mine, other = ([cls(*given) for given in arguments] for cls in (ours, theirs))
    assert [repr(value) for value in mine] == [repr(value) for value in other]
    assert [hash(value) for value in mine] == [hash(value) for value in other]
    for i, value in enumerate(mine):
        assert [value == x for x in mine] == [other[i] == x for x in other]
    assert value != object()


def test_a_class_and_its_subclass_differ() -> None:
    point, named, _empty = _OURS
    assert point(1) != named(1)
    assert dataclasses.replace(named(1), y=5) == named(1, 5)
    assert not hasattr(point(1), "__dict__")


def test_identity_where_that_is_asked_for() -> None:
    @record.dataclass(frozen=True, slots=True, eq=False, repr=False)
    class Node:
        x: int

    node = Node(1)
    assert node == node
    assert node != Node(1)
