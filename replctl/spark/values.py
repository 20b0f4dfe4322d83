"""The arguments of Spark's jobs from the rest of replctl: relations and commits as plain values."""

from __future__ import annotations

from dataclasses import field, replace

from replctl.catalog.pg_class import PartitionBound
from replctl.errors import PostgresError
from replctl.expr.nodes import Expr, Var, walk
from replctl.record import dataclass
from replctl.replication.update_transformation import Action
from replctl.types.delta_type import shown_type

#: Maximum size in bytes of the files that VACUUM FULL writes: small enough for a change to rewrite
#: one.
OPTIMIZED_FILE_SIZE = 128 * 2**20


@dataclass(frozen=True, slots=True)
class PartitionZone:
    """The time zone of a timestamp that a table is partitioned by.

    Attributes:
        name: the zone's name.
        others: the texts of values with a zone of their own in the log.
    """

    name: str
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A relation's column in storage.  `storage_name` is None if the table (at that version) lacks
    it: then every row has `missing_value` (canonical text).

    `text_of` is the storage type of a column that is read as text.  Versions before `since_version`
    lack the column.  `names` has its names from some versions on, oldest first, None if it was
    dropped. Reading a column with a `fault` raises that error.  `zone` corrects a timestamp that
    Spark does not read as the written instant.
    """

    attnum: int
    type: str
    typmod: int
    storage_name: str | None
    missing_value: str | None = None
    text_of: tuple[str, int] | None = None
    since_version: int = 0
    names: tuple[tuple[int, str | None], ...] = ()
    fault: PostgresError | None = None
    zone: PartitionZone | None = None

    def at(self, version: int) -> TableColumn:
        """Return the same column at a version."""
        name = self.names[0][1] if self.names else self.storage_name
        for number, later in self.names:
            name = later if number <= version else name
        return replace(self, storage_name=name if self.since_version <= version else None)

    def as_text(self) -> TableColumn:
        """Return the same column with its values as text."""
        return replace(self, type="text", typmod=-1, text_of=(self.type, self.typmod))

    def as_shown(self) -> TableColumn:
        """Return the same column as queries see it: a native one has JSON."""
        shown = shown_type(self.type)
        return self if shown == self.type else replace(self.as_text(), type=shown)


@dataclass(frozen=True, slots=True)
class TableSource:
    """A relation to read: its columns, and the location of its rows.

    Attributes:
        location: path or URI of the Delta table; None if there are no rows yet.
        version: the version to read; None: the newest.
        left_out: names of columns of its owner that the relation does not have.  Writes keep their
            values.
    """

    location: str | None
    columns: tuple[TableColumn, ...]
    version: int | None = None
    has_row_tracking: bool = True
    left_out: tuple[str, ...] = ()

    def column(self, attnum: int) -> TableColumn:
        """Return the column with that attnum."""
        return next(column for column in self.columns if column.attnum == attnum)

    def as_shown(self) -> TableSource:
        """Return the same with its columns as queries see them."""
        return replace(self, columns=tuple(column.as_shown() for column in self.columns))


@dataclass(frozen=True, slots=True)
class CommitNote:
    """The content that a write adds to its commit: replctl's note, and the transaction identifier
    that makes a repetition harmless.

    Attributes:
        user_metadata: text for Delta's commitInfo.
        application, step: Delta's txnAppId and txnVersion: the same pair writes nothing a second
            time.
    """

    user_metadata: str
    application: str | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionRule:
    """The rule for the rows of a partition, at one level of partitioning.

    Attributes:
        strategy: r(ange), l(ist), h(ash).
        keys: attnums of the key columns in the root table's numbering.
        types: (type, typmod) of each.
        bound: the bound of the partition; None for the default partition.
        siblings: bounds of the other partitions, for the default partition.
    """

    strategy: str
    keys: tuple[int, ...]
    types: tuple[tuple[str, int], ...]
    bound: PartitionBound | None
    siblings: tuple[PartitionBound, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredExpr:
    """An expression of a Delta table for its rows, in Spark's SQL over its own columns.

    Attributes:
        columns: the names of the table's columns, with their attnums in the target.
        partition: the text partition column that the expression requires to be non-empty; None for
            any other expression.
    """

    text: str
    columns: tuple[tuple[str, int], ...]
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class Leaf:
    """A table that holds rows of a relation: the relation itself, or one of its partitions.

    Attributes:
        relid: its OID.
        name: its name, for messages.
        source: the table, with the root's column numbers.
        rules: the rules for its rows, from the root down; () if it takes all rows.
        not_null, checks: its own constraints, which the root lacks.
    """

    relid: int
    name: str
    source: TableSource
    rules: tuple[PartitionRule, ...] = ()
    not_null: tuple[int, ...] = ()
    checks: tuple[tuple[str, Expr | StoredExpr], ...] = ()


#: The number of a virtual column: the next value of a sequence.  Further calls of nextval() have
#: the following numbers; a table has fewer columns.
NEXT_VALUE = 0x7000


@dataclass(frozen=True, slots=True)
class EnumType:
    """An enum: its name with its schema, for messages, and its labels."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column of a table that is written.

    Attributes:
        sent: the position (from 1) of the published column with its values, or None; not used by
            local statements.
        default: the value in a new row if the column is not sent; None: NULL.
        taken: the values for all new rows of each call of nextval() in `default`, where they are
            columns from NEXT_VALUE on.
        generated: the expression that computes its value.
        enum: the type of a sent column, if it is an enum.
        is_identity: it is an identity column of Delta, which an update must not name.
        is_assigned: Delta assigns its values to new rows, so that a write must not name it.
    """

    attnum: int
    name: str
    type: str
    typmod: int
    not_null: bool
    sent: int | None
    default: Expr | None = None
    generated: Expr | StoredExpr | None = None
    taken: tuple[range, ...] = ()
    enum: EnumType | None = None
    is_identity: bool = False
    is_assigned: bool = False


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """A unique index: the attnums of its columns, and whether NULL equals NULL in it.

    `leaf` is the index of the only leaf partition that has it, None if all have it.  A partial
    index only contains the rows that satisfy its `condition`, over the target's columns.
    """

    name: str
    attnums: tuple[int, ...]
    nulls_not_distinct: bool = False
    leaf: int | None = None
    condition: Expr | None = None

    @property
    def used(self) -> set[int]:
        """The attnums of the columns of the index and its condition."""
        nodes = () if self.condition is None else walk(self.condition)
        return {*self.attnums, *(node.attnum for node in nodes if isinstance(node, Var))}


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key, seen from one of its two tables.

    Attributes:
        columns: attnums of the table that is written, in the order of `other_columns`.
        other: the tables that hold the other relation's rows.
        is_own: the other relation is this one.
        match_full: MATCH FULL.
    """

    columns: tuple[int, ...]
    other: tuple[TableSource, ...]
    other_columns: tuple[int, ...]
    is_own: bool = False
    match_full: bool = False


