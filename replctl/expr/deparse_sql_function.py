"""Print functions with their own SQL syntax: EXTRACT, POSITION, OVERLAY (get_func_sql_syntax in
ruleutils.c).
"""

from __future__ import annotations

from collections.abc import Sequence

from replctl.expr import nodes

_TRIM_SIDES = {"btrim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}


def sql_template(expr: nodes.FuncExpr) -> tuple[str, Sequence[nodes.Expr]] | None:
    """Return the SQL syntax of a function call, and the expressions for its pairs of braces; None
    if the function has no syntax of its own.

    `timezone('UTC', t)` becomes `({} AT TIME ZONE {})` with t and 'UTC'.
    """
    args = expr.args
    types = [arg.type for arg in args]
    match expr.name, len(args):
        case "timezone", 2:
            return "({} AT TIME ZONE {})", (args[1], args[0])
        case "timezone", 1:
            return "({} AT LOCAL)", args
        case "overlaps", 4:
            return "(({}, {}) OVERLAPS ({}, {}))", args
        case "extract", 2:
            return f"EXTRACT({_keyword(args[0])} FROM {{}})", (args[1],)
        case "is_normalized", 2:
            return f"({{}} IS {_keyword(args[1])} NORMALIZED)", (args[0],)
        case "is_normalized", 1:
            return "({} IS NORMALIZED)", args
        case "xmlexists", 2:
            return "XMLEXISTS(({}) PASSING ({}))", args
        case "pg_collation_for", 1:
            return "COLLATION FOR ({})", args
        case "normalize", 2:
            return f"NORMALIZE({{}}, {_keyword(args[1])})", (args[0],)
        case "normalize", 1:
            return "NORMALIZE({})", args
        case "overlay", 3:
            return "OVERLAY({} PLACING {} FROM {})", args
        case "overlay", 4:
            return "OVERLAY({} PLACING {} FROM {} FOR {})", args
        case "position", 2:
            return "POSITION(({}) IN ({}))", (args[1], args[0])
        case "substring", 2 if types[1] == "int4":
            return "SUBSTRING({} FROM {})", args
        case "substring", 3 if types[1] == "int4":
            return "SUBSTRING({} FROM {} FOR {})", args
        case "substring", 3:
            return "SUBSTRING({} SIMILAR {} ESCAPE {})", args
        case (("btrim" | "ltrim" | "rtrim"), 1):
            return f"TRIM({_TRIM_SIDES[expr.name]} FROM {{}})", args
        case (("btrim" | "ltrim" | "rtrim"), 2):
            side = _TRIM_SIDES[expr.name]
            return f"TRIM({side} {{}} FROM {{}})", (args[1], args[0])
        case "system_user", 0:
            return "SYSTEM_USER", ()
    return None


def _keyword(expr: nodes.Expr) -> str:
    """Return the keyword in EXTRACT, NORMALIZE and similar functions, given as a constant."""
    assert isinstance(expr, nodes.Const)
    return expr.value or ""
