"""Find operands that need no parentheses in pretty output (PRETTYFLAG_PAREN in ruleutils.c)."""

from __future__ import annotations

from replctl.expr import nodes

_RANKS = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}


def is_simple(expr: nodes.Expr, parent: nodes.Expr) -> bool:
    """Return whether an operand needs no parentheses in its parent (isSimpleNode)."""
    match expr:
        case (
            nodes.Var()
            | nodes.Const()
            | nodes.Param()
            | nodes.SetToDefault()
            | nodes.SubscriptingRef()
            | nodes.ArrayExpr()
            | nodes.RowExpr()
            | nodes.CoalesceExpr()
            | nodes.MinMaxExpr()
            | nodes.SqlValueFunction()
            | nodes.NullIfExpr()
            | nodes.Aggref()
            | nodes.GroupingFunc()
            | nodes.WindowFunc()
            | nodes.FuncExpr()
            | nodes.CaseExpr()
        ):
            return True
        case nodes.FieldSelect():
            return not isinstance(parent, nodes.FieldSelect)
        case (
            nodes.CoerceToDomain()
            | nodes.RelabelType()
            | nodes.CoerceViaIO()
            | nodes.ArrayCoerceExpr()
        ):
            return is_simple(expr.arg, expr)
        case nodes.OpExpr() if isinstance(parent, nodes.OpExpr):
            return _binds_more(expr, parent)
        case (
            nodes.OpExpr()
            | nodes.SubLink()
            | nodes.NullTest()
            | nodes.BooleanTest()
            | nodes.DistinctExpr()
            | nodes.JsonIsPredicate()
        ):
            return isinstance(parent, nodes.BoolExpr) or _separates(parent)
        case nodes.BoolExpr() if isinstance(parent, nodes.BoolExpr):
            return parent.op in (("or",) if expr.op == "or" else ("and", "or"))
        case nodes.BoolExpr():
            return _separates(parent)
    return False


def _separates(parent: nodes.Expr) -> bool:
    """Return whether the parent's own parentheses or keywords enclose its operands."""
    if isinstance(parent, nodes.FuncExpr):
        return parent.form == "call"
    return isinstance(
        parent,
        nodes.SubscriptingRef
        | nodes.ArrayExpr
        | nodes.RowExpr
        | nodes.CoalesceExpr
        | nodes.MinMaxExpr
        | nodes.NullIfExpr
        | nodes.Aggref
        | nodes.GroupingFunc
        | nodes.WindowFunc
        | nodes.CaseExpr,
    )


def _binds_more(expr: nodes.OpExpr, parent: nodes.OpExpr) -> bool:
    """Return whether an operation needs no parentheses as an operand of another one: both are
    arithmetic, and the precedence of the operators gives the same result.
    """
    ranks = [_RANKS.get(item.name) for item in (expr, parent) if len(item.args) == 2]
    if len(ranks) < 2 or None in ranks:
        return False
    inner, outer = ranks
    return inner > outer or (inner == outer and expr is parent.args[0])  # type: ignore[operator]
