"""Read relations from the catalog, with their columns, indexes, constraints and partitions."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import field
from typing import Any, Literal, TypeAlias

from sqlalchemy import Row, select, true

from replctl.catalog import schema
from replctl.catalog.delta_type_option import options_and_type
from replctl.catalog.int2vector import decode_attnums
from replctl.catalog.pg_domain import domain_bases, user_type_bases
from replctl.catalog.pg_inherits import descendants_of
from replctl.catalog.pg_type import type_name
from replctl.catalog.relation_kind import (
    ConstraintKind,
    ForeignKeyAction,
    ForeignKeyMatch,
    Generated,
    Identity,
    PartitionStrategy,
    RelKind,
    RelPersistence,
    ReplicaIdentity,
)
from replctl.catalog.storage import Storage, load_storage
from replctl.catalog.transaction import Catalog
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes, pg_node_tree
from replctl.record import dataclass
from replctl.relation_name import RelationName
from replctl.types import builtin
from replctl.types.delta_type import shown_type
from replctl.types.named_relation import NamedRelation
from replctl.types.type_kind import ToastCompression, TypeStorage


@dataclass(frozen=True, slots=True)
class Column:
    """A row of pg_attribute with its default; a dropped column keeps its attnum."""

    attnum: int
    name: str
    type: str
    typmod: int = -1
    collation: str | None = None
    not_null: bool = False
    default: nodes.Expr | None = None
    generated: Generated = Generated.NONE
    identity: Identity = Identity.NONE
    is_dropped: bool = False
    is_local: bool = True
    inherited_count: int = 0
    dimensions: int = 0
    missing_value: str | None = None  # the value for rows written before the column was added
    storage: TypeStorage | None = None  # None for the type's default
    compression: ToastCompression | None = None
    statistics: int | None = None
    options: dict[str, str] = field(default_factory=dict, hash=False)
    domain: str = ""  # the declared type if it is a domain; `type` is then its base type
    domain_default: nodes.Expr | None = None
    user_type: str = ""  # the declared type if it is another user-defined type with a stored type
    foreign_default: str = ""  # the default of a Delta table that replctl cannot evaluate
    field_names: str | None = None  # fields of STRUCTs, if others write them (table_metadata.py)

    @property
    def declared_type(self) -> str:
        """Return the type that statements show: the user-defined type, or the column's own type."""
        return self.domain or self.user_type or shown_type(self.type)

    @property
    def declared_typmod(self) -> int:
        """Return the modifier that belongs to `declared_type`."""
        return -1 if self.domain or self.user_type else self.typmod

    @property
    def has_default(self) -> bool:
        """Return whether the column, its domain or its Delta table has a default."""
        defaults = (self.default, self.domain_default)
        return any(default is not None for default in defaults) or bool(self.foreign_default)

    @property
    def filled(self) -> nodes.Expr | None:
        """Return the value that a new row gets if a statement gives none; None for NULL. A domain
        may have its own default, or forbid NULL (build_column_default).

        Raises:
            FeatureNotSupported: the Delta table has a default that replctl cannot evaluate.
        """
        if self.foreign_default:
            raise FeatureNotSupported(
                f'the default of column "{self.name}" of the Delta table is not supported',
                detail=f"It is {self.foreign_default}, which only Spark evaluates.",
                hint="Give the column a value, or use ALTER TABLE ... ALTER COLUMN ... SET"
                " DEFAULT.",
            )
        if self.default is not None or not self.domain:
            return self.default
        value = self.domain_default
        if value is None:
            value = nodes.Const(self.type, None, self.typmod, self.collation)
        return nodes.CoerceToDomain(value, self.domain)

    @property
    def filling(self) -> nodes.Expr:
        """Return `filled`, or a NULL constant."""
        return self.filled or nodes.Const(self.type, None, self.typmod, self.collation)


@dataclass(frozen=True, slots=True)
class KeyDetail:
    """A column of an index, as CREATE INDEX specifies it.

    Attributes:
        name: the name of the column in the index, if it is an expression.
        collation, opclass: None for the defaults of the column and the type.
        option: pg_index.indoption: 1 is DESC, 2 is NULLS FIRST.
    """

    name: str = ""
    collation: str | None = None
    opclass: str | None = None
    option: int = 0


