"""Find the Python functions for PostgreSQL's functions, by their names in pg_proc.prosrc, the types
of their arguments and the collation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

from replctl.adt import (
    arrayfuncs,
    case_mapping,
    comparison,
    datetime_arithmetic,
    dbsize,
    degrees,
    extract,
    float_,
    in_range,
    int_,
    interval_arithmetic,
    jsonb,
    jsonfuncs,
    jsonpath_exec,
    like,
    network,
    numeric_arithmetic,
    pg_lsn,
    rangetypes,
    regexp,
    send,
    sql_text,
    timetz,
    to_ascii,
    uuid,
    varbit,
    varlena,
)
from replctl.adt.format_ import format_text
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.types import builtin
from replctl.types import interval as type_interval
from replctl.types import text as type_text
from replctl.types import timestamp as type_timestamp
from replctl.types.builtin import Function
from replctl.types.hash import hash_extended, hash_of
from replctl.types.quote import quote_literal
from replctl.types.type_modifier import coercion_typmod

Callee: TypeAlias = Callable[..., Any]

PLAIN: dict[str, Callee] = {
    name: function
    for module in (
        int_,
        float_,
        degrees,
        numeric_arithmetic,
        pg_lsn,
        varlena,
        like,
        regexp,
        interval_arithmetic,
        datetime_arithmetic,
        timetz,
        extract,
        in_range,
        jsonb,
        jsonpath_exec,
        jsonfuncs,
        arrayfuncs,
        varbit,
        network,
        uuid,
        sql_text,
        dbsize,
        to_ascii,
        send,
    )
    for name, function in module.FUNCTIONS.items()
}
_COUNTING: dict[str, Callee] = {
    "pg_num_nulls": lambda *args: sum(arg is None for arg in args),
    "pg_num_nonnulls": lambda *args: sum(arg is not None for arg in args),
}
PLAIN |= _COUNTING
_COLLATED: dict[str, Callee] = {**varlena.COLLATED, **like.COLLATED, **regexp.COLLATED}

#: The functions that apply a type modifier, and their types.
_COERCIONS = {
    "varchar": "varchar",
    "bpchar": "bpchar",
    "numeric": "numeric",
    "bit": "bit",
    "varbit": "varbit",
    "timestamp_scale": "timestamp",
    "timestamptz_scale": "timestamptz",
    "time_scale": "time",
    "timetz_scale": "timetz",
    "interval_scale": "interval",
}

#: Values that a type modifier never changes.
_INFINITIES: dict[str, tuple[object, ...]] = {
    "timestamp": (type_timestamp.INFINITY, type_timestamp.MINUS_INFINITY),
    "timestamptz": (type_timestamp.INFINITY, type_timestamp.MINUS_INFINITY),
    "interval": (type_interval.INFINITY, type_interval.MINUS_INFINITY),
}

_HASH = re.compile(r"hash\w+|\w+_hash(_extended)?")

#: The bodies of quote_literal(anyelement) and quote_nullable(anyelement), which PostgreSQL writes
#: in SQL.
_QUOTE_LITERAL, _QUOTE_NULLABLE = (
    f"select pg_catalog.quote_{word}($1::pg_catalog.text)" for word in ("literal", "nullable")
)


def callee(function: Function, types: Sequence[str], collation: str | None) -> Callee:
    """Return the Python function for values of these types; the caller handles NULL arguments.

    Raises:
        FeatureNotSupported: the function is not implemented.
    """
    source, argument_types = function.source, tuple(types)
    name = comparison.operator_of_function(source, argument_types)
    if name is not None and len(types) == 2:
        return comparison.compare(name, *argument_types)
    for found in (
        PLAIN.get(f"{function.name}({','.join(function.argument_types)})"),
        PLAIN.get(source),
        _typed(source, argument_types, function.result),
        _index_support(function, argument_types, collation),
    ):
        if found is not None:
            return found
    if source in _COLLATED:
        collated = _COLLATED[source]
        if case_mapping.is_ascii_collation(collation):
            return lambda *args: collated(*args, ascii_only=True)
        return collated
    raise unsupported(function, types)


def arguments(function: Function, args: Sequence[nodes.Expr]) -> list[nodes.Expr]:
    """Return the arguments in the function's order, with defaults for omitted ones."""
    if len(args) == len(function.argument_types) and not any(
        isinstance(arg, nodes.NamedArgExpr) for arg in args
    ):
        return list(args)
    count, defaults = len(function.argument_types), function.defaults
    if len(args) >= count:
        given: list[nodes.Expr | None] = [*args]
    else:
        given = [*args, *[None] * (count - len(args))]
    named = {arg.name: arg.arg for arg in args if isinstance(arg, nodes.NamedArgExpr)}
    result: list[nodes.Expr] = []
    for i, item in enumerate(given):
        if item is not None and not isinstance(item, nodes.NamedArgExpr):
            result.append(item)
        elif i < count and function.argument_names[i] in named:
            result.append(named[function.argument_names[i]])
        else:
            result.append(_default(defaults[i - count], function.argument_types[i]))
    return result


