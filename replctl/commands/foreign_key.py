"""FOREIGN KEY (ATAddForeignKeyConstraint in tablecmds.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from replctl.catalog.acl import Privilege
from replctl.catalog.heap import insert_constraint
from replctl.catalog.pg_class import Column, Constraint, Relation
from replctl.catalog.pg_inherits import children_of
from replctl.catalog.relation_kind import (
    TABLE_KINDS,
    ConstraintKind,
    ForeignKeyAction,
    ForeignKeyMatch,
    RelPersistence,
)
from replctl.commands.ddl import Ddl, RowCheck
from replctl.commands.naming import constraint_name
from replctl.errors import (
    DatatypeMismatch,
    DuplicateObject,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidColumnReference,
    InvalidForeignKey,
    InvalidTableDefinition,
    ObjectNotInPrerequisiteState,
    PostgresError,
    SqlSyntaxError,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
)
from replctl.expr.coerce import Coercion
from replctl.lake.conflict_message import orphan
from replctl.lake.row_description import RowReader
from replctl.lake.table_read import queried_source, relation_leaves
from replctl.parser import ast
from replctl.query.open_relation import open_relation
from replctl.spark import StagedColumn
from replctl.types.builtin import SystemRelation

#: Sets of types whose values can be compared with each other (operator families of btree).
_FAMILIES = (
    frozenset(("int2", "int4", "int8")),
    frozenset(("float4", "float8")),
    frozenset(("date", "timestamp", "timestamptz")),
)


def add_foreign_key(ddl: Ddl, relation: Relation, raw: ast.Constraint) -> None:
    """Add a foreign key to a table and its partitions.

    Raises:
        PostgresError: PostgreSQL refuses the foreign key.
    """
    assert raw.references is not None
    if raw.match == "partial":
        raise FeatureNotSupported("MATCH PARTIAL not yet implemented", position=raw.pos)
    if raw.skip_validation and relation.oid not in ddl.made:
        raise FeatureNotSupported("NOT VALID constraints are not supported", position=raw.pos)
    name = _name(ddl, relation, raw)
    other = _referenced(ddl, relation, raw.references)
    columns = [_column(relation, column) for column in raw.columns]
    set_columns = _set_columns(relation, raw, columns)
    ref_columns = _referenced_columns(other, raw.ref_columns)
    if any(column.generated for column in columns):
        _check_actions(raw)
    if len(columns) != len(ref_columns):
        raise InvalidForeignKey(
            "number of referencing and referenced columns for foreign key disagree"
        )
    index_oid = _index_of(other, ref_columns)
    if any(index.oid == index_oid and index.is_deferrable for index in other.indexes):
        what = "unique constraint" if raw.ref_columns else "primary key"
        raise ObjectNotInPrerequisiteState(
            f'cannot use a deferrable {what} for referenced table "{other.name}"'
        )
    constraint = Constraint(
        ddl.catalog.new_oid(),
        name,
        ConstraintKind.FOREIGN_KEY,
        tuple(column.attnum for column in columns),
        index_oid=index_oid,
        ref_relid=other.oid,
        ref_columns=tuple(column.attnum for column in ref_columns),
        # query/write.py refuses actions that replctl lacks
        on_update=ForeignKeyAction.named(raw.on_update),
        on_delete=ForeignKeyAction.named(raw.on_delete),
        match=ForeignKeyMatch.FULL if raw.match == "full" else ForeignKeyMatch.SIMPLE,
        no_inherit=not relation.is_partitioned,
        is_deferrable=raw.deferrable,
        on_delete_columns=set_columns,
    )
    check_key_types(ddl, relation, constraint, other)
    insert_constraint(ddl.catalog, relation, constraint)
    require_references(ddl, relation, constraint, other)
    for child_oid in children_of(ddl.catalog, relation.oid):
        child = ddl.relation(child_oid)
        if child.is_partition:
            clone_foreign_key(ddl, relation, constraint, child)


def _check_actions(raw: ast.Constraint) -> None:
    """Check that no action of a foreign key would write a generated column.

    Raises:
        SqlSyntaxError: an action would.
    """
    writes = ("set null", "set default")
    shown = "foreign key constraint containing generated column"
    if raw.on_update in (*writes, "cascade"):
        raise SqlSyntaxError(f"invalid ON UPDATE action for {shown}")
    if raw.on_delete in writes:
        raise SqlSyntaxError(f"invalid ON DELETE action for {shown}")


def clone_foreign_key(
    ddl: Ddl, relation: Relation, constraint: Constraint, partition: Relation
) -> None:
    """Add a foreign key of a partitioned table to one of its partitions (CloneFkReferencing)."""
    names = [relation.column_at(attnum).name for attnum in constraint.columns]
    columns = tuple(_column(partition, name).attnum for name in names)
    name = constraint.name
    if any(c.name == name for c in partition.constraints):
        name = constraint_name(ddl.catalog, partition.name, partition.schema_oid, names, "fkey")
    cloned = replace(
        constraint,
        oid=ddl.catalog.new_oid(),
        name=name,
        columns=columns,
        on_delete_columns=tuple(
            _column(partition, relation.column_at(attnum).name).attnum
            for attnum in constraint.on_delete_columns
        ),
        parent_oid=constraint.oid,
        is_local=False,
        inherited_count=1,
        no_inherit=not partition.is_partitioned,
    )
    insert_constraint(ddl.catalog, partition, cloned)
    other = ddl.relation(constraint.ref_relid)
    require_references(ddl, partition, cloned, other)
    for child_oid in children_of(ddl.catalog, partition.oid):
        clone_foreign_key(ddl, partition, cloned, ddl.relation(child_oid))


def require_references(
    ddl: Ddl, relation: Relation, constraint: Constraint, other: Relation
) -> None:
    """Require that every row of a table refers to an existing row."""
    if not ddl.has_rows(relation):
        return
    source = queried_source(ddl.catalog, relation, relation)
    tables = ((relation.oid, source), *relation_leaves(ddl.catalog, other))

    def error(values: Sequence[str | None]) -> PostgresError:
        with ddl.session.read() as catalog:
            reader = RowReader(
                ddl.session.privileges(catalog), value_format=ddl.session.value_format
            )
            return orphan(relation, other, constraint, values, reader)

    columns = [relation.column_at(attnum) for attnum in constraint.columns]
    ddl.require(
        RowCheck(
            tables,
            partial(_orphans_sql, constraint),
            tuple(StagedColumn(f"c{c.attnum}", c.type, c.typmod) for c in columns),
            error,
        )
    )


def _orphans_sql(constraint: Constraint, rows: Sequence[str]) -> str:
    """Return SQL of the rows of a table that refer to no row.

    Args:
        rows: SQL of the rows of the table, and of the rows of each leaf of the referenced table.
    """
    referenced = " UNION ALL ".join(
        f"SELECT {', '.join(f'c{a} AS x{i}' for i, a in enumerate(constraint.ref_columns))}"
        f" FROM ({source})"
        for source in rows[1:]
    )
    names = [f"c{attnum}" for attnum in constraint.columns]
    present = " AND ".join(f"{name} IS NOT NULL" for name in names)
    same = " AND ".join(f"n.{name} = r.x{i}" for i, name in enumerate(names))
    referring = f"SELECT {', '.join(names)} FROM ({rows[0]})"
    query = f"SELECT * FROM ({referring} WHERE {present}) n"
    if referenced:
        query += f" LEFT ANTI JOIN ({referenced}) r ON {same}"
    if constraint.match == ForeignKeyMatch.FULL:
        mixed = " OR ".join(f"{name} IS NOT NULL" for name in names)
        query += f" UNION ALL {referring} WHERE NOT ({present}) AND ({mixed})"
    return query


def _name(ddl: Ddl, relation: Relation, raw: ast.Constraint) -> str:
    if raw.name is None:
        return constraint_name(ddl.catalog, relation.name, relation.schema_oid, raw.columns, "fkey")
    if any(constraint.name == raw.name for constraint in relation.constraints):
        raise DuplicateObject(
            f'constraint "{raw.name}" for relation "{relation.name}" already exists'
        )
    return raw.name


def _referenced(ddl: Ddl, relation: Relation, name: ast.RangeVar) -> Relation:
    """Return the table that a foreign key references."""
    if name.name == relation.name and name.schema in (None, relation.schema):
        found = ddl.environment.relation_oid(name.schema, name.name)
        if found == relation.oid:
            return relation
    other = open_relation(ddl.environment, replace(name, pos=-1), or_sequence=True)
    if isinstance(other, SystemRelation):
        raise InsufficientPrivilege(f'permission denied: "{other.name}" is a system catalog')
    if other.kind not in TABLE_KINDS:
        raise WrongObjectType(f'referenced relation "{other.name}" is not a table')
    ddl.privileges.check_relation(other, Privilege.REFERENCES, ())
    if (
        other.persistence != RelPersistence.PERMANENT
        and relation.persistence == RelPersistence.PERMANENT
    ):
        raise InvalidTableDefinition(
            "constraints on permanent tables may reference only permanent tables"
        )
    if (
        other.persistence != RelPersistence.TEMPORARY
        and relation.persistence == RelPersistence.TEMPORARY
    ):
        raise InvalidTableDefinition(
            "constraints on temporary tables may reference only temporary tables"
        )
    return other


def _column(relation: Relation, name: str) -> Column:
    column = relation.column(name)
    if column is None:
        raise UndefinedColumn(
            f'column "{name}" referenced in foreign key constraint does not exist'
        )
    return column


def _set_columns(
    relation: Relation, raw: ast.Constraint, columns: Sequence[Column]
) -> tuple[int, ...]:
    """Return the attnums of the columns that ON DELETE SET NULL or SET DEFAULT names
    (validateFkOnDeleteSetColumns)."""
    named = [_column(relation, name) for name in raw.on_delete_columns]
    for column in named:
        if column not in columns:
            raise InvalidColumnReference(
                f'column "{column.name}" referenced in ON DELETE SET action must be part of foreign'
                " key"
            )
    return tuple(column.attnum for column in named)


def _referenced_columns(other: Relation, names: Sequence[str]) -> list[Column]:
    """Return the referenced columns.  If the statement names none, use the primary key.  Named
    columns must have a unique index.
    """
    if not names:
        key = other.primary_key
        if key is None:
            raise UndefinedObject(f'there is no primary key for referenced table "{other.name}"')
        return list(other.index_columns(key))
    columns = [_column(other, name) for name in names]
    if len(set(names)) != len(names):
        raise InvalidForeignKey("foreign key referenced-columns list must not contain duplicates")
    if not _index_of(other, columns):
        raise InvalidForeignKey(
            f'there is no unique constraint matching given keys for referenced table "{other.name}"'
        )
    return columns


def _index_of(other: Relation, columns: Sequence[Column]) -> int:
    """Return the OID of the unique index over exactly these columns; 0 if there is none."""
    attnums = {column.attnum for column in columns}
    found = [i for i in other.indexes if i.is_plain_unique and set(i.key) == attnums]
    found.sort(key=lambda index: (not index.is_primary, index.oid))
    return found[0].oid if found else 0


def check_key_types(ddl: Ddl, relation: Relation, constraint: Constraint, other: Relation) -> None:
    """Check that the columns of a foreign key can be compared with the referenced columns.

    Raises:
        DatatypeMismatch: two of the columns cannot be compared.
    """
    coercion = Coercion(ddl.environment)
    for attnum, ref_attnum in zip(constraint.columns, constraint.ref_columns, strict=True):
        column, ref_column = relation.column_at(attnum), other.column_at(ref_attnum)
        pair = [c.user_type or c.type for c in (column, ref_column)]
        is_comparable = any(set(pair) <= family for family in _FAMILIES)
        if is_comparable or coercion.can_coerce_implicitly(*pair):
            continue
        shown = [ddl.environment.format_type(c.declared_type) for c in (column, ref_column)]
        raise DatatypeMismatch(
            f'foreign key constraint "{constraint.name}" cannot be implemented',
            detail=f'Key columns "{column.name}" and "{ref_column.name}" are of incompatible types:'
            f" {shown[0]} and {shown[1]}.",
        )
