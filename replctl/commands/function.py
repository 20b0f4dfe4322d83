"""CREATE FUNCTION and CREATE OPERATOR (functioncmds.c, operatorcmds.c).  replctl analyses the body
of a function only when it is called (query/inline_function.py, query/sql_function.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl.catalog.acl import Privilege
from replctl.catalog.aclchk import denied
from replctl.catalog.pg_proc import (
    DEFAULT_ROWS,
    UserFunction,
    UserOperator,
    insert_function,
    insert_operator,
    list_functions,
    list_operators,
    update_function,
)
from replctl.catalog.pg_type import get_type
from replctl.catalog.system_privilege import may_call_builtin
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.find_object import find_function, find_new_schema, owned_function
from replctl.commands.naming import creation_schema
from replctl.errors import (
    DuplicateFunction,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidFunctionDefinition,
    InvalidParameterValue,
    SqlSyntaxError,
    UndefinedFunction,
    UndefinedObject,
)
from replctl.expr.type_names import split_name, type_of
from replctl.parser import ast
from replctl.session import Session
from replctl.types.builtin import FIRST_USER_OID, Type
from replctl.types.floating import float4in
from replctl.types.function_kind import Parallel, Volatility
from replctl.types.guc import find_setting
from replctl.types.quote import quote_identifier

_LANGUAGES = ("sql", "plpgsql")
_PARALLEL = {item.name.lower(): item for item in Parallel}


def create_function(session: Session, statement: ast.CreateFunction) -> str:
    """Create a function.

    Raises:
        PostgresError: PostgreSQL refuses the declaration.
        FeatureNotSupported: replctl does not support the language, a kind of parameter or SECURITY
            DEFINER.
    """
    return carry_out(session, lambda ddl: _create_function(ddl, statement))


def alter_function(session: Session, statement: ast.AlterFunction) -> str:
    """Change attributes of a function.

    Raises:
        PostgresError: PostgreSQL refuses an attribute.
        FeatureNotSupported: the attribute is SECURITY DEFINER.
    """
    return carry_out(session, lambda ddl: _alter_function(ddl, statement))


def create_operator(session: Session, statement: ast.CreateOperator) -> str:
    """Create an operator.

    Raises:
        PostgresError: PostgreSQL refuses the declaration.
    """
    return carry_out(session, lambda ddl: _create_operator(ddl, statement))


def _create_function(ddl: Ddl, statement: ast.CreateFunction) -> str:
    schema_name, name = split_name(ddl.environment, statement.names)
    place = creation_schema(ddl.environment, schema_name, name)
    _check_given_once(statement.options)
    options = {option.name: option.value or "" for option in statement.options}
    language = _language(options)
    arguments = _arguments(ddl, statement.parameters)
    if statement.table_columns:
        raise FeatureNotSupported("RETURNS TABLE is not supported")
    if statement.returns is None:
        raise InvalidFunctionDefinition("function result type must be specified")
    result = _usable_type(ddl, statement.returns)
    if "as" not in options:
        raise InvalidFunctionDefinition("no function body specified")
    function = UserFunction(
        0,
        name,
        place.oid,
        ddl.session.role_oid,
        language,
        Volatility.VOLATILE,
        False,
        statement.returns.is_setof,
        result.name,
        arguments,
        tuple(parameter.name or "" for parameter in statement.parameters),
        options["as"],
        rows=DEFAULT_ROWS if statement.returns.is_setof else 0,
    )
    function = _with_attributes(ddl, function, statement.options)
    _enter(ddl, function, or_replace=statement.or_replace)
    return "CREATE FUNCTION"


def _alter_function(ddl: Ddl, statement: ast.AlterFunction) -> str:
    function = owned_function(ddl, statement.name, statement.arguments, statement.object_type)
    _check_given_once(statement.options)
    update_function(ddl.catalog, _with_attributes(ddl, function, statement.options))
    return f"ALTER {statement.object_type.upper()}"


def _check_given_once(options: Sequence[ast.DefElem]) -> None:
    """Check that no option contradicts or repeats another (errorConflictingDefElem)."""
    names = [option.name for option in options]
    for number, option in enumerate(options):
        if option.name in names[:number] and option.name != "reset":
            raise SqlSyntaxError("conflicting or redundant options", position=option.pos)


def _with_attributes(
    ddl: Ddl, function: UserFunction, options: Sequence[ast.DefElem]
) -> UserFunction:
    """Return a function with the attributes that CREATE or ALTER FUNCTION gives
    (compute_common_attribute).
    """
    for option in options:
        value = option.value or ""
        match option.name:
            case "volatility":
                function = replace(function, volatility=Volatility[value.upper()])
            case "strict":
                function = replace(function, is_strict=value == "true")
            case "security":
                _check_invoker(value)
            case "leakproof":
                if value == "true" and not ddl.privileges.is_superuser:
                    raise InsufficientPrivilege("only superuser can define a leakproof function")
                function = replace(function, is_leakproof=value == "true")
            case "cost":
                function = replace(function, cost=_positive(option))
            case "rows":
                rows = _positive(option)
                if not function.returns_set:
                    raise InvalidParameterValue(
                        "ROWS is not applicable when function does not return a set"
                    )
                function = replace(function, rows=rows)
            case "reset":  # a function has no settings
                if value != "all":
                    find_setting(value)
            case "parallel":
                if value not in _PARALLEL:
                    raise SqlSyntaxError('parameter "parallel" must be SAFE, RESTRICTED, or UNSAFE')
                function = replace(function, parallel=_PARALLEL[value])
    return function


def _positive(option: ast.DefElem) -> float:
    value = float4in(option.value or "")
    if value <= 0:
        raise InvalidParameterValue(f"{option.name.upper()} must be positive")
    return value


def rename_function(ddl: Ddl, statement: ast.Rename) -> None:
    """Rename a function.

    Raises:
        DuplicateFunction: the schema has a function with the new name and the same arguments.
        InsufficientPrivilege: another role owns the function, or the current role may not create
            objects in its schema.
    """
    function = owned_function(ddl, statement.name, statement.arguments, statement.object_type)
    place = ddl.environment.schema_name(function.schema_oid) or ""
    ddl.privileges.check_schema(function.schema_oid, place, Privilege.CREATE)
    _put_name(ddl, replace(function, name=statement.new_name), place)


def move_function(ddl: Ddl, statement: ast.AlterObjectSchema) -> None:
    """Move a function to another schema.

    Raises:
        InvalidSchemaName: there is no such schema.
        DuplicateFunction: the schema has a function of the same name and arguments.
        InsufficientPrivilege: another role owns the function, or the current role may not create
            objects in the schema.
    """
    found = find_function(ddl, statement.name, statement.arguments, statement.object_type)
    place = find_new_schema(ddl, statement.new_schema)
    ddl.privileges.check_schema(place, statement.new_schema, Privilege.CREATE)
    if ddl.environment.schema_oid(found.schema) == place:
        return
    function = owned_function(ddl, statement.name, statement.arguments, statement.object_type)
    _put_name(ddl, replace(function, schema_oid=place), statement.new_schema)


def _put_name(ddl: Ddl, function: UserFunction, place: str) -> None:
    """Give a function its new name or schema (IsThereFunctionInNamespace)."""
    if _same_signature(ddl, function) is not None:
        shown = ", ".join(ddl.environment.format_type(a) for a in function.arguments)
        raise DuplicateFunction(
            f'function {function.name}({shown}) already exists in schema "{place}"'
        )
    update_function(ddl.catalog, function)


def _same_signature(ddl: Ddl, function: UserFunction) -> UserFunction | None:
    """Return the function with the same schema, name and argument types."""
    return next(
        (
            other
            for other in list_functions(ddl.catalog)
            if (other.name, other.schema_oid) == (function.name, function.schema_oid)
            and other.arguments == function.arguments
        ),
        None,
    )


def _enter(ddl: Ddl, function: UserFunction, *, or_replace: bool) -> None:
    """Add a function to the catalog, or replace the one with the same name and argument types."""
    existing = _same_signature(ddl, function)
    if existing is None:
        insert_function(ddl.catalog, replace(function, oid=ddl.catalog.new_oid()))
        return
    if not or_replace:
        raise DuplicateFunction(
            f'function "{function.name}" already exists with same argument types'
        )
    ddl.privileges.check_owner(existing.owner, "function", existing.name)
    if (existing.result, existing.returns_set) != (function.result, function.returns_set):
        raise InvalidFunctionDefinition(
            "cannot change return type of existing function",
            hint=f"Use DROP FUNCTION {function_signature(ddl, existing)} first.",
        )
    _check_kept_names(ddl, existing, function)
    update_function(ddl.catalog, replace(function, oid=existing.oid, owner=existing.owner))


def _check_kept_names(ddl: Ddl, existing: UserFunction, function: UserFunction) -> None:
    """Check that a function keeps the names of its parameters.  A parameter without a name may get
    one.
    """
    for old, new in zip(existing.argument_names, function.argument_names, strict=True):
        if old and old != new:
            raise InvalidFunctionDefinition(
                f'cannot change name of input parameter "{old}"',
                hint=f"Use DROP FUNCTION {function_signature(ddl, existing)} first.",
            )


def _check_invoker(security: str) -> None:
    if security == "true":
        raise FeatureNotSupported("SECURITY DEFINER functions are not supported")


def _language(options: dict[str, str]) -> str:
    if "language" not in options:
        raise InvalidFunctionDefinition("no language specified")
    language = options["language"].lower()
    if language in ("c", "internal"):
        raise FeatureNotSupported(f"functions in language {language} are not supported")
    if language not in _LANGUAGES:
        raise UndefinedObject(f'language "{language}" does not exist')
    return language


def _arguments(ddl: Ddl, parameters: Sequence[ast.FunctionParameter]) -> tuple[str, ...]:
    """Return the types of the parameters.  Check that no two have the same name
    (interpret_function_parameter_list).
    """
    types: list[str] = []
    names: set[str] = set()
    for parameter in parameters:
        types.append(_argument(ddl, parameter))
        if parameter.name and parameter.name in names:
            raise InvalidFunctionDefinition(
                f'parameter name "{parameter.name}" used more than once'
            )
        names.add(parameter.name or "")
    return tuple(types)


def _argument(ddl: Ddl, parameter: ast.FunctionParameter) -> str:
    if parameter.mode != "in":
        raise FeatureNotSupported(f"{parameter.mode.upper()} parameters are not supported")
    if parameter.default is not None:
        raise FeatureNotSupported("default values of parameters are not supported")
    try:
        type_ = _usable_type(ddl, parameter.type_name)
    except UndefinedObject as error:
        shown = ".".join(parameter.type_name.names)
        raise UndefinedObject(f"type {shown} does not exist") from error
    return type_.name


def _usable_type(ddl: Ddl, type_name: ast.TypeName) -> Type:
    """Return the type of a name.  Check that the role may use it."""
    type_, _typmod = type_of(ddl.environment, replace(type_name, pos=-1))
    ddl.privileges.check_type(type_.oid, ddl.environment.format_type(type_.name))
    return type_


def function_signature(ddl: Ddl, function: UserFunction) -> str:
    """Return the signature of a function: `f(integer,text)`.  Prepend its schema if the search
    path does not have it.
    """
    shown = [ddl.environment.format_type(argument) for argument in function.arguments]
    visible = any(oid == function.schema_oid for _name, oid in ddl.environment.search_path.entries)
    schema_name = ddl.environment.schema_name(function.schema_oid) or ""
    prefix = "" if visible else f"{quote_identifier(schema_name)}."
    return f"{prefix}{quote_identifier(function.name)}({','.join(shown)})"


def operator_signature(ddl: Ddl, operator: UserOperator) -> str:
    """Return the signature of an operator: `===(integer,integer)`.  Prepend its schema if the
    search path does not have it.
    """
    environment = ddl.environment
    left = environment.format_type(operator.left) if operator.left else "NONE"
    visible = any(oid == operator.schema_oid for _name, oid in environment.search_path.entries)
    schema_name = environment.schema_name(operator.schema_oid) or ""
    prefix = "" if visible else f"{quote_identifier(schema_name)}."
    return f"{prefix}{operator.name}({left},{environment.format_type(operator.right)})"


def _create_operator(ddl: Ddl, statement: ast.CreateOperator) -> str:
    schema_name, name = split_name(ddl.environment, statement.names)
    place = creation_schema(ddl.environment, schema_name, name)
    if not statement.function:
        raise InvalidFunctionDefinition("operator function must be specified")
    if statement.right is None and statement.left is None:
        raise InvalidFunctionDefinition("operator argument types must be specified")
    if statement.right is None:
        raise InvalidFunctionDefinition(
            "operator right argument type must be specified",
            detail="Postfix operators are not supported.",
        )
    types = [item for item in (statement.left, statement.right) if item is not None]
    names = tuple(type_of(ddl.environment, replace(item, pos=-1))[0].name for item in types)
    function_schema, function_name = split_name(ddl.environment, statement.function)
    function = next(
        (
            candidate
            for _place, candidate in ddl.environment.functions(function_schema, function_name)
            if candidate.argument_types == names
        ),
        None,
    )
    if function is None:
        shown = ", ".join(ddl.environment.format_type(item) for item in names)
        raise UndefinedFunction(f"function {'.'.join(statement.function)}({shown}) does not exist")
    privileges = ddl.privileges
    if function.oid < FIRST_USER_OID:
        may_call = may_call_builtin(privileges, function.oid)
    else:
        may_call = privileges.has_on_function(function.oid)
    if not may_call:
        raise denied("function", function_name)
    operator = UserOperator(
        ddl.catalog.new_oid(),
        name,
        place.oid,
        ddl.session.role_oid,
        names[0] if len(names) > 1 else "",
        names[-1],
        get_type(ddl.catalog, function.result).name,
        function.oid,
    )
    for other in list_operators(ddl.catalog):
        same_name = (other.name, other.schema_oid) == (name, place.oid)
        if same_name and (other.left, other.right) == (operator.left, operator.right):
            raise DuplicateFunction(f"operator {name} already exists")
    insert_operator(ddl.catalog, operator)
    return "CREATE OPERATOR"
