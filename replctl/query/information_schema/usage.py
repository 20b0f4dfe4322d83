"""information_schema: types, columns and functions that tables, views and constraints use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from replctl.catalog.aclchk import owner_of
from replctl.catalog.pg_class import Column, Relation
from replctl.catalog.pg_domain import get_domain
from replctl.catalog.pg_proc import UserFunction, list_functions
from replctl.catalog.relation_kind import TABLE_KINDS, RelKind
from replctl.expr import nodes
from replctl.functions.function_context import FunctionContext
from replctl.query.information_schema import columns, composites, domains, routines
from replctl.query.information_schema.columns import declared_row
from replctl.query.information_schema.routines import specific_place
from replctl.query.information_schema.visibility import (
    TABLES_AND_VIEWS,
    Row,
    collations,
    place,
    relations,
)
from replctl.query.permission import used_columns
from replctl.query.query_rewrite import view_query
from replctl.query.tree import functions_of, tables_of

_UDT = ("udt_catalog", "udt_schema", "udt_name")


def _column_udt_usage(context: FunctionContext) -> Iterator[Row]:
    """Yield each column whose type the current role owns; a domain counts as its base type."""
    for relation in relations(context, TABLES_AND_VIEWS):
        for column in relation.columns:
            if context.environment.privileges.acts_for(_type_owner(context, column)):
                row = declared_row(context, column)
                yield {
                    **{name: row[name] for name in _UDT},
                    **place(context, relation),
                    "column_name": column.name,
                }


def _type_owner(context: FunctionContext, column: Column) -> int:
    name = column.declared_type
    if column.domain:
        name = get_domain(context.catalog, column.domain).base
    return owner_of(context.catalog, "pg_type", context.environment.type(name).oid)


def _view_column_usage(context: FunctionContext) -> Iterator[Row]:
    """Yield each view with each column that it uses of the current role's tables and views."""
    for view in relations(context, [RelKind.VIEW]):
        query = view_query(context.catalog, view)
        used = used_columns(query)
        found = set()
        for table in tables_of(query):
            relation = table.relation
            if isinstance(relation, Relation):
                found |= {(relation, attnum) for attnum in used[table.varno] if attnum > 0}
        for relation, attnum in found:
            if context.environment.privileges.acts_for(relation.owner):
                yield {
                    **place(context, view, "view"),
                    **place(context, relation),
                    "column_name": relation.column_at(attnum).name,
                }


def _view_routine_usage(context: FunctionContext) -> Iterator[Row]:
    """Yield each view with each function that it calls and the current role owns."""
    for view in relations(context, [RelKind.VIEW]):
        for function in _own(context, functions_of(view_query(context.catalog, view))):
            yield {**place(context, view), **specific_place(context, function)}


def _check_constraint_routine_usage(context: FunctionContext) -> Iterator[Row]:
    """Yield each CHECK constraint with each function that it calls and the current role owns.

    Domains have no such constraints, because replctl refuses user-defined functions there.
    """
    for relation in relations(context, TABLE_KINDS):
        for constraint in relation.checks():
            assert constraint.check is not None
            for function in _own(context, nodes.walk(constraint.check)):
                yield {
                    "constraint_catalog": context.environment.database,
                    "constraint_schema": relation.schema,
                    "constraint_name": constraint.name,
                    **specific_place(context, function),
                }


def _own(context: FunctionContext, parts: Iterable[object]) -> list[UserFunction]:
    """Return the user-defined functions among calls that the current role owns."""
    called = {part.function_oid for part in parts if isinstance(part, nodes.FuncExpr)}
    return [
        function
        for function in list_functions(context.catalog)
        if function.oid in called and context.environment.privileges.acts_for(function.owner)
    ]


def _data_type_privileges(context: FunctionContext) -> Iterator[Row]:
    """Yield the objects whose data types the current role may see."""
    for kind, prefix, rows in (
        ("USER-DEFINED TYPE", "udt", composites.VIEWS["attributes"](context)),
        ("DOMAIN", "domain", domains.VIEWS["domains"](context)),
        ("ROUTINE", "specific", routines.VIEWS["parameters"](context)),
        ("TABLE", "table", columns.VIEWS["columns"](context)),
        ("ROUTINE", "specific", routines.VIEWS["routines"](context)),
    ):
        for row in rows:
            yield {
                "object_catalog": row[f"{prefix}_catalog"],
                "object_schema": row[f"{prefix}_schema"],
                "object_name": row[f"{prefix}_name"],
                "object_type": kind,
                "dtd_identifier": row["dtd_identifier"],
            }


def _collations(context: FunctionContext) -> Iterator[Row]:
    for collation in collations(context):
        yield {
            "collation_catalog": context.environment.database,
            "collation_schema": context.environment.schema_name(collation.schema_oid),
            "collation_name": collation.name,
            "pad_attribute": "NO PAD",
        }


def _collation_character_sets(context: FunctionContext) -> Iterator[Row]:
    return ({**row, "character_set_name": "UTF8"} for row in _collations(context))


VIEWS = {
    "column_udt_usage": _column_udt_usage,
    "view_column_usage": _view_column_usage,
    "view_routine_usage": _view_routine_usage,
    "check_constraint_routine_usage": _check_constraint_routine_usage,
    "data_type_privileges": _data_type_privileges,
    "collations": _collations,
    "collation_character_set_applicability": _collation_character_sets,
}
