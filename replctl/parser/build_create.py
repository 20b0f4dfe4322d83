"""Build the nodes of CREATE in utility.lark: schemas, databases, types, functions, operators,
collations and views.
"""

from __future__ import annotations

import dataclasses
from typing import Any, cast

from lark import Token

from replctl.errors import FeatureNotSupported, SqlSyntaxError
from replctl.parser import ast
from replctl.parser.build_parts import (
    Names,
    check_no_keyword,
    name_texts,
    optional_text,
    role_name,
    start_of,
)


class CreateBuilder:
    """Builds the nodes of new objects.  Each rule or alias has a method."""

    # -- schemas and databases

    def create_schema(
        self, if_not_exists: bool | None, schema: ast.CreateSchema
    ) -> ast.CreateSchema:
        return dataclasses.replace(schema, if_not_exists=bool(if_not_exists))

    def create_schema_with_elements(
        self, schema: ast.CreateSchema, *elements: ast.SchemaElement
    ) -> ast.CreateSchema:
        return dataclasses.replace(schema, elements=elements)

    def schema_name(self, name: Token) -> ast.CreateSchema:
        return ast.CreateSchema(str(name), pos=start_of(name))

    def schema_authorization(self, name: Token | None, role: Token) -> ast.CreateSchema:
        return ast.CreateSchema(
            optional_text(name), authorization=role_name(role), pos=start_of(name or role)
        )

    def create_database(self, name: Token, *options: ast.DefElem) -> ast.CreateDatabase:
        return ast.CreateDatabase(str(name), options, pos=start_of(name))

    def database_option_name(self, *words: Token) -> Token:
        if words[0].type == "IDENT":
            check_no_keyword(words[0])
        return Token(words[0].type, "_".join(words), words[0].start_pos)

    def database_option(self, name: Token, value: Token | str) -> ast.DefElem:
        is_default = isinstance(value, Token) and value.type == "DEFAULT"
        is_name = isinstance(value, Token) and value.type != "SCONST"
        return ast.DefElem(
            str(name),
            None if is_default else str(value),
            is_name and not is_default,
            pos=start_of(name),
        )

    def drop_database(
        self, if_exists: bool | None, name: Token, force: bool | None
    ) -> ast.DropDatabase:
        return ast.DropDatabase(str(name), bool(if_exists), bool(force), pos=start_of(name))

    def drop_database_options(self) -> bool:
        return True

    # -- types, functions, operators

    def create_enum(self, name: Names, labels: tuple[str, ...] | None) -> ast.CreateEnum:
        return ast.CreateEnum(name_texts(name), labels or (), pos=start_of(name[0]))

    def add_enum_value(
        self, name: Names, if_not_exists: bool | None, label: Token, neighbor: Token | None = None
    ) -> ast.AddEnumValue:
        return _added_value(name, if_not_exists, label, neighbor)

    def add_enum_value_after(
        self, name: Names, if_not_exists: bool | None, label: Token, neighbor: Token
    ) -> ast.AddEnumValue:
        return _added_value(name, if_not_exists, label, neighbor, is_after=True)

    def rename_enum_value(self, name: Names, label: Token, new_label: Token) -> ast.RenameEnumValue:
        return ast.RenameEnumValue(
            name_texts(name), str(label), str(new_label), pos=start_of(name[0])
        )

    def create_composite(self, name: Names, *columns: ast.ColumnDef | None) -> ast.CreateComposite:
        given = tuple(column for column in columns if column is not None)
        return ast.CreateComposite(name_texts(name), given, pos=start_of(name[0]))

    def enum_labels(self, *labels: Token) -> tuple[str, ...]:
        return tuple(map(str, labels))

    def create_function(
        self,
        or_replace: bool | None,
        name: Names,
        parameters: tuple[ast.FunctionParameter, ...] | None,
        returns: ast.TypeName | tuple[ast.FunctionParameter, ...] | None,
        *options: ast.DefElem,
    ) -> ast.CreateFunction:
        is_table = isinstance(returns, tuple)
        function = ast.CreateFunction(
            name_texts(name),
            parameters or (),
            None if isinstance(returns, tuple) else returns,
            options,
            bool(or_replace),
            pos=start_of(name[0]),
        )
        if not is_table:
            return function
        columns = cast("tuple[ast.FunctionParameter, ...]", returns)
        if any(parameter.mode in ("out", "inout") for parameter in function.parameters):
            raise SqlSyntaxError("OUT and INOUT arguments aren't allowed in TABLE functions")
        result = (
            columns[0].type_name if len(columns) == 1 else ast.TypeName(("pg_catalog", "record"))
        )
        return dataclasses.replace(
            function,
            returns=dataclasses.replace(result, is_setof=True),
            table_columns=columns,
        )

    def function_parameters(
        self, *parameters: ast.FunctionParameter
    ) -> tuple[ast.FunctionParameter, ...]:
        return parameters

    def function_parameter(
        self, argument: ast.FunctionParameter, default: ast.RawExpr | None
    ) -> ast.FunctionParameter:
        return dataclasses.replace(argument, default=default)

    def function_arguments(
        self, *arguments: ast.FunctionParameter
    ) -> tuple[ast.FunctionParameter, ...]:
        return arguments

    def unnamed_argument(self, mode: str | None, type_name: ast.TypeName) -> ast.FunctionParameter:
        return ast.FunctionParameter(None, type_name, mode or "in", pos=type_name.pos)  # type: ignore[arg-type]

    def named_argument(
        self, mode: str | None, name: Token, type_name: ast.TypeName
    ) -> ast.FunctionParameter:
        return ast.FunctionParameter(str(name), type_name, mode or "in", pos=start_of(name))  # type: ignore[arg-type]

    def named_argument_mode(
        self, name: Token, mode: str, type_name: ast.TypeName
    ) -> ast.FunctionParameter:
        return self.named_argument(mode, name, type_name)

    def parameter_mode(self, *words: Token) -> str:
        return "inout" if len(words) == 2 else str(words[0])

    def returns_table(
        self, word: Token, *columns: ast.FunctionParameter
    ) -> tuple[ast.FunctionParameter, ...]:
        return columns

    def table_column(self, name: Token, type_name: ast.TypeName) -> ast.FunctionParameter:
        return ast.FunctionParameter(str(name), type_name, "table", pos=start_of(name))

    def function_language(self, word: Token, language: Token) -> ast.DefElem:
        return ast.DefElem("language", str(language), pos=start_of(word))

    def function_body(self, word: Token, body: Token, symbol: Token | None) -> ast.DefElem:
        """Return the option AS; refuse an object file with a symbol, which only LANGUAGE C uses."""
        if symbol is not None:
            raise FeatureNotSupported(
                "functions in object files are not supported", position=start_of(body)
            )
        return ast.DefElem("as", str(body), pos=start_of(word))

    def function_option(self, option: ast.DefElem) -> ast.DefElem:
        return option

    def function_attribute(self, *words: Token | str | None) -> ast.DefElem:
        present = [word for word in words if word is not None]
        text, pos = " ".join(present), start_of(cast(Token, present[0]))
        if text in ("immutable", "stable", "volatile"):
            return ast.DefElem("volatility", text, pos=pos)
        if text in ("strict", "called on null input", "returns null on null input"):
            return ast.DefElem("strict", str(text != "called on null input").lower(), pos=pos)
        if text.endswith("leakproof"):
            return ast.DefElem("leakproof", str(text == "leakproof").lower(), pos=pos)
        if text == "window":
            return ast.DefElem("window", "true", pos=pos)
        if "security" in text:
            return ast.DefElem("security", str(text.endswith("definer")).lower(), pos=pos)
        return ast.DefElem(str(present[0]), str(present[1]), pos=pos)  # PARALLEL, COST, ROWS

    def function_setting(self, setting: ast.VariableSet) -> ast.DefElem:
        if not setting.reset:
            raise FeatureNotSupported("settings of functions are not supported")
        return ast.DefElem("reset", setting.name)

    def create_collation(
        self, if_not_exists: bool | None, name: Names, source: Names
    ) -> ast.CreateCollation:
        return ast.CreateCollation(
            name_texts(name), name_texts(source), bool(if_not_exists), pos=start_of(name[0])
        )

    def create_operator(
        self, name: Names, *options: ast.DefElem | tuple[str, Any]
    ) -> ast.CreateOperator:
        arguments: dict[str, Any] = {}
        rest: list[ast.DefElem] = []
        for option in options:
            if isinstance(option, ast.DefElem):
                rest.append(option)
            else:
                arguments[option[0]] = option[1]
        function = arguments.get("function") or arguments.get("procedure")
        return ast.CreateOperator(
            name_texts(name),
            function.names if function else (),
            arguments.get("leftarg"),
            arguments.get("rightarg"),
            tuple(rest),
            pos=start_of(name[0]),
        )

    def operator_reference(self, parts: Names) -> str:
        return ".".join(parts)

    def operator_option(
        self, name: Token, value: ast.TypeName | ast.Constant | str | None
    ) -> ast.DefElem | tuple[str, ast.TypeName]:
        if isinstance(value, ast.TypeName):
            return str(name), value
        text = value.value if isinstance(value, ast.Constant) else value
        return ast.DefElem(str(name), None if text is None else str(text), pos=start_of(name))

    # -- views

    def create_view(
        self,
        or_replace: bool | None,
        persistence: str | None,
        relation: ast.RangeVar,
        columns: Names | None,
        options: tuple[ast.DefElem, ...] | None,
        query: ast.SelectStmt,
    ) -> ast.CreateView:
        return ast.CreateView(
            relation,
            name_texts(columns or ()),
            query,
            bool(or_replace),
            persistence or "permanent",  # type: ignore[arg-type]
            options or (),
            pos=relation.pos,
        )

    def refresh_materialized_view(
        self, concurrently: Token | None, relation: ast.RangeVar, with_data: bool | None
    ) -> ast.RefreshMaterializedView:
        return ast.RefreshMaterializedView(
            relation, concurrently is not None, with_data is not False, pos=relation.pos
        )


def _added_value(
    name: Names,
    if_not_exists: bool | None,
    label: Token,
    neighbor: Token | None,
    *,
    is_after: bool = False,
) -> ast.AddEnumValue:
    return ast.AddEnumValue(
        name_texts(name),
        str(label),
        optional_text(neighbor),
        is_after,
        bool(if_not_exists),
        pos=start_of(name[0]),
    )
