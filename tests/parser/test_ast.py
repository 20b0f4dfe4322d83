"""Statements and their trees."""

from __future__ import annotations

import pytest

from replctl.parser import ast
from replctl.parser.parse import parse, parse_expression, parse_statement

A, B, C = (ast.ColumnRef((name,)) for name in "abc")
INT4 = ast.TypeName(("pg_catalog", "int4"))
TEXT = ast.TypeName(("text",))


def _integer(value: int) -> ast.Constant:
    return ast.Constant("integer", str(value))


def _string(value: str) -> ast.Constant:
    return ast.Constant("string", value)


def _op(left: ast.RawExpr, name: str, right: ast.RawExpr) -> ast.AExpr:
    return ast.AExpr("op", (name,), left, right)


def _call(name: str, *args: ast.RawExpr) -> ast.FuncCall:
    return ast.FuncCall(("pg_catalog", name), args, format="sql")


def _not(arg: ast.RawExpr) -> ast.BoolExpr:
    return ast.BoolExpr("not", (arg,))


def _is_null(arg: ast.RawExpr) -> ast.NullTest:
    return ast.NullTest(arg, is_null=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * c", _op(A, "+", _op(B, "*", C))),
        ("(a + b) * c", _op(_op(A, "+", B), "*", C)),
        ("a - b - c", _op(_op(A, "-", B), "-", C)),
        ("a IS NULL = b", _op(_is_null(A), "=", B)),
        ("a = b IS NULL", _is_null(_op(A, "=", B))),
        ("a = NOT b = c", _op(A, "=", _not(_op(B, "=", C)))),
        ("a AND b AND c", ast.BoolExpr("and", (A, B, C))),
        ("(a AND b) AND c", ast.BoolExpr("and", (A, B, C))),
        ("a AND (b AND c)", ast.BoolExpr("and", (A, ast.BoolExpr("and", (B, C))))),
        ("a OR b AND c", ast.BoolExpr("or", (A, ast.BoolExpr("and", (B, C))))),
        ("NOT a AND b", ast.BoolExpr("and", (_not(A), B))),
        ("- 5", _integer(-5)),
        ("- - 5", _integer(5)),
        ("-a", ast.AExpr("op", ("-",), None, A)),
        ("-a::int4", ast.AExpr("op", ("-",), None, ast.TypeCast(A, ast.TypeName(("int4",))))),
        ('a COLLATE "C"::text', ast.TypeCast(ast.CollateClause(A, ("C",)), TEXT)),
        ("a AT TIME ZONE b::text", _call("timezone", ast.TypeCast(B, TEXT), A)),
        ("a AT LOCAL::text", ast.TypeCast(_call("timezone", A), TEXT)),
        ("a BETWEEN b AND c", ast.AExpr("between", ("BETWEEN",), A, (B, C))),
        ("a NOT IN (b, c)", ast.AExpr("in", ("<>",), A, (B, C))),
        ("a != ALL (b)", ast.AExpr("op_all", ("<>",), A, B)),
        ("a LIKE b", ast.AExpr("like", ("~~",), A, B)),
        (
            "a NOT LIKE b ESCAPE c",
            ast.AExpr("like", ("!~~",), A, ast.FuncCall(("pg_catalog", "like_escape"), (B, C))),
        ),
        ("a IS nfkc NORMALIZED", _call("is_normalized", A, _string("NFKC"))),
        ("a IS NOT NORMALIZED", _not(_call("is_normalized", A))),
        ("(a, b) OVERLAPS (b, c)", _call("overlaps", A, B, B, C)),
        ("a OPERATOR(x.+) b", ast.AExpr("op", ("x", "+"), A, B)),
        ("f(a, VARIADIC b)", ast.FuncCall(("f",), (A, B), is_variadic=True)),
        ("f(x => a)", ast.FuncCall(("f",), (ast.NamedArg("x", A),))),
        ("current_schema", ast.SqlValueFunction("current_schema")),
        ("current_schema()", ast.FuncCall(("current_schema",), ())),
        ("localtime(3)", ast.SqlValueFunction("localtime", 3)),
        ("a[1].b", ast.Indirection(A, (ast.Subscript(None, _integer(1), False), "b"))),
        ("N'x'", ast.TypeCast(_string("x"), ast.TypeName(("pg_catalog", "bpchar")))),
        (
            "interval '1' hour to minute",
            ast.TypeCast(_string("1"), ast.TypeName(("pg_catalog", "interval"), (_integer(3072),))),
        ),
        ("a::int[3]", ast.TypeCast(A, ast.TypeName(("pg_catalog", "int4"), (), (3,)))),
        ("substring(a FOR 2)", _call("substring", A, _integer(1), ast.TypeCast(_integer(2), INT4))),
        ("time", ast.ColumnRef(("time",))),
        ('"Ab"."c""d"', ast.ColumnRef(("Ab", 'c"d'))),
        ("E'\\303\\244\\n'", _string("ä\n")),
        ("U&'!00e4' UESCAPE '!'", _string("ä")),
    ],
)
def test_expression(text: str, expected: ast.RawExpr) -> None:
    assert parse_expression(text) == expected


