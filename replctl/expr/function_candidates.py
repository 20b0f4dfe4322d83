"""Find the function of a call by its name and the number and types of its arguments, including
variadic, defaulted and named arguments: PostgreSQL's FuncnameGetCandidates() in namespace.c,
func_get_detail() in parse_func.c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from replctl.expr import nodes
from replctl.expr.candidates import best_candidate, callable_candidates
from replctl.expr.cast_path import CastContext, CastPaths
from replctl.expr.type_names import check_schema, split_name
from replctl.record import dataclass
from replctl.types.builtin import Function
from replctl.types.type_kind import TypeCategory, TypeKind

if TYPE_CHECKING:
    from replctl.parser import ast

_NOT_A_CALL = frozenset({"function", "array"})


@dataclass(frozen=True, slots=True)
class Call:
    """A call before its function is known.

    Args:
        name: the name as written, possibly qualified.
        types: the types of the arguments, in order.
        names: the names of the last arguments, if they are named.
        expand_variadic: single arguments may form the array of a variadic function.
        literal: the only argument is a literal of unknown type.
        may_cast: if the name is that of a type, the call may be a cast.
    """

    name: tuple[str, ...]
    types: tuple[str, ...]
    names: tuple[str, ...] = ()
    expand_variadic: bool = True
    literal: bool = False
    may_cast: bool = True


@dataclass(frozen=True, slots=True)
class FoundFunction:
    """The function of a call.

    Args:
        args: the declared types in the order of the call's arguments.  The type of a variadic
            parameter is repeated for each of its arguments.
        variadic_count: the number of the call's arguments for a VARIADIC parameter; 0 without one.
        default_types: the declared types of the omitted parameters.
    """

    function: Function
    args: tuple[str, ...]
    variadic_count: int = 0
    default_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoFunction:
    """The reason why no function was found; `cast_to` is the type if the call is a cast."""

    reason: Literal["none", "ambiguous", "cast"]
    cast_to: str = ""


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """A call with its function, and with its arguments cast to their declared types.

    Args:
        raw: the call as written, with its clauses.
        result: the type of the call's value.
        condition: the analysed FILTER clause.
    """

    raw: ast.FuncCall
    function: Function
    result: str
    args: tuple[nodes.Expr, ...]
    is_variadic: bool = False
    condition: nodes.Expr | None = None

    @property
    def name(self) -> str:
        """Return the function's name as written."""
        return ".".join(self.raw.name)


@dataclass(frozen=True, slots=True)
class _Candidate:
    function: Function | None  # None: several equally good functions
    args: tuple[str, ...]
    place: int
    variadic_count: int = 0
    default_types: tuple[str, ...] = ()
    positions: tuple[int, ...] = ()  # the index of each argument's parameter


def find_function(paths: CastPaths, call: Call) -> FoundFunction | NoFunction:
    """Return the function of `call`.

    Raises:
        InvalidSchemaName, FeatureNotSupported, SqlSyntaxError: the qualified name is wrong.
    """
    candidates = _candidates(paths, call)
    best = next((item for item in candidates if item.args == call.types), None)
    if best is None:
        type_ = _cast_target(paths, call)
        if type_ is not None:
            return NoFunction("cast", type_)
        matching = callable_candidates(paths, call.types, candidates)
        if not matching:
            return NoFunction("none")
        if len(matching) == 1:
            best = matching[0]
        else:
            best = best_candidate(paths, call.types, matching)
    if best is None or best.function is None:
        return NoFunction("ambiguous")
    last = len(call.types) - 1
    if call.names and not call.expand_variadic and best.positions[last] != last:
        return NoFunction("none")
    return FoundFunction(best.function, best.args, best.variadic_count, best.default_types)


def _cast_target(paths: CastPaths, call: Call) -> str | None:
    """Return the target type if a call such as `text(v)` is a cast without a function.

    Such a cast is between binary-compatible types or through text.  Cast functions have the name of
    their type, so they are found as functions.
    """
    if not call.may_cast or len(call.types) != 1 or call.names:
        return None
    type_ = paths.environment.find_type(*split_name(paths.environment, call.name))
    if type_ is None or type_.kind == TypeKind.COMPOSITE:
        return None
    if call.literal:
        return type_.name
    source = call.types[0]
    path = paths.path(type_.name, source, CastContext.EXPLICIT)
    if path is None or path.kind in _NOT_A_CALL:
        return None
    if path.kind == "io" and paths.types.is_row(source) and type_.category == TypeCategory.STRING:
        return None
    return type_.name


def _candidates(paths: CastPaths, call: Call) -> list[_Candidate]:
    """Return the functions that fit a call by name and number of arguments.

    Of two functions with the same arguments, the one in the earlier schema wins.  In one schema,
    the one that is not variadic wins.  If neither rule decides, the call is ambiguous.
    """
    schema, name = split_name(paths.environment, call.name)
    check_schema(paths.environment, schema)
    found: dict[tuple[str, ...], _Candidate] = {}
    for place, function in paths.environment.functions(schema, name):
        candidate = _candidate(function, place, call)
        if candidate is None:
            continue
        rival = found.get(candidate.args)
        found[candidate.args] = candidate if rival is None else _preferred(rival, candidate)
    return list(found.values())


def _candidate(function: Function, place: int, call: Call) -> _Candidate | None:
    declared = function.argument_types
    count = len(call.types)
    if call.names:
        return _named_candidate(function, place, call)
    if len(declared) > count:
        if count + len(function.defaults) < len(declared):
            return None
        return _Candidate(function, declared[:count], place, default_types=declared[count:])
    if function.variadic is not None and call.expand_variadic:
        extra = count - len(declared) + 1
        args = (*declared[:-1], *(function.variadic,) * extra)
        return _Candidate(function, args, place, variadic_count=extra)
    return _Candidate(function, declared, place) if len(declared) == count else None


def _named_candidate(function: Function, place: int, call: Call) -> _Candidate | None:
    """Return a function as a candidate for named arguments (MatchNamedCall); None if it does not
    fit.
    """
    declared = function.argument_types
    count = len(call.types)
    if function.variadic is not None and call.expand_variadic:
        return None
    if not count <= len(declared) <= count + len(function.defaults):
        return None
    positional = count - len(call.names)
    positions = list(range(positional))
    for name in call.names:
        if name not in function.argument_names:
            return None
        position = function.argument_names.index(name)
        if position in positions:
            return None
        positions.append(position)
    left_out = [i for i in range(len(declared)) if i not in positions]
    if any(i < len(declared) - len(function.defaults) for i in left_out):
        return None
    return _Candidate(
        function,
        tuple(declared[i] for i in positions),
        place,
        default_types=tuple(declared[i] for i in left_out),
        positions=tuple(positions),
    )


def _preferred(old: _Candidate, new: _Candidate) -> _Candidate:
    if old.place != new.place:
        return old if old.place < new.place else new
    if bool(old.variadic_count) != bool(new.variadic_count):
        return new if old.variadic_count else old
    return _Candidate(None, old.args, old.place)
