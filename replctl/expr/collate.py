"""Assign collations to all parts of an expression: the collation that a part uses and the collation
of its value (PostgreSQL's parse_collate.c; the documentation's section "Collation Support").
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any

from replctl.errors import CollationMismatch
from replctl.expr import nodes
from replctl.expr.environment import Environment
from replctl.expr.error_location import expr_location
from replctl.record import dataclass

_DEFAULT = "default"


class _Strength(IntEnum):
    """The strength of a collation's derivation; the highest one wins."""

    NONE, IMPLICIT, CONFLICT, EXPLICIT = range(4)


@dataclass(slots=True)
class _State:
    """The collation of an expression, or of its parts that were visited."""

    collation: str | None = None
    strength: _Strength = _Strength.NONE
    pos: int = -1  # position of the COLLATE clause

    def merge(self, part: _State) -> None:
        """Combine this state with that of another part of the expression.

        Raises:
            CollationMismatch: two COLLATE clauses name different collations.
        """
        if part.strength > self.strength:
            self.collation, self.strength, self.pos = part.collation, part.strength, part.pos
        elif part.strength < self.strength or part.collation == self.collation:
            return
        elif part.strength == _Strength.EXPLICIT:
            raise CollationMismatch(
                f'collation mismatch between explicit collations "{self.collation}" '
                f'and "{part.collation}"',
                position=part.pos,
            )
        elif part.strength == _Strength.IMPLICIT:
            if self.collation == _DEFAULT:
                self.collation = part.collation
            elif part.collation != _DEFAULT:
                self.strength = _Strength.CONFLICT

    @property
    def chosen(self) -> str | None:
        """Return the collation; None in a conflict, which fails when a function needs a
        collation.
        """
        return None if self.strength == _Strength.CONFLICT else self.collation


def assign_collations(environment: Environment, expr: nodes.Expr) -> nodes.Expr:
    """Return `expr` with the collations that its parts use, and the collations of their values.

    Raises:
        CollationMismatch: two COLLATE clauses name different collations.
    """
    assigned: nodes.Expr = _visit(environment, expr)[0]
    return assigned


def common_collation(
    environment: Environment, exprs: Sequence[nodes.Expr], *, needs_one: bool = False
) -> str | None:
    """Return the collation of a column that has the values of all `exprs`
    (select_common_collation).  They have the same type.

    Returns:
        The collation; None for types without one, and in a conflict.

    Raises:
        CollationMismatch: two COLLATE clauses differ, or `needs_one` and two collations differ.
    """
    if environment.type(exprs[0].type).collation is None:
        return None
    collations = {expr.collation if isinstance(expr, nodes.Const) else None for expr in exprs}
    if len(collations) == 1 and None not in collations:  # usual in a long VALUES
        return collations.pop()
    state = _State()
    for expr in exprs:
        before, part = state.collation, _visit(environment, expr)[1]
        state.merge(part)
        if state.strength == _Strength.CONFLICT and needs_one:
            raise CollationMismatch(
                f'collation mismatch between implicit collations "{before}" and "{part.collation}"',
                hint="You can choose the collation by applying the COLLATE clause to one or both"
                " expressions.",
                position=expr_location(expr),
            )
    return state.chosen


def _common(
    environment: Environment, exprs: Iterable[nodes.Expr]
) -> tuple[tuple[nodes.Expr, ...], str | None]:
    """Return the expressions with collations, and the collation for comparing them; None if there
    is none.
    """
    state = _State()
    visited = _visit_all(environment, exprs, state)
    return visited, state.chosen


def _visit(environment: Environment, node: Any) -> tuple[Any, _State]:
    """Return the node with collations, and the state to merge into that of the node above it."""
    inner = _State()
    match node:
        case nodes.Var() | nodes.Const() | nodes.Param() | nodes.SetToDefault():
            return node, _implicit(node.collation)
        case nodes.CollateExpr(arg=arg, collation=collation):
            node = dataclasses.replace(node, arg=_visit(environment, arg)[0])
            return node, _State(collation, _Strength.EXPLICIT, node.pos)
        case nodes.FieldSelect(arg=arg, collation=collation):
            node = dataclasses.replace(node, arg=_visit(environment, arg)[0])
            return node, _implicit(collation)
        case nodes.RowExpr(args=args):
            return dataclasses.replace(node, args=_visit_separately(environment, args)), _State()
        case nodes.RowCompareExpr():
            return _row_comparison(environment, node), _State()
        case nodes.CoerceToDomain(arg=arg, type=type_):
            node = dataclasses.replace(node, arg=_visit_into(environment, arg, inner))
            own = environment.type(type_).collation
            outer = inner if own == _DEFAULT else _implicit(own)
            return dataclasses.replace(node, collation=outer.chosen), outer
        case nodes.SubLink(test=test, collation=collation):
            if test is not None:
                node = dataclasses.replace(node, test=_visit(environment, test)[0])
            return node, _implicit(collation)
        case nodes.Aggref():
            node = _aggregate(environment, node, inner)
        case nodes.WindowFunc():
            node = _window_function(environment, node, inner)
        case nodes.CaseExpr():
            node = _case(environment, node, inner)
        case nodes.SubscriptingRef(arg=arg, upper=upper, lower=lower, assigned=assigned):
            node = dataclasses.replace(
                node,
                upper=_visit_separately(environment, upper),
                lower=None if lower is None else _visit_separately(environment, lower),
                arg=_visit_into(environment, arg, inner),
                assigned=None if assigned is None else _visit_into(environment, assigned, inner),
            )
        case _:
            node = _with_children(environment, node, inner)
    return _assigned(environment, node, inner)


