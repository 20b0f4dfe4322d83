"""Add relations with their columns, indexes and constraints to the catalog, and remove them
(PostgreSQL's heap.c and index.c).
"""

from __future__ import annotations

import json
from dataclasses import astuple
from typing import Any

from sqlalchemy import or_, select

from replctl.catalog import schema, state_schema
from replctl.catalog.acl import AclKind
from replctl.catalog.aclchk import put_column_acl
from replctl.catalog.int2vector import encode_attnums
from replctl.catalog.native_column import stored_options
from replctl.catalog.pg_class import (
    Column,
    Constraint,
    Index,
    Relation,
    encode_bound,
)
from replctl.catalog.pg_default_acl import new_object_acl
from replctl.catalog.pg_description import set_comment
from replctl.catalog.pg_inherits import insert_parent
from replctl.catalog.pg_type import get_type, type_oid
from replctl.catalog.relation_kind import ConstraintKind, RelKind, ReplicaIdentity
from replctl.catalog.storage_column import (
    StorageColumn,
    insert_storage_column,
    release_storage_name,
)
from replctl.catalog.transaction import Catalog
from replctl.expr import pg_node_tree
from replctl.types import builtin

_ACL_KINDS: dict[str, AclKind] = {
    RelKind.TABLE: "table",
    RelKind.PARTITIONED_TABLE: "table",
    RelKind.VIEW: "table",
    RelKind.MATERIALIZED_VIEW: "table",
    RelKind.SEQUENCE: "sequence",
}


def insert_relation(catalog: Catalog, relation: Relation) -> None:
    """Add a relation: its pg_class row, its columns, and the key of a partitioned table.

    Indexes, constraints and parents are added by their own functions.
    """
    kind, place = _ACL_KINDS.get(relation.kind), relation.schema_oid
    catalog.insert(
        schema.pg_class,
        oid=relation.oid,
        relname=relation.name,
        relnamespace=relation.schema_oid,
        reltype=type_oid(relation.row_type) if relation.row_type else 0,
        relowner=relation.owner,
        relkind=relation.kind,
        relpersistence=relation.persistence,
        relispopulated=relation.is_populated,
        relreplident=relation.replica_identity,
        relispartition=relation.is_partition,
        relpartbound=None
        if relation.partition_bound is None
        else encode_bound(relation.partition_bound),
        reloptions=json.dumps(relation.options) if relation.options else None,
        relacl=None if kind is None else new_object_acl(catalog, kind, relation.owner, place),
    )
    for column in relation.columns:
        insert_column(catalog, relation.oid, column)
    if relation.partition_key is not None:
        key = relation.partition_key
        catalog.insert(
            schema.pg_partitioned_table,
            partrelid=relation.oid,
            partstrat=key.strategy,
            partattrs=encode_attnums(key.attnums),
            partexprs=json.dumps([pg_node_tree.dumps(expr) for expr in key.exprs])
            if key.exprs
            else None,
        )


def has_changed_columns(catalog: Catalog, relid: int) -> bool:
    """Return whether the transaction has added, changed or dropped columns of a relation."""
    table, own = schema.pg_attribute, catalog.xids.all
    changed = or_(table.c.xmin.in_(own), table.c.xmax.in_(own))
    query = select(table.c.attnum).where(table.c.attrelid == relid, changed).limit(1)
    return bool(own) and catalog.connection.execute(query).first() is not None


def insert_column(catalog: Catalog, relid: int, column: Column) -> None:
    """Add a column and its default."""
    catalog.insert(schema.pg_attribute, attrelid=relid, **_column_values(column))
    _insert_default(catalog, relid, column)


def update_column(catalog: Catalog, relid: int, column: Column) -> None:
    """Replace the stored state of a column, including its default."""
    pg_attribute, pg_attrdef = schema.pg_attribute, schema.pg_attrdef
    is_default = (pg_attrdef.c.adrelid == relid, pg_attrdef.c.adnum == column.attnum)
    catalog.update(
        pg_attribute,
        pg_attribute.c.attrelid == relid,
        pg_attribute.c.attnum == column.attnum,
        **_column_values(column),
    )
    stored = catalog.first(pg_attrdef, *is_default)
    new = None if column.default is None else pg_node_tree.dumps(column.default)
    if (None if stored is None else stored.adbin) != new:  # an unchanged default keeps its OID
        catalog.delete(pg_attrdef, *is_default)
        _insert_default(catalog, relid, column)


def default_oid(catalog: Catalog, relid: int, attnum: int) -> int:
    """Return the OID of a column's default or generation expression in pg_attrdef; 0 if it has
    none.
    """
    table = schema.pg_attrdef
    row = catalog.first(table, table.c.adrelid == relid, table.c.adnum == attnum)
    return 0 if row is None else int(row.oid)


