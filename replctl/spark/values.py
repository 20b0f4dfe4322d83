"""The arguments of jobs: relations and commits as plain values, without the catalog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace

from replctl.catalog.pg_class import PartitionBound
from replctl.errors import PostgresError
from replctl.expr.nodes import Expr, Var, walk
from replctl.record import dataclass
from replctl.relation_name import DomainName
from replctl.replication.update_transformation import Action
from replctl.types.delta_type import shown_type
from replctl.types.text_length import TextLength

#: Maximum size in bytes of the files that VACUUM FULL writes.  It must be small enough that a
#: change can rewrite a file.
OPTIMIZED_FILE_SIZE = 128 * 2**20

#: The first letters of the columns with the old and the new row of a change: o<attnum>, n<attnum>.
IMAGES = ("o", "n")


@dataclass(frozen=True, slots=True)
class PartitionZone:
    """The time zone of a timestamp column that partitions a table.

    Attributes:
        name: the zone's name.
        others: the texts of those values in the log that contain a zone themselves.
    """

    name: str
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a relation in storage.

    Attributes:
        storage_name: the name in the Delta table; None if the table (at that version) lacks the
            column.  Then each row has `missing_value`.
        missing_value: a canonical text.
        text_of: the original type and modifier of a column to read as text.
        since_version: the first version with the column.
        names: the names of the column, each with the first version that has it, oldest first; the
            name is None if the column was dropped.
        fault: the error to raise if Spark reads the column.
        zone: the time zone of a timestamp that Spark would read as a different instant.
        unzoned: the versions, of those whose changes are read, in which Spark reads the right
            instant.
        is_wider: the table stores the column with a wider type, after an ALTER TABLE was rolled
            back.
        input_of: the column and its table as errors show them, if the type's input function must
            read the values, because other programs may have written them.
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
    is_wider: bool = False
    input_of: str | None = None
    unzoned: frozenset[int] = frozenset()

    def at(self, version: int) -> TableColumn:
        """Return the same column at a version."""
        name = self.names[0][1] if self.names else self.storage_name
        for number, later in self.names:
            name = later if number <= version else name
        there = name if self.since_version <= version else None
        zone = None if version in self.unzoned else self.zone
        return replace(self, storage_name=there, zone=zone)

    def returns(self, before: int, after: int) -> bool:
        """Return whether a version lacks the column, but an earlier and a later one have it."""
        is_missing = self.since_version <= before and self.at(before).storage_name is None
        return is_missing and self.at(after).storage_name is not None

    def as_text(self) -> TableColumn:
        """Return the same column with its values as text."""
        return replace(self, type="text", typmod=-1, text_of=(self.type, self.typmod))

    def as_shown(self) -> TableColumn:
        """Return the same column as queries show it: a native column becomes JSON."""
        shown = shown_type(self.type)
        return self if shown == self.type else replace(self.as_text(), type=shown)


@dataclass(frozen=True, slots=True)
class FileLayout:
    """The columns by which a Delta table partitions or clusters its files, by their names in
    storage.  A table has only one of the two.

    Attributes:
        clusters: paths: the name of a column, or of a column and of the fields in it.
    """

    partitions: tuple[str, ...] = ()
    clusters: tuple[tuple[str, ...], ...] = ()


#: The layout of a table that is neither partitioned nor clustered.
NO_LAYOUT = FileLayout()


@dataclass(frozen=True, slots=True)
class TableSource:
    """A relation to read: its columns, and the location of its rows.

    Attributes:
        location: path or URI of the Delta table; None if there are no rows yet.
        version: the version to read; None: the newest.
        left_out: names of columns of the Delta table that the relation does not have.  Writes keep
            their values.
        local: a function for `local_view`; None if Spark reads the table.
    """

    location: str | None
    columns: tuple[TableColumn, ...]
    version: int | None = None
    has_row_tracking: bool = True
    left_out: tuple[str, ...] = ()
    local: Callable[[], str | None] | None = field(default=None, compare=False)

    def local_view(self) -> str | None:
        """Return the name of a temporary view of the rows, if this process reads the table, else
        None.  The columns of the view are c<attnum>, row_version and row_id.
        """
        return None if self.local is None else self.local()

    def column(self, attnum: int) -> TableColumn:
        """Return the column with that attnum."""
        return next(column for column in self.columns if column.attnum == attnum)

    def as_shown(self) -> TableSource:
        """Return the same source with its columns as queries show them: native columns become
        JSON.
        """
        return replace(self, columns=tuple(column.as_shown() for column in self.columns))


@dataclass(frozen=True, slots=True)
class CommitNote:
    """The additions of a write to its commit: replctl's note, and the transaction identifier that
    makes a repetition harmless.

    Attributes:
        user_metadata: the text for Delta's commitInfo.
        application, step: Delta's txnAppId and txnVersion.  A second write with the same pair has
            no effect.
    """

    user_metadata: str
    application: str | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionRule:
    """The rule for the rows of a partition, at one level of partitioning.

    Attributes:
        keys: attnums of the key columns in the root table.
        types: the (type, typmod) of each key column.
        bound: the bound of the partition; None for the default partition.
        siblings: for the default partition, the bounds of the other partitions.
    """

    keys: tuple[int, ...]
    types: tuple[tuple[str, int], ...]
    bound: PartitionBound | None
    siblings: tuple[PartitionBound, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredExpr:
    """An expression that a Delta table stores for its rows, in Spark's SQL over the table's
    columns.

    Attributes:
        columns: the names of the table's columns, with their attnums in the target.
        partition: a partition column, if the expression only requires that the text in this column
            is not empty; else None.
        length: the length, if the expression only requires that texts have this length; else None.
    """

    text: str
    columns: tuple[tuple[str, int], ...]
    partition: str | None = None
    length: TextLength | None = None


@dataclass(frozen=True, slots=True)
class Leaf:
    """A table that holds rows of a relation: the relation itself, or one of its partitions.

    Attributes:
        relid: the table's OID.
        name: the table's name, for messages.
        source: the stored table, with the root's column numbers.
        rules: the rules for the table's rows, from the root down; () if it accepts all rows.
        not_null, checks: the table's own constraints, which the root lacks.
        generated: the expressions of generated columns, by attnum, that differ from the root's.
    """

    relid: int
    name: str
    source: TableSource
    rules: tuple[PartitionRule, ...] = ()
    not_null: tuple[int, ...] = ()
    checks: tuple[tuple[str, Expr | StoredExpr], ...] = ()
    generated: tuple[tuple[int, Expr], ...] = ()


#: The attnum of a virtual column for the first call of nextval().  Further calls have the following
#: numbers.  Tables have fewer columns than that.
NEXT_VALUE = 0x7000

#: The attnum 0 of the virtual columns for the row that INSERT proposes, next to the row that it
#: conflicts with.
EXCLUDED = 0x6000


@dataclass(frozen=True, slots=True)
class EnumType:
    """An enum: the name with the schema, for messages, and the labels."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowField:
    """An attribute of a composite type.

    Attributes:
        type: the built-in type that stores values; text for enums and rows.
        user_type: the enum of the value or of the elements of its array, or the type of the row.
    """

    type: str
    typmod: int = -1
    user_type: EnumType | RowType | None = None