@dataclass(frozen=True, slots=True)
class Index:
    """A row of pg_index with the index's name.  `key` has the attnums of the key columns, and 0 for
    each expression.
    """

    oid: int
    name: str
    key: tuple[int, ...]
    including: tuple[int, ...] = ()
    is_unique: bool = False
    is_primary: bool = False
    is_replica_identity: bool = False
    nulls_not_distinct: bool = False
    predicate: nodes.Expr | None = None
    parent_oid: int = 0  # the partitioned index that it belongs to
    is_deferrable: bool = False  # its constraint is deferrable, so it cannot identify rows
    is_clustered: bool = False
    access_method: str = "btree"
    exprs: tuple[nodes.Expr, ...] = ()  # one for each 0 of the key
    details: tuple[KeyDetail, ...] = ()  # one for each column of the key; (): only defaults
    options: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def is_unique_over_columns(self) -> bool:
        """Return whether the index is unique, and its key has no expressions.  It may have a
        predicate.
        """
        return self.is_unique and 0 not in self.key

    @property
    def is_plain_unique(self) -> bool:
        """Return whether the index is unique over columns for all rows, so it can identify
        rows.
        """
        return self.is_unique_over_columns and self.predicate is None


@dataclass(frozen=True, slots=True)
class Constraint:
    """A row of pg_constraint.

    Attributes:
        is_enforced: False for a key of an adopted table that replctl assumes to be valid without a
            check.
    """

    oid: int
    name: str
    kind: ConstraintKind
    columns: tuple[int, ...] = ()
    index_oid: int = 0
    parent_oid: int = 0
    check: nodes.Expr | None = None
    ref_relid: int = 0
    ref_columns: tuple[int, ...] = ()
    on_update: ForeignKeyAction = ForeignKeyAction.NO_ACTION
    on_delete: ForeignKeyAction = ForeignKeyAction.NO_ACTION
    match: ForeignKeyMatch = ForeignKeyMatch.SIMPLE
    is_local: bool = True
    inherited_count: int = 0
    no_inherit: bool = False
    is_enforced: bool = True
    is_deferrable: bool = False
    on_delete_columns: tuple[int, ...] = ()  # columns that ON DELETE SET NULL or SET DEFAULT sets


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """The partition key of a table."""

    strategy: PartitionStrategy
    attnums: tuple[int, ...]  # 0 for an expression
    exprs: tuple[nodes.Expr, ...] = ()  # one for each 0


#: An end of a range: a value in canonical text, or one of the infinities.
RangeDatum: TypeAlias = tuple[Literal["value", "minvalue", "maxvalue"], str | None]


@dataclass(frozen=True, slots=True)
class PartitionBound:
    """The bound of a partition; values are canonical texts of the partition key's types."""

    kind: Literal["default", "list", "range", "hash"]
    values: tuple[str | None, ...] = ()
    lower: tuple[RangeDatum, ...] = ()
    upper: tuple[RangeDatum, ...] = ()
    modulus: int = 0
    remainder: int = 0