def remove_column(catalog: Catalog, relid: int, column: Column) -> None:
    """Mark a column as dropped, and remove its default, privileges and comment.  The column keeps
    its number and its column in storage (RemoveAttributeById).
    """
    dropped = Column(
        column.attnum,
        f"........pg.dropped.{column.attnum}........",
        "",
        column.typmod,
        is_dropped=True,
        dimensions=column.dimensions,
        storage=column.storage or get_type(catalog, column.declared_type).storage,
    )
    update_column(catalog, relid, dropped)
    put_column_acl(catalog, relid, column.attnum, ())
    set_comment(catalog, "pg_class", relid, None, number=column.attnum)


def _column_values(column: Column) -> dict[str, Any]:
    return {
        "attnum": column.attnum,
        "attname": column.name,
        "atttypid": type_oid(column.declared_type),
        "atttypmod": column.declared_typmod,
        "attndims": column.dimensions,
        "attcollation": builtin.collations().get(column.collation or "", 0),
        "attnotnull": column.not_null,
        "atthasdef": column.default is not None and not column.identity,
        "attidentity": column.identity,
        "attgenerated": column.generated,
        "attisdropped": column.is_dropped,
        "attislocal": column.is_local,
        "attinhcount": column.inherited_count,
        "attmissingval": column.missing_value,
        "attfieldnames": column.field_names,
        "attstorage": column.storage or "",
        "attcompression": column.compression or "",
        "attstattarget": column.statistics,
        "attoptions": stored_options(column),
    }


def _insert_default(catalog: Catalog, relid: int, column: Column) -> None:
    if column.default is not None:
        catalog.insert(
            schema.pg_attrdef,
            oid=catalog.new_oid(),
            adrelid=relid,
            adnum=column.attnum,
            adbin=pg_node_tree.dumps(column.default),
        )


def insert_index(catalog: Catalog, relation: Relation, index: Index) -> None:
    """Add an index on `relation`, as a separate relation."""
    kind = RelKind.PARTITIONED_INDEX if relation.is_partitioned else RelKind.INDEX
    index_relation = Relation(
        index.oid, index.name, relation.schema, relation.schema_oid, kind, relation.owner, "",
        relation.persistence, ReplicaIdentity.NOTHING, is_partition=index.parent_oid != 0,
        options=index.options,
    )  # fmt: skip
    insert_relation(catalog, index_relation)
    catalog.insert(
        schema.pg_index,
        indexrelid=index.oid,
        indrelid=relation.oid,
        indnkeyatts=len(index.key),
        indisunique=index.is_unique,
        indisprimary=index.is_primary,
        indisreplident=index.is_replica_identity,
        indnullsnotdistinct=index.nulls_not_distinct,
        indimmediate=not index.is_deferrable,
        indisclustered=index.is_clustered,
        indam=index.access_method,
        indkeydetails=json.dumps([astuple(detail) for detail in index.details])
        if index.details
        else None,
        indexprs=_exprs(index),
        indkey=encode_attnums(index.key + index.including),
        indpred=None if index.predicate is None else pg_node_tree.dumps(index.predicate),
    )
    if index.parent_oid:
        insert_parent(catalog, index.oid, index.parent_oid, 1)


def _exprs(index: Index) -> str | None:
    if not index.exprs:
        return None
    return json.dumps([pg_node_tree.dumps(expr) for expr in index.exprs])


def insert_constraint(catalog: Catalog, relation: Relation, constraint: Constraint) -> None:
    """Add a constraint of `relation`."""
    is_foreign = constraint.kind == ConstraintKind.FOREIGN_KEY
    catalog.insert(
        schema.pg_constraint,
        oid=constraint.oid,
        conname=constraint.name,
        connamespace=relation.schema_oid,
        contype=constraint.kind,
        conrelid=relation.oid,
        contypid=0,
        conindid=constraint.index_oid,
        conparentid=constraint.parent_oid,
        confrelid=constraint.ref_relid,
        confupdtype=constraint.on_update if is_foreign else " ",
        confdeltype=constraint.on_delete if is_foreign else " ",
        confmatchtype=constraint.match if is_foreign else " ",
        conkey=encode_attnums(constraint.columns) if constraint.columns else None,
        confkey=encode_attnums(constraint.ref_columns) if is_foreign else None,
        confdelsetcols=encode_attnums(constraint.on_delete_columns) or None,
        conbin=None if constraint.check is None else pg_node_tree.dumps(constraint.check),
        connoinherit=constraint.no_inherit,
        conenforced=constraint.is_enforced,
        condeferrable=constraint.is_deferrable,
        conislocal=constraint.is_local,
        coninhcount=constraint.inherited_count,
    )


def update_constraint(catalog: Catalog, constraint: Constraint) -> None:
    """Replace the properties of a stored constraint that may change."""
    pg_constraint = schema.pg_constraint
    catalog.update(
        pg_constraint,
        pg_constraint.c.oid == constraint.oid,
        conname=constraint.name,
        conindid=constraint.index_oid,
        conparentid=constraint.parent_oid,
        conbin=None if constraint.check is None else pg_node_tree.dumps(constraint.check),
        conislocal=constraint.is_local,
        coninhcount=constraint.inherited_count,
    )


