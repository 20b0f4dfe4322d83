"""Dataclasses that are cheap to declare behave like those of the standard library."""

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


def _mutable(dataclass: Any) -> type:
    @dataclass
    class State:
        name: str
        seen: list[str] = field(default_factory=list)
        count: int = field(default=3, init=False)
        key: str = field(init=False, repr=False)
        others: dict[str, int] = field(init=False, default_factory=dict)
        is_open: bool = field(default=True, kw_only=True)

        def __post_init__(self) -> None:
            self.key = self.name.upper()

    return State


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


@pytest.mark.parametrize("arguments", [((), {}), ((1,), {"x": 1}), ((1, 2, "", [], 3), {})])
@pytest.mark.parametrize("earlier", [0, 100])
def test_wrong_arguments_are_refused(arguments: tuple[Any, dict[str, Any]], earlier: int) -> None:
    point, _named, _empty = _classes(record.dataclass)
    for number in range(earlier):
        assert point(number).x == number
    args, given = arguments
    with pytest.raises(TypeError, match=r"__init__\(\)"):
        point(*args, **given)
    assert point(1, note="n") == point(1, 0)


def test_a_class_and_its_subclass_differ() -> None:
    point, named, _empty = _OURS
    assert point(1) != named(1)
    assert dataclasses.replace(named(1), y=5) == named(1, 5)
    assert not hasattr(point(1), "__dict__")


def test_fields_are_those_of_the_standard_library() -> None:
    for ours, theirs in zip(_OURS, _THEIRS, strict=True):
        assert repr(dataclasses.fields(ours)) == repr(dataclasses.fields(theirs))
        assert ours.__match_args__ == theirs.__match_args__  # type: ignore[attr-defined]
        assert ours.__slots__ == theirs.__slots__  # type: ignore[attr-defined]
        assert (ours.__qualname__, ours.__module__) == (theirs.__qualname__, theirs.__module__)


def test_a_class_without_slots() -> None:
    @record.dataclass(frozen=True)
    class Counted:
        """Counts."""

        n: int = field(default=3, kw_only=True)
        name: str

    assert repr(Counted("a")) == f"{Counted.__qualname__}(n=3, name='a')"
    assert Counted.n == 3
    assert not hasattr(Counted, "name")
    assert Counted.__match_args__ == ("name",)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Counted("a").name = "b"  # type: ignore[misc]


def test_a_mutable_default_is_refused() -> None:
    with pytest.raises(ValueError, match="mutable default of field 'names'"):

        @record.dataclass(frozen=True, slots=True)
        class Named:
            names: list[str] = []  # noqa: RUF012


def test_a_class_that_is_not_frozen() -> None:
    for cls in (_mutable(record.dataclass), _mutable(dataclasses.dataclass)):
        state = cls("a", is_open=False)
        assert repr(state) == (
            "_mutable.<locals>.State(name='a', seen=[], count=3, others={}, is_open=False)"
        )
        assert state.key == "A"
        assert state == cls("a", is_open=False)
        assert state != cls("a")
        assert cls.__hash__ is None
        assert cls.__match_args__ == ("name", "seen")
        state.name = "b"
        state.seen.append(state)
        assert repr(state).count("...") == 1
        assert dataclasses.replace(state, name="c").key == "C"
        assert cls("x").others is not cls("x").others
        with pytest.raises(TypeError):
            cls("a", count=4)


def test_identity_where_that_is_asked_for() -> None:
    @record.dataclass(frozen=True, slots=True, eq=False, repr=False)
    class Node:
        x: int

    node = Node(1)
    assert node == node
    assert node != Node(1)
