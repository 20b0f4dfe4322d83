"""Build the nodes of query.lark: queries, and statements that change rows."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, NamedTuple, cast

from lark import Token

from replctl.errors import (
    FeatureNotSupported,
    InvalidColumnReference,
    SqlSyntaxError,
    WindowingError,
)
from replctl.parser import ast
from replctl.parser.build_parts import Collation, leftmost, start_of, with_collation

#: The clauses after the body of a query, as fields of SelectStmt.
Tail = dict[str, Any]


class _FrameBound(NamedTuple):
    """A bound of a frame, with `{}` for its offset."""

    text: str
    pos: int
    offset: ast.RawExpr | None = None


class _Frame(NamedTuple):
    text: str = ""
    offsets: tuple[ast.RawExpr, ...] = ()


class QueryBuilder:
    """Builds the nodes of query.lark.  Each rule or alias has a method."""

    def pass_(self, value: object) -> object:
        return value

    def nothing(self, *words: Token) -> None:
        return None

    def true_(self, *words: Token) -> bool:
        return True

    # -- SELECT

    def plain_select(
        self,
        word: Token,
        distinct: tuple[ast.RawExpr, ...] | None,
        targets: tuple[ast.ResTarget, ...] | None,
        source: Tail,
        grouping: Tail,
    ) -> ast.SelectStmt:
        return ast.SelectStmt(
            targets=targets or (), distinct=distinct, **source, **grouping, pos=start_of(word)
        )

    def plain_select_all(
        self, word: Token, targets: tuple[ast.ResTarget, ...] | None, source: Tail, grouping: Tail
    ) -> ast.SelectStmt:
        return self.plain_select(word, None, targets, source, grouping)

    def select_source(
        self,
        into: ast.RangeVar | None = None,
        from_clause: tuple[ast.FromItem, ...] | None = None,
        where: ast.RawExpr | None = None,
    ) -> Tail:
        return {"into": into, "from_clause": from_clause or (), "where": where}

    def select_grouping(
        self,
        group: tuple[tuple[ast.RawExpr | ast.GroupingSet, ...], bool] | None = None,
        having: ast.RawExpr | None = None,
        windows: tuple[ast.WindowDef, ...] | None = None,
    ) -> Tail:
        items, is_distinct = group or ((), False)
        return {
            "group_by": items,
            "group_distinct": is_distinct,
            "having": having,
            "windows": windows or (),
        }

    def select_with_parens(self, paren: Token, query: ast.SelectStmt) -> ast.SelectStmt:
        """Return a query in parentheses; its position is that of the first parenthesis, as for a
        SubLink.
        """
        return dataclasses.replace(query, pos=start_of(paren))

    def values_clause(self, *rows: tuple[ast.RawExpr, ...]) -> ast.SelectStmt:
        return ast.SelectStmt(values=rows)

    def table_query(self, relation: ast.RangeVar) -> ast.SelectStmt:
        star = ast.ResTarget(ast.ColumnRef(("*",), is_star=True))
        return ast.SelectStmt(targets=(star,), from_clause=(relation,))

    def set_quantifier(self, word: Token) -> bool:
        return word.type == "ALL"

    def union_op(self, word: Token) -> str:
        return str(word)

    def intersect_select(
        self, left: ast.SelectStmt, all_: bool | None, right: ast.SelectStmt
    ) -> ast.SelectStmt:
        return ast.SelectStmt(
            set_op="intersect", all=bool(all_), left=left, right=right, pos=left.pos
        )

    def union_select(
        self, left: ast.SelectStmt, op: str, all_: bool | None, right: ast.SelectStmt
    ) -> ast.SelectStmt:
        return ast.SelectStmt(
            set_op="union" if op == "union" else "except",
            all=bool(all_),
            left=left,
            right=right,
            pos=left.pos,
        )

    def select_with_tail(self, query: ast.SelectStmt, tail: Tail) -> ast.SelectStmt:
        """Add ORDER BY, LIMIT and locking; refuse a second clause of the same kind
        (insertSelectOptions).
        """
        if query.order_by and tail.get("order_by"):
            raise SqlSyntaxError(
                "multiple ORDER BY clauses not allowed",
                position=leftmost(tail["order_by"][0].expr),
            )
        for clause in ("limit", "offset"):
            if getattr(query, clause) is not None and tail.get(clause) is not None:
                raise SqlSyntaxError(
                    f"multiple {clause.upper()} clauses not allowed",
                    position=leftmost(tail[clause]),
                )
        if tail.get("with_ties"):
            if not (query.order_by or tail.get("order_by")):
                raise SqlSyntaxError("WITH TIES cannot be specified without ORDER BY clause")
            if "skip locked" in tail.get("locking", ""):
                raise SqlSyntaxError("SKIP LOCKED and WITH TIES options cannot be used together")
        if query.locking and tail.get("locking"):
            tail = {**tail, "locking": f"{query.locking} {tail['locking']}"}
        return dataclasses.replace(query, **tail)

    def select_with_ctes(
        self, with_clause: ast.WithClause, query: ast.SelectStmt, tail: Tail | None = None
    ) -> ast.SelectStmt:
        if query.with_clause is not None:
            raise SqlSyntaxError("multiple WITH clauses not allowed", position=with_clause.pos)
        return dataclasses.replace(
            self.select_with_tail(query, tail or {}), with_clause=with_clause
        )

    def select_tail(
        self,
        order_by: tuple[ast.SortBy, ...] | None,
        locking: str | None = None,
        limit: Tail | None = None,
    ) -> Tail:
        tail: Tail = {} if order_by is None else {"order_by": order_by}
        if locking is not None:
            tail["locking"] = locking
        return tail | (limit or {})

    def select_tail_limit_first(
        self, order_by: tuple[ast.SortBy, ...] | None, limit: Tail, locking: str | None
    ) -> Tail:
        return self.select_tail(order_by, locking, limit)

    def select_limit(self, limit: Tail, offset: ast.RawExpr | None = None) -> Tail:
        return limit if offset is None else {**limit, "offset": offset}

    def select_offset_limit(self, offset: ast.RawExpr, limit: Tail) -> Tail:
        return {**limit, "offset": offset}

    def select_offset(self, offset: ast.RawExpr) -> Tail:
        return {"offset": offset}

    def limit_clause(self, limit: ast.RawExpr) -> Tail:
        return {"limit": limit}

    def limit_all(self, word: Token) -> ast.Constant:
        return ast.Constant("null", None, pos=start_of(word))

    def fetch_clause(self, count: ast.RawExpr | None) -> Tail:
        return {"limit": count or ast.Constant("integer", "1")}

    def fetch_with_ties(self, count: ast.RawExpr | None) -> Tail:
        return {**self.fetch_clause(count), "with_ties": True}

    def fetch_signed(self, op: Token, number: Token) -> ast.Constant:
        sign = "-" if op.type == "MINUS" else ""
        kind = "integer" if number.type == "ICONST" else "float"
        return ast.Constant(kind, sign + number, pos=start_of(op))  # type: ignore[arg-type]

    def limit_comma(self, word: Token, *rest: object) -> Tail:
        raise SqlSyntaxError(
            "LIMIT #,# syntax is not supported",
            hint="Use separate LIMIT and OFFSET clauses.",
            position=start_of(word),
        )

    def locking(self, *words: Token | tuple[ast.RangeVar, ...] | None) -> str:
        return " ".join(
            ", ".join(relation.name for relation in word) if isinstance(word, tuple) else word
            for word in words
            if word is not None
        )

    def locking_clause(self, *clauses: str) -> str:
        return " ".join(clauses)

    def distinct_clause(self, exprs: tuple[ast.RawExpr, ...] = ()) -> tuple[ast.RawExpr, ...]:
        return exprs

    def target_list(self, *targets: ast.ResTarget) -> tuple[ast.ResTarget, ...]:
        return targets

    def target_el(self, value: ast.RawExpr, name: Token | None) -> ast.ResTarget:
        return ast.ResTarget(value, None if name is None else str(name), pos=leftmost(value))

    def target_star(self, star: Token) -> ast.ResTarget:
        return ast.ResTarget(
            ast.ColumnRef(("*",), is_star=True, pos=start_of(star)), pos=start_of(star)
        )

    def into_clause(self, relation: ast.RangeVar) -> ast.RangeVar:
        return relation

    def from_list(self, *items: ast.FromItem) -> tuple[ast.FromItem, ...]:
        return items

    def group_clause(
        self, all_: bool | None, *items: ast.RawExpr | ast.GroupingSet
    ) -> tuple[tuple[ast.RawExpr | ast.GroupingSet, ...], bool]:
        return items, all_ is False

    def grouping_set(self, word: Token, exprs: tuple[ast.RawExpr, ...]) -> ast.GroupingSet:
        return ast.GroupingSet(
            "rollup" if word.type == "ROLLUP" else "cube", exprs, pos=start_of(word)
        )

    def grouping_sets(self, word: Token, *items: ast.RawExpr | ast.GroupingSet) -> ast.GroupingSet:
        return ast.GroupingSet("sets", items, pos=start_of(word))

    def empty_grouping_set(self) -> ast.GroupingSet:
        return ast.GroupingSet("empty", ())

    def window_clause(self, *windows: ast.WindowDef) -> tuple[ast.WindowDef, ...]:
        return windows

    def window_definition(self, name: Token, window: ast.WindowDef) -> ast.WindowDef:
        return dataclasses.replace(window, name=str(name))

    def window_specification(
        self,
        paren: Token,
        ref_name: Token | None,
        partition_by: tuple[ast.RawExpr, ...] | None,
        ordering: tuple[tuple[ast.SortBy, ...], _Frame],
    ) -> ast.WindowDef:
        order_by, frame = ordering
        return ast.WindowDef(
            None,
            ref_name and str(ref_name),
            partition_by or (),
            order_by,
            frame.text,
            frame.offsets,
            pos=start_of(paren),
        )

    def window_ordering(
        self, order_by: tuple[ast.SortBy, ...] | None = None, frame: _Frame | None = None
    ) -> tuple[tuple[ast.SortBy, ...], _Frame]:
        return order_by or (), frame or _Frame()

    def frame_clause(self, mode: Token, extent: _Frame, exclusion: str | None) -> _Frame:
        words = (mode.upper(), extent.text, exclusion)
        return _Frame(" ".join(filter(None, words)), extent.offsets)

    def frame_extent(self, *parts: Token | _FrameBound) -> _Frame:
        """Return `start` or `BETWEEN start AND end`; refuse a start that is after the end."""
        bounds = [part for part in parts if isinstance(part, _FrameBound)]
        start, end = bounds[0], bounds[-1] if len(bounds) > 1 else _FrameBound("CURRENT ROW", -1)
        for bound, wrong, message in (
            (start, "UNBOUNDED FOLLOWING", "frame start cannot be UNBOUNDED FOLLOWING"),
            (end, "UNBOUNDED PRECEDING", "frame end cannot be UNBOUNDED PRECEDING"),
        ):
            if bound.text == wrong:
                raise WindowingError(message, position=bound.pos)
        if len(bounds) == 1 and start.text.endswith("FOLLOWING"):
            raise WindowingError(
                "frame starting from following row cannot end with current row", position=start.pos
            )
        before = end.text.endswith("PRECEDING")
        if start.text == "CURRENT ROW" and before:
            message = "frame starting from current row cannot have preceding rows"
            raise WindowingError(message, position=end.pos)
        if start.text.endswith("FOLLOWING") and (before or end.text == "CURRENT ROW"):
            message = "frame starting from following row cannot have preceding rows"
            raise WindowingError(message, position=end.pos)
        offsets = tuple(bound.offset for bound in bounds if bound.offset is not None)
        if len(bounds) == 1:
            return _Frame(start.text, offsets)
        return _Frame(f"BETWEEN {start.text} AND {end.text}", offsets)

    def frame_bound(self, *words: Token) -> _FrameBound:
        first, last = words
        if first.type not in ("ICONST", "SCONST"):
            return _FrameBound(f"{first.upper()} {last.upper()}", start_of(first))
        kind: Literal["integer", "string"] = "integer" if first.type == "ICONST" else "string"
        offset = ast.Constant(kind, str(first), pos=start_of(first))
        return _FrameBound(f"{{}} {last.upper()}", start_of(first), offset)

    def frame_exclusion(self, *words: Token) -> str:
        text = " ".join(word.upper() for word in words)
        return "" if text == "EXCLUDE NO OTHERS" else text  # the default, which is never printed

    def sort_clause(self, *items: ast.SortBy) -> tuple[ast.SortBy, ...]:
        return items

    def sort_by(self, expr: ast.RawExpr, direction: str | None, nulls: str | None) -> ast.SortBy:
        return ast.SortBy(expr, direction or "default", nulls or "default")  # type: ignore[arg-type]

    def sort_by_using(
        self, expr: ast.RawExpr, word: Token, op: Token, nulls: str | None
    ) -> ast.SortBy:
        return self.sort_by_using_qualified(expr, word, (op,), nulls)

    def sort_by_using_qualified(
        self, expr: ast.RawExpr, word: Token, op: tuple[Token, ...], nulls: str | None
    ) -> ast.SortBy:
        """Return an ORDER BY item with USING, at whose position errors point."""
        operator = tuple(map(str, op))
        return ast.SortBy(expr, "default", nulls or "default", operator, pos=start_of(word))  # type: ignore[arg-type]

    def sort_direction(self, word: Token) -> str:
        return str(word)

    def nulls_order(self, nulls: Token, word: Token) -> str:
        return str(word)

    def with_clause(
        self, word: Token, recursive: Token | None, *ctes: ast.CommonTableExpr
    ) -> ast.WithClause:
        return ast.WithClause(ctes, recursive is not None, pos=start_of(word))

    def common_table_expr(
        self,
        name: Token,
        columns: tuple[Token, ...] | None,
        materialized: bool | None,
        query: ast.Statement,
    ) -> ast.CommonTableExpr:
        return ast.CommonTableExpr(
            str(name), _names(columns), query, materialized, pos=start_of(name)
        )

    def materialized(self, *words: Token) -> bool:
        return len(words) == 1

    # -- FROM

    def relation_expr(self, relation: ast.RangeVar, *star: Token) -> ast.RangeVar:
        return relation

    def relation_only(self, relation: ast.RangeVar) -> ast.RangeVar:
        return dataclasses.replace(relation, inherit=False)

    def alias_clause(self, name: Token, columns: tuple[Token, ...] | None) -> ast.Alias:
        return ast.Alias(str(name), _names(columns), pos=start_of(name))

    def func_columns(self, *columns: ast.ColumnDef) -> tuple[None, tuple[ast.ColumnDef, ...]]:
        return None, columns

    def named_func_columns(
        self, name: Token, *columns: ast.ColumnDef
    ) -> tuple[ast.Alias, tuple[ast.ColumnDef, ...]]:
        return ast.Alias(str(name), pos=start_of(name)), columns

    def func_column(
        self, name: Token, type_name: ast.TypeName, collation: Collation | None
    ) -> ast.ColumnDef:
        return with_collation(ast.ColumnDef(str(name), type_name, pos=start_of(name)), collation)

    def ordinality(self, *words: Token) -> bool:
        return True

    def func_table(self, call: ast.FuncCall, ordinality: bool | None) -> tuple[ast.FuncCall, bool]:
        return call, bool(ordinality)

    def table_relation(self, relation: ast.RangeVar, alias: ast.Alias | None) -> ast.RangeVar:
        return dataclasses.replace(relation, alias=alias)

    def table_function(
        self, function: tuple[ast.FuncCall, bool], alias: Any, is_lateral: bool = False
    ) -> ast.RangeFunction:
        call, with_ordinality = function
        name, columns = alias if isinstance(alias, tuple) else (alias, ())
        return ast.RangeFunction(call, name, is_lateral, with_ordinality, columns, pos=call.pos)

    def lateral_function(
        self, word: Token, function: tuple[ast.FuncCall, bool], alias: Any
    ) -> ast.RangeFunction:
        return self.table_function(function, alias, is_lateral=True)

    def table_subselect(self, query: ast.SelectStmt, alias: ast.Alias | None) -> ast.RangeSubselect:
        return ast.RangeSubselect(query, alias, pos=query.pos)

    def lateral_subselect(
        self, word: Token, query: ast.SelectStmt, alias: ast.Alias | None
    ) -> ast.RangeSubselect:
        return ast.RangeSubselect(query, alias, is_lateral=True, pos=query.pos)

    def aliased_join(self, join: ast.JoinExpr, alias: ast.Alias) -> ast.JoinExpr:
        return dataclasses.replace(join, alias=alias)

    def cross_join(self, left: ast.FromItem, right: ast.FromItem) -> ast.JoinExpr:
        return ast.JoinExpr("cross", left, right)

    def qualified_join(
        self, left: ast.FromItem, kind: str | None, right: ast.FromItem, qual: Tail
    ) -> ast.JoinExpr:
        return ast.JoinExpr(kind or "inner", left, right, **qual)  # type: ignore[arg-type]

    def natural_join(
        self, left: ast.FromItem, kind: str | None, right: ast.FromItem
    ) -> ast.JoinExpr:
        return ast.JoinExpr(kind or "inner", left, right, is_natural=True)  # type: ignore[arg-type]

    def join_type(self, word: Token, *outer: Token) -> str:
        return str(word)

    def join_using(self, names: tuple[Token, ...]) -> Tail:
        return {"using": _names(names)}

    def join_on(self, condition: ast.RawExpr) -> Tail:
        return {"on": condition}

    # -- INSERT, UPDATE, DELETE, TRUNCATE

    def insert_stmt(
        self, with_clause: ast.WithClause | None, relation: ast.RangeVar, rest: Tail, tail: Tail
    ) -> ast.Insert:
        return ast.Insert(relation, with_clause=with_clause, **rest, **tail)

    def insert_target(self, relation: ast.RangeVar, alias: Token | None) -> ast.RangeVar:
        return dataclasses.replace(relation, alias=None if alias is None else ast.Alias(str(alias)))

    def insert_query(self, query: ast.SelectStmt) -> Tail:
        return {"columns": (), "query": query}

    def insert_query_overriding(self, overriding: str, query: ast.SelectStmt) -> Tail:
        return {"columns": (), "query": query, "overriding": overriding}

    def insert_columns_query(
        self, columns: tuple[ast.ResTarget, ...], query: ast.SelectStmt
    ) -> Tail:
        return {"columns": columns, "query": query}

    def insert_columns_overriding(
        self, columns: tuple[ast.ResTarget, ...], overriding: str, query: ast.SelectStmt
    ) -> Tail:
        return {"columns": columns, "query": query, "overriding": overriding}

    def insert_defaults(self) -> Tail:
        return {"columns": (), "query": None}

    def overriding(self, word: Token) -> str:
        return str(word)

    def insert_columns(self, *columns: ast.ResTarget) -> tuple[ast.ResTarget, ...]:
        return columns

    def insert_column(self, name: Token, indirection: tuple[Any, ...] | None) -> ast.ResTarget:
        items = tuple(i if isinstance(i, ast.Subscript) else str(i) for i in indirection or ())
        return ast.ResTarget(None, str(name), items, pos=start_of(name))

    set_target = insert_column

    def insert_tail(
        self,
        on_conflict: ast.OnConflict | None = None,
        returning: tuple[ast.ResTarget, ...] | None = None,
    ) -> Tail:
        return {"on_conflict": on_conflict, "returning": returning or ()}

    def on_conflict_update(
        self,
        on: Token,
        target: Tail | None,
        assignments: tuple[ast.Assignment, ...],
        where: ast.RawExpr | None,
    ) -> ast.OnConflict:
        given: Tail = {"pos": start_of(on), **(target or {})}
        return ast.OnConflict("update", assignments=assignments, where=where, **given)

    def on_conflict_nothing(self, target: Tail | None) -> ast.OnConflict:
        return ast.OnConflict("nothing", **(target or {}))

    def conflict_target(self, begin: Token, *items: ast.IndexElem | ast.RawExpr | None) -> Tail:
        """Return the target of ON CONFLICT as expressions; a bare column becomes a ColumnRef.

        Errors point at the opening parenthesis.
        """
        *elements, where = items
        pos = start_of(begin)
        targets = []
        for element in cast("list[ast.IndexElem]", elements):
            if element.collation or element.opclass:
                raise FeatureNotSupported(
                    "COLLATE and operator classes in ON CONFLICT are not supported",
                    position=pos,
                )
            for given, message in (
                (element.direction, "ASC/DESC is not allowed in ON CONFLICT clause"),
                (element.nulls, "NULLS FIRST/LAST is not allowed in ON CONFLICT clause"),
            ):
                if given != "default":
                    raise InvalidColumnReference(message, position=pos)
            name = element.name
            targets.append(
                element.expr if name is None else ast.ColumnRef((name,), pos=element.pos)
            )
        return {"targets": tuple(targets), "target_where": where, "pos": pos}

    def conflict_constraint(self, name: Token) -> Tail:
        return {"constraint": str(name)}

    def update_stmt(
        self,
        with_clause: ast.WithClause | None,
        relation: ast.RangeVar,
        assignments: tuple[ast.Assignment, ...],
        from_clause: tuple[ast.FromItem, ...] | None,
        tail: Tail,
    ) -> ast.Update:
        return ast.Update(relation, assignments, from_clause or (), with_clause=with_clause, **tail)

    def delete_stmt(
        self,
        with_clause: ast.WithClause | None,
        relation: ast.RangeVar,
        using: tuple[ast.FromItem, ...] | None,
        tail: Tail,
    ) -> ast.Delete:
        return ast.Delete(relation, using or (), with_clause=with_clause, **tail)

    def modify_tail(
        self, where: ast.RawExpr | None = None, returning: tuple[ast.ResTarget, ...] | None = None
    ) -> Tail:
        return {"where": where, "returning": returning or ()}

    def modified_relation(self, relation: ast.RangeVar, alias: Token | None = None) -> ast.RangeVar:
        return dataclasses.replace(relation, alias=None if alias is None else ast.Alias(str(alias)))

    def set_clauses(self, *clauses: ast.Assignment) -> tuple[ast.Assignment, ...]:
        return clauses

    def set_clause(self, target: ast.ResTarget, value: ast.RawExpr) -> ast.Assignment:
        return ast.Assignment((target,), value, pos=target.pos)

    def set_clause_multiple(self, *items: ast.ResTarget | ast.RawExpr) -> ast.Assignment:
        *targets, value = items
        return ast.Assignment(
            cast("tuple[ast.ResTarget, ...]", tuple(targets)),
            cast(ast.RawExpr, value),
            is_row=True,
            pos=targets[0].pos,
        )

    def truncate_stmt(self, *items: object) -> ast.Truncate:
        *relations, identity, behavior = items
        return ast.Truncate(
            tuple(cast("list[ast.RangeVar]", relations)),
            identity == "restart",
            behavior == "cascade",
        )

    def identity_option(self, word: Token, identity: Token) -> str:
        return str(word)

    def drop_behavior(self, word: Token) -> str:
        return str(word)


def _names(names: tuple[Token, ...] | None) -> tuple[str, ...]:
    return tuple(map(str, names or ()))