def delete_constraint(catalog: Catalog, oid: int) -> None:
    """Remove a constraint. The caller removes the constraint's index."""
    catalog.delete(schema.pg_constraint, schema.pg_constraint.c.oid == oid)


def update_index(catalog: Catalog, index: Index) -> None:
    """Replace the properties of a stored index that may change, including its parent."""
    pg_class, pg_index, pg_inherits = schema.pg_class, schema.pg_index, schema.pg_inherits
    catalog.update(
        pg_index,
        pg_index.c.indexrelid == index.oid,
        indisprimary=index.is_primary,
        indisreplident=index.is_replica_identity,
        indimmediate=not index.is_deferrable,
        indisclustered=index.is_clustered,
        indexprs=_exprs(index),
        indpred=None if index.predicate is None else pg_node_tree.dumps(index.predicate),
    )
    catalog.update(
        pg_class,
        pg_class.c.oid == index.oid,
        relname=index.name,
        relispartition=index.parent_oid != 0,
    )
    catalog.delete(pg_inherits, pg_inherits.c.inhrelid == index.oid)
    if index.parent_oid:
        insert_parent(catalog, index.oid, index.parent_oid, 1)


def update_relation(catalog: Catalog, relation: Relation) -> None:
    """Replace those properties of a relation that may change, in its row of pg_class."""
    pg_class = schema.pg_class
    bound = relation.partition_bound
    catalog.update(
        pg_class,
        pg_class.c.oid == relation.oid,
        relname=relation.name,
        relnamespace=relation.schema_oid,
        relowner=relation.owner,
        relpersistence=relation.persistence,
        relispopulated=relation.is_populated,
        relrowsecurity=relation.has_row_security,
        relforcerowsecurity=relation.forces_row_security,
        relreplident=relation.replica_identity,
        relispartition=relation.is_partition,
        relpartbound=None if bound is None else encode_bound(bound),
        reloptions=json.dumps(relation.options) if relation.options else None,
    )


def replace_storage_column(
    catalog: Catalog, relation: Relation, former: Column, column: StorageColumn
) -> None:
    """Assign another column in storage to a relation's column: a new one, or an existing one that
    no column of the relation used.

    Args:
        relation, former: the relation and its column before the change.
    """
    assert relation.storage is not None
    relid, attribute, stored = relation.oid, schema.pg_attribute, state_schema.storage_column
    catalog.update(
        stored,
        stored.c.relid == relid,
        stored.c.attnum == relation.storage.columns[former.attnum].number,
        owner=former.attnum,
        atttypid=type_oid(former.type),
        atttypmod=former.typmod,
    )
    release_storage_name(catalog, relid, column.name)
    insert_storage_column(
        catalog, relid, column.number, column.name, column.since_version, column.physical_name
    )
    catalog.update(
        attribute,
        attribute.c.attrelid == relid,
        attribute.c.attnum == former.attnum,
        attfilenode=column.number,
    )


def delete_relation(catalog: Catalog, relation: Relation) -> None:
    """Remove a relation with its columns, indexes and constraints from the catalogs.

    Its rows in storage_table and storage_column stay, because decoding may still read earlier
    versions.
    """
    for index in relation.indexes:
        delete_index(catalog, index.oid)
    for table, column in (
        (schema.pg_constraint, schema.pg_constraint.c.conrelid),
        (schema.pg_attribute, schema.pg_attribute.c.attrelid),
        (schema.pg_attrdef, schema.pg_attrdef.c.adrelid),
        (schema.pg_inherits, schema.pg_inherits.c.inhrelid),
        (schema.pg_partitioned_table, schema.pg_partitioned_table.c.partrelid),
        (schema.pg_publication_rel, schema.pg_publication_rel.c.prrelid),
        (schema.pg_rewrite, schema.pg_rewrite.c.ev_class),
        (schema.pg_policy, schema.pg_policy.c.polrelid),
        (schema.pg_class, schema.pg_class.c.oid),
    ):
        catalog.delete(table, column == relation.oid)
    if relation.row_type:
        oid = type_oid(relation.row_type)
        catalog.delete(schema.pg_type, schema.pg_type.c.typrelid == relation.oid)
        catalog.delete(schema.pg_type, schema.pg_type.c.typelem == oid)


def delete_index(catalog: Catalog, oid: int) -> None:
    """Remove an index. The caller must have removed the indexes of partitions that belong to it."""
    catalog.delete(schema.pg_index, schema.pg_index.c.indexrelid == oid)
    catalog.delete(schema.pg_inherits, schema.pg_inherits.c.inhrelid == oid)
    catalog.delete(schema.pg_class, schema.pg_class.c.oid == oid)
