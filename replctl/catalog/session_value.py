"""The facts of a session that expressions ask for, as constants: who runs it, where, with which
settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from replctl.expr import nodes

if TYPE_CHECKING:
    from replctl.catalog.functions import FunctionContext

#: SqlValueFunction -> what answers it, in catalog.functions.
VALUES = {
    "current_user": "current_user",
    "session_user": "session_user",
    "user": "current_user",
    "current_role": "current_user",
    "current_catalog": "current_database",
    "current_schema": "current_schema",
}
_SOURCES = frozenset(
    {
        "current_database",
        "current_schema",
        "current_user",
        "session_user",
        "show_config_by_name",
        "show_config_by_name_missing_ok",
    }
)


def session_value(context: FunctionContext, expr: Any) -> nodes.Const | None:
    """Return the value of `current_user`, `current_setting('search_path')`, ...; None of anything
    else.

    Raises:
        UndefinedObject: there is no such setting.
    """
    from replctl.catalog.functions import FUNCTIONS  # not before an expression is looked at

    match expr:
        case nodes.SqlValueFunction(name=name) if name in VALUES:
            found = FUNCTIONS[VALUES[name]](context)
        case nodes.FuncExpr(function_oid=oid, args=args):
            source = context.environment.function(oid).source
            if source not in _SOURCES or not all(isinstance(arg, nodes.Const) for arg in args):
                return None
            values = [
                int(arg.value == "t") if arg.type == "bool" and arg.value else arg.value
                for arg in args
                if isinstance(arg, nodes.Const)
            ]
            found = None if None in values else FUNCTIONS[source](context, *values)
        case _:
            return None
    return nodes.Const(expr.type, found, collation=nodes.collation(expr))
