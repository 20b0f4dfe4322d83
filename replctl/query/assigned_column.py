"""Columns, and elements of columns, to which SET and the column list of INSERT assign values
(parse_target.c).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from replctl.catalog.pg_class import Column, Relation
from replctl.does_not_exist import no_column
from replctl.errors import DatatypeMismatch, FeatureNotSupported, SqlSyntaxError
from replctl.expr import nodes
from replctl.expr.analyze import Analyzer
from replctl.expr.coerce import ASSIGNMENT
from replctl.expr.subscripts import subscripting
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.record import dataclass
from replctl.types.type_kind import TypeKind


@dataclass(frozen=True, slots=True)
class AssignedColumn:
    """A column to which a statement assigns a value.

    Attributes:
        indirection: the subscripts of the assigned element or slice, and names of fields; () for
            the whole column.
    """

    column: Column
    indirection: tuple[ast.Subscript | str, ...] = ()
    pos: int = -1

    def check_default(self) -> None:
        """Check that DEFAULT may be assigned.

        Raises:
            FeatureNotSupported: only a part of the column is assigned.
        """
        if self.indirection:
            is_field = isinstance(self.indirection[0], str)
            what = "a subfield" if is_field else "an array element"
            raise FeatureNotSupported(f"cannot set {what} to DEFAULT", position=self.pos)


def assigned_column(
    relation: Relation, target: ast.ResTarget, name: str | None = None
) -> AssignedColumn:
    """Return the column that a target names.

    Args:
        name: the name of the relation in an UPDATE.

    Raises:
        UndefinedColumn: the relation has no such column.
    """
    column = relation.column(target.name or "")
    if column is None:
        error = no_column(target.name, relation.name, position=target.pos)
        if target.indirection and target.name == name:
            error.hint = "SET target columns cannot be qualified with the relation name."
        raise error
    return AssignedColumn(column, target.indirection, target.pos)


class AssignedValues:
    """The new values of the columns of a row (rewriteTargetListIU in rewriteHandler.c).

    Args:
        inner: an analyzer whose scope has the columns that the values may use.
        old_value: returns the value of a column before the first assignment to one of its parts.
    """

    def __init__(
        self,
        analyzer: QueryAnalyzer,
        inner: Analyzer,
        old_value: Callable[[Column], nodes.Expr],
    ) -> None:
        self._analyzer = analyzer
        self._inner = inner
        self._old_value = old_value
        self._values: dict[int, nodes.Expr] = {}
        self._in_parts: dict[int, Column] = {}

    def add(self, target: AssignedColumn, expr: nodes.Expr, pos: int) -> None:
        """Assign a value.

        Args:
            pos: the position of the value, for errors.

        Raises:
            DatatypeMismatch: the value has another type, or the column has no such part.
            SqlSyntaxError: the column already has a value.
        """
        column = target.column
        if not target.indirection:
            self.put(
                column,
                self._inner.coerce_for_assignment(
                    expr, column.declared_type, column.declared_typmod, column.name, pos
                ),
            )
            return
        if column.attnum in self._values and column.attnum not in self._in_parts:
            raise _assigned_twice(column)
        old = self._values.get(column.attnum) or self._old_value(column)
        self._values[column.attnum] = self._with_part(target, old, expr)
        self._in_parts[column.attnum] = column

    def put(self, column: Column, value: nodes.Expr) -> None:
        """Assign a value that has the column's type.

        Raises:
            SqlSyntaxError: the column already has a value.
        """
        if column.attnum in self._values:
            raise _assigned_twice(column)
        self._values[column.attnum] = value

    def finished(self) -> dict[int, nodes.Expr]:
        """Return the values by attnum."""
        for attnum, column in self._in_parts.items():
            self._values[attnum] = self._inner.coerce_for_assignment(
                self._values[attnum], column.declared_type, column.declared_typmod, column.name, -1
            )
        return {attnum: self._analyzer.finished(value) for attnum, value in self._values.items()}

    def _with_part(
        self, target: AssignedColumn, old: nodes.Expr, expr: nodes.Expr
    ) -> nodes.SubscriptingRef:
        """Return the column's value after an assignment to one of its parts."""
        column, types = target.column, self._inner.coercion.types
        subscripts = [item for item in target.indirection if isinstance(item, ast.Subscript)]
        part = replace(old, pos=target.pos)
        if subscripts and isinstance(target.indirection[0], ast.Subscript):
            part = subscripting(self._inner, part, subscripts)
        field = next((item for item in target.indirection if isinstance(item, str)), None)
        if field is not None and types.get(part.type).kind == TypeKind.COMPOSITE:
            raise FeatureNotSupported(
                "assignment to a field of a column is not supported", position=target.pos
            )
        if field is not None:
            raise DatatypeMismatch(
                f'cannot assign to field "{field}" of column "{column.name}" because its type'
                f" {types.format(part.type)} is not a composite type",
                position=target.pos,
            )
        assert isinstance(part, nodes.SubscriptingRef)
        container, _typmod = types.base_and_typmod(old.type, nodes.typmod(old))
        if container != "jsonb" and not types.is_array(container):
            raise FeatureNotSupported(
                f"assignment to an element of type {types.format(container)} is not supported",
                position=target.pos,
            )
        value = self._inner.coercion.to_target(expr, part.type, part.typmod, ASSIGNMENT)
        if value is None:
            raise DatatypeMismatch(
                f'subscripted assignment to "{column.name}" requires type'
                f" {types.format(part.type)} but expression is of type {types.format(expr.type)}",
                hint="You will need to rewrite or cast the expression.",
                position=target.pos,
            )
        return replace(part, type=container, assigned=value)


def _assigned_twice(column: Column) -> SqlSyntaxError:
    return SqlSyntaxError(f'multiple assignments to same column "{column.name}"')
