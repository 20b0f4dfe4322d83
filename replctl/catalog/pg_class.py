"""Relations: tables, partitioned tables and indexes with their columns, constraints and
partitions."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import field
from typing import Any, Literal, TypeAlias

from sqlalchemy import Row, select, true

from replctl.catalog import schema
from replctl.catalog.acl import AclKind
from replctl.catalog.pg_default_acl import new_object_acl
from replctl.catalog.pg_type import type_name, type_oid
from replctl.catalog.table_home import TableHome
from replctl.catalog.transaction import Catalog
from replctl.expr import nodes, pg_node_tree
from replctl.record import dataclass
from replctl.types import builtin

RelKind: TypeAlias = Literal["r", "p", "i", "I", "S", "v", "m", "c", "f"]

#: What an error calls a relation of a kind (errdetail_relkind_not_supported in
#: catalog/objectaddress).
RELKIND_PLURAL = {
    "r": "tables",
    "i": "indexes",
    "S": "sequences",
    "v": "views",
    "m": "materialized views",
    "c": "composite types",
    "f": "foreign tables",
    "p": "partitioned tables",
    "I": "partitioned indexes",
}


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
    generated: str = ""  # s: stored
    identity: str = ""  # a: always, d: by default
    is_dropped: bool = False
    is_local: bool = True
    inherited_count: int = 0
    dimensions: int = 0
    missing_value: str | None = None  # what rows written before the column was added have in it


@dataclass(frozen=True, slots=True)
class Index:
    """A row of pg_index with its name; `key` are the attnums of the key columns, 0 for an
    expression."""

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

    @property
    def is_plain_unique(self) -> bool:
        """Unique over columns, for every row: what can identify rows."""
        return self.is_unique and self.predicate is None and 0 not in self.key


@dataclass(frozen=True, slots=True)
class Constraint:
    """A row of pg_constraint: p primary key, u unique, c check, f foreign key.

    Attributes:
        is_enforced: False for a key that the rows of an adopted table are believed to have.
    """

    oid: int
    name: str
    kind: Literal["p", "u", "c", "f"]
    columns: tuple[int, ...] = ()
    index_oid: int = 0
    parent_oid: int = 0
    check: nodes.Expr | None = None
    ref_relid: int = 0
    ref_columns: tuple[int, ...] = ()
    on_update: str = "a"
    on_delete: str = "a"
    match: str = "s"
    is_local: bool = True
    inherited_count: int = 0
    no_inherit: bool = False
    is_enforced: bool = True


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """How a partitioned table splits its rows: strategy r(ange), l(ist), h(ash)."""

    strategy: Literal["r", "l", "h"]
    attnums: tuple[int, ...]  # 0 where the key is an expression
    exprs: tuple[nodes.Expr, ...] = ()  # one for each 0


#: An end of a range: a value in canonical text, or one of the infinities.
RangeDatum: TypeAlias = tuple[Literal["value", "minvalue", "maxvalue"], str | None]


@dataclass(frozen=True, slots=True)
class PartitionBound:
    """Which rows a partition takes; values are canonical texts of the partition key's types."""

    kind: Literal["default", "list", "range", "hash"]
    values: tuple[str | None, ...] = ()
    lower: tuple[RangeDatum, ...] = ()
    upper: tuple[RangeDatum, ...] = ()
    modulus: int = 0
    remainder: int = 0


#: Columns in storage whose number is not that of the only column of a relation that has had them
#: have numbers from here on.
FIRST_STORAGE_NUMBER = 2**15

#: The storage parameter for deletion vectors of its Delta table, which some readers cannot read.
DELETION_VECTORS = "deletion_vectors"

#: The storage parameter of an adopted table whose files may lie anywhere, as a shallow clone's do.
FOREIGN_FILES = "foreign_files"
#: That which says the time zone of timestamps in the partition values of its log.
PARTITION_TIMEZONE = "partition_timezone"


