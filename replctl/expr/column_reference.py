"""Resolve dotted names: a column, a row, or a function of a row.  PostgreSQL's transformColumnRef()
and transformIndirection() in parse_expr.c; `*` as in parse_target.c.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from replctl.errors import (
    FeatureNotSupported,
    PostgresError,
    SqlSyntaxError,
    UndefinedColumn,
    UndefinedParameter,
    WrongObjectType,
)
from replctl.expr import nodes
from replctl.expr.error_location import expr_location
from replctl.expr.function_call import field_or_function, row_fields
from replctl.expr.scope import ScopeRelation
from replctl.expr.subscripts import subscripting
from replctl.parser import ast

if TYPE_CHECKING:
    from replctl.expr.analyze import Analyzer


def column_reference(analyzer: Analyzer, raw: ast.ColumnRef) -> nodes.Expr:
    """Resolve `a`, `t.a`, `s.t.a` or `db.s.t.a`; `t` and `t.*` mean the whole row.

    In the body of a function, `a` and `f.a` may also mean a parameter (sql_fn_post_column_ref).

    Raises:
        UndefinedColumn, UndefinedTable: there is no such column or relation in scope.
        FeatureNotSupported: the place allows no columns, or the name begins with another database.
    """
    error = analyzer.context.column_error(raw.pos)
    if error is not None:
        raise error
    scope = analyzer.scope
    if len(raw.fields) == 1:
        (name,) = raw.fields
        column = scope.find_column(name, analyzer.context, raw.pos)
        if column is not None:
            return column
        relation = scope.find_relation(None, name, raw.pos)
        if relation is not None:
            return relation.whole_row(raw.pos)
        named = _named_parameter(analyzer, name, raw.pos)
        if named is None:
            raise scope.missing_column(None, name, raw.pos)
        return named
    routine = analyzer.environment.routine
    if routine is not None and len(raw.fields) == 2 and raw.fields[0] == routine.name:
        named = _named_parameter(analyzer, raw.fields[1], raw.pos)
        if named is not None and scope.find_relation(None, routine.name, raw.pos) is None:
            return named
    relation, name = _qualifier(analyzer, raw)
    if raw.is_star:
        return relation.whole_row(raw.pos)
    column = relation.find_column(name, analyzer.context, raw.pos)
    if column is not None:
        return column
    row = relation.whole_row(raw.pos)
    result = field_or_function(analyzer, name, row, analyzer.last_set, raw.pos)
    if result is None:
        raise scope.missing_column(raw.fields[-2], name, raw.pos)
    return result


def parameter(analyzer: Analyzer, raw: ast.ParamRef) -> nodes.Expr:
    """Return `$1`, a parameter of the function whose body is analysed.

    Raises:
        UndefinedParameter: there is no parameter of that number (42P02).
    """
    routine = analyzer.environment.routine
    if routine is None or not 1 <= raw.number <= len(routine.parameters):
        raise UndefinedParameter(f"there is no parameter ${raw.number}", position=raw.pos)
    _name, expr = routine.parameters[raw.number - 1]
    return replace(expr, pos=raw.pos)


def _named_parameter(analyzer: Analyzer, name: str, pos: int) -> nodes.Expr | None:
    routine = analyzer.environment.routine
    parameters = () if routine is None else routine.parameters
    return next((replace(expr, pos=pos) for known, expr in parameters if known == name), None)


def indirection(analyzer: Analyzer, raw: ast.Indirection) -> nodes.Expr:
    """Return the expression of `(row).field[1]` or similar.

    Raises:
        UndefinedColumn, WrongObjectType: there is no such field.
        DatatypeMismatch: the type has no subscripts.
    """
    last_set = analyzer.last_set
    result = analyzer.expr(raw.arg)
    pos = expr_location(result)
    subscripts: list[ast.Subscript] = []
    for item in raw.items:
        if isinstance(item, ast.Subscript):
            subscripts.append(item)
            continue
        if item == "*":
            raise FeatureNotSupported('row expansion via "*" is not supported here', position=pos)
        if subscripts:
            result = subscripting(analyzer, result, subscripts)
            subscripts = []
        found = field_or_function(analyzer, item, result, last_set, pos)
        if found is None:
            raise _unknown_field(analyzer, result, item, pos)
        result = found
    return subscripting(analyzer, result, subscripts) if subscripts else result


def expression_list(analyzer: Analyzer, raws: tuple[ast.RawExpr, ...]) -> tuple[nodes.Expr, ...]:
    """Return the items of ROW(..) or VALUES, with `t.*` and `(row).*` replaced by their columns."""
    result: list[nodes.Expr] = []
    for raw in raws:
        if isinstance(raw, ast.ColumnRef) and raw.is_star:
            result.extend(expr for _, expr in expand_star(analyzer, raw))
        elif isinstance(raw, ast.Indirection) and raw.items[-1] == "*":
            result.extend(expr for _, expr in expand_row(analyzer, raw))
        else:
            result.append(analyzer.expr(raw))
    return tuple(result)


def expand_star(analyzer: Analyzer, raw: ast.ColumnRef) -> tuple[tuple[str, nodes.Expr], ...]:
    """Return the columns of `*`, `t.*` or `s.t.*` as pairs of a name and an expression."""
    if len(raw.fields) == 1:
        return analyzer.scope.expand(raw.pos)
    relation, _ = _qualifier(analyzer, raw)
    return relation.expand(raw.pos)


def expand_row(analyzer: Analyzer, raw: ast.Indirection) -> tuple[tuple[str, nodes.Expr], ...]:
    """Return the fields of `(row).*` as pairs of a name and an expression.

    Raises:
        WrongObjectType: the type has no fields.
    """
    items = raw.items[:-1]
    inner = ast.Indirection(raw.arg, items, pos=raw.pos) if items else raw.arg
    row = analyzer.expr(inner)
    if isinstance(row, nodes.Var) and row.attnum == 0:
        relation = analyzer.scope.relation_of(row)
        if relation is not None:
            return relation.expand(row.pos)
    fields = row_fields(analyzer, row)
    if not fields:
        shown = analyzer.coercion.types.format(row.type)
        raise WrongObjectType(f"type {shown} is not composite")
    return tuple(
        (name, nodes.FieldSelect(row, number, name, type_, typmod, collation, pos=row.pos))
        for number, (name, type_, typmod, collation) in enumerate(fields, 1)
    )


def _qualifier(analyzer: Analyzer, raw: ast.ColumnRef) -> tuple[ScopeRelation, str]:
    """Return the relation that qualifies `raw`, and the last part of the name."""
    *qualifiers, name = raw.fields
    shown = ".".join(raw.fields)
    if len(qualifiers) > 3:
        raise SqlSyntaxError(
            f"improper qualified name (too many dotted names): {shown}", position=raw.pos
        )
    if len(qualifiers) == 3 and qualifiers[0] != analyzer.environment.database:
        raise FeatureNotSupported(
            f"cross-database references are not implemented: {shown}", position=raw.pos
        )
    schema = qualifiers[-2] if len(qualifiers) > 1 else None
    relation = analyzer.scope.find_relation(schema, qualifiers[-1], raw.pos)
    if relation is None:
        raise analyzer.scope.missing_relation(schema, qualifiers[-1], raw.pos)
    return relation, name


def _unknown_field(analyzer: Analyzer, row: nodes.Expr, field: str, pos: int) -> PostgresError:
    types = analyzer.coercion.types
    if isinstance(row, nodes.Var) and row.attnum == 0:
        relation = analyzer.scope.relation_of(row)
        if relation is not None:
            return UndefinedColumn(f"column {relation.name}.{field} does not exist", position=pos)
    if types.is_complex(row.type):
        return UndefinedColumn(
            f'column "{field}" not found in data type {types.format(row.type)}', position=pos
        )
    if row.type == "record":
        return UndefinedColumn(
            f'could not identify column "{field}" in record data type', position=pos
        )
    return WrongObjectType(
        f"column notation .{field} applied to type {types.format(row.type)}, "
        "which is not a composite type",
        position=pos,
    )
