"""Prints expressions as SQL with all parentheses, for tests.  deparse.py prints typed
expressions."""

from __future__ import annotations

from replctl.parser import ast

_BETWEEN = {
    "between": "BETWEEN",
    "not_between": "NOT BETWEEN",
    "between_symmetric": "BETWEEN SYMMETRIC",
    "not_between_symmetric": "NOT BETWEEN SYMMETRIC",
}
_PATTERNS = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE"}


def print_expression(expr: ast.RawExpr) -> str:
    match expr:
        case ast.ColumnRef():
            return ".".join(map(_name, expr.fields))
        case ast.Constant():
            return _constant(expr)
        case ast.TypeCast():
            return f"({print_expression(expr.arg)})::{_type(expr.type_name)}"
        case ast.CollateClause():
            return f"({print_expression(expr.arg)}) COLLATE {'.'.join(map(_name, expr.name))}"
        case ast.AExpr():
            return _a_expr(expr)
        case ast.BoolExpr(op="not"):
            return f"NOT ({print_expression(expr.args[0])})"
        case ast.BoolExpr():
            return f" {expr.op} ".join(f"({print_expression(arg)})" for arg in expr.args)
        case ast.NullTest():
            return f"({print_expression(expr.arg)}) IS {'' if expr.is_null else 'NOT '}NULL"
        case ast.BooleanTest():
            return f"({print_expression(expr.arg)}) IS {expr.test}"
        case ast.FuncCall():
            return f"{'.'.join(map(_name, expr.name))}({_list(expr.args)})"
        case ast.CoalesceExpr():
            return f"COALESCE({_list(expr.args)})"
        case ast.MinMaxExpr():
            return f"{expr.op}({_list(expr.args)})"
        case ast.CaseExpr():
            arg = "" if expr.arg is None else f"({print_expression(expr.arg)})"
            whens = " ".join(
                f"WHEN {print_expression(when.condition)} THEN {print_expression(when.result)}"
                for when in expr.whens
            )
            default = "" if expr.default is None else f"ELSE {print_expression(expr.default)}"
            return f"CASE {arg} {whens} {default} END"
        case ast.ArrayExpr():
            return f"ARRAY[{_list(expr.elements)}]"
        case ast.RowExpr():
            return f"{'ROW' if expr.is_explicit else ''}({_list(expr.args)})"
    raise NotImplementedError(type(expr))


def _list(args: tuple[object, ...]) -> str:
    return ", ".join(
        f"{_name(arg.name)} => {print_expression(arg.arg)}"
        if isinstance(arg, ast.NamedArg)
        else print_expression(arg)  # type: ignore[arg-type]
        for arg in args
    )


def _a_expr(expr: ast.AExpr) -> str:
    left = "" if expr.left is None else f"({print_expression(expr.left)}) "
    if isinstance(expr.right, tuple):
        if expr.kind == "in":
            return f"{left}{'' if expr.name == ('=',) else 'NOT '}IN ({_list(expr.right)})"
        low, high = expr.right
        return (
            f"{left}{_BETWEEN[expr.kind]} ({print_expression(low)}) AND ({print_expression(high)})"
        )
    right = f"({print_expression(expr.right)})"
    match expr.kind:
        case "op":
            return f"{left}{_operator(expr.name)} {right}"
        case "op_any" | "op_all":
            return f"{left}{_operator(expr.name)} {expr.kind.removeprefix('op_')} {right}"
        case "distinct":
            return f"{left}IS DISTINCT FROM {right}"
        case "not_distinct":
            return f"{left}IS NOT DISTINCT FROM {right}"
        case "nullif":
            return f"NULLIF({left}, {right})"
        case _:
            return f"{left}{_PATTERNS[expr.name[0]]} {right}"


def _operator(name: tuple[str, ...]) -> str:
    if len(name) == 1:
        return name[0]
    return f"OPERATOR({'.'.join([*map(_name, name[:-1]), name[-1]])})"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _type(type_name: ast.TypeName) -> str:
    modifiers = f"({_list(type_name.modifiers)})" if type_name.modifiers else ""
    bounds = "".join(f"[{'' if bound < 0 else bound}]" for bound in type_name.array_bounds)
    return ".".join(map(_name, type_name.names)) + modifiers + bounds


def _constant(constant: ast.Constant) -> str:
    value = constant.value or ""
    match constant.kind:
        case "null":
            return "NULL"
        case "string":
            return "'" + value.replace("'", "''") + "'"
        case "bit":
            return f"{value[0]}'{value[1:]}'"
        case _:
            return value
