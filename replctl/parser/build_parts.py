"""The common parts of the builders: positions, names, and functions with a syntax of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeAlias, cast

from lark import Token

from replctl.errors import SqlSyntaxError
from replctl.parser import ast
from replctl.parser.syntax_error import ErrorAtNextToken, MisplacedToken
from replctl.types.builtin import keywords

Names: TypeAlias = tuple[Token, ...]
Options: TypeAlias = tuple[ast.DefElem, ...]


class Collation(NamedTuple):
    """The COLLATE clause of a column; `word` is the token COLLATE."""

    word: Token
    name: tuple[str, ...]


def collation_name(clause: Collation | None) -> tuple[str, ...]:
    """Return the name in a COLLATE clause; () if there is no clause."""
    return () if clause is None else clause.name


def with_collation(column: ast.ColumnDef, clause: Collation | None) -> ast.ColumnDef:
    """Return a column with the collation in a COLLATE clause."""
    if clause is None:
        return column
    return replace(column, collation=clause.name, collation_pos=start_of(clause.word))


def name_texts(names: Names | None) -> tuple[str, ...]:
    """Return names as texts; () if there is no clause."""
    return tuple(map(str, names or ()))


def relation_name(names: Names) -> ast.RangeVar:
    """Return the relation `catalog.schema.name` (makeRangeVarFromAnyName in gram.y)."""
    parts, pos = name_texts(names), start_of(names[0])
    if len(parts) > 3:
        raise SqlSyntaxError(
            f"improper qualified name (too many dotted names): {'.'.join(parts)}", position=pos
        )
    catalog, schema = ([None, None, *parts[:-1]])[-2:]
    return ast.RangeVar(parts[-1], schema, catalog, pos=pos)


def optional_text(token: Token | None) -> str | None:
    """Return a token as text; None if there is no token."""
    return None if token is None else str(token)


def role_name(role: Token) -> str:
    """Return the name of a role; a SpecialRole for a keyword such as CURRENT_ROLE."""
    is_special = role.type in ("CURRENT_ROLE", "CURRENT_USER", "SESSION_USER")
    return ast.SpecialRole(role) if is_special else str(role)


def start_of(token: Token) -> int:
    """Return the offset of a token; -1 if it does not come from a text."""
    return -1 if token.start_pos is None else token.start_pos


def integer_constant(token: Token) -> ast.Constant:
    return ast.Constant("integer", str(token), pos=start_of(token))


def check_no_keyword(name: Token) -> None:
    """Refuse an unquoted keyword where gram.y has IDENT instead of ColId.

    Raises:
        MisplacedToken: the name is an unreserved keyword.
    """
    is_quoted = (name.end_pos or 0) - start_of(name) != len(name)
    if not is_quoted and name in keywords():
        raise MisplacedToken(name)


def system_name(name: str) -> tuple[str, str]:
    """Return the qualified name of a built-in function or type; the search path does not matter."""
    return ("pg_catalog", name)


def sql_function(word: Token, name: str, *args: ast.RawExpr) -> ast.FuncCall:
    """Return a call of a function that SQL spells with keywords; ruleutils.c also prints it so."""
    return ast.FuncCall(system_name(name), args, format="sql", pos=start_of(word))


def leftmost(expr: ast.RawExpr) -> int:
    """Return the offset at which an expression begins.  Parentheses around it do not count, because
    nodes do not have them.
    """
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


def names_only(indirection: tuple[ast.Subscript | Token, ...]) -> tuple[Token, ...]:
    """Return the parts of a dotted name.

    Raises:
        ErrorAtNextToken: the name has a subscript or `*` (check_func_name in gram.y).
    """
    for item in indirection:
        if isinstance(item, ast.Subscript) or item.type == "STAR":
            raise ErrorAtNextToken("syntax error")
    return cast("tuple[Token, ...]", indirection)