def _default(text: str, type_name: str) -> nodes.Const:
    """Return a default such as `'NFC'::text`, `true`, `0` or `NULL::text` as a constant."""
    value = text.partition("::")[0].strip("'")
    if value == "NULL":
        return nodes.Const(type_name, None)
    return nodes.Const(type_name, type_text.canonical(type_name, value))


def unsupported(function: Function, types: Sequence[str]) -> FeatureNotSupported:
    """Return the error for a function that is not implemented."""
    shown = ", ".join(
        builtin.types()[name].sql_name if name in builtin.types() else name for name in types
    )
    return FeatureNotSupported(f"function {function.name}({shown}) is not supported")


def _typed(source: str, types: tuple[str, ...], result: str) -> Callee | None:
    if source in _COERCIONS:
        return _coercion(_COERCIONS[source])
    if source in arrayfuncs.KEYED:
        return arrayfuncs.KEYED[source](comparison.key_of(_element(types)))
    if source in arrayfuncs.PRINTING:
        return arrayfuncs.PRINTING[source](_element(types))
    if source in rangetypes.TYPED:
        kinds = [item for item in (*types, result) if item in rangetypes.ELEMENTS]
        return rangetypes.TYPED[source](comparison.range_type(kinds[0])) if kinds else None
    if source in _OF_TEXTS:
        return _of_texts(_OF_TEXTS[source], types)
    return None


def _index_support(
    function: Function, types: tuple[str, ...], collation: str | None
) -> Callee | None:
    """Return the support function of an index (bttextcmp, uuid_hash_extended); None for others."""
    source = function.source
    if ("cmp" in source or source == "gin_compare_jsonb") and len(types) == 2:
        return comparison.order(*types, collation)
    if _HASH.fullmatch(source):
        return hash_of(types[0]) if len(types) == 1 else hash_extended(types[0])
    return None


def _element(types: tuple[str, ...]) -> str:
    for item in types:
        known = builtin.types().get(item)
        if known is not None and known.is_array and known.element is not None:
            return known.element
    raise FeatureNotSupported("functions of arrays of unknown type are not supported")


def _coercion(type_name: str) -> Callee:
    infinities = _INFINITIES.get(type_name, ())

    def coerce(value: Any, typmod: int, explicit: bool = True) -> Any:
        if value in infinities:
            return value
        known = coercion_typmod(type_name, typmod)
        return type_text.coerce_typmod(type_name, value, known, explicit=explicit)

    return coerce


@cache
def shown_as_text(type_name: str) -> Callee:
    """Return the output function that concat() applies to a value."""
    return lambda value: type_text.render(type_name, value)


def _of_texts(function: Callee, types: tuple[str, ...]) -> Callee:
    """Return a function that converts its arguments to texts, and calls `function` with them.

    Args:
        types: the types of the arguments.
    """
    show = [shown_as_text(item) for item in types]

    def call(*args: Any) -> Any:
        pairs = zip(show, args, strict=True)
        return function(*[None if arg is None else shown(arg) for shown, arg in pairs])

    return call


def _concat(*texts: str | None) -> str:
    return "".join(text for text in texts if text is not None)


def _concat_ws(separator: str | None, *texts: str | None) -> str | None:
    if separator is None:
        return None
    return separator.join(text for text in texts if text is not None)


def _format(template: str | None, *texts: str | None) -> str | None:
    return None if template is None else format_text(template, *texts)


#: Functions whose arguments have any type, and are passed as texts, or as None for NULL.
_OF_TEXTS: dict[str, Callee] = {
    "text_concat": _concat,
    "text_concat_ws": _concat_ws,
    "text_format": _format,
    "text_format_nv": _format,
    _QUOTE_LITERAL: quote_literal,
    _QUOTE_NULLABLE: lambda text: "NULL" if text is None else quote_literal(text),
}
#: Functions that may be called with VARIADIC.
VARIADIC = frozenset(["text_concat", "text_concat_ws", "text_format", *_COUNTING])
#: Functions that convert arguments of any type to text.
TAKES_ANY = frozenset([*_OF_TEXTS, *arrayfuncs.PRINTING])
