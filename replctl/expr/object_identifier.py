"""Values of regclass, regtype, regproc and similar types: OIDs that are read and shown as names
(PostgreSQL's regproc.c).

A value is stored as the text of its OID, so that it survives renaming.  The catalog has no text
search objects; their values are names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from replctl.does_not_exist import no_relation, no_schema
from replctl.errors import (
    AmbiguousFunction,
    FeatureNotSupported,
    InvalidName,
    InvalidTextRepresentation,
    PostgresError,
    SqlSyntaxError,
    UndefinedFunction,
    UndefinedObject,
    UndefinedParameter,
)
from replctl.expr import type_names
from replctl.expr.environment import Environment, is_user_collation
from replctl.types import builtin, text
from replctl.types.builtin import Function, Operator
from replctl.types.guc_check import TEXT_SEARCH_CONFIGURATIONS
from replctl.types.quote import (
    quote_identifier,
    quote_qualified_identifier,
    split_qualified_name,
)

TEXT_SEARCH_DICTIONARIES = frozenset(
    name if name == "simple" else f"{name}_stem" for name in TEXT_SEARCH_CONFIGURATIONS
)

_NO_OBJECT = "-"
_OPERATORS = ("regoper", "regoperator")  # operators can have the name `-`


def relation_of_name(environment: Environment, name: str) -> int:
    """Return the OID of a relation, like the cast of text to regclass, but refuse numbers.

    Raises:
        PostgresError: there is no relation of that name, or no such schema.
    """
    schema_name, _name = _qualified(environment, name)
    if schema_name is not None and environment.schema_oid(schema_name) is None:
        raise no_schema(schema_name)
    return int(_READERS["regclass"](environment, name))


def read(environment: Environment, type_name: str, value: str) -> str:
    """Convert a name to a stored value, like the type's input function: regtype `int` is `23`.

    Raises:
        PostgresError: there is no such object, or there are several.
    """
    if value == _NO_OBJECT and type_name not in _OPERATORS:
        return "0"
    if re.fullmatch("[0-9]+", value, re.ASCII):
        return text.canonical("oid", value)
    return str(_READERS[type_name](environment, value))


def name_of(environment: Environment, type_name: str, value: str) -> str:
    """Convert a stored value to a name, like the type's output function: regtype `23` is
    `integer`.  Return an OID without an object unchanged.
    """
    if value == "0":
        return value if type_name in _OPERATORS else _NO_OBJECT
    if not (value.isascii() and value.isdecimal()):
        return quote_identifier(value)
    shown = _NAMERS[type_name](environment, int(value)) if type_name in _NAMERS else None
    return value if shown is None else shown


# -- input


def _read_class(environment: Environment, value: str) -> int:
    schema, name = _qualified(environment, value, what="relation")
    oid = environment.relation_oid(schema, name)
    if oid is None:
        raise no_relation(_dotted(schema, name))
    return oid


def _read_type(environment: Environment, value: str) -> int:
    return environment.type(_internal_type(environment, value)).oid


def _read_proc(environment: Environment, value: str) -> int:
    candidates = _visible(environment.functions(*_qualified(environment, value)))
    if not candidates:
        raise UndefinedFunction(f'function "{value}" does not exist')
    if len(candidates) > 1:
        raise AmbiguousFunction(f'more than one function named "{value}"')
    return candidates[0].oid


def _read_procedure(environment: Environment, value: str) -> int:
    name, arguments = _name_and_arguments(environment, value)
    for function in _visible(environment.functions(*_qualified(environment, name))):
        if list(function.argument_types) == arguments:
            return function.oid
    raise UndefinedFunction(f'function "{value}" does not exist')


def _read_oper(environment: Environment, value: str) -> int:
    candidates = _visible_operators(environment.operators(*_qualified(environment, value)))
    if not candidates:
        raise UndefinedFunction(f"operator does not exist: {value}")
    if len(candidates) > 1:
        raise AmbiguousFunction(f"more than one operator named {value}")
    return candidates[0].oid


def _read_operator(environment: Environment, value: str) -> int:
    name, arguments = _name_and_arguments(environment, value, allow_none=True)
    if len(arguments) == 1:
        raise UndefinedParameter(
            "missing argument", hint="Use NONE to denote the missing argument of a unary operator."
        )
    if len(arguments) != 2:
        raise FeatureNotSupported(
            "too many arguments", hint="Provide two argument types for operator."
        )
    for operator in _visible_operators(environment.operators(*_qualified(environment, name))):
        if [operator.left, operator.right] == arguments:
            return operator.oid
    raise UndefinedFunction(f"operator does not exist: {value}")


def _read_role(environment: Environment, value: str) -> int:
    name = _only_name(value)
    oid = environment.role_oid(name)
    if oid is None:
        raise UndefinedObject(f'role "{name}" does not exist')
    return oid


def _read_namespace(environment: Environment, value: str) -> int:
    name = _only_name(value)
    oid = environment.schema_oid(name)
    if oid is None:
        raise no_schema(name)
    return oid


def _read_collation(environment: Environment, value: str) -> int:
    schema, name = _qualified(environment, value)
    collation = environment.collation(schema, name)
    if collation is None:
        raise UndefinedObject(
            f'collation "{_dotted(schema, name)}" for encoding "UTF8" does not exist'
        )
    if is_user_collation(collation):
        raise FeatureNotSupported("collations that users made are not supported here")
    return builtin.collations()[collation]


def _read_configuration(environment: Environment, value: str) -> str:
    schema, name = _qualified(environment, value)
    if schema not in (None, "pg_catalog") or name not in TEXT_SEARCH_CONFIGURATIONS:
        raise UndefinedObject(f'text search configuration "{_dotted(schema, name)}" does not exist')
    return name


def _read_dictionary(environment: Environment, value: str) -> str:
    schema, name = _qualified(environment, value)
    if schema not in (None, "pg_catalog") or name not in TEXT_SEARCH_DICTIONARIES:
        raise UndefinedObject(f'text search dictionary "{_dotted(schema, name)}" does not exist')
    return name


def _dotted(schema: str | None, name: str) -> str:
    return name if schema is None else f"{schema}.{name}"


def _only_name(value: str) -> str:
    parts = split_qualified_name(value)
    if len(parts) != 1:
        raise InvalidName("invalid name syntax")
    return parts[0]


def _qualified(
    environment: Environment, value: str, what: str = "qualified"
) -> tuple[str | None, str]:
    parts = split_qualified_name(value)
    match parts:
        case [name]:
            return None, name
        case [schema, name]:
            return schema, name
        case [catalog, schema, name]:
            if catalog != environment.database:
                shown = f'"{".".join(parts)}"' if what == "relation" else ".".join(parts)
                raise FeatureNotSupported(f"cross-database references are not implemented: {shown}")
            return schema, name
    raise SqlSyntaxError(f"improper {what} name (too many dotted names): {'.'.join(parts)}")


def _name_and_arguments(
    environment: Environment, value: str, *, allow_none: bool = False
) -> tuple[str, list[str | None]]:
    """Split a name with arguments: `f(int, text)` becomes (f, [int4, text]); NONE becomes None."""
    outside = re.sub('"[^"]*"', lambda match: "x" * len(match[0]), value)
    start = outside.find("(")
    if start < 0:
        raise InvalidTextRepresentation("expected a left parenthesis")
    if not value.rstrip().endswith(")"):
        raise InvalidTextRepresentation("expected a right parenthesis")
    split_qualified_name(value[:start])
    inner = value[start + 1 : value.rindex(")")]
    if not inner.strip():
        return value[:start], []
    return value[:start], [
        None
        if allow_none and item.strip().lower() == "none"
        else _internal_type(environment, item.strip())
        for item in re.split(r",(?![^()]*\))", inner)
    ]


def _internal_type(environment: Environment, value: str) -> str:
    """Return the internal name of a type, written as in a cast (parseTypeString)."""
    from replctl.parser import ast  # it loads lark, which printing does not need
    from replctl.parser.parse import parse_expression

    if not value.strip():
        raise SqlSyntaxError(f'invalid type name "{value}"')
    try:
        raw = parse_expression(f"CAST(NULL AS {value}\n)")  # a comment may be at the end
        if not isinstance(raw, ast.TypeCast):
            raise SqlSyntaxError(f'invalid type name "{value}"')
        return type_names.type_of(environment, raw.type_name)[0].name
    except PostgresError as error:
        error.position = -1
        raise


def _visible(found: Sequence[tuple[int, Function]]) -> list[Function]:
    """Return the functions, without those that an earlier schema of the search path hides."""
    seen: dict[tuple[str, ...], Function] = {}
    for _, function in sorted(found, key=lambda item: item[0]):
        seen.setdefault(function.argument_types, function)
    return list(seen.values())


def _visible_operators(found: Sequence[tuple[int, Operator]]) -> list[Operator]:
    seen: dict[tuple[str | None, str], Operator] = {}
    for _, operator in sorted(found, key=lambda item: item[0]):
        seen.setdefault((operator.left, operator.right), operator)
    return list(seen.values())


# -- output


def _name_type(environment: Environment, oid: int) -> str | None:
    type_ = environment.type_by_oid(oid)
    return None if type_ is None else environment.format_type(type_.name)


def _name_proc(environment: Environment, oid: int) -> str | None:
    function = _function(environment, oid)
    if function is None:
        return None
    candidates = _visible(environment.functions(None, function.name))
    is_unique = [candidate.oid for candidate in candidates] == [oid]
    schema = None if is_unique else environment.function(oid).schema
    return quote_qualified_identifier(schema, function.name)


def _name_procedure(environment: Environment, oid: int) -> str | None:
    function = _function(environment, oid)
    if function is None:
        return None
    candidates = _visible(environment.functions(None, function.name))
    is_visible = any(candidate.oid == oid for candidate in candidates)
    schema = None if is_visible else environment.function(oid).schema
    arguments = ",".join(map(environment.format_type, function.argument_types))
    return f"{quote_qualified_identifier(schema, function.name)}({arguments})"


def _name_oper(environment: Environment, oid: int) -> str | None:
    operator = _operator(environment, oid)
    if operator is None:
        return None
    candidates = _visible_operators(environment.operators(None, operator.name))
    if [candidate.oid for candidate in candidates] == [oid]:
        return operator.name
    return f"{quote_identifier(environment.operator(oid).schema)}.{operator.name}"


def _name_operator(environment: Environment, oid: int) -> str | None:
    operator = _operator(environment, oid)
    if operator is None:
        return None
    candidates = _visible_operators(environment.operators(None, operator.name))
    is_visible = any(candidate.oid == oid for candidate in candidates)
    prefix = "" if is_visible else f"{quote_identifier(environment.operator(oid).schema)}."
    left = "NONE" if operator.left is None else environment.format_type(operator.left)
    return f"{prefix}{operator.name}({left},{environment.format_type(operator.right)})"


def _name_class(environment: Environment, oid: int) -> str | None:
    return environment.relation_name(oid)


def _name_role(environment: Environment, oid: int) -> str | None:
    name = environment.role_name(oid)
    return None if name is None else quote_identifier(name)


def _name_namespace(environment: Environment, oid: int) -> str | None:
    name = environment.schema_name(oid)
    return None if name is None else quote_identifier(name)


def _name_collation(environment: Environment, oid: int) -> str | None:
    names = [name for name, found in builtin.collations().items() if found == oid]
    return quote_identifier(names[0]) if names else None


def _function(environment: Environment, oid: int) -> Function | None:
    try:
        return environment.function(oid)
    except KeyError:  # the object was dropped, so its OID is shown
        return None


def _operator(environment: Environment, oid: int) -> Operator | None:
    try:
        return environment.operator(oid)
    except KeyError:  # the object was dropped, so its OID is shown
        return None


_READERS: dict[str, Callable[[Environment, str], int | str]] = {
    "regclass": _read_class,
    "regtype": _read_type,
    "regproc": _read_proc,
    "regprocedure": _read_procedure,
    "regoper": _read_oper,
    "regoperator": _read_operator,
    "regrole": _read_role,
    "regnamespace": _read_namespace,
    "regcollation": _read_collation,
    "regconfig": _read_configuration,
    "regdictionary": _read_dictionary,
}
_NAMERS: dict[str, Callable[[Environment, int], str | None]] = {
    "regclass": _name_class,
    "regtype": _name_type,
    "regproc": _name_proc,
    "regprocedure": _name_procedure,
    "regoper": _name_oper,
    "regoperator": _name_operator,
    "regrole": _name_role,
    "regnamespace": _name_namespace,
    "regcollation": _name_collation,
}
TYPES = frozenset(_READERS)
#: The types whose stored values are names, because their objects have no fixed OIDs.
NAMED = frozenset({"regconfig", "regdictionary"})
NUMBERED = TYPES - NAMED
