"""information_schema: composite types and their attributes."""

from __future__ import annotations

from collections.abc import Iterator

from replctl.catalog.pg_class import Relation, load_relations, relation_oids
from replctl.catalog.relation_kind import RelKind
from replctl.functions.function_context import FunctionContext
from replctl.query.information_schema.columns import (
    collation_row,
    declared_row,
    forbids_null,
    type_row,
)
from replctl.query.information_schema.visibility import Row, yes_or_no


def _composites(context: FunctionContext) -> Iterator[Relation]:
    """Yield the composite types that the current role may use."""
    privileges = context.environment.privileges
    oids = relation_oids(context.catalog, [RelKind.COMPOSITE_TYPE])
    for relation in load_relations(context.catalog, oids).values():
        type_ = context.environment.type(relation.row_type)
        if privileges.acts_for(relation.owner) or privileges.has_on_type(type_.oid):
            yield relation


def _attributes(context: FunctionContext) -> Iterator[Row]:
    database = context.environment.database
    for relation in _composites(context):
        for column in relation.columns:
            own = type_row(context, column.declared_type, column.declared_typmod)
            yield {
                **declared_row(context, column),
                "data_type": own["data_type"],
                "attribute_udt_catalog": own["udt_catalog"],
                "attribute_udt_schema": own["udt_schema"],
                "attribute_udt_name": own["udt_name"],
                **collation_row(context, column.collation),
                "udt_catalog": database,
                "udt_schema": relation.schema,
                "udt_name": relation.name,
                "attribute_name": column.name,
                "ordinal_position": column.attnum,
                "is_nullable": yes_or_no(not forbids_null(context, column)),
                "dtd_identifier": str(column.attnum),
                "is_derived_reference_attribute": "NO",
            }


def _user_defined_types(context: FunctionContext) -> Iterator[Row]:
    for relation in _composites(context):
        yield {
            "user_defined_type_catalog": context.environment.database,
            "user_defined_type_schema": relation.schema,
            "user_defined_type_name": relation.name,
            "user_defined_type_category": "STRUCTURED",
            "is_instantiable": "YES",
        }


VIEWS = {"attributes": _attributes, "user_defined_types": _user_defined_types}
