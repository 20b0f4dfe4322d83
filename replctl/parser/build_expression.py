"""Build the nodes of expression.lark: expressions, types, names."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, cast

from lark import Token

from replctl.errors import (
    FeatureNotSupported,
    SqlSyntaxError,
)
from replctl.parser import ast
from replctl.parser.build_function import FunctionBuilder
from replctl.parser.build_parts import (
    integer_constant,
    leftmost,
    sql_function,
    start_of,
    system_name,
)
from replctl.parser.build_type import TypeBuilder
from replctl.parser.precedence import (
    Escape,
    Infix,
    Junction,
    Level,
    Operator,
    Pattern,
    Postfix,
    Prefix,
    operation,
)
from replctl.parser.syntax_error import ErrorAtNextToken
from replctl.types.integer import decimal_int

_LIKE_OPERATORS: dict[str, tuple[ast.AExprKind, str, str]] = {
    "LIKE": ("like", "~~", "!~~"),
    "ILIKE": ("ilike", "~~*", "!~~*"),
    "SIMILAR_LA": ("similar", "~", "!~"),
}
_LEVELS = {
    **dict.fromkeys(
        ("LESS", "GREATER", "EQUAL", "LESS_EQUALS", "GREATER_EQUALS", "NOT_EQUALS"),
        Level.COMPARISON,
    ),
    **dict.fromkeys(("PLUS", "MINUS"), Level.ADDITIVE),
    **dict.fromkeys(("STAR", "SLASH", "PERCENT"), Level.MULTIPLICATIVE),
    "CIRCUMFLEX": Level.POWER,
}


class OperatorName(NamedTuple):
    """An operator as written: its name, which may be qualified, and its position."""

    name: tuple[str, ...]
    pos: int


class SubqueryOperator(NamedTuple):
    """An operator before ANY or ALL: its first token, its precedence, and the comparison's name."""

    token: Token
    level: Level
    name: tuple[str, ...]


def _not(arg: ast.RawExpr, op: Token) -> ast.BoolExpr:
    return ast.BoolExpr("not", (arg,), pos=start_of(op))


def _signed(op: Token, arg: ast.RawExpr) -> ast.RawExpr:
    """Return a signed expression; make a minus part of a numeric constant (doNegate in gram.y)."""
    if op.type == "MINUS" and isinstance(arg, ast.Constant) and arg.kind in ("integer", "float"):
        value = cast(str, arg.value)
        negated = value[1:] if value.startswith("-") else f"-{value}"
        return dataclasses.replace(arg, value=negated, pos=start_of(op))
    return ast.AExpr("op", (str(op),), None, arg, pos=start_of(op))


def _prefix(op: OperatorName) -> Prefix:
    return Prefix(Level.OTHER, lambda arg: ast.AExpr("op", op.name, None, arg, pos=op.pos))


def _infix(token: Token, level: Level, op: OperatorName) -> Infix:
    return Infix(
        token, level, lambda left, right: ast.AExpr("op", op.name, left, right, pos=op.pos)
    )


def _is_distinct(op: Token, kind: ast.AExprKind) -> Infix:
    pos = start_of(op)
    return Infix(op, Level.IS, lambda left, right: ast.AExpr(kind, ("=",), left, right, pos=pos))


def _between(op: Token, kind: ast.AExprKind, name: str, low: ast.RawExpr) -> Infix:
    pos = start_of(op)
    return Infix(
        op,
        Level.PATTERN,
        lambda arg, high: ast.AExpr(kind, (name,), arg, (low, high), pos=pos),
    )


def _pattern(token: Token, kind: ast.AExprKind, operator: str) -> Pattern:
    pos = start_of(token)

    def build(arg: ast.RawExpr, pattern: ast.RawExpr, escape: ast.RawExpr | None) -> ast.RawExpr:
        if kind == "similar" or escape is not None:
            name = "similar_to_escape" if kind == "similar" else "like_escape"
            args = (pattern,) if escape is None else (pattern, escape)
            pattern = ast.FuncCall(system_name(name), args, pos=pos)
        return ast.AExpr(kind, (operator,), arg, pattern, pos=pos)

    return Pattern(token, build)


