"""Levenshtein distance with a bound (PostgreSQL's levenshtein.c); each edit costs 1."""

from __future__ import annotations


def edit_distance(source: str, target: str, bound: int) -> int:
    """Return the distance: (`colum`, `column`, 4) -> 1; return `bound + 1` for larger distances."""
    if abs(len(source) - len(target)) > bound:
        return bound + 1
    previous = list(range(len(target) + 1))
    for i, char in enumerate(source, 1):
        current = [i]
        for j, other in enumerate(target, 1):
            current.append(
                min(
                    previous[j] + 1,
                    current[j - 1] + 1,
                    previous[j - 1] + (char != other),
                )
            )
        previous = current
    return min(previous[-1], bound + 1)
