"""Print definitions as SQL text: expressions, constraints, indexes and partitions of relations
(ruleutils.c).
"""

from __future__ import annotations

from collections.abc import Sequence

from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_class import (
    Column,
    Constraint,
    Index,
    PartitionBound,
    RangeDatum,
    Relation,
    get_relation,
)
from replctl.catalog.pg_domain import DomainConstraint
from replctl.catalog.relation_kind import ConstraintKind, ForeignKeyAction, ForeignKeyMatch
from replctl.errors import InternalError
from replctl.expr import nodes
from replctl.expr.deparse import DeparseContext, deparse
from replctl.expr.deparse_constant import constant
from replctl.types.quote import quote_identifier, quote_literal


def get_expr(
    environment: CatalogEnvironment,
    relation: Relation,
    expr: nodes.Expr,
    *,
    is_pretty: bool = False,
) -> str:
    """Return an expression over a relation's columns, as pg_get_expr() prints it."""
    columns = {column.attnum: column.name for column in relation.columns}
    context = DeparseContext(environment, relation.name, columns, is_pretty=is_pretty)
    return deparse(expr, context)


def constraint_definition(
    environment: CatalogEnvironment,
    relation: Relation,
    constraint: Constraint,
    *,
    is_pretty: bool = False,
) -> str:
    """Return a constraint as pg_get_constraintdef() does: `PRIMARY KEY (a, c)`, `CHECK ((a >
    5))`.
    """
    match constraint.kind:
        case ConstraintKind.PRIMARY_KEY | ConstraintKind.UNIQUE:
            index = next(i for i in relation.indexes if i.oid == constraint.index_oid)
            word = "PRIMARY KEY" if constraint.kind == ConstraintKind.PRIMARY_KEY else "UNIQUE"
            if index.nulls_not_distinct:
                word += " NULLS NOT DISTINCT"
            text = f"{word} ({column_names(relation, index.key)}){_including(relation, index)}"
            return text + (" DEFERRABLE" if constraint.is_deferrable else "")
        case ConstraintKind.CHECK:
            assert constraint.check is not None
            tail = " NO INHERIT" if constraint.no_inherit else ""
            expr = get_expr(environment, relation, constraint.check, is_pretty=is_pretty)
            return f"CHECK ({expr}){tail}"
        case ConstraintKind.FOREIGN_KEY:
            return _foreign_key(environment, relation, constraint)
        case ConstraintKind.NOT_NULL:
            raise InternalError(f'table "{relation.name}" has a constraint of a domain')


def domain_constraint_definition(
    environment: CatalogEnvironment, constraint: DomainConstraint, *, is_pretty: bool = False
) -> str:
    """Return a domain's constraint as pg_get_constraintdef() does: `CHECK ((VALUE > 0))`."""
    if constraint.check is None:
        return "NOT NULL"
    tail = "" if constraint.is_validated else " NOT VALID"
    check = domain_check(environment, constraint.check, is_pretty=is_pretty)
    return f"CHECK ({check}){tail}"


def domain_check(
    environment: CatalogEnvironment, check: nodes.Expr, *, is_pretty: bool = False
) -> str:
    """Return the condition of a domain's constraint as SQL: `(VALUE > 0)`."""
    return deparse(check, DeparseContext(environment, "", {}, is_pretty=is_pretty))


def domain_default(environment: CatalogEnvironment, default: nodes.Expr) -> str:
    """Return the default of a domain in the form of pg_type.typdefault: `'a'::text`."""
    return deparse(default, DeparseContext(environment, "", {}))


def _foreign_key(
    environment: CatalogEnvironment, relation: Relation, constraint: Constraint
) -> str:
    referenced = get_relation(environment.catalog, constraint.ref_relid)
    assert referenced is not None
    name = environment.relation_name(referenced.oid)
    text = (
        f"FOREIGN KEY ({column_names(relation, constraint.columns)})"
        f" REFERENCES {name}({column_names(referenced, constraint.ref_columns)})"
    )
    if constraint.match == ForeignKeyMatch.FULL:
        text += " MATCH FULL"
    for event, action in (("UPDATE", constraint.on_update), ("DELETE", constraint.on_delete)):
        if action != ForeignKeyAction.NO_ACTION:
            text += f" ON {event} {action.clause}"
    if constraint.on_delete_columns:
        text += f" ({column_names(relation, constraint.on_delete_columns)})"
    return text + (" DEFERRABLE" if constraint.is_deferrable else "")


def index_definition(
    environment: CatalogEnvironment, relation: Relation, index: Index, *, is_pretty: bool = False
) -> str:
    """Return an index as pg_get_indexdef() does: `CREATE UNIQUE INDEX i ON public.t USING btree
    (a)`.
    """
    unique = "UNIQUE " if index.is_unique else ""
    only = "ONLY " if relation.is_partitioned else ""
    name = relation.quoted_name
    if is_pretty:
        name = environment.relation_name(relation.oid) or name
    columns = index_columns(environment, relation, index, is_pretty=is_pretty)
    return f"CREATE {unique}INDEX {quote_identifier(index.name)} ON {only}{name} USING {columns}"


def index_columns(
    environment: CatalogEnvironment, relation: Relation, index: Index, *, is_pretty: bool = False
) -> str:
    """Return an index without its name and table: `btree (a, c) INCLUDE (d) WHERE (a > 5)`."""
    keys = [
        index_key_column(environment, relation, index, number, is_pretty=is_pretty)
        + _detail(relation, index, number)
        for number in range(len(index.key))
    ]
    text = f"{index.access_method} ({', '.join(keys)}){_including(relation, index)}"
    if index.nulls_not_distinct:
        text += " NULLS NOT DISTINCT"
    if index.options:
        options = (f"{name}={_option_value(value)}" for name, value in index.options.items())
        text += f" WITH ({', '.join(options)})"
    if index.predicate is not None:
        predicate = get_expr(environment, relation, index.predicate, is_pretty=is_pretty)
        text += f" WHERE {predicate}"
    return text


