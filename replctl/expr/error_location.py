"""Find the beginning of an expression, where errors about it point (PostgreSQL's exprLocation() in
nodeFuncs.c).

The `pos` of a node is the position of its operator or function name.  Its first operand may begin
before that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from replctl.expr import nodes

if TYPE_CHECKING:
    from replctl.parser import ast


def leftmost(*positions: int) -> int:
    """Return the smallest known offset; -1 if no offset is known."""
    return min((pos for pos in positions if pos >= 0), default=-1)


def expr_location(expr: nodes.Expr) -> int:
    """Return the offset at which a typed expression begins; -1 if no part has a position."""
    match expr:
        case (
            nodes.FuncExpr(args=args)
            | nodes.OpExpr(args=args)
            | nodes.DistinctExpr(args=args)
            | nodes.NullIfExpr(args=args)
            | nodes.ScalarArrayOpExpr(args=args)
            | nodes.BoolExpr(args=args)
        ):
            return leftmost(expr.pos, list_location(args))
        case (
            nodes.NamedArgExpr(arg=arg)
            | nodes.RelabelType(arg=arg)
            | nodes.CoerceViaIO(arg=arg)
            | nodes.ArrayCoerceExpr(arg=arg)
            | nodes.CoerceToDomain(arg=arg)
            | nodes.NullTest(arg=arg)
            | nodes.BooleanTest(arg=arg)
            | nodes.JsonIsPredicate(arg=arg)
            | nodes.XmlIsDocument(arg=arg)
        ):
            return leftmost(expr.pos, expr_location(arg))
        case (
            nodes.SubscriptingRef(arg=arg)
            | nodes.FieldSelect(arg=arg)
            | nodes.CollateExpr(arg=arg)
            | nodes.JsonValueExpr(raw=arg)
        ):
            return expr_location(arg)
        case nodes.RowCompareExpr(left=left):
            return list_location(left)
        case nodes.SubLink(test=test) if test is not None:
            return leftmost(expr.pos, expr_location(test))
        case _:
            return expr.pos


def list_location(exprs: Iterable[nodes.Expr]) -> int:
    """Return the offset of the first expression that has one; -1 if none has."""
    for expr in exprs:
        location = expr_location(expr)
        if location >= 0:
            return location
    return -1


def raw_location(raw: ast.RawExpr | ast.NamedArg) -> int:
    """Return the offset at which a raw expression begins."""
    from replctl.parser import ast  # printing uses this module without the parser

    match raw:
        case ast.AExpr(left=left):
            return raw.pos if left is None else leftmost(raw.pos, raw_location(left))
        case ast.BoolExpr(args=args) | ast.FuncCall(args=args):
            return leftmost(raw.pos, _raw_list_location(args))
        case ast.TypeCast(arg=arg, type_name=type_name):
            return leftmost(raw_location(arg), type_name.pos, raw.pos)
        case ast.CollateClause(arg=arg):
            return raw_location(arg)
        case ast.Indirection():
            return -1
        case ast.NullTest(arg=arg) | ast.BooleanTest(arg=arg) | ast.NamedArg(arg=arg):
            return leftmost(raw.pos, raw_location(arg))
        case ast.SubLink(test=test) if test is not None:
            return leftmost(raw.pos, raw_location(test))
        case _:
            return raw.pos


def _raw_list_location(raws: Iterable[ast.RawExpr | ast.NamedArg]) -> int:
    for raw in raws:
        location = raw_location(raw)
        if location >= 0:
            return location
    return -1
