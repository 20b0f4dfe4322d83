"""Replace facts about a session in expressions by constants: role, database, settings, and the
start times of the transaction and the statement.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from replctl.expr import nodes
from replctl.types import builtin, text
from replctl.types.timestamp import micros

if TYPE_CHECKING:
    from replctl.functions.function_context import FunctionContext
    from replctl.session import Session

#: The function in functions.sql_functions that is equivalent to a SqlValueFunction.
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

#: For a SqlValueFunction, the OIDs (in pg_proc) of the functions that compute it from the
#: transaction's start time, and the OID of the function that rounds it.
_TIMES: dict[str, tuple[tuple[int, ...], int]] = {
    "current_timestamp": ((), 1967),
    "localtimestamp": ((2027,), 1961),
    "current_date": ((1178,), 0),
    "current_time": ((1388,), 1969),
    "localtime": ((2019,), 1968),
}


def time_value(session: Session, expr: Any) -> nodes.Expr | None:
    """Return `now()`, `CURRENT_DATE`, `statement_timestamp()` or a similar expression as a
    computation from a constant; None for other expressions.
    """
    match expr:
        case nodes.SqlValueFunction(name=name, typmod=precision) if name in _TIMES:
            casts, rounding = _TIMES[name]
            value = _time(session.transaction_start)
            for oid in casts:
                value = _called(oid, value)
            if precision < 0:
                return value
            return _called(rounding, value, nodes.Const("int4", str(precision)))
        case nodes.FuncExpr(function_oid=oid):
            function = builtin.function_by_oid().get(oid)
            if function is None:
                return None
            if function.source == "now":
                return _time(session.transaction_start)
            if function.source == "statement_timestamp":
                return _time(session.statement_start)
    return None


def _time(moment: datetime) -> nodes.Expr:
    return nodes.Const("timestamptz", text.render("timestamptz", micros(moment)))


def _called(oid: int, *args: nodes.Expr) -> nodes.Expr:
    function = builtin.function_by_oid()[oid]
    return nodes.FuncExpr(oid, function.name, function.result, args)


def session_value(context: FunctionContext, expr: Any) -> nodes.Expr | None:
    """Return the value of `current_user`, `current_setting('search_path')`, `now()` or a similar
    expression; None for other expressions.

    Raises:
        UndefinedObject: there is no such setting.
    """
    value = time_value(context.session, expr)
    return fact_value(context, expr) if value is None else value


def with_session_values(context: FunctionContext, expr: nodes.Expr) -> nodes.Expr:
    """Return an expression in which constants replace such expressions.

    Raises:
        UndefinedObject: there is no such setting.
    """
    result: nodes.Expr = nodes.transform(expr, partial(session_value, context))
    return result


def fact_value(context: FunctionContext, expr: Any) -> nodes.Expr | None:
    """Return the value of `current_user`, `current_setting('search_path')` or a similar expression
    that does not depend on the time; None for other expressions.

    Raises:
        UndefinedObject: there is no such setting.
    """
    match expr:
        case nodes.SqlValueFunction(name=name) if name in VALUES:
            source, values = VALUES[name], []
        case nodes.FuncExpr(function_oid=oid, args=args):
            source = context.environment.function(oid).source
            if source not in _SOURCES or not all(isinstance(arg, nodes.Const) for arg in args):
                return None
            values = [
                int(arg.value == "t") if arg.type == "bool" and arg.value else arg.value
                for arg in args
                if isinstance(arg, nodes.Const)
            ]
        case _:
            return None
    from replctl.functions.sql_functions import FUNCTIONS  # import it only when needed

    found = None if None in values else FUNCTIONS[source](context, *values)
    return nodes.Const(expr.type, found, collation=nodes.collation(expr))
