"""Translated expressions have the results of a PostgreSQL server (data/*.tsv): first in Python
alone, then in Spark, many in one job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from golden_evaluation import TOPICS, Golden, analyzed, columns, golden_lines, rows

from replctl import spark
from replctl.adt import fold, interpret
from replctl.errors import FeatureNotSupported, PostgresError
from replctl.expr import nodes
from replctl.expr.context import ExprContext
from replctl.spark import SqlValue, StagedColumn, stored_sql, to_sql, untranslatable
from replctl.types import text

if TYPE_CHECKING:
    from replctl.spark.engine import Engine

#: The refused expressions of data/inputs.  docs/explanation/differences.md has the reasons.
REFUSED = {
    "jb @? '$.datetime(\"HH24\")'",
    "js IS JSON",
    "to_char(1, '9')",
    "ARRAY[[i4, 1], [2, 3]]",
    "ARRAY[ia, ia]",
}
#: A row with arrays of two dimensions, which a table of the lake cannot have.
_NESTED_ROW = 7
_NESTED = {column.attnum for column in columns() if column.name in ("ia", "ta")}
_BATCH = 60
#: Number of expressions with a failing row whose SQLSTATEs are compared.
_FAILURES = 40


def shown(value: str | None) -> str:
    """Return a result in the form of the golden lines."""
    return "NULL" if value is None else f"={value}"


def sql_of(expr: nodes.Expr) -> SqlValue:
    return to_sql(expr, lambda var: f"c{var.attnum}")


def translated() -> list[tuple[Golden, nodes.Expr, str]]:
    """Return all golden lines that are not refused, each with its expression and SQL."""
    found = []
    for topic in TOPICS:
        for line in golden_lines(topic):
            expr = simplified(line)
            if expr is not None and line.expression not in REFUSED:
                found.append((line, expr, stored_sql(sql_of(expr), expr.type, -1)))
    return found


def simplified(line: Golden) -> nodes.Expr | None:
    """Return the simplified expression; None if simplifying it raises an error for all rows."""
    expr = analyzed(line.expression)
    if len(set(line.results)) > 1 or not line.results[0].startswith("!"):
        return fold.simplified(expr)
    with suppress(PostgresError):
        return fold.simplified(expr)
    return None


def compared_rows(line: Golden, expr: nodes.Expr) -> Iterator[tuple[int, str]]:
    """Yield the number of each compared row, from 1, and the server's result."""
    attnums = {node.attnum for node in nodes.walk(expr) if isinstance(node, nodes.Var)}
    for number, result in enumerate(line.results, start=1):
        if number != _NESTED_ROW or not attnums & _NESTED:
            yield number, result


@pytest.mark.parametrize("topic", TOPICS)
def test_refused_expressions_are_the_documented_ones(topic: str) -> None:
    refused = {
        line.expression
        for line in golden_lines(topic)
        if untranslatable(analyzed(line.expression)) is not None
    }
    assert refused == {line.expression for line in golden_lines(topic)} & REFUSED


@pytest.mark.parametrize("topic", TOPICS)
def test_values_in_python(topic: str) -> None:
    values = [
        [
            None if item is None else text.parse(column.type, item)
            for column, item in zip(columns(), row, strict=True)
        ]
        for row in rows()
    ]
    different = []
    for line in golden_lines(topic):
        expr = simplified(line)
        if expr is None or line.expression in REFUSED:
            continue
        function = interpret.compiled(nodes.transform(expr, as_parameter))
        for number, (row, expected) in enumerate(zip(values, line.results, strict=True), start=1):
            try:
                value = function(row)
                actual = shown(None if value is None else text.render(expr.type, value))
            except PostgresError as error:
                actual = f"!{error.sqlstate}"
            if actual != expected:
                different.append((line.expression, number, expected, actual))
    assert different == []


def as_parameter(node: nodes.Node) -> nodes.Node | None:
    if isinstance(node, nodes.Var):
        return nodes.Param(node.attnum, node.type, node.typmod, node.collation)
    return None


@pytest.fixture(scope="module")
def table(engine: Engine) -> Iterator[str]:
    """Yield a view of table et."""
    stored = [
        [
            None if number == _NESTED_ROW and column.attnum in _NESTED else item
            for column, item in zip(columns(), row, strict=True)
        ]
        for number, row in enumerate(rows(), start=1)
    ]
    staged = [StagedColumn(f"c{c.attnum}", c.type, c.typmod) for c in columns()]
    local = spark.LocalRows(staged)
    local.add(stored)
    with local.view(engine) as view:
        yield view


