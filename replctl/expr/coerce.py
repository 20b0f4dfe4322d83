"""Build the expressions of explicit and implicit casts (PostgreSQL's parse_coerce.c)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime

from replctl.errors import CannotCoerce, DatatypeMismatch, InternalError, PostgresError
from replctl.expr import nodes
from replctl.expr.cast_path import UNKNOWN, CastContext, CastPath, CastPaths
from replctl.expr.environment import Environment
from replctl.expr.error_location import expr_location
from replctl.expr.value_text import input_value
from replctl.record import dataclass
from replctl.types.builtin import POLYMORPHIC, Cast

#: The pseudo-types to which arguments are not cast.
_ANYTHING = frozenset(
    {"any", "anyelement", "anynonarray", "anycompatible", "anycompatiblenonarray"}
)


@dataclass(frozen=True, slots=True)
class Manner:
    """The context of a cast, the form in which it is printed, and its position."""

    context: CastContext
    form: nodes.CoercionForm
    pos: int = -1


IMPLICIT = Manner(CastContext.IMPLICIT, "implicit")
ASSIGNMENT = Manner(CastContext.ASSIGNMENT, "implicit")


class Coercion(CastPaths):
    """The possible casts in an environment, and the expressions of these casts.

    Args:
        now: the time of literals such as `now` and `today`; default: the current time.
    """

    def __init__(self, environment: Environment, now: datetime | None = None) -> None:
        super().__init__(environment)
        self._now = now

    # -- requirements of constructs

    def cast(self, expr: nodes.Expr, target: str, typmod: int, pos: int) -> nodes.Expr:
        """Return an explicit cast.

        Raises:
            CannotCoerce: there is no cast between the types.
            DataError: a literal is not valid for its new type.
        """
        manner = Manner(CastContext.EXPLICIT, "explicit", pos)
        result = self.to_target(expr, target, typmod, manner)
        if result is None:
            raise self._no_cast(expr, expr.type, target, pos)
        return result

    def to_specific(
        self, expr: nodes.Expr, target: str, construct: str, typmod: int = -1
    ) -> nodes.Expr:
        """Return an expression with the type `target` that `construct` requires, such as bool for
        AND.

        Raises:
            DatatypeMismatch: there is no cast, or the expression returns a set.
        """
        result: nodes.Expr | None = expr
        if expr.type != target:
            result = self.to_target(expr, target, typmod, ASSIGNMENT)
        if result is None:
            raise DatatypeMismatch(
                f"argument of {construct} must be type {self.types.format(target)}, "
                f"not type {self.types.format(expr.type)}",
                position=expr_location(expr),
            )
        if returns_set(result):
            raise DatatypeMismatch(
                f"argument of {construct} must not return a set", position=expr_location(result)
            )
        return result

    def to_common(self, expr: nodes.Expr, target: str, construct: str) -> nodes.Expr:
        """Return one of several expressions, cast to their common type (coerce_to_common_type).

        Raises:
            CannotCoerce: there is no implicit cast.
        """
        if expr.type == target:
            return expr
        if not self.can_coerce_implicitly(expr.type, target):
            raise CannotCoerce(
                f"{construct} could not convert type {self.types.format(expr.type)} "
                f"to {self.types.format(target)}",
                position=expr_location(expr),
            )
        return self.to_type(expr, target, -1, IMPLICIT)

    def arguments(
        self, args: Sequence[nodes.Expr], declared: Sequence[str]
    ) -> tuple[nodes.Expr, ...]:
        """Return the arguments of an operator or a function, cast to their declared types
        (make_fn_arguments).
        """
        result: list[nodes.Expr] = []
        for arg, target in zip(args, declared, strict=True):
            if isinstance(arg, nodes.NamedArgExpr) and arg.type != target:
                inner = self.to_type(arg.arg, target, -1, IMPLICIT)
                result.append(dataclasses.replace(arg, arg=inner, type=inner.type))
            else:
                result.append(self.to_type(arg, target, -1, IMPLICIT))
        return tuple(result)

    # -- casts

    def to_target(
        self, expr: nodes.Expr, target: str, typmod: int, manner: Manner
    ) -> nodes.Expr | None:
        """Return `expr` cast to `target` with a modifier; None if that is impossible
        (coerce_to_target_type).

        Raises:
            DataError: a literal is not valid for its new type.
        """
        if not self.can_coerce((expr.type,), (target,), manner.context):
            return None
        inner = expr
        while isinstance(inner, nodes.CollateExpr):
            inner = inner.arg
        result = self.to_type(inner, target, typmod, manner)
        if result is not inner and not isinstance(result, nodes.Const):
            # Change both type and length.  Only the outer cast is shown.
            result = self._to_typmod(result, target, typmod, manner, hides_inner=True)
        else:
            result = self._to_typmod(result, target, typmod, manner)
        if isinstance(expr, nodes.CollateExpr) and self.types.is_collatable(target):
            return nodes.CollateExpr(result, expr.collation, target, pos=expr.pos)
        return result

    def to_type(self, expr: nodes.Expr, target: str, typmod: int, manner: Manner) -> nodes.Expr:
        """Return `expr` cast to `target`; the caller has checked `can_coerce` (coerce_type).

        Args:
            typmod: used only for literals of intervals and for cast functions that take a modifier.
        """
        source = expr.type
        if source == target or target in _ANYTHING:
            return expr
        if target in POLYMORPHIC and source != UNKNOWN:
            base = self.types.base(source)
            if base == source:
                return expr
            return nodes.RelabelType(expr, base, form="implicit", pos=manner.pos)
        if isinstance(expr, nodes.Const) and source == UNKNOWN:
            return self._literal(expr, target, typmod, manner)
        if isinstance(expr, nodes.CollateExpr):
            inner = self.to_type(expr.arg, target, typmod, manner)
            if not self.types.is_collatable(target):
                return inner
            return nodes.CollateExpr(inner, expr.collation, target, pos=expr.pos)
        path = self.path(target, source, manner.context)
        if path is not None:
            return self._along(path, expr, target, typmod, manner)
        if source == "record" and self.types.is_complex(target):
            return self._record_to_complex(expr, target, manner)
        if target in ("record", "_record"):
            return expr
        raise InternalError(
            f"failed to find conversion function from {self.types.format(source)} "
            f"to {self.types.format(target)}"
        )

    def _literal(
        self, literal: nodes.Const, target: str, typmod: int, manner: Manner
    ) -> nodes.Expr:
        """Return a string constant converted by the type's input function.

        The caller adds a cast for the length, because input functions refuse values that a cast
        truncates.
        """
        base, base_typmod = self.types.base_and_typmod(target, typmod)
        input_typmod = base_typmod if base == "interval" else -1
        value = None if literal.value is None else self._input(literal, base, input_typmod)
        collation = self.types.collation(base)
        result = nodes.Const(base, value, input_typmod, collation, pos=literal.pos)
        if base == target:
            return result
        return self._to_domain(result, target, typmod, manner)

    def _input(self, literal: nodes.Const, type_: str, typmod: int) -> str:
        assert literal.value is not None
        try:
            return input_value(
                self.environment, self.types.get(type_), literal.value, typmod, self._now
            )
        except PostgresError as error:
            if error.position < 0:
                error.position = literal.pos
            raise

    def _along(
        self, path: CastPath, expr: nodes.Expr, target: str, typmod: int, manner: Manner
    ) -> nodes.Expr:
        base, base_typmod = self.types.base_and_typmod(target, typmod)
        if path.kind == "relabel":
            if base == target:
                return nodes.RelabelType(expr, target, form=manner.form, pos=manner.pos)
            return self._to_domain(expr, target, typmod, manner)
        result = self._conversion(path, expr, base, base_typmod, manner)
        if base == target:
            return result
        return self._to_domain(_hide_cast(result), target, typmod, manner)

    def _conversion(
        self, path: CastPath, expr: nodes.Expr, target: str, typmod: int, manner: Manner
    ) -> nodes.Expr:
        """Return the expression for a conversion (build_coercion_expression)."""
        match path.kind:
            case "function":
                assert path.cast is not None
                return _call(path.cast, expr, target, typmod, manner)
            case "array":
                return self._array_conversion(expr, target, typmod, manner)
            case _:
                return nodes.CoerceViaIO(expr, target, manner.form, pos=manner.pos)

    def _array_conversion(
        self, expr: nodes.Expr, target: str, typmod: int, manner: Manner
    ) -> nodes.ArrayCoerceExpr:
        source, source_typmod = self.types.base_and_typmod(expr.type, nodes.typmod(expr))
        from_, to = self.types.element(source), self.types.element(target)
        assert from_ is not None
        assert to is not None
        element = self.to_target(nodes.Param(0, from_, source_typmod), to, typmod, manner)
        assert element is not None
        return nodes.ArrayCoerceExpr(
            expr, element, target, nodes.typmod(element), manner.form, pos=manner.pos
        )

    def _to_typmod(
        self,
        expr: nodes.Expr,
        target: str,
        typmod: int,
        manner: Manner,
        *,
        hides_inner: bool = False,
    ) -> nodes.Expr:
        """Return `expr` with the modifier; it already has the type (coerce_type_typmod)."""
        if typmod == nodes.typmod(expr):
            return expr
        if hides_inner:
            expr = _hide_cast(expr)
        path = self.length_path(target) if typmod >= 0 else None
        if path is None:
            return _relabel(expr, target, typmod, manner)
        return self._conversion(path, expr, target, typmod, manner)

    def _to_domain(
        self, expr: nodes.Expr, domain: str, typmod: int, manner: Manner
    ) -> nodes.CoerceToDomain:
        """Return `expr`, which has the domain's base type, as a value of the domain
        (coerce_to_domain).
        """
        base, base_typmod = self.types.base_and_typmod(domain, typmod)
        hidden = dataclasses.replace(manner, form="implicit")
        inner = self._to_typmod(expr, base, base_typmod, hidden)
        return nodes.CoerceToDomain(inner, domain, form=manner.form, pos=manner.pos)

    def _record_to_complex(self, expr: nodes.Expr, target: str, manner: Manner) -> nodes.Expr:
        """Return ROW(...) cast to a composite type field by field (coerce_record_to_complex)."""
        columns = self.types.columns(target)
        assert columns is not None
        if not isinstance(expr, nodes.RowExpr):
            raise self._no_cast(expr, "record", target, manner.pos)
        args = []
        for number, column in enumerate(columns, 1):
            if number > len(expr.args):
                detail = "Input has too few columns."
                raise self._no_cast(expr, "record", target, manner.pos, detail)
            arg = expr.args[number - 1]
            inner_manner = dataclasses.replace(manner, form="implicit", pos=-1)
            field = self.to_target(arg, column.type, column.typmod, inner_manner)
            if field is None:
                detail = (
                    f"Cannot cast type {self.types.format(arg.type)} to "
                    f"{self.types.format(column.type)} in column {number}."
                )
                raise self._no_cast(arg, "record", target, manner.pos, detail)
            args.append(field)
        if len(expr.args) > len(columns):
            detail = "Input has too many columns."
            raise self._no_cast(expr, "record", target, manner.pos, detail)
        base = self.types.base(target)
        if base == target:
            return nodes.RowExpr(tuple(args), manner.form, base, pos=manner.pos)
        row = nodes.RowExpr(tuple(args), "implicit", base, pos=manner.pos)
        return self._to_domain(row, target, -1, manner)

    def _no_cast(
        self, expr: nodes.Expr, source: str, target: str, pos: int, detail: str | None = None
    ) -> CannotCoerce:
        """Return the error at the cast's position; at the expression if the cast is implicit."""
        return CannotCoerce(
            f"cannot cast type {self.types.format(source)} to {self.types.format(target)}",
            detail=detail,
            position=expr_location(expr) if pos < 0 else pos,
        )


