"""FROM: the relations that a query reads, and the names that expressions may use.

This module corresponds to PostgreSQL's parse_relation.c, and transformFromClause() in
parse_clause.c.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_class import Relation
from replctl.catalog.relation_kind import RelKind
from replctl.errors import (
    AmbiguousAlias,
    AmbiguousColumn,
    DuplicateAlias,
    InvalidColumnReference,
    PostgresError,
    UndefinedTable,
)
from replctl.expr import nodes
from replctl.expr.analyze import Analyzer
from replctl.expr.context import ExprContext
from replctl.expr.scope import ScopeRelation, missing_column
from replctl.parser import ast
from replctl.query.tree import OutputColumn
from replctl.record import dataclass
from replctl.types import builtin
from replctl.types.builtin import SystemRelation, system_columns

#: Name and expression of a column of FROM.
NamedColumn = tuple[str, nodes.Expr]


@dataclass(frozen=True)
class RangeTableEntry:
    """A name in FROM with its columns (see expr.scope.ScopeRelation).

    Attributes:
        is_visible: expressions may qualify columns with the name. They may not use the name of a
            subquery without an alias.
    """

    name: str
    varno: int
    columns: tuple[NamedColumn, ...]
    row_type: str = "record"
    relation: Relation | SystemRelation | None = None
    schema: str | None = None  # None if an alias hides it
    is_visible: bool = True

    @property
    def column_names(self) -> Sequence[str]:
        return tuple(name for name, _expr in self.columns)

    def find_column(self, name: str, context: ExprContext, pos: int) -> nodes.Expr | None:
        found = [expr for column, expr in self.columns if column == name]
        if len(found) > 1:
            raise AmbiguousColumn(f'column reference "{name}" is ambiguous', position=pos)
        if found:
            return _at(found[0], pos)
        is_view = isinstance(self.relation, Relation) and self.relation.kind == RelKind.VIEW
        if self.relation is None or is_view or name not in system_columns():
            return None
        attnum, type_ = system_columns()[name]
        return nodes.Var(attnum, type_, varno=self.varno, pos=pos)

    def whole_row(self, pos: int) -> nodes.Expr:
        return nodes.Var(0, self.row_type, varno=self.varno, pos=pos)

    def expand(self, pos: int) -> tuple[NamedColumn, ...]:
        return tuple((name, _at(expr, pos)) for name, expr in self.columns)

    def conflicts_with(self, other: RangeTableEntry) -> bool:
        """Return whether two entries of one query have the same name (checkNameSpaceConflicts)."""
        if self.name != other.name or not (self.is_visible and other.is_visible):
            return False
        return None in (self.schema, other.schema) or self.schema == other.schema

    def outer(self) -> RangeTableEntry:
        """Return the entry for use in a subquery, which is one query level deeper."""
        columns = tuple((name, _one_level_out(expr)) for name, expr in self.columns)
        return _OuterEntry(
            self.name,
            self.varno,
            columns,
            self.row_type,
            self.relation,
            self.schema,
            self.is_visible,
        )


class _OuterEntry(RangeTableEntry):
    def find_column(self, name: str, context: ExprContext, pos: int) -> nodes.Expr | None:
        found = super().find_column(name, context, pos)
        is_system = isinstance(found, nodes.Var) and found.attnum < 0
        return _one_level_out(found) if is_system and found is not None else found


@dataclass(frozen=True)
class FromScope:
    """The names that a query's expressions may use (expr.scope.Scope). A name that FROM lacks may
    belong to an outer query.

    Args:
        entries: the tables of FROM, in their order.
        columns: the columns for names without a table; the merged columns of USING come first.
        parent: the scope of the outer query.
        hidden: names of tables that only other parts of the statement may use.
    """

    entries: tuple[RangeTableEntry, ...] = ()
    columns: tuple[NamedColumn, ...] = ()
    parent: FromScope | None = None
    hidden: tuple[str, ...] = ()

    def find_column(self, name: str, context: ExprContext, pos: int) -> nodes.Expr | None:
        found = [expr for column, expr in self.columns if column == name]
        if len(found) > 1:
            raise AmbiguousColumn(f'column reference "{name}" is ambiguous', position=pos)
        if found:
            return _at(found[0], pos)
        system = [
            column
            for entry in self.entries
            if name in system_columns()
            and (column := entry.find_column(name, context, pos)) is not None
        ]
        if len(system) > 1:
            raise AmbiguousColumn(f'column reference "{name}" is ambiguous', position=pos)
        if system:
            return system[0]
        if self.parent is None:
            return None
        outer = self.parent.find_column(name, context, pos)
        return None if outer is None else _one_level_out(outer)

    def find_relation(self, schema: str | None, name: str, pos: int) -> ScopeRelation | None:
        matching = [
            entry
            for entry in self.entries
            if entry.is_visible
            and entry.name == name
            and (schema is None or entry.schema == schema)
        ]
        if len(matching) > 1:
            raise AmbiguousAlias(f'table reference "{name}" is ambiguous', position=pos)
        if matching:
            return matching[0]
        if self.parent is None:
            return None
        outer = self.parent.find_relation(schema, name, pos)
        return outer.outer() if isinstance(outer, RangeTableEntry) else None

    def relation_of(self, row: nodes.Var) -> ScopeRelation | None:
        scope: FromScope | None = self
        for _ in range(row.levels_up):
            scope = None if scope is None else scope.parent
        entries = () if scope is None else scope.entries
        return next((entry for entry in entries if entry.varno == row.varno), None)

    def missing_column(self, relation: str | None, column: str, pos: int) -> PostgresError:
        return missing_column(self._all_entries(), relation, column, pos)

    def missing_relation(self, schema: str | None, name: str, pos: int) -> PostgresError:
        for entry in self._all_entries():
            real = entry.relation
            if real is not None and real.name == name and entry.name != name:
                return UndefinedTable(
                    f'invalid reference to FROM-clause entry for table "{name}"',
                    hint=f'Perhaps you meant to reference the table alias "{entry.name}".',
                    position=pos,
                )
        if name in self._all_names():
            return UndefinedTable(
                f'invalid reference to FROM-clause entry for table "{name}"',
                detail=f'There is an entry for table "{name}", but it cannot be referenced from'
                " this part of the query.",
                position=pos,
            )
        return UndefinedTable(f'missing FROM-clause entry for table "{name}"', position=pos)

    def expand(self, pos: int) -> tuple[NamedColumn, ...]:
        return tuple((name, _at(expr, pos)) for name, expr in self.columns)

    def joined_with(self, other: FromScope) -> FromScope:
        """Return the scope of `FROM a, b` for the scopes of a and b.

        Raises:
            DuplicateAlias: both have a table with the same name (42712). Tables of two schemas,
                without aliases, may have the same name.
        """
        for entry in other.entries:
            if any(entry.conflicts_with(own) for own in self.entries):
                raise DuplicateAlias(f'table name "{entry.name}" specified more than once')
        return dataclasses.replace(
            self,
            entries=self.entries + other.entries,
            columns=self.columns + other.columns,
            hidden=self.hidden + other.hidden,
        )

    @property
    def own_names(self) -> tuple[str, ...]:
        """Return the names of the tables of this query, also of those in `hidden`."""
        return (*(entry.name for entry in self.entries), *self.hidden)

    def _all_names(self) -> set[str]:
        """Return the names of the tables of this query and of outer queries."""
        own = {*self.own_names}
        return own if self.parent is None else own | self.parent._all_names()

    def _all_entries(self) -> tuple[RangeTableEntry, ...]:
        return self.entries + (() if self.parent is None else self.parent._all_entries())


def merged_scope(
    left: FromScope, right: FromScope, kind: str, merged: Sequence[tuple[str, nodes.Expr]]
) -> FromScope:
    """Return the scope of a join with USING: first the merged columns, then the other columns of
    the left and the right side.
    """
    names = {name for name, _expr in merged}
    both = left.joined_with(right)
    rest = tuple((name, expr) for name, expr in left.columns + right.columns if name not in names)
    return FromScope(both.entries, tuple(merged) + rest, both.parent, both.hidden)


def using_column(scope: FromScope, name: str, side: str, pos: int) -> nodes.Expr:
    """Return one side's column for a name in USING.

    Raises:
        UndefinedColumn, AmbiguousColumn: the side has no such column, or several.
    """
    found = [expr for column, expr in scope.columns if column == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise AmbiguousColumn(
            f'common column name "{name}" appears more than once in {side} table', position=pos
        )
    from replctl.errors import UndefinedColumn

    raise UndefinedColumn(
        f'column "{name}" specified in USING clause does not exist in {side} table', position=pos
    )


def merged_column(analyzer: Analyzer, left: nodes.Expr, right: nodes.Expr, kind: str) -> nodes.Expr:
    """Return the merged column of both sides of USING (buildMergedJoinVar).

    An inner join takes the side that needs no cast.
    """
    casts, type_, typmod = analyzer.common_type((left, right), "JOIN/USING")
    a, b = (
        nodes.RelabelType(cast, type_, typmod, collation=nodes.collation(cast))
        if cast is side and nodes.typmod(side) != typmod
        else cast
        for cast, side in zip(casts, (left, right), strict=True)
    )
    if kind == "full":
        return nodes.CoalesceExpr(type_, (a, b), is_merged=True)
    if kind == "right" or (kind == "inner" and a is not left and b is right):
        return b
    return a


def renamed(
    columns: Sequence[NamedColumn], names: Sequence[str], what: str, kind: str = "table"
) -> tuple[NamedColumn, ...]:
    """Return columns with the names of an alias. It may name only the first few columns.

    Args:
        kind: what has the columns, in the error: table or join expression.

    Raises:
        InvalidColumnReference: the alias has more names than there are columns.
    """
    if len(names) > len(columns):
        raise InvalidColumnReference(
            f'{kind} "{what}" has {len(columns)} columns available but {len(names)} columns'
            f" specified"
        )
    return tuple(
        (names[i] if i < len(names) else name, expr) for i, (name, expr) in enumerate(columns)
    )


def _one_level_out(expr: nodes.Expr) -> nodes.Expr:
    """Return an expression of a query for use in one of the query's subqueries."""

    def shift(node: Any) -> Any:
        if isinstance(node, nodes.Var):
            return dataclasses.replace(node, levels_up=node.levels_up + 1)
        return None

    shifted: nodes.Expr = nodes.transform(expr, shift)
    return shifted