@dataclass(frozen=True, slots=True)
class StorageColumn:
    """A column of a Delta table; `since_version` None: the table does not have it yet.

    `number` tells it from others: the attnum of the relation's column that has it, unless that had
    another type once.

    Attributes:
        name: the newest one.
        physical_name: its name in files, where others have renamed it (column mapping).
        renamed_version: the last version in which others renamed it, dropped it or put it back.
        is_dropped: others have dropped it.
    """

    name: str
    since_version: int | None
    number: int
    physical_name: str | None = None
    renamed_version: int | None = None
    is_dropped: bool = False

    @property
    def identity(self) -> str:
        """The name that stays when others rename the column."""
        return self.physical_name or self.name


@dataclass(frozen=True, slots=True)
class FormerColumn:
    """A column of a Delta table that a column of the relation had when it had another type."""

    attnum: int
    type: str
    typmod: int
    stored: StorageColumn


@dataclass(frozen=True, slots=True)
class Storage:
    """A relation's Delta table; `columns` by attnum, `former` from old to new.

    Attributes:
        has_location: the statement said where it lies (LOCATION).
        was_empty: the directory was empty when replctl made the table there; None: replctl has not
            begun to make it.
        has_foreign: another program has committed to it.
        is_read_only: it belongs to the cluster that this one is a copy of.
        has_row_ids: the rows of the newest version that was entered have row ids.
        taken_over: when somebody last went on with, or undid, what a dead process had begun to
            write, in microseconds since 1970.
    """

    location: str
    is_adopted: bool
    is_made: bool
    columns: dict[int, StorageColumn] = field(default_factory=dict, hash=False)
    former: tuple[FormerColumn, ...] = ()
    has_location: bool = False
    was_empty: bool | None = None
    has_foreign: bool = False
    taken_over: int | None = None
    is_read_only: bool = False
    has_row_ids: bool = True

    @property
    def has_own_row_ids(self) -> bool:
        """Return whether rows can be told apart by row ids at every version: of a table of others,
        nobody knows it."""
        return self.has_row_ids and not self.is_adopted

    @property
    def is_in_base(self) -> bool:
        """Return whether replctl chose the directory, which then holds nothing else."""
        return not self.is_adopted and not self.has_location and not self.is_read_only


@dataclass(frozen=True, slots=True)
class Relation:
    """A row of pg_class with all that belongs to it.  `columns` leaves dropped columns out."""

    oid: int
    name: str
    schema: str
    schema_oid: int
    kind: RelKind
    owner: int
    row_type: str
    persistence: str = "p"
    replica_identity: str = "d"  # d(efault), n(othing), f(ull), i(ndex)
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
    has_row_security: bool = False  # policies count
    forces_row_security: bool = False  # for its owner, too
    is_populated: bool = True  # False: a materialized view that has no rows yet

    @property
    def qualified_name(self) -> str:
        """`schema.name`, as messages of logical replication have it, without quotes."""
        return f"{self.schema}.{self.name}"

    @property
    def primary_key(self) -> Index | None:
        return next((index for index in self.indexes if index.is_primary), None)

    @property
    def is_partitioned(self) -> bool:
        return self.kind == "p"

    def column(self, name: str) -> Column | None:
        """The column of that name, if there is one."""
        return next((column for column in self.columns if column.name == name), None)

    def column_at(self, attnum: int) -> Column:
        """The column with that number.

        Raises:
            KeyError: it has none, or it was dropped.
        """
        for column in self.columns:
            if column.attnum == attnum:
                return column
        raise KeyError(attnum)

    def index_columns(self, index: Index) -> tuple[Column, ...]:
        """The columns of an index's key, in its order."""
        return tuple(self.column_at(attnum) for attnum in index.key)

    def foreign_keys(self) -> tuple[Constraint, ...]:
        return tuple(constraint for constraint in self.constraints if constraint.kind == "f")

    def checks(self) -> tuple[Constraint, ...]:
        return tuple(constraint for constraint in self.constraints if constraint.kind == "c")


# ---------------------------------------------------------------------------------------------
# Reading


