"""Dump views and materialized views (dumpTableSchema, createViewAsClause)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replctl.catalog.pg_class import Relation
from replctl.catalog.relation_kind import VIEW_KINDS, RelKind
from replctl.dump.dumped_table import with_column_comments
from replctl.dump.entry import Entry, ObjectKey
from replctl.dump.source import Source, node_keys, type_key, with_options
from replctl.query.query_rewrite import view_query
from replctl.query.tree import tables_of, transform
from replctl.query.view_definition import view_definition


def views(source: Source, relations: Mapping[int, Relation]) -> Iterator[Entry]:
    """Yield the views.  The dump fills materialized views at its end."""
    for view in relations.values():
        if view.kind not in VIEW_KINDS:
            continue
        kind = "VIEW" if view.kind == RelKind.VIEW else "MATERIALIZED VIEW"
        name = view.quoted_name
        query = view_definition(source.environment, view).removesuffix(";")
        tail = "" if view.kind == RelKind.VIEW else "\n  WITH NO DATA"
        text = f"CREATE {kind} {name}{with_options(view.options)} AS\n{query}{tail};\n"
        entry = Entry(
            kind, view.name, text, view.schema, source.role_name(view.owner), f"{kind} {name}",
            key=("pg_class", view.oid), needs=frozenset(_needs(source, view)),
        )  # fmt: skip
        entry = source.commented(entry, "pg_class", view.oid, kind, name)
        yield with_column_comments(source, entry, view)


def refreshes(source: Source, relations: Mapping[int, Relation]) -> Iterator[Entry]:
    """Yield the statements that fill materialized views with rows."""
    for view in relations.values():
        if view.kind == RelKind.MATERIALIZED_VIEW and view.is_populated:
            yield Entry(
                "MATERIALIZED VIEW DATA",
                view.name,
                f"REFRESH MATERIALIZED VIEW {view.quoted_name};\n",
                view.schema,
                source.role_name(view.owner),
                key=("refresh", view.oid),
                needs=frozenset(("refresh", oid) for _kind, oid in _needs(source, view)),
            )


def _needs(source: Source, view: Relation) -> set[ObjectKey]:
    query = view_query(source.catalog, view)
    needs: set[ObjectKey] = {("pg_class", table.relation.oid) for table in tables_of(query)}
    for column in view.columns:
        needs.update(type_key(column.declared_type))
    transform(query, lambda part: needs.update(node_keys(part)))
    return needs