@dataclass(frozen=True, slots=True)
class RowType:
    """A composite type: its attributes in their order."""

    fields: tuple[RowField, ...]


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column of a table to write.

    Attributes:
        sent: the position (from 1) of the published column with the values for this column, or
            None.  Local statements do not use it.
        default: the value in a new row if the column is not sent; None: NULL.
        taken: the values for all new rows, for each call of nextval() in `default`.  In
            `default`, columns from NEXT_VALUE on stand for the calls.
        generated: the expression that computes the column's value.
        user_type: the enum of a sent column or of the elements of its array, or its composite type.
        is_identity: an identity column of Delta, which an update must not name.
        is_assigned: Delta assigns the values in new rows, so a write must not name the column.
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
    user_type: EnumType | RowType | None = None
    is_identity: bool = False
    is_assigned: bool = False


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """A unique index.

    Attributes:
        attnums: the columns of the index.
        nulls_not_distinct: NULL equals NULL in the index.
        leaf: the index in `Target.leaves` of the only leaf partition with this unique index; None
            if all have it.
        condition: the condition of a partial index, over the target's columns: the index contains
            only rows that satisfy it.
    """

    name: str
    attnums: tuple[int, ...]
    nulls_not_distinct: bool = False
    leaf: int | None = None
    condition: Expr | None = None

    @property
    def used(self) -> set[int]:
        """Return the attnums of all columns in the index and in its condition."""
        nodes = () if self.condition is None else walk(self.condition)
        return {*self.attnums, *(node.attnum for node in nodes if isinstance(node, Var))}


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key, as one of its two tables sees it.

    Attributes:
        columns: attnums in the table to write, in the order of `other_columns`.
        other: the stored tables with the rows of the other relation.
        other_columns: attnums in the other relation.
        is_own: the other relation is also the table to write.
        match_full: the foreign key is MATCH FULL.
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
        constraint: the name of the domain's CHECK; None for NOT NULL.
    """

    attnum: int
    domain: DomainName
    constraint: str | None
    condition: Expr


@dataclass(frozen=True, slots=True)
class Target:
    """A relation to write.

    Attributes:
        name: `schema.name`, for messages.
        key: attnums of the columns that identify a row; () if only the whole row does.
        leaves: the tables that hold the relation's rows.
        checks: the names and conditions of the CHECK constraints.
        unique: the unique indexes.
        domain_tests: the conditions for received values.
        is_leaf: the relation holds its rows itself.
    """

    name: str
    columns: tuple[TargetColumn, ...]
    key: tuple[int, ...]
    leaves: tuple[Leaf, ...]
    checks: tuple[tuple[str, Expr], ...] = ()
    unique: tuple[UniqueKey, ...] = ()
    domain_tests: tuple[DomainTest, ...] = ()
    is_leaf: bool = False

    def column(self, attnum: int) -> TargetColumn:
        """Return the column with that attnum."""
        return next(column for column in self.columns if column.attnum == attnum)

    @property
    def key_columns(self) -> list[TargetColumn]:
        """Return the columns that identify a row."""
        return [self.column(attnum) for attnum in self.key]


@dataclass(frozen=True, slots=True)
class SentColumn:
    """A published column, with its name and type at the publisher.

    Attributes:
        is_key: the column is part of the replica identity, so the old row has its value.
    """

    name: str
    type: str
    typmod: int
    is_key: bool = True


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """The files that a version has removed, and the files that it has added, as two Delta tables.

    Attributes:
        before, after: the locations of these tables; None if there are no files.
    """

    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class FeedVersion:
    """A version of a table to decode, with its position in the batch.

    Attributes:
        changes_keys: an UPDATE may have changed a key, so row ids must pair the images.
        first: the first of several successive versions that are compared together: only the rows
            before the first and after the last count.  None: a single version.
        is_compared: Delta cannot read the version's feed, so replctl compares the rows before
            and after the version.
        files: the files to compare; None: the whole table before and after.
        has_row_ids: rows on both sides have row ids, which pair them.
        run: the number of a run of versions.  Spark can read their feeds together, because the
            metadata does not change in a run.
        images: the view of the rows to compare, if they are already computed (`narrowed_version`):
            version, side, row_id, c<attnum>.
        feed: a function that returns the name of a view of the feed, if this process has read it
            (`local_feed.feed_columns`).
        updates: the same for the updated rows, which row ids pair (`local_feed.update_columns`).
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
    feed: Callable[[], str] | None = field(default=None, compare=False)
    updates: Callable[[], str] | None = field(default=None, compare=False)

    @property
    def before(self) -> int:
        """Return the version with which this one is compared."""
        return (self.version if self.first is None else self.first) - 1


@dataclass(frozen=True, slots=True)
class ChangeSource:
    """The changes of one table to decode, while its definition stays the same.

    Attributes:
        name: the table's name in messages.
        source: the table, with its columns in these versions.
        versions: the versions to decode, oldest first.
        key: attnums of the primary key, () without a key.
        key_names: the names of the key's columns.
        published: attnums of the published columns, in the order of the result.
        filters: the row filters of each published action; () if all rows are published.
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
    """The rows to copy from one table of a published relation.

    Attributes:
        source: the table at the snapshot's version, with the column numbers of the published
            relation.
        published: attnums of the published columns, in the order of the result.
        filters: row filters; a row must satisfy at least one of them.  () if all rows are
            published.
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
        updates: the reconcile may change rows that differ.
        deletes: it may delete rows that are not published, if they satisfy one of these conditions;
            () for all such rows, None for none.
    """

    updates: bool
    deletes: tuple[Expr, ...] | None


@dataclass(frozen=True, slots=True)
class ForeignChanges:
    """The commits of other writers in a leaf partition of a target.

    Attributes:
        source: the leaf partition.
        versions: those versions of other writers that change rows.
    """

    source: TableSource
    versions: tuple[FeedVersion, ...]
