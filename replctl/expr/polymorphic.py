"""Find the actual types of anyelement, anyarray, anycompatible and similar types in a call:
PostgreSQL's check_generic_type_consistency() and enforce_generic_type_consistency() in
parse_coerce.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from replctl.errors import DatatypeMismatch, UndefinedObject
from replctl.expr.common_type import common_type_of
from replctl.types.builtin import POLYMORPHIC

if TYPE_CHECKING:
    from replctl.expr.type_facts import ImplicitCasts

_UNKNOWN = "unknown"
_SIMPLE = frozenset({"anyelement", "anynonarray", "anyenum"})


def is_consistent(paths: ImplicitCasts, actual: Sequence[str], declared: Sequence[str]) -> bool:
    """Return whether the polymorphic types in `declared` can stand for the types in `actual`."""
    match = _Match(paths)
    try:
        match.collect(actual, declared)
        match.agree_simple()
        match.agree_compatible()
    except DatatypeMismatch:  # another candidate may fit
        return False
    return not ("anyenum" in declared and match.element is None)


def resolve(
    paths: ImplicitCasts, actual: Sequence[str], declared: Sequence[str], result: str
) -> tuple[tuple[str, ...], str]:
    """Resolve polymorphic types: ((int4, unknown), (anyelement, anyelement), anyarray) becomes
    (int4, int4), _int4.

    Args:
        actual, declared: the actual and the declared types of the arguments.
        result: the declared type of the result.

    Returns:
        The declared types of the arguments and of the result, with actual types instead of
        polymorphic ones.  Exception: if the actual type of an argument is known, its declared type
        may stay polymorphic, because the argument needs no cast.

    Raises:
        DatatypeMismatch: the types do not fit together, or no argument determines the type.
        UndefinedObject: there is no array type with such elements.
    """
    if not any(type_ in POLYMORPHIC for type_ in declared):
        return tuple(declared), result
    match = _Match(paths)
    match.collect(actual, declared)
    match.agree_simple()
    if match.has_simple:
        match.check_element()
    match.agree_compatible()
    match.default_compatible()
    types = []
    for given, type_ in zip(actual, declared, strict=True):
        is_open = given == _UNKNOWN or type_.startswith("anycompatible")
        types.append(match.real(type_) if type_ in POLYMORPHIC and is_open else type_)
    return tuple(types), match.real(result) if result in POLYMORPHIC else result


class _Match:
    """The types found so far, one for each kind of polymorphic type; None while unknown."""

    def __init__(self, paths: ImplicitCasts) -> None:
        self._paths = paths
        self._types = paths.types
        self._declared: set[str] = set()
        self.element: str | None = None
        self._array: str | None = None
        self._range: str | None = None
        self._multirange: str | None = None
        self._compatible: str | None = None
        self._compatible_types: list[str] = []
        self._compatible_range: str | None = None
        self._compatible_multirange: str | None = None

    @property
    def has_simple(self) -> bool:
        """Return whether a declared type belongs to the anyelement group."""
        return any(not type_.startswith("anycompatible") for type_ in self._declared)

    @property
    def _has_compatible(self) -> bool:
        return any(type_.startswith("anycompatible") for type_ in self._declared)

    def collect(self, actual: Sequence[str], declared: Sequence[str]) -> None:
        """Add the types of arguments.

        Raises:
            DatatypeMismatch: arguments of one kind have different types.
        """
        for given, type_ in zip(actual, declared, strict=True):
            if type_ not in POLYMORPHIC:
                continue
            self._declared.add(type_)
            if given == _UNKNOWN:
                continue
            if type_ not in _SIMPLE and type_ not in ("anycompatible", "anycompatiblenonarray"):
                given = self._types.base(given)
            match type_:
                case "anyelement" | "anynonarray" | "anyenum":
                    self.element = self._same("anyelement", self.element, given)
                case "anyarray":
                    self._array = self._same(type_, self._array, given)
                case "anyrange":
                    self._range = self._same(type_, self._range, given)
                case "anymultirange":
                    self._multirange = self._same(type_, self._multirange, given)
                case "anycompatiblearray":
                    element = self._types.element(given)
                    if element is None:
                        raise self._not_a("an array", type_, given)
                    self._compatible_types.append(element)
                case "anycompatiblerange":
                    if self._compatible_range is None:
                        self._compatible_types.append(self._bound_type(type_, given))
                    self._compatible_range = self._same(type_, self._compatible_range, given)
                case "anycompatiblemultirange":
                    known = self._compatible_multirange
                    self._compatible_multirange = self._same(type_, known, given)
                case _:
                    self._compatible_types.append(given)

    def agree_simple(self) -> None:
        """Check that the types for element, array, range and multirange fit together."""
        if self._array not in (None, "anyarray"):
            element = self._types.element(self._array)
            if element is None:
                raise self._not_a("an array", "anyarray", self._array)
            self.element = self._consistent("anyarray", self._array, element, self.element)
        if self._multirange is not None:
            range_ = self._types.multirange_range(self._multirange)
            if range_ is None:
                raise self._not_a("a multirange", "anymultirange", self._multirange)
            if self._range not in (None, range_):
                raise self._inconsistent("anymultirange", self._multirange, "anyrange", self._range)
            self._range = range_
        elif "anymultirange" in self._declared and self._range is not None:
            self._multirange = self._types.range_multirange(self._range)
        if self._range is not None:
            bound = self._bound_type("anyrange", self._range)
            self.element = self._consistent("anyrange", self._range, bound, self.element)
        if self.element is not None:
            self._check_kind("anynonarray", self.element)
            if "anyenum" in self._declared and not self._types.is_enum(self.element):
                shown = self._types.format(self.element)
                raise DatatypeMismatch(f"type matched to anyenum is not an enum type: {shown}")

    def check_element(self) -> None:
        """Check that the element type of the anyelement group is known.

        Raises:
            DatatypeMismatch: all arguments of the group have the type unknown.
        """
        if self.element is None and self._array != "anyarray":
            raise DatatypeMismatch(
                "could not determine polymorphic type because input has type unknown"
            )

    def agree_compatible(self) -> None:
        """Find the common type of the anycompatible group, like the common type of a CASE."""
        if self._compatible_multirange is not None:
            range_ = self._types.multirange_range(self._compatible_multirange)
            if range_ is None:
                raise self._not_a(
                    "a multirange", "anycompatiblemultirange", self._compatible_multirange
                )
            if self._compatible_range is None:
                self._compatible_types.append(self._bound_type("anycompatiblerange", range_))
            elif self._compatible_range != range_:
                raise self._inconsistent(
                    "anycompatiblemultirange",
                    self._compatible_multirange,
                    "anycompatiblerange",
                    self._compatible_range,
                )
            self._compatible_range = range_
        if not self._compatible_types:
            return
        self._compatible = common_type_of(self._paths, self._compatible_types)
        if self._compatible is None:
            raise DatatypeMismatch(
                "arguments of anycompatible family cannot be cast to a common type"
            )
        if self._compatible_range is not None:
            bound = self._types.range_subtype(self._compatible_range)
            if bound != self._compatible:
                raise DatatypeMismatch(
                    f"anycompatiblerange type {self._types.format(self._compatible_range)} "
                    f"does not match anycompatible type {self._types.format(self._compatible)}"
                )
        self._check_kind("anycompatiblenonarray", self._compatible)

    def default_compatible(self) -> None:
        """Set an unknown type of the anycompatible group to text; refuse an unknown range."""
        if not self._has_compatible:
            return
        if self._compatible_range is None:
            for type_ in ("anycompatiblerange", "anycompatiblemultirange"):
                if type_ in self._declared:
                    raise self._undetermined(type_)
        if self._compatible is None:
            self._compatible = "text"

    def real(self, type_: str) -> str:
        """Return the actual type for a polymorphic type.

        Raises:
            DatatypeMismatch: the type is a range, and no argument determines it.
            UndefinedObject: the type is an array, and there is no array type with such elements.
        """
        known: str | None
        match type_:
            case "anyelement" | "anynonarray" | "anyenum":
                known = self.element or "anyelement"
            case "anyarray":
                known = self._array or self._array_of(self.element)
            case "anyrange":
                known = self._range
            case "anymultirange":
                known = self._multirange or (
                    self._range and self._types.range_multirange(self._range)
                )
            case "anycompatiblearray":
                known = self._array_of(self._compatible)
            case "anycompatiblerange":
                known = self._compatible_range
            case "anycompatiblemultirange":
                known = self._compatible_multirange or (
                    self._compatible_range and self._types.range_multirange(self._compatible_range)
                )
            case _:
                known = self._compatible
        if known is None:
            raise self._undetermined(type_)
        return known

    def _array_of(self, element: str | None) -> str:
        assert element is not None
        array = self._types.array(element)
        if array is None:
            shown = self._types.format(element)
            raise UndefinedObject(f"could not find array type for data type {shown}")
        return array

    def _bound_type(self, declared: str, range_: str) -> str:
        bound = self._types.range_subtype(range_)
        if bound is None:
            raise self._not_a("a range", declared, range_)
        return bound

    def _same(self, declared: str, known: str | None, given: str) -> str:
        if known not in (None, given):
            raise DatatypeMismatch(
                f'arguments declared "{declared}" are not all alike',
                detail=f"{self._types.format(known)} versus {self._types.format(given)}",
            )
        return given

    def _consistent(self, declared: str, container: str, part: str, known: str | None) -> str:
        if known not in (None, part):
            raise self._inconsistent(declared, container, "anyelement", known)
        return part

    def _inconsistent(
        self, first: str, first_type: str, second: str, second_type: str
    ) -> DatatypeMismatch:
        return DatatypeMismatch(
            f"argument declared {first} is not consistent with argument declared {second}",
            detail=f"{self._types.format(first_type)} versus {self._types.format(second_type)}",
        )

    def _not_a(self, kind: str, declared: str, given: str) -> DatatypeMismatch:
        noun = "an array" if kind == "an array" else f"{kind} type"
        return DatatypeMismatch(
            f"argument declared {declared} is not {noun} but type {self._types.format(given)}"
        )

    def _undetermined(self, type_: str) -> DatatypeMismatch:
        return DatatypeMismatch(
            f"could not determine polymorphic type {type_} because input has type unknown"
        )

    def _check_kind(self, declared: str, type_: str) -> None:
        if declared in self._declared and self._types.base_element(type_) is not None:
            raise DatatypeMismatch(
                f"type matched to {declared} is an array type: {self._types.format(type_)}"
            )
