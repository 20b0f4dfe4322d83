"""Build the nodes of CREATE TABLE in table.lark: columns, storage and partitions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from lark import Token

from replctl.errors import DuplicateObject, InvalidParameterValue, SqlSyntaxError
from replctl.parser import ast
from replctl.parser.build_parts import (
    Collation,
    Names,
    Options,
    collation_name,
    leftmost,
    name_texts,
    optional_text,
    start_of,
    with_collation,
)
from replctl.parser.constraint_attributes import Attribute, with_attributes


class _TableHead(NamedTuple):
    persistence: str
    if_not_exists: bool
    relation: ast.RangeVar


class _Storage(NamedTuple):
    """The clauses after a table's columns, as fields of CreateTable."""

    access_method: str | None
    options: tuple[ast.DefElem, ...]
    on_commit: str | None
    tablespace: str | None
    location: str | None
    catalog_table: str | None


class _Place(NamedTuple):
    """LOCATION or TABLE after USING delta, and the options after it."""

    location: str | None = None
    catalog_table: str | None = None
    options: Options | None = None


class TableBuilder:
    """Builds the nodes of new tables.  Each rule or alias has a method."""

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
        place: _Place | None = None,
    ) -> _Storage:
        place = place or _Place()
        said = (*(options or ()), *(place.options or ()))
        return _Storage(
            optional_text(access_method),
            said,
            on_commit,
            optional_text(tablespace),
            place.location,
            place.catalog_table,
        )

    def view_storage(
        self, access_method: Token | None, options: Options | None, tablespace: Token | None
    ) -> _Storage:
        return self.table_storage(access_method, options, None, tablespace)

    def table_location(self, word: Token, path: Token, options: Options | None) -> _Place:
        return _Place(location=str(path), options=options)

    def catalog_table(self, name: Token, options: Options | None) -> _Place:
        return _Place(catalog_table=str(name), options=options)

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
        self, head: _TableHead, access_method: Token, options: Options | None, place: _Place
    ) -> ast.CreateTable:
        return _create_table(head, self.table_storage(access_method, options, None, None, place))

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
            name_texts(columns),
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
        *constraints: ast.Constraint | Attribute | Collation,
    ) -> ast.ColumnDef:
        column = self.column_options(name, *constraints)
        return dataclasses.replace(
            column,
            type_name=type_name,
            storage=optional_text(storage),
            compression=optional_text(compression),
        )

    def column_options(
        self, name: Token, *constraints: ast.Constraint | Attribute | Collation
    ) -> ast.ColumnDef:
        return defined_column(name, constraints)

    def collate_clause(self, word: Token, name: Names) -> Collation:
        return Collation(word, name_texts(name))

    def table_like(
        self, word: Token, relation: ast.RangeVar, *options: tuple[str, str]
    ) -> ast.TableLike:
        including = [what for action, what in options if action == "including"]
        excluding = [what for action, what in options if action == "excluding"]
        return ast.TableLike(relation, tuple(including), tuple(excluding), pos=relation.pos)

    def like_option(self, action: Token, what: Token) -> tuple[str, str]:
        return str(action), str(what)

    # -- partitions

    def partition_spec(self, strategy: Token, *elements: ast.PartitionElem) -> ast.PartitionSpec:
        if strategy.lower() not in ("list", "range", "hash"):  # parsePartitionStrategy
            raise InvalidParameterValue(f'unrecognized partitioning strategy "{strategy}"')
        return ast.PartitionSpec(str(strategy), elements, pos=start_of(strategy))

    def partition_elem(
        self, name: Token, collation: Collation | None, opclass: Names | None
    ) -> ast.PartitionElem:
        return ast.PartitionElem(
            str(name), None, collation_name(collation), name_texts(opclass), pos=start_of(name)
        )

    def partition_expression(
        self, expr: ast.RawExpr, collation: Collation | None, opclass: Names | None
    ) -> ast.PartitionElem:
        return ast.PartitionElem(
            None, expr, collation_name(collation), name_texts(opclass), pos=leftmost(expr)
        )

    partition_function = partition_expression

    def bound_list(self, word: Token, values: tuple[ast.RawExpr, ...]) -> ast.PartitionBound:
        return ast.PartitionBound("list", values, pos=start_of(word))

    def bound_range(
        self, word: Token, lower: tuple[ast.RawExpr, ...], upper: tuple[ast.RawExpr, ...]
    ) -> ast.PartitionBound:
        return ast.PartitionBound("range", lower=lower, upper=upper, pos=start_of(word))

    def bound_hash(self, word: Token, *parts: tuple[Token, int]) -> ast.PartitionBound:
        """Return WITH (MODULUS n, REMAINDER m); each must occur once (hash_partbound in gram.y)."""
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


def defined_column(
    name: Token, constraints: Sequence[ast.Constraint | Attribute | Collation]
) -> ast.ColumnDef:
    """Return a column or a domain with its constraints.

    COLLATE belongs to the column; attributes such as DEFERRABLE belong to the preceding constraint.
    """
    collations = [item for item in constraints if isinstance(item, Collation)]
    if len(collations) > 1:
        raise SqlSyntaxError(
            "multiple COLLATE clauses not allowed", position=start_of(collations[1].word)
        )
    rest = [item for item in constraints if not isinstance(item, Collation)]
    column = ast.ColumnDef(str(name), None, with_attributes(rest), pos=start_of(name))
    return with_collation(column, collations[0] if collations else None)


def _create_table(head: _TableHead, storage: _Storage, **fields: Any) -> ast.CreateTable:
    return ast.CreateTable(
        head.relation,
        persistence=head.persistence,  # type: ignore[arg-type]
        if_not_exists=head.if_not_exists,
        **fields,
        **storage._asdict(),
        pos=head.relation.pos,
    )
