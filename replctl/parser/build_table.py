"""Nodes of table.lark: tables, their constraints and partitions, indexes."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from lark import Token

from replctl.errors import (
    DuplicateObject,
    FeatureNotSupported,
    InvalidParameterValue,
    SqlSyntaxError,
)
from replctl.parser import ast
from replctl.parser.constraint_attributes import (
    Attribute,
    with_attributes,
    with_table_attributes,
)
from replctl.parser.node import leftmost, role_name, start_of


class _TableHead(NamedTuple):
    persistence: str
    if_not_exists: bool
    relation: ast.RangeVar


class _Storage(NamedTuple):
    """What may follow a table's columns: fields of CreateTable."""

    access_method: str | None
    options: tuple[ast.DefElem, ...]
    on_commit: str | None
    tablespace: str | None
    location: str | None


class _KeyAction(NamedTuple):
    """What happens to a row whose referenced row changes; `word` is the ON before it."""

    event: str
    effect: str
    columns: tuple[str, ...]
    word: Token


class _Collation(NamedTuple):
    """COLLATE of a column, where `word` stands."""

    word: Token
    name: tuple[str, ...]


Names = tuple[Token, ...]
Options = tuple[ast.DefElem, ...]
_Location = tuple[Token, Options | None]


class TableBuilder:
    """A method for each rule or alias of table.lark."""

    # -- CREATE TABLE

    def create_table_head(
        self, persistence: str | None, if_not_exists: bool | None, relation: ast.RangeVar
    ) -> _TableHead:
        return _TableHead(persistence or "permanent", bool(if_not_exists), relation)

    def persistence(self, *words: Token) -> str:
        return "unlogged" if words[0].type == "UNLOGGED" else "temporary"

    def table_storage(
        self,
        access_method: Token | None = None,
        options: Options | None = None,
        on_commit: str | None = None,
        tablespace: Token | None = None,
        location: _Location | None = None,
    ) -> _Storage:
        place, more = location or (None, None)
        said = (*(options or ()), *(more or ()))
        return _Storage(_text(access_method), said, on_commit, _text(tablespace), _text(place))

    def view_storage(
        self, access_method: Token | None, options: Options | None, tablespace: Token | None
    ) -> _Storage:
        return self.table_storage(access_method, options, None, tablespace)

    def table_location(self, word: Token, path: Token, options: Options | None) -> _Location:
        return path, options

    def on_commit(self, *words: Token) -> str:
        return " ".join(words[2:])

    def create_table(
        self,
        head: _TableHead,
        elements: tuple[Any, ...] | None,
        inherits: tuple[ast.RangeVar, ...] | None,
        partition_spec: ast.PartitionSpec | None,
        storage: _Storage,
    ) -> ast.CreateTable:
        return _create_table(
            head,
            storage,
            elements=elements or (),
            inherits=inherits or (),
            partition_spec=partition_spec,
        )

    def create_partition(
        self,
        head: _TableHead,
        parent: ast.RangeVar,
        elements: tuple[Any, ...] | None,
        bound: ast.PartitionBound,
        partition_spec: ast.PartitionSpec | None,
        storage: _Storage,
    ) -> ast.CreateTable:
        return _create_table(
            head,
            storage,
            elements=elements or (),
            partition_of=parent,
            partition_bound=bound,
            partition_spec=partition_spec,
        )

    def create_table_adopting(
        self, head: _TableHead, access_method: Token, options: Options | None, location: _Location
    ) -> ast.CreateTable:
        return _create_table(head, self.table_storage(access_method, options, None, None, location))

    def create_table_as(
        self,
        head: _TableHead,
        columns: Names | None,
        storage: _Storage,
        query: ast.SelectStmt,
        with_data: bool | None,
    ) -> ast.CreateTableAs:
        return ast.CreateTableAs(
            head.relation,
            _names(columns),
            query,
            with_data is not False,
            head.if_not_exists,
            head.persistence,  # type: ignore[arg-type]
            access_method=storage.access_method,
            options=storage.options,
            on_commit=storage.on_commit,
            tablespace=storage.tablespace,
        )

    def create_materialized_view(
        self,
        unlogged: Token | None,
        if_not_exists: bool | None,
        relation: ast.RangeVar,
        columns: Names | None,
        storage: _Storage,
        query: ast.SelectStmt,
        with_data: bool | None,
    ) -> ast.CreateTableAs:
        persistence = "permanent" if unlogged is None else "unlogged"
        head = _TableHead(persistence, bool(if_not_exists), relation)
        statement = self.create_table_as(head, columns, storage, query, with_data)
        return dataclasses.replace(statement, is_materialized_view=True)

    def with_data(self, *words: Token) -> bool:
        return len(words) == 2

    def table_elements(self, *elements: Any) -> tuple[Any, ...]:
        return elements

    def column_def(
        self,
        name: Token,
        type_name: ast.TypeName,
        storage: Token | None,
        compression: Token | None,
        *constraints: ast.Constraint | Attribute | _Collation,
    ) -> ast.ColumnDef:
        column = self.column_options(name, *constraints)
        return dataclasses.replace(
            column, type_name=type_name, storage=_text(storage), compression=_text(compression)
        )

    def column_options(
        self, name: Token, *constraints: ast.Constraint | Attribute | _Collation
    ) -> ast.ColumnDef:
        """Constraints of a column: COLLATE is the column's own, DEFERRABLE and such belong to
        the one before.
        """
        collations = [item for item in constraints if isinstance(item, _Collation)]
        if len(collations) > 1:
            raise SqlSyntaxError(
                "multiple COLLATE clauses not allowed", position=start_of(collations[1].word)
            )
        rest = [item for item in constraints if not isinstance(item, _Collation)]
        collation = collations[0].name if collations else ()
        return ast.ColumnDef(str(name), None, with_attributes(rest), collation, pos=start_of(name))

    def collate_clause(self, word: Token, name: Names) -> _Collation:
        return _Collation(word, _names(name))

    def table_like(
        self, word: Token, relation: ast.RangeVar, *options: tuple[str, str]
    ) -> ast.TableLike:
        including = [what for action, what in options if action == "including"]
        excluding = [what for action, what in options if action == "excluding"]
        return ast.TableLike(relation, tuple(including), tuple(excluding), pos=relation.pos)

    def like_option(self, action: Token, what: Token) -> tuple[str, str]:
        return str(action), str(what)

    # -- column constraints

    def named_constraint(
        self, word: Token, name: Token, constraint: ast.Constraint
    ) -> ast.Constraint:
        return dataclasses.replace(constraint, name=str(name), pos=start_of(word))

    def constraint_not_null(self, word: Token) -> ast.Constraint:
        return ast.Constraint("not_null", pos=start_of(word))

    def constraint_null(self, word: Token) -> ast.Constraint:
        return ast.Constraint("null", pos=start_of(word))

    def constraint_unique(
        self,
        word: Token,
        nulls_not_distinct: bool | None,
        options: Options | None,
        tablespace: Token | None,
    ) -> ast.Constraint:
        return ast.Constraint(
            "unique",
            nulls_not_distinct=bool(nulls_not_distinct),
            options=options or (),
            tablespace=_text(tablespace),
            pos=start_of(word),
        )

    def constraint_primary(
        self, word: Token, options: Options | None, tablespace: Token | None
    ) -> ast.Constraint:
        return ast.Constraint(
            "primary", options=options or (), tablespace=_text(tablespace), pos=start_of(word)
        )

    def constraint_check(
        self, word: Token, expr: ast.RawExpr, no_inherit: bool | None
    ) -> ast.Constraint:
        return ast.Constraint("check", expr=expr, no_inherit=bool(no_inherit), pos=start_of(word))

    def constraint_default(self, word: Token, expr: ast.RawExpr) -> ast.Constraint:
        return ast.Constraint("default", expr=expr, pos=start_of(word))

    def constraint_identity(
        self, word: Token, when: Token, *options: ast.DefElem | None
    ) -> ast.Constraint:
        return ast.Constraint(
            "identity",
            generated_when=str(when),  # type: ignore[arg-type]
            sequence=tuple(option for option in options if option is not None),
            pos=start_of(word),
        )

    def constraint_generated(self, word: Token, when: Token, expr: ast.RawExpr) -> ast.Constraint:
        if when != "always":
            raise SqlSyntaxError(
                "for a generated column, GENERATED ALWAYS must be specified",
                position=start_of(when),
            )
        return ast.Constraint("generated", expr=expr, pos=start_of(word))

    def generated_when(self, *words: Token) -> Token:
        return Token(words[0].type, " ".join(words), words[0].start_pos)

    def referenced(
        self,
        word: Token,
        relation: ast.RangeVar,
        columns: Names | None,
        match: str | None,
        actions: dict[str, Any],
    ) -> ast.Constraint:
        return ast.Constraint(
            "foreign",
            references=relation,
            ref_columns=_names(columns),
            match=match or "simple",  # type: ignore[arg-type]
            **actions,
            pos=start_of(word),
        )

    def constraint_references(self, constraint: ast.Constraint) -> ast.Constraint:
        return constraint

    def nulls_distinct(self, *words: Token) -> bool:
        return len(words) == 3

    def key_match(self, *words: Token) -> str:
        kind = str(words[-1])
        if kind == "partial":
            raise FeatureNotSupported(
                "MATCH PARTIAL not yet implemented", position=start_of(words[0])
            )
        return kind

    def key_actions(self, *actions: _KeyAction | None) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for action in actions:
            if action is not None:
                fields[f"on_{action.event}"] = action.effect
                if action.event == "delete":
                    fields["on_delete_columns"] = action.columns
        return fields

    def key_update(self, word: Token, action: tuple[str, tuple[str, ...]]) -> _KeyAction:
        effect, columns = action
        if columns:
            raise FeatureNotSupported(
                f"a column list with {effect.upper()} is only supported for ON DELETE actions",
                position=start_of(word),
            )
        return _KeyAction("update", effect, (), word)

    def key_delete(self, word: Token, action: tuple[str, tuple[str, ...]]) -> _KeyAction:
        return _KeyAction("delete", *action, word)

    def key_action(self, effect: str) -> tuple[str, tuple[str, ...]]:
        return effect, ()

    def key_set_action(self, effect: str, columns: Names | None) -> tuple[str, tuple[str, ...]]:
        return effect, _names(columns)

    def _joined(self, *words: Token) -> str:
        return " ".join(words)

    key_effect = set_effect = _joined

    def _attribute(self, *words: Token) -> Attribute:
        return Attribute(words[0], " ".join(words), start_of(words[-1]))

    constraint_attribute = table_constraint_attribute = _attribute

    # -- sequences, also those of identity columns

    def create_sequence(
        self,
        persistence: str | None,
        if_not_exists: bool | None,
        relation: ast.RangeVar,
        *options: ast.DefElem,
    ) -> ast.CreateSequence:
        if persistence is not None:
            raise FeatureNotSupported(f"{persistence} sequences are not supported")
        return ast.CreateSequence(relation, options, bool(if_not_exists), pos=relation.pos)

    def sequence_type(self, type_name: ast.TypeName) -> ast.DefElem:
        return ast.DefElem("as", ".".join(type_name.names), is_name=True, pos=type_name.pos)

    def sequence_cycle(self) -> ast.DefElem:
        return ast.DefElem("cycle", "true")

    def sequence_no_cycle(self) -> ast.DefElem:
        return ast.DefElem("cycle", "false")

    def sequence_number(self, *words: Token | None) -> Token:
        assert words[0] is not None
        return words[0]

    def sequence_value(self, word: Token, value: str) -> ast.DefElem:
        return ast.DefElem(str(word), value, pos=start_of(word))

    def sequence_default(self, word: Token) -> ast.DefElem:
        return ast.DefElem(str(word), None, pos=start_of(word))

    def sequence_restart(self) -> ast.DefElem:
        return ast.DefElem("restart", None)

    def sequence_owner(self, name: Names) -> ast.DefElem:
        return ast.DefElem("owned_by", ".".join(name), is_name=True, pos=start_of(name[0]))

    def sequence_name(self, name: Names) -> ast.DefElem:
        return ast.DefElem("sequence_name", ".".join(name), is_name=True, pos=start_of(name[0]))

    def signed_number(self, *tokens: Token) -> str:
        return "".join(tokens).lstrip("+")

    signed_integer = signed_number

    # -- table constraints

    def named_table_constraint(
        self, word: Token, name: Token, constraint: ast.Constraint, *attributes: Attribute
    ) -> ast.Constraint:
        named = dataclasses.replace(constraint, name=str(name), pos=start_of(word))
        return with_table_attributes(named, attributes)

    def unnamed_table_constraint(
        self, constraint: ast.Constraint, *attributes: Attribute
    ) -> ast.Constraint:
        return with_table_attributes(constraint, attributes)

    def table_check(self, word: Token, expr: ast.RawExpr) -> ast.Constraint:
        return ast.Constraint("check", expr=expr, pos=start_of(word))

    def constraint_index(
        self,
        including: Names | None = None,
        options: Options | None = None,
        tablespace: Token | None = None,
    ) -> dict[str, Any]:
        return {
            "including": _names(including),
            "options": options or (),
            "tablespace": _text(tablespace),
        }

    def table_unique(
        self, word: Token, nulls_not_distinct: bool | None, columns: Names, index: dict[str, Any]
    ) -> ast.Constraint:
        return ast.Constraint(
            "unique",
            columns=_names(columns),
            nulls_not_distinct=bool(nulls_not_distinct),
            **index,
            pos=start_of(word),
        )

    def table_unique_index(self, word: Token, index: Token) -> ast.Constraint:
        return ast.Constraint("unique", index_name=str(index), pos=start_of(word))

    def table_primary(self, word: Token, columns: Names, index: dict[str, Any]) -> ast.Constraint:
        return ast.Constraint("primary", columns=_names(columns), **index, pos=start_of(word))

    def table_primary_index(self, word: Token, index: Token) -> ast.Constraint:
        return ast.Constraint("primary", index_name=str(index), pos=start_of(word))

    def table_foreign(
        self, word: Token, columns: Names, constraint: ast.Constraint
    ) -> ast.Constraint:
        return dataclasses.replace(constraint, columns=_names(columns), pos=start_of(word))

    def table_exclusion(
        self, word: Token, access_method: Token | None, *rest: Any
    ) -> ast.Constraint:
        *exclusions, index, where = rest
        return ast.Constraint(
            "exclusion",
            access_method=_text(access_method),
            exclusions=tuple(exclusions),
            where=where,
            **index,
            pos=start_of(word),
        )

    def exclusion_elem(
        self, element: ast.IndexElem, operator: Names
    ) -> tuple[ast.IndexElem, tuple[str, ...]]:
        return element, _names(operator)

    # -- partitions

    def partition_spec(self, strategy: Token, *elements: ast.PartitionElem) -> ast.PartitionSpec:
        if strategy.lower() not in ("list", "range", "hash"):  # parsePartitionStrategy
            raise InvalidParameterValue(f'unrecognized partitioning strategy "{strategy}"')
        return ast.PartitionSpec(str(strategy), elements, pos=start_of(strategy))

    def partition_elem(
        self, name: Token, collation: _Collation | None, opclass: Names | None
    ) -> ast.PartitionElem:
        return ast.PartitionElem(
            str(name), None, _collation(collation), _names(opclass), pos=start_of(name)
        )

    def partition_expression(
        self, expr: ast.RawExpr, collation: _Collation | None, opclass: Names | None
    ) -> ast.PartitionElem:
        return ast.PartitionElem(
            None, expr, _collation(collation), _names(opclass), pos=leftmost(expr)
        )

    partition_function = partition_expression

    def bound_list(self, word: Token, values: tuple[ast.RawExpr, ...]) -> ast.PartitionBound:
        return ast.PartitionBound("list", values, pos=start_of(word))

    def bound_range(
        self, word: Token, lower: tuple[ast.RawExpr, ...], upper: tuple[ast.RawExpr, ...]
    ) -> ast.PartitionBound:
        return ast.PartitionBound("range", lower=lower, upper=upper, pos=start_of(word))

    def bound_hash(self, word: Token, *parts: tuple[Token, int]) -> ast.PartitionBound:
        """WITH (MODULUS n, REMAINDER m), each of them once (hash_partbound in gram.y)."""
        found: dict[str, int] = {}
        for name, value in parts:
            if name not in ("modulus", "remainder"):
                message = f'unrecognized hash partition bound specification "{name}"'
                raise SqlSyntaxError(message, position=start_of(name))
            if name in found:
                message = f"{name} for hash partition provided more than once"
                raise DuplicateObject(message, position=start_of(name))
            found[str(name)] = value
        for required in ("modulus", "remainder"):
            if required not in found:
                raise SqlSyntaxError(f"{required} for hash partition must be specified")
        return ast.PartitionBound("hash", **found, pos=start_of(word))  # type: ignore[arg-type]

    def hash_bound(self, name: Token, value: Token) -> tuple[Token, int]:
        return name, int(value)

    def bound_default(self, word: Token) -> ast.PartitionBound:
        return ast.PartitionBound("default", pos=start_of(word))

    # -- ALTER TABLE

    def alter_table(
        self, if_exists: bool | None, relation: ast.RangeVar, *commands: ast.AlterTableCmd
    ) -> ast.AlterTable:
        return ast.AlterTable(relation, commands, bool(if_exists), pos=relation.pos)

    def cmd_add_column(
        self, if_not_exists: bool | None, column: ast.ColumnDef
    ) -> ast.AlterTableCmd:
        return ast.AlterTableCmd(
            "add_column", column.name, column, missing_ok=bool(if_not_exists), pos=column.pos
        )

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
        collation: _Collation | None,
        using: ast.RawExpr | None,
    ) -> ast.AlterTableCmd:
        return ast.AlterTableCmd(
            "alter_type",
            str(name),
            type_name=type_name,
            expr=using,
            collation=_collation(collation),
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

    def cmd_set_statistics(self, name: Token, value: str) -> ast.AlterTableCmd:
        return ast.AlterTableCmd("set_statistics", str(name), value=value, pos=start_of(name))

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

    # -- indexes

    def create_index(
        self,
        unique: Token | None,
        concurrently: Token | None,
        name: tuple[str, bool] | None,
        relation: ast.RangeVar,
        access_method: Token | None,
        *rest: Any,
    ) -> ast.CreateIndex:
        *elements, tail = rest
        index, if_not_exists = name or (None, False)
        return ast.CreateIndex(
            index,
            relation,
            tuple(elements),
            is_unique=unique is not None,
            access_method=_text(access_method) or "btree",
            if_not_exists=if_not_exists,
            concurrently=concurrently is not None,
            **tail,
        )

    def index_name(self, if_not_exists: bool | None, name: Token) -> tuple[str, bool]:
        return str(name), bool(if_not_exists)

    def index_tail(
        self,
        including: Names | None = None,
        nulls_not_distinct: bool | None = None,
        options: Options | None = None,
        tablespace: Token | None = None,
        where: ast.RawExpr | None = None,
    ) -> dict[str, Any]:
        return {
            "including": _names(including),
            "nulls_not_distinct": bool(nulls_not_distinct),
            "options": options or (),
            "tablespace": _text(tablespace),
            "where": where,
        }

    def index_elem_options(
        self,
        collation: _Collation | None = None,
        opclass: Names | None = None,
        direction: str | None = None,
        nulls: str | None = None,
    ) -> dict[str, Any]:
        return {
            "collation": _collation(collation),
            "opclass": _names(opclass),
            "direction": direction or "default",
            "nulls": nulls or "default",
        }

    def index_elem(self, name: Token, options: dict[str, Any]) -> ast.IndexElem:
        return ast.IndexElem(str(name), None, **options, pos=start_of(name))

    def index_expression(self, expr: ast.RawExpr, options: dict[str, Any]) -> ast.IndexElem:
        return ast.IndexElem(None, expr, **options, pos=leftmost(expr))

    index_function = index_expression


def _create_table(head: _TableHead, storage: _Storage, **fields: Any) -> ast.CreateTable:
    return ast.CreateTable(
        head.relation,
        persistence=head.persistence,  # type: ignore[arg-type]
        if_not_exists=head.if_not_exists,
        **fields,
        **storage._asdict(),
        pos=head.relation.pos,
    )


def _collation(clause: _Collation | None) -> tuple[str, ...]:
    return () if clause is None else clause.name


def _names(names: Names | None) -> tuple[str, ...]:
    return tuple(map(str, names or ()))


def _text(token: Token | None) -> str | None:
    return None if token is None else str(token)
