"""Printed expressions equal those of pg_get_expr(), and printing loses nothing."""

from __future__ import annotations

import dataclasses
from typing import Literal

import pytest
from golden_database import (
    GoldenDatabase,
    check_expression,
    golden_lines,
    plain_database,
    user_database,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from replctl.errors import PostgresError
from replctl.expr import nodes, pg_node_tree
from replctl.expr.analyze import Analyzer
from replctl.expr.collate import assign_collations
from replctl.expr.context import ExprContext
from replctl.expr.deparse import DeparseContext, deparse
from replctl.expr.scope import RelationScope
from replctl.parser import ast
from replctl.parser.parse import parse_statement
from replctl.types.quote import quote_identifier, quote_literal, quote_string

PLAIN, PLAIN_SCOPE = plain_database()
TOPICS = [
    "arrays", "calls", "casts", "collations", "conditional", "context", "functions", "names",
    "nested", "operators", "rows", "subscripts", "user",
]  # fmt: skip


def analyzed(text: str, environment: GoldenDatabase, scope: RelationScope) -> nodes.Expr:
    raw, _ = check_expression(text)
    analyzer = Analyzer(environment, scope, ExprContext.CHECK)
    return assign_collations(environment, analyzer.boolean(raw, "CHECK"))


def printed(expr: nodes.Expr, environment: GoldenDatabase, scope: RelationScope) -> str:
    return deparse(expr, DeparseContext.of_relation(environment, scope))


@pytest.mark.parametrize("topic", TOPICS)
def test_text_is_the_servers(topic: str) -> None:
    environment, scope = user_database() if topic == "user" else (PLAIN, PLAIN_SCOPE)
    differences = []
    for line in golden_lines(topic):
        if line.context == "check" and line.is_accepted:
            actual = printed(analyzed(line.expression, environment, scope), environment, scope)
            if actual != line.text:
                differences.append((line.expression, line.text, actual))
    assert differences == []


@pytest.mark.parametrize("topic", TOPICS)
def test_stored_form_keeps_everything(topic: str) -> None:
    environment, scope = user_database() if topic == "user" else (PLAIN, PLAIN_SCOPE)
    for line in golden_lines(topic):
        if line.context == "check" and line.is_accepted:
            expr = analyzed(line.expression, environment, scope)
            assert pg_node_tree.loads(pg_node_tree.dumps(expr)) == expr


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("a", "a"),
        ("a_1", "a_1"),
        ("A", '"A"'),
        ("1a", '"1a"'),
        ("a b", '"a b"'),
        ('a"b', '"a""b"'),
        ("ä", '"ä"'),
        ("select", '"select"'),
        ("left", '"left"'),
        ("substring", '"substring"'),
        ("abort", "abort"),
        ("", '""'),
    ],
)
def test_identifier_is_quoted_where_it_must(name: str, quoted: str) -> None:
    assert quote_identifier(name) == quoted


@pytest.mark.parametrize(
    ("value", "string", "literal"),
    [
        ("a", "'a'", "'a'"),
        ("it's", "'it''s'", "'it''s'"),
        ("a\\b", "'a\\b'", "E'a\\\\b'"),
        ("\\'", "'\\'''", "E'\\\\'''"),
    ],
)
def test_string_is_quoted(value: str, string: str, literal: str) -> None:
    assert (quote_string(value), quote_literal(value)) == (string, literal)


SELECT_TARGETS = [
    "count(*)",
    "count(DISTINCT t)",
    "string_agg(t, ','::text ORDER BY i4 DESC, t NULLS FIRST)",
    "string_agg(t, ','::text ORDER BY (lower(t)))",
    "string_agg(t, ','::text ORDER BY (i4 + 1), 'a'::text)",
    "string_agg(t, ','::text ORDER BY t USING ~<~ NULLS LAST)",
    "sum(i4) FILTER (WHERE (b AND (i4 > 1)))",
    "mode() WITHIN GROUP (ORDER BY i4 DESC)",
    "percentile_cont((0.5)::double precision) WITHIN GROUP (ORDER BY f8)",
    "rank(1, 'a'::text) WITHIN GROUP (ORDER BY i4, t)",
    "rank() OVER ()",
    "rank() OVER (PARTITION BY t ORDER BY i4 DESC NULLS LAST)",
    "sum(i4) FILTER (WHERE b) OVER (PARTITION BY (lower(t)) ORDER BY i4)",
    "concat(VARIADIC ta)",
    "(jsonb_each(jb)).key",
    "(ia[1:2])[1]",
    "CURRENT_TIMESTAMP(3)",
    "GROUPING(i4, t)",
]


