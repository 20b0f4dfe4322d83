"""Build the nodes of functions in expression.lark, including those with their own syntax."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from lark import Token

from replctl.errors import SqlSyntaxError
from replctl.parser import ast
from replctl.parser.build_parts import (
    check_no_keyword,
    names_only,
    sql_function,
    start_of,
    system_name,
)


class _WithinGroup(NamedTuple):
    word: Token
    order_by: tuple[ast.SortBy, ...]


class FunctionBuilder:
    """Builds the nodes of function calls.  Each rule or alias has a method."""

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

    def xml_passing(self, before: object, document: ast.RawExpr, after: object) -> ast.RawExpr:
        return document

    def xmlexists(self, word: Token, path: ast.RawExpr, document: ast.RawExpr) -> ast.FuncCall:
        return sql_function(word, "xmlexists", path, document)

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
        """Return SUBSTRING with only `FOR n`, which begins at 1.

        n is cast to int4, because otherwise the call could mean substring(text, text, text).
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

    def json_object_call(
        self, word: Token, args: tuple[ast.RawExpr | ast.NamedArg, ...]
    ) -> ast.FuncCall:
        return ast.FuncCall(system_name("json_object"), args, pos=start_of(word))

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
