"""information_schema: catalog, schemata, tables, views, sequences."""

from __future__ import annotations

from collections.abc import Iterator

from replctl.catalog import schema
from replctl.catalog.acl import Privilege
from replctl.catalog.pg_class import Relation
from replctl.catalog.pg_sequence import get_sequence
from replctl.catalog.relation_kind import DependencyType, RelKind, RelPersistence
from replctl.functions.function_context import FunctionContext
from replctl.query.information_schema.visibility import (
    COLUMN_RIGHTS,
    TABLE_RIGHTS,
    TABLES_AND_VIEWS,
    Row,
    place,
    relations,
    visible,
    yes_or_no,
)
from replctl.query.query_rewrite import view_query
from replctl.query.tree import tables_of
from replctl.query.view_definition import view_definition
from replctl.types.builtin import Type, system_relations_by_oid, types

_SCHEMA_RIGHTS = (Privilege.CREATE, Privilege.USAGE)
_SEQUENCE_RIGHTS = (Privilege.SELECT, Privilege.UPDATE, Privilege.USAGE)
_TABLE_TYPES = {
    RelKind.TABLE: "BASE TABLE",
    RelKind.PARTITIONED_TABLE: "BASE TABLE",
    RelKind.VIEW: "VIEW",
}
_BITS = {"int2": 16, "int4": 32, "int8": 64}


def _catalog_name(context: FunctionContext) -> Iterator[Row]:
    yield {"catalog_name": context.environment.database}


def _schemata(context: FunctionContext) -> Iterator[Row]:
    privileges = context.environment.privileges
    for row in context.catalog.select(schema.pg_namespace):
        oid, owner = int(row.oid), int(row.nspowner)
        if privileges.acts_for(owner) or any(
            privileges.has_on_schema(oid, r) for r in _SCHEMA_RIGHTS
        ):
            yield {
                "catalog_name": context.environment.database,
                "schema_name": row.nspname,
                "schema_owner": context.environment.role_name(owner),
            }


def _tables(context: FunctionContext) -> Iterator[Row]:
    for relation in visible(context, TABLES_AND_VIEWS, TABLE_RIGHTS, COLUMN_RIGHTS):
        is_temporary = relation.persistence == RelPersistence.TEMPORARY
        yield {
            **place(context, relation),
            "table_type": "LOCAL TEMPORARY" if is_temporary else _TABLE_TYPES[relation.kind],
            "is_insertable_into": yes_or_no(relation.kind != RelKind.VIEW),
            "is_typed": "NO",
            "commit_action": "PRESERVE" if is_temporary else None,
        }
    for system in system_relations_by_oid().values():
        yield {
            **place(context, system),
            "table_type": _TABLE_TYPES[RelKind(system.kind)],
            "is_insertable_into": yes_or_no(system.kind == RelKind.TABLE),
            "is_typed": "NO",
        }


def _views(context: FunctionContext) -> Iterator[Row]:
    privileges = context.environment.privileges
    for view in visible(context, [RelKind.VIEW], TABLE_RIGHTS, COLUMN_RIGHTS):
        is_own = privileges.acts_for(view.owner)
        yield {
            **place(context, view),
            "view_definition": view_definition(context.environment, view) if is_own else None,
            "check_option": "NONE",
            **dict.fromkeys(
                (
                    "is_updatable", "is_insertable_into", "is_trigger_updatable",
                    "is_trigger_deletable", "is_trigger_insertable_into",
                ),
                "NO",
            ),
        }  # fmt: skip


def _view_table_usage(context: FunctionContext) -> Iterator[Row]:
    """Yield each view with each user table or view that it reads and the current role owns."""
    privileges = context.environment.privileges
    for view in relations(context, [RelKind.VIEW]):
        used = {
            table.relation.oid: table.relation
            for table in tables_of(view_query(context.catalog, view))
        }
        for table in used.values():
            if isinstance(table, Relation) and privileges.acts_for(table.owner):
                yield {**place(context, view, "view"), **place(context, table)}


def _sequences(context: FunctionContext) -> Iterator[Row]:
    for relation in visible(context, [RelKind.SEQUENCE], _SEQUENCE_RIGHTS):
        sequence = get_sequence(context.catalog, relation.oid)
        if sequence is None or sequence.ownership == DependencyType.INTERNAL:
            continue
        type_: Type = types()[sequence.type]
        yield {
            **place(context, relation, "sequence"),
            "data_type": type_.sql_name, "numeric_precision": _BITS[type_.name],
            "numeric_precision_radix": 2, "numeric_scale": 0,
            "start_value": str(sequence.start), "minimum_value": str(sequence.minimum),
            "maximum_value": str(sequence.maximum), "increment": str(sequence.increment),
            "cycle_option": yes_or_no(sequence.cycles),
        }  # fmt: skip


def _character_sets(context: FunctionContext) -> Iterator[Row]:
    yield {
        "character_set_name": "UTF8", "character_repertoire": "UCS", "form_of_use": "UTF8",
        "default_collate_catalog": context.environment.database,
    }  # fmt: skip


VIEWS = {
    "character_sets": _character_sets,
    "information_schema_catalog_name": _catalog_name,
    "schemata": _schemata,
    "tables": _tables,
    "views": _views,
    "view_table_usage": _view_table_usage,
    "sequences": _sequences,
}