@pytest.mark.parametrize("text", SELECT_TARGETS)
def test_printed_target_is_printed_alike(text: str) -> None:
    """A column of a view that PostgreSQL has printed stays the same when replctl reads and prints
    it."""
    raw, _ = check_expression(text)
    analyzer = Analyzer(PLAIN, PLAIN_SCOPE, ExprContext.SELECT_TARGET)
    expr = assign_collations(PLAIN, analyzer.expr(raw))
    assert printed(expr, PLAIN, PLAIN_SCOPE) == f"({text} IS NULL)"
    assert pg_node_tree.loads(pg_node_tree.dumps(expr)) == expr


@pytest.mark.parametrize(
    ("kind", "test", "text"),
    [
        ("exists", None, "(EXISTS (QUERY))"),
        ("expr", None, "(QUERY)"),
        ("array", None, "ARRAY(QUERY)"),
        ("any", "=", "(i4 IN (QUERY))"),
        ("any", ">", "(i4 > ANY (QUERY))"),
        ("all", "<>", "(i4 <> ALL (QUERY))"),
    ],
)
def test_subquery_is_printed_by_its_own(
    kind: Literal["exists", "all", "any", "expr", "array"], test: str | None, text: str
) -> None:
    comparison = None
    if test is not None:
        whole = analyzed(f"i4 {test} i4", PLAIN, PLAIN_SCOPE)
        assert isinstance(whole, nodes.NullTest)
        assert isinstance(whole.arg, nodes.OpExpr)
        operands = (whole.arg.args[0], nodes.Param(1, "int4"))
        comparison = dataclasses.replace(whole.arg, args=operands)
    expr = nodes.SubLink(kind, "QUERY", "bool", comparison)
    context = DeparseContext.of_relation(PLAIN, PLAIN_SCOPE)
    assert (
        deparse(expr, dataclasses.replace(context, deparse_query=lambda query, indent: query))
        == text
    )


def test_columns_can_be_qualified() -> None:
    expr = analyzed("i4 = 1", PLAIN, PLAIN_SCOPE)
    context = DeparseContext.of_relation(PLAIN, PLAIN_SCOPE)
    qualified = dataclasses.replace(context, relation="A b", is_qualified=True)
    assert deparse(expr, qualified) == '(("A b".i4 = 1) IS NULL)'


def test_name_off_the_search_path_is_qualified() -> None:
    environment, scope = user_database()
    expr = analyzed("id === 1 AND is_even(id) AND lower(id) = 'a'", environment, scope)
    environment.search_path = ("pg_catalog",)
    assert printed(expr, environment, scope) == (
        "(((id OPERATOR(public.===) 1) AND public.is_even(id) AND (public.lower(id) = 'a'::text))"
        " IS NULL)"
    )


# -- properties

COLUMNS = {
    "int": ["i2", "i4", "i8", "1", "-7", "3000000000", "'5'", "NULL"],
    "num": ["n", "n2", "f8", "1.5", "-0.25", "'1e3'", "NULL"],
    "text": ["t", "v", "c", "'a'", "'it''s'", "''", "NULL"],
    "date": ["d", "ts", "'2024-02-29'", "date '2024-01-01'"],
    "bool": ["b", "true", "'f'", "NULL"],
}


