"""Find the common type of several expressions: CASE, COALESCE, ARRAY, IN, VALUES, UNION.
PostgreSQL's parse_coerce.c; the documentation's section "UNION, CASE, and Related Constructs".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from replctl.errors import DatatypeMismatch
from replctl.expr import nodes
from replctl.expr.error_location import expr_location

if TYPE_CHECKING:
    from replctl.expr.type_facts import ImplicitCasts

_UNKNOWN = "unknown"


def common_type(paths: ImplicitCasts, exprs: Sequence[nodes.Expr], construct: str) -> str:
    """Return the common type of expressions: numeric for 1 and 2.5, text for `a` and NULL.

    Args:
        construct: the construct's name for the message: `CASE`, `UNION`.

    Raises:
        DatatypeMismatch: the types are in different categories.
    """
    chosen = _choose(paths, [expr.type for expr in exprs])
    if isinstance(chosen, str):
        return chosen
    first, index = chosen
    second = paths.types.base(exprs[index].type)
    raise DatatypeMismatch(
        f"{construct} types {paths.types.format(first)} and {paths.types.format(second)} "
        "cannot be matched",
        position=expr_location(exprs[index]),
    )


def common_type_of(paths: ImplicitCasts, types: Sequence[str]) -> str | None:
    """Return the common type to which all `types` can be cast; None if there is none."""
    chosen = _choose(paths, types)
    if not isinstance(chosen, str):
        return None
    if all(paths.can_coerce_implicitly(type_, chosen) for type_ in types):
        return chosen
    return None


def common_typmod(exprs: Sequence[nodes.Expr], type_: str) -> int:
    """Return the modifier that all expressions share; -1 if their modifiers or types differ."""
    typmods = {nodes.typmod(expr) if expr.type == type_ else -1 for expr in exprs}
    return typmods.pop() if len(typmods) == 1 else -1


def _choose(paths: ImplicitCasts, types: Sequence[str]) -> str | tuple[str, int]:
    """Return the common type.  If a type is in another category, return the type chosen before it,
    and its index.
    """
    facts = paths.types
    if types[0] != _UNKNOWN and all(type_ == types[0] for type_ in types):
        return types[0]
    chosen = facts.get(facts.base(types[0]))
    for i, name in enumerate(types):
        candidate = facts.get(facts.base(name))
        if candidate.name in (_UNKNOWN, chosen.name):
            continue
        if chosen.name == _UNKNOWN:
            chosen = candidate
        elif candidate.category != chosen.category:
            return chosen.name, i
        elif (
            not chosen.is_preferred
            and paths.can_coerce_implicitly(chosen.name, candidate.name)
            and not paths.can_coerce_implicitly(candidate.name, chosen.name)
        ):
            chosen = candidate
    return "text" if chosen.name == _UNKNOWN else chosen.name
