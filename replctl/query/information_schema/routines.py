"""information_schema: user-defined functions and their parameters, without built-in functions."""

from __future__ import annotations

from collections.abc import Iterator

from replctl.catalog.pg_proc import UserFunction, list_functions
from replctl.catalog.pg_type import type_schema_oid
from replctl.functions.function_context import FunctionContext
from replctl.query.information_schema.visibility import Row, yes_or_no
from replctl.types.function_kind import Volatility


def _visible(context: FunctionContext) -> list[UserFunction]:
    """Return the functions that the current role owns or may call."""
    privileges = context.environment.privileges
    return [
        function
        for function in list_functions(context.catalog)
        if privileges.acts_for(function.owner) or privileges.has_on_function(function.oid)
    ]


def _routines(context: FunctionContext) -> Iterator[Row]:
    privileges = context.environment.privileges
    for function in _visible(context):
        is_sql = function.language == "sql"
        yield {
            **routine_place(context, function), "routine_type": "FUNCTION",
            **_type(context, function.result, "type_udt"), "dtd_identifier": "0",
            "routine_body": "SQL" if is_sql else "EXTERNAL",
            "routine_definition": function.body if privileges.acts_for(function.owner) else None,
            "external_language": function.language.upper(), "parameter_style": "GENERAL",
            "is_deterministic": yes_or_no(function.volatility == Volatility.IMMUTABLE),
            "sql_data_access": "MODIFIES", "is_null_call": yes_or_no(function.is_strict),
            "schema_level_routine": "YES", "max_dynamic_result_sets": 0,
            "security_type": "INVOKER", "as_locator": "NO", "is_udt_dependent": "NO",
        }  # fmt: skip


def _parameters(context: FunctionContext) -> Iterator[Row]:
    for function in _visible(context):
        pairs = zip(function.argument_names, function.arguments, strict=True)
        for place, (name, type_) in enumerate(pairs, start=1):
            yield {
                **specific_place(context, function), "ordinal_position": place,
                "parameter_mode": "IN", "is_result": "NO", "as_locator": "NO",
                "parameter_name": name or None, **_type(context, type_, "udt"),
                "dtd_identifier": str(place),
            }  # fmt: skip


def routine_place(context: FunctionContext, function: UserFunction) -> Row:
    """Return the columns that name a function."""
    return {
        **specific_place(context, function),
        "routine_catalog": context.environment.database,
        "routine_schema": context.environment.schema_name(function.schema_oid),
        "routine_name": function.name,
    }


def specific_place(context: FunctionContext, function: UserFunction) -> Row:
    """Return the columns that name a function uniquely."""
    return {
        "specific_catalog": context.environment.database,
        "specific_schema": context.environment.schema_name(function.schema_oid),
        "specific_name": f"{function.name}_{function.oid}",
    }


def _type(context: FunctionContext, name: str, prefix: str) -> Row:
    environment = context.environment
    type_ = environment.type(name)
    place = 11 if type_.is_builtin else type_schema_oid(context.catalog, name)
    shown = environment.format_type(name) if type_.is_builtin else "USER-DEFINED"
    return {
        "data_type": "ARRAY" if type_.is_array else shown,
        f"{prefix}_catalog": environment.database,
        f"{prefix}_schema": environment.schema_name(place),
        f"{prefix}_name": type_.name if type_.is_builtin else type_.sql_name,
    }


VIEWS = {"routines": _routines, "parameters": _parameters}