def expressions() -> st.SearchStrategy[str]:
    """Return a strategy for conditions over table ft, most of them well typed."""
    leaf = {kind: st.sampled_from(items) for kind, items in COLUMNS.items()}
    number = st.one_of(leaf["int"], leaf["num"])
    numbers = st.recursive(
        number,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda x: f"({' '.join(x)})"),
            inner.map(lambda x: f"abs({x})"),
            inner.map(lambda x: f"({x})::numeric(6,2)"),
            st.tuples(inner, inner).map(lambda x: f"COALESCE({x[0]}, {x[1]})"),
            inner.map(lambda x: f"CASE WHEN b THEN {x} ELSE 0 END"),
        ),
        max_leaves=4,
    )
    texts = st.recursive(
        leaf["text"],
        lambda inner: st.one_of(
            inner.map(lambda x: f"lower({x})"),
            inner.map(lambda x: f"({x})::varchar(3)"),
            inner.map(lambda x: f"SUBSTRING({x} FROM 2)"),
            inner.map(lambda x: f'({x} COLLATE "C")'),
            st.tuples(inner, inner).map(lambda x: f"({x[0]} || {x[1]})"),
        ),
        max_leaves=4,
    )
    comparison = st.sampled_from(["=", "<>", "<", ">="])
    conditions = st.one_of(
        leaf["bool"],
        st.tuples(numbers, comparison, numbers).map(" ".join),
        st.tuples(texts, comparison, texts).map(" ".join),
        st.tuples(leaf["date"], comparison, leaf["date"]).map(" ".join),
        st.tuples(texts, st.sampled_from(["LIKE", "NOT ILIKE", "~"]), texts).map(" ".join),
        st.tuples(numbers, st.lists(numbers, min_size=1, max_size=3)).map(
            lambda x: f"{x[0]} IN ({', '.join(x[1])})"
        ),
        st.tuples(numbers, numbers, numbers).map(lambda x: f"{x[0]} BETWEEN {x[1]} AND {x[2]}"),
        st.tuples(texts, texts).map(lambda x: f"{x[0]} IS DISTINCT FROM {x[1]}"),
        st.tuples(numbers, texts).map(lambda x: f"ROW({x[0]}, {x[1]}) < ROW(1, 'a')"),
        texts.map(lambda x: f"{x} = ANY (ta)"),
    )
    return st.recursive(
        conditions,
        lambda inner: st.one_of(
            inner.map(lambda x: f"NOT ({x})"),
            inner.map(lambda x: f"({x}) IS NOT TRUE"),
            st.lists(inner, min_size=2, max_size=3).map(lambda x: f"({') AND ('.join(x)})"),
            st.lists(inner, min_size=2, max_size=3).map(lambda x: f"({') OR ('.join(x)})"),
        ),
        max_leaves=5,
    )


def analyzed_as_printed(text: str) -> nodes.Expr:
    """Analyse a printed text, without the IS NULL around it."""
    statement = parse_statement(f"SELECT {text}")
    assert isinstance(statement, ast.SelectStmt)
    (target,) = statement.targets
    assert target.value is not None
    analyzer = Analyzer(PLAIN, PLAIN_SCOPE, ExprContext.CHECK)
    return assign_collations(PLAIN, analyzer.boolean(target.value, "CHECK"))


@settings(max_examples=150)
@given(expressions())
def test_printed_text_means_the_same(text: str) -> None:
    """The printed text gives the same tree, except that casts are explicit, and `((a OR b) OR c)`
    is one OR."""
    try:
        expr = analyzed(text, PLAIN, PLAIN_SCOPE)
    except PostgresError:
        return
    again = analyzed_as_printed(printed(expr, PLAIN, PLAIN_SCOPE))
    assert as_read_again(again) == as_read_again(expr)
    twice = analyzed_as_printed(printed(again, PLAIN, PLAIN_SCOPE))
    assert printed(twice, PLAIN, PLAIN_SCOPE) == printed(again, PLAIN, PLAIN_SCOPE)
    assert pg_node_tree.loads(pg_node_tree.dumps(expr)) == expr


def as_read_again(expr: nodes.Expr) -> nodes.Expr:
    """Return an expression as replctl reads it after printing.

    All casts are explicit, and `((a OR b) OR c)` is one OR.
    """

    def changed(node: nodes.Expr) -> nodes.Expr | None:
        match node:
            case nodes.BoolExpr(op="and" | "or" as op, args=(nodes.BoolExpr() as first, *rest)):
                if first.op == op:
                    return as_read_again(dataclasses.replace(node, args=(*first.args, *rest)))
            case (
                nodes.FuncExpr(form="implicit")
                | nodes.RowExpr(form="implicit")
                | nodes.RelabelType(form="implicit")
                | nodes.CoerceViaIO(form="implicit")
                | nodes.ArrayCoerceExpr(form="implicit")
                | nodes.CoerceToDomain(form="implicit")
            ):
                return as_read_again(dataclasses.replace(node, form="explicit"))
        return None

    shown: nodes.Expr = nodes.transform(expr, changed)
    return shown
