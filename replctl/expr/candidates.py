"""Choose between several operators or functions for a call: PostgreSQL's func_match_argtypes() and
func_select_candidate().  The chapter "Type Conversion" of PostgreSQL's documentation has the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from replctl.expr.cast_path import UNKNOWN, CastContext, CastPaths
from replctl.types.type_kind import TypeCategory


class Candidate(Protocol):
    """A function or operator, with the types of its arguments."""

    @property
    def args(self) -> tuple[str, ...]: ...


C = TypeVar("C", bound=Candidate)


def callable_candidates(paths: CastPaths, given: Sequence[str], candidates: Sequence[C]) -> list[C]:
    """Return the candidates to whose argument types the types in `given` can be cast implicitly."""
    return [
        candidate
        for candidate in candidates
        if paths.can_coerce(given, candidate.args, CastContext.IMPLICIT)
    ]


def best_candidate(paths: CastPaths, given: Sequence[str], candidates: Sequence[C]) -> C | None:
    """Return the best of several callable candidates; None if the choice is ambiguous.

    Each rule keeps only the candidates that it prefers, until one is left:
        most exact matches;
        most exact matches and preferred types;
        for unknown literals a string type, or else their common category and its preferred types;
        for unknown literals the type of the known arguments.
    """
    types = paths.types
    bases = [type_ if type_ == UNKNOWN else types.base(type_) for type_ in given]
    categories = [types.category(type_) for type_ in bases]
    known = [i for i, type_ in enumerate(bases) if type_ != UNKNOWN]
    unknown = [i for i, type_ in enumerate(bases) if type_ == UNKNOWN]

    def exact(candidate: C) -> int:
        return sum(candidate.args[i] == bases[i] for i in known)

    def exact_or_preferred(candidate: C) -> int:
        return sum(
            candidate.args[i] == bases[i] or _is_preferred(paths, categories[i], candidate.args[i])
            for i in known
        )

    for score in (exact, exact_or_preferred):
        candidates = _most(candidates, score)
        if len(candidates) == 1:
            return candidates[0]
    if not unknown:
        return None
    candidates = _matching_categories(paths, unknown, candidates)
    if len(candidates) == 1:
        return candidates[0]
    known_types = {bases[i] for i in known}
    if len(known_types) != 1:
        return None
    alike = known_types.pop()
    candidates = callable_candidates(paths, [alike] * len(given), candidates)
    return candidates[0] if len(candidates) == 1 else None


def _most(candidates: Sequence[C], score: Callable[[C], int]) -> Sequence[C]:
    scores = [score(candidate) for candidate in candidates]
    best = max(scores)
    return [candidate for candidate, found in zip(candidates, scores, strict=True) if found == best]


def _is_preferred(paths: CastPaths, category: TypeCategory, type_: str) -> bool:
    found = paths.types.get(type_)
    return found.category == category and found.is_preferred


def _matching_categories(
    paths: CastPaths, positions: Sequence[int], candidates: Sequence[C]
) -> Sequence[C]:
    """Return the candidates with the right category, and the preferred type if there is one, at
    each of `positions`.

    If no candidate is left, or the categories differ at a position and none is that of strings,
    return all candidates.
    """
    wanted: dict[int, tuple[TypeCategory, bool]] = {}
    for i in positions:
        found = [paths.types.get(candidate.args[i]) for candidate in candidates]
        categories = {type_.category for type_ in found}
        if len(categories) > 1 and TypeCategory.STRING not in categories:
            return candidates
        category = TypeCategory.STRING if TypeCategory.STRING in categories else categories.pop()
        has_preferred = any(type_.is_preferred for type_ in found if type_.category == category)
        wanted[i] = category, has_preferred

    def fits(candidate: C) -> bool:
        for i, (category, has_preferred) in wanted.items():
            type_ = paths.types.get(candidate.args[i])
            if type_.category != category or (has_preferred and not type_.is_preferred):
                return False
        return True

    return [candidate for candidate in candidates if fits(candidate)] or candidates
