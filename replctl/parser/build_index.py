"""Build the nodes of CREATE INDEX in table.lark."""

from __future__ import annotations

from typing import Any

from lark import Token

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
)


class IndexBuilder:
    """Builds the nodes of indexes.  Each rule or alias has a method."""

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
            access_method=optional_text(access_method) or "btree",
            if_not_exists=if_not_exists,
            concurrently=concurrently is not None,
            **tail,
        )

    def attach_index(
        self, word: Token, relation: ast.RangeVar, partition: ast.RangeVar
    ) -> ast.AttachIndex:
        return ast.AttachIndex(relation, partition, pos=relation.pos)

    def index_name(self, if_not_exists: bool | None, name: Token) -> tuple[str, bool]:
        return str(name), bool(if_not_exists)

    def index_tail(
        self,
        including: tuple[ast.IndexElem, ...] | None = None,
        nulls_not_distinct: bool | None = None,
        options: Options | None = None,
        tablespace: Token | None = None,
        where: ast.RawExpr | None = None,
    ) -> dict[str, Any]:
        return {
            "including": including or (),
            "nulls_not_distinct": bool(nulls_not_distinct),
            "options": options or (),
            "tablespace": optional_text(tablespace),
            "where": where,
        }

    def index_elem_options(
        self,
        collation: Collation | None = None,
        opclass: Names | None = None,
        direction: str | None = None,
        nulls: str | None = None,
    ) -> dict[str, Any]:
        return {
            "collation": collation_name(collation),
            "opclass": name_texts(opclass),
            "direction": direction or "default",
            "nulls": nulls or "default",
        }

    def index_include(self, *elements: ast.IndexElem) -> tuple[ast.IndexElem, ...]:
        return elements

    def index_elem(self, name: Token, options: dict[str, Any]) -> ast.IndexElem:
        return ast.IndexElem(str(name), None, **options, pos=start_of(name))

    def index_expression(self, expr: ast.RawExpr, options: dict[str, Any]) -> ast.IndexElem:
        return ast.IndexElem(None, expr, **options, pos=leftmost(expr))

    index_function = index_expression
