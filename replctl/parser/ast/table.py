"""Tables, their constraints, indexes and sequences."""

from __future__ import annotations

from typing import Literal

from replctl.parser.ast.expression import RangeVar, RawExpr, TypeName
from replctl.parser.ast.query import SelectStmt
from replctl.parser.ast.replication import DefElem
from replctl.parser.ast.syntax_node import Node
from replctl.record import dataclass


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constraint(Node):
    """A constraint of a column or of a table; for a column's constraint `columns` is ()."""

    kind: Literal[
        "null", "not_null", "default", "generated", "identity", "check", "primary", "unique",
        "foreign", "exclusion",
    ]  # fmt: skip
    name: str | None = None
    columns: tuple[str, ...] = ()
    expr: RawExpr | None = None
    including: tuple[str, ...] = ()
    index_name: str | None = None  # USING INDEX
    nulls_not_distinct: bool = False
    references: RangeVar | None = None
    ref_columns: tuple[str, ...] = ()
    match: Literal["simple", "full", "partial"] = "simple"
    on_delete: str = "no action"
    on_update: str = "no action"
    generated_when: Literal["always", "by default"] = "always"
    deferrable: bool = False
    initially_deferred: bool = False
    skip_validation: bool = False
    not_enforced: bool = False  # replctl trusts that rows of an adopted table satisfy it
    no_inherit: bool = False
    options: tuple[DefElem, ...] = ()
    tablespace: str | None = None  # of its index
    on_delete_columns: tuple[str, ...] = ()  # ON DELETE SET NULL (columns)
    sequence: tuple[DefElem, ...] = ()  # options of an identity column's sequence
    access_method: str | None = None  # of an exclusion constraint
    exclusions: tuple[tuple[IndexElem, tuple[str, ...]], ...] = ()  # element WITH operator
    where: RawExpr | None = None  # of an exclusion constraint


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ColumnDef(Node):
    """A column of CREATE TABLE; `type_name` is None for the column options of PARTITION OF."""

    name: str
    type_name: TypeName | None
    constraints: tuple[Constraint, ...] = ()
    collation: tuple[str, ...] = ()
    storage: str | None = None
    compression: str | None = None
    collation_pos: int = -1  # the offset of COLLATE


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableLike(Node):
    relation: RangeVar
    including: tuple[str, ...] = ()
    excluding: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PartitionElem(Node):
    """A column or an expression of a partition key."""

    name: str | None
    expr: RawExpr | None = None
    collation: tuple[str, ...] = ()
    opclass: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PartitionSpec(Node):
    strategy: str
    elements: tuple[PartitionElem, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PartitionBound(Node):
    """FOR VALUES ... or DEFAULT; MINVALUE and MAXVALUE are ColumnRefs, as in gram.y."""

    kind: Literal["default", "list", "range", "hash"]
    values: tuple[RawExpr, ...] = ()
    lower: tuple[RawExpr, ...] = ()
    upper: tuple[RawExpr, ...] = ()
    modulus: int = 0
    remainder: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateTable(Node):
    relation: RangeVar
    elements: tuple[ColumnDef | Constraint | TableLike, ...] = ()
    persistence: Literal["permanent", "temporary", "unlogged"] = "permanent"
    if_not_exists: bool = False
    inherits: tuple[RangeVar, ...] = ()
    partition_of: RangeVar | None = None
    partition_bound: PartitionBound | None = None
    partition_spec: PartitionSpec | None = None
    access_method: str | None = None
    options: tuple[DefElem, ...] = ()
    on_commit: str | None = None
    tablespace: str | None = None
    location: str | None = None  # USING delta LOCATION '...'
    catalog_table: str | None = None  # USING delta TABLE '...'


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateTableAs(Node):
    relation: RangeVar
    columns: tuple[str, ...]
    query: SelectStmt
    with_data: bool = True
    if_not_exists: bool = False
    persistence: Literal["permanent", "temporary", "unlogged"] = "permanent"
    is_materialized_view: bool = False
    access_method: str | None = None
    options: tuple[DefElem, ...] = ()
    on_commit: str | None = None
    tablespace: str | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterTableCmd(Node):
    """One action of ALTER TABLE; `kind` decides which fields are set."""

    kind: Literal[
        "add_column", "drop_column", "alter_type", "set_default", "drop_default", "set_not_null",
        "drop_not_null", "add_identity", "alter_identity", "drop_identity",
        "drop_expression",
        "add_constraint", "drop_constraint", "validate_constraint",
        "replica_identity", "attach_partition", "detach_partition", "inherit", "no_inherit",
        "owner_to", "set_options", "reset_options", "set_storage", "set_statistics",
        "set_compression", "set_column_options", "reset_column_options", "cluster_on",
        "set_without_cluster", "set_logged", "set_unlogged",
        "row_level_security", "other",
    ]  # fmt: skip
    name: str | None = None
    column: ColumnDef | None = None
    constraint: Constraint | None = None
    type_name: TypeName | None = None
    expr: RawExpr | None = None
    relation: RangeVar | None = None
    bound: PartitionBound | None = None
    collation: tuple[str, ...] = ()
    value: str | None = None
    options: tuple[DefElem, ...] = ()
    missing_ok: bool = False
    behavior: Literal["restrict", "cascade"] = "restrict"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterTable(Node):
    """ALTER TABLE, or ALTER SEQUENCE, INDEX and so on with the same actions; and ALTER TYPE for the
    attributes of a composite type."""

    relation: RangeVar
    commands: tuple[AlterTableCmd, ...]
    missing_ok: bool = False
    object_type: Literal["table", "index", "view", "materialized view", "sequence", "type"] = (
        "table"
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IndexElem(Node):
    name: str | None
    expr: RawExpr | None = None
    collation: tuple[str, ...] = ()
    opclass: tuple[str, ...] = ()
    direction: Literal["default", "asc", "desc"] = "default"
    nulls: Literal["default", "first", "last"] = "default"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateIndex(Node):
    name: str | None
    relation: RangeVar
    elements: tuple[IndexElem, ...]
    is_unique: bool = False
    access_method: str = "btree"
    including: tuple[IndexElem, ...] = ()
    nulls_not_distinct: bool = False
    where: RawExpr | None = None
    if_not_exists: bool = False
    concurrently: bool = False
    options: tuple[DefElem, ...] = ()
    tablespace: str | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttachIndex(Node):
    """ALTER INDEX `relation` ATTACH PARTITION `partition`."""

    relation: RangeVar
    partition: RangeVar


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateSequence(Node):
    relation: RangeVar
    options: tuple[DefElem, ...] = ()
    if_not_exists: bool = False
    is_unlogged: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterSequence(Node):
    relation: RangeVar
    options: tuple[DefElem, ...]
    missing_ok: bool = False
