"""CREATE TABLE (transformCreateStmt() in parse_utilcmd.c, DefineRelation() in tablecmds.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl.catalog import schema
from replctl.catalog.heap import insert_relation
from replctl.catalog.pg_class import Column, PartitionBound, Relation, find_relation_oid
from replctl.catalog.pg_inherits import insert_parent
from replctl.catalog.pg_type import find_type, insert_type, type_oid
from replctl.catalog.relation_kind import RelKind, RelPersistence
from replctl.catalog.storage import CATALOG_TABLE
from replctl.commands.column_definition import (
    ColumnDraft,
    check_column_count,
    check_column_name,
    check_stored_type,
    check_type,
    column_draft,
    with_options,
)
from replctl.commands.constraint import ConstraintDrafts, add_check, add_checks, sorted_constraints
from replctl.commands.ddl import Ddl, carry_out
from replctl.commands.file_layout import check_layout
from replctl.commands.foreign_key import add_foreign_key
from replctl.commands.index import define_index
from replctl.commands.inherit import (
    check_own_columns,
    find_parents,
    inherited_checks,
    merged_columns,
    partition_columns,
)
from replctl.commands.naming import Schema, check_tablespace, relation_schema
from replctl.commands.partition import (
    complete_partition,
    find_partitioned,
    partition_key,
    require_default_without,
)
from replctl.commands.partition_bound import analyze_bound, check_new_bound
from replctl.commands.reloptions import note_features, table_options
from replctl.commands.sequence import sequence_of_column
from replctl.commands.table_expression import default_expression
from replctl.commands.table_like import Like, find_like, like_columns, like_defaults, like_members
from replctl.commands.temporary import check_on_commit, is_temporary, temporary_place
from replctl.errors import (
    DuplicateObject,
    DuplicateTable,
    FeatureNotSupported,
    InvalidObjectDefinition,
    InvalidTableDefinition,
    UndefinedObject,
    WrongObjectType,
)
from replctl.lake.catalog_name import check_own_name
from replctl.lake.storage_place import give_storage
from replctl.parser import ast
from replctl.record import dataclass
from replctl.session import Session
from replctl.types.builtin import Type
from replctl.types.type_kind import TypeKind

_TAG = "CREATE TABLE"


@dataclass(frozen=True, slots=True)
class _Elements:
    """The list in parentheses after the name: columns in order, constraints and LIKE clauses."""

    columns: tuple[ColumnDraft, ...]
    constraints: tuple[ast.Constraint, ...]
    likes: tuple[Like, ...]


def create_own_table(session: Session, statement: ast.CreateTable) -> str:
    """Create a table in the cluster's own storage; see `create_table`."""
    _refuse(statement)
    return carry_out(session, lambda ddl: _create_table(ddl, statement))


def _refuse(statement: ast.CreateTable) -> None:
    check_tablespace(statement.tablespace)
    if statement.access_method not in (None, "heap", "delta"):
        raise UndefinedObject(f'access method "{statement.access_method}" does not exist')


def _create_table(ddl: Ddl, statement: ast.CreateTable) -> str:
    place = table_place(ddl, statement)
    if place is None:
        return _TAG
    name = statement.relation.name
    if statement.partition_spec is not None and statement.inherits:
        raise InvalidObjectDefinition("cannot create partitioned table as inheritance child")
    elements = _elements(ddl, statement)
    parents = _parents(ddl, statement)
    for parent in parents:
        _check_persistence(place, parent, is_partition=statement.partition_of is not None)
    parent_columns = [column.name for parent in parents for column in parent.columns]
    names = [draft.column.name for draft in elements.columns] + parent_columns
    drafts = sorted_constraints(name, elements.constraints, names)
    if statement.partition_of is not None:
        check_own_columns(elements.columns)
        columns = partition_columns(parents[0], elements.columns)
    else:
        check_own_columns(elements.columns)
        columns = merged_columns(ddl, parents, elements.columns)
    for element in statement.elements:
        if isinstance(element, ast.ColumnDef) and element.type_name is not None:
            check_column_name(element.name)
            check_type(ddl.environment, element)
    check_column_count(len(columns))
    check_relation_name(ddl, place, name)
    relation = _insert(ddl, statement, place, columns, elements.likes, parents)
    for number, parent in enumerate(parents, start=1):
        insert_parent(ddl.catalog, relation.oid, parent.oid, number)
    for check in inherited_checks(parents, relation):
        add_check(ddl, relation, check, merges=False)
    if statement.partition_of is not None:
        complete_partition(ddl, parents[0], relation)
    _add_own(ddl, relation, drafts)
    like_members(ddl, relation.oid, elements.likes)
    return _TAG