def index_key_column(
    environment: CatalogEnvironment,
    relation: Relation,
    index: Index,
    number: int,
    *,
    is_pretty: bool = False,
) -> str:
    """Return a key column or expression of an index, counted from 0: `a`, `lower(a)` or `((a +
    1))`.
    """
    attnum = index.key[number]
    if attnum:
        return quote_identifier(relation.column_at(attnum).name)
    expr = index_key_expression(index, number)
    text = get_expr(environment, relation, expr, is_pretty=is_pretty)
    return text if _looks_like_function(expr) else f"({text})"


def index_key_expression(index: Index, number: int) -> nodes.Expr:
    """Return the expression at a position of an index's key."""
    return index.exprs[index.key[:number].count(0)]


def _option_value(value: str) -> str:
    """Return the text of an option's value (flatten_reloptions)."""
    return value if quote_identifier(value) == value else quote_literal(value)


def key_collation(relation: Relation, index: Index, number: int) -> str | None:
    """Return the collation that a key column has without COLLATE."""
    attnum = index.key[number]
    if attnum:
        return relation.column_at(attnum).collation
    return nodes.collation(index_key_expression(index, number))


def _looks_like_function(expr: nodes.Expr) -> bool:
    """Return whether an expression prints as a function call (looks_like_function)."""
    if isinstance(expr, nodes.FuncExpr):
        return expr.form == "call"
    return isinstance(
        expr, nodes.CoalesceExpr | nodes.MinMaxExpr | nodes.NullIfExpr | nodes.SqlValueFunction
    )


def _detail(relation: Relation, index: Index, number: int) -> str:
    """Return the options of a key column: ` COLLATE "C" text_pattern_ops DESC NULLS LAST`."""
    if not index.details:
        return ""
    detail, text = index.details[number], ""
    if detail.collation not in (None, key_collation(relation, index, number)):
        assert detail.collation is not None
        text += f" COLLATE {quote_identifier(detail.collation)}"
    if detail.opclass is not None:
        text += f" {detail.opclass}"
    return text + ("", " DESC NULLS LAST", " NULLS FIRST", " DESC")[detail.option]


def partition_key(environment: CatalogEnvironment, relation: Relation) -> str:
    """Return a partition key as pg_get_partkeydef() does: `RANGE (a, lower(b))`."""
    key = relation.partition_key
    assert key is not None
    exprs = iter(key.exprs)
    items = []
    for attnum in key.attnums:
        if attnum:
            items.append(quote_identifier(relation.column_at(attnum).name))
            continue
        expr = next(exprs)
        text = get_expr(environment, relation, expr)
        items.append(text if isinstance(expr, nodes.FuncExpr) else f"({text})")
    return f"{key.strategy.clause} ({', '.join(items)})"


def partition_key_types(relation: Relation) -> list[tuple[str, int]]:
    """Return type and typmod of each column of a table's partition key."""
    key = relation.partition_key
    assert key is not None
    exprs = iter(key.exprs)
    types = []
    for attnum in key.attnums:
        if attnum:
            column = relation.column_at(attnum)
            types.append((column.declared_type, column.declared_typmod))
        else:
            expr = next(exprs)
            types.append((expr.type, nodes.typmod(expr)))
    return types


def partition_bound(
    environment: CatalogEnvironment, bound: PartitionBound, types: Sequence[tuple[str, int]]
) -> str:
    """Return a partition bound as pg_get_expr(relpartbound) does: `FOR VALUES FROM (1) TO (10)`.

    Args:
        types: type and typmod of each column of the partition key.
    """
    match bound.kind:
        case "default":
            return "DEFAULT"
        case "hash":
            return f"FOR VALUES WITH (modulus {bound.modulus}, remainder {bound.remainder})"
        case "list":
            values = [_bound_value(environment, value, types[0]) for value in bound.values]
            return f"FOR VALUES IN ({', '.join(values)})"
        case "range":
            ends = [
                ", ".join(
                    _range_datum(environment, datum, type_)
                    for datum, type_ in zip(end, types, strict=True)
                )
                for end in (bound.lower, bound.upper)
            ]
            return f"FOR VALUES FROM ({ends[0]}) TO ({ends[1]})"


def own_collation(environment: CatalogEnvironment, column: Column) -> str | None:
    """Return the collation with which a column is declared; None for the collation of its type."""
    usual = environment.type(column.declared_type).collation or "default"
    return None if column.collation == usual else column.collation


def column_names(relation: Relation, attnums: Sequence[int]) -> str:
    """Return the names of columns, quoted if necessary: `a, "B"`."""
    return ", ".join(quote_identifier(relation.column_at(attnum).name) for attnum in attnums)


def _including(relation: Relation, index: Index) -> str:
    return f" INCLUDE ({column_names(relation, index.including)})" if index.including else ""


def _range_datum(environment: CatalogEnvironment, datum: RangeDatum, type_: tuple[str, int]) -> str:
    kind, value = datum
    return _bound_value(environment, value, type_) if kind == "value" else kind.upper()


def _bound_value(environment: CatalogEnvironment, value: str | None, type_: tuple[str, int]) -> str:
    return constant(environment, nodes.Const(type_[0], value, type_[1]), "never")
