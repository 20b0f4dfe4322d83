"""Turn parts of expressions into functions that SQLite calls: the evaluator (adt/interpret.py)
computes them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from replctl.adt import interpret
from replctl.adt.functions import TAKES_ANY
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.expr.environment import Environment
from replctl.functions.sql_functions import SET_FUNCTIONS
from replctl.query.sqlite_function import implementation_of
from replctl.query.sqlite_value import evaluated_type, has_text_form, loader, storer
from replctl.types import builtin, text

#: Nodes that compute some of their parts only if they need them.
_LAZY = (nodes.BoolExpr, nodes.CaseExpr, nodes.CoalesceExpr)


class Program:
    """An expression over Param(1), Param(2), ..., which represent operands.

    Attributes:
        operands: the expressions whose values SQLite passes to the function.

    Raises:
        FeatureNotSupported, KeyError: the evaluator does not support a part of the expression.
    """

    def __init__(self, tree: nodes.Expr, operands: Sequence[nodes.Expr]) -> None:
        self.tree = tree
        self.operands = operands
        self._compute = interpret.compiled(tree)

    @classmethod
    def of(cls, environment: Environment, expr: nodes.Expr) -> Program | None:
        """Return the program of an expression; None if the evaluator does not support a part."""
        operands: list[nodes.Expr] = []

        def replaced(node: Any) -> Any:
            if node is not expr and is_leaf(environment, node):
                if not isinstance(node, nodes.Var) or node not in operands:
                    operands.append(node)
                    number = len(operands)
                else:
                    number = operands.index(node) + 1
                type_ = evaluated_type(node.type)
                return nodes.Param(number, type_, nodes.typmod(node), nodes.collation(node))
            if isinstance(node, nodes.Const):
                return dataclasses.replace(node, type=evaluated_type(node.type))
            with_texts = _with_texts(environment, node)
            return None if with_texts is node else nodes.transform(with_texts, replaced)

        try:
            return cls(nodes.transform(expr, replaced), operands)
        except (FeatureNotSupported, KeyError):  # the caller reports what is not supported
            return None

    def function(self) -> Callable[..., Any]:
        """Return the program as a function that takes and returns SQLite's values."""
        compute, store = self._compute, storer(self.tree.type)
        loads = [loader(operand.type) for operand in self.operands]
        if not any(loads):
            if store is None:
                return lambda *args: compute(args)
            stores = store

            def call_as_it_is(*args: Any) -> Any:
                value = compute(args)
                return None if value is None else stores(value)

            return call_as_it_is

        def call(*args: Any) -> Any:
            row = [
                arg if load is None or arg is None else load(arg)
                for load, arg in zip(loads, args, strict=True)
            ]
            value = compute(row)
            return value if value is None or store is None else store(value)

        return call


def is_evaluated(call: nodes.FuncExpr) -> bool:
    """Return whether the evaluator supports the function of a call."""

    def param(number: int, arg: nodes.Expr) -> nodes.Expr:
        if isinstance(arg, nodes.NamedArgExpr):
            return dataclasses.replace(arg, arg=param(number, arg.arg))
        return nodes.Param(number, arg.type, nodes.typmod(arg), nodes.collation(arg))

    args = tuple(param(i, arg) for i, arg in enumerate(call.args, start=1))
    try:
        interpret.compiled(dataclasses.replace(call, args=args))
    except (FeatureNotSupported, KeyError):  # the caller has other ways to compute it
        return False
    return True


def is_leaf(environment: Environment, node: Any) -> bool:
    """Return whether SQLite must compute an expression. It is then an operand of a program."""
    match node:
        case nodes.FuncExpr(function_oid=oid):
            function = environment.function(oid)
            is_known = function.source in SET_FUNCTIONS or function.source == "pg_typeof"
            return is_known or implementation_of(function) is not None
        case nodes.Const(type=type_) | nodes.ArrayExpr(type=type_):
            return not has_text_form(type_)
        case nodes.ArrayCoerceExpr(arg=arg):
            return not (has_text_form(arg.type) and has_text_form(node.type))
        case nodes.CoerceViaIO(arg=arg):
            is_known = node.enum is not None or text.is_supported(node.type)
            return not (is_known and text.is_supported(arg.type))
    if isinstance(node, _LAZY):
        return any(
            not isinstance(part, nodes.Var) and is_leaf(environment, part)
            for part in nodes.walk(node)
            if part is not node
        )
    return isinstance(node, (*interpret.OF_AN_ENGINE, nodes.FieldSelect))


def operand_as_text(expr: nodes.Expr) -> nodes.Expr:
    """Convert an expression to text, or an array to an array of texts, if only the catalog knows
    the text form of its type.
    """
    if text.is_supported(expr.type):
        return expr
    shown = nodes.CoerceViaIO(expr, "text")
    known = builtin.types().get(expr.type)
    return nodes.CoerceViaIO(shown, "_text") if known is not None and known.is_array else shown


def _with_texts(environment: Environment, node: Any) -> Any:
    """Return a call of concat(), format(), ... with its arguments in the form of
    `operand_as_text`. Return other nodes as they are."""
    if not isinstance(node, nodes.FuncExpr):
        return node
    if environment.function(node.function_oid).source not in TAKES_ANY:
        return node
    args = tuple(map(operand_as_text, node.args))
    return node if args == node.args else dataclasses.replace(node, args=args)
