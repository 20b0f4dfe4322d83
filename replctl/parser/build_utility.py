"""Nodes of utility.lark: schemas, databases, types, functions, DROP and RENAME, transactions, variables."""

from __future__ import annotations

import dataclasses
from typing import Any

from lark import Token, Transformer, v_args

from replctl.errors import InvalidFunctionDefinition
from replctl.parser import ast
from replctl.parser.build_expression import start_of

Names = tuple[Token, ...]


@v_args(inline=True)
class UtilityBuilder(Transformer[Token, object]):
    """A method for each rule or alias of utility.lark."""

    # -- schemas and databases

    def create_schema(
        self, if_not_exists: bool | None, name: Token, authorization: Token | None
    ) -> ast.CreateSchema:
        return ast.CreateSchema(
            str(name), bool(if_not_exists), _text(authorization), pos=start_of(name)
        )

    def create_schema_authorization(
        self, if_not_exists: bool | None, role: Token
    ) -> ast.CreateSchema:
        return ast.CreateSchema(None, bool(if_not_exists), str(role), pos=start_of(role))

    def create_database(self, name: Token, *options: ast.DefElem) -> ast.CreateDatabase:
        return ast.CreateDatabase(str(name), options, pos=start_of(name))

    def database_option_name(self, *words: Token) -> Token:
        return Token(words[0].type, " ".join(words), words[0].start_pos)

    def database_option(self, name: Token, value: ast.DefElem) -> ast.DefElem:
        return dataclasses.replace(value, name=str(name), pos=start_of(name))

    def drop_database(self, if_exists: bool | None, name: Token) -> ast.DropDatabase:
        return ast.DropDatabase(str(name), bool(if_exists), pos=start_of(name))

    # -- types, functions, operators

    def create_enum(self, name: Names, labels: tuple[str, ...] | None) -> ast.CreateEnum:
        return ast.CreateEnum(_names(name), labels or (), pos=start_of(name[0]))

    def enum_labels(self, *labels: Token) -> tuple[str, ...]:
        return tuple(map(str, labels))

    def create_function(
        self,
        or_replace: bool | None,
        name: Names,
        parameters: tuple[ast.FunctionParameter, ...] | None,
        returns: ast.TypeName | None,
        options: tuple[ast.DefElem, ...],
    ) -> ast.CreateFunction:
        return ast.CreateFunction(
            _names(name),
            parameters or (),
            returns,
            options,
            bool(or_replace),
            pos=start_of(name[0]),
        )

    def function_parameters(
        self, *parameters: ast.FunctionParameter
    ) -> tuple[ast.FunctionParameter, ...]:
        return parameters

    def function_parameter(
        self,
        mode: str | None,
        name: Token | None,
        type_name: ast.TypeName,
        default: ast.RawExpr | None,
    ) -> ast.FunctionParameter:
        return ast.FunctionParameter(_text(name), type_name, mode or "in", default)  # type: ignore[arg-type]

    def parameter_mode(self, word: Token) -> str:
        return str(word)

    def returns_table(self, *columns: ast.FunctionParameter) -> ast.TypeName:
        return ast.TypeName(("pg_catalog", "record"), is_setof=True)

    def table_column(self, name: Token, type_name: ast.TypeName) -> ast.FunctionParameter:
        return ast.FunctionParameter(str(name), type_name, "table")

    def function_options(self, *options: ast.DefElem) -> tuple[ast.DefElem, ...]:
        names = [option.name for option in options]
        for option in options:
            if names.count(option.name) > 1:
                raise InvalidFunctionDefinition(
                    "conflicting or redundant options", position=option.pos
                )
        return options

    def function_language(self, language: Token) -> ast.DefElem:
        return ast.DefElem("language", str(language), pos=start_of(language))

    def function_body(self, body: Token, symbol: Token | None) -> ast.DefElem:
        return ast.DefElem("as", str(body), pos=start_of(body))

    def function_option(self, option: ast.DefElem) -> ast.DefElem:
        return option

    def function_attribute(self, *words: Token) -> ast.DefElem:
        text = " ".join(word for word in words if word is not None)
        if text in ("immutable", "stable", "volatile"):
            return ast.DefElem("volatility", text, pos=start_of(words[0]))
        if text in ("strict", "called on null input", "returns null on null input"):
            return ast.DefElem(
                "strict", str(text != "called on null input").lower(), pos=start_of(words[0])
            )
        return ast.DefElem(text.split()[0], text, pos=start_of(words[0]))

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
            _names(name),
            function.names if function else (),
            arguments.get("leftarg"),
            arguments.get("rightarg"),
            tuple(rest),
            pos=start_of(name[0]),
        )

    def operator_option(
        self, name: Token, value: ast.TypeName | Token | None
    ) -> ast.DefElem | tuple[str, ast.TypeName]:
        if isinstance(value, ast.TypeName):
            return str(name), value
        return ast.DefElem(str(name), _text(value), pos=start_of(name))

    # -- DROP, RENAME, OWNER, SCHEMA

    def drop_stmt(
        self,
        object_type: ast.ObjectType,
        if_exists: bool | None,
        names: tuple[Names, ...],
        behavior: str | None,
    ) -> ast.Drop:
        return ast.Drop(
            object_type,
            tuple(map(_names, names)),
            bool(if_exists),
            behavior or "restrict",  # type: ignore[arg-type]
            name_positions=tuple(start_of(name[0]) for name in names),
        )

    def _object_type(self, *words: Token | None) -> str:
        return " ".join(word for word in words if word is not None and word.type != "CONCURRENTLY")

    dropped_type = altered_type = _object_type

    def dropped_function(self, name: Names, parameters: object) -> Names:
        return name

    def drop_function(self, if_exists: bool | None, *rest: Any) -> ast.Drop:
        *names, behavior = rest
        return self.drop_stmt("function", if_exists, tuple(names), behavior)

    def rename_stmt(
        self, object_type: ast.ObjectType, if_exists: bool | None, name: Names, new_name: Token
    ) -> ast.Rename:
        return ast.Rename(object_type, _names(name), str(new_name), missing_ok=bool(if_exists))

    def rename_table(
        self, if_exists: bool | None, relation: ast.RangeVar, new_name: Token
    ) -> ast.Rename:
        return ast.Rename(
            "table", _parts(relation), str(new_name), missing_ok=bool(if_exists), pos=relation.pos
        )

    def rename_column(
        self, if_exists: bool | None, relation: ast.RangeVar, name: Token, new_name: Token
    ) -> ast.Rename:
        return ast.Rename(
            "column", _parts(relation), str(new_name), str(name), bool(if_exists), pos=relation.pos
        )

    def rename_constraint(
        self, if_exists: bool | None, relation: ast.RangeVar, name: Token, new_name: Token
    ) -> ast.Rename:
        return ast.Rename(
            "constraint",
            _parts(relation),
            str(new_name),
            str(name),
            bool(if_exists),
            pos=relation.pos,
        )

    def rename_publication(self, name: Token, new_name: Token) -> ast.Rename:
        return ast.Rename("publication", (str(name),), str(new_name))

    def rename_subscription(self, name: Token, new_name: Token) -> ast.Rename:
        return ast.Rename("subscription", (str(name),), str(new_name))

    def alter_owner_stmt(
        self, object_type: ast.ObjectType, if_exists: bool | None, name: Names, role: Token
    ) -> ast.AlterOwner:
        return ast.AlterOwner(object_type, _names(name), str(role))

    def owner_publication(self, name: Token, role: Token) -> ast.AlterOwner:
        return ast.AlterOwner("publication", (str(name),), str(role))

    def owner_subscription(self, name: Token, role: Token) -> ast.AlterOwner:
        return ast.AlterOwner("subscription", (str(name),), str(role))

    def alter_schema_stmt(
        self, if_exists: bool | None, relation: ast.RangeVar, schema: Token
    ) -> ast.AlterObjectSchema:
        return ast.AlterObjectSchema(
            "table", _parts(relation), str(schema), bool(if_exists), pos=relation.pos
        )

    # -- transactions

    def transaction_word(self) -> None:
        return None

    def transaction_mode(self, *words: Token) -> ast.DefElem:
        return ast.DefElem(" ".join(words), None, pos=start_of(words[0]))

    def transaction_modes(self, *modes: ast.DefElem) -> tuple[ast.DefElem, ...]:
        return modes

    def chain(self, *words: Token) -> bool:
        return len(words) == 2

    def begin(self, word: None, modes: tuple[ast.DefElem, ...] | None) -> ast.TransactionStmt:
        return ast.TransactionStmt("begin", options=modes or ())

    def start_transaction(self, modes: tuple[ast.DefElem, ...] | None) -> ast.TransactionStmt:
        return ast.TransactionStmt("start", options=modes or ())

    def commit(self, word: None, chain: bool | None) -> ast.TransactionStmt:
        return ast.TransactionStmt("commit", chain=bool(chain))

    def rollback(self, word: None, chain: bool | None) -> ast.TransactionStmt:
        return ast.TransactionStmt("rollback", chain=bool(chain))

    def savepoint(self, name: Token) -> ast.TransactionStmt:
        return ast.TransactionStmt("savepoint", str(name))

    def release(self, name: Token) -> ast.TransactionStmt:
        return ast.TransactionStmt("release", str(name))

    def rollback_to(self, word: None, name: Token) -> ast.TransactionStmt:
        return ast.TransactionStmt("rollback to", str(name))

    # -- variables

    def variable_scope(self, word: Token) -> str:
        return str(word)

    def variable_name(self, *parts: Token) -> str:
        return ".".join(parts)

    def variable_values(self, *values: Token | str) -> tuple[str, ...]:
        return tuple(map(str, values))

    def variable_set(
        self, scope: str | None, name: str, values: tuple[str, ...]
    ) -> ast.VariableSet:
        return ast.VariableSet(name, values, scope == "local")

    def variable_set_default(self, scope: str | None, name: str) -> ast.VariableSet:
        return ast.VariableSet(name, (), scope == "local")

    def set_time_zone(self, scope: str | None, value: Token | str) -> ast.VariableSet:
        return self.variable_set(scope, "timezone", (str(value),))

    def set_role(self, scope: str | None, role: Token) -> ast.VariableSet:
        return self.variable_set(scope, "role", (str(role),))

    def set_session_authorization(self, scope: str | None, role: Token) -> ast.VariableSet:
        return self.variable_set(scope, "session_authorization", (str(role),))

    def set_transaction(self, modes: tuple[ast.DefElem, ...]) -> ast.VariableSet:
        return ast.VariableSet("transaction", tuple(mode.name for mode in modes), is_local=True)

    def variable_reset(self, name: str | Token) -> ast.VariableSet:
        return ast.VariableSet(str(name), reset=True)

    def reset_time_zone(self) -> ast.VariableSet:
        return ast.VariableSet("timezone", reset=True)

    def reset_session_authorization(self) -> ast.VariableSet:
        return ast.VariableSet("session_authorization", reset=True)

    def variable_show(self, name: str) -> ast.VariableShow:
        return ast.VariableShow(name)

    def variable_show_all(self, word: Token) -> ast.VariableShow:
        return ast.VariableShow("all")

    def show_time_zone(self) -> ast.VariableShow:
        return ast.VariableShow("timezone")


def _parts(relation: ast.RangeVar) -> tuple[str, ...]:
    return tuple(
        part for part in (relation.catalog, relation.schema, relation.name) if part is not None
    )


def _names(names: Names) -> tuple[str, ...]:
    return tuple(map(str, names))


def _text(token: Token | None) -> str | None:
    return None if token is None else str(token)
