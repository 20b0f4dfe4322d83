"""CREATE, ALTER and DROP PUBLICATION (publicationcmds.c, pg_publication.c)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from replctl.catalog.acl import Privilege
from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.native_column import EXPRESSIONS, check_not_native
from replctl.catalog.pg_class import Relation, get_relation, load_relations
from replctl.catalog.pg_inherits import descendants_of
from replctl.catalog.pg_namespace import find_schema
from replctl.catalog.pg_publication import (
    Publication,
    PublishedTable,
    delete_publication,
    delete_published_schema,
    delete_published_table,
    find_publication,
    insert_publication,
    insert_published_schema,
    insert_published_table,
    published_schemas,
    published_tables,
    update_publication,
)
from replctl.catalog.relation_kind import TABLE_KINDS, RelKind, RelPersistence
from replctl.catalog.transaction import Catalog
from replctl.catalog.wal_level import publication_warning
from replctl.commands.define import get_boolean, get_string, options_by_name
from replctl.commands.table_expression import columns_used
from replctl.does_not_exist import no_column, no_relation, no_schema
from replctl.errors import (
    DuplicateObject,
    InsufficientPrivilege,
    InvalidColumnReference,
    InvalidParameterValue,
    InvalidSchemaName,
    ObjectNotInPrerequisiteState,
    SqlSyntaxError,
    UndefinedObject,
    WrongObjectType,
)
from replctl.expr.nodes import Expr
from replctl.expr.type_names import schema_of_relation
from replctl.lake.definition import changing_definitions
from replctl.parser import ast
from replctl.query.analyze_query import QueryAnalyzer
from replctl.query.range_table import FromScope, relation_entry
from replctl.record import dataclass
from replctl.replication.row_filter import analyze_row_filter
from replctl.session import Session
from replctl.types import builtin
from replctl.types.quote import split_identifiers

_ACTIONS = ("insert", "update", "delete", "truncate")
_OPTIONS = ("publish", "publish_via_partition_root")
_VIA_ROOT = "publish_via_partition_root"


def create_publication(session: Session, statement: ast.CreatePublication) -> str:
    """Create a publication of tables, of schemas, of all tables, or an empty publication.

    Raises:
        DuplicateObject: a publication of that name exists.
        PostgresError: an option, a table, a column list or a row filter is wrong.
    """
    with changing_definitions(session) as catalog:
        privileges = session.privileges(catalog)
        privileges.check_database(session.database_name, Privilege.CREATE)
        if statement.for_all_tables and not privileges.is_superuser:
            raise InsufficientPrivilege("must be superuser to create FOR ALL TABLES publication")
        if find_publication(catalog, statement.name) is not None:
            raise DuplicateObject(f'publication "{statement.name}" already exists')
        publication = _with_options(
            Publication(0, statement.name, session.role_oid, statement.for_all_tables),
            statement.options,
        )
        publication = replace(publication, oid=catalog.new_oid())
        insert_publication(catalog, publication)
        members = _Members(session, catalog, publication)
        tables, schemas = members.named(statement.objects)
        if schemas and not privileges.is_superuser:
            raise InsufficientPrivilege(
                "must be superuser to create FOR TABLES IN SCHEMA publication"
            )
        if tables:
            members.add_tables(members.transformed(tables, has_schemas=bool(schemas)))
        members.add_schemas(schemas)
    warning = publication_warning(session.setting)
    if warning is not None:
        session.report(warning)
    return "CREATE PUBLICATION"


def alter_publication(session: Session, statement: ast.AlterPublication) -> str:
    """Change the parameters, tables or schemas of a publication.

    Raises:
        UndefinedObject: there is no such publication, or a table or schema is not part of it.
        ObjectNotInPrerequisiteState: the publication is FOR ALL TABLES.
        PostgresError: see `create_publication`.
    """
    with changing_definitions(session) as catalog:
        publication = find_publication(catalog, statement.name)
        if publication is None:
            raise UndefinedObject(f'publication "{statement.name}" does not exist')
        privileges = session.privileges(catalog)
        privileges.check_owner(publication.owner, "publication", publication.name)
        members = _Members(session, catalog, publication)
        if statement.action == "options":
            changed = _with_options(publication, statement.options)
            if any(option.name == _VIA_ROOT for option in statement.options):
                members.check_via_root(changed)
            update_publication(catalog, changed)
        else:
            _alter_members(members, statement)
    return "ALTER PUBLICATION"


def drop_publications(session: Session, statement: ast.Drop) -> str:
    """Drop publications.

    Raises:
        UndefinedObject: there is no such publication, and IF EXISTS was not given.
    """
    with changing_definitions(session) as catalog:
        found = set()  # all names are looked up first: a name may be there twice
        for (name,) in statement.names:
            publication = find_publication(catalog, name)
            if publication is not None:
                session.privileges(catalog).check_owner(publication.owner, "publication", name)
                found.add(publication.oid)
            elif statement.missing_ok:
                session.notice(f'publication "{name}" does not exist, skipping')
            else:
                raise UndefinedObject(f'publication "{name}" does not exist')
        for oid in found:
            delete_publication(catalog, oid)
    return "DROP PUBLICATION"


def _alter_members(members: _Members, statement: ast.AlterPublication) -> None:
    publication, is_set = members.publication, statement.action == "set"
    tables, schemas = members.named(statement.objects)
    if statement.action in ("add", "set") and schemas and not members.is_superuser:
        raise InsufficientPrivilege("must be superuser to add or set schemas")
    for objects, what in ((schemas, "Schemas"), (tables, "Tables")):
        if objects and publication.all_tables:
            raise ObjectNotInPrerequisiteState(
                f'publication "{publication.name}" is defined as FOR ALL TABLES',
                detail=f"{what} cannot be added to or dropped from FOR ALL TABLES publications.",
            )
    match statement.action:
        case "add":
            has_schemas = bool(schemas or members.schemas)
            members.add_tables(members.transformed(tables, has_schemas=has_schemas), is_new=True)
            if schemas:
                members.check_no_column_list()
            members.add_schemas(schemas, is_new=True)
        case "drop":
            members.drop_tables(tables)
            members.drop_schemas(schemas)
        case _ if is_set:
            members.set_tables(members.transformed(tables, has_schemas=bool(schemas)))
            for schema_oid in members.schemas:
                if schema_oid not in schemas:
                    delete_published_schema(members.catalog, publication.oid, schema_oid)
            members.add_schemas(schemas)


def _with_options(publication: Publication, options: Sequence[ast.DefElem]) -> Publication:
    """Set the parameters of a WITH list in a publication, and return it
    (parse_publication_options).
    """
    given = options_by_name(options, _OPTIONS, "publication")
    if "publish" in given:
        value = get_string(given["publish"])
        names = split_identifiers(value)
        if names is None:
            raise SqlSyntaxError('invalid list syntax in parameter "publish"')
        for name in names:
            if name not in _ACTIONS:
                raise SqlSyntaxError(
                    f'unrecognized value for publication option "publish": "{name}"'
                )
        publication = replace(
            publication,
            publish_insert="insert" in names,
            publish_update="update" in names,
            publish_delete="delete" in names,
            publish_truncate="truncate" in names,
        )
    if _VIA_ROOT in given:
        via_root = get_boolean(given[_VIA_ROOT])
        publication = replace(publication, publish_via_partition_root=via_root)
    return publication


@dataclass(frozen=True, slots=True)
class _NamedTable:
    """A table that a statement names, or a table that inherits from a named table."""

    relation: Relation | builtin.SystemRelation
    columns: tuple[str, ...] | None
    where: ast.RawExpr | None


@dataclass(frozen=True, slots=True)
class _Member:
    """A table with the column list and row filter that it will have in a publication."""

    relation: Relation | builtin.SystemRelation
    columns: tuple[str, ...] | None
    row_filter: Expr | None


class _Members:
    """The contents of a publication, while a statement changes it."""

    def __init__(self, session: Session, catalog: Catalog, publication: Publication) -> None:
        self.catalog = catalog
        self.publication = publication
        self._session = session
        self._environment = session.environment(catalog)
        self._tables = {
            item.relid: item for item in published_tables(catalog, publication_oid=publication.oid)
        }
        self.schemas = published_schemas(catalog, publication.oid)
        self.is_superuser = session.privileges(catalog).is_superuser

    # -- names

    def named(
        self, objects: Sequence[ast.PublicationObject]
    ) -> tuple[list[_NamedTable], list[int]]:
        """Return the tables and the OIDs of schemas that a list names, without duplicates
        (OpenTableList).
        """
        environment = self._environment
        schemas: list[int] = []
        for item in objects:
            if isinstance(item, ast.PublicationSchema):
                schema_oid = self._schema(item.name)
                if schema_oid not in schemas:
                    schemas.append(schema_oid)
        items = [item for item in objects if isinstance(item, ast.PublicationTable)]
        oids = [
            environment.relation_oid(schema_of_relation(environment, i.relation), i.relation.name)
            for i in items
        ]
        loaded = load_relations(self.catalog, [oid for oid in oids if oid is not None])
        tables: dict[int, _NamedTable] = {}
        for item, oid in zip(items, oids, strict=True):
            self._add_named(tables, item, _opened(self._environment, item.relation, oid, loaded))
        return list(tables.values()), schemas

    def _schema(self, name: str | None) -> int:
        if name is None:
            if not self._environment.search_path.for_creation:
                raise InvalidSchemaName("no schema has been selected for CURRENT_SCHEMA")
            return self._environment.search_path.for_creation[0][1]
        oid = find_schema(self._environment.catalog, name)  # pg_temp is no schema here
        if oid is None:
            raise no_schema(name)
        return oid

    def _add_named(
        self,
        tables: dict[int, _NamedTable],
        item: ast.PublicationTable,
        relation: Relation | builtin.SystemRelation,
    ) -> None:
        if relation.oid in tables:
            _check_redundant(tables[relation.oid], item, relation.name)
            return
        tables[relation.oid] = _NamedTable(relation, item.columns, item.where)
        if (
            not item.relation.inherit
            or not isinstance(relation, Relation)
            or relation.kind != RelKind.TABLE
        ):
            return
        for oid in descendants_of(self.catalog, relation.oid)[1:]:
            if oid in tables:
                _check_redundant(tables[oid], item, relation.name)
                continue
            child = get_relation(self.catalog, oid)
            assert child is not None
            tables[oid] = _NamedTable(child, item.columns, item.where)

    # -- checks

    def transformed(self, tables: Sequence[_NamedTable], *, has_schemas: bool) -> list[_Member]:
        """Analyse the row filters of tables, check their column lists, and return new members."""
        members = [_Member(t.relation, t.columns, self._row_filter(t)) for t in tables]
        for table in tables:
            if table.columns is not None:
                self._check_column_list(table.relation, has_schemas)
        return members

    def _row_filter(self, table: _NamedTable) -> Expr | None:
        """Return the analysed WHERE condition of a table, or None (TransformPubWhereClauses)."""
        if table.where is None:
            return None
        relation = table.relation
        if not self.publication.publish_via_partition_root and _is_partitioned(relation):
            raise InvalidParameterValue(
                f'cannot use publication WHERE clause for relation "{relation.name}"',
                detail="WHERE clause cannot be used for a partitioned table when"
                f" {_VIA_ROOT} is false.",
            )
        now = self._session.transaction_start
        queries = QueryAnalyzer(self._environment, now)
        entry = relation_entry(self._environment, relation, 1, None)
        scope = FromScope((entry,), entry.columns)
        found = analyze_row_filter(table.where, scope, self._environment, now, queries.subquery)
        if isinstance(relation, Relation):
            check_not_native(relation, EXPRESSIONS, columns_used(found))
        return found

    def _check_column_list(
        self, relation: Relation | builtin.SystemRelation, has_schemas: bool
    ) -> None:
        """Check that a table may have a column list (CheckPubRelationColumnList)."""
        if has_schemas:
            detail = (
                "Column lists cannot be specified in publications containing FOR TABLES IN SCHEMA"
                " elements."
            )
        elif not self.publication.publish_via_partition_root and _is_partitioned(relation):
            detail = (
                "Column lists cannot be specified for partitioned tables when"
                f" {_VIA_ROOT} is false."
            )
        else:
            return
        raise InvalidParameterValue(
            f'cannot use column list for relation "{_qualified(relation)}" in publication'
            f' "{self.publication.name}"',
            detail=detail,
        )

    def check_no_column_list(self) -> None:
        """Check that no table has a column list, so that schemas may be added."""
        if any(table.columns is not None for table in self._tables.values()):
            raise InvalidParameterValue(
                f'cannot add schema to publication "{self.publication.name}"',
                detail="Schemas cannot be added if any tables that specify a column list are"
                " already part of the publication.",
            )

    def check_via_root(self, changed: Publication) -> None:
        """Check that publish_via_partition_root may become false."""
        if changed.all_tables or changed.publish_via_partition_root:
            return
        for relid, table in self._tables.items():
            relation = get_relation(self.catalog, relid)
            if relation is None or not relation.is_partitioned:
                continue
            has = [(table.row_filter, "WHERE clause"), (table.columns, "column list")]
            for value, what in has:
                if value is not None:
                    raise InvalidParameterValue(
                        f'cannot set parameter "{_VIA_ROOT}" to false for publication'
                        f' "{changed.name}"',
                        detail=f"The publication contains a {what} for partitioned table"
                        f' "{relation.name}", which is not allowed when "{_VIA_ROOT}" is false.',
                    )

    # -- changes

    def add_tables(self, members: Sequence[_Member], *, is_new: bool = False) -> None:
        """Add tables (publication_add_relation).

        Args:
            is_new: raise an error if the publication already has a table.
        """
        for member in members:
            if isinstance(member.relation, Relation):
                self._session.privileges(self.catalog).check_relation_owner(member.relation)
            if member.relation.oid in self._tables:
                if is_new:
                    raise DuplicateObject(
                        f'relation "{member.relation.name}" is already member of publication'
                        f' "{self.publication.name}"'
                    )
                continue
            relation = _publishable(member.relation)
            columns = None if member.columns is None else _attnums(relation, member.columns)
            table = PublishedTable(
                self.catalog.new_oid(),
                self.publication.oid,
                relation.oid,
                member.row_filter,
                columns,
            )
            insert_published_table(self.catalog, table)
            self._tables[relation.oid] = table

    def set_tables(self, members: Sequence[_Member]) -> None:
        """Replace the tables of the publication.  Keep tables whose membership does not change."""
        wanted = {member.relation.oid: member for member in members}
        for relid, table in list(self._tables.items()):
            member = wanted.get(relid)
            if member is None or not _is_same(table, member):
                delete_published_table(self.catalog, table.oid)
                del self._tables[relid]
        self.add_tables(members)

    def drop_tables(self, tables: Sequence[_NamedTable]) -> None:
        """Remove tables (PublicationDropTables)."""
        for table in tables:
            if table.columns is not None:
                raise SqlSyntaxError(
                    "column list must not be specified in ALTER PUBLICATION ... DROP"
                )
            found = self._tables.get(table.relation.oid)
            if found is None:
                raise UndefinedObject(
                    f'relation "{table.relation.name}" is not part of the publication'
                )
            if table.where is not None:
                raise SqlSyntaxError(
                    "cannot use a WHERE clause when removing a table from a publication"
                )
            delete_published_table(self.catalog, found.oid)

    def add_schemas(self, schema_oids: Sequence[int], *, is_new: bool = False) -> None:
        """Add schemas (publication_add_schema)."""
        for oid in schema_oids:
            name = self._environment.schema_name(oid)
            if oid in self.schemas:
                if is_new:
                    raise DuplicateObject(
                        f'schema "{name}" is already member of publication'
                        f' "{self.publication.name}"'
                    )
                continue
            if oid < builtin.FIRST_USER_OID and name == "pg_catalog":
                raise InvalidParameterValue(
                    f'cannot add schema "{name}" to publication',
                    detail="This operation is not supported for system schemas.",
                )
            if name is not None and name.startswith("pg_temp_"):
                raise InvalidParameterValue(
                    f'cannot add schema "{name}" to publication',
                    detail="Temporary schemas cannot be replicated.",
                )
            insert_published_schema(self.catalog, self.publication.oid, oid)

    def drop_schemas(self, schema_oids: Sequence[int]) -> None:
        """Remove schemas (PublicationDropSchemas)."""
        for oid in schema_oids:
            if oid not in self.schemas:
                name = self._environment.schema_name(oid)
                raise UndefinedObject(
                    f'tables from schema "{name}" are not part of the publication'
                )
            delete_published_schema(self.catalog, self.publication.oid, oid)


def _opened(
    environment: CatalogEnvironment,
    name: ast.RangeVar,
    oid: int | None,
    loaded: Mapping[int, Relation],
) -> Relation | builtin.SystemRelation:
    """Return the loaded relation of an OID.  Raise an error if it does not exist or is not a table
    or a similar relation (table_openrv).
    """
    if name.schema is not None and environment.schema_oid(name.schema) is None:
        raise no_schema(name.schema)
    if oid is None:
        shown = name.name if name.schema is None else f"{name.schema}.{name.name}"
        raise no_relation(shown)
    system = builtin.system_relations_by_oid().get(oid)
    if system is not None:
        return system
    relation = loaded[oid]
    if relation.kind in (RelKind.INDEX, RelKind.PARTITIONED_INDEX, RelKind.COMPOSITE_TYPE):
        raise WrongObjectType(
            f'cannot open relation "{relation.name}"', detail=_not_supported(relation.kind)
        )
    return relation


def _publishable(relation: Relation | builtin.SystemRelation) -> Relation:
    """Check that a relation may be published, and return it (check_publication_add_relation)."""
    kind = RelKind(relation.kind)
    if kind not in TABLE_KINDS:
        detail = _not_supported(kind)
    elif not isinstance(relation, Relation):
        detail = "This operation is not supported for system tables."
    elif relation.persistence == RelPersistence.TEMPORARY:
        detail = "This operation is not supported for temporary tables."
    elif relation.persistence == RelPersistence.UNLOGGED:
        detail = "This operation is not supported for unlogged tables."
    else:
        return relation
    raise InvalidParameterValue(
        f'cannot add relation "{relation.name}" to publication', detail=detail
    )


def _not_supported(kind: RelKind) -> str:
    return f"This operation is not supported for {kind.plural}."


def _attnums(relation: Relation, names: Sequence[str]) -> tuple[int, ...]:
    """Return the attnums of a column list (publication_translate_columns)."""
    attnums: set[int] = set()
    for name in names:
        column = relation.column(name)
        if column is None:
            if name in builtin.system_columns():
                raise InvalidColumnReference(
                    f'cannot use system column "{name}" in publication column list'
                )
            raise no_column(name, relation.name)
        if column.generated:
            raise InvalidColumnReference(
                f'cannot use generated column "{name}" in publication column list'
            )
        if column.attnum in attnums:
            raise DuplicateObject(f'duplicate column "{name}" in publication column list')
        attnums.add(column.attnum)
    return tuple(sorted(attnums))


def _is_same(table: PublishedTable, member: _Member) -> bool:
    assert isinstance(member.relation, Relation)
    columns = None if member.columns is None else _attnums(member.relation, member.columns)
    return table.columns == columns and table.row_filter == member.row_filter


def _check_redundant(earlier: _NamedTable, item: ast.PublicationTable, name: str) -> None:
    """Check that a table that is named twice has no row filter and no column list."""
    if item.where is not None or earlier.where is not None:
        raise DuplicateObject(f'conflicting or redundant WHERE clauses for table "{name}"')
    if item.columns is not None or earlier.columns is not None:
        raise DuplicateObject(f'conflicting or redundant column lists for table "{name}"')


def _is_partitioned(relation: Relation | builtin.SystemRelation) -> bool:
    return isinstance(relation, Relation) and relation.is_partitioned


def _qualified(relation: Relation | builtin.SystemRelation) -> str:
    return f"{relation.schema}.{relation.name}"