TABLE = ast.RangeVar("t")
COLUMN = ast.ColumnDef("a", INT4)
PARTITION = ast.PartitionBound("list", (_integer(1),))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT a AS x, b FROM t WHERE c ORDER BY a DESC LIMIT 1",
            ast.SelectStmt(
                targets=(ast.ResTarget(A, "x"), ast.ResTarget(B)),
                from_clause=(TABLE,),
                where=C,
                order_by=(ast.SortBy(A, "desc"),),
                limit=_integer(1),
            ),
        ),
        ("VALUES (1), (2)", ast.SelectStmt(values=((_integer(1),), (_integer(2),)))),
        (
            "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) WHERE b DO NOTHING",
            ast.Insert(
                TABLE,
                (ast.ResTarget(None, "a"),),
                ast.SelectStmt(values=((_integer(1),),)),
                on_conflict=ast.OnConflict("nothing", (A,), target_where=B),
            ),
        ),
        (
            "UPDATE t SET a = b WHERE c",
            ast.Update(TABLE, (ast.Assignment((ast.ResTarget(None, "a"),), B),), where=C),
        ),
        ("DELETE FROM ONLY t", ast.Delete(ast.RangeVar("t", inherit=False))),
        ("TRUNCATE t RESTART IDENTITY CASCADE", ast.Truncate((TABLE,), True, True)),
        (
            "CREATE PUBLICATION p FOR TABLE t (a) WHERE (b), TABLES IN SCHEMA s, CURRENT_SCHEMA",
            ast.CreatePublication(
                "p",
                (
                    ast.PublicationTable(TABLE, ("a",), B),
                    ast.PublicationSchema("s"),
                    ast.PublicationSchema(None),
                ),
            ),
        ),
        (
            "CREATE PUBLICATION p WITH (x, y = int[], z = -1)",
            ast.CreatePublication(
                "p",
                options=(
                    ast.DefElem("x", None),
                    ast.DefElem("y", "pg_catalog.int4[]", True),
                    ast.DefElem("z", "-1", is_integer=True),
                ),
            ),
        ),
        (
            "ALTER PUBLICATION p DROP TABLE t",
            ast.AlterPublication("p", "drop", (ast.PublicationTable(TABLE),)),
        ),
        (
            "CREATE SUBSCRIPTION s CONNECTION 'c' PUBLICATION p, q WITH (slot_name = NONE)",
            ast.CreateSubscription("s", "c", ("p", "q"), (ast.DefElem("slot_name", "none", True),)),
        ),
        (
            "ALTER SUBSCRIPTION s ADD PUBLICATION p",
            ast.AlterSubscription("s", "add_publication", publications=("p",)),
        ),
        ("DROP SUBSCRIPTION IF EXISTS s CASCADE", ast.DropSubscription("s", True, "cascade")),
        (
            "CREATE TEMP TABLE t (a int) WITH (x.y = 1) ON COMMIT DROP TABLESPACE s",
            ast.CreateTable(
                TABLE,
                (COLUMN,),
                "temporary",
                options=(ast.DefElem("x.y", "1", is_integer=True),),
                on_commit="drop",
                tablespace="s",
            ),
        ),
        (
            "CREATE TABLE t USING delta LOCATION '/x'",
            ast.CreateTable(TABLE, access_method="delta", location="/x"),
        ),
        (
            "CREATE TABLE t USING delta TABLE 'lake.t' WITH (foreign_files)",
            ast.CreateTable(
                TABLE,
                access_method="delta",
                options=(ast.DefElem("foreign_files", None),),
                catalog_table="lake.t",
            ),
        ),
        (
            "CREATE TABLE t (PRIMARY KEY (a)) USING delta LOCATION '/x'",
            ast.CreateTable(
                TABLE,
                (ast.Constraint("primary", columns=("a",)),),
                access_method="delta",
                location="/x",
            ),
        ),
        (
            "CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY (START 5 NO CYCLE))",
            ast.CreateTable(
                TABLE,
                (
                    ast.ColumnDef(
                        "a",
                        INT4,
                        (
                            ast.Constraint(
                                "identity",
                                sequence=(
                                    ast.DefElem("start", "5"),
                                    ast.DefElem("cycle", "false"),
                                ),
                            ),
                        ),
                    ),
                ),
            ),
        ),
        (
            "CREATE TABLE t (FOREIGN KEY (a) REFERENCES u ON DELETE SET NULL (a) DEFERRABLE)",
            ast.CreateTable(
                TABLE,
                (
                    ast.Constraint(
                        "foreign",
                        columns=("a",),
                        references=ast.RangeVar("u"),
                        on_delete="set null",
                        on_delete_columns=("a",),
                        deferrable=True,
                    ),
                ),
            ),
        ),
        (
            "CREATE TABLE t PARTITION OF u FOR VALUES IN (1)",
            ast.CreateTable(TABLE, partition_of=ast.RangeVar("u"), partition_bound=PARTITION),
        ),
        (
            "CREATE TABLE t USING heap WITH (x = 1) AS TABLE u WITH NO DATA",
            ast.CreateTableAs(
                TABLE,
                (),
                ast.SelectStmt(
                    targets=(ast.ResTarget(ast.ColumnRef(("*",), True)),),
                    from_clause=(ast.RangeVar("u"),),
                ),
                with_data=False,
                access_method="heap",
                options=(ast.DefElem("x", "1", is_integer=True),),
            ),
        ),
        (
            "ALTER TABLE t ALTER a TYPE text COLLATE x USING b",
            ast.AlterTable(
                TABLE,
                (ast.AlterTableCmd("alter_type", "a", type_name=TEXT, expr=B, collation=("x",)),),
            ),
        ),
        (
            "ALTER TABLE t ATTACH PARTITION u FOR VALUES IN (1)",
            ast.AlterTable(
                TABLE,
                (
                    ast.AlterTableCmd(
                        "attach_partition", relation=ast.RangeVar("u"), bound=PARTITION
                    ),
                ),
            ),
        ),
        (
            "CREATE UNIQUE INDEX i ON t (lower(a)) WITH (x = 1) TABLESPACE s WHERE b",
            ast.CreateIndex(
                "i",
                TABLE,
                (ast.IndexElem(None, ast.FuncCall(("lower",), (A,))),),
                is_unique=True,
                options=(ast.DefElem("x", "1", is_integer=True),),
                tablespace="s",
                where=B,
            ),
        ),
        ("CREATE SCHEMA s AUTHORIZATION r", ast.CreateSchema("s", False, "r")),
        (
            "CREATE DATABASE d CONNECTION LIMIT 3 TEMPLATE DEFAULT",
            ast.CreateDatabase(
                "d", (ast.DefElem("connection_limit", "3"), ast.DefElem("template", None))
            ),
        ),
        ("DROP DATABASE d (FORCE)", ast.DropDatabase("d", force=True)),
        ("CREATE TYPE e AS ENUM ('x')", ast.CreateEnum(("e",), ("x",))),
        (
            "CREATE FUNCTION f(a int) RETURNS TABLE (b text) LANGUAGE sql AS 'x'",
            ast.CreateFunction(
                ("f",),
                (ast.FunctionParameter("a", INT4),),
                ast.TypeName(("text",), is_setof=True),
                (ast.DefElem("language", "sql"), ast.DefElem("as", "x")),
                table_columns=(ast.FunctionParameter("b", TEXT, "table"),),
            ),
        ),
        (
            "DROP FUNCTION f(int), g",
            ast.Drop(
                "function",
                (("f",), ("g",)),
                arguments=((ast.FunctionParameter(None, INT4),), None),
            ),
        ),
        ("DROP TABLE IF EXISTS s.t, u", ast.Drop("table", (("s", "t"), ("u",)), True)),
        ("ALTER TABLE t RENAME a TO b", ast.Rename("column", ("t",), "b", "a")),
        ("ALTER VIEW IF EXISTS v OWNER TO r", ast.AlterOwner("view", ("v",), "r", True)),
        ("ALTER TABLE t SET SCHEMA s", ast.AlterObjectSchema("table", ("t",), "s")),
        ("COMMIT AND CHAIN", ast.TransactionStmt("commit", chain=True)),
        ("SET LOCAL a.b TO 'x', -1", ast.VariableSet("a.b", ("x", "-1"), True)),
        ("SET session = 1", ast.VariableSet("session", ("1",))),
        ("SET TIME ZONE LOCAL", ast.VariableSet("timezone")),
        ("RESET ALL", ast.VariableSet("all", reset=True)),
        ("SHOW TIME ZONE", ast.VariableShow("timezone")),
    ],
)
def test_statement(text: str, expected: ast.Statement) -> None:
    assert parse_statement(text) == expected