@pytest.mark.spark
def test_values_in_spark(engine: Engine, table: str) -> None:
    """CASE leaves out rows for which the server raises an error, so it must not evaluate their
    values."""
    items = translated()
    different = []
    for start in range(0, len(items), _BATCH):
        batch = items[start : start + _BATCH]
        selected = []
        for i, (line, expr, sql) in enumerate(batch):
            keys = [
                str(number)
                for number, result in compared_rows(line, expr)
                if not result.startswith("!")
            ]
            selected.append(f"CASE WHEN c1 IN ({', '.join(keys) or '-1'}) THEN {sql} END AS x{i}")
        fields = [StagedColumn(f"x{i}", expr.type) for i, (_, expr, _) in enumerate(batch)]
        found = engine.fetch(
            f"SELECT c1, {', '.join(selected)} FROM {table}", [StagedColumn("c1", "int4"), *fields]
        )
        by_key = {int(row[0] or 0): row[1:] for row in found}
        for i, (line, expr, _) in enumerate(batch):
            for number, expected in compared_rows(line, expr):
                actual = shown(by_key[number][i])
                if not expected.startswith("!") and actual != expected:
                    different.append((line.expression, number, expected, actual))
    assert different == []


@pytest.mark.spark
def test_errors_in_spark(engine: Engine, table: str) -> None:
    failing = []
    for line, expr, sql in translated():
        errors = [(n, result) for n, result in compared_rows(line, expr) if result.startswith("!")]
        if errors:
            failing.append((line, expr, sql, errors[0]))
    different = []
    for line, expr, sql, (number, expected) in failing[:: max(len(failing) // _FAILURES, 1)]:
        query = f"SELECT {sql} AS x FROM {table} WHERE c1 = {number}"
        try:
            result = shown(engine.fetch(query, [StagedColumn("x", expr.type)])[0][0])
        except PostgresError as error:
            result = f"!{error.sqlstate}"
        if result != expected:
            different.append((line.expression, number, expected, result))
    assert different == []


@pytest.mark.spark
def test_expressions_may_be_nested_as_deeply_as_here(
    engine: Engine, table: str, deep_recursion: None
) -> None:
    plain, captured = (f"({start}" * 2500 + "a" + ")" * 2500 for start in ("?:", ""))
    joined = " || ".join(["jb"] * 400)
    tests = [f"t ~ '{plain}'", f"t ~ '{captured}'", rf"t ~ '{captured}\1*'", f"{joined} = jb"]
    for test in tests:
        query = f"SELECT {sql_of(analyzed(test)).text} AS x FROM {table} WHERE c1 = 1"
        assert engine.fetch(query, [StagedColumn("x", "bool")]) == [["t"]], test[:20]


@pytest.mark.spark
def test_aggregates_in_spark(engine: Engine, table: str) -> None:
    lines = golden_lines("aggregates")
    exprs = [analyzed(line.expression, ExprContext.SELECT_TARGET) for line in lines]
    selected = ", ".join(
        f"{stored_sql(sql_of(expr), expr.type, -1)} AS x{i}" for i, expr in enumerate(exprs)
    )
    fields = [StagedColumn(f"x{i}", expr.type) for i, expr in enumerate(exprs)]
    (found,) = engine.fetch(f"SELECT {selected} FROM {table}", fields)
    actual = {line.expression: shown(value) for line, value in zip(lines, found, strict=True)}
    assert actual == {line.expression: line.results[0] for line in lines}


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        ("i4 > 5", "(c3 > CAST(5 AS INT))"),
        ("b OR i4 IS NULL", "(c13 OR ((c3 IS NULL)))"),
        ("c = 'ab'", r"(rtrim(c17) = rtrim('ab'))"),
        ("n2 = 1.5", "(c8 = CAST(CAST('1.5' AS DECIMAL(2,1)) AS DECIMAL(10,2)))"),
        (r"t LIKE 'a\bc%'", "(c14 LIKE 'abc%')"),
        ("t ~ '^a.*b$'", r"(rlike(c14, '(?s)\\Aa.*b\\z'))"),
    ],
)
def test_spark_sql_of_common_filters(expression: str, sql: str) -> None:
    assert sql_of(analyzed(expression)).text == sql


@pytest.mark.parametrize(
    "expression",
    [
        "n < 1.5",
        "jb @> '{\"a\": 1}'",
        "t ~ '(a|b)+c'",
        r"t ~ '(a)\1'",
        "t ~ '(?<=a)b'",
        "t ~ '.*a.*b.*c.*d'",
        f"t ~ '{'(' * 51}a{')' * 51}'",
        "t ~ s",
    ],
)
def test_python_does_what_spark_cannot(expression: str) -> None:
    assert "replctl_eval_" in sql_of(analyzed(expression)).text


def test_repeated_operands_do_not_multiply() -> None:
    """In f8 + f8 + ..., replctl tests each sum for overflow.  Each test names its operands several
    times."""
    expression = " + ".join(["f8"] * 12)
    assert len(sql_of(analyzed(expression)).text) < 20_000


def test_unsupported_expressions_are_named() -> None:
    with pytest.raises(FeatureNotSupported, match="to_char"):
        sql_of(analyzed("to_char(i4, '9')"))
