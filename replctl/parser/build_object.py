"""Build the nodes of utility.lark's statements for many kinds of object: COMMENT, DROP, RENAME,
OWNER TO and SET SCHEMA.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, Never, TypeAlias, cast

from lark import Token

from replctl.errors import FeatureNotSupported, SqlSyntaxError
from replctl.parser import ast
from replctl.parser.build_parts import (
    Names,
    name_texts,
    names_only,
    relation_name,
    role_name,
    start_of,
)

_OperatorTypes: TypeAlias = tuple[ast.TypeName | None, ...]  # None stands for NONE


class _DroppedFunction(NamedTuple):
    """A function to drop; `arguments` is None if the statement has no parentheses."""

    name: Names
    arguments: tuple[ast.FunctionParameter, ...] | None

    @property
    def argument_types(self) -> tuple[ast.TypeName, ...] | None:
        if self.arguments is None:
            return None
        return tuple(a.type_name for a in self.arguments if a.mode != "out")


class ObjectBuilder:
    """Builds the nodes of statements on existing objects.  Each rule or alias has a method."""

    # -- the named objects

    def _object_type(self, *words: Token) -> str:
        return " ".join(words)

    def operator_with_argtypes(
        self, name: Names, types: _OperatorTypes
    ) -> tuple[Names, _OperatorTypes]:
        return name, types

    def two_operator_types(
        self, left: ast.TypeName | Token, right: ast.TypeName | Token
    ) -> _OperatorTypes:
        return tuple(a if isinstance(a, ast.TypeName) else None for a in (left, right))

    def one_operator_type(self, opening: Token, only: ast.TypeName, closing: Token) -> Never:
        raise SqlSyntaxError(
            "missing argument",
            hint="Use NONE to denote the missing argument of a unary operator.",
            position=start_of(closing),
        )

    # -- COMMENT

    commented_relation = _object_type

    def comment_stmt(self, object_type: Token, name: Token, text: Token) -> ast.Comment:
        return ast.Comment(_kind(object_type), (str(name),), _comment(text), pos=start_of(name))

    def comment_on_name(self, object_type: str, name: Names, text: Token) -> ast.Comment:
        return ast.Comment(
            _kind(object_type), name_texts(name), _comment(text), pos=start_of(name[0])
        )

    def comment_on_type(
        self, object_type: Token, type_name: ast.TypeName, text: Token
    ) -> ast.Comment:
        return ast.Comment(_kind(object_type), type_name.names, _comment(text), pos=type_name.pos)

    def comment_on_function(
        self, word: Token, function: _DroppedFunction, text: Token
    ) -> ast.Comment:
        return ast.Comment(
            _kind(word),
            name_texts(function.name),
            _comment(text),
            arguments=function.argument_types,
            pos=start_of(function.name[0]),
        )

    def comment_on_operator(
        self, operator: tuple[Names, tuple[ast.TypeName | None, ...]], text: Token
    ) -> ast.Comment:
        name, arguments = operator
        return ast.Comment(
            "operator", name_texts(name), _comment(text), arguments=arguments, pos=start_of(name[0])
        )

    def comment_on_constraint(
        self, word: Token, name: Token, relation: Names, text: Token
    ) -> ast.Comment:
        return ast.Comment(
            "constraint", name_texts(relation), _comment(text), str(name), pos=start_of(relation[0])
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
            tuple(map(name_texts, names)),
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

    def drop_function(self, word: Token, if_exists: bool | None, *rest: Any) -> ast.Drop:
        *functions, behavior = rest
        names = tuple(function.name for function in functions)
        drop = self.drop_stmt(_kind(word), if_exists, names, behavior)
        return dataclasses.replace(
            drop, arguments=tuple(function.arguments for function in functions)
        )

    def drop_operator(self, if_exists: bool | None, *rest: Any) -> ast.Drop:
        *operators, behavior = rest
        names = tuple(name for name, _operands in operators)
        drop = self.drop_stmt("operator", if_exists, names, behavior)
        return dataclasses.replace(drop, operands=tuple(operands for _name, operands in operators))

    def drop_cast(
        self,
        if_exists: bool | None,
        source: ast.TypeName,
        target: ast.TypeName,
        behavior: str | None,
    ) -> ast.Drop:
        return ast.Drop(
            "cast",
            (("cast",),),
            bool(if_exists),
            behavior or "restrict",  # type: ignore[arg-type]
            operands=((source, target),),
        )

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

    def rename_type(self, word: Token, name: Names, new_name: Token) -> ast.Rename:
        return ast.Rename(_kind(word), name_texts(name), str(new_name), pos=start_of(name[0]))

    def rename_function(
        self, word: Token, function: _DroppedFunction, new_name: Token
    ) -> ast.Rename:
        return ast.Rename(
            _kind(word),
            name_texts(function.name),
            str(new_name),
            arguments=function.argument_types,
            pos=start_of(function.name[0]),
        )

    def move_function(
        self, word: Token, function: _DroppedFunction, schema: Token
    ) -> ast.AlterObjectSchema:
        return ast.AlterObjectSchema(
            _kind(word),
            name_texts(function.name),
            str(schema),
            arguments=function.argument_types,
            pos=start_of(function.name[0]),
        )

    def alter_function(
        self, word: Token, function: _DroppedFunction, *options: ast.DefElem
    ) -> ast.AlterFunction:
        return ast.AlterFunction(
            _kind(word),
            name_texts(function.name),
            function.argument_types,
            options,
            pos=start_of(function.name[0]),
        )

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
            "column",
            _parts(relation),
            str(new_name),
            str(name),
            bool(if_exists),
            inherit=relation.inherit,
            pos=relation.pos,
        )

    def rename_attribute(
        self, name: Names, attribute: Token, new_name: Token, behavior: str | None
    ) -> ast.Rename:
        rename = self.rename_column(None, relation_name(name), attribute, new_name)
        return dataclasses.replace(rename, relation_type="type")

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
        rename = self.rename_column(if_exists, relation, name, new_name)
        return dataclasses.replace(rename, object_type="constraint")

    def alter_owner_stmt(self, object_type: Token, name: Token, role: Token) -> ast.AlterOwner:
        return ast.AlterOwner(str(object_type), (str(name),), role_name(role), pos=start_of(name))  # type: ignore[arg-type]

    def move_type(self, word: Token, name: Names, schema: Token) -> ast.AlterObjectSchema:
        return ast.AlterObjectSchema(
            _kind(word), name_texts(name), str(schema), pos=start_of(name[0])
        )

    def owner_type(self, word: Token, name: Names, role: Token) -> ast.AlterOwner:
        return ast.AlterOwner(_kind(word), name_texts(name), role_name(role), pos=start_of(name[0]))

    def owner_function(
        self, word: Token, function: _DroppedFunction, role: Token
    ) -> ast.AlterOwner:
        return ast.AlterOwner(
            _kind(word),
            name_texts(function.name),
            role_name(role),
            arguments=function.argument_types,
            pos=start_of(function.name[0]),
        )

    def owner_operator(
        self, operator: tuple[Names, tuple[ast.TypeName | None, ...]], role: Token
    ) -> ast.AlterOwner:
        name, arguments = operator
        return ast.AlterOwner(
            "operator",
            name_texts(name),
            role_name(role),
            arguments=arguments,
            pos=start_of(name[0]),
        )

    def alter_table_cmds(self, *commands: ast.AlterTableCmd) -> tuple[ast.AlterTableCmd, ...]:
        return commands

    def alter_relation(
        self,
        object_type: str,
        if_exists: bool | None,
        relation: ast.RangeVar,
        commands: tuple[ast.AlterTableCmd, ...],
    ) -> ast.AlterOwner | ast.AlterTable:
        """Return the node for actions of ALTER TABLE on a relation that is not a table."""
        if [command.kind for command in commands] != ["owner_to"]:
            kind = str(object_type)
            return ast.AlterTable(relation, commands, bool(if_exists), kind, pos=relation.pos)  # type: ignore[arg-type]
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
    ) -> ast.AlterOwner | ast.AlterTable:
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


def _kind(words: str) -> ast.ObjectType:
    return cast("ast.ObjectType", str(words))


def _comment(text: Token) -> str | None:
    """Return the text of a comment; None for NULL and for an empty text, which remove it."""
    return None if text.type == "NULL" else str(text) or None


def _parts(relation: ast.RangeVar) -> tuple[str, ...]:
    return tuple(
        part for part in (relation.catalog, relation.schema, relation.name) if part is not None
    )