@dataclass(frozen=True, slots=True)
class DomainTest:
    """A condition that received values of a column must satisfy.

    Attributes:
        domain: the name of the domain, for messages.
        constraint: the name of its CHECK; None for NOT NULL.
    """

    attnum: int
    domain: str
    constraint: str | None
    condition: Expr


@dataclass(frozen=True, slots=True)
class Target:
    """A relation to write.

    Attributes:
        name: `schema.name`, for messages.
        key: attnums that identify a row, () if only the whole row does.
        leaves: the tables that hold its rows.
        checks: its CHECK constraints, by name.
        unique: its unique indexes.
        domain_tests: the conditions for received values.
    """

    name: str
    columns: tuple[TargetColumn, ...]
    key: tuple[int, ...]
    leaves: tuple[Leaf, ...]
    checks: tuple[tuple[str, Expr], ...] = ()
    unique: tuple[UniqueKey, ...] = ()
    domain_tests: tuple[DomainTest, ...] = ()

    def column(self, attnum: int) -> TargetColumn:
        """Return the column with that attnum."""
        return next(column for column in self.columns if column.attnum == attnum)

    @property
    def key_columns(self) -> list[TargetColumn]:
        """The columns that identify a row."""
        return [self.column(attnum) for attnum in self.key]


@dataclass(frozen=True, slots=True)
class SentColumn:
    """A published column: its name and type at the publisher."""

    name: str
    type: str
    typmod: int


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """The files that a version removed and those that it added, as two Delta tables.

    Attributes:
        before, after: their locations; None where there are no files.
    """

    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class FeedVersion:
    """A version of a table to decode, with its position in the batch.

    Attributes:
        changes_keys: an UPDATE in it may have changed the key, so that images are paired by row id.
        first: the first of several joined versions, of which only the rows before the first and
            after the last are compared; None: a single version.
        is_compared: Delta cannot read its feed: the rows before and after it are compared.
        files: the files to compare; None: the whole table before and after.
        has_row_ids: rows on both sides have row ids, which pair them.
        run: the number of a run of feeds that can be read together, because the metadata does not
            change in it.
        images: the view of the rows to compare, if they are already computed (`narrowed_version`).
    """

    version: int
    position: int
    changes_keys: bool = False
    is_compared: bool = False
    files: ChangedFiles | None = None
    has_row_ids: bool = False
    run: int = 0
    first: int | None = None
    images: str | None = None

    @property
    def before(self) -> int:
        """The version that it is compared with."""
        return (self.version if self.first is None else self.first) - 1


@dataclass(frozen=True, slots=True)
class ChangeSource:
    """The changes of one table to decode, under one set of definitions.

    Attributes:
        name: the table's name in messages.
        source: the table, with the columns that it has in these versions.
        versions: the versions whose changes count, oldest first.
        key: attnums of the primary key, () without one.
        key_names: the names of its columns.
        published: attnums of the published columns, in the order of the result.
        filters: for each published action its row filters; () lets every row pass.
    """

    name: str
    source: TableSource
    versions: tuple[FeedVersion, ...]
    key: tuple[int, ...]
    key_names: tuple[str, ...]
    published: tuple[int, ...]
    filters: dict[Action, tuple[Expr, ...]] = field(hash=False)


@dataclass(frozen=True, slots=True)
class CopySource:
    """The rows to copy of one of a relation's tables.

    Attributes:
        source: the table at the snapshot's version, columns numbered as the published relation's
            are.
        published: attnums of the published columns, in the order of the result.
        filters: row filters, of which a row must satisfy one.  () lets every row pass.
        policies: conditions of row-level security; a row must satisfy all of them.
    """

    source: TableSource
    published: tuple[int, ...]
    filters: tuple[Expr, ...]
    policies: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Mending:
    """The changes that a reconcile may make to rows of the target.  It always inserts missing rows.

    Attributes:
        updates: it may change rows that differ.
        deletes: conditions of the rows that it may delete if the publisher does not send them; ()
            for all, None for none.
    """

    updates: bool
    deletes: tuple[Expr, ...] | None


@dataclass(frozen=True, slots=True)
class ForeignChanges:
    """The commits of others in a leaf partition of a target.

    Attributes:
        source: the leaf.
        versions: the versions that change rows.
    """

    source: TableSource
    versions: tuple[FeedVersion, ...]