def find_relation_oid(catalog: Catalog, name: str, schema_oid: int) -> int | None:
    """The OID of the relation of that name in a schema."""
    pg_class = schema.pg_class
    row = catalog.first(pg_class, pg_class.c.relname == name, pg_class.c.relnamespace == schema_oid)
    return None if row is None else int(row.oid)


def get_relation(catalog: Catalog, oid: int) -> Relation | None:
    """The relation with that OID, as this catalog sees it."""
    return load_relations(catalog, [oid]).get(oid)


def load_relations(catalog: Catalog, oids: Collection[int]) -> dict[int, Relation]:
    """The relations with these OIDs that there are, in a fixed number of queries for each 500 of
    them."""
    result: dict[int, Relation] = {}
    ordered = sorted(set(oids))
    for start in range(0, len(ordered), 500):
        result |= _load(catalog, ordered[start : start + 500])
    return result


def relation_names(catalog: Catalog, oids: Collection[int]) -> dict[int, tuple[str, str]]:
    """The (schema, name) of the relations with these OIDs that there are."""
    pg_class, pg_namespace = schema.pg_class, schema.pg_namespace
    wanted = set(oids)
    query = (
        select(pg_class.c.oid, pg_namespace.c.nspname, pg_class.c.relname)
        .join(pg_namespace, pg_namespace.c.oid == pg_class.c.relnamespace)
        .where(catalog.visible(pg_class), catalog.visible(pg_namespace))
    )
    return {
        int(row.oid): (str(row.nspname), str(row.relname))
        for row in catalog.connection.execute(query)
        if row.oid in wanted
    }


def index_table_oid(catalog: Catalog, index_oid: int) -> int:
    """The OID of the table that an index is on."""
    row = catalog.first(schema.pg_index, schema.pg_index.c.indexrelid == index_oid)
    assert row is not None
    return int(row.indrelid)


def relation_oids(
    catalog: Catalog, kinds: Iterable[str], schema_oid: int | None = None
) -> list[int]:
    """OIDs of the relations of these kinds, in one schema or in all, in their order of creation."""
    pg_class = schema.pg_class
    rows = catalog.select(
        pg_class,
        pg_class.c.relkind.in_(list(kinds)),
        true() if schema_oid is None else pg_class.c.relnamespace == schema_oid,
        order_by=[pg_class.c.oid],
    )
    return [int(row.oid) for row in rows]


def children_of(catalog: Catalog, oid: int) -> list[int]:
    """OIDs of the relations directly under a partitioned table or a parent."""
    pg_inherits = schema.pg_inherits
    rows = catalog.select(
        pg_inherits, pg_inherits.c.inhparent == oid, order_by=[pg_inherits.c.inhrelid]
    )
    return [int(row.inhrelid) for row in rows]


def descendants_of(catalog: Catalog, oid: int) -> list[int]:
    """OIDs of all relations below, nearest first, each once; `oid` itself comes first."""
    found = [oid]
    for parent in found:
        found.extend(child for child in children_of(catalog, parent) if child not in found)
    return found


def ancestors_of(catalog: Catalog, oid: int) -> list[int]:
    """OIDs of the partitioned tables that a partition belongs to, nearest first
    (get_partition_ancestors)."""
    pg_class, pg_inherits = schema.pg_class, schema.pg_inherits
    ancestors: list[int] = []
    current = oid
    while True:
        row = catalog.first(pg_class, pg_class.c.oid == current)
        if row is None or not row.relispartition:
            return ancestors
        link = catalog.first(pg_inherits, pg_inherits.c.inhrelid == current)
        if link is None:
            return ancestors
        current = int(link.inhparent)
        ancestors.append(current)


def leaf_partitions(catalog: Catalog, relation: Relation) -> list[Relation]:
    """The tables that hold a relation's rows: itself, or for a partitioned table its leaves."""
    if not relation.is_partitioned:
        return [relation]
    loaded = load_relations(catalog, descendants_of(catalog, relation.oid))
    return [loaded[oid] for oid in sorted(loaded) if not loaded[oid].is_partitioned]


