"""Build the nodes of ALTER TABLE in table.lark."""

from __future__ import annotations

from lark import Token

from replctl.parser import ast
from replctl.parser.build_parts import (
    Collation,
    Names,
    Options,
    collation_name,
    relation_name,
    role_name,
    start_of,
)


class AlterTableBuilder:
    """Builds the nodes of the actions.  Each rule or alias has a method."""

    def alter_table(
        self, if_exists: bool | None, relation: ast.RangeVar, *commands: ast.AlterTableCmd
    ) -> ast.AlterTable:
        return ast.AlterTable(relation, commands, bool(if_exists), pos=relation.pos)

    def alter_composite(self, name: Names, *commands: ast.AlterTableCmd) -> ast.AlterTable:
        return ast.AlterTable(relation_name(name), commands, object_type="type")

    def cmd_add_column(
        self, if_not_exists: bool | None, column: ast.ColumnDef
    ) -> ast.AlterTableCmd:
        return ast.AlterTableCmd(
            "add_column", column.name, column, missing_ok=bool(if_not_exists), pos=column.pos
        )

    def cmd_add_attribute(self, column: ast.ColumnDef, behavior: str | None) -> ast.AlterTableCmd:
        return self.cmd_add_column(None, column)

    def cmd_alter_attribute(
        self,
        name: Token,
        type_name: ast.TypeName,
        collation: Collation | None,
        behavior: str | None,
    ) -> ast.AlterTableCmd:
        return self.cmd_alter_type(name, type_name, collation, None)

    def cmd_drop_column(
        self, if_exists: bool | None, name: Token, behavior: str | None
    ) -> ast.AlterTableCmd:
        return ast.AlterTableCmd(
            "drop_column",
            str(name),
            missing_ok=bool(if_exists),
            behavior=behavior or "restrict",  # type: ignore[arg-type]
            pos=start_of(name),
        )

    def cmd_alter_type(
        self,
        name: Token,
        type_name: ast.TypeName,
        collation: Collation | None,
        using: ast.RawExpr | None,
    ) -> ast.AlterTableCmd:
        return ast.AlterTableCmd(
            "alter_type",
            str(name),
            type_name=type_name,
            expr=using,
            collation=collation_name(collation),
            pos=start_of(name),
        )

    def cmd_set_default(self, name: Token, expr: ast.RawExpr) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("set_default", str(name), expr=expr, pos=start_of(name))

    def cmd_drop_default(self, name: Token) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("drop_default", str(name), pos=start_of(name))

    def cmd_set_not_null(self, name: Token) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("set_not_null", str(name), pos=start_of(name))

    def cmd_drop_not_null(self, name: Token) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("drop_not_null", str(name), pos=start_of(name))

    def cmd_set_storage(self, name: Token, value: Token) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("set_storage", str(name), value=str(value), pos=start_of(name))

    def cmd_set_compression(self, name: Token, value: Token) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("set_compression", str(name), value=str(value), pos=start_of(name))

    def cmd_set_column_options(self, name: Token, options: Options) -> ast.AlterTableCmd:
        return ast.AlterTableCmd(
            "set_column_options", str(name), options=options, pos=start_of(name)
        )

    def cmd_reset_column_options(self, name: Token, options: Options) -> ast.AlterTableCmd:
        return ast.AlterTableCmd(
            "reset_column_options", str(name), options=options, pos=start_of(name)
        )

    def cmd_cluster_on(self, name: Token) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("cluster_on", str(name), pos=start_of(name))

    def cmd_set_without_cluster(self) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("set_without_cluster")

    def cmd_set_logged(self) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("set_logged")

    def cmd_set_unlogged(self) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("set_unlogged")

    def cmd_set_statistics(self, name: Token, value: str) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("set_statistics", str(name), value=value, pos=start_of(name))

    def cmd_add_identity(
        self, name: Token, when: Token, *options: ast.DefElem | None
    ) -> ast.AlterTableCmd:
        given = tuple(option for option in options if option is not None)
        return ast.AlterTableCmd(
            "add_identity", str(name), value=str(when), options=given, pos=start_of(name)
        )

    def cmd_alter_identity(self, name: Token, *options: ast.DefElem) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("alter_identity", str(name), options=options, pos=start_of(name))

    def cmd_drop_identity(self, name: Token, if_exists: bool | None) -> ast.AlterTableCmd:
        return ast.AlterTableCmd(
            "drop_identity", str(name), missing_ok=bool(if_exists), pos=start_of(name)
        )

    def cmd_drop_expression(self, name: Token, if_exists: bool | None) -> ast.AlterTableCmd:
        return ast.AlterTableCmd(
            "drop_expression", str(name), missing_ok=bool(if_exists), pos=start_of(name)
        )

    def cmd_add_constraint(self, constraint: ast.Constraint) -> ast.AlterTableCmd:
        return ast.AlterTableCmd(
            "add_constraint", constraint.name, constraint=constraint, pos=constraint.pos
        )

    def cmd_drop_constraint(
        self, if_exists: bool | None, name: Token, behavior: str | None
    ) -> ast.AlterTableCmd:
        return ast.AlterTableCmd(
            "drop_constraint",
            str(name),
            missing_ok=bool(if_exists),
            behavior=behavior or "restrict",  # type: ignore[arg-type]
            pos=start_of(name),
        )

    def cmd_validate_constraint(self, name: Token) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("validate_constraint", str(name), pos=start_of(name))

    def replica_identity_index(self, name: Token) -> tuple[str, str]:
        return "index", str(name)

    def replica_identity_option(self, word: Token) -> tuple[str, str]:
        return str(word), ""

    def cmd_replica_identity(self, identity: tuple[str, str]) -> ast.AlterTableCmd:
        kind, index = identity
        return ast.AlterTableCmd("replica_identity", index or None, value=kind)

    def cmd_attach_partition(
        self, relation: ast.RangeVar, bound: ast.PartitionBound
    ) -> ast.AlterTableCmd:
        return ast.AlterTableCmd(
            "attach_partition", relation=relation, bound=bound, pos=relation.pos
        )

    def cmd_detach_partition(self, relation: ast.RangeVar, mode: str | None) -> ast.AlterTableCmd:
        return ast.AlterTableCmd(
            "detach_partition", relation=relation, value=mode, pos=relation.pos
        )

    def detach_mode(self, word: Token) -> str:
        return str(word)

    def cmd_inherit(self, relation: ast.RangeVar) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("inherit", relation=relation, pos=relation.pos)

    def cmd_no_inherit(self, relation: ast.RangeVar) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("no_inherit", relation=relation, pos=relation.pos)

    def cmd_owner_to(self, role: Token) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("owner_to", role_name(role), pos=start_of(role))

    def cmd_set_options(self, options: Options) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("set_options", options=options)

    def cmd_reset_options(self, options: Options) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("reset_options", options=options)

    def row_security(self, *words: Token) -> str:
        return " ".join(words)

    def cmd_row_security(self, value: str) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("row_level_security", value=value)
