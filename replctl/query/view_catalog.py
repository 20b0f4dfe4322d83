"""The rows of catalogs for queries, and the definitions of views and policies: pg_get_viewdef(),
pg_views, pg_matviews, pg_policies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from replctl.catalog.pg_class import (
    Relation,
    get_relation,
    load_relations,
    relation_oids,
)
from replctl.catalog.pg_policy import list_policies
from replctl.catalog.pg_sequence import sequence_state
from replctl.catalog.relation_kind import VIEW_KINDS, RelKind
from replctl.does_not_exist import no_relation
from replctl.expr.type_names import split_name
from replctl.functions.function_context import FunctionContext
from replctl.functions.system_views import system_rows
from replctl.functions.view_rows import in_order
from replctl.query.pg_get_expr import condition_text, pg_get_expr
from replctl.query.view_definition import view_definition
from replctl.types import text as text_
from replctl.types.builtin import SystemRelation

Row = dict[str, Any]


def _by_oid(context: FunctionContext, oid: int, pretty: int = 0) -> str | None:
    relation = get_relation(context.catalog, oid)
    if relation is None or relation.kind not in VIEW_KINDS:
        return None
    return view_definition(context.environment, relation, is_pretty=bool(pretty))


def _by_name(context: FunctionContext, name: str, pretty: int = 0) -> str | None:
    parts = tuple(name.split("."))
    schema_name, last = split_name(context.environment, parts)
    oid = context.environment.relation_oid(schema_name, last)
    if oid is None:
        raise no_relation(name)
    return _by_oid(context, oid, pretty)


#: prosrc -> Python function, like functions.sql_functions.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pg_get_expr": pg_get_expr,
    "pg_get_expr_ext": pg_get_expr,
    "pg_get_viewdef": _by_oid,
    "pg_get_viewdef_ext": _by_oid,
    "pg_get_viewdef_wrap": lambda context, oid, column: _by_oid(context, oid, 1),
    "pg_get_viewdef_name": _by_name,
    "pg_get_viewdef_name_ext": _by_name,
}


def catalog_columns(relation: Relation | SystemRelation) -> list[tuple[str, str]]:
    """Return the names and types of the columns of `catalog_rows`."""
    if isinstance(relation, SystemRelation):
        return list(relation.columns)
    return [(column.name, column.type) for column in relation.columns]


def catalog_rows(
    context: FunctionContext, relation: Relation | SystemRelation
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a catalog, a system view or a sequence, in the order of its columns.

    Raises:
        FeatureNotSupported: replctl does not have this catalog.
    """
    if isinstance(relation, Relation):
        value, is_called = sequence_state(context.catalog, relation.oid)
        yield value, 0, int(is_called)
        return
    is_standard = relation.schema == "information_schema"
    rows = _standard_view(relation.name) if is_standard else _CATALOGS.get(relation.name)
    if rows is None:
        yield from system_rows(context, relation.name)
        return
    yield from in_order(rows(context), relation.columns, {})


def _views(context: FunctionContext, kind: RelKind) -> list[Relation]:
    return list(load_relations(context.catalog, relation_oids(context.catalog, [kind])).values())


def _pg_views(context: FunctionContext) -> Iterator[Row]:
    for view in _views(context, RelKind.VIEW):
        yield {
            "schemaname": view.schema, "viewname": view.name,
            "viewowner": context.environment.role_name(view.owner),
            "definition": view_definition(context.environment, view),
        }  # fmt: skip


def _pg_matviews(context: FunctionContext) -> Iterator[Row]:
    for view in _views(context, RelKind.MATERIALIZED_VIEW):
        yield {
            "schemaname": view.schema, "matviewname": view.name,
            "matviewowner": context.environment.role_name(view.owner),
            "hasindexes": int(bool(view.indexes)), "ispopulated": int(view.is_populated),
            "definition": view_definition(context.environment, view),
        }  # fmt: skip


def _standard_view(name: str) -> Callable[[FunctionContext], Iterator[Row]]:
    from replctl.query.information_schema import information_schema  # few queries need it

    return information_schema(name)


def _pg_policies(context: FunctionContext) -> Iterator[Row]:
    for policy in list_policies(context.catalog):
        relation = get_relation(context.catalog, policy.relid)
        assert relation is not None
        texts = [
            None if text is None else condition_text(context.environment, relation, text)
            for text in (policy.using, policy.check)
        ]
        roles = sorted(context.environment.role_name(oid) or "public" for oid in policy.roles)
        yield {
            "schemaname": relation.schema, "tablename": relation.name, "policyname": policy.name,
            "permissive": "PERMISSIVE" if policy.is_permissive else "RESTRICTIVE",
            "roles": text_.render("_name", roles), "cmd": policy.command_word,
            "qual": texts[0], "with_check": texts[1],
        }  # fmt: skip


_CATALOGS = {"pg_views": _pg_views, "pg_matviews": _pg_matviews, "pg_policies": _pg_policies}