def _load(catalog: Catalog, oids: list[int]) -> dict[int, Relation]:
    pg_class, pg_namespace = schema.pg_class, schema.pg_namespace
    class_rows = catalog.select(pg_class, pg_class.c.oid.in_(oids))
    schema_names = {
        int(row.oid): str(row.nspname)
        for row in catalog.select(
            pg_namespace, pg_namespace.c.oid.in_({row.relnamespace for row in class_rows})
        )
    }
    pg_attribute = schema.pg_attribute
    attributes = catalog.select(
        pg_attribute,
        pg_attribute.c.attrelid.in_(oids),
        order_by=[pg_attribute.c.attrelid, pg_attribute.c.attnum],
    )
    columns = _load_columns(catalog, oids, attributes)
    indexes = _load_indexes(catalog, oids)
    constraints = _load_constraints(catalog, oids)
    parents = _load_parents(catalog, oids)
    partitioned = [int(row.oid) for row in class_rows if row.relkind == "p"]
    partition_keys = _load_partition_keys(catalog, partitioned) if partitioned else {}
    storages = _load_storage(catalog, oids, attributes)
    result = {}
    for row in class_rows:
        oid = int(row.oid)
        all_columns = columns.get(oid, [])
        result[oid] = Relation(
            oid=oid,
            name=str(row.relname),
            schema=schema_names[int(row.relnamespace)],
            schema_oid=int(row.relnamespace),
            kind=row.relkind,
            owner=int(row.relowner),
            row_type=type_name(int(row.reltype)),
            persistence=str(row.relpersistence),
            is_populated=bool(row.relispopulated),
            has_row_security=bool(row.relrowsecurity),
            forces_row_security=bool(row.relforcerowsecurity),
            replica_identity=str(row.relreplident),
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
        for row in catalog.select(pg_attrdef, pg_attrdef.c.adrelid.in_(oids))
    }
    collation_names = {oid: name for name, oid in builtin.collations().items()}
    result: dict[int, list[Column]] = defaultdict(list)
    for row in attributes:
        result[int(row.attrelid)].append(
            Column(
                attnum=int(row.attnum),
                name=str(row.attname),
                type=type_name(int(row.atttypid)),
                typmod=int(row.atttypmod),
                collation=collation_names.get(int(row.attcollation)),
                not_null=bool(row.attnotnull),
                default=defaults.get((int(row.attrelid), int(row.attnum))),
                generated=str(row.attgenerated),
                identity=str(row.attidentity),
                is_dropped=bool(row.attisdropped),
                is_local=bool(row.attislocal),
                inherited_count=int(row.attinhcount),
                dimensions=int(row.attndims),
                missing_value=row.attmissingval,
            )
        )
    return result


def _load_indexes(catalog: Catalog, oids: list[int]) -> dict[int, list[Index]]:
    pg_index, pg_class, pg_inherits = schema.pg_index, schema.pg_class, schema.pg_inherits
    rows = catalog.select(pg_index, pg_index.c.indrelid.in_(oids))
    if not rows:
        return {}
    index_oids = [int(row.indexrelid) for row in rows]
    names = {
        int(row.oid): str(row.relname)
        for row in catalog.select(pg_class, pg_class.c.oid.in_(index_oids))
    }
    parents = {
        int(row.inhrelid): int(row.inhparent)
        for row in catalog.select(pg_inherits, pg_inherits.c.inhrelid.in_(index_oids))
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
            )
        )
    return result


