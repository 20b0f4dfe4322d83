"""Nodes of utility.lark: schemas, databases, types, functions, DROP and RENAME, transactions,
variables.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, cast

from lark import Token

from replctl.errors import FeatureNotSupported, SqlSyntaxError
from replctl.parser import ast
from replctl.parser.node import check_no_keyword, names_only, role_name, start_of

Names = tuple[Token, ...]


class _DroppedFunction(NamedTuple):
    """`arguments` is None where no parentheses stand."""

    name: Names
    arguments: tuple[ast.FunctionParameter, ...] | None

    @property
    def argument_types(self) -> tuple[ast.TypeName, ...] | None:
        if self.arguments is None:
            return None
        return tuple(argument.type_name for argument in self.arguments)


def _checked_function_options(options: tuple[ast.DefElem, ...]) -> tuple[ast.DefElem, ...]:
    seen = set()
    for option in options:
        if option.name in seen:  # errorConflictingDefElem
            raise SqlSyntaxError("conflicting or redundant options", position=option.pos)
        seen.add(option.name)
    return options


class UtilityBuilder:
    """A method for each rule or alias of utility.lark."""

    def _object_type(self, *words: Token) -> str:
        return " ".join(words)

    # -- schemas and databases

    def create_schema(self, if_not_exists: bool | None, name: Token) -> ast.CreateSchema:
        return ast.CreateSchema(str(name), bool(if_not_exists), pos=start_of(name))

    def create_schema_authorization(
        self, if_not_exists: bool | None, name: Token | None, role: Token
    ) -> ast.CreateSchema:
        return ast.CreateSchema(
            _text(name), bool(if_not_exists), role_name(role), pos=start_of(name or role)
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
        return ast.CreateEnum(_names(name), labels or (), pos=start_of(name[0]))

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
            _names(name),
            parameters or (),
            None if isinstance(returns, tuple) else returns,
            _checked_function_options(options),
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

    def function_language(self, language: Token) -> ast.DefElem:
        return ast.DefElem("language", str(language), pos=start_of(language))

    def function_body(self, word: Token, body: Token, symbol: Token | None) -> ast.DefElem:
        """Two strings name an object file and a symbol, which only LANGUAGE C has."""
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

    def create_collation(
        self, if_not_exists: bool | None, name: Names, source: Names
    ) -> ast.CreateCollation:
        return ast.CreateCollation(
            _names(name), _names(source), bool(if_not_exists), pos=start_of(name[0])
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
            _names(name),
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

    def operator_with_argtypes(
        self, name: Names, left: ast.TypeName | Token, right: ast.TypeName | Token | None
    ) -> tuple[Names, tuple[ast.TypeName | None, ...]]:
        if right is None:
            raise SqlSyntaxError(
                "missing argument",
                hint="Use NONE to denote the missing argument of a unary operator.",
                position=left.pos if isinstance(left, ast.TypeName) else start_of(left),
            )
        arguments = (left, right)
        return name, tuple(a if isinstance(a, ast.TypeName) else None for a in arguments)

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
            _names(columns or ()),
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

    # -- COMMENT

    commented_relation = _object_type

    def comment_stmt(self, object_type: Token, name: Token, text: Token) -> ast.Comment:
        return ast.Comment(_kind(object_type), (str(name),), _comment(text), pos=start_of(name))

    def comment_on_name(self, object_type: str, name: Names, text: Token) -> ast.Comment:
        return ast.Comment(_kind(object_type), _names(name), _comment(text), pos=start_of(name[0]))

    def comment_on_type(
        self, object_type: Token, type_name: ast.TypeName, text: Token
    ) -> ast.Comment:
        return ast.Comment(_kind(object_type), type_name.names, _comment(text), pos=type_name.pos)

    def comment_on_function(self, function: _DroppedFunction, text: Token) -> ast.Comment:
        return ast.Comment(
            "function",
            _names(function.name),
            _comment(text),
            arguments=function.argument_types,
            pos=start_of(function.name[0]),
        )

    def comment_on_operator(
        self, operator: tuple[Names, tuple[ast.TypeName | None, ...]], text: Token
    ) -> ast.Comment:
        name, arguments = operator
        return ast.Comment(
            "operator", _names(name), _comment(text), arguments=arguments, pos=start_of(name[0])
        )

    def comment_on_constraint(
        self, word: Token, name: Token, relation: Names, text: Token
    ) -> ast.Comment:
        return ast.Comment(
            "constraint", _names(relation), _comment(text), str(name), pos=start_of(relation[0])
        )

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

    dropped_type = dropped_name_type = _object_type

    def dropped_names(self, names: Names) -> tuple[Names, ...]:
        return tuple((name,) for name in names)

    def drop_index_concurrently(
        self,
        word: Token,
        if_exists: bool | None,
        names: tuple[Names, ...],
        behavior: str | None,
    ) -> ast.Drop:
        drop = self.drop_stmt("index", if_exists, names, behavior)
        return dataclasses.replace(drop, concurrently=True)

    def dropped_types(self, *types: ast.TypeName) -> tuple[ast.TypeName, ...]:
        return types

    def drop_type(self, *parts: Any) -> ast.Drop:
        *domain, if_exists, types, behavior = parts
        for type_name in types:
            if type_name.array_bounds or type_name.modifiers or type_name.is_setof:
                raise FeatureNotSupported(
                    "DROP TYPE of anything but a name is not supported", position=type_name.pos
                )
        return ast.Drop(
            "domain" if domain else "type",
            tuple(type_name.names for type_name in types),
            bool(if_exists),
            behavior or "restrict",
            name_positions=tuple(type_name.pos for type_name in types),
        )

    def dropped_function(
        self, name: Names, arguments: tuple[ast.FunctionParameter, ...] | None
    ) -> _DroppedFunction:
        return _DroppedFunction(name, arguments or ())

    def dropped_function_name(
        self, name: Token, indirection: tuple[Any, ...] | None = None
    ) -> _DroppedFunction:
        return _DroppedFunction((name, *names_only(indirection or ())), None)

    def drop_function(self, if_exists: bool | None, *rest: Any) -> ast.Drop:
        *functions, behavior = rest
        names = tuple(function.name for function in functions)
        drop = self.drop_stmt("function", if_exists, names, behavior)
        return dataclasses.replace(
            drop, arguments=tuple(function.arguments for function in functions)
        )

    def drop_operator(self, if_exists: bool | None, *rest: Any) -> ast.Drop:
        *operators, behavior = rest
        names = tuple(name for name, _operands in operators)
        drop = self.drop_stmt("operator", if_exists, names, behavior)
        return dataclasses.replace(drop, operands=tuple(operands for _name, operands in operators))

    def rename_stmt(
        self,
        object_type: str,
        if_exists: bool | None,
        relation: ast.RangeVar,
        new_name: Token,
    ) -> ast.Rename:
        return ast.Rename(
            str(object_type),  # type: ignore[arg-type]
            _parts(relation),
            str(new_name),
            missing_ok=bool(if_exists),
            pos=relation.pos,
        )

    def rename_materialized_view(
        self, if_exists: bool | None, relation: ast.RangeVar, new_name: Token
    ) -> ast.Rename:
        return self.rename_stmt("materialized view", if_exists, relation, new_name)

    def rename_named(self, object_type: str, name: Token, new_name: Token) -> ast.Rename:
        return ast.Rename(str(object_type), (str(name),), str(new_name), pos=start_of(name))  # type: ignore[arg-type]

    def rename_type(self, name: Names, new_name: Token) -> ast.Rename:
        return ast.Rename("type", _names(name), str(new_name), pos=start_of(name[0]))

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

    def rename_view_column(
        self,
        object_type: Token,
        if_exists: bool | None,
        relation: ast.RangeVar,
        name: Token,
        new_name: Token,
    ) -> ast.Rename:
        rename = self.rename_column(if_exists, relation, name, new_name)
        return dataclasses.replace(rename, relation_type=_kind(object_type))

    def rename_materialized_view_column(
        self,
        object_type: Token,
        if_exists: bool | None,
        relation: ast.RangeVar,
        name: Token,
        new_name: Token,
    ) -> ast.Rename:
        rename = self.rename_column(if_exists, relation, name, new_name)
        return dataclasses.replace(rename, relation_type="materialized view")

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

    def alter_owner_stmt(self, object_type: Token, name: Token, role: Token) -> ast.AlterOwner:
        return ast.AlterOwner(str(object_type), (str(name),), role_name(role), pos=start_of(name))  # type: ignore[arg-type]

    def owner_type(self, name: Names, role: Token) -> ast.AlterOwner:
        return ast.AlterOwner("type", _names(name), role_name(role), pos=start_of(name[0]))

    def owner_function(self, function: _DroppedFunction, role: Token) -> ast.AlterOwner:
        return ast.AlterOwner(
            "function",
            _names(function.name),
            role_name(role),
            arguments=function.argument_types,
            pos=start_of(function.name[0]),
        )

    def owner_operator(
        self, operator: tuple[Names, tuple[ast.TypeName | None, ...]], role: Token
    ) -> ast.AlterOwner:
        name, arguments = operator
        return ast.AlterOwner(
            "operator", _names(name), role_name(role), arguments=arguments, pos=start_of(name[0])
        )

    def alter_table_cmds(self, *commands: ast.AlterTableCmd) -> tuple[ast.AlterTableCmd, ...]:
        return commands

    def alter_relation(
        self,
        object_type: str,
        if_exists: bool | None,
        relation: ast.RangeVar,
        commands: tuple[ast.AlterTableCmd, ...],
    ) -> ast.AlterOwner:
        """Actions of ALTER TABLE on other relations: only a new owner."""
        if [command.kind for command in commands] != ["owner_to"]:
            raise FeatureNotSupported(
                f"this form of ALTER {object_type.upper()} is not supported",
                position=max(commands[0].pos, relation.pos),
            )
        return ast.AlterOwner(
            str(object_type),  # type: ignore[arg-type]
            _parts(relation),
            commands[0].name or "",
            bool(if_exists),
            pos=relation.pos,
        )

    def alter_materialized_view(
        self,
        if_exists: bool | None,
        relation: ast.RangeVar,
        commands: tuple[ast.AlterTableCmd, ...],
    ) -> ast.AlterOwner:
        return self.alter_relation("materialized view", if_exists, relation, commands)

    def alter_schema_stmt(
        self, if_exists: bool | None, relation: ast.RangeVar, schema: Token
    ) -> ast.AlterObjectSchema:
        return ast.AlterObjectSchema(
            "table", _parts(relation), str(schema), bool(if_exists), pos=relation.pos
        )

    def move_relation(
        self, object_type: Token, if_exists: bool | None, relation: ast.RangeVar, schema: Token
    ) -> ast.AlterObjectSchema:
        moved = self.alter_schema_stmt(if_exists, relation, schema)
        return dataclasses.replace(moved, object_type=_kind(object_type))

    def move_materialized_view(
        self, if_exists: bool | None, relation: ast.RangeVar, schema: Token
    ) -> ast.AlterObjectSchema:
        moved = self.alter_schema_stmt(if_exists, relation, schema)
        return dataclasses.replace(moved, object_type="materialized view")

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

    def _variable_set_token(
        self, scope: str | None, name: str, value: Token | str | None
    ) -> ast.VariableSet:
        is_default = value is None or (
            isinstance(value, Token) and value.type in ("DEFAULT", "LOCAL")
        )
        return self.variable_set(scope, name, () if is_default else (str(value),))

    def set_time_zone(self, scope: str | None, value: Token | str) -> ast.VariableSet:
        """LOCAL is what DEFAULT is.  A name is no keyword, even if it is not reserved."""
        if isinstance(value, Token) and value.type == "IDENT":
            check_no_keyword(value)
        return self._variable_set_token(scope, "timezone", value)

    def set_schema(self, scope: str | None, schema: Token) -> ast.VariableSet:
        return self.variable_set(scope, "search_path", (str(schema),))

    def set_names(self, scope: str | None, encoding: Token | None) -> ast.VariableSet:
        return self._variable_set_token(scope, "client_encoding", encoding)

    def set_role(self, scope: str | None, role: Token) -> ast.VariableSet:
        return self.variable_set(scope, "role", (str(role),))

    def set_session_authorization(self, scope: str | None, role: Token) -> ast.VariableSet:
        return self._variable_set_token(scope, "session_authorization", role)

    def set_transaction(self, scope: str | None, modes: tuple[ast.DefElem, ...]) -> ast.VariableSet:
        return ast.VariableSet("transaction", tuple(mode.name for mode in modes), is_local=True)

    def reset_transaction_isolation(self) -> ast.VariableSet:
        return ast.VariableSet("transaction_isolation", reset=True)

    def show_transaction_isolation(self) -> ast.VariableShow:
        return ast.VariableShow("transaction_isolation")

    def show_session_authorization(self) -> ast.VariableShow:
        return ast.VariableShow("session_authorization")

    def variable_reset(self, name: str | Token) -> ast.VariableSet:
        return ast.VariableSet(str(name), reset=True)

    def reset_time_zone(self) -> ast.VariableSet:
        return ast.VariableSet("timezone", reset=True)

    def reset_session_authorization(self) -> ast.VariableSet:
        return ast.VariableSet("session_authorization", reset=True)

    def alter_system(self, name: str, values: tuple[str, ...]) -> ast.AlterSystem:
        return ast.AlterSystem(ast.VariableSet(name, values))

    def alter_system_reset(self, name: str | Token) -> ast.AlterSystem:
        return ast.AlterSystem(self.variable_reset(name))

    def variable_show(self, name: str) -> ast.VariableShow:
        return ast.VariableShow(name)

    def variable_show_all(self, word: Token) -> ast.VariableShow:
        return ast.VariableShow("all")

    def show_time_zone(self) -> ast.VariableShow:
        return ast.VariableShow("timezone")

    # -- maintenance

    def checkpoint_stmt(self) -> ast.Checkpoint:
        return ast.Checkpoint()

    def vacuum_words(self, *parts: Token | tuple[ast.VacuumRelation, ...] | None) -> ast.Vacuum:
        *words, relations = parts
        options = [
            ast.DefElem(str(word), None, pos=start_of(word))
            for word in words
            if isinstance(word, Token)
        ]
        return ast.Vacuum(tuple(options), relations if isinstance(relations, tuple) else ())

    def vacuum_stmt(
        self, options: tuple[ast.DefElem, ...], relations: tuple[ast.VacuumRelation, ...] | None
    ) -> ast.Vacuum:
        return ast.Vacuum(options, relations or ())

    def analyze_word(self, word: Token) -> Token:
        return Token(word.type, "analyze", word.start_pos)

    def vacuum_relations(self, *relations: ast.VacuumRelation) -> tuple[ast.VacuumRelation, ...]:
        return relations

    def vacuum_relation(self, relation: ast.RangeVar, columns: Names | None) -> ast.VacuumRelation:
        return ast.VacuumRelation(
            relation, () if columns is None else _names(columns), pos=relation.pos
        )

    def utility_options(self, *options: ast.DefElem) -> tuple[ast.DefElem, ...]:
        return options

    def utility_option(self, name: Token, value: Token | str | None) -> ast.DefElem:
        shown = None if value is None else str(value)
        return ast.DefElem(str(name), shown, pos=start_of(name))


def _kind(words: str) -> ast.ObjectType:
    return cast("ast.ObjectType", str(words))


def _comment(text: Token) -> str | None:
    """The text of a comment; NULL and an empty one remove it."""
    return None if text.type == "NULL" else str(text) or None


def _parts(relation: ast.RangeVar) -> tuple[str, ...]:
    return tuple(
        part for part in (relation.catalog, relation.schema, relation.name) if part is not None
    )


def _names(names: Names) -> tuple[str, ...]:
    return tuple(map(str, names))


def _text(token: Token | None) -> str | None:
    return None if token is None else str(token)
