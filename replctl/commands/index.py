"""CREATE INDEX, and the indexes of PRIMARY KEY and UNIQUE (indexcmds.c).

Indexes exist only in the catalog, because Spark does not use them.  But replctl enforces unique
indexes, and uses them to identify rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from functools import partial

from replctl.catalog.acl import Privilege
from replctl.catalog.aclchk import Privileges
from replctl.catalog.heap import (
    insert_constraint,
    insert_index,
    update_column,
    update_constraint,
    update_index,
)
from replctl.catalog.native_column import check_not_native
from replctl.catalog.pg_class import (
    Column,
    Constraint,
    Index,
    KeyDetail,
    Relation,
    find_relation_oid,
)
from replctl.catalog.pg_inherits import children_of
from replctl.catalog.relation_kind import INDEX_CONSTRAINTS, ConstraintKind, RelKind
from replctl.commands.ddl import Ddl, RowCheck, carry_out, require_rows
from replctl.commands.index_key import (
    check_access_method,
    check_no_system_columns,
    check_not_null_possible,
    check_sortable,
    column_type,
    free_column_name,
    included_columns,
    index_key,
    key_column,
)
from replctl.commands.naming import check_tablespace, relation_name
from replctl.commands.reloptions import index_options
from replctl.commands.table_expression import columns_used, index_predicate
from replctl.errors import (
    DuplicateObject,
    DuplicateTable,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidTableDefinition,
    NotNullViolation,
    PostgresError,
    TooManyColumns,
    WrongObjectType,
)
from replctl.expr import nodes
from replctl.expr.type_names import check_schema, schema_of_relation
from replctl.expr.user_type import without_user_types
from replctl.lake.conflict_message import duplicated
from replctl.lake.row_description import RowReader
from replctl.lake.table_read import queried_source
from replctl.parser import ast
from replctl.query.open_relation import open_relation
from replctl.record import dataclass
from replctl.session import Session
from replctl.spark import StagedColumn, to_sql
from replctl.transaction_block import prevent_in_block
from replctl.types.builtin import SystemRelation

#: The ends of the chosen names of indexes (ChooseIndexName).
_LABELS = {ConstraintKind.PRIMARY_KEY: "pkey", ConstraintKind.UNIQUE: "key", None: "idx"}
_MAX_COLUMNS = 32  # INDEX_MAX_KEYS


@dataclass(frozen=True, slots=True)
class IndexDraft:
    """The definition of an index that will be added to a table, with columns by name.

    Attributes:
        kind: the kind of the constraint that has the index; None for other indexes.
        predicate: the WHERE condition of a partial index.
        is_enforced: existing rows must satisfy the index.
        is_deferrable: the index belongs to a DEFERRABLE constraint.
        access_method, exprs, details, options: see Index.  An expression has the name '' in
            `columns`.
    """

    name: str | None
    columns: tuple[str, ...]
    kind: ConstraintKind | None
    is_unique: bool
    including: tuple[str, ...] = ()
    nulls_not_distinct: bool = False
    predicate: nodes.Expr | None = None
    is_enforced: bool = True
    is_deferrable: bool = False
    access_method: str = "btree"
    exprs: tuple[nodes.Expr, ...] = ()
    details: tuple[KeyDetail, ...] = ()
    options: dict[str, str] = field(default_factory=dict)


def create_index(session: Session, statement: ast.CreateIndex) -> str:
    """Add an index to a table and its partitions.

    Raises:
        PostgresError: the definition is wrong, or rows have duplicate keys.
        FeatureNotSupported: the index is neither a btree nor a hash index, or is unique over
            expressions.
    """
    if statement.concurrently:
        prevent_in_block(session.block, "CREATE INDEX CONCURRENTLY")
    return carry_out(session, lambda ddl: _create_index(ddl, statement))


def _create_index(ddl: Ddl, statement: ast.CreateIndex) -> str:
    check_schema(ddl.environment, schema_of_relation(ddl.environment, statement.relation))
    found = open_relation(ddl.environment, replace(statement.relation, pos=-1), or_sequence=True)
    if isinstance(found, SystemRelation):
        raise InsufficientPrivilege(f'permission denied: "{found.name}" is a system catalog')
    if found.kind in (RelKind.SEQUENCE, RelKind.VIEW):
        raise WrongObjectType(
            f'cannot create index on relation "{found.name}"',
            detail=f"This operation is not supported for {found.kind.plural}.",
        )
    ddl.privileges.check_relation_owner(found)
    if statement.concurrently and found.is_partitioned:
        raise FeatureNotSupported(
            f'cannot create index on partitioned table "{found.name}" concurrently'
        )
    check_tablespace(statement.tablespace)
    relation = found
    check_access_method(statement)
    predicate = None
    if statement.where is not None:
        predicate = index_predicate(ddl.environment, relation, statement.where, ddl.now)
    _check_count((*statement.elements, *statement.including))
    key = index_key(ddl, relation, statement)
    draft = IndexDraft(
        statement.name,
        key.columns,
        None,
        statement.is_unique,
        included_columns(relation, statement),
        statement.nulls_not_distinct,
        predicate,
        access_method=statement.access_method,
        exprs=key.exprs,
        details=key.details,
        options=index_options(statement.options, statement.access_method),
    )
    name = statement.name
    if statement.if_not_exists and name is not None and _exists(ddl, relation, name):
        ddl.notice(f'relation "{name}" already exists, skipping', sqlstate="42P07")
        return "CREATE INDEX"
    define_index(ddl, relation, draft, recurses=statement.relation.inherit)
    return "CREATE INDEX"


def _exists(ddl: Ddl, relation: Relation, name: str) -> bool:
    return find_relation_oid(ddl.catalog, name, relation.schema_oid) is not None


# ---------------------------------------------------------------------------------------------
# Definition


def define_index(
    ddl: Ddl,
    relation: Relation,
    draft: IndexDraft,
    *,
    parent: Index | None = None,
    recurses: bool = True,
    checks_rights: bool = True,
) -> Index:
    """Add an index and its constraint to a relation and its partitions (DefineIndex).

    Args:
        parent: the index of the partitioned table to which the new index belongs, if any.
        checks_rights: the role must have CREATE on the schemas of the new indexes, and own the
            partitions in which a primary key forbids NULL.

    Raises:
        InsufficientPrivilege: the role does not have these rights.
        DuplicateTable, DuplicateObject: the name is taken.
        FeatureNotSupported: rows of different partitions could have equal keys.
    """
    if checks_rights:
        ddl.privileges.check_schema(relation.schema_oid, relation.schema, Privilege.CREATE)
    if draft.kind == ConstraintKind.PRIMARY_KEY:
        check_not_null_possible(relation, draft.columns)
        if relation.primary_key is not None:
            raise InvalidTableDefinition(
                f'multiple primary keys for table "{relation.name}" are not allowed'
            )
    _check_count((*draft.columns, *draft.including))
    key = [key_column(relation, name) if name else 0 for name in draft.columns]
    including = tuple(key_column(relation, name) for name in draft.including)
    check_not_native(relation, "keys over columns of", filter(None, [*key, *including]))
    for name in filter(None, draft.columns):
        check_sortable(ddl, column_type(relation, name), draft.access_method)
    predicates = () if draft.predicate is None else (draft.predicate,)
    check_no_system_columns([*key, *including], [*draft.exprs, *predicates])
    if draft.is_unique and relation.is_partitioned:
        _check_partition_key(relation, key, draft)
    name = draft.name or _chosen_name(ddl, relation, draft)
    if _exists(ddl, relation, name):
        raise DuplicateTable(f'relation "{name}" already exists')
    if draft.kind is not None and any(
        constraint.name == name for constraint in relation.constraints
    ):
        raise DuplicateObject(f'constraint "{name}" for relation "{relation.name}" already exists')
    index = Index(
        ddl.catalog.new_oid(),
        name,
        tuple(key),
        including,
        draft.is_unique,
        draft.kind == ConstraintKind.PRIMARY_KEY,
        nulls_not_distinct=draft.nulls_not_distinct,
        predicate=draft.predicate,
        parent_oid=0 if parent is None else parent.oid,
        is_deferrable=draft.is_deferrable,
        access_method=draft.access_method,
        exprs=draft.exprs,
        details=draft.details,
        options=draft.options,
    )
    insert_index(ddl.catalog, relation, index)
    if draft.kind is not None:
        _insert_index_constraint(
            ddl, relation, index, draft.kind, parent, is_enforced=draft.is_enforced
        )
    nullable = [
        c
        for c in relation.index_columns(index)
        if draft.kind == ConstraintKind.PRIMARY_KEY and not c.not_null
    ]
    for column in nullable:
        update_column(ddl.catalog, relation.oid, replace(column, not_null=True))
    if draft.is_unique and draft.is_enforced:
        require_unique(ddl, relation, index, nullable)
    if relation.is_partitioned and recurses:
        for child_oid in children_of(ddl.catalog, relation.oid):
            forbids_null = bool(nullable) and checks_rights
            child = ddl.own_child(child_oid) if forbids_null else ddl.relation(child_oid)
            index_of_partition(ddl, relation, child, index, draft.kind, checks_rights=checks_rights)
    return index


def index_of_partition(
    ddl: Ddl,
    parent: Relation,
    partition: Relation,
    index: Index,
    kind: ConstraintKind | None,
    *,
    checks_rights: bool = False,
) -> None:
    """Attach an index of a partition to an index of its parent: an existing index that is alike, or
    else a new one.

    Args:
        checks_rights: see `define_index`.
    """
    for candidate in partition.indexes:
        constraint = constraint_of(partition, candidate)
        fits = kind is None or (constraint is not None and constraint.kind == kind)
        if fits and not candidate.parent_oid and is_alike(parent, index, partition, candidate):
            adopt_index(ddl, partition, candidate, index, parent)
            return
    draft = draft_like(parent, index, partition, kind)
    define_index(ddl, partition, draft, parent=index, checks_rights=checks_rights)


def draft_like(
    source: Relation, index: Index, target: Relation, kind: ConstraintKind | None
) -> IndexDraft:
    """Return the definition of an index of `target` that is like an index of `source`, a table with
    the same column names.
    """
    return IndexDraft(
        None,
        tuple(source.column_at(attnum).name if attnum else "" for attnum in index.key),
        kind,
        index.is_unique,
        tuple(source.column_at(attnum).name for attnum in index.including),
        index.nulls_not_distinct,
        None if index.predicate is None else _renumbered(source, index.predicate, target),
        is_deferrable=index.is_deferrable,
        access_method=index.access_method,
        exprs=tuple(_renumbered(source, expr, target) for expr in index.exprs),
        details=index.details,
        options=index.options,
    )


def is_alike(parent: Relation, index: Index, partition: Relation, candidate: Index) -> bool:
    """Return whether an index of a partition is like an index of its parent (CompareIndexInfo)."""
    wanted, found = (
        draft_like(table, item, partition, None)
        for table, item in ((parent, index), (partition, candidate))
    )
    return _compared(wanted) == _compared(found)


def _compared(draft: IndexDraft) -> tuple[object, ...]:
    sorts = [(detail.collation, detail.opclass) for detail in draft.details]
    return (
        draft.columns, draft.exprs, draft.including, draft.is_unique, draft.nulls_not_distinct,
        draft.predicate, draft.access_method, sorts or [(None, None)] * len(draft.columns),
    )  # fmt: skip


def _renumbered(source: Relation, expr: nodes.Expr, target: Relation) -> nodes.Expr:
    found = {column.attnum: target.column(column.name) for column in source.columns}
    attnums = {attnum: column.attnum for attnum, column in found.items() if column is not None}
    return nodes.renumber(expr, attnums)


def adopt_index(
    ddl: Ddl, partition: Relation, candidate: Index, index: Index, parent: Relation
) -> None:
    """Attach an index of a partition, and its constraint, to those of the parent."""
    update_index(ddl.catalog, replace(candidate, parent_oid=index.oid))
    own, above = constraint_of(partition, candidate), constraint_of(ddl.relation(parent.oid), index)
    if own is not None and above is not None:
        update_constraint(
            ddl.catalog, replace(own, parent_oid=above.oid, is_local=False, inherited_count=1)
        )


def constraint_of(relation: Relation, index: Index) -> Constraint | None:
    """Return the constraint to which an index belongs, or None."""
    return next(
        (
            c
            for c in relation.constraints
            if c.index_oid == index.oid and c.kind in INDEX_CONSTRAINTS
        ),
        None,
    )


def require_not_null(ddl: Ddl, relation: Relation, column: Column) -> None:
    """Require that no row of a table has NULL in a column."""
    require_rows(ddl, relation, f"c{column.attnum} IS NULL", lambda: _has_null(relation, column))


def _has_null(relation: Relation, column: Column) -> NotNullViolation:
    return NotNullViolation(
        f'column "{column.name}" of relation "{relation.name}" contains null values',
        table=relation.relation_name,
        column=column.name,
    )


def require_unique(
    ddl: Ddl, relation: Relation, index: Index, nullable: Sequence[Column] = ()
) -> None:
    """Require that no two rows of a table have the same key.  One aggregate query checks this.

    Args:
        nullable: columns of the key that must also be checked for NULL.
    """
    if not ddl.has_rows(relation):
        return
    columns = relation.index_columns(index)
    names = ", ".join(f"c{column.attnum}" for column in columns)
    distinct = () if index.nulls_not_distinct else [c for c in columns if c not in nullable]
    conditions = [f"c{column.attnum} IS NOT NULL" for column in distinct]
    nulls = [f"c{column.attnum} IS NULL" for column in nullable]
    if index.predicate is not None:
        predicate = without_user_types(ddl.environment, index.predicate)
        conditions.append(to_sql(predicate, lambda var: f"c{var.attnum}").text)

    def error(values: Sequence[str | None]) -> PostgresError:
        for column, value in zip(columns, values, strict=True):
            if value is None and column in nullable:
                return _has_null(relation, column)
        with ddl.session.read() as catalog:  # PostgreSQL builds indexes as the owner
            reader = RowReader(
                Privileges(catalog, relation.owner), value_format=ddl.session.value_format
            )
            return duplicated(relation, index, values, reader)

    ddl.require(
        RowCheck(
            ((relation.oid, queried_source(ddl.catalog, relation, relation)),),
            partial(_repeated_sql, names, nulls, conditions),
            tuple(StagedColumn(f"c{c.attnum}", c.type, c.typmod) for c in columns),
            error,
        )
    )


def _repeated_sql(
    names: str, nulls: Sequence[str], conditions: Sequence[str], rows: Sequence[str]
) -> str:
    """Return SQL of the keys that several rows have, or that satisfy one of the conditions `nulls`.

    Args:
        names: the columns of the key.
        conditions: the conditions of the rows whose keys count.
        rows: SQL of the rows of the table.
    """
    counted = f"SELECT * FROM ({rows[0]}) WHERE {' AND '.join(conditions) or 'TRUE'}"
    return (
        f"SELECT {names} FROM ({counted}) GROUP BY {names}"
        f" HAVING {' OR '.join([*nulls, 'count(*) > 1'])}"
        f" ORDER BY {', '.join([*(f'{null} DESC' for null in nulls), names])}"
    )


def _insert_index_constraint(
    ddl: Ddl,
    relation: Relation,
    index: Index,
    kind: ConstraintKind,
    parent: Index | None,
    *,
    is_enforced: bool,
) -> None:
    above = None
    if parent is not None:
        (parent_relid,) = (
            oid
            for oid in relation.parents
            if any(i.oid == parent.oid for i in ddl.relation(oid).indexes)
        )
        above = constraint_of(ddl.relation(parent_relid), parent)
    constraint = Constraint(
        ddl.catalog.new_oid(),
        index.name,
        kind,
        index.key,
        index.oid,
        parent_oid=0 if above is None else above.oid,
        is_local=above is None,
        inherited_count=0 if above is None else 1,
        no_inherit=not relation.is_partitioned,
        is_enforced=is_enforced,
        is_deferrable=index.is_deferrable,
    )
    insert_constraint(ddl.catalog, relation, constraint)


def _check_partition_key(relation: Relation, key: Sequence[int], draft: IndexDraft) -> None:
    """Check that a unique index of a partitioned table has all columns of the partition key."""
    what = "PRIMARY KEY" if draft.kind == ConstraintKind.PRIMARY_KEY else "UNIQUE"
    partition_key = relation.partition_key
    assert partition_key is not None
    for attnum in partition_key.attnums:
        if attnum not in key:
            name = relation.column_at(attnum).name
            raise FeatureNotSupported(
                "unique constraint on partitioned table must include all partitioning columns",
                detail=f'{what} constraint on table "{relation.name}" lacks column "{name}"'
                " which is"
                " part of the partition key.",
            )


def _check_count(columns: Sequence[object]) -> None:
    if len(columns) > _MAX_COLUMNS:
        raise TooManyColumns(f"cannot use more than {_MAX_COLUMNS} columns in an index")


def _chosen_name(ddl: Ddl, relation: Relation, draft: IndexDraft) -> str:
    label = _LABELS[draft.kind]
    keys = draft.columns
    if draft.details:
        keys = tuple(detail.name or name for name, detail in zip(keys, draft.details, strict=True))
    names = list(keys)
    for name in draft.including:
        names.append(free_column_name(name, names))
    return relation_name(ddl.catalog, relation.name, relation.schema_oid, names, label)


def uses_column(index: Index, attnum: int) -> bool:
    """Return whether an index uses a column: in its key, in INCLUDE, or in an expression or
    predicate.
    """
    exprs = index.exprs if index.predicate is None else (*index.exprs, index.predicate)
    used = {number for expr in exprs for number in columns_used(expr)}
    return attnum in {*index.key, *index.including, *used}
