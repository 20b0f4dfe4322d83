"""The results of expressions on a server, row by row (data/*.tsv), and the analysed expressions."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from replctl.expr import nodes
from replctl.expr.analyze import Analyzer
from replctl.expr.builtin_environment import BuiltinEnvironment
from replctl.expr.collate import assign_collations
from replctl.expr.context import ExprContext
from replctl.expr.environment import Column
from replctl.expr.scope import RelationScope
from replctl.parser import ast
from replctl.parser.parse import parse_statement
from replctl.types import builtin

DATA = Path(__file__).parent / "data"
TOPICS = sorted(path.stem for path in (DATA / "inputs").glob("*.txt"))


@dataclass(frozen=True)
class Golden:
    """An expression, with `=text`, `!SQLSTATE` or NULL for each row."""

    topic: str
    expression: str
    results: tuple[str, ...]


def golden_lines(topic: str) -> list[Golden]:
    """Return the lines of data/TOPIC.tsv."""
    return [
        Golden(topic, expression or "", tuple(result or "" for result in results))
        for expression, *results in _lines(topic)
    ]


@cache
def columns() -> tuple[Column, ...]:
    """Return the columns of table et."""
    return tuple(
        Column(name, i, type_, int(typmod), builtin.types()[type_].collation)
        for i, (name, type_, typmod) in enumerate(_lines("columns"), start=1)
        if name and type_ and typmod
    )


def rows() -> list[list[str | None]]:
    """Return the rows of table et, in canonical text."""
    return [list(row) for row in _lines("rows")]


def analyzed(expression: str, context: ExprContext = ExprContext.CHECK) -> nodes.Expr:
    """Return the typed expression over table et.

    Raises:
        PostgresError: replctl does not accept the expression.
    """
    statement = parse_statement(f"SELECT {expression}")
    assert isinstance(statement, ast.SelectStmt)
    (target,) = statement.targets
    assert target.value is not None
    environment, scope = BuiltinEnvironment(), RelationScope("et", columns(), "record", "public")
    analyzer = Analyzer(environment, scope, context)
    return assign_collations(environment, analyzer.expr(target.value))


def _lines(name: str) -> Iterator[list[str | None]]:
    text = (DATA / f"{name}.tsv").read_text(encoding="utf-8")
    for row in csv.reader(text.split("\n")[:-1], delimiter="\t", quoting=csv.QUOTE_NONE):
        yield [_unescaped(field) for field in row]


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}


def _unescaped(field: str) -> str | None:
    if field == "\\N":
        return None
    result, i = [], 0
    while i < len(field):
        if field[i] == "\\":
            i += 1
            result.append(_ESCAPES.get(field[i], field[i]))
        else:
            result.append(field[i])
        i += 1
    return "".join(result)