def _check_persistence(place: Schema, parent: Relation, *, is_partition: bool) -> None:
    """Check that a table and its parent are both temporary or both permanent."""
    was, now = parent.persistence == RelPersistence.TEMPORARY, place.is_temporary
    if not is_partition and was and not now:
        raise WrongObjectType(f'cannot inherit from temporary relation "{parent.name}"')
    if is_partition and was != now:
        new, old = ("temporary", "permanent") if now else ("permanent", "temporary")
        raise WrongObjectType(
            f'cannot create a {new} relation as partition of {old} relation "{parent.name}"'
        )


def make_table(ddl: Ddl, statement: ast.CreateTable, columns: Sequence[Column]) -> bool:
    """Create a table with the given columns instead of columns in the statement.  Return False if
    the table exists and IF NOT EXISTS was given.

    Raises:
        PostgresError: see CREATE TABLE.
    """
    place = table_place(ddl, statement)
    if place is None:
        return False
    check_no_relation(ddl, place, statement.relation.name)  # as CreateTableAsRelExists: first
    drafts = [ColumnDraft(column) for column in columns]
    check_own_columns(drafts)
    for column in columns:
        check_column_name(column.name)
        check_stored_type(ddl.environment, column.name, ddl.environment.type(column.declared_type))
    check_column_count(len(columns))
    check_relation_name(ddl, place, statement.relation.name)
    _insert(ddl, statement, place, merged_columns(ddl, (), drafts), (), ())
    return True


def table_place(ddl: Ddl, statement: ast.CreateTable) -> Schema | None:
    """Return the schema of a new table; None if it exists and IF NOT EXISTS was given.

    Raises:
        InvalidSchemaName: there is no such schema.
    """
    target = statement.relation
    if is_temporary(ddl, statement):
        check_on_commit(statement.on_commit)
        place = temporary_place(ddl, target)
    elif statement.on_commit is not None:
        raise InvalidTableDefinition("ON COMMIT can only be used on temporary tables")
    else:
        place = relation_schema(ddl.environment, target, pos=target.pos)
    exists = find_relation_oid(ddl.catalog, target.name, place.oid) is not None
    if exists and statement.if_not_exists:
        ddl.notice(f'relation "{target.name}" already exists, skipping', sqlstate="42P07")
        return None
    return place


def check_no_relation(ddl: Ddl, place: Schema, name: str) -> None:
    """Check that no relation has a name.

    Raises:
        DuplicateTable: a relation has the name.
    """
    if find_relation_oid(ddl.catalog, name, place.oid) is not None:
        raise DuplicateTable(f'relation "{name}" already exists')


def check_relation_name(ddl: Ddl, place: Schema, name: str) -> None:
    """Check that a name is free for a table and its row type.

    Raises:
        DuplicateTable, DuplicateObject: the name is taken.
    """
    check_no_relation(ddl, place, name)
    type_ = find_type(ddl.catalog, place.oid, name)
    if type_ is None:
        return
    if type_.element is not None:
        move_array_type(ddl, place, type_)
        return
    raise DuplicateObject(
        f'type "{name}" already exists',
        hint="A relation has an associated type of the same name, so you must use a name that"
        " doesn't"
        " conflict with any existing type.",
    )


def move_array_type(ddl: Ddl, place: Schema, array: Type) -> None:
    """Rename an array type, which has an implicit name, to free the name (moveArrayTypeName)."""
    name = f"_{array.sql_name}"
    while find_type(ddl.catalog, place.oid, name) is not None:
        name = f"_{name}"
    pg_type = schema.pg_type
    ddl.catalog.update(pg_type, pg_type.c.oid == type_oid(array.name), typname=name)


# ---------------------------------------------------------------------------------------------
# Parts


def _elements(ddl: Ddl, statement: ast.CreateTable) -> _Elements:
    table = statement.relation.name
    columns: list[ColumnDraft] = []
    constraints: list[ast.Constraint] = []
    likes: list[Like] = []
    for element in statement.elements:
        match element:
            case ast.ColumnDef():
                if statement.partition_of is None:
                    draft = column_draft(ddl.environment, element, table)
                else:
                    draft = with_options(_option(element), element, table)
                columns.append(draft)
                constraints += draft.constraints
            case ast.Constraint():
                constraints.append(element)
            case ast.TableLike():
                like = find_like(ddl, element)
                likes.append(like)
                columns += like_columns(ddl, like)
    return _Elements(tuple(columns), tuple(constraints), tuple(likes))


def _option(element: ast.ColumnDef) -> ColumnDraft:
    return ColumnDraft(Column(0, element.name, ""))


def _parents(ddl: Ddl, statement: ast.CreateTable) -> list[Relation]:
    if statement.partition_of is not None:
        return [find_partitioned(ddl, statement.partition_of)]
    return find_parents(ddl, statement.inherits)


