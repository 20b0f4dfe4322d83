"""Default names of result columns: FigureColname() in parse_target.c."""

from __future__ import annotations

from replctl.parser import ast

_NAMELESS = "?column?"


def column_name(raw: ast.RawExpr) -> str:
    """Return the default name of a column: b for `a.b`, max for `max(x)`, x for `x::text`, and
    `?column?` for `1 + 1`."""
    return figured_name(raw) or _NAMELESS


def figured_name(raw: ast.RawExpr) -> str | None:
    """Return the name that an expression suggests; None if there is none (FigureIndexColname)."""
    name, _strength = _figure(raw)
    return name


def _figure(raw: ast.RawExpr | ast.NamedArg) -> tuple[str | None, int]:
    """Return a name and its strength: 2 for a column or function, 1 for a type or a keyword."""
    match raw:
        case ast.ColumnRef(fields=fields):
            return (None, 0) if fields[-1] == "*" else (fields[-1], 2)
        case ast.Indirection(arg=arg, items=items):
            names = [item for item in items if isinstance(item, str) and item != "*"]
            return (names[-1], 2) if names else _figure(arg)
        case ast.FuncCall(name=name):
            return name[-1], 2
        case ast.AExpr(kind="nullif"):
            return "nullif", 2
        case ast.TypeCast(arg=arg, type_name=type_name):
            found = _figure(arg)
            return found if found[1] > 1 else (type_name.names[-1], 1)
        case ast.CollateClause(arg=arg):
            return _figure(arg)
        case ast.GroupingFunc():
            return "grouping", 2
        case ast.SubLink(kind="exists"):
            return "exists", 2
        case ast.SubLink(kind="array"):
            return "array", 2
        case ast.SubLink(kind="expr", test=None, query=query):
            return _subquery_name(query)
        case ast.CaseExpr(default=default):
            found = (None, 0) if default is None else _figure(default)
            return found if found[1] > 1 else ("case", 1)
        case ast.ArrayExpr():
            return "array", 2
        case ast.RowExpr():
            return "row", 2
        case ast.CoalesceExpr():
            return "coalesce", 2
        case ast.MinMaxExpr(op=op):
            return op, 2
        case ast.SqlValueFunction(name=name):
            return name, 2
        case _:
            return None, 0


def _subquery_name(query: ast.SelectStmt) -> tuple[str | None, int]:
    while query.left is not None:
        query = query.left
    if query.values:
        return "column1", 2
    if not query.targets:
        return (None, 0)
    target = query.targets[0]
    if target.name is not None:
        return target.name, 2
    return (None, 0) if target.value is None else _figure(target.value)
