"""The LALR parsers of `grammar/`.  Lark needs seconds to build their tables; the user's cache keeps
them.

The cache has each row of the table, and each rule, as a pickle of its own.  A statement passes a
hundredth of the 4,000 states, and loads only these rows and their rules.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import lark
from lark import Lark, Tree
from lark.grammar import Rule
from lark.lexer import LexerThread, TerminalDef
from lark.parse_tree_builder import ParseTreeBuilder
from lark.parsers.lalr_analysis import Action, IntParseTable, Reduce, Shift
from lark.parsers.lalr_parser_state import ParseConf, ParserState

from replctl.cache_directory import cache_directory
from replctl.parser import ast
from replctl.parser.build_alter_table import AlterTableBuilder
from replctl.parser.build_constraint import ConstraintBuilder
from replctl.parser.build_copy import CopyBuilder
from replctl.parser.build_create import CreateBuilder
from replctl.parser.build_domain import DomainBuilder
from replctl.parser.build_expression import ExpressionBuilder
from replctl.parser.build_index import IndexBuilder
from replctl.parser.build_object import ObjectBuilder
from replctl.parser.build_policy import PolicyBuilder
from replctl.parser.build_publication import PublicationBuilder
from replctl.parser.build_query import QueryBuilder
from replctl.parser.build_role import RoleBuilder
from replctl.parser.build_sequence import SequenceBuilder
from replctl.parser.build_table import TableBuilder
from replctl.parser.build_utility import UtilityBuilder
from replctl.parser.build_variable import VariableBuilder
from replctl.parser.scan import PostgresLexer
from replctl.private_file import is_of_this_user, make_private_directory

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
    "role",
    "policy",
    "copy",
)
#: The rest of PostgreSQL's SQL, which is only for errors.
UNSUPPORTED_FILE = "unsupported"
START_RULES = ["start", "expression"]

_FORMAT = "pickled rows, pickled rules, terminals"

#: A row of the table: an action for each type of token or rule that can follow.
_Row = dict[str, tuple[Action, Any]]


class _Builder(
    ExpressionBuilder,
    QueryBuilder,
    PublicationBuilder,
    TableBuilder,
    ConstraintBuilder,
    SequenceBuilder,
    AlterTableBuilder,
    IndexBuilder,
    CreateBuilder,
    DomainBuilder,
    ObjectBuilder,
    VariableBuilder,
    UtilityBuilder,
    RoleBuilder,
    PolicyBuilder,
    CopyBuilder,
):
    """Converts Lark's children to nodes.  Each rule or alias has a method."""

    def start(self, *statements: ast.Statement | None) -> tuple[ast.Statement, ...]:
        return tuple(statement for statement in statements if statement is not None)


class _Callbacks:
    """Calls the builder's methods with a rule's children as separate arguments, like Lark's
    v_args(inline=True).

    v_args would wrap each method of each class, which takes longer than the rest of this module's
    start.
    """

    def __init__(self, builder: _Builder) -> None:
        self._builder = builder

    def __getattr__(self, name: str) -> Callable[[list[Any]], Any]:
        method = getattr(self._builder, name)
        return lambda children: method(*children)


class _Tables(NamedTuple):
    """The cached data.

    Attributes:
        rows: for each state a pickled dict from the type of a token or rule to the action: the next
            state for a shift, ~i for a reduction by rule i.
        rules: pickled rules.
        start_states, end_states: the states by start rule.
    """

    rows: dict[int, bytes]
    rules: list[bytes]
    start_states: dict[str, int]
    end_states: dict[str, int]
    terminals: list[TerminalDef]


class _Rules(dict[int, Rule]):
    """The rules by their numbers, each loaded at its first use."""

    def __init__(self, pickles: list[bytes]) -> None:
        self._pickles = pickles

    def __missing__(self, number: int) -> Rule:
        return self.setdefault(number, pickle.loads(self._pickles[number]))


class _Rows(dict[int, _Row]):
    """The rows by their states, each loaded at its first use."""

    def __init__(self, pickles: dict[int, bytes], rules: _Rules) -> None:
        self._pickles = pickles
        self._rules = rules

    def __missing__(self, state: int) -> _Row:
        targets: dict[str, int] = pickle.loads(self._pickles[state])
        row = {
            kind: (Shift, target) if target >= 0 else (Reduce, self._rules[~target])
            for kind, target in targets.items()
        }
        return self.setdefault(state, row)