class ExpressionBuilder(FunctionBuilder, TypeBuilder):
    """Builds the nodes of expression.lark.  Each rule or alias has a method."""

    # -- operators: see precedence.py

    def operation(self, *items: ast.RawExpr | Operator) -> ast.RawExpr:
        return operation(items)

    def not_prefix(self, op: Token) -> Prefix:
        return Prefix(Level.NOT, lambda arg: _not(arg, op))

    def sign(self, op: Token) -> Prefix:
        return Prefix(Level.SIGN, lambda arg: _signed(op, arg))

    def prefix_operator(self, op: Token) -> Prefix:
        return _prefix(OperatorName((str(op),), start_of(op)))

    def prefix_qualified_operator(self, word: Token, parts: tuple[Token, ...]) -> Prefix:
        return _prefix(self.qualified_operator(word, parts))

    def infix_operator(self, op: Token) -> Infix:
        return _infix(op, _LEVELS.get(op.type, Level.OTHER), OperatorName((str(op),), start_of(op)))

    def infix_qualified_operator(self, word: Token, parts: tuple[Token, ...]) -> Infix:
        return _infix(word, Level.OTHER, self.qualified_operator(word, parts))

    def junction(self, op: Token) -> Junction:
        return Junction(op, Level.AND if op.type == "AND" else Level.OR)

    def is_distinct(self, op: Token) -> Infix:
        return _is_distinct(op, "distinct")

    def is_not_distinct(self, op: Token) -> Infix:
        return _is_distinct(op, "not_distinct")

    def is_null(self, op: Token) -> Postfix:
        return Postfix(op, Level.IS, lambda arg: ast.NullTest(arg, True, pos=start_of(op)))

    def is_not_null(self, op: Token) -> Postfix:
        return Postfix(op, Level.IS, lambda arg: ast.NullTest(arg, False, pos=start_of(op)))

    def truth_value(self, word: Token) -> str:
        return str(word)

    def boolean_test(self, op: Token, value: str) -> Postfix:
        def build(arg: ast.RawExpr) -> ast.BooleanTest:
            return ast.BooleanTest(arg, value, pos=start_of(op))  # type: ignore[arg-type]

        return Postfix(op, Level.IS, build)

    def boolean_test_not(self, op: Token, value: str) -> Postfix:
        return self.boolean_test(op, f"not {value}")

    def unicode_normal_form(self, word: Token) -> ast.Constant:
        return ast.Constant("string", word.upper(), pos=start_of(word))

    def is_normalized(self, op: Token, form: ast.Constant | None) -> Postfix:
        forms = () if form is None else (form,)
        return Postfix(op, Level.IS, lambda arg: sql_function(op, "is_normalized", arg, *forms))

    def is_not_normalized(self, op: Token, form: ast.Constant | None) -> Postfix:
        positive = self.is_normalized(op, form)
        return Postfix(op, Level.IS, lambda arg: _not(positive.build(arg), op))

    def json_item(self, *words: Token) -> str:
        return str(words[1]) if len(words) > 1 and words[1] != "value" else "any"

    def json_unique(self, *words: Token) -> bool:
        return str(words[0]) == "with"

    def is_json(
        self, op: Token, item: str, unique: bool | None, *, is_not: bool = False
    ) -> Postfix:
        def build(arg: ast.RawExpr) -> ast.JsonIsPredicate:
            return ast.JsonIsPredicate(arg, item, bool(unique), is_not, pos=leftmost(arg))  # type: ignore[arg-type]

        return Postfix(op, Level.IS, build)

    def is_not_json(self, op: Token, item: str, unique: bool | None) -> Postfix:
        return self.is_json(op, item, unique, is_not=True)

    def is_document(self, op: Token) -> Postfix:
        return Postfix(op, Level.IS, lambda arg: ast.XmlIsDocument(arg, pos=start_of(op)))

    def is_not_document(self, op: Token) -> Postfix:
        positive = self.is_document(op)
        return Postfix(op, Level.IS, lambda arg: _not(positive.build(arg), op))

    def all_op(self, token: Token) -> Token:
        return token

    def any_operator(self, *parts: Token) -> tuple[Token, ...]:
        return parts

    def operator_name(self, token: Token) -> SubqueryOperator:
        level = _LEVELS.get(token.type, Level.OTHER)
        return SubqueryOperator(token, level, (str(token),))

    def qualified_operator(self, word: Token, parts: tuple[Token, ...]) -> OperatorName:
        return OperatorName(tuple(map(str, parts)), start_of(word))

    def qualified_subquery_operator(
        self, word: Token, parts: tuple[Token, ...]
    ) -> SubqueryOperator:
        return SubqueryOperator(word, Level.OTHER, tuple(map(str, parts)))

    def like_op(self, *words: Token) -> SubqueryOperator:
        _, positive, negative = _LIKE_OPERATORS[words[-1].type]
        name = negative if words[0].type == "NOT_LA" else positive
        return SubqueryOperator(words[0], Level.PATTERN, (name,))

    def quantifier(self, word: Token) -> str:
        return "all" if word.type == "ALL" else "any"

    def quantified_array(
        self, op: SubqueryOperator, quantifier: str, right: ast.RawExpr
    ) -> Postfix:
        kind: ast.AExprKind = "op_all" if quantifier == "all" else "op_any"
        pos = start_of(op.token)
        return Postfix(
            op.token, op.level, lambda left: ast.AExpr(kind, op.name, left, right, pos=pos)
        )

    def quantified_query(
        self, op: SubqueryOperator, quantifier: str, query: ast.SelectStmt
    ) -> Postfix:
        def build(left: ast.RawExpr) -> ast.SubLink:
            return ast.SubLink(quantifier, query, left, op.name, pos=start_of(op.token))  # type: ignore[arg-type]

        return Postfix(op.token, op.level, build)

    def in_list(self, op: Token, values: tuple[ast.RawExpr, ...], name: str = "=") -> Postfix:
        pos = start_of(op)
        return Postfix(
            op, Level.PATTERN, lambda left: ast.AExpr("in", (name,), left, values, pos=pos)
        )

    def not_in_list(self, op: Token, values: tuple[ast.RawExpr, ...]) -> Postfix:
        return self.in_list(op, values, "<>")

    def in_query(self, op: Token, query: ast.SelectStmt) -> Postfix:
        return Postfix(
            op, Level.PATTERN, lambda left: ast.SubLink("any", query, left, pos=start_of(op))
        )

    def not_in_query(self, op: Token, query: ast.SelectStmt) -> Postfix:
        positive = self.in_query(op, query)
        return Postfix(op, Level.PATTERN, lambda left: _not(positive.build(left), op))

    def between(self, op: Token, low: ast.RawExpr) -> Infix:
        return _between(op, "between", "BETWEEN", low)

    def not_between(self, op: Token, low: ast.RawExpr) -> Infix:
        return _between(op, "not_between", "NOT BETWEEN", low)

    def between_symmetric(self, op: Token, low: ast.RawExpr) -> Infix:
        return _between(op, "between_symmetric", "BETWEEN SYMMETRIC", low)

    def not_between_symmetric(self, op: Token, low: ast.RawExpr) -> Infix:
        return _between(op, "not_between_symmetric", "NOT BETWEEN SYMMETRIC", low)

    def pattern(self, word: Token) -> Pattern:
        kind, positive, _ = _LIKE_OPERATORS[word.type]
        return _pattern(word, kind, positive)

    def pattern_not(self, not_: Token, word: Token) -> Pattern:
        kind, _, negative = _LIKE_OPERATORS[word.type]
        return _pattern(not_, kind, negative)

    def escape(self, word: Token) -> Escape:
        return Escape(word)

    def at_time_zone(self, op: Token) -> Infix:
        return Infix(op, Level.AT, lambda left, zone: sql_function(op, "timezone", zone, left))

    def at_local(self, op: Token) -> Postfix:
        """Return the operator AT LOCAL; its call has no position (makeFuncCall in gram.y)."""
        return Postfix(
            op, Level.AT, lambda arg: ast.FuncCall(system_name("timezone"), (arg,), format="sql")
        )

    def collate(self, op: Token, name: tuple[Token, ...]) -> Postfix:
        names, pos = tuple(map(str, name)), start_of(op)
        return Postfix(op, Level.COLLATE, lambda arg: ast.CollateClause(arg, names, pos=pos))

    def typecast(self, op: Token, type_name: ast.TypeName) -> Postfix:
        return Postfix(op, Level.CAST, lambda arg: ast.TypeCast(arg, type_name, pos=start_of(op)))

    def overlaps(self, left: ast.RowExpr, op: Token, right: ast.RowExpr) -> ast.FuncCall:
        for side, row in (("left", left), ("right", right)):
            if len(row.args) != 2:
                raise SqlSyntaxError(
                    f"wrong number of parameters on {side} side of OVERLAPS expression",
                    position=row.pos,
                )
        return sql_function(op, "overlaps", *left.args, *right.args)

    def unique_predicate(self, word: Token, *rest: object) -> ast.RawExpr:
        raise FeatureNotSupported(
            "UNIQUE predicate is not yet implemented", position=start_of(word)
        )

    # -- primaries

    def columnref(
        self, name: Token, indirection: tuple[ast.Subscript | Token, ...] = ()
    ) -> ast.RawExpr:
        """Return a column reference; for `a.b[1].c`, a part of the column a.b (makeColumnRef in
        gram.y).
        """
        fields = [str(name)]
        for i, item in enumerate(indirection):
            if isinstance(item, ast.Subscript):
                column = ast.ColumnRef(tuple(fields), pos=start_of(name))
                return ast.Indirection(column, _plain(indirection[i:]), pos=start_of(name))
            if item.type == "STAR":
                if i + 1 < len(indirection):
                    raise ErrorAtNextToken('improper use of "*"')
                return ast.ColumnRef((*fields, "*"), is_star=True, pos=start_of(name))
            fields.append(str(item))
        return ast.ColumnRef(tuple(fields), pos=start_of(name))

    def indirection(self, *items: ast.Subscript | Token) -> tuple[ast.Subscript | Token, ...]:
        return items

    def subscript(self, upper: ast.RawExpr) -> ast.Subscript:
        return ast.Subscript(None, upper, is_slice=False)

    def slice(self, lower: ast.RawExpr | None, upper: ast.RawExpr | None) -> ast.Subscript:
        return ast.Subscript(lower, upper, is_slice=True)

    def param(
        self, token: Token, indirection: tuple[ast.Subscript | Token, ...] | None
    ) -> ast.RawExpr:
        param = ast.ParamRef(_parameter_number(token), pos=start_of(token))
        return self.indirect(param, indirection) if indirection else param

    def parenthesized(self, expr: ast.RawExpr) -> ast.RawExpr:
        return expr

    def indirect(
        self, arg: ast.RawExpr, indirection: tuple[ast.Subscript | Token, ...]
    ) -> ast.Indirection:
        if any(isinstance(item, Token) and item.type == "STAR" for item in indirection[:-1]):
            raise ErrorAtNextToken('improper use of "*"')
        return ast.Indirection(arg, _plain(indirection), pos=arg.pos)

    def expr_sublink(self, query: ast.SelectStmt) -> ast.SubLink:
        return ast.SubLink("expr", query, pos=query.pos)

    def indirect_sublink(
        self, query: ast.SelectStmt, indirection: tuple[ast.Subscript | Token, ...]
    ) -> ast.Indirection:
        return self.indirect(self.expr_sublink(query), indirection)

    def exists(self, word: Token, query: ast.SelectStmt) -> ast.SubLink:
        return ast.SubLink("exists", query, pos=start_of(word))

    def array_sublink(self, word: Token, query: ast.SelectStmt) -> ast.SubLink:
        return ast.SubLink("array", query, pos=start_of(word))

    def array(self, word: Token, array: ast.ArrayExpr) -> ast.ArrayExpr:
        return dataclasses.replace(array, pos=start_of(word))

    def array_elements(
        self, bracket: Token, elements: tuple[ast.RawExpr, ...] = ()
    ) -> ast.ArrayExpr:
        return ast.ArrayExpr(elements, pos=start_of(bracket))

    def nested_arrays(self, bracket: Token, *arrays: ast.ArrayExpr) -> ast.ArrayExpr:
        return ast.ArrayExpr(arrays, pos=start_of(bracket))

    def explicit_row(self, word: Token, args: tuple[ast.RawExpr, ...] | None) -> ast.RowExpr:
        return ast.RowExpr(args or (), is_explicit=True, pos=start_of(word))

    def implicit_row(
        self, paren: Token, first: ast.RawExpr, rest: tuple[ast.RawExpr, ...]
    ) -> ast.RowExpr:
        return ast.RowExpr((first, *rest), is_explicit=False, pos=start_of(paren))

    def grouping(self, word: Token, args: tuple[ast.RawExpr, ...]) -> ast.GroupingFunc:
        return ast.GroupingFunc(args, pos=start_of(word))

    def set_to_default(self, word: Token) -> ast.SetToDefault:
        return ast.SetToDefault(pos=start_of(word))

    # -- constants

    def integer(self, token: Token) -> ast.Constant:
        return integer_constant(token)

    def number(self, token: Token) -> ast.Constant:
        return ast.Constant("float", str(token), pos=start_of(token))

    def string(self, token: Token) -> ast.Constant:
        return ast.Constant("string", str(token), pos=start_of(token))

    def bits(self, token: Token) -> ast.Constant:
        return ast.Constant("bit", str(token), pos=start_of(token))

    def boolean(self, token: Token) -> ast.Constant:
        return ast.Constant("boolean", str(token), pos=start_of(token))

    def null(self, token: Token) -> ast.Constant:
        return ast.Constant("null", None, pos=start_of(token))

    def typed_literal(self, name: tuple[Token, ...], literal: Token) -> ast.TypeCast:
        return self._literal(literal, ast.TypeName(tuple(map(str, name)), pos=start_of(name[0])))

    def typed_literal_with_modifiers(
        self,
        name: tuple[Token, ...],
        modifiers: tuple[ast.RawExpr | ast.NamedArg, ...],
        order_by: tuple[ast.SortBy, ...] | None,
        literal: Token,
    ) -> ast.TypeCast:
        for modifier in modifiers:
            if isinstance(modifier, ast.NamedArg):
                raise SqlSyntaxError(
                    "type modifier cannot have parameter name", position=modifier.pos
                )
        if order_by is not None:
            raise SqlSyntaxError("type modifier cannot have ORDER BY", position=order_by[0].pos)
        type_name = ast.TypeName(tuple(map(str, name)), modifiers, pos=start_of(name[0]))  # type: ignore[arg-type]
        return self._literal(literal, type_name)

    def const_typed_literal(self, type_name: ast.TypeName, literal: Token) -> ast.TypeCast:
        """Return a literal with its type.

        A length that the statement does not give is ignored, so `char 'abc'` keeps its three
        characters.
        """
        if type_name.modifiers and type_name.modifiers[0].pos < 0:
            type_name = dataclasses.replace(type_name, modifiers=())
        return self._literal(literal, type_name)

    def interval_literal(
        self, word: Token, literal: Token, fields: tuple[ast.RawExpr, ...] | None
    ) -> ast.TypeCast:
        return self._literal(literal, self.interval_type(word, fields))

    def interval_literal_precision(
        self, word: Token, precision: Token, literal: Token
    ) -> ast.TypeCast:
        return self._literal(literal, self.interval_type_precision(word, precision))

    def _literal(self, literal: Token, type_name: ast.TypeName) -> ast.TypeCast:
        return ast.TypeCast(self.string(literal), type_name)

    # -- CASE

    def case_expr(
        self, word: Token, arg: ast.RawExpr | None, *rest: ast.CaseWhen | ast.RawExpr | None
    ) -> ast.CaseExpr:
        *whens, default = rest
        return ast.CaseExpr(
            arg,
            tuple(when for when in whens if isinstance(when, ast.CaseWhen)),
            cast("ast.RawExpr | None", default),
            pos=start_of(word),
        )

    def when_clause(self, word: Token, condition: ast.RawExpr, result: ast.RawExpr) -> ast.CaseWhen:
        return ast.CaseWhen(condition, result, pos=start_of(word))


def _plain(items: tuple[ast.Subscript | Token, ...]) -> tuple[ast.Subscript | str, ...]:
    return tuple(item if isinstance(item, ast.Subscript) else str(item) for item in items)


def _parameter_number(digits: str) -> int:
    """Return the number after $, which wraps at 32 bits as in PostgreSQL."""
    number = min(decimal_int(digits), 2**63 - 1)
    return (number + 2**31) % 2**32 - 2**31
