"""CREATE VIEW, CREATE and REFRESH MATERIALIZED VIEW (view.c, createas.c, matview.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl.catalog.acl import Privilege
from replctl.catalog.heap import insert_column, insert_relation, update_relation
from replctl.catalog.pg_authid import role_names
from replctl.catalog.pg_class import (
    Column,
    Relation,
    find_relation_oid,
    get_relation,
    load_relations,
)
from replctl.catalog.pg_rewrite import put_view_rule
from replctl.catalog.relation_kind import WITH_ROWS, RelKind, RelPersistence, ReplicaIdentity
from replctl.commands.column_definition import (
    ColumnDraft,
    check_column_name,
    check_stored_type,
    typed,
)
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.file_layout import check_layout
from replctl.commands.find_relation import find_relation
from replctl.commands.inherit import check_own_columns
from replctl.commands.naming import Schema, check_tablespace, relation_schema
from replctl.commands.own_table import check_no_relation, check_relation_name, new_relation
from replctl.commands.reloptions import table_options, view_options
from replctl.commands.temporary import temporary_place
from replctl.commands.view_dependency import use_relations, used_relations
from replctl.errors import (
    FeatureNotSupported,
    InvalidTableDefinition,
    ObjectNotInPrerequisiteState,
    SqlSyntaxError,
    WrongObjectType,
)
from replctl.lake.storage_place import give_storage
from replctl.parser import ast
from replctl.query import stored
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.insert import fill
from replctl.query.permission import check_query
from replctl.query.query_rewrite import view_query
from replctl.query.tree import OutputColumn, Query
from replctl.query.truncate import empty
from replctl.session import Session


def create_view(session: Session, statement: ast.CreateView) -> str:
    """Create a view, or replace its query.

    Raises:
        PostgresError: PostgreSQL refuses the view.
    """
    return carry_out(session, lambda ddl: _create_view(ddl, statement))


def _create_view(ddl: Ddl, statement: ast.CreateView) -> str:
    query = QueryAnalyzer(ddl.environment, ddl.now).query(statement.query)
    options = view_options(statement.options)
    if len(statement.columns) > len(query.columns):
        raise SqlSyntaxError("CREATE VIEW specifies more column names than columns")
    if statement.persistence == "unlogged":
        raise SqlSyntaxError("views cannot be unlogged because they do not have storage")
    columns = named_columns(ddl, query.columns, statement.columns)
    place = _view_place(ddl, statement, query)
    oid = find_relation_oid(ddl.catalog, statement.relation.name, place.oid)
    if oid is not None and statement.or_replace:
        view = ddl.relation(oid)
        _replace(ddl, view, columns, options)
    else:
        name = statement.relation.name
        view = _make(ddl, place, name, RelKind.VIEW, columns, options=options)
        insert_relation(ddl.catalog, view)
    use_relations(ddl.catalog, query)
    put_view_rule(ddl.catalog, view.oid, stored.dumps(query))
    return "CREATE VIEW"


def _view_place(ddl: Ddl, statement: ast.CreateView, query: Query) -> Schema:
    """Return the schema of a new view.  A view that reads temporary relations is also temporary."""
    target = replace(statement.relation, pos=-1)
    if statement.persistence == "temporary":
        return temporary_place(ddl, target)
    read = load_relations(ddl.catalog, used_relations(query))
    if any(relation.persistence == RelPersistence.TEMPORARY for relation in read.values()):
        ddl.notice(f'view "{statement.relation.name}" will be a temporary view')
        return temporary_place(ddl, target)
    return relation_schema(ddl.environment, statement.relation)


def named_columns(ddl: Ddl, found: Sequence[OutputColumn], names: Sequence[str]) -> list[Column]:
    """Return the columns of a relation that is made from a query.  Give the first columns the given
    names.
    """
    given = [*names, *(column.name for column in found[len(names) :])]
    return [
        typed(ddl.environment, Column(0, name, ""), column.type, column.typmod, column.collation)
        for name, column in zip(given, found, strict=True)
    ]


def _make(
    ddl: Ddl,
    place: Schema,
    name: str,
    kind: RelKind,
    columns: Sequence[Column],
    *,
    options: dict[str, str] | None = None,
) -> Relation:
    """Return a relation with the columns of a query.  The relation is not in the catalog yet."""
    check_own_columns([ColumnDraft(column) for column in columns])
    for column in columns:
        if kind != RelKind.VIEW:  # a view has no system columns (CheckAttributeNamesTypes)
            check_column_name(column.name)
        check_stored_type(ddl.environment, column.name, ddl.environment.type(column.declared_type))
    check_relation_name(ddl, place, name)
    numbered = tuple(replace(column, attnum=i) for i, column in enumerate(columns, start=1))
    relation = new_relation(ddl, place, name, kind)
    identity = ReplicaIdentity.NOTHING if kind == RelKind.VIEW else ReplicaIdentity.DEFAULT
    return replace(relation, columns=numbered, options=options or {}, replica_identity=identity)


def _replace(ddl: Ddl, view: Relation, columns: Sequence[Column], options: dict[str, str]) -> None:
    """Change a view for a new query: check its columns, and add new columns (checkViewColumns)."""
    if view.kind != RelKind.VIEW:
        raise WrongObjectType(f'"{view.name}" is not a view')
    ddl.privileges.check_relation_owner(view)
    if len(columns) < len(view.columns):
        raise InvalidTableDefinition("cannot drop columns from view")
    for old, new in zip(view.columns, columns, strict=False):
        if new.name != old.name:
            raise InvalidTableDefinition(
                f'cannot change name of view column "{old.name}" to "{new.name}"',
                hint="Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.",
            )
        if (new.declared_type, new.typmod) != (old.declared_type, old.typmod):
            types = [
                ddl.environment.format_type(c.declared_type, c.declared_typmod) for c in (old, new)
            ]
            raise InvalidTableDefinition(
                f'cannot change data type of view column "{old.name}" from {types[0]} to {types[1]}'
            )
        if new.collation != old.collation:
            raise InvalidTableDefinition(
                f'cannot change collation of view column "{old.name}" from'
                f' "{old.collation}" to "{new.collation}"'
            )
    for number in range(len(view.columns), len(columns)):
        insert_column(ddl.catalog, view.oid, replace(columns[number], attnum=number + 1))
    update_relation(ddl.catalog, replace(view, options=options))


# ---------------------------------------------------------------------------------------------
# Materialized views


def create_materialized_view(session: Session, statement: ast.CreateTableAs) -> str:
    """Create a materialized view in the open transaction, and fill it unless WITH NO DATA was
    given.  Return the command tag.

    Raises:
        PostgresError: see CREATE TABLE AS.
    """
    check_tablespace(statement.tablespace)
    if statement.persistence == "unlogged":
        raise FeatureNotSupported("materialized views cannot be unlogged")
    oid = carry_out(session, lambda ddl: _create_materialized_view(ddl, statement))
    if oid is None or not statement.with_data:
        return "CREATE MATERIALIZED VIEW"
    return f"SELECT {_fill(session, oid)}"


def _create_materialized_view(ddl: Ddl, statement: ast.CreateTableAs) -> int | None:
    """Create a materialized view without rows, and return its OID.  Return None if it exists and IF
    NOT EXISTS was given.
    """
    name = statement.relation.name
    query = QueryAnalyzer(ddl.environment, ddl.now).query(statement.query)
    place = relation_schema(ddl.environment, statement.relation)
    exists = find_relation_oid(ddl.catalog, name, place.oid) is not None
    if exists and statement.if_not_exists:
        ddl.notice(f'relation "{name}" already exists, skipping', sqlstate="42P07")
        return None
    check_no_relation(ddl, place, name)
    if len(statement.columns) > len(query.columns):
        raise SqlSyntaxError("too many column names were specified")
    columns = named_columns(ddl, query.columns, statement.columns)
    options = table_options(statement.options, RelKind.MATERIALIZED_VIEW)
    view = _make(ddl, place, name, RelKind.MATERIALIZED_VIEW, columns, options=options)
    view = replace(view, is_populated=False)
    check_layout(view)
    insert_relation(ddl.catalog, view)
    give_storage(ddl.catalog, view)
    use_relations(ddl.catalog, query)
    put_view_rule(ddl.catalog, view.oid, stored.dumps(query))
    if statement.with_data:
        check_query(ddl.environment, query)
    return view.oid


def refresh_materialized_view(session: Session, statement: ast.RefreshMaterializedView) -> str:
    """Replace the rows of a materialized view by the current result of its query, and return the
    command tag.

    Raises:
        WrongObjectType: the relation is not a materialized view.
        PostgresError: the query fails.
    """
    oid = carry_out(session, lambda ddl: _prepare_refresh(ddl, statement))
    with session.read() as catalog:
        view = get_relation(catalog, oid)
    assert view is not None
    empty(session, [view])
    if statement.with_data:
        _fill(session, oid)
    return "REFRESH MATERIALIZED VIEW"


def _fill(session: Session, oid: int) -> int:
    """Fill a materialized view with the rows of its query, which its owner runs, and return their
    number.
    """

    def populated(ddl: Ddl) -> None:
        update_relation(ddl.catalog, replace(ddl.relation(oid), is_populated=True))

    carry_out(session, populated)
    with session.read() as catalog:
        view = get_relation(catalog, oid)
        assert view is not None
        query = view_query(catalog, view)
        owner = view.owner, role_names(catalog)[view.owner]
    with session.acting_as(owner):
        return fill(session, view, query)


def _prepare_refresh(ddl: Ddl, statement: ast.RefreshMaterializedView) -> int:
    name = statement.relation
    parts = tuple(part for part in (name.catalog, name.schema, name.name) if part is not None)
    view = find_relation(ddl, parts)
    assert view is not None
    if view.kind not in WITH_ROWS:
        raise WrongObjectType(f'"{view.name}" is not a table or materialized view')
    ddl.privileges.check_relation(view, Privilege.MAINTAIN)
    if view.kind != RelKind.MATERIALIZED_VIEW:
        raise FeatureNotSupported(f'"{view.name}" is not a materialized view')
    if statement.concurrently:
        _check_concurrent(view, statement.with_data)
    if statement.with_data:
        check_query(ddl.environment, view_query(ddl.catalog, view), view.owner)
    update_relation(ddl.catalog, replace(view, is_populated=statement.with_data))
    return view.oid


def _check_concurrent(view: Relation, with_data: bool) -> None:
    """Check the requirements of CONCURRENTLY, which has no other effect: readers never wait."""
    if not view.is_populated:
        raise FeatureNotSupported(
            "CONCURRENTLY cannot be used when the materialized view is not populated"
        )
    if not with_data:
        raise SqlSyntaxError(
            "REFRESH options CONCURRENTLY and WITH NO DATA cannot be used together"
        )
    if not any(index.is_plain_unique for index in view.indexes):
        raise ObjectNotInPrerequisiteState(
            f'cannot refresh materialized view "{view.schema}.{view.name}" concurrently',
            hint="Create a unique index with no WHERE clause on one or more columns of the"
            " materialized view.",
        )