@dataclass(frozen=True, slots=True)
class Relation(NamedRelation):
    """A relation: its row of pg_class, its columns, indexes, constraints and so on.  `columns`
    omits dropped columns.
    """

    oid: int
    name: str
    schema: str
    schema_oid: int
    kind: RelKind
    owner: int
    row_type: str
    persistence: RelPersistence = RelPersistence.PERMANENT
    replica_identity: ReplicaIdentity = ReplicaIdentity.DEFAULT
    columns: tuple[Column, ...] = ()
    indexes: tuple[Index, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    parents: tuple[int, ...] = ()
    is_partition: bool = False
    partition_bound: PartitionBound | None = None
    partition_key: PartitionKey | None = None
    options: dict[str, str] = field(default_factory=dict, hash=False)
    storage: Storage | None = None
    dropped_attnums: tuple[int, ...] = ()
    has_row_security: bool = False  # policies apply to roles other than the owner
    forces_row_security: bool = False  # policies also apply to the owner
    is_populated: bool = True  # False: a materialized view that was not filled yet

    @property
    def primary_key(self) -> Index | None:
        return next((index for index in self.indexes if index.is_primary), None)

    @property
    def is_partitioned(self) -> bool:
        return self.kind == RelKind.PARTITIONED_TABLE

    def column(self, name: str) -> Column | None:
        """Return the column of that name; None if there is none."""
        return next((column for column in self.columns if column.name == name), None)

    def column_at(self, attnum: int) -> Column:
        """Return the column with that number.

        Raises:
            KeyError: there is no such column, or it was dropped.
        """
        for column in self.columns:
            if column.attnum == attnum:
                return column
        raise KeyError(attnum)

    def index_columns(self, index: Index) -> tuple[Column, ...]:
        """Return the columns of an index's key, in the key's order, without expressions."""
        return tuple(self.column_at(attnum) for attnum in index.key if attnum)

    def foreign_keys(self) -> tuple[Constraint, ...]:
        return tuple(
            constraint
            for constraint in self.constraints
            if constraint.kind == ConstraintKind.FOREIGN_KEY
        )

    def checks(self) -> tuple[Constraint, ...]:
        return tuple(
            constraint for constraint in self.constraints if constraint.kind == ConstraintKind.CHECK
        )


# ---------------------------------------------------------------------------------------------
# Reading


def find_relation_oid(catalog: Catalog, name: str, schema_oid: int) -> int | None:
    """Return the OID of the relation of that name in a schema; None if there is none."""
    pg_class = schema.pg_class
    row = catalog.first(pg_class, pg_class.c.relname == name, pg_class.c.relnamespace == schema_oid)
    return None if row is None else int(row.oid)


def get_relation(catalog: Catalog, oid: int) -> Relation | None:
    """Return the relation with that OID; None if the database has none."""
    return load_relations(catalog, [oid]).get(oid)


def load_relations(catalog: Catalog, oids: Collection[int]) -> dict[int, Relation]:
    """Return the existing relations among these OIDs, by OID. The number of queries is fixed for
    each 500 OIDs.  Catalogs for reading load a relation only once (PostgreSQL's relcache).
    """
    known: dict[int, Relation | None] = {}
    if catalog.is_for_reading:
        known = catalog.cached("relations", dict)
    ordered = sorted(set(oids))
    missing = [oid for oid in ordered if oid not in known]
    for start in range(0, len(missing), 500):
        some = missing[start : start + 500]
        known |= {**dict.fromkeys(some), **_load(catalog, some)}
    return {oid: relation for oid in ordered if (relation := known[oid]) is not None}


def relation_names(catalog: Catalog, oids: Collection[int]) -> dict[int, RelationName]:
    """Return schema and name of the existing relations among these OIDs, by OID."""
    pg_class, pg_namespace = schema.pg_class, schema.pg_namespace
    wanted = set(oids)
    query = (
        select(pg_class.c.oid, pg_namespace.c.nspname, pg_class.c.relname)
        .join(pg_namespace, pg_namespace.c.oid == pg_class.c.relnamespace)
        .where(catalog.visible(pg_class), catalog.visible(pg_namespace))
    )
    return {
        int(row.oid): RelationName(str(row.nspname), str(row.relname))
        for row in catalog.connection.execute(query)
        if row.oid in wanted
    }


def index_table_oid(catalog: Catalog, index_oid: int) -> int:
    """Return the OID of an index's table."""
    row = catalog.first(schema.pg_index, schema.pg_index.c.indexrelid == index_oid)
    assert row is not None
    return int(row.indrelid)


def relation_oids(
    catalog: Catalog, kinds: Collection[RelKind], schema_oid: int | None = None
) -> list[int]:
    """Return the OIDs of the relations of these kinds, in one schema or in all (None), sorted."""
    pg_class = schema.pg_class
    rows = catalog.select(
        pg_class,
        pg_class.c.relkind.in_(list(kinds)),
        true() if schema_oid is None else pg_class.c.relnamespace == schema_oid,
        order_by=[pg_class.c.oid],
    )
    return [int(row.oid) for row in rows]


def leaf_partitions(catalog: Catalog, relation: Relation) -> list[Relation]:
    """Return the tables with a relation's rows: its leaf partitions if it is partitioned, else
    itself.
    """
    if not relation.is_partitioned:
        return [relation]
    loaded = load_relations(catalog, descendants_of(catalog, relation.oid))
    return [loaded[oid] for oid in sorted(loaded) if not loaded[oid].is_partitioned]


def _load(catalog: Catalog, oids: list[int]) -> dict[int, Relation]:
    pg_class, pg_namespace = schema.pg_class, schema.pg_namespace
    class_rows = catalog.select_in(pg_class.c.oid, oids)
    schema_oids = {int(row.relnamespace) for row in class_rows}
    schema_names = {
        int(row.oid): str(row.nspname) for row in catalog.select_in(pg_namespace.c.oid, schema_oids)
    }
    pg_attribute = schema.pg_attribute.c
    attributes = catalog.select_in(
        pg_attribute.attrelid, oids, pg_attribute.attrelid, pg_attribute.attnum
    )
    columns = _load_columns(catalog, oids, attributes)
    indexes = _load_indexes(catalog, oids)
    constraints = _load_constraints(catalog, oids)
    parents = _load_parents(catalog, oids)
    partitioned = [int(row.oid) for row in class_rows if row.relkind == RelKind.PARTITIONED_TABLE]
    partition_keys = _load_partition_keys(catalog, partitioned) if partitioned else {}
    storages = load_storage(catalog, oids, attributes)
    result = {}
    for row in class_rows:
        oid = int(row.oid)
        all_columns = columns.get(oid, [])
        result[oid] = Relation(
            oid=oid,
            name=str(row.relname),
            schema=schema_names[int(row.relnamespace)],
            schema_oid=int(row.relnamespace),
            kind=RelKind(row.relkind),
            owner=int(row.relowner),
            row_type=type_name(int(row.reltype)),
            persistence=RelPersistence(row.relpersistence),
            is_populated=bool(row.relispopulated),
            has_row_security=bool(row.relrowsecurity),
            forces_row_security=bool(row.relforcerowsecurity),
            replica_identity=ReplicaIdentity(row.relreplident),
            columns=tuple(column for column in all_columns if not column.is_dropped),
            dropped_attnums=tuple(column.attnum for column in all_columns if column.is_dropped),
            indexes=tuple(indexes.get(oid, [])),
            constraints=tuple(constraints.get(oid, [])),
            parents=tuple(parents.get(oid, [])),
            is_partition=bool(row.relispartition),
            partition_bound=None if row.relpartbound is None else decode_bound(row.relpartbound),
            partition_key=partition_keys.get(oid),
            options=json.loads(row.reloptions) if row.reloptions else {},
            storage=storages.get(oid),
        )
    return result


def _load_columns(
    catalog: Catalog, oids: list[int], attributes: Sequence[Row[Any]]
) -> dict[int, list[Column]]:
    pg_attrdef = schema.pg_attrdef
    defaults = {
        (int(row.adrelid), int(row.adnum)): pg_node_tree.loads(row.adbin)
        for row in catalog.select_in(pg_attrdef.c.adrelid, oids)
    }
    collation_names = {oid: name for name, oid in builtin.collations().items()}
    domains, others = domain_bases(catalog), user_type_bases(catalog)
    result: dict[int, list[Column]] = defaultdict(list)
    for row in attributes:
        declared = type_name(int(row.atttypid))
        found = domains.get(declared) or others.get(declared)
        options, declared = options_and_type(row.attoptions, declared)
        result[int(row.attrelid)].append(
            Column(
                attnum=int(row.attnum),
                name=str(row.attname),
                type=declared if found is None else found.base,
                typmod=int(row.atttypmod) if found is None else found.typmod,
                domain=declared if declared in domains else "",
                user_type=declared if declared in others else "",
                domain_default=None if found is None else found.default,
                collation=collation_names.get(int(row.attcollation)),
                not_null=bool(row.attnotnull),
                default=defaults.get((int(row.attrelid), int(row.attnum))),
                generated=Generated(row.attgenerated),
                identity=Identity(row.attidentity),
                is_dropped=bool(row.attisdropped),
                is_local=bool(row.attislocal),
                inherited_count=int(row.attinhcount),
                dimensions=int(row.attndims),
                missing_value=row.attmissingval,
                storage=TypeStorage(row.attstorage) if row.attstorage else None,
                compression=ToastCompression(row.attcompression) if row.attcompression else None,
                statistics=row.attstattarget,
                options=options,
                field_names=row.attfieldnames,
            )
        )
    return result


def _load_indexes(catalog: Catalog, oids: list[int]) -> dict[int, list[Index]]:
    pg_index, pg_class, pg_inherits = schema.pg_index, schema.pg_class, schema.pg_inherits
    rows = catalog.select_in(pg_index.c.indrelid, oids)
    if not rows:
        return {}
    index_oids = [int(row.indexrelid) for row in rows]
    classes = {int(row.oid): row for row in catalog.select_in(pg_class.c.oid, index_oids)}
    names = {oid: str(row.relname) for oid, row in classes.items()}
    parents = {
        int(row.inhrelid): int(row.inhparent)
        for row in catalog.select_in(pg_inherits.c.inhrelid, index_oids)
    }
    result: dict[int, list[Index]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: names[int(row.indexrelid)]):
        attnums = decode_attnums(row.indkey)
        oid = int(row.indexrelid)
        result[int(row.indrelid)].append(
            Index(
                oid=oid,
                name=names[oid],
                key=attnums[: row.indnkeyatts],
                including=attnums[row.indnkeyatts :],
                is_unique=bool(row.indisunique),
                is_primary=bool(row.indisprimary),
                is_replica_identity=bool(row.indisreplident),
                nulls_not_distinct=bool(row.indnullsnotdistinct),
                predicate=None if row.indpred is None else pg_node_tree.loads(row.indpred),
                parent_oid=parents.get(oid, 0),
                is_deferrable=not row.indimmediate,
                is_clustered=bool(row.indisclustered),
                access_method=str(row.indam),
                exprs=tuple(pg_node_tree.loads(text) for text in json.loads(row.indexprs or "[]")),
                details=tuple(
                    KeyDetail(*detail) for detail in json.loads(row.indkeydetails or "[]")
                ),
                options=json.loads(classes[oid].reloptions or "{}"),
            )
        )
    return result


def _load_constraints(catalog: Catalog, oids: list[int]) -> dict[int, list[Constraint]]:
    pg_constraint = schema.pg_constraint
    result: dict[int, list[Constraint]] = defaultdict(list)
    for row in catalog.select_in(pg_constraint.c.conrelid, oids, pg_constraint.c.conname):
        result[int(row.conrelid)].append(
            Constraint(
                oid=int(row.oid),
                name=str(row.conname),
                kind=ConstraintKind(row.contype),
                columns=decode_attnums(row.conkey or ""),
                index_oid=int(row.conindid),
                parent_oid=int(row.conparentid),
                check=None if row.conbin is None else pg_node_tree.loads(row.conbin),
                is_local=bool(row.conislocal),
                inherited_count=int(row.coninhcount),
                no_inherit=bool(row.connoinherit),
                is_enforced=bool(row.conenforced),
                is_deferrable=bool(row.condeferrable),
                **(_reference(row) if row.contype == ConstraintKind.FOREIGN_KEY else {}),
            )
        )
    return result


def _reference(row: Row[Any]) -> dict[str, Any]:
    """Return the fields of `Constraint` that only foreign keys have."""
    return {
        "ref_relid": int(row.confrelid),
        "ref_columns": decode_attnums(row.confkey),
        "on_update": ForeignKeyAction(row.confupdtype),
        "on_delete": ForeignKeyAction(row.confdeltype),
        "match": ForeignKeyMatch(row.confmatchtype),
        "on_delete_columns": decode_attnums(row.confdelsetcols or ""),
    }


def _load_parents(catalog: Catalog, oids: list[int]) -> dict[int, list[int]]:
    pg_inherits = schema.pg_inherits
    result: dict[int, list[int]] = defaultdict(list)
    for row in catalog.select_in(pg_inherits.c.inhrelid, oids, pg_inherits.c.inhseqno):
        result[int(row.inhrelid)].append(int(row.inhparent))
    return result


def _load_partition_keys(catalog: Catalog, oids: list[int]) -> dict[int, PartitionKey]:
    table = schema.pg_partitioned_table
    return {
        int(row.partrelid): PartitionKey(
            PartitionStrategy(row.partstrat),
            decode_attnums(row.partattrs),
            tuple(pg_node_tree.loads(text) for text in json.loads(row.partexprs))
            if row.partexprs
            else (),
        )
        for row in catalog.select(table, table.c.partrelid.in_(oids))
    }


# ---------------------------------------------------------------------------------------------
# Stored forms


def encode_bound(bound: PartitionBound) -> str:
    """Return a partition's bound as JSON."""
    return json.dumps(
        {name: value for name in PartitionBound.__slots__ if (value := getattr(bound, name))},
        ensure_ascii=False,
    )


def decode_bound(text: str) -> PartitionBound:
    """Parse the result of `encode_bound`."""
    fields = json.loads(text)
    for name in ("values",):
        fields[name] = tuple(fields.get(name, ()))
    for name in ("lower", "upper"):
        fields[name] = tuple((kind, value) for kind, value in fields.get(name, ()))
    return PartitionBound(**fields)