def _call(cast: Cast, expr: nodes.Expr, target: str, typmod: int, manner: Manner) -> nodes.FuncExpr:
    """Return a call of a cast function.  Pass the modifier, and a flag for an explicit cast, if the
    function has parameters for them.
    """
    assert cast.function is not None
    is_explicit = "t" if manner.context == CastContext.EXPLICIT else "f"
    extra = (nodes.Const("int4", str(typmod)), nodes.Const("bool", is_explicit))
    args = (expr, *extra[: cast.argument_count - 1])
    return nodes.FuncExpr(
        cast.function_oid, cast.function, target, args, manner.form, pos=manner.pos
    )


def _relabel(expr: nodes.Expr, target: str, typmod: int, manner: Manner) -> nodes.Expr:
    """Return `expr` with another type or modifier and the same bits (applyRelabelType)."""
    inner = expr
    while isinstance(inner, nodes.RelabelType):
        inner = inner.arg
    if isinstance(inner, nodes.Const):
        return dataclasses.replace(inner, type=target, typmod=typmod)
    return nodes.RelabelType(inner, target, typmod, manner.form, pos=manner.pos)


def _hide_cast(expr: nodes.Expr) -> nodes.Expr:
    """Return a cast as one that is not printed (hide_coercion_node)."""
    match expr:
        case (
            nodes.FuncExpr()
            | nodes.RelabelType()
            | nodes.CoerceViaIO()
            | nodes.ArrayCoerceExpr()
            | nodes.RowExpr()
            | nodes.CoerceToDomain()
        ):
            return dataclasses.replace(expr, form="implicit")
        case _:
            return expr


def stripped_implicit(expr: nodes.Expr) -> nodes.Expr:
    """Return an expression without its outermost implicit casts (strip_implicit_coercions)."""
    while True:
        match expr:
            case nodes.FuncExpr(form="implicit", args=(arg, *_)):
                expr = arg
            case (
                nodes.RelabelType(form="implicit", arg=arg)
                | nodes.CoerceViaIO(form="implicit", arg=arg)
                | nodes.ArrayCoerceExpr(form="implicit", arg=arg)
                | nodes.CoerceToDomain(form="implicit", arg=arg)
            ):
                expr = arg
            case _:
                return expr


def returns_set(expr: nodes.Expr) -> bool:
    """Return whether any part of an expression returns a set (expression_returns_set)."""
    match expr:
        case nodes.FuncExpr(returns_set=True):
            return True
        case nodes.Aggref() | nodes.GroupingFunc() | nodes.WindowFunc():
            return False
        case _:
            return any(map(returns_set, nodes.children(expr)))
