"""Nodes of expression.lark: expressions, types, names."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, cast

from lark import Token

from replctl.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    ReservedName,
    SqlSyntaxError,
)
from replctl.parser import ast
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
from replctl.parser.syntax_error import ErrorAtNextToken, MisplacedToken
from replctl.types.builtin import keywords

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
#: Bits of an interval's fields in its type modifier (INTERVAL_MASK in timestamp.h).
_INTERVAL_BITS = {"year": 2, "month": 1, "day": 3, "hour": 10, "minute": 11, "second": 12}
_INTERVAL_ORDER = ("year", "month", "day", "hour", "minute", "second")
_INTERVAL_FULL_RANGE = 0x7FFF


class OperatorName(NamedTuple):
    """An operator as written: its name, perhaps qualified, and where it stands."""

    name: tuple[str, ...]
    pos: int


class _WithinGroup(NamedTuple):
    word: Token
    order_by: tuple[ast.SortBy, ...]


class SubqueryOperator(NamedTuple):
    """An operator before ANY or ALL: where it begins, how it binds, the name of what compares."""

    token: Token
    level: Level
    name: tuple[str, ...]


def start_of(token: Token) -> int:
    """The offset of a token, -1 if it was not read from a text."""
    return -1 if token.start_pos is None else token.start_pos


def check_no_keyword(name: Token) -> None:
    """Where gram.y says IDENT, not ColId: a name, in quotes or not a keyword.

    Raises:
        MisplacedToken: it is a keyword, though one that is not reserved.
    """
    is_quoted = (name.end_pos or 0) - start_of(name) != len(name)
    if not is_quoted and name in keywords():
        raise MisplacedToken(name)


def system_name(name: str) -> tuple[str, str]:
    """A function or type that SQL's own syntax means, whatever the search path."""
    return ("pg_catalog", name)


def sql_function(word: Token, name: str, *args: ast.RawExpr) -> ast.FuncCall:
    """A function that SQL's own syntax calls, which ruleutils.c prints in that syntax again."""
    return ast.FuncCall(system_name(name), args, format="sql", pos=start_of(word))


def leftmost(expr: ast.RawExpr) -> int:
    """Where an expression begins, as far as its nodes know: parentheses leave no trace."""
    found = expr.pos
    while True:
        match expr:
            case ast.AExpr(left=None) | ast.SubLink(test=None):
                return found
            case ast.AExpr(left=left):
                expr = cast("ast.RawExpr", left)
            case ast.SubLink(test=test):
                expr = cast("ast.RawExpr", test)
            case ast.BoolExpr(op="and" | "or"):
                expr = expr.args[0]
            case ast.NullTest() | ast.BooleanTest() | ast.CollateClause() | ast.Indirection():
                expr = expr.arg
            case ast.TypeCast():
                positions = [expr.pos, expr.type_name.pos, expr.arg.pos]
                found = min(pos for pos in (found, *positions) if pos >= 0)
                expr = expr.arg
            case _:
                return found
        if expr.pos >= 0:
            found = min(found, expr.pos) if found >= 0 else expr.pos


def _not(arg: ast.RawExpr, op: Token) -> ast.BoolExpr:
    return ast.BoolExpr("not", (arg,), pos=start_of(op))


def _signed(op: Token, arg: ast.RawExpr) -> ast.RawExpr:
    """A minus before a numeric constant is part of it (doNegate in gram.y)."""
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


