"""Find operators, and build the expressions that use them (PostgreSQL's parse_oper.c)."""

from __future__ import annotations

from collections.abc import Sequence

from replctl.errors import (
    AmbiguousFunction,
    FeatureNotSupported,
    PostgresError,
    SqlSyntaxError,
    UndefinedFunction,
    UndefinedObject,
    WrongObjectType,
)
from replctl.expr import nodes
from replctl.expr.candidates import best_candidate, callable_candidates
from replctl.expr.cast_path import UNKNOWN, CastPaths
from replctl.expr.coerce import Coercion
from replctl.expr.polymorphic import resolve
from replctl.expr.type_names import check_schema, split_name
from replctl.record import dataclass
from replctl.types.builtin import FIRST_USER_OID, POLYMORPHIC, Operator, operator_by_oid


@dataclass(frozen=True, slots=True)
class _Candidate:
    operator: Operator
    args: tuple[str, ...]


def find_operator(
    paths: CastPaths, name: tuple[str, ...], left: str | None, right: str
) -> Operator:
    """Return the operator of `left name right`; `left` is None for a prefix operator.

    Raises:
        UndefinedFunction: no operator takes such arguments.
        AmbiguousFunction: several operators take them, and none is the best.
        InvalidSchemaName, FeatureNotSupported, SqlSyntaxError: the qualified name is wrong.
    """
    schema, symbol = split_name(paths.environment, name)
    check_schema(paths.environment, schema)
    found = paths.environment.operators(schema, symbol)
    exact = _exact(paths, found, left, right)
    if exact is not None:
        return exact
    given = (right,) if left is None else (left, right)
    candidates = _visible(found, is_prefix=left is None)
    matching = callable_candidates(paths, given, candidates)
    if len(matching) == 1:
        return matching[0].operator
    best = best_candidate(paths, given, matching) if matching else None
    if best is None:
        raise _no_operator(paths, name, left, right, is_ambiguous=bool(matching))
    return best.operator


def make_operator(
    coercion: Coercion,
    name: tuple[str, ...],
    left: nodes.Expr | None,
    right: nodes.Expr,
    pos: int,
) -> nodes.OpExpr:
    """Return `left name right`, with arguments cast as the operator requires (make_op).

    Raises:
        PostgresError: see `find_operator`; or the polymorphic arguments do not fit together.
    """
    args = (right,) if left is None else (left, right)
    given = tuple(arg.type for arg in args)
    operator = _located(coercion, name, None if left is None else left.type, right.type, pos)
    declared = (operator.right,) if operator.left is None else (operator.left, operator.right)
    types, result = resolve(coercion, given, declared, operator.result)
    return nodes.OpExpr(
        operator.oid,
        operator.name,
        operator.function,
        result,
        coercion.arguments(args, types),
        pos=pos,
    )


def make_scalar_array_operator(
    coercion: Coercion,
    name: tuple[str, ...],
    use_or: bool,
    left: nodes.Expr,
    right: nodes.Expr,
    pos: int,
) -> nodes.ScalarArrayOpExpr:
    """Return `left name ANY (right)`, or ALL (make_scalar_array_op).

    Raises:
        WrongObjectType: `right` is not an array, or the operator does not return a boolean.
        FeatureNotSupported: the operator has a function of users.
        PostgresError: see `make_operator`.
    """
    array_type = right.type
    element: str | None = UNKNOWN
    if array_type != UNKNOWN:
        element = coercion.types.base_element(array_type)
        if element is None:
            raise WrongObjectType("op ANY/ALL (array) requires array on right side", position=pos)
    assert element is not None
    operator = _located(coercion, name, left.type, element, pos)
    assert operator.left is not None
    if operator.oid >= FIRST_USER_OID and not _is_built_in(operator.function_oid):
        check_built_in(operator.oid, "ANY, ALL, and IN with several values", pos)
    types, result = resolve(
        coercion, (left.type, element), (operator.left, operator.right), operator.result
    )
    if result != "bool":
        raise WrongObjectType("op ANY/ALL (array) requires operator to yield boolean", position=pos)
    wanted = array_type
    if types[1] not in POLYMORPHIC:
        found = coercion.types.array(types[1])
        if found is None:
            shown = coercion.types.format(types[1])
            raise UndefinedObject(f"could not find array type for data type {shown}", position=pos)
        wanted = found
    first, second = coercion.arguments((left, right), (types[0], wanted))
    return nodes.ScalarArrayOpExpr(
        operator.oid, operator.name, operator.function, use_or, (first, second), pos=pos
    )


def check_built_in(oid: int, what: str, pos: int) -> None:
    """Check that the system has an operator.  Engines compute some expressions only with these.

    Args:
        what: the expressions, in the plural.

    Raises:
        FeatureNotSupported: a user made the operator.
    """
    if oid >= FIRST_USER_OID:
        raise FeatureNotSupported(f"{what} are not supported with operators of users", position=pos)


def _is_built_in(function: int) -> bool:
    """Return whether a built-in operator has this function."""
    return any(item.function_oid == function for item in operator_by_oid().values())


def _located(
    paths: CastPaths, name: tuple[str, ...], left: str | None, right: str, pos: int
) -> Operator:
    try:
        return find_operator(paths, name, left, right)
    except PostgresError as error:
        # PostgreSQL gives no position for a name with too many parts or of another database.
        if not isinstance(error, SqlSyntaxError | FeatureNotSupported):
            error.position = pos
        raise


def _exact(
    paths: CastPaths, found: Sequence[tuple[int, Operator]], left: str | None, right: str
) -> Operator | None:
    """Return the operator for exactly these types; an unknown type counts as the other one."""
    tries = [(left, right)]
    if left is not None and UNKNOWN in (left, right):
        known = right if left == UNKNOWN else left
        tries = [(known, known), (paths.types.base(known),) * 2]
    for types in tries:
        same = [item for item in found if (item[1].left, item[1].right) == types]
        if same:
            return min(same, key=_place)[1]
    return None


def _visible(found: Sequence[tuple[int, Operator]], *, is_prefix: bool) -> list[_Candidate]:
    """Return the operators, without those that an earlier schema of the search path hides."""
    visible: dict[tuple[str, ...], _Candidate] = {}
    for _, operator in sorted(found, key=_place):
        if (operator.left is None) == is_prefix:
            args = (operator.right,) if operator.left is None else (operator.left, operator.right)
            visible.setdefault(args, _Candidate(operator, args))
    return list(visible.values())


def _place(item: tuple[int, Operator]) -> int:
    return item[0]


def _no_operator(
    paths: CastPaths,
    name: tuple[str, ...],
    left: str | None,
    right: str,
    *,
    is_ambiguous: bool,
) -> PostgresError:
    types = paths.types
    prefix = "" if left is None else f"{types.format(left)} "
    signature = f"{prefix}{'.'.join(name)} {types.format(right)}"
    if is_ambiguous:
        return AmbiguousFunction(
            f"operator is not unique: {signature}",
            hint="Could not choose a best candidate operator. "
            "You might need to add explicit type casts.",
        )
    if left is None:
        hint = (
            "No operator matches the given name and argument type. "
            "You might need to add an explicit type cast."
        )
    else:
        hint = (
            "No operator matches the given name and argument types. "
            "You might need to add explicit type casts."
        )
    return UndefinedFunction(f"operator does not exist: {signature}", hint=hint)
