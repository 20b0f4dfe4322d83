"""Find explicit and implicit casts between types: find_coercion_pathway() and can_coerce_type() of
PostgreSQL's parse_coerce.c; the documentation's chapter "Type Conversion".
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Literal

from replctl.expr.environment import Environment
from replctl.expr.polymorphic import is_consistent
from replctl.expr.type_facts import TypeFacts
from replctl.record import dataclass
from replctl.types.builtin import POLYMORPHIC, Cast
from replctl.types.type_kind import CastMethod, CoercionCode, TypeCategory

UNKNOWN = "unknown"  # the type of a literal before its context determines one


class CastContext(IntEnum):
    """The context of a cast (CoercionContext).  A higher value allows more casts."""

    IMPLICIT, ASSIGNMENT, EXPLICIT = 1, 2, 3


#: The contexts by their codes in pg_cast.castcontext.
_CAST_CONTEXT = {
    CoercionCode.IMPLICIT: CastContext.IMPLICIT,
    CoercionCode.ASSIGNMENT: CastContext.ASSIGNMENT,
    CoercionCode.EXPLICIT: CastContext.EXPLICIT,
}


@dataclass(frozen=True, slots=True)
class CastPath:
    """A conversion from one type to another; `cast` is the row of pg_cast if it uses a function."""

    kind: Literal["function", "relabel", "array", "io"]
    cast: Cast | None = None


class CastPaths:
    """The possible casts in an environment."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.types = TypeFacts(environment)

    def path(self, target: str, source: str, context: CastContext) -> CastPath | None:
        """Return the conversion from `source` to `target`; None if there is none."""
        target, source = self.types.base(target), self.types.base(source)
        if source == target:
            return CastPath("relabel")
        cast = self.environment.cast(source, target)
        if cast is None:
            return self._path_without_cast(target, source, context)
        if context < _CAST_CONTEXT[cast.context]:
            return None
        match cast.method:
            case CastMethod.FUNCTION:
                return CastPath("function", cast)
            case CastMethod.INOUT:
                return CastPath("io")
            case CastMethod.BINARY:
                return CastPath("relabel")

    def length_path(self, target: str) -> CastPath | None:
        """Return the conversion that applies a modifier to `target`
        (find_typmod_coercion_function).
        """
        element = self.types.element(target)
        cast = self.environment.cast(element or target, element or target)
        if cast is None or cast.method != CastMethod.FUNCTION:
            return None
        return CastPath("array" if element else "function", cast)

    def can_coerce(
        self, sources: Sequence[str], targets: Sequence[str], context: CastContext
    ) -> bool:
        """Return whether all `sources` can be cast to their `targets`, and fit together if these
        are polymorphic.
        """
        has_polymorphic = False
        for source, target in zip(sources, targets, strict=True):
            if source == target or target == "any":
                continue
            if target in POLYMORPHIC:
                has_polymorphic = True
            elif not self._can_become(source, target, context):
                return False
        return not has_polymorphic or is_consistent(self, sources, targets)

    def can_coerce_implicitly(self, source: str, target: str) -> bool:
        """Return whether there is an implicit cast from `source` to `target`."""
        return self.can_coerce((source,), (target,), CastContext.IMPLICIT)

    def _can_become(self, source: str, target: str, context: CastContext) -> bool:
        if source == UNKNOWN or self.path(target, source, context) is not None:
            return True
        match source, target:
            case "record", _:
                return self.types.is_complex(target)
            case _, "record":
                return self.types.is_complex(source)
            case _, "_record":
                element = self.types.element(source)
                return element is not None and self.types.is_complex(element)
            case _:
                return False

    def _path_without_cast(self, target: str, source: str, context: CastContext) -> CastPath | None:
        """Return a conversion of arrays by elements, or of strings with output and input
        functions.
        """
        if target not in ("oidvector", "int2vector"):
            to, from_ = self.types.element(target), self.types.element(source)
            if to is not None and from_ is not None and self.path(to, from_, context) is not None:
                return CastPath("array")
        if context >= CastContext.ASSIGNMENT and self.types.category(target) == TypeCategory.STRING:
            return CastPath("io")
        if context >= CastContext.EXPLICIT and self.types.category(source) == TypeCategory.STRING:
            return CastPath("io")
        return None
