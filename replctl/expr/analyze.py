"""Analyse raw expressions: columns, operators, functions, implicit casts, literals.
PostgreSQL's parse_expr.c.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import assert_never

from replctl.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    IndeterminateDatatype,
    SqlSyntaxError,
    TooManyColumns,
    UndefinedObject,
)
from replctl.expr import nodes, rows
from replctl.expr.aggregates import grouping
from replctl.expr.cast_path import UNKNOWN
from replctl.expr.coerce import ASSIGNMENT, IMPLICIT, Coercion
from replctl.expr.collate import assign_collations
from replctl.expr.column_reference import (
    column_reference,
    expression_list,
    indirection,
    parameter,
)
from replctl.expr.common_type import common_type, common_typmod
from replctl.expr.constants import constant
from replctl.expr.context import ExprContext
from replctl.expr.environment import Environment, is_user_collation
from replctl.expr.error_location import expr_location
from replctl.expr.function_call import function_call
from replctl.expr.operators import make_operator, make_scalar_array_operator
from replctl.expr.scope import Scope
from replctl.expr.sublinks import AnalyzeQuery, sublink
from replctl.expr.sublinks import OutputColumn as OutputColumn
from replctl.expr.type_names import find_collation, type_of
from replctl.parser import ast
from replctl.types.type_kind import TypeCategory

MAX_ROW_ENTRIES = 1664  # MaxTupleAttributeNumber
_MAX_PRECISION = 6
_CONVERT_FROM = 1714  # convert_from(bytea, name)
#: The type of each SQL value function.
_SQL_VALUE_TYPES = {
    "current_date": "date",
    "current_time": "timetz",
    "current_timestamp": "timestamptz",
    "localtime": "time",
    "localtimestamp": "timestamp",
}


class Analyzer:
    """Analyses the expressions of one query level.

    Args:
        environment: the catalog.
        scope: the names in scope.
        context: the place of the expressions.
        analyze_query: analyses a subquery; if it is None, subqueries are refused.
        now: the time of literals such as `now` and `today`.
        parent: the analyzer of the outer query.
        windows: the WINDOW clause of the query.
        is_row_filter: the caller refuses user-defined objects, with an error of its own.

    Attributes:
        has_aggregates: the analyzer has found an aggregate.
        last_set: the last call of a set-returning function.
    """

    def __init__(
        self,
        environment: Environment,
        scope: Scope,
        context: ExprContext,
        *,
        analyze_query: AnalyzeQuery | None = None,
        now: datetime | None = None,
        parent: Analyzer | None = None,
        windows: Sequence[ast.WindowDef] = (),
        is_row_filter: bool = False,
    ) -> None:
        self.environment = environment
        self.scope = scope
        self.context = context
        self.coercion = Coercion(environment, now)
        self.parent = parent
        self.windows = windows
        self.is_row_filter = is_row_filter
        self.has_aggregates = False
        self.last_set: nodes.Expr | None = None
        self.analyze_query = analyze_query

    @contextmanager
    def in_context(self, context: ExprContext) -> Iterator[None]:
        """Analyse the expressions of the `with` block as expressions at another place."""
        previous, self.context = self.context, context
        try:
            yield
        finally:
            self.context = previous

    def at_level(self, levels_up: int) -> Analyzer:
        """Return the analyzer of the query that is `levels_up` levels out."""
        owner = self
        for _ in range(levels_up):
            assert owner.parent is not None
            owner = owner.parent
        return owner

    # -- whole expressions

    def boolean(self, raw: ast.RawExpr, construct: str) -> nodes.Expr:
        """Return a condition, such as the argument of WHERE or CHECK.

        Raises:
            DatatypeMismatch: `argument of WHERE must be type boolean, not type integer`.
            PostgresError: see `expr`.
        """
        return self.coercion.to_specific(self.expr(raw), "bool", construct)

    def coerce_for_assignment(
        self,
        expr: nodes.Expr,
        type_: str,
        typmod: int,
        column: str,
        pos: int,
        what: str = "expression",
    ) -> nodes.Expr:
        """Return `expr` as the value of a column.

        Args:
            pos: the position for an error; -1 for a default of an existing table.
            what: the word for the value in the error: `default expression`.

        Raises:
            DatatypeMismatch: `column "a" is of type integer but expression is of type text`.
        """
        result = self.coercion.to_target(expr, type_, typmod, ASSIGNMENT)
        if result is not None:
            return result
        raise DatatypeMismatch(
            f'column "{column}" is of type {self.coercion.types.format(type_)} '
            f"but {what} is of type {self.coercion.types.format(expr.type)}",
            hint="You will need to rewrite or cast the expression.",
            position=pos,
        )

    def common_type(
        self, exprs: Sequence[nodes.Expr], construct: str
    ) -> tuple[tuple[nodes.Expr, ...], str, int]:
        """Cast expressions for one column of VALUES or UNION to their common type.

        Returns:
            The expressions, their common type, and its modifier.

        Raises:
            DatatypeMismatch, CannotCoerce: the expressions have no common type.
        """
        type_ = common_type(self.coercion, exprs, construct)
        typmod = common_typmod(exprs, type_)
        return self._as_common(exprs, type_, construct), type_, typmod

    # -- one expression

    def expr(self, raw: ast.RawExpr) -> nodes.Expr:
        """Return the typed form of a raw expression.  The caller assigns its collations later.

        Raises:
            PostgresError: the expression is wrong; the error has a position.
        """
        match raw:
            case ast.ColumnRef():
                return column_reference(self, raw)
            case ast.Constant():
                return constant(raw)
            case ast.AExpr():
                return self._operation(raw)
            case ast.BoolExpr():
                args = tuple(self.boolean(arg, raw.op.upper()) for arg in raw.args)
                return nodes.BoolExpr(raw.op, args, pos=raw.pos)
            case ast.FuncCall():
                return function_call(self, raw)
            case ast.TypeCast():
                return self._type_cast(raw)
            case ast.NullTest():
                arg = self.expr(raw.arg)
                is_row = self.coercion.types.is_row(arg.type)
                return nodes.NullTest(arg, raw.is_null, is_row, pos=raw.pos)
            case ast.BooleanTest():
                arg = self.boolean(raw.arg, f"IS {raw.test.upper()}")
                return nodes.BooleanTest(arg, raw.test, pos=raw.pos)
            case ast.CollateClause():
                return self._collate(raw)
            case ast.CaseExpr():
                return self._case(raw)
            case ast.CoalesceExpr():
                return self._coalesce(raw)
            case ast.MinMaxExpr():
                exprs = [self.expr(arg) for arg in raw.args]
                type_ = common_type(self.coercion, exprs, raw.op.upper())
                items = self._as_common(exprs, type_, raw.op.upper())
                return nodes.MinMaxExpr(raw.op, type_, items, pos=raw.pos)
            case ast.ArrayExpr():
                return self._array(raw, None)
            case ast.RowExpr():
                return self._row(raw)
            case ast.Indirection():
                return indirection(self, raw)
            case ast.SqlValueFunction():
                return _sql_value_function(raw)
            case ast.SubLink():
                return sublink(self, raw)
            case ast.JsonIsPredicate():
                return self._is_json(raw)
            case ast.XmlIsDocument():
                arg = self.coercion.to_specific(self.expr(raw.arg), "xml", "IS DOCUMENT")
                return nodes.XmlIsDocument(arg, pos=raw.pos)
            case ast.GroupingFunc():
                return grouping(self, raw)
            case ast.ParamRef():
                return parameter(self, raw)
            case ast.SetToDefault():
                raise SqlSyntaxError("DEFAULT is not allowed in this context", position=raw.pos)
        assert_never(raw)

    def _operation(self, raw: ast.AExpr) -> nodes.Expr:
        match raw.kind:
            case "op" | "like" | "ilike" | "similar":
                return self._operator(raw)
            case "op_any" | "op_all":
                assert raw.left is not None
                assert not isinstance(raw.right, tuple)
                return make_scalar_array_operator(
                    self.coercion,
                    raw.name,
                    raw.kind == "op_any",
                    self.expr(raw.left),
                    self.expr(raw.right),
                    raw.pos,
                )
            case "distinct" | "not_distinct":
                return rows.distinct(self, raw)
            case "nullif":
                return rows.nullif(self, raw)
            case "in":
                return rows.in_list(self, raw)
            case "between" | "not_between" | "between_symmetric" | "not_between_symmetric":
                return self.expr(rows.between(raw))
        assert_never(raw.kind)

    def _operator(self, raw: ast.AExpr) -> nodes.Expr:
        assert not isinstance(raw.right, tuple)
        if raw.left is None:
            return make_operator(self.coercion, raw.name, None, self.expr(raw.right), raw.pos)
        if isinstance(raw.left, ast.RowExpr):
            if isinstance(raw.right, ast.SubLink) and raw.right.kind == "expr":
                as_test = dataclasses.replace(
                    raw.right, test=raw.left, operator=raw.name, pos=raw.pos
                )
                return sublink(self, as_test)
            if isinstance(raw.right, ast.RowExpr):
                left, right = self._row(raw.left), self._row(raw.right)
                return rows.compare_rows(self.coercion, raw.name, left.args, right.args, raw.pos)
        return make_operator(
            self.coercion, raw.name, self.expr(raw.left), self.expr(raw.right), raw.pos
        )

    def _type_cast(self, raw: ast.TypeCast) -> nodes.Expr:
        type_, typmod = type_of(self.environment, raw.type_name)
        pos = raw.type_name.pos if raw.pos < 0 else raw.pos
        if isinstance(raw.arg, ast.ArrayExpr):
            base, base_typmod = self.coercion.types.base_and_typmod(type_.name, typmod)
            is_array = self.coercion.types.is_array(base)
            arg: nodes.Expr = self._array(raw.arg, (base, base_typmod) if is_array else None)
        else:
            arg = self.expr(raw.arg)
        return self.coercion.cast(arg, type_.name, typmod, pos)

    def _collate(self, raw: ast.CollateClause) -> nodes.CollateExpr:
        arg = self.expr(raw.arg)
        types = self.coercion.types
        if arg.type != UNKNOWN and not types.is_collatable(arg.type):
            raise DatatypeMismatch(
                f"collations are not supported by type {types.format(arg.type)}", position=raw.pos
            )
        return nodes.CollateExpr(arg, self.collation(raw.name, raw.pos), arg.type, pos=raw.pos)

    def collation(self, name: tuple[str, ...], pos: int) -> str:
        """Return the internal name of the collation in COLLATE.

        Raises:
            UndefinedObject: there is no such collation for the encoding.
            FeatureNotSupported: the collation is user-defined, and the expression is no row filter.
        """
        found = find_collation(self.environment, name, pos)
        if is_user_collation(found) and not self.is_row_filter:
            raise FeatureNotSupported(
                "collations that users made are not supported here", position=pos
            )
        return found

    def _case(self, raw: ast.CaseExpr) -> nodes.CaseExpr:
        last_set = self.last_set
        arg, placeholder = None, None
        if raw.arg is not None:
            arg = self.expr(raw.arg)
            if arg.type == UNKNOWN:
                arg = self.coercion.to_common(arg, "text", "CASE")
            arg = assign_collations(self.environment, arg)
            collation = nodes.collation(arg)
            placeholder = nodes.Param(0, arg.type, nodes.typmod(arg), collation)
        conditions, results = [], []
        for when in raw.whens:
            condition = self.expr(when.condition)
            if placeholder is not None:
                condition = make_operator(self.coercion, ("=",), placeholder, condition, when.pos)
            conditions.append(self.coercion.to_specific(condition, "bool", "CASE/WHEN"))
            results.append(self.expr(when.result))
        default = self.expr(raw.default or ast.Constant("null", None))
        type_ = common_type(self.coercion, [default, *results], "CASE")
        default = self.coercion.to_common(default, type_, "CASE/ELSE")
        whens = tuple(
            nodes.CaseWhen(
                condition, self.coercion.to_common(result, type_, "CASE/WHEN"), pos=w.pos
            )
            for condition, result, w in zip(conditions, results, raw.whens, strict=True)
        )
        self._check_no_set("CASE", last_set)
        return nodes.CaseExpr(type_, arg, whens, default, pos=raw.pos)

    def _coalesce(self, raw: ast.CoalesceExpr) -> nodes.CoalesceExpr:
        last_set = self.last_set
        exprs = [self.expr(arg) for arg in raw.args]
        type_ = common_type(self.coercion, exprs, "COALESCE")
        args = self._as_common(exprs, type_, "COALESCE")
        self._check_no_set("COALESCE", last_set)
        return nodes.CoalesceExpr(type_, args, pos=raw.pos)

    def _as_common(
        self, exprs: Sequence[nodes.Expr], type_: str, construct: str
    ) -> tuple[nodes.Expr, ...]:
        return tuple(self.coercion.to_common(expr, type_, construct) for expr in exprs)

    def _check_no_set(self, construct: str, last_set: nodes.Expr | None) -> None:
        if self.last_set is not last_set and self.last_set is not None:
            raise FeatureNotSupported(
                f"set-returning functions are not allowed in {construct}",
                hint="You might be able to move the set-returning function into a LATERAL FROM "
                "item.",
                position=expr_location(self.last_set),
            )

    def _array(self, raw: ast.ArrayExpr, target: tuple[str, int] | None) -> nodes.ArrayExpr:
        """Return ARRAY[..]; `target` is the array type of a cast around it, and its modifier."""
        types = self.coercion.types
        elements: list[nodes.Expr] = []
        is_nested = False
        for item in raw.elements:
            if isinstance(item, ast.ArrayExpr):
                elements.append(self._array(item, target))
                is_nested = True
            else:
                element = self.expr(item)
                elements.append(element)
                is_vector = element.type in ("int2vector", "oidvector")
                is_nested = is_nested or (types.is_array(element.type) and not is_vector)
        if target is not None:
            return self._cast_array(raw, elements, is_nested, *target)
        if not elements:
            raise IndeterminateDatatype(
                "cannot determine type of empty array",
                hint="Explicitly cast to the desired type, for example ARRAY[]::integer[].",
                position=raw.pos,
            )
        common = common_type(self.coercion, elements, "ARRAY")
        element_type = types.element(common) if is_nested else common
        array_type = common if is_nested else types.array(common)
        if element_type is None or array_type is None:
            what = "element" if element_type is None else "array"
            raise UndefinedObject(
                f"could not find {what} type for data type {types.format(common)}",
                position=raw.pos,
            )
        items = self._as_common(elements, common, "ARRAY")
        return nodes.ArrayExpr(array_type, element_type, items, is_nested, pos=raw.pos)

    def _cast_array(
        self,
        raw: ast.ArrayExpr,
        elements: Sequence[nodes.Expr],
        is_nested: bool,
        array_type: str,
        typmod: int,
    ) -> nodes.ArrayExpr:
        element_type = self.coercion.types.element(array_type)
        assert element_type is not None
        target = array_type if is_nested else element_type
        items = tuple(self.coercion.cast(item, target, typmod, -1) for item in elements)
        return nodes.ArrayExpr(array_type, element_type, items, is_nested, pos=raw.pos)

    def _row(self, raw: ast.RowExpr) -> nodes.RowExpr:
        args = expression_list(self, raw.args)
        if len(args) > MAX_ROW_ENTRIES:
            raise TooManyColumns(
                f"ROW expressions can have at most {MAX_ROW_ENTRIES} entries", position=raw.pos
            )
        return nodes.RowExpr(args, "call" if raw.is_explicit else "implicit", pos=raw.pos)

    def _is_json(self, raw: ast.JsonIsPredicate) -> nodes.Expr:
        arg = self.expr(raw.arg)
        types = self.coercion.types
        if arg.type == "bytea":
            formatted = nodes.FuncExpr(
                _CONVERT_FROM, "convert_from", "text", (arg, nodes.Const("name", "UTF8"))
            )
            arg = nodes.JsonValueExpr(arg, formatted, "text")
        elif arg.type == UNKNOWN or types.category(arg.type) == TypeCategory.STRING:
            converted = self.coercion.to_target(arg, "text", -1, IMPLICIT)
            assert converted is not None
            arg = converted
        if arg.type not in ("text", "json", "jsonb"):
            raise DatatypeMismatch(f"cannot use type {types.format(arg.type)} in IS JSON predicate")
        test = nodes.JsonIsPredicate(arg, raw.item, raw.unique_keys, pos=raw.pos)
        return nodes.BoolExpr("not", (test,), pos=raw.pos) if raw.is_not else test


def _sql_value_function(raw: ast.SqlValueFunction) -> nodes.SqlValueFunction:
    """Return the node of CURRENT_DATE, CURRENT_USER or a similar keyword."""
    type_ = _SQL_VALUE_TYPES.get(raw.name, "name")
    return nodes.SqlValueFunction(raw.name, type_, min(raw.precision, _MAX_PRECISION), pos=raw.pos)
