"""The key of CREATE INDEX: columns, expressions and their sort options (ComputeIndexAttrs in
indexcmds.c).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from replctl.catalog.pg_class import KeyDetail, Relation
from replctl.commands.column_definition import column_collation
from replctl.commands.ddl import Ddl
from replctl.commands.table_expression import columns_used, index_expression
from replctl.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidObjectDefinition,
    UndefinedColumn,
    UndefinedObject,
)
from replctl.expr import nodes
from replctl.expr.cast_path import CastPaths
from replctl.expr.composite_text import is_composite
from replctl.expr.sorting import is_hashable, is_sortable
from replctl.parser import ast
from replctl.query.column_name import figured_name
from replctl.record import dataclass
from replctl.types.builtin import FIRST_USER_OID, system_columns

#: Access methods of PostgreSQL; True for those that replctl supports.
_METHODS = {
    "btree": True,
    "hash": True,
    "gist": False,
    "gin": False,
    "brin": False,
    "spgist": False,
}
#: Operator classes that are not the default of a type, and the types that they accept.
_OPCLASSES = {
    "text_pattern_ops": ("text", "varchar"),
    "varchar_pattern_ops": ("text", "varchar"),
    "bpchar_pattern_ops": ("bpchar",),
}
_DESCENDING, _NULLS_FIRST = 1, 2  # INDOPTION_DESC, INDOPTION_NULLS_FIRST


@dataclass(frozen=True, slots=True)
class IndexKey:
    """The columns and expressions of an index.

    Attributes:
        columns: the names of columns; '' for an expression.
        exprs: the expressions, one for each '' in `columns`.
        details: the options of each column, or () if none has options.
    """

    columns: tuple[str, ...]
    exprs: tuple[nodes.Expr, ...] = ()
    details: tuple[KeyDetail, ...] = ()


def check_access_method(statement: ast.CreateIndex) -> None:
    """Check that an access method supports the properties of an index (DefineIndex).

    Raises:
        UndefinedObject: there is no such access method.
        FeatureNotSupported: the method does not support such indexes, or replctl does not support
            the method.
    """
    method = statement.access_method
    if method not in _METHODS:
        raise UndefinedObject(f'access method "{method}" does not exist')
    if not _METHODS[method]:
        raise FeatureNotSupported(f'access method "{method}" is not supported')
    if method == "btree":
        return
    lacking = {
        "unique indexes": statement.is_unique,
        "included columns": bool(statement.including),
        "multicolumn indexes": len(statement.elements) > 1,
    }
    for what, is_wanted in lacking.items():
        if is_wanted:
            raise FeatureNotSupported(f'access method "{method}" does not support {what}')


def index_key(ddl: Ddl, relation: Relation, statement: ast.CreateIndex) -> IndexKey:
    """Return the columns and expressions of an index.

    Raises:
        UndefinedColumn: a column is missing.
        PostgresError: an expression is wrong, or its values cannot be sorted or hashed.
        FeatureNotSupported: replctl does not support an index over an expression.
    """
    columns: list[str] = []
    exprs: list[nodes.Expr] = []
    details: list[KeyDetail] = []
    names: list[str] = []
    for element in statement.elements:
        name, expr = element.name or "", None
        if element.expr is not None:
            expr = _expression(ddl, relation, element)
            if isinstance(expr, nodes.Var) and expr.attnum > 0:  # same as the bare column
                name, expr = relation.column_at(expr.attnum).name, None
        type_ = column_type(relation, name) if expr is None else expr.type
        check_sortable(ddl, type_, statement.access_method)
        if expr is not None:
            exprs.append(expr)
        called = free_column_name(name or _suggested_name(element), names)
        names.append(called)
        columns.append(name)
        collation, opclass = _sorting(ddl, element, type_)
        option = _option(element, statement.access_method)
        details.append(KeyDetail("" if called == name else called, collation, opclass, option))
    if exprs and statement.is_unique:
        raise FeatureNotSupported("unique indexes over expressions are not supported")
    has_details = any(detail != KeyDetail() for detail in details)
    return IndexKey(tuple(columns), tuple(exprs), tuple(details) if has_details else ())


def included_columns(relation: Relation, statement: ast.CreateIndex) -> tuple[str, ...]:
    """Return the names of the columns that INCLUDE adds to an index.

    Raises:
        UndefinedColumn: a column is missing.
        InvalidObjectDefinition: an entry has a collation, an operator class or a sort option.
        FeatureNotSupported: an entry is an expression.
    """
    names = []
    for element in statement.including:
        if element.name is None:
            raise FeatureNotSupported("expressions are not supported in included columns")
        key_column(relation, element.name)
        for what, is_given in (
            ("a collation", bool(element.collation)),
            ("an operator class", bool(element.opclass)),
            ("ASC/DESC options", element.direction != "default"),
            ("NULLS FIRST/LAST options", element.nulls != "default"),
        ):
            if is_given:
                raise InvalidObjectDefinition(f"including column does not support {what}")
        names.append(element.name)
    return tuple(names)


def check_sortable(ddl: Ddl, type_: str, access_method: str = "btree") -> None:
    """Check that the access method of an index can sort or hash values of a type.

    Raises:
        UndefinedObject: values of the type have no order, or cannot be hashed.
        FeatureNotSupported: the type is composite.
    """
    if is_composite(ddl.environment, type_):
        shown = ddl.environment.format_type(type_)
        raise FeatureNotSupported(f"indexes and keys of type {shown} are not supported")
    has_class = is_hashable if access_method == "hash" else is_sortable
    if not has_class(CastPaths(ddl.environment), type_):
        raise UndefinedObject(
            f"data type {ddl.environment.format_type(type_)} has no default operator class for"
            f' access method "{access_method}"',
            hint="You must specify an operator class for the index or define a default operator"
            " class for the data type.",
        )


def _expression(ddl: Ddl, relation: Relation, element: ast.IndexElem) -> nodes.Expr:
    assert element.expr is not None
    expr = index_expression(ddl.environment, relation, element.expr, ddl.now)
    for node in nodes.walk(expr):
        used = getattr(node, "function_oid", 0) or getattr(node, "operator_oid", 0)
        if used >= FIRST_USER_OID:
            raise FeatureNotSupported(
                "functions and operators of users in index expressions are not supported"
            )
    return expr


def check_no_system_columns(attnums: Iterable[int], exprs: Iterable[nodes.Expr]) -> None:
    """Check that an index uses no system column (DefineIndex).

    Raises:
        FeatureNotSupported: the index uses a system column.
    """
    used = {attnum for expr in exprs for attnum in columns_used(expr)}
    if any(attnum < 0 for attnum in used.union(attnums)):
        raise FeatureNotSupported("index creation on system columns is not supported")


def check_not_null_possible(relation: Relation, names: Iterable[str | None]) -> None:
    """Check that the columns of a primary key can be NOT NULL (ATPrepSetNotNull).

    Raises:
        FeatureNotSupported: one of the columns is a system column.
    """
    for name in names:
        if name is not None and relation.column(name) is None and name in system_columns():
            raise FeatureNotSupported(f'cannot alter system column "{name}"')


def key_column(relation: Relation, name: str) -> int:
    """Return the attnum of a column or system column.

    Raises:
        UndefinedColumn: there is no such column.
    """
    column = relation.column(name)
    if column is not None:
        return column.attnum
    if name in system_columns():
        return system_columns()[name][0]
    raise UndefinedColumn(f'column "{name}" does not exist')


def column_type(relation: Relation, name: str) -> str:
    """Return the type of a column or system column."""
    attnum = key_column(relation, name)
    if attnum <= 0:
        return system_columns()[name][1]
    column = relation.column_at(attnum)
    return column.user_type or column.type


def _sorting(ddl: Ddl, element: ast.IndexElem, type_: str) -> tuple[str | None, str | None]:
    """Return the collation and the operator class that an element of the key specifies; None for
    each that is missing.
    """
    collation = opclass = None
    if element.collation:
        found = ddl.environment.type(type_)
        collation = column_collation(ddl.environment, element.collation, found)
    if element.opclass:
        opclass = _operator_class(ddl, element.opclass[-1], type_)
    return collation, opclass


def _option(element: ast.IndexElem, access_method: str) -> int:
    """Return pg_index.indoption of an element of the key.

    Raises:
        FeatureNotSupported: the element has sort options, but the access method does not sort.
    """
    if access_method != "btree":
        for what, is_wanted in (
            ("ASC/DESC", element.direction != "default"),
            ("NULLS FIRST/LAST", element.nulls != "default"),
        ):
            if is_wanted:
                raise FeatureNotSupported(
                    f'access method "{access_method}" does not support {what} options'
                )
    is_descending = element.direction == "desc"
    nulls_first = element.nulls == "first" or (is_descending and element.nulls == "default")
    return _DESCENDING * is_descending + _NULLS_FIRST * nulls_first


def _operator_class(ddl: Ddl, name: str, type_: str) -> str:
    if name not in _OPCLASSES:
        raise FeatureNotSupported(f'operator class "{name}" is not supported')
    if type_ not in _OPCLASSES[name]:
        shown = ddl.environment.format_type(type_)
        raise DatatypeMismatch(f'operator class "{name}" does not accept data type {shown}')
    return name


def _suggested_name(element: ast.IndexElem) -> str:
    """Return a name for an expression in an index: `lower`, `expr`."""
    assert element.expr is not None
    return figured_name(element.expr) or "expr"


def free_column_name(first: str, taken: Collection[str]) -> str:
    """Return a name that no other column of the index has: `a`, else `a1` and so on
    (ChooseIndexColumnNames).
    """
    name, number = first, 0
    while name in taken:
        number += 1
        name = f"{first}{number}"
    return name
