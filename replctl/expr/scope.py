"""The names that an expression can use: columns and relations (PostgreSQL's parse_relation.c).

A `Scope` looks up names; `column_reference.py` decides the meaning of a dotted name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from typing import Protocol

from replctl.errors import InvalidColumnReference, PostgresError, UndefinedColumn, UndefinedTable
from replctl.expr import nodes
from replctl.expr.context import ExprContext
from replctl.expr.edit_distance import edit_distance
from replctl.expr.environment import Column
from replctl.record import dataclass
from replctl.types.builtin import system_columns

_MAX_FUZZY_DISTANCE = 3


class ScopeRelation(Protocol):
    """A relation that expressions can use, and its name in them."""

    @property
    def name(self) -> str:
        """Return the qualifier of columns: the alias or the relation's name."""

    @property
    def column_names(self) -> Sequence[str]:
        """Return the names of the relation's columns, for hints."""

    def find_column(self, name: str, context: ExprContext, pos: int) -> nodes.Expr | None:
        """Return the column or system column `name`; None if there is none.

        Raises:
            InvalidColumnReference: `context` does not allow this system column.
        """

    def whole_row(self, pos: int) -> nodes.Expr:
        """Return the whole row as one value."""

    def expand(self, pos: int) -> tuple[tuple[str, nodes.Expr], ...]:
        """Return all columns with their names, for `relation.*`."""


class Scope(Protocol):
    """The names of a query level and of outer levels."""

    def find_column(self, name: str, context: ExprContext, pos: int) -> nodes.Expr | None:
        """Return the column with an unqualified name.

        Raises:
            AmbiguousColumn: several relations have such a column.
            InvalidColumnReference: see ScopeRelation.find_column.
        """

    def find_relation(self, schema: str | None, name: str, pos: int) -> ScopeRelation | None:
        """Return the relation that a qualifier names.

        Raises:
            AmbiguousAlias: several relations in scope have this name.
        """

    def relation_of(self, row: nodes.Var) -> ScopeRelation | None:
        """Return the relation whose whole row is `row`."""

    def missing_column(self, relation: str | None, column: str, pos: int) -> PostgresError:
        """Return the error for a missing column, with a hint that names a similar column."""

    def missing_relation(self, schema: str | None, name: str, pos: int) -> PostgresError:
        """Return the error for a qualifier that names no relation in scope."""

    def expand(self, pos: int) -> tuple[tuple[str, nodes.Expr], ...]:
        """Return all visible columns with their names, for `*`."""


@dataclass(frozen=True)
class RelationScope:
    """The columns of one relation: for row filters, defaults, CHECK, generated columns, indexes.

    Args:
        relation: the relation's name.
        schema: its schema.  Without an alias, names of columns may be qualified by it.
        columns: its columns in order, without dropped ones.
        row_type: the internal name of its row type.
        alias: another name for it in a query.
        varno: its number in the range table.
    """

    relation: str
    columns: tuple[Column, ...]
    row_type: str
    schema: str | None = None
    alias: str | None = None
    varno: int = field(default=1, kw_only=True)

    @property
    def name(self) -> str:
        return self.alias or self.relation

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    def find_column(self, name: str, context: ExprContext, pos: int) -> nodes.Expr | None:
        column = self._by_name.get(name)
        if column is not None:
            return self._var(column, pos)
        if name not in system_columns():
            return None
        attnum, type_ = system_columns()[name]
        if name != "tableoid":
            _check_system_column(name, context, pos)
        return nodes.Var(attnum, type_, varno=self.varno, pos=pos)

    def find_relation(self, schema: str | None, name: str, pos: int) -> RelationScope | None:
        if schema is None:
            return self if name == self.name else None
        is_this = self.alias is None and (schema, name) == (self.schema, self.relation)
        return self if is_this else None

    def relation_of(self, row: nodes.Var) -> RelationScope:
        return self

    def whole_row(self, pos: int) -> nodes.Expr:
        return nodes.Var(0, self.row_type, varno=self.varno, pos=pos)

    def expand(self, pos: int) -> tuple[tuple[str, nodes.Expr], ...]:
        return tuple((column.name, self._var(column, pos)) for column in self.columns)

    def missing_column(self, relation: str | None, column: str, pos: int) -> PostgresError:
        return missing_column((self,), relation, column, pos)

    def missing_relation(self, schema: str | None, name: str, pos: int) -> PostgresError:
        """Return the error for a qualifier.  This can be the relation's own name, if an alias hides
        it or the schema is wrong.
        """
        is_relation = schema in (None, self.schema) and name == self.relation
        if is_relation and self.alias is not None and self.alias != name:
            return UndefinedTable(
                f'invalid reference to FROM-clause entry for table "{name}"',
                hint=f'Perhaps you meant to reference the table alias "{self.alias}".',
                position=pos,
            )
        if is_relation or name == self.name:
            return UndefinedTable(
                f'invalid reference to FROM-clause entry for table "{name}"',
                detail=f'There is an entry for table "{self.name}", but it cannot be referenced '
                "from this part of the query.",
                position=pos,
            )
        return UndefinedTable(f'missing FROM-clause entry for table "{name}"', position=pos)

    def _var(self, column: Column, pos: int) -> nodes.Var:
        return nodes.Var(
            column.attnum,
            column.type,
            column.typmod,
            column.collation,
            varno=self.varno,
            pos=pos,
        )


def missing_column(
    relations: Sequence[ScopeRelation], relation: str | None, column: str, pos: int
) -> UndefinedColumn:
    """Return the error `column "colum" does not exist`, with PostgreSQL's HINT
    (errorMissingColumn).

    Args:
        relations: all relations of the statement, in the order of its range table.
        relation: the qualifier of the name, if it has one.
    """
    shown = f'"{column}"' if relation is None else f"{relation}.{column}"
    best = _similar_columns(relations, relation, column)
    hint = None
    if best:
        names = " or the column ".join(f'"{table}.{name}"' for table, name in best)
        hint = f"Perhaps you meant to reference the column {names}."
    return UndefinedColumn(f"column {shown} does not exist", hint=hint, position=pos)


def _similar_columns(
    relations: Sequence[ScopeRelation], relation: str | None, column: str
) -> list[tuple[str, str]]:
    """Return the one or two columns whose names are most similar to `relation.column`; none if more
    are equally similar.

    As in updateFuzzyAttrMatchState, at most half of the letters may differ, and at most three.
    """
    distance = _MAX_FUZZY_DISTANCE + 1
    best: list[tuple[str, str]] = []
    for candidate in relations:
        penalty = (
            0
            if relation is None
            else edit_distance(candidate.name, relation, _MAX_FUZZY_DISTANCE + 1)
        )
        for name in candidate.column_names:
            if penalty > distance:
                break
            found = edit_distance(name, column, distance + 1 - penalty)
            if found > len(column.encode()) // 2:
                continue
            found += penalty
            if found < distance:
                distance = found
                best = [(candidate.name, name)]
            elif found == distance:
                best = [*best, (candidate.name, name)] if len(best) == 1 else []
    return best


def _check_system_column(name: str, context: ExprContext, pos: int) -> None:
    match context:
        case ExprContext.CHECK:
            message = f'system column "{name}" reference in check constraint is invalid'
        case ExprContext.GENERATED:
            message = f'cannot use system column "{name}" in column generation expression'
        case _:
            return
    raise InvalidColumnReference(message, position=pos)
