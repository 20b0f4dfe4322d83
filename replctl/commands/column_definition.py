"""Column definitions: types, collations and the constraints in a column's definition.

Sources: transformColumnDefinition() in parse_utilcmd.c and BuildDescForRelation() in tablecmds.c.
"""

from __future__ import annotations

from dataclasses import replace

from replctl.catalog.namespace import CatalogEnvironment
from replctl.catalog.pg_class import Column
from replctl.catalog.relation_kind import DependencyType, Generated, Identity
from replctl.commands.column_storage import compression_of, storage_of
from replctl.commands.sequence import SequenceDraft
from replctl.errors import (
    DatatypeMismatch,
    DuplicateColumn,
    FeatureNotSupported,
    InvalidTableDefinition,
    SqlSyntaxError,
    TooManyColumns,
)
from replctl.expr.environment import is_user_collation
from replctl.expr.type_names import find_collation, type_of
from replctl.expr.user_type import stored_type
from replctl.parser import ast
from replctl.record import dataclass
from replctl.types.builtin import Type, system_columns
from replctl.types.type_kind import TypeKind

_SERIAL = {
    "smallserial": "int2",
    "serial2": "int2",
    "serial": "int4",
    "serial4": "int4",
    "bigserial": "int8",
    "serial8": "int8",
}
#: The sources of a column's values if a statement does not supply them.
_SOURCES = {"default": "default", "identity": "identity", "generated": "generation expression"}
_SPECIFIED = {
    "default": "default values specified",
    "generated": "generation clauses specified",
    "identity": "identity specifications",
}
_MAX_COLUMNS = 1600  # MaxHeapAttributeNumber


@dataclass(frozen=True, slots=True)
class ColumnDraft:
    """The definition of a column that will be added to a table.

    Attributes:
        column: the column without its number.  It also lacks a default that is not analysed yet.
        default: the expression of DEFAULT or GENERATED.
        sequence: the sequence of a serial or identity column.
        constraints: the constraints in the column's definition that become the table's.
    """

    column: Column
    default: ast.RawExpr | None = None
    sequence: SequenceDraft | None = None
    constraints: tuple[ast.Constraint, ...] = ()


def column_draft(
    environment: CatalogEnvironment, definition: ast.ColumnDef, table: str
) -> ColumnDraft:
    """Return the draft of a column that a statement defines.

    Args:
        table: the name of the column's table.

    Raises:
        PostgresError: the definition is wrong.
        FeatureNotSupported: a part of the definition is not supported.
    """
    assert definition.type_name is not None
    type_name, serial = _without_serial(definition.type_name)
    type_, typmod = type_of(environment, type_name)
    column = typed(
        environment, Column(0, definition.name, ""), type_.name, typmod,
        column_collation(environment, definition.collation, type_, definition.collation_pos),
        len(type_name.array_bounds),
    )  # fmt: skip
    column = replace(
        column,
        storage=storage_of(environment, type_.name, definition.storage or "default"),
        compression=compression_of(environment, type_.name, definition.compression or "default"),
    )
    if not serial:
        return with_options(ColumnDraft(column), definition, table)
    implied = (ast.Constraint("default"), ast.Constraint("not_null"))
    definition = replace(definition, constraints=definition.constraints + implied)
    draft = ColumnDraft(column, sequence=SequenceDraft(type_.name, DependencyType.AUTO))
    return with_options(draft, definition, table)


def typed(
    environment: CatalogEnvironment,
    column: Column,
    type_name: str,
    typmod: int,
    collation: str | None,
    dimensions: int = 0,
) -> Column:
    """Return a column with another type.  A domain is stored as its base type, an array of an
    enum as an array of text, and a composite type as text.
    """
    is_domain = environment.type(type_name).kind == TypeKind.DOMAIN
    rules = environment.domain_rules(environment.type(type_name)) if is_domain else None
    base, base_typmod = stored_type(environment, type_name, typmod)
    return replace(
        column,
        type=base,
        typmod=base_typmod,
        collation=collation,
        dimensions=dimensions,
        domain=type_name if is_domain else "",
        user_type=type_name if base != type_name and not is_domain else "",
        domain_default=None if rules is None else rules.default,
    )


def _without_serial(type_name: ast.TypeName) -> tuple[ast.TypeName, bool]:
    """Return the type of a column, and whether the definition calls it serial."""
    plain = _SERIAL.get(type_name.names[0]) if len(type_name.names) == 1 else None
    if plain is None:
        return type_name, False
    if type_name.array_bounds:
        raise FeatureNotSupported("array of serial is not implemented", position=type_name.pos)
    return replace(type_name, names=("pg_catalog", plain)), True