def _assigned(environment: Environment, node: Any, inner: _State) -> tuple[Any, _State]:
    """Return the node with the collation derived from its arguments; this is the usual case."""
    own = environment.type(node.type).collation
    if own is None:
        outer = _State()
    elif inner.strength > _Strength.NONE:
        outer = inner
    else:
        outer = _implicit(own)
    changes: dict[str, str | None] = {}
    names = nodes.field_names(node)
    if "collation" in names and node.collation != outer.chosen:
        changes["collation"] = outer.chosen
    if "input_collation" in names and node.input_collation != inner.chosen:
        changes["input_collation"] = inner.chosen
    return dataclasses.replace(node, **changes) if changes else node, outer


def _implicit(collation: str | None) -> _State:
    return _State() if collation is None else _State(collation, _Strength.IMPLICIT)


def _visit_into(environment: Environment, node: Any, state: _State) -> Any:
    visited, part = _visit(environment, node)
    state.merge(part)
    return visited


def _visit_all(environment: Environment, exprs: Iterable[Any], state: _State) -> tuple[Any, ...]:
    return tuple(_visit_into(environment, expr, state) for expr in exprs)


def _visit_separately(environment: Environment, exprs: Iterable[Any]) -> tuple[Any, ...]:
    """Return expressions with collations that do not affect the surrounding node."""
    return tuple(None if expr is None else _visit(environment, expr)[0] for expr in exprs)


def _with_children(environment: Environment, node: Any, state: _State) -> Any:
    changes: dict[str, Any] = {}
    for name in nodes.field_names(node):
        value = getattr(node, name)
        if isinstance(value, nodes.Node):
            changes[name] = _visit_into(environment, value, state)
        elif isinstance(value, tuple) and value and isinstance(value[0], nodes.Node):
            changes[name] = _visit_all(environment, value, state)
    return dataclasses.replace(node, **changes) if changes else node


def _row_comparison(environment: Environment, node: nodes.RowCompareExpr) -> nodes.RowCompareExpr:
    pairs = [_common(environment, pair) for pair in zip(node.left, node.right, strict=True)]
    return dataclasses.replace(
        node,
        left=tuple(pair[0] for pair, _ in pairs),
        right=tuple(pair[1] for pair, _ in pairs),
        input_collations=tuple(collation for _, collation in pairs),
    )


def _case(environment: Environment, node: nodes.CaseExpr, state: _State) -> nodes.CaseExpr:
    """Return a CASE with collations.  Its operand got them when the CASE was analysed."""
    whens = tuple(
        dataclasses.replace(
            when,
            condition=_visit_into(environment, when.condition, state),
            result=_visit_into(environment, when.result, state),
        )
        for when in node.whens
    )
    return dataclasses.replace(
        node, whens=whens, default=_visit_into(environment, node.default, state)
    )


def _aggregate(environment: Environment, node: nodes.Aggref, state: _State) -> nodes.Aggref:
    """Return an aggregate with collations.  The columns of an ordered-set aggregate count only if
    there is just one.
    """
    direct = _visit_all(environment, node.direct_args, state)
    is_separate = node.within_group and (len(node.args) != 1 or node.is_variadic)
    if is_separate:
        args = _visit_separately(environment, node.args)
    else:
        args = _visit_all(environment, node.args, state)
    return dataclasses.replace(
        node,
        direct_args=direct,
        args=args,
        order_by=_sort_keys(environment, node.order_by),
        filter=_optional(environment, node.filter),
    )


def _window_function(
    environment: Environment, node: nodes.WindowFunc, state: _State
) -> nodes.WindowFunc:
    return dataclasses.replace(
        node,
        args=_visit_all(environment, node.args, state),
        partition_by=_visit_separately(environment, node.partition_by),
        order_by=_sort_keys(environment, node.order_by),
        filter=_optional(environment, node.filter),
    )


def window_collations(environment: Environment, clause: nodes.WindowClause) -> nodes.WindowClause:
    """Return an entry of WINDOW with the collations of its parts assigned."""
    return dataclasses.replace(
        clause,
        partition_by=_visit_separately(environment, clause.partition_by),
        order_by=_sort_keys(environment, clause.order_by),
    )


def _sort_keys(
    environment: Environment, keys: tuple[nodes.SortKey, ...]
) -> tuple[nodes.SortKey, ...]:
    return tuple(dataclasses.replace(key, expr=_visit(environment, key.expr)[0]) for key in keys)


def _optional(environment: Environment, expr: nodes.Expr | None) -> nodes.Expr | None:
    return None if expr is None else assign_collations(environment, expr)