class _RuleCallbacks(dict[Any, Callable[..., Any]]):
    """Lark's callbacks by their rules, each made at its first use."""

    def __init__(self, callbacks: _Callbacks | None) -> None:
        self._callbacks = callbacks

    def __bool__(self) -> bool:  # Lark calls no callbacks of an empty dict
        return True

    def __missing__(self, rule: Rule) -> Callable[..., Any]:
        builder = ParseTreeBuilder(  # type: ignore[no-untyped-call]
            [rule], Tree, self._callbacks is None, False, True
        )
        made = builder.create_callback(self._callbacks)  # type: ignore[no-untyped-call]
        return self.setdefault(rule, made[rule])


class Parser:
    """Lark's LALR parser with the lexer and the callbacks of this package."""

    def __init__(self, tables: _Tables, callbacks: _Callbacks | None) -> None:
        rows = _Rows(tables.rows, _Rules(tables.rules))
        table = IntParseTable(rows, tables.start_states, tables.end_states)  # type: ignore[no-untyped-call]
        by_rule = _RuleCallbacks(callbacks)
        self._lexer = PostgresLexer(tables.terminals)
        self._configurations = {start: ParseConf(table, by_rule, start) for start in START_RULES}

    def start(self, text: str, start: str) -> ParserState[int]:
        """Return a parser at the start of `text`; `state.lexer.lex(state)` yields its tokens."""
        thread = LexerThread.from_text(self._lexer, text)
        return ParserState(self._configurations[start], thread)


@cache
def parser() -> Parser:
    """Return the parser of replctl's SQL; its results are nodes."""
    return _parser(GRAMMAR_FILES, _Callbacks(_Builder()))


@cache
def full_parser() -> Parser:
    """Return the parser of PostgreSQL's SQL; its results are Lark's trees."""
    return _parser((*GRAMMAR_FILES, UNSUPPORTED_FILE), None)


def _parser(files: tuple[str, ...], callbacks: _Callbacks | None) -> Parser:
    grammar = "\n".join((_grammar_folder() / f"{name}.lark").read_text("utf-8") for name in files)
    identity = "\0".join((_FORMAT, grammar, lark.__version__, sys.version))
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    cache = cache_directory()
    path = None if cache is None else cache / f"grammar-{digest}.pickle"
    with _without_collection():
        tables = None if path is None else _load(path)
        if tables is None:
            tables = _make(grammar)
            if path is not None:
                _save(tables, path)
        return Parser(tables, callbacks)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Disable garbage collection while creating many lasting objects, because it is slow then."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _make(grammar: str) -> _Tables:
    made = Lark(
        grammar,
        parser="lalr",
        lexer=PostgresLexer,
        start=START_RULES,
        maybe_placeholders=True,
    )
    table, rules = made.parser.parser._parse_table, list(made.rules)
    numbers = {rule: number for number, rule in enumerate(rules)}
    rows = {
        state: {
            str(kind): target if action is Shift else ~numbers[target]
            for kind, (action, target) in row.items()
        }
        for state, row in table.states.items()
    }
    return _Tables(
        {state: pickle.dumps(row, pickle.HIGHEST_PROTOCOL) for state, row in rows.items()},
        [pickle.dumps(_plain(rule), pickle.HIGHEST_PROTOCOL) for rule in rules],
        {str(start): state for start, state in table.start_states.items()},
        {str(start): state for start, state in table.end_states.items()},
        list(made.terminals),
    )


def _plain(rule: Rule) -> Rule:
    """Return the rule with plain strings as names.  A name from the grammar is a Token, whose
    comparison is slow Python code.
    """
    for symbol in (rule.origin, *rule.expansion):
        symbol.name = str(symbol.name)
    rule.alias = None if rule.alias is None else str(rule.alias)
    return rule


def _load(path: Path) -> _Tables | None:
    try:
        if not is_of_this_user(path.parent.stat()):  # a pickle can run code when it is loaded
            return None
        with path.open("rb") as file:
            if not is_of_this_user(os.fstat(file.fileno())):
                return None
            return _Tables(*pickle.load(file))
    except OSError:  # there is no file, or it belongs to another user
        return None
    except MemoryError:  # the tables cannot be made either
        raise
    except Exception:  # a damaged pickle: build the tables again
        logger.warning(
            "the parser's tables in %s cannot be read and are made again", path, exc_info=True
        )
        return None


def _save(tables: _Tables, path: Path) -> None:
    """Write the tables to a temporary file and rename it; no reader sees an incomplete file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        make_private_directory(path.parent)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            pickle.dump(tuple(tables), file, pickle.HIGHEST_PROTOCOL)
        os.replace(file.name, path)
    except OSError as error:  # a read-only home: parse without the cache
        logger.debug("the parser's tables are not kept: %s", error)


def _grammar_folder() -> Path:
    """Return `grammar/`: inside an installed package, next to the package in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "grammar"
    return installed if installed.is_dir() else package.parent / "grammar"
