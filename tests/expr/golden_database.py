"""The database that setup.sql and setup_user.sql create, as an environment of expressions."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from replctl.errors import PostgresError
from replctl.expr.builtin_environment import BuiltinEnvironment
from replctl.expr.environment import Column
from replctl.expr.scope import RelationScope
from replctl.parser import ast
from replctl.parser.parse import parse_statement
from replctl.types import builtin
from replctl.types.builtin import FIRST_USER_OID, Cast, Function, Operator, Type
from replctl.types.function_kind import FunctionKind, Volatility
from replctl.types.quote import quote_identifier
from replctl.types.type_kind import (
    CastMethod,
    CoercionCode,
    TypeAlign,
    TypeCategory,
    TypeKind,
    TypeStorage,
)

DATA = Path(__file__).parent / "data"
NAME = "replctl_expr_golden"


@dataclass(frozen=True)
class Golden:
    """A line of data/*.tsv: the server's answer to an expression in a context."""

    context: str
    expression: str
    sqlstate: str
    text: str
    detail: str | None
    hint: str | None
    position: int

    @property
    def is_accepted(self) -> bool:
        return self.sqlstate == "00000"

    def error_fields(self) -> tuple[str, str, str | None, str | None, int]:
        return self.sqlstate, self.text, self.detail, self.hint, self.position


def golden_lines(topic: str) -> list[Golden]:
    """Return the lines of data/TOPIC.tsv."""
    text = (DATA / f"{topic}.tsv").read_text(encoding="utf-8")
    rows = csv.reader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    lines = []
    for context, expression, sqlstate, shown, detail, hint, position in (
        map(_unescaped, row) for row in rows
    ):
        lines.append(
            Golden(
                context, expression, sqlstate, shown, detail or None, hint or None, int(position)
            )
        )
    return lines


def error_fields(error: PostgresError, start: int) -> tuple[str, str, str | None, str | None, int]:
    """Return the fields of an error as in a golden line.  The expression begins at `start`."""
    position = error.position - start if error.position >= 0 else -1
    return error.sqlstate, error.message, error.detail, error.hint, position


def filter_expression(expression: str) -> tuple[ast.RawExpr, int]:
    """Return a parsed row filter, and its start in the statement."""
    start = "CREATE PUBLICATION p FOR TABLE ft WHERE ("
    statement = parse_statement(f"{start}{expression})")
    assert isinstance(statement, ast.CreatePublication)
    (item,) = statement.objects
    assert isinstance(item, ast.PublicationTable)
    assert item.where is not None
    return item.where, len(start)


def check_expression(expression: str) -> tuple[ast.RawExpr, int]:
    """Return the parsed `(expression) IS NULL`, and the start of the expression in the
    statement."""
    start = "SELECT (("
    statement = parse_statement(f"{start}{expression}) IS NULL)")
    assert isinstance(statement, ast.SelectStmt)
    (target,) = statement.targets
    assert target.value is not None
    return target.value, len(start)


class GoldenDatabase(BuiltinEnvironment):
    """Types, functions and operators of users, in schemas public and s."""

    database = NAME

    def __init__(self) -> None:
        self.search_path: tuple[str, ...] = ("pg_catalog", "public")
        self._schemas = {"pg_catalog": 11, "public": 2200, "s": 16385, "pattern": 16386}
        self._types: dict[str, Type] = {}
        self._type_schemas: dict[str, str] = {}
        self._labels: dict[str, tuple[str, ...]] = {}
        self._bases: dict[str, tuple[str, int]] = {}
        self._columns: dict[str, tuple[Column, ...]] = {}
        self._functions: dict[int, Function] = {}
        self._operators: dict[int, Operator] = {}
        self._casts: dict[tuple[str, str], Cast] = {}
        self._relations: dict[str, int] = {}
        self._last_oid = FIRST_USER_OID + 100

    # -- the objects of setup_user.sql

    def add_type(
        self,
        name: str,
        kind: TypeKind,
        schema: str = "public",
        *,
        category: TypeCategory | None = None,
        collation: str | None = None,
    ) -> str:
        """Add a type and its array type, and return the internal name of the type."""
        category = category or TypeCategory[kind.name]
        oid, array_oid = self._new_oid(), self._new_oid()
        internal, array = f"@{oid}", f"@{array_oid}"
        shown = quote_identifier(name) if schema in self.search_path else f"{schema}.{name}"
        for own, own_oid, sql_name, own_kind, own_category, element, own_array in (
            (internal, oid, shown, kind, category, None, array),
            (array, array_oid, f"{shown}[]", TypeKind.BASE, TypeCategory.ARRAY, internal, None),
        ):
            self._types[own] = Type(
                oid=own_oid,
                name=own,
                sql_name=sql_name,
                length=-1,
                kind=own_kind,
                category=own_category,
                is_preferred=False,
                delimiter=",",
                is_by_value=False,
                align=TypeAlign.INT,
                storage=TypeStorage.PLAIN,
                element=element,
                array=own_array,
                collation=collation,
                has_typmod=False,
                has_btree=False,
                has_hash=False,
            )
            self._type_schemas[own] = schema
        return internal

    def add_enum(self, name: str, labels: tuple[str, ...], schema: str = "public") -> str:
        internal = self.add_type(name, TypeKind.ENUM, schema)
        self._labels[internal] = labels
        return internal

    def add_domain(
        self,
        name: str,
        base: str,
        typmod: int = -1,
        schema: str = "public",
        collation: str | None = None,
    ) -> str:
        internal = self.add_type(
            name, TypeKind.DOMAIN, schema, category=self.type(base).category, collation=collation
        )
        self._bases[internal] = base, typmod
        return internal

    def add_composite(self, name: str, *columns: tuple[str, str]) -> str:
        internal = self.add_type(name, TypeKind.COMPOSITE)
        self._columns[internal] = tuple(
            Column(label, i, type_, -1, self.type(type_).collation)
            for i, (label, type_) in enumerate(columns, 1)
        )
        return internal

    def add_function(
        self,
        name: str,
        arguments: tuple[str, ...],
        result: str = "bool",
        schema: str = "public",
        *,
        names: tuple[str, ...] = (),
        defaults: tuple[str, ...] = (),
        variadic: str | None = None,
        kind: FunctionKind = FunctionKind.FUNCTION,
        returns_set: bool = False,
    ) -> int:
        oid = self._new_oid()
        self._functions[oid] = Function(
            oid=oid,
            name=name,
            argument_types=arguments,
            result=result,
            kind=kind,
            volatility=Volatility.IMMUTABLE,
            is_strict=False,
            returns_set=returns_set,
            variadic=variadic,
            defaults=defaults,
            source="",
            argument_names=names or ("",) * len(arguments),
            columns=(),
            schema=schema,
        )
        return oid

    def add_operator(
        self,
        name: str,
        left: str | None,
        right: str,
        result: str,
        function: str,
        schema: str = "public",
    ) -> None:
        oid = self._new_oid()
        (implementation,) = builtin.functions()[function]
        self._operators[oid] = Operator(
            oid=oid,
            name=name,
            left=left,
            right=right,
            result=result,
            function=function,
            function_oid=implementation.oid,
            commutator=None,
            negator=None,
            volatility=Volatility.IMMUTABLE,
            is_strict=True,
            schema=schema,
        )

    def add_cast(
        self, source: str, target: str, context: CoercionCode, function: int | None
    ) -> None:
        name = None if function is None else self.function(function).name
        method = CastMethod.INOUT if function is None else CastMethod.FUNCTION
        self._casts[source, target] = Cast(
            source,
            target,
            name,
            function or 0,
            context,
            method,
            Volatility.IMMUTABLE,
            1 if function else 0,
        )

    def add_relation(self, name: str, columns: Sequence[tuple[str, str, int]]) -> RelationScope:
        row_type = self.add_type(name, TypeKind.COMPOSITE)
        self._columns[row_type] = tuple(
            Column(label, i, type_, typmod, self.type(type_).collation)
            for i, (label, type_, typmod) in enumerate(columns, 1)
        )
        self._relations[name] = self._new_oid()
        return RelationScope(name, self._columns[row_type], row_type, "public")

    def _new_oid(self) -> int:
        self._last_oid += 1
        return self._last_oid

    # -- the environment

    def type(self, name: str) -> Type:
        return self._types[name] if name in self._types else super().type(name)

    def find_type(self, schema: str | None, name: str) -> Type | None:
        found = super().find_type(schema, name)
        if found is not None:
            return found
        for own, own_schema in self._type_schemas.items():
            short = self._types[own].sql_name.split(".")[-1].strip('"')
            if short == name and own_schema in (self.search_path if schema is None else (schema,)):
                return self._types[own]
        return None

    def domain_base(self, domain: Type) -> tuple[str, int]:
        return self._bases[domain.name]

    def columns(self, composite: Type) -> tuple[Column, ...] | None:
        return self._columns.get(composite.name)

    def enum_labels(self, enum: Type) -> tuple[str, ...]:
        return self._labels[enum.name]

    def functions(self, schema: str | None, name: str) -> Sequence[tuple[int, Function]]:
        found = list(super().functions(schema, name))
        for function in self._functions.values():
            if function.name == name and function.schema in (schema or self.search_path):
                found.append((1, function))
        return found

    def operators(self, schema: str | None, name: str) -> Sequence[tuple[int, Operator]]:
        found = list(super().operators(schema, name))
        for operator in self._operators.values():
            if operator.name == name and operator.schema in (schema or self.search_path):
                found.append((1, operator))
        return found

    def function(self, oid: int) -> Function:
        return self._functions[oid] if oid in self._functions else super().function(oid)

    def operator(self, oid: int) -> Operator:
        return self._operators[oid] if oid in self._operators else super().operator(oid)

    def cast(self, source: str, target: str) -> Cast | None:
        return self._casts.get((source, target)) or super().cast(source, target)

    def relation_oid(self, schema: str | None, name: str) -> int | None:
        return self._relations.get(name) if schema in (None, "public") else None

    def relation_name(self, oid: int) -> str | None:
        names = {own_oid: name for name, own_oid in self._relations.items()}
        return quote_identifier(names[oid]) if oid in names else None

    def schema_oid(self, name: str) -> int | None:
        return self._schemas.get(name)

    def schema_name(self, oid: int) -> str | None:
        return {own_oid: name for name, own_oid in self._schemas.items()}.get(oid)

    def role_oid(self, name: str) -> int | None:
        return {"postgres": 10}.get(name)

    def role_name(self, oid: int) -> str | None:
        return {10: "postgres"}.get(oid)

    def type_by_oid(self, oid: int) -> Type | None:
        return self._types.get(f"@{oid}") or super().type_by_oid(oid)


def plain_database() -> tuple[GoldenDatabase, RelationScope]:
    """Return the database that setup.sql creates."""
    database = GoldenDatabase()
    columns = [
        ("id", "int4", -1), ("i2", "int2", -1), ("i4", "int4", -1), ("i8", "int8", -1),
        ("n", "numeric", -1), ("n2", "numeric", 655366), ("f4", "float4", -1), ("f8", "float8", -1),
        ("b", "bool", -1), ("t", "text", -1), ("v", "varchar", 24), ("c", "bpchar", 9),
        ("d", "date", -1), ("tm", "time", -1), ("ts", "timestamp", -1), ("tz", "timestamptz", -1),
        ("iv", "interval", -1), ("u", "uuid", -1), ("by", "bytea", -1), ("j", "json", -1),
        ("jb", "jsonb", -1), ("ia", "_int4", -1), ("ta", "_text", -1),
    ]  # fmt: skip
    return database, database.add_relation("ft", columns)


def user_database() -> tuple[GoldenDatabase, RelationScope]:
    """Return the plain database with the objects that setup_user.sql creates."""
    database, _ = plain_database()
    function, operator = database.add_function, database.add_operator
    function("is_even", ("int4",))
    function("lower", ("int4",), "text")
    function("upper", ("text",), "text")
    function("hid", ("int4",), schema="s")
    function("f", ("int4", "text"), names=("a", "b"), defaults=("'x'::text",))
    function("f", ("int4",), names=("a",))
    function("f2", ("int4", "text", "int4"), names=("a", "b", "c"), defaults=("'x'::text", "1"))
    function("vf", ("_int4",), variadic="int4")
    function("vf2", ("text", "_text"), variadic="text")
    function("va", ("anyarray",), variadic="anyelement")
    function("g", ("anyelement", "anyelement"), "anyelement")
    function("gc", ("anycompatible", "anycompatible"), "anycompatible")
    function("ga", ("anyarray",), "anyelement")
    function("gca", ("anycompatiblearray", "anycompatible"), "anycompatiblearray")
    function("gn", ("anynonarray",))
    function("ge", ("anyenum",))
    function("gr", ("anyrange", "anyelement"))
    function("gcr", ("anycompatiblerange", "anycompatible"))
    function("gm", ("anymultirange",), "anyrange")
    function("pr", ("int4",), "void", kind=FunctionKind.PROCEDURE)
    function("srf", ("int4",), "int4", returns_set=True)
    function("Odd Name", ("int4",))
    function("select", ("int4",))
    operator("===", "int4", "int4", "bool", "int4eq")
    operator("===", "int8", "int8", "bool", "int8eq", "s")
    operator("=", "int4", "int8", "bool", "int48eq")
    operator("+", "int4", "int4", "int4", "int4pl", "s")
    operator("@#@", None, "int4", "int4", "int4um")
    mood = database.add_enum("mood", ("sad", "ok", "happy"))
    hue = database.add_enum("hue", ("red", "it's"), "s")
    dom = database.add_domain("dom", "int4")
    domv = database.add_domain("domv", "varchar", 9, collation="default")
    domt = database.add_domain("domt", "text", collation="C")
    doma = database.add_domain("doma", "_int4")
    domd = database.add_domain("domd", dom, schema="s")
    comp = database.add_composite("comp", ("a", "int4"), ("b", "text"), ("m", mood))
    domc = database.add_domain("domc", comp)
    function("cf", (comp,))
    function("a", (comp,))
    function("zz", (comp,))
    database.add_cast(mood, "int4", CoercionCode.ASSIGNMENT, function("mkcast", (mood,), "int4"))
    database.add_cast(mood, "text", CoercionCode.IMPLICIT, None)
    database.add_relation("U t", [("x", "int4", -1)])
    arrays = {name: database.type(name).array or "" for name in (mood, comp)}
    scope = database.add_relation(
        "ut",
        [
            ("id", "int4", -1), ("i8", "int8", -1), ("t", "text", -1), ("m", mood, -1),
            ("h", hue, -1), ("d", dom, -1), ("dv", domv, -1), ("dt", domt, -1), ("da", doma, -1),
            ("dd", domd, -1), ("c", comp, -1), ("dc", domc, -1), ("ma", arrays[mood], -1),
            ("ca", arrays[comp], -1), ("v", "varchar", 14), ("vc", "text", -1),
            ("vp", "varchar", -1), ("Q c", "int4", -1), ("user", "int4", -1),
            ("r", "int4range", -1), ("mr", "int4multirange", -1), ("ia", "_int4", -1),
        ],
    )  # fmt: skip
    collations = {"vc": "C", "vp": "POSIX"}
    columns = tuple(
        Column(
            column.name,
            column.attnum,
            column.type,
            column.typmod,
            collations.get(column.name, column.collation),
        )
        for column in scope.columns
    )
    return database, RelationScope("ut", columns, scope.row_type, "public")


def _unescaped(field: str) -> str:
    marks = {"n": "\n", "t": "\t", "\\": "\\"}
    parts = field.split("\\\\")
    return "\\".join(
        "".join(
            marks[piece[0]] + piece[1:] if i and piece else piece
            for i, piece in enumerate(part.split("\\"))
        )
        for part in parts
    )
