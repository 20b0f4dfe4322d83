"""The LALR parsers of `grammar/`, whose tables are kept in the user's cache: to make them takes seconds."""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import lark
from lark import Lark, v_args
from platformdirs import user_cache_path

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
#: What the files above leave of PostgreSQL's SQL, for errors.
UNSUPPORTED_FILE = "unsupported"
START_RULES = ["start", "expression"]


@v_args(inline=True)
class _Builder(ExpressionBuilder, QueryBuilder, PublicationBuilder, TableBuilder, UtilityBuilder):
    """Rule by rule from Lark's children to nodes: a method is named as its rule or alias."""

    def start(self, *statements: ast.Statement | None) -> tuple[ast.Statement, ...]:
        return tuple(statement for statement in statements if statement is not None)


@cache
def parser() -> Lark:
    """The parser of what replctl has; its results are nodes."""
    return _parser(GRAMMAR_FILES, transformer=_Builder())


@cache
def full_parser() -> Lark:
    """The parser of what PostgreSQL has; its results are Lark's trees."""
    return _parser((*GRAMMAR_FILES, UNSUPPORTED_FILE), propagate_positions=True)


def _parser(files: tuple[str, ...], **options: Any) -> Lark:
    grammar = "\n".join((_grammar_folder() / f"{name}.lark").read_text("utf-8") for name in files)
    identity = "\0".join((grammar, lark.__version__, sys.version))
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    tables = user_cache_path("replctl") / f"grammar-{digest}.pickle"
    try:
        with tables.open("rb") as file:
            return _load(file, options)
    except FileNotFoundError:
        pass
    except Exception:  # whatever a damaged pickle raises: it can be made again
        logger.warning(
            "the parser's tables in %s cannot be read and are made again", tables, exc_info=True
        )
    made = Lark(
        grammar,
        parser="lalr",
        lexer=PostgresLexer,
        start=START_RULES,
        maybe_placeholders=True,
        **options,
    )
    _save(made, tables, options)
    return made


def _load(file: Any, options: dict[str, Any]) -> Lark:
    instance = Lark.__new__(Lark)
    return instance._load(pickle.load(file), **options)


def _save(made: Lark, tables: Path, options: dict[str, Any]) -> None:
    """Write the tables beside their place and move them there, so that no reader sees half of them."""
    try:
        tables.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=tables.parent, delete=False) as file:
            made.save(file, exclude_options=options)
        os.replace(file.name, tables)
    except OSError as error:  # a read-only home: parse without the cache
        logger.debug("the parser's tables are not kept: %s", error)


def _grammar_folder() -> Path:
    """`grammar/`: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "grammar"
    return installed if installed.is_dir() else package.parent / "grammar"
