"""SQL text to statements: Lark's LALR parser over `grammar/`, and PostgreSQL's syntax errors."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import lark
from lark import Lark, UnexpectedToken, v_args
from platformdirs import user_cache_path

from replctl.errors import FeatureNotSupported, PostgresError, SqlSyntaxError
from replctl.parser import ast
from replctl.parser.build_expression import ExpressionBuilder
from replctl.parser.build_publication import PublicationBuilder
from replctl.parser.build_query import QueryBuilder
from replctl.parser.build_table import TableBuilder
from replctl.parser.build_utility import UtilityBuilder
from replctl.parser.scan import PostgresLexer

logger = logging.getLogger(__name__)

GRAMMAR_FILES = (
    "replctl",
    "lexical",
    "keywords",
    "expression",
    "query",
    "publication",
    "subscription",
    "table",
    "utility",
)

#: Commands of PostgreSQL that the grammar does not have: they are refused by name, not as syntax errors.
_UNSUPPORTED = re.compile(
    r"""\s*(?P<command>
      (?:CREATE|ALTER|DROP)(?:\s+OR\s+REPLACE)?\s+(?:(?:TEMP|TEMPORARY|RECURSIVE|CONSTRAINT|TRUSTED)\s+)*
        (?P<object>ACCESS\s+METHOD|AGGREGATE|CAST|COLLATION|CONVERSION|DEFAULT\s+PRIVILEGES|DOMAIN
        |EVENT\s+TRIGGER|EXTENSION|FOREIGN\s+DATA\s+WRAPPER|FOREIGN\s+TABLE|FUNCTION|GROUP|INDEX|LANGUAGE
        |LARGE\s+OBJECT|MATERIALIZED\s+VIEW|OPERATOR(?:\s+(?:CLASS|FAMILY))?|OWNED|POLICY|PROCEDURE|ROLE
        |ROUTINE|RULE|SCHEMA|SEQUENCE|SERVER|STATISTICS|SYSTEM|TABLESPACE|TEXT\s+SEARCH|TRANSFORM|TRIGGER
        |TYPE|USER(?:\s+MAPPING)?|VIEW)
      |ANALY[SZ]E|CALL|CHECKPOINT|CLOSE|CLUSTER|COMMENT|COPY|DEALLOCATE|DECLARE|DISCARD|DO|EXECUTE|EXPLAIN
      |FETCH|GRANT|IMPORT\s+FOREIGN\s+SCHEMA|LISTEN|LOAD|LOCK|MERGE|MOVE|NOTIFY|PREPARE|REASSIGN\s+OWNED
      |REFRESH\s+MATERIALIZED\s+VIEW|REINDEX|REVOKE|SECURITY\s+LABEL|SET\s+CONSTRAINTS|UNLISTEN|VACUUM
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)


@v_args(inline=True)
class _Builder(ExpressionBuilder, QueryBuilder, PublicationBuilder, TableBuilder, UtilityBuilder):
    """Rule by rule from Lark's children to nodes: a method is named as its rule or alias."""

    def start(self, *statements: ast.Statement | None) -> tuple[ast.Statement, ...]:
        return tuple(statement for statement in statements if statement is not None)


def parse(text: str) -> tuple[ast.Statement, ...]:
    """The statements of `text`, which semicolons separate; empty ones are left out.

    Raises:
        SqlSyntaxError: the text is not SQL, with the position of the token that cannot follow (42601).
        FeatureNotSupported: a command of PostgreSQL that replctl does not have (0A000).
    """
    try:
        return _parser().parse(text)  # type: ignore[return-value]
    except UnexpectedToken as error:
        raise _syntax_error(text, error.token) from None
    except (
        lark.exceptions.VisitError
    ) as error:  # pragma: no cover - builders raise through the parser
        raise error.orig_exc from error


def parse_statement(text: str) -> ast.Statement:
    """The one statement of `text`.

    Raises:
        SqlSyntaxError: as `parse`, or because there is not exactly one.
    """
    statements = parse(text)
    if len(statements) != 1:
        raise SqlSyntaxError("exactly one statement was expected")
    return statements[0]


def parse_expression(text: str) -> ast.RawExpr:
    """The expression that `text` is; positions in it count from the start of `text`.

    Raises:
        SqlSyntaxError: as `parse`.
    """
    prefix = "SELECT "
    try:
        statement = parse_statement(prefix + text)
    except PostgresError as error:
        error.position -= len(prefix)
        raise
    assert isinstance(statement, ast.SelectStmt)
    (target,) = statement.targets
    assert target.value is not None
    return target.value


def _syntax_error(text: str, token: lark.Token) -> PostgresError:
    unsupported = _UNSUPPORTED.match(text)
    if unsupported is not None:
        command = re.sub(r"\s+", " ", unsupported["command"]).upper()
        return FeatureNotSupported(
            f"{command} is not supported", position=unsupported.start("command")
        )
    if token.type == "$END":
        return SqlSyntaxError("syntax error at end of input", position=len(text))
    written = text[token.start_pos : token.end_pos]
    return SqlSyntaxError(f'syntax error at or near "{written}"', position=token.start_pos or 0)


@cache
def _parser() -> Lark:
    """The parser; its tables are kept in the user's cache directory, since to build them takes seconds."""
    grammar = "\n".join(
        (_grammar_folder() / f"{name}.lark").read_text("utf-8") for name in GRAMMAR_FILES
    )
    identity = "\0".join((grammar, lark.__version__, sys.version))
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    tables = user_cache_path("replctl") / f"grammar-{digest}.pickle"
    try:
        with tables.open("rb") as file:
            return _loaded(file)
    except FileNotFoundError:
        pass
    except Exception:  # whatever a damaged pickle raises: it can be made again
        logger.warning(
            "the parser's tables in %s cannot be read and are made again", tables, exc_info=True
        )
    parser = Lark(
        grammar, parser="lalr", lexer=PostgresLexer, transformer=_Builder(), maybe_placeholders=True
    )
    _save(grammar, tables)
    return parser


def _loaded(file: Any) -> Lark:
    load: Callable[..., Lark] = Lark.load  # type: ignore[assignment]
    instance = Lark.__new__(Lark)
    return instance._load(file, transformer=_Builder())


def _save(grammar: str, tables: Path) -> None:
    """Write the tables beside their place and move them there, so that no reader sees half of them."""
    plain = Lark(grammar, parser="lalr", lexer=PostgresLexer, maybe_placeholders=True)
    try:
        tables.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=tables.parent, delete=False) as file:
            plain.save(file)
        os.replace(file.name, tables)
    except OSError as error:  # a read-only home: parse without the cache
        logger.debug("the parser's tables are not kept: %s", error)


def _grammar_folder() -> Path:
    """`grammar/`: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "grammar"
    return installed if installed.is_dir() else package.parent / "grammar"