class ExpressionBuilder:
    """A method for each rule or alias of expression.lark."""

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
        """The call has no position (makeFuncCall in gram.y)."""
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
        """`a.b[1].c` is a column a.b, of which a part is taken (makeColumnRef in gram.y)."""
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
        param = ast.ParamRef(int(token), pos=start_of(token))
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
        return ast.Constant("integer", str(token), pos=start_of(token))

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
        """`char 'abc'` is not cut to one character: a length that was not written does not
        count.
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

    # -- functions

    def func_name(self, name: Token) -> tuple[Token, ...]:
        return (name,)

    def qualified_func_name(
        self, name: Token, indirection: tuple[ast.Subscript | Token, ...]
    ) -> tuple[Token, ...]:
        return (name, *names_only(indirection))

    def func_application(
        self,
        name: tuple[Token, ...],
        args: tuple[ast.RawExpr | ast.NamedArg, ...] = (),
        order_by: tuple[ast.SortBy, ...] | None = None,
    ) -> ast.FuncCall:
        return ast.FuncCall(
            tuple(map(str, name)), args, order_by=order_by or (), pos=start_of(name[0])
        )

    def func_variadic(
        self, name: tuple[Token, ...], arg: ast.RawExpr, order_by: tuple[ast.SortBy, ...] | None
    ) -> ast.FuncCall:
        return dataclasses.replace(self.func_application(name, (arg,), order_by), is_variadic=True)

    def func_args_variadic(
        self,
        name: tuple[Token, ...],
        *rest: ast.RawExpr | ast.NamedArg | tuple[ast.SortBy, ...] | None,
    ) -> ast.FuncCall:
        *args, order_by = rest
        call = self.func_application(name, tuple(args), order_by)  # type: ignore[arg-type]
        return dataclasses.replace(call, is_variadic=True)

    def func_distinct(
        self,
        name: tuple[Token, ...],
        args: tuple[ast.RawExpr | ast.NamedArg, ...],
        order_by: tuple[ast.SortBy, ...] | None,
    ) -> ast.FuncCall:
        return dataclasses.replace(self.func_application(name, args, order_by), is_distinct=True)

    def func_star(self, name: tuple[Token, ...]) -> ast.FuncCall:
        return dataclasses.replace(self.func_application(name), is_star=True)

    def func_arg_list(
        self, *args: ast.RawExpr | ast.NamedArg
    ) -> tuple[ast.RawExpr | ast.NamedArg, ...]:
        return args

    def named_arg(self, name: Token, arrow: Token, arg: ast.RawExpr) -> ast.NamedArg:
        return ast.NamedArg(str(name), arg, pos=start_of(name))

    def within_group(self, word: Token, order_by: tuple[ast.SortBy, ...]) -> _WithinGroup:
        return _WithinGroup(word, order_by)

    def filter_clause(self, condition: ast.RawExpr) -> ast.RawExpr:
        return condition

    def over_clause(self, window: ast.WindowDef) -> ast.WindowDef:
        return window

    def over_name(self, name: Token) -> ast.WindowDef:
        return ast.WindowDef(name=str(name), pos=start_of(name))

    def func_call(
        self,
        call: ast.FuncCall,
        within_group: _WithinGroup | None,
        condition: ast.RawExpr | None,
        over: ast.WindowDef | None,
    ) -> ast.FuncCall:
        if within_group is not None:
            for flag, message in (
                (call.order_by, "cannot use multiple ORDER BY clauses with WITHIN GROUP"),
                (call.is_distinct, "cannot use DISTINCT with WITHIN GROUP"),
                (call.is_variadic, "cannot use VARIADIC with WITHIN GROUP"),
            ):
                if flag:
                    raise SqlSyntaxError(message, position=start_of(within_group.word))
            call = dataclasses.replace(call, order_by=within_group.order_by, within_group=True)
        if condition is None and over is None:
            return call
        return dataclasses.replace(call, filter=condition, over=over)

    def collation_for(self, word: Token, arg: ast.RawExpr) -> ast.FuncCall:
        return sql_function(word, "pg_collation_for", arg)

    def sql_value(self, word: Token, precision: Token | None = None) -> ast.SqlValueFunction:
        return ast.SqlValueFunction(
            str(word), -1 if precision is None else int(precision), pos=start_of(word)
        )

    def system_user(self, word: Token) -> ast.FuncCall:
        return sql_function(word, "system_user")

    def cast_function(self, word: Token, arg: ast.RawExpr, type_name: ast.TypeName) -> ast.TypeCast:
        return ast.TypeCast(arg, type_name, pos=start_of(word))

    def extract_field(self, word: Token) -> ast.Constant:
        if word.type == "IDENT":
            check_no_keyword(word)
        return ast.Constant("string", str(word), pos=start_of(word))

    def extract(self, word: Token, field: ast.Constant, arg: ast.RawExpr) -> ast.FuncCall:
        return sql_function(word, "extract", field, arg)

    def normalize(self, word: Token, arg: ast.RawExpr, form: ast.Constant | None) -> ast.FuncCall:
        return sql_function(word, "normalize", arg, *(() if form is None else (form,)))

    def overlay(
        self,
        word: Token,
        arg: ast.RawExpr,
        new: ast.RawExpr,
        start: ast.RawExpr,
        count: ast.RawExpr | None,
    ) -> ast.FuncCall:
        args = (arg, new, start) if count is None else (arg, new, start, count)
        return sql_function(word, "overlay", *args)

    def position(self, word: Token, needle: ast.RawExpr, haystack: ast.RawExpr) -> ast.FuncCall:
        return sql_function(word, "position", haystack, needle)

    def substring_from_for(
        self, word: Token, arg: ast.RawExpr, start: ast.RawExpr, count: ast.RawExpr
    ) -> ast.FuncCall:
        return sql_function(word, "substring", arg, start, count)

    def substring_for_from(
        self, word: Token, arg: ast.RawExpr, count: ast.RawExpr, start: ast.RawExpr
    ) -> ast.FuncCall:
        return sql_function(word, "substring", arg, start, count)

    def substring_from(self, word: Token, arg: ast.RawExpr, start: ast.RawExpr) -> ast.FuncCall:
        return sql_function(word, "substring", arg, start)

    def substring_for(self, word: Token, arg: ast.RawExpr, count: ast.RawExpr) -> ast.FuncCall:
        """`FOR n` alone begins at 1, and n is an int4: else substring(text, text, text) might
        be meant.
        """
        as_int4 = ast.TypeCast(count, ast.TypeName(system_name("int4")))
        return sql_function(word, "substring", arg, ast.Constant("integer", "1"), as_int4)

    def substring_similar(
        self, word: Token, arg: ast.RawExpr, pattern: ast.RawExpr, escape: ast.RawExpr
    ) -> ast.FuncCall:
        return sql_function(word, "substring", arg, pattern, escape)

    def substring_call(
        self, word: Token, args: tuple[ast.RawExpr | ast.NamedArg, ...] | None
    ) -> ast.FuncCall:
        return ast.FuncCall(("substring",), args or (), pos=start_of(word))

    def overlay_call(
        self, word: Token, args: tuple[ast.RawExpr | ast.NamedArg, ...] | None
    ) -> ast.FuncCall:
        return ast.FuncCall(("overlay",), args or (), pos=start_of(word))

    def treat(self, word: Token, arg: ast.RawExpr, type_name: ast.TypeName) -> ast.FuncCall:
        return ast.FuncCall(system_name(type_name.names[-1]), (arg,), pos=start_of(word))

    def trim_side(self, word: Token) -> str:
        return {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}[word.type]

    def trim_args(self, args: tuple[ast.RawExpr, ...]) -> tuple[ast.RawExpr, ...]:
        return args

    def trim_from(
        self, characters: ast.RawExpr, args: tuple[ast.RawExpr, ...]
    ) -> tuple[ast.RawExpr, ...]:
        return (*args, characters)

    def trim(
        self, word: Token, function: str | None, args: tuple[ast.RawExpr, ...]
    ) -> ast.FuncCall:
        return sql_function(word, function or "btrim", *args)

    def nullif(self, word: Token, left: ast.RawExpr, right: ast.RawExpr) -> ast.AExpr:
        return ast.AExpr("nullif", ("=",), left, right, pos=start_of(word))

    def coalesce(self, word: Token, args: tuple[ast.RawExpr, ...]) -> ast.CoalesceExpr:
        return ast.CoalesceExpr(args, pos=start_of(word))

    def greatest(self, word: Token, args: tuple[ast.RawExpr, ...]) -> ast.MinMaxExpr:
        return ast.MinMaxExpr("greatest", args, pos=start_of(word))

    def least(self, word: Token, args: tuple[ast.RawExpr, ...]) -> ast.MinMaxExpr:
        return ast.MinMaxExpr("least", args, pos=start_of(word))

    def expr_list(self, *exprs: ast.RawExpr) -> tuple[ast.RawExpr, ...]:
        return exprs

    # -- types

    def typename(self, base: ast.TypeName, bounds: tuple[int, ...] = ()) -> ast.TypeName:
        return dataclasses.replace(base, array_bounds=bounds) if bounds else base

    def typename_array(self, base: ast.TypeName, bound: Token | None = None) -> ast.TypeName:
        return dataclasses.replace(base, array_bounds=(-1 if bound is None else int(bound),))

    def typename_setof_array(self, base: ast.TypeName, bound: Token | None = None) -> ast.TypeName:
        return dataclasses.replace(self.typename_array(base, bound), is_setof=True)

    def typename_setof(self, base: ast.TypeName, bounds: tuple[int, ...] = ()) -> ast.TypeName:
        return dataclasses.replace(base, array_bounds=bounds, is_setof=True)

    def array_bounds(self, *bounds: int) -> tuple[int, ...]:
        return bounds

    def array_bound(self, bound: Token | None = None) -> int:
        return -1 if bound is None else int(bound)

    def type_attrs(self, *names: Token) -> tuple[Token, ...]:
        return names

    def type_modifiers(self, modifiers: tuple[ast.RawExpr, ...]) -> tuple[ast.RawExpr, ...]:
        return modifiers

    def generic_type(
        self, name: Token, *rest: tuple[Token, ...] | tuple[ast.RawExpr, ...] | None
    ) -> ast.TypeName:
        *attrs, modifiers = rest
        names = (name, *(attrs[0] if attrs and attrs[0] else ()))
        return ast.TypeName(
            tuple(map(str, names)),
            cast("tuple[ast.RawExpr, ...]", modifiers or ()),
            pos=start_of(name),
        )

    def _type(
        self, word: Token, name: str, modifiers: tuple[ast.RawExpr, ...] = ()
    ) -> ast.TypeName:
        return ast.TypeName(system_name(name), modifiers, pos=start_of(word))

    def type_int4(self, word: Token) -> ast.TypeName:
        return self._type(word, "int4")

    def type_int2(self, word: Token) -> ast.TypeName:
        return self._type(word, "int2")

    def type_int8(self, word: Token) -> ast.TypeName:
        return self._type(word, "int8")

    def type_float4(self, word: Token) -> ast.TypeName:
        return self._type(word, "float4")

    def type_float8(self, word: Token) -> ast.TypeName:
        return self._type(word, "float8")

    def type_float(self, word: Token, precision: Token | None) -> ast.TypeName:
        if precision is None:
            return self._type(word, "float8")
        bits = int(precision)
        if bits < 1:
            raise InvalidParameterValue(
                "precision for type float must be at least 1 bit", position=start_of(precision)
            )
        if bits > 53:
            raise InvalidParameterValue(
                "precision for type float must be less than 54 bits", position=start_of(precision)
            )
        return self._type(word, "float4" if bits <= 24 else "float8")

    def type_numeric(self, word: Token, modifiers: tuple[ast.RawExpr, ...] | None) -> ast.TypeName:
        return self._type(word, "numeric", modifiers or ())

    def type_bool(self, word: Token) -> ast.TypeName:
        return self._type(word, "bool")

    def type_json(self, word: Token) -> ast.TypeName:
        return self._type(word, "json")

    def type_bit(self, word: Token, length: tuple[ast.RawExpr, ...] | None) -> ast.TypeName:
        return self._type(word, "bit", length or (ast.Constant("integer", "1"),))

    def type_varbit(self, word: Token, length: tuple[ast.RawExpr, ...] | None) -> ast.TypeName:
        return self._type(word, "varbit", length or ())

    def character_type(self, *words: Token | None) -> tuple[Token, bool]:
        present = [word for word in words if word is not None]
        return present[0], present[-1].type in ("VARYING", "VARCHAR")

    def type_character(self, kind: tuple[Token, bool], length: Token | None) -> ast.TypeName:
        word, is_varying = kind
        modifiers = () if length is None else (self.integer(length),)
        if is_varying:
            return self._type(word, "varchar", modifiers)
        return self._type(word, "bpchar", modifiers or (ast.Constant("integer", "1"),))

    def time_zone(self, word: Token, *rest: Token) -> bool:
        return word.type == "WITH_LA"

    def _datetime(
        self, word: Token, name: str, precision: Token | None, with_zone: bool | None
    ) -> ast.TypeName:
        modifiers = () if precision is None else (self.integer(precision),)
        return self._type(word, f"{name}tz" if with_zone else name, modifiers)

    def type_timestamp(
        self, word: Token, precision: Token | None, with_zone: bool | None
    ) -> ast.TypeName:
        return self._datetime(word, "timestamp", precision, with_zone)

    def type_time(
        self, word: Token, precision: Token | None, with_zone: bool | None
    ) -> ast.TypeName:
        return self._datetime(word, "time", precision, with_zone)

    def interval_second(self, word: Token, *rest: Token) -> tuple[Token, ...]:
        return (word, *rest)

    def interval_fields(self, *words: Token | tuple[Token, ...]) -> tuple[ast.RawExpr, ...]:
        """`DAY TO SECOND(3)` as the type modifier's two numbers: a mask of fields, a precision."""
        flat = [w for word in words for w in (word if isinstance(word, tuple) else (word,))]
        names = [str(word) for word in flat if word.type not in ("TO", "LPAR", "RPAR", "ICONST")]
        first, last = _INTERVAL_ORDER.index(names[0]), _INTERVAL_ORDER.index(names[-1])
        mask = sum(1 << _INTERVAL_BITS[field] for field in _INTERVAL_ORDER[first : last + 1])
        precision = [word for word in flat if word.type == "ICONST"]
        return (ast.Constant("integer", str(mask)), *map(self.integer, precision))

    def interval_type(self, word: Token, fields: tuple[ast.RawExpr, ...] | None) -> ast.TypeName:
        return self._type(word, "interval", fields or ())

    def interval_type_precision(self, word: Token, precision: Token) -> ast.TypeName:
        full_range = ast.Constant("integer", str(_INTERVAL_FULL_RANGE))
        return self._type(word, "interval", (full_range, self.integer(precision)))

    # -- names

    def any_name(self, *parts: Token) -> tuple[Token, ...]:
        return parts

    def any_name_list(self, *names: tuple[Token, ...]) -> tuple[tuple[Token, ...], ...]:
        return names

    def role_name(self, name: Token) -> Token:
        if name == "none":
            raise ReservedName('role name "none" is reserved', position=start_of(name))
        return name

    def name_list(self, *names: Token) -> tuple[Token, ...]:
        return names

    def qualified_name(
        self, name: Token, indirection: tuple[ast.Subscript | Token, ...] | None
    ) -> ast.RangeVar:
        """`catalog.schema.name` (makeRangeVarFromQualifiedName in gram.y)."""
        parts = [str(name), *map(str, names_only(indirection or ()))]
        if len(parts) > 3:
            raise SqlSyntaxError(
                f"improper qualified name (too many dotted names): {'.'.join(parts)}",
                position=start_of(name),
            )
        catalog, schema = ([None, None, *parts[:-1]])[-2:]
        return ast.RangeVar(parts[-1], schema, catalog, pos=start_of(name))

    def qualified_name_list(self, *names: ast.RangeVar) -> tuple[ast.RangeVar, ...]:
        return names


def names_only(indirection: tuple[ast.Subscript | Token, ...]) -> tuple[Token, ...]:
    """The parts of a dotted name.

    Raises:
        ErrorAtNextToken: a subscript or `*` is among them (check_func_name in gram.y).
    """
    for item in indirection:
        if isinstance(item, ast.Subscript) or item.type == "STAR":
            raise ErrorAtNextToken("syntax error")
    return cast("tuple[Token, ...]", indirection)


def _plain(items: tuple[ast.Subscript | Token, ...]) -> tuple[ast.Subscript | str, ...]:
    return tuple(item if isinstance(item, ast.Subscript) else str(item) for item in items)
