"""Syntax errors like PostgreSQL's, and exceptions of builders, which do not have the text."""

from __future__ import annotations

from lark import Token

from replctl.errors import SqlSyntaxError


class MisplacedToken(Exception):
    """A token that the grammar allows here, but that must not follow the preceding tokens."""

    def __init__(self, token: Token) -> None:
        super().__init__(token)
        self.token = token


class ErrorAtNextToken(Exception):
    """An error that PostgreSQL finds only after it has read the next token.  The error points at
    that token (yyerror).
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def error_at_token(text: str, token: Token | None, message: str = "syntax error") -> SqlSyntaxError:
    """Return the error `message` at `token`, or at the end of `text` if `token` is None."""
    if token is None or token.type == "$END":
        return SqlSyntaxError(f"{message} at end of input", position=len(text))
    written = text[token.start_pos : token.end_pos]
    return SqlSyntaxError(f'{message} at or near "{written}"', position=token.start_pos or 0)


def unterminated(what: str, text: str, start: int) -> SqlSyntaxError:
    return SqlSyntaxError(f'unterminated {what} at or near "{text[start:]}"', position=start)
