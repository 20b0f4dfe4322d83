"""Parse SQL text with Lark's LALR parser and `grammar/`; report errors like PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lark import Token, UnexpectedToken
from lark.parsers.lalr_parser_state import ParserState

from replctl.errors import (
    FeatureNotSupported,
    Notice,
    PostgresError,
    SqlSyntaxError,
)
from replctl.parser import ast
from replctl.parser.lookahead import finish_rules, raise_earlier_error
from replctl.parser.quoted import check_characters
from replctl.parser.refused_form import REFUSED, refusal_message
from replctl.parser.syntax_error import ErrorAtNextToken, MisplacedToken, error_at_token
from replctl.parser.tables import full_parser, parser
from replctl.types.identifier import MAX_BYTES, clipped_with_notice

_SURELY_SHORT = MAX_BYTES // 4  # in characters, which have up to four bytes each


def parse(
    text: str, on_notice: Callable[[Notice], None] | None = None
) -> tuple[ast.Statement, ...]:
    """Return the statements of `text`, which semicolons separate; skip empty statements.

    Args:
        on_notice: receives a notice for each truncated name.

    Raises:
        CharacterNotInRepertoire: the text has bytes that are not valid characters (22021).
        SqlSyntaxError: the text is not SQL; the error has the position of the token that cannot
            follow (42601).
        FeatureNotSupported: replctl does not support a statement of PostgreSQL (0A000).
    """
    check_characters(text)
    return _parse(text, "start", on_notice)  # type: ignore[no-any-return]


def parse_statement(text: str) -> ast.Statement:
    """Return the only statement of `text`.

    Raises:
        SqlSyntaxError: see `parse`; or there are no statements, or several.
    """
    statements = parse(text)
    if len(statements) != 1:
        raise SqlSyntaxError("exactly one statement was expected")
    return statements[0]


def parse_expression(text: str) -> ast.RawExpr:
    """Return the expression in `text`.

    Raises:
        SqlSyntaxError: see `parse`.
    """
    return _parse(text, "expression")  # type: ignore[no-any-return]


def _parse(text: str, start: str, on_notice: Callable[[Notice], None] | None = None) -> Any:
    state = parser().start(text, start)
    try:
        return _run(state, text, on_notice)
    except UnexpectedToken as error:
        raise _refusal(text, start, error.token, state) from None


def _run(
    state: ParserState[int], text: str, on_notice: Callable[[Notice], None] | None = None
) -> Any:
    token = None
    try:
        for token in state.lexer.lex(state):  # type: ignore[no-untyped-call]
            if token.type == "IDENT" and len(token) > _SURELY_SHORT:
                token = _cut(token, on_notice)
            state.feed_token(token)
        token = Token("$END", "", len(text), end_pos=len(text))
        return state.feed_token(token, is_end=True)
    except ErrorAtNextToken as error:
        raise error_at_token(text, token, error.message) from None
    except MisplacedToken as error:
        raise error_at_token(text, error.token) from None


def _cut(token: Token, on_notice: Callable[[Notice], None] | None) -> Token:
    """Return a name truncated to the length that a catalog can store."""
    name = clipped_with_notice(str(token), on_notice)
    return token if name == token else Token.new_borrow_pos(token.type, name, token)


def _refusal(text: str, start: str, token: Token, state: ParserState[int]) -> PostgresError:
    """Return the error for `text`, if replctl's grammar stops at `token`.

    The rest of PostgreSQL's grammar decides whether the statement is unsupported or is not SQL.
    """
    try:
        raise_earlier_error(state)
        tree = _run(full_parser().start(text, start), text)
    except MisplacedToken as error:  # the full grammar has found the wrong token
        return error_at_token(text, error.token)
    except UnexpectedToken as error:  # not SQL for either grammar
        if error.token.start_pos == token.start_pos:
            try:
                finish_rules(state)
            except ErrorAtNextToken as earlier:  # an open rule explains the error better
                return error_at_token(text, token, earlier.message)
            except MisplacedToken as earlier:
                return error_at_token(text, earlier.token)
        return error_at_token(text, error.token)
    for part in tree.iter_subtrees_topdown():
        if part.data.startswith(REFUSED):
            return FeatureNotSupported(refusal_message(part.data), position=part.meta.start_pos)
    return error_at_token(text, token)