def _load_constraints(catalog: Catalog, oids: list[int]) -> dict[int, list[Constraint]]:
    pg_constraint = schema.pg_constraint
    result: dict[int, list[Constraint]] = defaultdict(list)
    for row in catalog.select(
        pg_constraint, pg_constraint.c.conrelid.in_(oids), order_by=[pg_constraint.c.conname]
    ):
        result[int(row.conrelid)].append(
            Constraint(
                oid=int(row.oid),
                name=str(row.conname),
                kind=row.contype,
                columns=decode_attnums(row.conkey or ""),
                index_oid=int(row.conindid),
                parent_oid=int(row.conparentid),
                check=None if row.conbin is None else pg_node_tree.loads(row.conbin),
                ref_relid=int(row.confrelid),
                ref_columns=decode_attnums(row.confkey or ""),
                on_update=str(row.confupdtype),
                on_delete=str(row.confdeltype),
                match=str(row.confmatchtype),
                is_local=bool(row.conislocal),
                inherited_count=int(row.coninhcount),
                no_inherit=bool(row.connoinherit),
                is_enforced=bool(row.conenforced),
            )
        )
    return result


def _load_parents(catalog: Catalog, oids: list[int]) -> dict[int, list[int]]:
    pg_inherits = schema.pg_inherits
    result: dict[int, list[int]] = defaultdict(list)
    for row in catalog.select(
        pg_inherits, pg_inherits.c.inhrelid.in_(oids), order_by=[pg_inherits.c.inhseqno]
    ):
        result[int(row.inhrelid)].append(int(row.inhparent))
    return result


def _load_partition_keys(catalog: Catalog, oids: list[int]) -> dict[int, PartitionKey]:
    table = schema.pg_partitioned_table
    return {
        int(row.partrelid): PartitionKey(
            row.partstrat,
            decode_attnums(row.partattrs),
            tuple(pg_node_tree.loads(text) for text in json.loads(row.partexprs))
            if row.partexprs
            else (),
        )
        for row in catalog.select(table, table.c.partrelid.in_(oids))
    }


def storage_column_of(row: Row[Any]) -> StorageColumn:
    """Return a row of storage_column."""
    return StorageColumn(
        str(row.name),
        row.since_version,
        int(row.attnum),
        row.physical_name,
        row.renamed_version,
        bool(row.is_dropped),
    )


def _load_storage(
    catalog: Catalog, oids: list[int], attributes: Sequence[Row[Any]]
) -> dict[int, Storage]:
    table, column = schema.storage_table, schema.storage_column
    numbers = {
        (int(row.attrelid), int(row.attfilenode)): int(row.attnum)
        for row in attributes
        if row.attfilenode != 0
    }
    current = {(relid, attnum): number for (relid, number), attnum in numbers.items()}
    columns: dict[int, dict[int, StorageColumn]] = defaultdict(dict)
    former: dict[int, list[FormerColumn]] = defaultdict(list)
    for row in catalog.connection.execute(
        select(column).where(column.c.relid.in_(oids)).order_by(column.c.attnum)
    ):
        relid, number = int(row.relid), int(row.attnum)
        stored = storage_column_of(row)
        if (relid, number) in numbers:
            columns[relid][numbers[relid, number]] = stored
        elif (relid, number) not in current and 0 < number < FIRST_STORAGE_NUMBER:
            columns[relid][number] = stored
        elif row.owner is not None and 0 < number < current.get((relid, row.owner), 0):
            kind = type_name(int(row.atttypid))
            former[relid].append(FormerColumn(int(row.owner), kind, int(row.atttypmod), stored))
    home = TableHome(catalog.connection)
    return {
        int(row.relid): Storage(
            home.located(str(row.location)),
            bool(row.is_adopted),
            bool(row.is_made),
            columns[int(row.relid)],
            tuple(former[int(row.relid)]),
            bool(row.has_location),
            row.was_empty,
            bool(row.has_foreign),
            row.taken_over,
            bool(row.is_read_only),
            bool(row.has_row_ids),
        )
        for row in catalog.connection.execute(select(table).where(table.c.relid.in_(oids)))
    }


# ---------------------------------------------------------------------------------------------
# Writing


_ACL_KINDS: dict[str, AclKind] = {
    "r": "table",
    "p": "table",
    "v": "table",
    "m": "table",
    "S": "sequence",
}


