"""The WHERE clause of a publication accepts and refuses the same expressions as a server
(tests/expr/data), also with users' objects."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from replctl.errors import FeatureNotSupported, PostgresError
from replctl.expr import nodes, pg_node_tree
from replctl.expr.builtin_environment import BuiltinEnvironment
from replctl.expr.deparse import DeparseContext, deparse
from replctl.expr.environment import Column
from replctl.expr.scope import RelationScope
from replctl.expr.sublinks import AnalyzeQuery, OutputColumn
from replctl.expr.type_names import type_of
from replctl.parser import ast
from replctl.parser.parse import parse
from replctl.replication.row_filter import analyze_row_filter, check_row_filter
from replctl.types import builtin
from replctl.types.builtin import Function, Operator, Type
from replctl.types.function_kind import FunctionKind, Volatility
from replctl.types.type_kind import TypeAlign, TypeCategory, TypeKind, TypeStorage

DATA = Path(__file__).parent.parent / "expr" / "data"
ROW_TYPE, ROW_ARRAY, MOOD, IS_EVEN, EQUAL = range(16390, 16395)
START = "CREATE PUBLICATION p FOR TABLE ft WHERE ("
SIMPLE = (
    "Only columns, constants, built-in operators, built-in data types, built-in collations, and "
    "immutable built-in functions are allowed."
)
NO_FUNCTIONS = "User-defined or built-in mutable functions are not allowed."
NO_OPERATORS = "User-defined operators are not allowed."
NO_TYPES = "User-defined types are not allowed."


def user_type(
    oid: int, name: str, kind: TypeKind, array: int | None = None, element: int | None = None
) -> Type:
    return Type(
        oid=oid,
        name=f"@{oid}",
        sql_name=name,
        length=-1,
        kind=kind,
        category=TypeCategory[kind.name] if element is None else TypeCategory.ARRAY,
        is_preferred=False,
        delimiter=",",
        is_by_value=False,
        align=TypeAlign.INT,
        storage=TypeStorage.PLAIN,
        element=None if element is None else f"@{element}",
        array=None if array is None else f"@{array}",
        collation=None,
        has_typmod=False,
        has_btree=False,
        has_hash=False,
    )


class Database(BuiltinEnvironment):
    """A database with table ft, and with an enum, a function and an operator of users."""

    database = "replctl_expr_golden"

    def __init__(self) -> None:
        self._types = {
            f"@{ROW_TYPE}": user_type(ROW_TYPE, "ft", TypeKind.COMPOSITE, array=ROW_ARRAY),
            f"@{ROW_ARRAY}": user_type(ROW_ARRAY, "ft[]", TypeKind.BASE, element=ROW_TYPE),
            f"@{MOOD}": user_type(MOOD, "mood", TypeKind.ENUM),
        }
        (int4eq,) = builtin.functions()["int4eq"]
        self._function = Function(
            oid=IS_EVEN,
            name="is_even",
            argument_types=("int4",),
            result="bool",
            kind=FunctionKind.FUNCTION,
            volatility=Volatility.IMMUTABLE,
            is_strict=True,
            returns_set=False,
            variadic=None,
            defaults=(),
            source="",
            argument_names=("",),
            columns=(),
        )
        self._operator = Operator(
            oid=EQUAL,
            name="===",
            left="int4",
            right="int4",
            result="bool",
            function="int4eq",
            function_oid=int4eq.oid,
            commutator=None,
            negator=None,
            volatility=Volatility.IMMUTABLE,
            is_strict=True,
        )
        self.table_columns = self._columns_of_ft()

    def _columns_of_ft(self) -> tuple[Column, ...]:
        *_, table = parse((DATA / "setup.sql").read_text())
        assert isinstance(table, ast.CreateTable)
        columns: list[Column] = []
        for item in table.elements:
            assert isinstance(item, ast.ColumnDef)
            assert item.type_name is not None
            type_, typmod = type_of(self, item.type_name)
            columns.append(Column(item.name, len(columns) + 1, type_.name, typmod, type_.collation))
        return tuple(columns)

    def schema_oid(self, name: str) -> int | None:
        return {"pg_catalog": 11, "public": 2200}.get(name)

    def type(self, name: str) -> Type:
        return self._types[name] if name in self._types else super().type(name)

    def find_type(self, schema: str | None, name: str) -> Type | None:
        own = {type_.sql_name: type_ for type_ in self._types.values()}
        return super().find_type(schema, name) or own.get(name)

    def columns(self, composite: Type) -> tuple[Column, ...] | None:
        return self.table_columns if composite.oid == ROW_TYPE else None

    def enum_labels(self, enum: Type) -> tuple[str, ...]:
        return ("sad", "ok")

    def functions(self, schema: str | None, name: str) -> Sequence[tuple[int, Function]]:
        own = [(1, self._function)] if name == "is_even" else []
        return [*super().functions(schema, name), *own]

    def operators(self, schema: str | None, name: str) -> Sequence[tuple[int, Operator]]:
        own = [(1, self._operator)] if name == "===" else []
        return [*super().operators(schema, name), *own]

    def function(self, oid: int) -> Function:
        return self._function if oid == IS_EVEN else super().function(oid)

    def operator(self, oid: int) -> Operator:
        return self._operator if oid == EQUAL else super().operator(oid)

    def relation_oid(self, schema: str | None, name: str) -> int | None:
        return 16400 if name == "ft" else None

    def relation_name(self, oid: int) -> str | None:
        return "ft" if oid == 16400 else None

    def role_oid(self, name: str) -> int | None:
        return 10 if name == "postgres" else None


DATABASE = Database()
SCOPE = RelationScope("ft", DATABASE.table_columns, f"@{ROW_TYPE}", "public")
#: The table with an additional column `m mood`.
USER_SCOPE = RelationScope(
    "ft", (*SCOPE.columns, Column("m", 99, f"@{MOOD}")), SCOPE.row_type, "public"
)


def analyzed(
    text: str,
    scope: RelationScope = SCOPE,
    now: datetime | None = None,
    analyze_query: AnalyzeQuery | None = None,
) -> nodes.Expr:
    (statement,) = parse(f"{START}{text})")
    assert isinstance(statement, ast.CreatePublication)
    (table,) = statement.objects
    assert isinstance(table, ast.PublicationTable)
    assert table.where is not None
    return analyze_row_filter(table.where, scope, DATABASE, now, analyze_query)


def golden_filters() -> list[tuple[str, str, str, str, int]]:
    """Return the golden lines of filters: expression, SQLSTATE, text or message, detail,
    position."""
    lines = []
    for path in sorted(DATA.glob("*.tsv")):
        if path.stem == "user":
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            context, *fields = line.replace("\\n", "\n").replace("\\\\", "\\").split("\t")
            expression, sqlstate, text, detail, _, position = fields
            if context == "filter":
                lines.append((expression, sqlstate, text, detail, int(position)))
    return lines


def test_filters_are_accepted_and_printed_as_by_a_server() -> None:
    accepted = [(line[0], line[2]) for line in golden_filters() if line[1] == "00000"]
    context = DeparseContext.of_relation(DATABASE, SCOPE)
    assert len(accepted) > 300
    assert [(text, deparse(analyzed(text), context)) for text, _ in accepted] == accepted


def test_filters_are_refused_where_a_server_refuses() -> None:
    refused = [
        (line[0], line[3], line[4])
        for line in golden_filters()
        if line[2] == "invalid publication WHERE expression"
    ]
    assert len(refused) > 150
    found = []
    for text, _, _ in refused:
        with pytest.raises(FeatureNotSupported) as raised:
            analyzed(text)
        assert raised.value.message == "invalid publication WHERE expression"
        position = raised.value.position
        found.append((text, raised.value.detail, position - len(START) if position >= 0 else -1))
    assert found == refused


@pytest.mark.parametrize(
    ("text", "detail", "position"),
    [
        ("is_even(i4)", NO_FUNCTIONS, 0),
        ("i4 > 0 AND NOT is_even(id)", NO_FUNCTIONS, 15),
        ("i4 === 1", NO_OPERATORS, 0),
        ("i4 = 1 OR 2 === i4", NO_OPERATORS, 10),
        ("i4 === ANY (ia)", NO_OPERATORS, 0),
        ("(i4, i4 + 1) === (1, 2)", None, None),
        ("is_even(i4) AND i4 === 1", NO_FUNCTIONS, 0),
        ("m IS NULL", NO_TYPES, 0),
        ("m = 'sad'", NO_TYPES, 0),
        ("COALESCE(m, 'sad') IS NULL", NO_TYPES, 0),
        ("i4 = 1 AND 'sad'::mood IS NULL", NO_TYPES, 11),
        ("m::text = 'sad'", SIMPLE, 0),
        ("ft IS NULL", NO_TYPES, 0),
        ("ft.ctid = '(0,1)' OR is_even(i4)", "System columns are not allowed.", 0),
    ],
)
def test_objects_of_users_are_refused(text: str, detail: str | None, position: int | None) -> None:
    with pytest.raises(FeatureNotSupported) as raised:
        analyzed(text, USER_SCOPE)
    if detail is None:
        assert raised.value.message.startswith("could not determine interpretation of row")
        return
    assert raised.value.message == "invalid publication WHERE expression"
    assert (raised.value.detail, raised.value.position) == (detail, len(START) + (position or 0))


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("EXISTS (SELECT 1)", 0),
        ("i4 IN (SELECT 1)", 0),
        ("(i4, i2) IN (SELECT 1, 2)", 1),
        ("NOT b AND i4 = ANY (SELECT 1)", 10),
    ],
)
def test_subquery_is_refused_unseen(text: str, position: int) -> None:
    with pytest.raises(FeatureNotSupported) as raised:
        analyzed(text)
    assert (raised.value.detail, raised.value.position) == (SIMPLE, len(START) + position)


def test_subquery_is_refused_after_its_analysis() -> None:
    seen = []

    def analyze_query(query: ast.SelectStmt, analyzer: object) -> tuple[None, list[OutputColumn]]:
        seen.append(query)
        return None, [OutputColumn("int4")]

    with pytest.raises(PostgresError) as raised:
        analyzed("i4 IN (SELECT 1) AND nosuch", analyze_query=analyze_query)
    assert raised.value.message == 'column "nosuch" does not exist'
    assert len(seen) == 1


def test_moment_is_fixed_when_the_publication_is_made() -> None:
    now = datetime(2024, 5, 6, 7, 8, tzinfo=UTC)
    expr = analyzed("d > 'today'", now=now)
    context = DeparseContext.of_relation(DATABASE, SCOPE)
    assert deparse(expr, context) == "(d > '2024-05-06'::date)"


def test_stored_filter_can_be_checked_again() -> None:
    expr = pg_node_tree.loads(pg_node_tree.dumps(analyzed("i4 > 5 AND v IN ('a') OR t ~ '^b'")))
    check_row_filter(expr, DATABASE)