def test_a_location_may_follow_columns() -> None:
    """The parser cannot know whether the statement adopts a table or creates one."""
    statement = parse_statement("CREATE TABLE t (a int) USING delta LOCATION '/x'")
    assert statement == ast.CreateTable(TABLE, (COLUMN,), access_method="delta", location="/x")


@pytest.mark.parametrize(
    ("text", "find", "position"),
    [
        ("a + b", lambda e: e, 2),
        ("x = (SELECT 1)", lambda e: e.right, 4),
        ("ARRAY[[1]]", lambda e: e.elements[0], 6),
        ("a + b IS JSON", lambda e: e, 0),
        ("a AT LOCAL", lambda e: e, -1),
        ("f(a)", lambda e: e.args[0], 2),
        ("CASE WHEN a THEN b END", lambda e: e.whens[0], 5),
        ("a::text", lambda e: e.type_name, 3),
    ],
)
def test_positions_count_from_the_start_of_the_expression(text, find, position) -> None:  # type: ignore[no-untyped-def]
    assert find(parse_expression(text)).pos == position


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 1000 + "1" + ")" * 1000,
        "SELECT " + " AND ".join(["a = 1"] * 5000),
        "SELECT " + "NOT " * 5000 + "a",
        "SELECT " + "f(" * 3000 + "1" + ")" * 3000,
        "SELECT 1" + " UNION ALL SELECT 1" * 2000,
        "/*" * 20000 + "*/" * 20000 + "SELECT 1",
    ],
    ids=["parentheses", "and", "not", "calls", "union", "comments"],
)
def test_deep_statements_parse(text: str) -> None:
    assert len(parse(text)) == 1
