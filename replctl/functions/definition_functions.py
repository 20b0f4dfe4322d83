"""Functions that print definitions, such as pg_get_constraintdef() (PostgreSQL's ruleutils.c), and
functions that tell whether the search path finds an object.

`FUNCTIONS` has them by their names in pg_proc.prosrc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from replctl.catalog import schema
from replctl.catalog.pg_class import get_relation, index_table_oid
from replctl.catalog.pg_collation import list_collations
from replctl.catalog.pg_domain import get_domain
from replctl.catalog.pg_proc import UserFunction, list_functions
from replctl.catalog.pg_type import type_name
from replctl.catalog.relation_kind import INDEX_KINDS
from replctl.catalog.ruleutils import (
    constraint_definition,
    domain_constraint_definition,
    index_definition,
    index_key_column,
    partition_key,
)
from replctl.expr.environment import user_collation
from replctl.types import builtin
from replctl.types.builtin import FIRST_USER_OID
from replctl.types.quote import quote_identifier, quote_qualified_identifier

if TYPE_CHECKING:
    from replctl.functions.function_context import FunctionContext


def _constraint(context: FunctionContext, oid: int, pretty: int = 0) -> str | None:
    table = schema.pg_constraint
    row = context.catalog.first(table, table.c.oid == oid)
    if row is not None and row.contypid:
        return _domain_constraint(context, row, is_pretty=bool(pretty))
    relation = None if row is None else get_relation(context.catalog, int(row.conrelid))
    if relation is None:
        return None
    constraint = next(item for item in relation.constraints if item.oid == oid)
    return constraint_definition(context.environment, relation, constraint, is_pretty=bool(pretty))


def _domain_constraint(context: FunctionContext, row: Any, *, is_pretty: bool) -> str:
    """Return a domain's constraint as SQL: `CHECK ((VALUE > 0)) NOT VALID`, `NOT NULL`."""
    domain = get_domain(context.catalog, type_name(int(row.contypid)))
    constraint = next(item for item in domain.constraints if item.oid == int(row.oid))
    return domain_constraint_definition(context.environment, constraint, is_pretty=is_pretty)


def _index(context: FunctionContext, oid: int, column: int = 0, pretty: int = 0) -> str | None:
    """Return the definition of an index or, if `column` is not 0, of one of its columns; None if
    there is no such index.
    """
    relation = get_relation(context.catalog, oid)
    if relation is None or relation.kind not in INDEX_KINDS:
        return None
    table = get_relation(context.catalog, index_table_oid(context.catalog, oid))
    assert table is not None
    index = next(item for item in table.indexes if item.oid == oid)
    if column:
        attnums = (*index.key, *index.including)
        if not 0 < column <= len(attnums):
            return ""
        if column <= len(index.key):
            return index_key_column(
                context.environment, table, index, column - 1, is_pretty=bool(pretty)
            )
        return quote_identifier(table.column_at(attnums[column - 1]).name)
    return index_definition(context.environment, table, index, is_pretty=bool(pretty))


def _partition_key(context: FunctionContext, oid: int) -> str | None:
    relation = get_relation(context.catalog, oid)
    if relation is None or relation.partition_key is None:
        return None
    return partition_key(context.environment, relation)


# -- functions


def _function(context: FunctionContext, oid: int) -> UserFunction | None:
    return next((f for f in list_functions(context.catalog) if f.oid == oid), None)


def _arguments(context: FunctionContext, oid: int) -> str | None:
    """Return the arguments of a function: `a integer, text`; None if there is no such function."""
    environment = context.environment
    user = _function(context, oid)
    if user is not None:
        pairs = list(zip(user.argument_names, user.arguments, strict=True))
    else:
        try:
            function = environment.function(oid)
        except KeyError:  # PostgreSQL returns NULL for an unknown OID
            return None
        pairs = list(zip(function.argument_names, function.argument_types, strict=True))
    shown = [(name, environment.format_type(type_)) for name, type_ in pairs]
    return ", ".join(f"{quote_identifier(name)} {t}" if name else t for name, t in shown)


def _result(context: FunctionContext, oid: int) -> str | None:
    try:
        function = context.environment.function(oid)
    except KeyError:  # PostgreSQL returns NULL for an unknown OID
        return None
    shown = context.environment.format_type(function.result)
    return f"SETOF {shown}" if function.returns_set else shown


def _definition(context: FunctionContext, oid: int) -> str | None:
    """Return CREATE OR REPLACE FUNCTION for a user-defined function, in the form of
    pg_get_functiondef(); None for other functions.
    """
    function = _function(context, oid)
    if function is None:
        return None
    place = context.environment.schema_name(function.schema_oid)
    lines = [
        f"CREATE OR REPLACE FUNCTION {quote_qualified_identifier(place, function.name)}"
        f"({_arguments(context, oid)})",
        f" RETURNS {_result(context, oid)}",
        f" LANGUAGE {quote_identifier(function.language)}",
        *([function.attributes] if function.attributes else []),
    ]
    tag = "$function"
    while tag in function.body:
        tag += "x"
    return "\n".join([*lines, f"AS {tag}${function.body}{tag}$", ""])


# -- visibility in the search path


def _type_is_visible(context: FunctionContext, oid: int) -> int | None:
    environment = context.environment
    type_ = environment.type_by_oid(oid)
    if type_ is None:
        return None
    name = type_.name if type_.is_builtin else type_.sql_name
    found = environment.find_type(None, name)
    return int(found is not None and found.oid == oid)


def _function_is_visible(context: FunctionContext, oid: int) -> int | None:
    environment = context.environment
    try:
        function = environment.function(oid)
    except KeyError:  # PostgreSQL returns NULL for an unknown OID
        return None
    found = sorted(environment.functions(None, function.name), key=lambda pair: pair[0])
    alike = [other for _place, other in found if other.argument_types == function.argument_types]
    return int(bool(alike) and alike[0].oid == oid)


def _operator_is_visible(context: FunctionContext, oid: int) -> int | None:
    environment = context.environment
    try:
        operator = environment.operator(oid)
    except KeyError:  # PostgreSQL returns NULL for an unknown OID
        return None
    operands = (operator.left, operator.right)
    found = sorted(environment.operators(None, operator.name), key=lambda pair: pair[0])
    alike = [other for _place, other in found if (other.left, other.right) == operands]
    return int(bool(alike) and alike[0].oid == oid)


def _collation_is_visible(context: FunctionContext, oid: int) -> int | None:
    names = {number: (name, name) for name, number in builtin.collations().items()}
    names |= {c.oid: (c.name, user_collation(c.oid)) for c in list_collations(context.catalog)}
    if oid not in names:
        return None
    name, found = names[oid]
    return int(context.environment.collation(None, name) == found)


def _built_in_is_visible(context: FunctionContext, oid: int) -> int:
    """Return 1 for a built-in object, else 0."""
    return int(oid < FIRST_USER_OID)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pg_get_constraintdef": _constraint,
    "pg_get_constraintdef_ext": _constraint,
    "pg_get_indexdef": _index,
    "pg_get_indexdef_ext": _index,
    "pg_get_partkeydef": _partition_key,
    "pg_get_function_arguments": _arguments,
    "pg_get_function_identity_arguments": _arguments,
    "pg_get_function_result": _result,
    "pg_get_functiondef": _definition,
    "pg_type_is_visible": _type_is_visible,
    "pg_function_is_visible": _function_is_visible,
    "pg_operator_is_visible": _operator_is_visible,
    "pg_collation_is_visible": _collation_is_visible,
    "pg_opclass_is_visible": _built_in_is_visible,
}