def _insert(
    ddl: Ddl,
    statement: ast.CreateTable,
    place: Schema,
    drafts: Sequence[ColumnDraft],
    likes: Sequence[Like],
    parents: Sequence[Relation],
) -> Relation:
    """Add the relation to the catalog, with its columns and their defaults, its partition key and
    its partition bound.
    """
    kind = RelKind.TABLE if statement.partition_spec is None else RelKind.PARTITIONED_TABLE
    relation = new_relation(ddl, place, statement.relation.name, kind)
    relation = replace(
        relation,
        columns=like_defaults(likes, [draft.column for draft in drafts]),
        persistence=RelPersistence.UNLOGGED
        if statement.persistence == "unlogged"
        else relation.persistence,
    )
    options = table_options(statement.options, kind)
    check_own_name(ddl.catalog, relation, options)
    relation = replace(relation, options=options)
    if relation.persistence == RelPersistence.TEMPORARY and CATALOG_TABLE in relation.options:
        raise FeatureNotSupported(
            f'storage parameter "{CATALOG_TABLE}" of a temporary table is not supported'
        )
    note_features(ddl, relation.name, {}, relation.options)
    if statement.partition_bound is not None:
        bound = _bound(ddl, relation, parents[0], statement.partition_bound)
        relation = replace(relation, is_partition=True, partition_bound=bound)
    if statement.partition_spec is not None:
        key = partition_key(ddl, relation, statement.partition_spec)
        relation = replace(relation, partition_key=key)
    relation = _with_defaults(ddl, relation, drafts)
    check_layout(relation)
    insert_relation(ddl.catalog, relation)
    if kind == RelKind.TABLE:
        give_storage(ddl.catalog, relation)
    return relation


def _with_defaults(ddl: Ddl, relation: Relation, drafts: Sequence[ColumnDraft]) -> Relation:
    columns = list(relation.columns)
    for i, draft in enumerate(drafts):
        raw = draft.default
        if draft.sequence is not None:
            raw = sequence_of_column(ddl, relation, columns[i], draft.sequence)
        if raw is not None:
            default = default_expression(ddl.environment, relation, columns[i], raw, ddl.now)
            columns[i] = replace(columns[i], default=default)
    return replace(relation, columns=tuple(columns))


def define_columns(
    ddl: Ddl, relation: Relation, statement: ast.CreateTable
) -> tuple[Relation, list[ast.Constraint]]:
    """Return a new relation with the columns that a statement defines, and the constraints in the
    definitions of these columns.

    Raises:
        PostgresError: a definition is wrong.
    """
    definitions = [e for e in statement.elements if isinstance(e, ast.ColumnDef)]
    drafts = [column_draft(ddl.environment, item, relation.name) for item in definitions]
    check_own_columns(drafts)
    for definition in definitions:
        check_column_name(definition.name)
        check_type(ddl.environment, definition)
    columns = tuple(replace(d.column, attnum=i) for i, d in enumerate(drafts, start=1))
    with_columns = _with_defaults(ddl, replace(relation, columns=columns), drafts)
    return with_columns, [constraint for draft in drafts for constraint in draft.constraints]


def new_relation(ddl: Ddl, place: Schema, name: str, kind: RelKind) -> Relation:
    """Return a relation with an OID and a row type.  The relation is not in the catalog yet."""
    oid = ddl.catalog.new_oid()
    ddl.made.add(oid)
    owner = ddl.session.role_oid
    row_type = insert_type(ddl.catalog, name, place.oid, owner, kind=TypeKind.COMPOSITE, relid=oid)
    return Relation(oid, name, place.name, place.oid, kind, owner, row_type, place.persistence)


def _bound(
    ddl: Ddl, relation: Relation, parent: Relation, raw: ast.PartitionBound
) -> PartitionBound:
    bound = analyze_bound(ddl, parent, raw)
    check_new_bound(ddl, parent, relation.name, bound, raw)
    require_default_without(ddl, parent, bound)
    return bound


def _add_own(ddl: Ddl, relation: Relation, drafts: ConstraintDrafts) -> None:
    current = ddl.relation(relation.oid)
    add_checks(ddl, current, drafts.checks, merges=True)
    add_indexes_and_references(ddl, relation.oid, drafts)


def add_indexes_and_references(ddl: Ddl, oid: int, drafts: ConstraintDrafts) -> None:
    """Add the keys of a statement to a table, and then the foreign keys."""
    for index in drafts.indexes:
        define_index(ddl, ddl.relation(oid), index)
    for constraint in drafts.foreign_keys:
        add_foreign_key(ddl, ddl.relation(oid), constraint)
