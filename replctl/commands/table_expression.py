"""Expressions stored with a table: DEFAULT, GENERATED, CHECK, and the predicates of indexes.

Sources: cookDefault() and cookConstraint() in heap.c, CheckPredicate() in indexcmds.c.
"""

from __future__ import annotations

from datetime import datetime

from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.native_column import EXPRESSIONS, check_not_native
from replctl.catalog.pg_class import Column, Relation
from replctl.errors import InvalidObjectDefinition
from replctl.expr import nodes
from replctl.expr.analyze import Analyzer
from replctl.expr.collate import assign_collations
from replctl.expr.context import ExprContext
from replctl.expr.environment import Column as ScopeColumn
from replctl.expr.refused_dependency import check_dependencies
from replctl.expr.scope import RelationScope
from replctl.expr.type_facts import TypeFacts
from replctl.parser import ast
from replctl.types.function_kind import Volatility
from replctl.types.type_kind import TypeKind

#: Types whose text depends on TimeZone, DateStyle, IntervalStyle or lc_monetary.
_TEXT_BY_SETTINGS = frozenset(
    "date time timetz timestamp timestamptz interval money daterange tsrange tstzrange"
    " datemultirange tsmultirange tstzmultirange".split()
)


def relation_scope(relation: Relation) -> RelationScope:
    """Return the scope in which expressions of a relation find its columns."""
    columns = tuple(
        ScopeColumn(c.name, c.attnum, c.declared_type, c.declared_typmod, c.collation)
        for c in relation.columns
    )
    return RelationScope(relation.name, columns, relation.row_type, relation.schema)


def default_expression(
    environment: CatalogEnvironment,
    relation: Relation,
    column: Column,
    raw: ast.RawExpr,
    now: datetime | None,
) -> nodes.Expr | None:
    """Return the expression of DEFAULT or GENERATED AS; None for DEFAULT NULL, which means no
    default.

    Raises:
        InvalidObjectDefinition: a generated column uses a generated column, or a function or
            operator that is not immutable.
        PostgresError: the expression is wrong, or cannot be cast to the column's type.
    """
    context = ExprContext.GENERATED if column.generated else ExprContext.DEFAULT
    analyzer = Analyzer(environment, relation_scope(relation), context, now=now)
    expr = analyzer.expr(raw)
    if column.generated:
        _check_generated(environment, relation, expr)
    expr = analyzer.coerce_for_assignment(
        expr,
        column.declared_type,
        column.declared_typmod,
        column.name,
        -1,
        "default expression",
    )
    expr = assign_collations(environment, expr)
    _check_usable(relation, expr)
    if not column.generated and isinstance(expr, nodes.Const) and expr.value is None:
        return None
    check_not_native(relation, "defaults for columns of", [column.attnum])
    return expr


def check_expression(
    environment: CatalogEnvironment, relation: Relation, raw: ast.RawExpr, now: datetime | None
) -> nodes.Expr:
    """Return the condition of CHECK.

    Raises:
        PostgresError: the expression is wrong or not a boolean.
    """
    analyzer = Analyzer(environment, relation_scope(relation), ExprContext.CHECK, now=now)
    expr = assign_collations(environment, analyzer.boolean(raw, "CHECK"))
    _check_usable(relation, expr)
    return expr


def index_predicate(
    environment: CatalogEnvironment, relation: Relation, raw: ast.RawExpr, now: datetime | None
) -> nodes.Expr | None:
    """Return the condition of CREATE INDEX ... WHERE; None if it is the constant true
    (make_ands_implicit).

    Raises:
        InvalidObjectDefinition: a function in the condition is not immutable.
        PostgresError: the expression is wrong or not a boolean.
    """
    context = ExprContext.INDEX_PREDICATE
    analyzer = Analyzer(environment, relation_scope(relation), context, now=now)
    expr = assign_collations(environment, analyzer.boolean(raw, "WHERE"))
    if contains_mutable(environment, expr):
        raise InvalidObjectDefinition("functions in index predicate must be marked IMMUTABLE")
    _check_usable(relation, expr)
    return None if isinstance(expr, nodes.Const) and expr.value == "t" else expr


def index_expression(
    environment: CatalogEnvironment, relation: Relation, raw: ast.RawExpr, now: datetime | None
) -> nodes.Expr:
    """Return an expression in the key of CREATE INDEX.

    Raises:
        InvalidObjectDefinition: a function in the expression is not immutable.
        PostgresError: the expression is wrong.
    """
    analyzer = Analyzer(
        environment, relation_scope(relation), ExprContext.INDEX_EXPRESSION, now=now
    )
    expr = assign_collations(environment, analyzer.expr(raw))
    if contains_mutable(environment, expr):
        raise InvalidObjectDefinition("functions in index expression must be marked IMMUTABLE")
    _check_usable(relation, expr)
    return expr


