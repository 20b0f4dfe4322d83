"""Read from the catalog the definitions with which a subscriber creates the published tables."""

from __future__ import annotations

from collections.abc import Iterator

from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_class import Column, Index, Relation, load_relations
from replctl.catalog.pg_description import get_comment
from replctl.catalog.pg_inherits import descendants_of
from replctl.catalog.pg_type import type_oid, type_schema_oid
from replctl.catalog.pg_wal import version_at
from replctl.catalog.relation_kind import ReplicaIdentity
from replctl.catalog.ruleutils import own_collation
from replctl.catalog.transaction import Catalog
from replctl.catalog.type_definition import (
    composite_statement,
    domain_statements,
    enum_statement,
)
from replctl.lake.restored_column import is_restored
from replctl.replication.published_relation import TableToCopy
from replctl.replication.table_definition import (
    ColumnDefinition,
    TableDefinition,
    TypeDefinition,
)
from replctl.types.delta_type import native_text
from replctl.types.quote import quote_string
from replctl.types.type_kind import TypeKind


def table_definition(
    environment: CatalogEnvironment, table: TableToCopy, cluster: int
) -> TableDefinition:
    """Return the definition of a published table.

    The subscriber gets plain columns: defaults, generation expressions, identities and partitions
    stay at the publisher.

    Args:
        environment: an environment without a search path, so that all names have their schemas.
        cluster: the publisher's system identifier.
    """
    relation = table.relation
    columns = [column for column in relation.columns if column.attnum in table.columns]
    names = {column.attnum: column.name for column in columns}
    key = relation.primary_key
    identity = None
    if relation.replica_identity == ReplicaIdentity.INDEX:
        identity = next((i for i in relation.indexes if i.is_replica_identity), None)
    if identity is not None and key is not None and identity.oid == key.oid:
        identity = None
    types: dict[str, TypeDefinition] = {}
    for column in columns:
        types |= {
            name: _type(environment, name) for name in _types(environment, column.declared_type)
        }
    return TableDefinition(
        relation.schema,
        relation.name,
        tuple(_column(environment, relation, column) for column in columns),
        None if key is None else _key(key, names),
        None if identity is None else _key(identity, names),
        relation.replica_identity == ReplicaIdentity.FULL,
        get_comment(environment.catalog, "pg_class", relation.oid),
        tuple(types.values()),
        relation.oid,
        frozenset(column.attnum for column in relation.columns),
        cluster if relation.storage is not None and relation.storage.is_adopted else 0,
    )


def _key(index: Index, names: dict[int, str]) -> tuple[str, tuple[str, ...]] | None:
    """Return the name and the columns of an index; None if one of them is not published."""
    if not names.keys() >= set(index.key):
        return None
    return index.name, tuple(names[attnum] for attnum in index.key)


def _column(
    environment: CatalogEnvironment, relation: Relation, column: Column
) -> ColumnDefinition:
    return ColumnDefinition(
        column.name,
        environment.format_type(column.declared_type, column.declared_typmod),
        own_collation(environment, column),
        column.not_null,
        get_comment(environment.catalog, "pg_class", relation.oid, column.attnum),
        column.attnum,
        column.missing_value,
        _is_computed(environment.catalog, relation, column),
        _is_restored(environment.catalog, relation, column),
        column.declared_type,
        column.declared_typmod,
        native_text(column.type),
    )


def _is_computed(catalog: Catalog, relation: Relation, column: Column) -> bool:
    """Return whether the values of a column that was added at the catalog's LSN were computed row
    by row.  In this case the table was written when the column was added.
    """
    lsn = catalog.snapshot.as_of_lsn
    if lsn is None or column.missing_value is not None or not column.has_default:
        return False
    tree = load_relations(catalog, descendants_of(catalog, relation.oid)).values()
    for leaf in tree:
        own, stored = leaf.column(column.name), leaf.storage
        if own is None or stored is None:
            continue
        since = stored.columns[own.attnum].since_version
        version = version_at(catalog, leaf.oid, lsn)
        if since is not None and version is not None and since <= version:
            return True
    return False


def _is_restored(catalog: Catalog, relation: Relation, column: Column) -> bool:
    """Return whether a column that was added at the catalog's LSN is one that another program had
    dropped (`is_restored`).
    """
    lsn, storage = catalog.snapshot.as_of_lsn, relation.storage
    if lsn is None or storage is None or not storage.is_adopted:
        return False
    version = version_at(catalog, relation.oid, lsn)
    if version is None:
        return False
    return is_restored(storage, storage.columns[column.attnum], version - 1, version)


def _types(environment: CatalogEnvironment, name: str) -> Iterator[str]:
    """Yield the enums, domains and composite types that a type needs, and the type itself if it is
    one of these.  Yield a type after its parts.
    """
    type_ = environment.type(name)
    if type_.is_array:
        yield from _types(environment, type_.element or "")
    elif type_.kind == TypeKind.DOMAIN:
        yield from _types(environment, environment.domain_base(type_)[0])
    for column in environment.columns(type_) or () if type_.is_composite else ():
        yield from _types(environment, column.type)
    if not type_.is_builtin and (
        type_.kind in (TypeKind.DOMAIN, TypeKind.ENUM) or type_.is_composite
    ):
        yield name


def _type(environment: CatalogEnvironment, name: str) -> TypeDefinition:
    type_ = environment.type(name)
    if type_.kind == TypeKind.ENUM:
        word, statements = "TYPE", [enum_statement(environment, name)]
    elif type_.kind == TypeKind.COMPOSITE:
        word, statements = "TYPE", [composite_statement(environment, name)]
    else:
        word, statements = "DOMAIN", domain_statements(environment, name)
    comment = get_comment(environment.catalog, "pg_type", type_oid(name))
    if comment is not None:
        shown = environment.format_type(name)
        statements.append(f"COMMENT ON {word} {shown} IS {quote_string(comment)}")
    schema_name = environment.schema_name(type_schema_oid(environment.catalog, name)) or ""
    return TypeDefinition(schema_name, type_.sql_name, tuple(statements))