def _at(expr: nodes.Expr, pos: int) -> nodes.Expr:
    return dataclasses.replace(expr, pos=pos)


def target_entry(
    environment: CatalogEnvironment,
    relation: Relation,
    varno: int,
    alias: ast.Alias | None,
    *,
    named: Relation | None = None,
) -> RangeTableEntry:
    """Return the entry of the table that a statement changes.

    Args:
        alias: the alias that the statement gives to the table.
        named: the table in the statement, if `relation` is one of its partitions or children.
    """
    named = named or relation
    entry = relation_entry(environment, relation, varno, alias or ast.Alias(named.name))
    return entry if alias else dataclasses.replace(entry, schema=named.schema)


def relation_entry(
    environment: CatalogEnvironment,
    relation: Relation | builtin.SystemRelation,
    varno: int,
    alias: ast.Alias | None,
) -> RangeTableEntry:
    """Return the entry of a table in FROM."""
    columns: tuple[NamedColumn, ...]
    if isinstance(relation, Relation):
        schema, row_type = relation.schema, relation.row_type
        columns = tuple(
            (c.name, nodes.Var(c.attnum, c.declared_type, c.declared_typmod, c.collation, varno))
            for c in relation.columns
        )
    else:
        schema, row_type = "pg_catalog", "record"
        columns = tuple(
            (name, nodes.Var(i, type_, -1, environment.type(type_).collation, varno))
            for i, (name, type_) in enumerate(relation.columns, start=1)
        )
    if alias is None:
        return RangeTableEntry(relation.name, varno, columns, row_type, relation, schema)
    columns = renamed(columns, alias.columns, alias.name)
    return RangeTableEntry(alias.name, varno, columns, row_type, relation)


def scope_of_columns(
    varno: int,
    columns: tuple[NamedColumn, ...],
    alias: ast.Alias | None,
    name: str,
    analyzer: Analyzer,
    *,
    is_visible: bool = True,
) -> FromScope:
    """Return the scope of an item of FROM, whose name is its alias or else `name`.

    Args:
        is_visible: expressions may qualify columns with `name` if there is no alias.
    """
    if alias is not None:
        columns = renamed(columns, alias.columns, alias.name)
    entry = RangeTableEntry(
        name if alias is None else alias.name,
        varno,
        columns,
        is_visible=is_visible or alias is not None,
    )
    return FromScope((entry,), columns, parent_of(analyzer))


def columns_of(outputs: Sequence[OutputColumn], varno: int) -> tuple[NamedColumn, ...]:
    """Return the output columns of a query as columns of the item `varno` of FROM."""
    return tuple(
        (column.name, nodes.Var(i, column.type, column.typmod, column.collation, varno))
        for i, column in enumerate(outputs, start=1)
    )


def parent_of(analyzer: Analyzer) -> FromScope | None:
    """Return the scope that surrounds an analyzer's current scope."""
    scope = analyzer.scope
    assert isinstance(scope, FromScope)
    return scope.parent