def check_type(environment: CatalogEnvironment, definition: ast.ColumnDef) -> None:
    """Check that a column may have its type (CheckAttributeType).  Call this when all columns of
    the table are defined.

    Raises:
        InvalidTableDefinition: the type is a pseudo-type or SETOF.
        FeatureNotSupported: replctl cannot store values of the type.
    """
    type_name = definition.type_name
    assert type_name is not None
    if type_name.is_setof:
        raise InvalidTableDefinition(f'column "{definition.name}" cannot be declared SETOF')
    type_, _typmod = type_of(environment, _without_serial(type_name)[0])
    check_stored_type(environment, definition.name, type_, type_name.pos)


def check_stored_type(
    environment: CatalogEnvironment, name: str, type_: Type, position: int = -1
) -> None:
    """Check that replctl can store the values of a column, and that the role may use their type.

    Raises:
        InsufficientPrivilege: the role may not use the type (42501).
        InvalidTableDefinition: the type is a pseudo-type.
        FeatureNotSupported: replctl cannot store values of the type.
    """
    shown = environment.format_type(type_.element or type_.name)
    environment.privileges.check_type(type_.oid, shown)
    if type_.kind == TypeKind.PSEUDO:
        raise InvalidTableDefinition(
            f'column "{name}" has pseudo-type {environment.format_type(type_.name)}'
        )
    stored = environment.type(stored_type(environment, type_.name)[0])
    element = stored if stored.element is None else environment.type(stored.element)
    if element.kind == TypeKind.COMPOSITE:
        raise FeatureNotSupported(
            f"columns of type {environment.format_type(type_.name)} are not supported",
            position=position,
        )


def with_options(draft: ColumnDraft, definition: ast.ColumnDef, table: str) -> ColumnDraft:
    """Return a column with the constraints that its definition lists.

    Raises:
        SqlSyntaxError: two of these constraints contradict each other.
        FeatureNotSupported: the identity column is a partition's.
    """
    kinds = {"default": 0, "generated": 0, "identity": 0}
    has_null = False
    column, default, constraints = draft.column, draft.default, list(draft.constraints)
    sequence = draft.sequence
    where = f'column "{definition.name}" of table "{table}"'
    for constraint in definition.constraints:
        pos = constraint.pos
        match constraint.kind:
            case "identity" if definition.type_name is None:
                raise FeatureNotSupported("identity columns are not supported on partitions")
            case "null" | "not_null" | "identity" as kind if has_null and column.not_null != (
                kind != "null"
            ):
                raise SqlSyntaxError(
                    f"conflicting NULL/NOT NULL declarations for {where}", position=pos
                )
            case "null" | "not_null" as kind:
                has_null = True
                column = replace(column, not_null=kind == "not_null")
            case "default" | "generated" | "identity" as kind:
                kinds[kind] += 1
                if kinds[kind] > 1:
                    raise SqlSyntaxError(f"multiple {_SPECIFIED[kind]} for {where}", position=pos)
                default = constraint.expr
                if kind == "generated":
                    column = replace(column, default=None, generated=Generated.STORED)
                elif kind == "identity":
                    has_null = True
                    identity = Identity.named(constraint.generated_when)
                    column = replace(column, not_null=True, identity=identity)
                    sequence = SequenceDraft(
                        column.declared_type, DependencyType.INTERNAL, constraint.sequence
                    )
            case "check":
                constraints.append(constraint)
            case _:
                constraints.append(replace(constraint, columns=(definition.name,)))
        both = [name for kind, name in _SOURCES.items() if kinds[kind]]
        if len(both) > 1:
            raise SqlSyntaxError(
                f"both {both[0]} and {both[1]} specified for {where}", position=pos
            )
    return ColumnDraft(column, default, sequence, tuple(constraints))


def check_column_name(name: str) -> None:
    """Check that a name is not the name of a system column.

    Raises:
        DuplicateColumn: a system column has that name.
    """
    if name in system_columns():
        raise DuplicateColumn(f'column name "{name}" conflicts with a system column name')


def check_column_count(count: int) -> None:
    """Check that a table can have this number of columns.

    Raises:
        TooManyColumns: there are too many columns (54011).
    """
    if count > _MAX_COLUMNS:
        raise TooManyColumns(f"tables can have at most {_MAX_COLUMNS} columns")


def column_collation(
    environment: CatalogEnvironment, collation: tuple[str, ...], type_: Type, position: int = -1
) -> str | None:
    """Return the requested collation of a column; without a request, the default collation of its
    type.  The default collation of an array is that of its element type.

    Raises:
        UndefinedObject: there is no such collation.
        InvalidSchemaName: there is no such schema.
        DatatypeMismatch: values of the type have no collation.
        FeatureNotSupported: the collation is user-defined.
    """
    element = type_ if type_.element is None else environment.type(type_.element)
    if not collation:
        return element.collation
    found = find_collation(environment, collation, position)
    if element.collation is None:
        raise DatatypeMismatch(
            f"collations are not supported by type {environment.format_type(type_.name)}",
            position=position,
        )
    if is_user_collation(found):
        raise FeatureNotSupported(
            "collations that users made are not supported here", position=position
        )
    return found
