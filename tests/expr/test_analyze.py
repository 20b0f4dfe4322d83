"""The analysis of expressions has PostgreSQL's results: accepted expressions, and message, DETAIL,
HINT and position of errors."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from golden_database import (
    Golden,
    GoldenDatabase,
    check_expression,
    error_fields,
    filter_expression,
    golden_lines,
    plain_database,
    user_database,
)

from replctl.errors import PostgresError
from replctl.expr import nodes
from replctl.expr.analyze import Analyzer
from replctl.expr.collate import assign_collations
from replctl.expr.context import ExprContext
from replctl.expr.refused_dependency import check_dependencies
from replctl.expr.scope import RelationScope
from replctl.expr.sublinks import AnalyzeQuery, OutputColumn
from replctl.parser import ast
from replctl.replication.row_filter import analyze_row_filter

PLAIN_TOPICS = [
    "arrays", "calls", "casts", "collations", "conditional", "context", "functions", "names",
    "nested", "operators", "rows", "subscripts",
]  # fmt: skip

Database = tuple[GoldenDatabase, RelationScope]


@pytest.fixture(scope="module")
def plain() -> Database:
    return plain_database()


@pytest.fixture(scope="module")
def user() -> Database:
    return user_database()


def analyze_check(raw: ast.RawExpr, database: Database) -> nodes.Expr:
    environment, scope = database
    analyzer = Analyzer(environment, scope, ExprContext.CHECK)
    expr = assign_collations(environment, analyzer.boolean(raw, "CHECK"))
    check_dependencies(expr)
    return expr


def verdict(line: Golden, database: Database) -> object:
    """Return the fields of the error, or None if the analysis accepts the expression."""
    environment, scope = database
    parse = filter_expression if line.context == "filter" else check_expression
    start = parse("true")[1]
    try:
        raw, _ = parse(line.expression)
        if line.context == "filter":
            analyze_row_filter(raw, scope, environment)
        else:
            analyze_check(raw, database)
    except PostgresError as error:
        return error_fields(error, start)
    return None


def differences(lines: list[Golden], database: Database) -> list[object]:
    found: list[object] = []
    for line in lines:
        expected = None if line.is_accepted else line.error_fields()
        actual = verdict(line, database)
        if actual != expected:
            found.append((line.context, line.expression, expected, actual))
    return found


@pytest.mark.parametrize("topic", PLAIN_TOPICS)
def test_verdict_is_the_servers(topic: str, plain: Database) -> None:
    assert differences(golden_lines(topic), plain) == []


def test_verdict_about_user_defined_objects_is_the_servers(user: Database) -> None:
    assert differences(golden_lines("user"), user) == []


def analyze(
    text: str,
    database: Database,
    context: ExprContext = ExprContext.SELECT_TARGET,
    *,
    now: datetime | None = None,
    analyze_query: AnalyzeQuery | None = None,
) -> tuple[nodes.Expr, Analyzer]:
    environment, scope = database
    raw, _ = check_expression(text)
    analyzer = Analyzer(environment, scope, context, now=now, analyze_query=analyze_query)
    expr = analyzer.expr(raw)
    assert isinstance(expr, nodes.NullTest)
    return expr.arg, analyzer


def test_literal_of_a_moment_is_taken_when_it_is_analysed(plain: Database) -> None:
    now = datetime(2024, 2, 29, 12, 30, tzinfo=UTC)
    expr, _ = analyze("d = 'tomorrow'", plain, now=now)
    assert isinstance(expr, nodes.OpExpr)
    assert expr.args[1] == nodes.Const("date", "2024-03-01")


def test_length_of_a_literal_is_left_to_a_coercion_above_it(plain: Database) -> None:
    expr, _ = analyze("'abcdef'::varchar(3)", plain)
    assert isinstance(expr, nodes.FuncExpr)
    assert expr.form == "explicit"
    assert expr.args[0] == nodes.Const("varchar", "abcdef", -1, "default")
    assert nodes.typmod(expr) == 7


def test_case_compares_a_placeholder(plain: Database) -> None:
    expr, _ = analyze("CASE v WHEN 'a' THEN 1 END", plain)
    assert isinstance(expr, nodes.CaseExpr)
    condition = expr.whens[0].condition
    assert isinstance(condition, nodes.OpExpr)
    assert condition.args[0] == nodes.RelabelType(nodes.Param(0, "varchar", 24, "default"), "text")


@pytest.mark.parametrize(
    ("text", "has_aggregates"),
    [("sum(i4)", True), ("GROUPING(i4)", True), ("rank() OVER (ORDER BY i4)", False)],
)
def test_analyzer_tells_whether_there_are_aggregates(
    text: str, has_aggregates: bool, plain: Database
) -> None:
    _, analyzer = analyze(text, plain)
    assert analyzer.has_aggregates == has_aggregates


@pytest.mark.parametrize(
    ("text", "kind", "type_"),
    [
        ("EXISTS (SELECT 1)", "exists", "bool"),
        ("(SELECT 1)", "expr", "int8"),
        ("ARRAY(SELECT 1)", "array", "_int8"),
        ("i4 IN (SELECT 1)", "any", "bool"),
        ("i4 > ALL (SELECT 1)", "all", "bool"),
        ("ROW(i4) < (SELECT 1)", "row_compare", "bool"),
    ],
)
def test_subquery_has_the_type_of_its_column(
    text: str, kind: str, type_: str, plain: Database
) -> None:
    expr, _ = analyze(text, plain, analyze_query=lambda *_: ("query", [OutputColumn("int8")]))
    assert isinstance(expr, nodes.SubLink)
    assert (expr.kind, expr.type, expr.query) == (kind, type_, "query")
    if kind in ("any", "all", "row_compare"):
        assert nodes.Param(1, "int8") in list(nodes.walk(expr))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(SELECT 1)", "subquery must return only one column"),
        ("i4 IN (SELECT 1)", "subquery has too many columns"),
        ("(i4, i2, i8) = ANY (SELECT 1)", "subquery has too few columns"),
    ],
)
def test_subquery_with_the_wrong_number_of_columns(
    text: str, message: str, plain: Database
) -> None:
    columns = [OutputColumn("int4"), OutputColumn("int4")]
    with pytest.raises(PostgresError) as raised:
        analyze(text, plain, analyze_query=lambda *_: ("query", columns))
    assert (raised.value.sqlstate, raised.value.message) == ("42601", message)


@pytest.mark.parametrize(
    ("context", "text", "message"),
    [
        ("DEFAULT", "i4", "cannot use column reference in DEFAULT expression"),
        ("PARTITION_BOUND", "i4", "cannot use column reference in partition bound expression"),
        ("DEFAULT", "EXISTS (SELECT 1)", "cannot use subquery in DEFAULT expression"),
        ("GENERATED", "EXISTS (SELECT 1)", "cannot use subquery in column generation expression"),
        ("INDEX_PREDICATE", "EXISTS (SELECT 1)", "cannot use subquery in index predicate"),
        ("CHECK", "sum(1)", "aggregate functions are not allowed in check constraints"),
        ("JOIN_ON", "sum(1)", "aggregate functions are not allowed in JOIN conditions"),
        ("GROUP_BY", "sum(1)", "aggregate functions are not allowed in GROUP BY"),
        ("GROUP_BY", "GROUPING(i4)", "grouping operations are not allowed in GROUP BY"),
        ("FROM_FUNCTION", "sum(1)", "aggregate functions are not allowed in functions in FROM"),
        ("HAVING", "rank() OVER ()", "window functions are not allowed in HAVING"),
        (
            "WINDOW_ORDER",
            "rank() OVER ()",
            "window functions are not allowed in window definitions",
        ),
        ("VALUES", "unnest(ia)", "set-returning functions are not allowed in VALUES"),
        (
            "INDEX_PREDICATE",
            "unnest(ia)",
            "set-returning functions are not allowed in index predicates",
        ),
        ("CHECK", "ctid", 'system column "ctid" reference in check constraint is invalid'),
        ("GENERATED", "xmin", 'cannot use system column "xmin" in column generation expression'),
    ],
)
def test_place_does_not_allow_it(context: str, text: str, message: str, plain: Database) -> None:
    with pytest.raises(PostgresError) as raised:
        analyze(text, plain, ExprContext[context])
    assert raised.value.message == message
    assert raised.value.position == len("SELECT ((")


def test_assignment_casts_or_says_what_the_column_is(plain: Database) -> None:
    expr, analyzer = analyze("i8", plain)
    result = analyzer.coerce_for_assignment(expr, "int2", -1, "i2", 7)
    assert (result.type, nodes.typmod(result)) == ("int2", -1)
    with pytest.raises(PostgresError) as raised:
        analyzer.coerce_for_assignment(expr, "date", -1, "d", 7)
    assert error_fields(raised.value, 0) == (
        "42804",
        'column "d" is of type date but expression is of type bigint',
        None,
        "You will need to rewrite or cast the expression.",
        7,
    )


def test_common_type_of_several_expressions(plain: Database) -> None:
    (number, _), (literal, _), (text, analyzer) = (
        analyze(item, plain) for item in ("1", "'2.5'", "n2")
    )
    exprs, type_, typmod = analyzer.common_type((number, literal, text), "UNION")
    assert (type_, typmod) == ("numeric", -1)
    assert [expr.type for expr in exprs] == ["numeric"] * 3
    with pytest.raises(PostgresError, match="UNION types integer and text cannot be matched"):
        analyzer.common_type((number, analyze("t", plain)[0]), "UNION")


def test_alias_hides_the_relations_name(plain: Database) -> None:
    environment, scope = plain
    aliased = RelationScope("ft", scope.columns, scope.row_type, "public", "x")
    expr, _ = analyze("x.i4", (environment, aliased))
    assert expr == nodes.Var(3, "int4")
    with pytest.raises(PostgresError) as raised:
        analyze("public.ft.i4", (environment, aliased))
    assert raised.value.message == 'invalid reference to FROM-clause entry for table "ft"'
    assert raised.value.hint == 'Perhaps you meant to reference the table alias "x".'