def _check_usable(relation: Relation, expr: nodes.Expr) -> None:
    check_dependencies(expr)
    check_not_native(relation, EXPRESSIONS, columns_used(expr))


def columns_used(expr: nodes.Expr) -> set[int]:
    """Return the attnums of the columns in an expression; 0 stands for the whole row."""
    return {node.attnum for node in nodes.walk(expr) if isinstance(node, nodes.Var)}


def contains_mutable(environment: CatalogEnvironment, expr: nodes.Expr) -> bool:
    """Return whether an expression has a part that is not immutable, after constants are computed
    and `a || 'x'` has become `a::text || 'x'` (contain_mutable_functions_after_planning).
    """
    from replctl.adt.fold import simplified  # few statements need it

    planned = simplified(expr)
    return any(
        _volatility(environment, node) != Volatility.IMMUTABLE for node in nodes.walk(planned)
    )


def depends_on_session(environment: CatalogEnvironment, expr: nodes.Expr) -> bool:
    """Return whether an expression that engines compute without the session depends on it: a
    function is not immutable, or a conversion through text depends on settings.  Unlike for
    contains_mutable(), conversions that depend only on a type, such as an enum, are allowed.
    """
    return any(
        _has_text_by_settings(environment, node.type)
        or _has_text_by_settings(environment, node.arg.type)
        if isinstance(node, nodes.CoerceViaIO)
        else _volatility(environment, node) != Volatility.IMMUTABLE
        for node in nodes.walk(expr)
    )


def _has_text_by_settings(environment: CatalogEnvironment, type_: str) -> bool:
    """Return whether the text of a type's values depends on settings: the type is for dates, times
    or money, or an array or a range of them.
    """
    types = TypeFacts(environment)
    base = types.base(type_)
    return types.base(types.element(base) or base) in _TEXT_BY_SETTINGS


def contains_volatile(environment: CatalogEnvironment, expr: nodes.Expr) -> bool:
    """Return whether an expression has a volatile part (contain_volatile_functions)."""
    return any(_volatility(environment, node) == Volatility.VOLATILE for node in nodes.walk(expr))


def _volatility(environment: CatalogEnvironment, node: nodes.Node) -> Volatility:
    """Return the volatility of a node without its children."""
    match node:
        case nodes.SqlValueFunction():
            return Volatility.STABLE
        case nodes.FuncExpr(function_oid=oid):
            return environment.function(oid).volatility
        case (
            nodes.OpExpr(operator_oid=oid)
            | nodes.DistinctExpr(operator_oid=oid)
            | nodes.NullIfExpr(operator_oid=oid)
            | nodes.ScalarArrayOpExpr(operator_oid=oid)
        ):
            return environment.operator(oid).volatility
        case nodes.CoerceViaIO() if _is_mutable_conversion(environment, node):
            return Volatility.STABLE
    return Volatility.IMMUTABLE


def _is_mutable_conversion(environment: CatalogEnvironment, node: nodes.CoerceViaIO) -> bool:
    """Return whether a conversion through text may depend on settings or catalogs, such as that of
    a date, an array or an enum.
    """
    from replctl.adt.fold import has_immutable_input, has_immutable_output

    type_ = environment.type(node.arg.type)
    source = environment.domain_base(type_)[0] if type_.kind == TypeKind.DOMAIN else type_.name
    return not (has_immutable_output(source) and has_immutable_input(node.type))


def _check_generated(environment: CatalogEnvironment, relation: Relation, expr: nodes.Expr) -> None:
    for node in nodes.walk(expr):
        if not isinstance(node, nodes.Var):
            continue
        if node.attnum == 0:
            raise InvalidObjectDefinition(
                "cannot use whole-row variable in column generation expression",
                detail="This would cause the generated column to depend on its own value.",
                position=node.pos,
            )
        if node.attnum > 0 and relation.column_at(node.attnum).generated:
            name = relation.column_at(node.attnum).name
            raise InvalidObjectDefinition(
                f'cannot use generated column "{name}" in column generation expression',
                detail="A generated column cannot reference another generated column.",
                position=node.pos,
            )
    if contains_mutable(environment, expr):
        raise InvalidObjectDefinition("generation expression is not immutable")