def insert_relation(catalog: Catalog, relation: Relation) -> None:
    """Add a relation: its pg_class row, its columns, and for a partitioned table its key.

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


def insert_column(catalog: Catalog, relid: int, column: Column) -> None:
    """Add a column and its default."""
    catalog.insert(schema.pg_attribute, attrelid=relid, **_column_values(column))
    _insert_default(catalog, relid, column)


def update_column(catalog: Catalog, relid: int, column: Column) -> None:
    """Put a column's new state, default included, in the place of its old one."""
    pg_attribute, pg_attrdef = schema.pg_attribute, schema.pg_attrdef
    catalog.update(
        pg_attribute,
        pg_attribute.c.attrelid == relid,
        pg_attribute.c.attnum == column.attnum,
        **_column_values(column),
    )
    catalog.delete(pg_attrdef, pg_attrdef.c.adrelid == relid, pg_attrdef.c.adnum == column.attnum)
    _insert_default(catalog, relid, column)


def _column_values(column: Column) -> dict[str, Any]:
    return {
        "attnum": column.attnum,
        "attname": column.name,
        "atttypid": type_oid(column.type),
        "atttypmod": column.typmod,
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
    """Add an index on `relation`, as a relation of its own."""
    kind: RelKind = "I" if relation.is_partitioned else "i"
    index_relation = Relation(
        index.oid, index.name, relation.schema, relation.schema_oid, kind, relation.owner, "",
        relation.persistence, replica_identity="n", is_partition=index.parent_oid != 0,
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
        indkey=encode_attnums(index.key + index.including),
        indpred=None if index.predicate is None else pg_node_tree.dumps(index.predicate),
    )
    if index.parent_oid:
        insert_parent(catalog, index.oid, index.parent_oid, 1)


def insert_constraint(catalog: Catalog, relation: Relation, constraint: Constraint) -> None:
    """Add a constraint of `relation`."""
    is_foreign = constraint.kind == "f"
    catalog.insert(
        schema.pg_constraint,
        oid=constraint.oid,
        conname=constraint.name,
        connamespace=relation.schema_oid,
        contype=constraint.kind,
        conrelid=relation.oid,
        conindid=constraint.index_oid,
        conparentid=constraint.parent_oid,
        confrelid=constraint.ref_relid,
        confupdtype=constraint.on_update if is_foreign else " ",
        confdeltype=constraint.on_delete if is_foreign else " ",
        confmatchtype=constraint.match if is_foreign else " ",
        conkey=encode_attnums(constraint.columns) if constraint.columns else None,
        confkey=encode_attnums(constraint.ref_columns) if is_foreign else None,
        conbin=None if constraint.check is None else pg_node_tree.dumps(constraint.check),
        connoinherit=constraint.no_inherit,
        conenforced=constraint.is_enforced,
        conislocal=constraint.is_local,
        coninhcount=constraint.inherited_count,
    )


def update_constraint(catalog: Catalog, constraint: Constraint) -> None:
    """Put what may change of a constraint in the place of what it was."""
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
    """Remove a constraint; its index is the caller's matter."""
    catalog.delete(schema.pg_constraint, schema.pg_constraint.c.oid == oid)


def update_index(catalog: Catalog, index: Index) -> None:
    """Put what may change of an index, its parent included, in the place of what it was."""
    pg_class, pg_index, pg_inherits = schema.pg_class, schema.pg_index, schema.pg_inherits
    catalog.update(
        pg_index,
        pg_index.c.indexrelid == index.oid,
        indisprimary=index.is_primary,
        indisreplident=index.is_replica_identity,
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
    """Put what may change of a relation's own row in the place of what it was."""
    pg_class = schema.pg_class
    bound = relation.partition_bound
    catalog.update(
        pg_class,
        pg_class.c.oid == relation.oid,
        relname=relation.name,
        relnamespace=relation.schema_oid,
        relowner=relation.owner,
        relispopulated=relation.is_populated,
        relrowsecurity=relation.has_row_security,
        relforcerowsecurity=relation.forces_row_security,
        relreplident=relation.replica_identity,
        relispartition=relation.is_partition,
        relpartbound=None if bound is None else encode_bound(bound),
        reloptions=json.dumps(relation.options) if relation.options else None,
    )


def delete_parent(catalog: Catalog, child_oid: int, parent_oid: int) -> None:
    """Note that a relation does not inherit from another any more."""
    pg_inherits = schema.pg_inherits
    catalog.delete(
        pg_inherits, pg_inherits.c.inhrelid == child_oid, pg_inherits.c.inhparent == parent_oid
    )


def insert_parent(catalog: Catalog, child_oid: int, parent_oid: int, sequence: int) -> None:
    """Note that a relation inherits from, or is a partition of, another."""
    catalog.insert(schema.pg_inherits, inhrelid=child_oid, inhparent=parent_oid, inhseqno=sequence)


def insert_storage(
    catalog: Catalog, relid: int, location: str, *, is_adopted: bool, has_location: bool
) -> None:
    """Note where a relation's Delta table lies, or will lie; an adopted one is there."""
    catalog.insert(
        schema.storage_table,
        relid=relid,
        location=location,
        is_adopted=is_adopted,
        is_made=is_adopted,
        has_location=has_location,
        has_row_ids=not is_adopted,
    )


def insert_storage_column(
    catalog: Catalog,
    relid: int,
    number: int,
    name: str,
    since_version: int | None = None,
    physical_name: str | None = None,
) -> None:
    """Give a column its name in storage; `number` is its attnum."""
    catalog.insert(
        schema.storage_column,
        relid=relid,
        attnum=number,
        name=name,
        since_version=since_version,
        physical_name=physical_name,
    )


def replace_storage_column(
    catalog: Catalog, relation: Relation, former: Column, column: StorageColumn
) -> None:
    """Let a relation's column have another column in storage than before: a new one, or one that
    is there under a number of its own.

    Args:
        relation, former: the relation and its column before.
    """
    assert relation.storage is not None
    relid, attribute, stored = relation.oid, schema.pg_attribute, schema.storage_column
    catalog.update(
        stored,
        stored.c.relid == relid,
        stored.c.attnum == relation.storage.columns[former.attnum].number,
        owner=former.attnum,
        atttypid=type_oid(former.type),
        atttypmod=former.typmod,
    )
    catalog.delete(
        stored, stored.c.relid == relid, stored.c.name == column.name, stored.c.attnum < 0
    )
    insert_storage_column(catalog, relid, column.number, column.name, column.since_version)
    catalog.update(
        attribute,
        attribute.c.attrelid == relid,
        attribute.c.attnum == former.attnum,
        attfilenode=column.number,
    )


def delete_relation(catalog: Catalog, relation: Relation) -> None:
    """Remove a relation with its columns, indexes and constraints from the catalogs.

    Its storage rows stay: decoding may still have to read what was written before.
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
    """Remove an index; indexes of partitions that belong to it have to go first."""
    catalog.delete(schema.pg_index, schema.pg_index.c.indexrelid == oid)
    catalog.delete(schema.pg_inherits, schema.pg_inherits.c.inhrelid == oid)
    catalog.delete(schema.pg_class, schema.pg_class.c.oid == oid)


# ---------------------------------------------------------------------------------------------
# Stored forms


def encode_attnums(attnums: Iterable[int]) -> str:
    """(1, 3) -> `1 3`, the text of an int2vector."""
    return " ".join(map(str, attnums))


def decode_attnums(text: str) -> tuple[int, ...]:
    """`1 3` -> (1, 3)."""
    return tuple(map(int, text.split()))


def encode_bound(bound: PartitionBound) -> str:
    """A partition's bound as JSON."""
    return json.dumps(
        {name: value for name in PartitionBound.__slots__ if (value := getattr(bound, name))},
        ensure_ascii=False,
    )


def decode_bound(text: str) -> PartitionBound:
    """The bound that `encode_bound` wrote."""
    fields = json.loads(text)
    for name in ("values",):
        fields[name] = tuple(fields.get(name, ()))
    for name in ("lower", "upper"):
        fields[name] = tuple((kind, value) for kind, value in fields.get(name, ()))
    return PartitionBound(**fields)
