"""Statements about other objects, transactions and settings."""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from replctl.parser.ast.expression import RangeVar, RawExpr, TypeName
from replctl.parser.ast.query import Delete, Insert, SelectStmt, Update
from replctl.parser.ast.replication import DefElem
from replctl.parser.ast.syntax_node import Node
from replctl.parser.ast.table import (
    ColumnDef,
    Constraint,
    CreateIndex,
    CreateSequence,
    CreateTable,
)
from replctl.record import dataclass


class SpecialRole(str):
    """CURRENT_USER, CURRENT_ROLE or SESSION_USER, unquoted, in the place of a role's name."""


ObjectType: TypeAlias = Literal[
    "table", "view", "materialized view", "index", "sequence", "schema", "database", "publication",
    "subscription", "type", "function", "operator", "role", "column", "constraint", "domain",
    "foreign table", "policy", "routine", "procedure", "trigger", "extension", "cast",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateSchema(Node):
    name: str | None
    if_not_exists: bool = False
    authorization: str | None = None
    elements: tuple[SchemaElement, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateDatabase(Node):
    name: str
    options: tuple[DefElem, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DropDatabase(Node):
    name: str
    missing_ok: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateEnum(Node):
    names: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AddEnumValue(Node):
    """ALTER TYPE ... ADD VALUE; the place is the end or, if given, next to the label `neighbor`."""

    names: tuple[str, ...]
    label: str
    neighbor: str | None = None
    is_after: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RenameEnumValue(Node):
    names: tuple[str, ...]
    label: str
    new_label: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateComposite(Node):
    """CREATE TYPE ... AS (...)."""

    names: tuple[str, ...]
    columns: tuple[ColumnDef, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateDomain(Node):
    """CREATE DOMAIN; `definition` has its type, COLLATE and constraints, like a column."""

    names: tuple[str, ...]
    definition: ColumnDef


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterDomain(Node):
    """ALTER DOMAIN; `name` is the constraint to drop or validate, `expr` the new default."""

    names: tuple[str, ...]
    action: Literal[
        "set default", "drop default", "set not null", "drop not null", "add constraint",
        "drop constraint", "validate constraint",
    ]  # fmt: skip
    expr: RawExpr | None = None
    constraint: Constraint | None = None
    name: str = ""
    missing_ok: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FunctionParameter(Node):
    name: str | None
    type_name: TypeName
    mode: Literal["in", "out", "inout", "variadic", "table"] = "in"
    default: RawExpr | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateFunction(Node):
    names: tuple[str, ...]
    parameters: tuple[FunctionParameter, ...]
    returns: TypeName | None
    options: tuple[DefElem, ...] = ()
    or_replace: bool = False
    table_columns: tuple[FunctionParameter, ...] = ()  # RETURNS TABLE (...)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterFunction(Node):
    """ALTER FUNCTION with attributes, such as STRICT; `arguments` is None without parentheses."""

    object_type: ObjectType
    name: tuple[str, ...]
    arguments: tuple[TypeName | None, ...] | None
    options: tuple[DefElem, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateOperator(Node):
    """CREATE OPERATOR name (...); argument types and function are fields, and not in `options`."""

    names: tuple[str, ...]
    function: tuple[str, ...]
    left: TypeName | None
    right: TypeName | None
    options: tuple[DefElem, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateCollation(Node):
    """CREATE COLLATION names FROM source."""

    names: tuple[str, ...]
    source: tuple[str, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateView(Node):
    relation: RangeVar
    columns: tuple[str, ...]
    query: SelectStmt
    or_replace: bool = False
    persistence: Literal["permanent", "temporary", "unlogged"] = "permanent"
    options: tuple[DefElem, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RefreshMaterializedView(Node):
    relation: RangeVar
    concurrently: bool = False
    with_data: bool = True


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comment(Node):
    """COMMENT ON; `text` is None to remove the comment.

    For a column, the last part of `name` is the column.  For a constraint, `name` is its table or
    domain (see `sub_type`), and `sub_name` the constraint.
    """

    object_type: ObjectType
    name: tuple[str, ...]
    text: str | None
    sub_name: str | None = None
    arguments: tuple[TypeName | None, ...] | None = None  # of functions and operators
    sub_type: Literal["table", "domain"] = "table"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Drop(Node):
    """DROP of objects that a name alone identifies, or a name and argument types; each name is a
    tuple of its parts.
    """

    object_type: ObjectType
    names: tuple[tuple[str, ...], ...]
    missing_ok: bool = False
    behavior: Literal["restrict", "cascade"] = "restrict"
    arguments: tuple[tuple[FunctionParameter, ...] | None, ...] = ()  # of functions, if given
    operands: tuple[tuple[TypeName | None, ...], ...] = ()  # of operators and casts
    concurrently: bool = False
    name_positions: tuple[int, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rename(Node):
    """ALTER ... RENAME TO; for a column or constraint, `sub_name` is its old name, and
    `relation_type` the kind of its relation.
    """

    object_type: ObjectType
    name: tuple[str, ...]
    new_name: str
    sub_name: str | None = None
    missing_ok: bool = False
    relation_type: ObjectType = "table"
    arguments: tuple[TypeName | None, ...] | None = None  # of functions
    inherit: bool = True  # False for ONLY


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterOwner(Node):
    object_type: ObjectType
    name: tuple[str, ...]
    new_owner: str
    missing_ok: bool = False
    arguments: tuple[TypeName | None, ...] | None = None  # of functions and operators


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterObjectSchema(Node):
    object_type: ObjectType
    name: tuple[str, ...]
    new_schema: str
    missing_ok: bool = False
    arguments: tuple[TypeName | None, ...] | None = None  # of functions


# ---------------------------------------------------------------------------------------------
# Roles and privileges


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RoleOption(Node):
    """An option of a role, such as `superuser`; some have a value, or name other roles."""

    name: str
    value: str | None = None
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateRole(Node):
    kind: Literal["role", "user", "group"]
    name: str
    options: tuple[RoleOption, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterRole(Node):
    name: str
    options: tuple[RoleOption, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DropRole(Node):
    names: tuple[str, ...]
    missing_ok: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DropOwned(Node):
    roles: tuple[str, ...]
    behavior: Literal["restrict", "cascade"] = "restrict"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReassignOwned(Node):
    roles: tuple[str, ...]
    new_owner: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GrantRole(Node):
    """GRANT role TO role, or REVOKE; `options` are the options of WITH, or the option to revoke.

    ALTER GROUP ... ADD USER and DROP USER do the same (`alters_group`).
    """

    is_grant: bool
    granted: tuple[str, ...]
    members: tuple[str, ...]
    options: tuple[tuple[str, bool], ...] = ()
    granted_by: str | None = None
    behavior: Literal["restrict", "cascade"] = "restrict"
    alters_group: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreatePolicy(Node):
    """CREATE POLICY.  `command` is all, select, insert, update or delete.

    () as `roles` means PUBLIC.
    """

    name: str
    relation: RangeVar
    is_permissive: bool
    command: str
    roles: tuple[str, ...]
    using: RawExpr | None
    check: RawExpr | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterPolicy(Node):
    """ALTER POLICY; fields that are None do not change."""

    name: str
    relation: RangeVar
    roles: tuple[str, ...] | None
    using: RawExpr | None
    check: RawExpr | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Privilege(Node):
    """A privilege (`select`, `all` ...) on a whole object, or on `columns` of a table."""

    name: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Grant(Node):
    """GRANT or REVOKE of privileges; `only_option` for REVOKE GRANT OPTION FOR."""

    is_grant: bool
    privileges: tuple[Privilege, ...]
    target: Literal[
        "table", "sequence", "database", "schema", "type", "domain",
        "function", "routine", "procedure",
        "all tables", "all sequences", "all functions", "all routines", "all procedures",
    ]  # fmt: skip
    names: tuple[tuple[str, ...], ...]
    grantees: tuple[str, ...]
    with_option: bool = False
    only_option: bool = False
    granted_by: str | None = None
    behavior: Literal["restrict", "cascade"] = "restrict"
    arguments: tuple[tuple[FunctionParameter, ...] | None, ...] = ()  # of functions, if given


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterDefaultPrivileges(Node):
    """ALTER DEFAULT PRIVILEGES; `roles` is () for the current role, `schemas` is () for all
    schemas, and `grant` has no names.
    """

    roles: tuple[str, ...]
    schemas: tuple[str, ...]
    grant: Grant


# ---------------------------------------------------------------------------------------------
# Transactions and variables


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TransactionStmt(Node):
    kind: Literal[
        "begin", "start", "commit", "rollback", "savepoint", "release", "rollback to",
    ]  # fmt: skip
    name: str | None = None
    options: tuple[DefElem, ...] = ()
    chain: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VariableSet(Node):
    """SET name TO values, () for DEFAULT; RESET if `reset`, with the name 'all' for RESET ALL.

    `interval` has the modifiers of the type if the value is an interval: SET TIME ZONE INTERVAL.
    """

    name: str
    values: tuple[str, ...] = ()
    is_local: bool = False
    reset: bool = False
    interval: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterRoleSet(Node):
    """ALTER ROLE ... SET or RESET; `role` is None for ALL."""

    role: str | None
    database: str | None
    change: VariableSet


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterDatabaseSet(Node):
    database: str
    change: VariableSet


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VariableShow(Node):
    name: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterSystem(Node):
    """ALTER SYSTEM SET or RESET."""

    change: VariableSet


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Checkpoint(Node):
    pass


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Discard(Node):
    """DISCARD of `what`: ALL, PLANS, SEQUENCES or TEMP."""

    what: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VacuumRelation(Node):
    relation: RangeVar
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Vacuum(Node):
    """VACUUM of `relations`, () for all, or ANALYZE if `is_analyze`.

    FULL, FREEZE, VERBOSE and ANALYZE without parentheses are also `options`.
    """

    options: tuple[DefElem, ...] = ()
    relations: tuple[VacuumRelation, ...] = ()
    is_analyze: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explain(Node):
    """EXPLAIN of a query; ANALYZE and VERBOSE without parentheses are also `options`."""

    query: SelectStmt
    options: tuple[DefElem, ...] = ()


# ---------------------------------------------------------------------------------------------
# COPY


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CopyOption(Node):
    """An option of COPY, with its value as written, if it has one.

    `columns` is the list of columns in options that have one; `is_star` is true for `*`.
    """

    name: str
    value: str | None = None
    is_integer: bool = False
    columns: tuple[str, ...] | None = None
    is_star: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Copy(Node):
    """COPY of a table or a query.  `file` is None for STDIN and STDOUT, and a command if
    `is_program`.
    """

    relation: RangeVar | None
    columns: tuple[str, ...]
    query: SelectStmt | Insert | Update | Delete | None
    is_from: bool
    file: str | None
    is_program: bool = False
    options: tuple[CopyOption, ...] = ()
    where: RawExpr | None = None


#: Statements that CREATE SCHEMA may contain.
SchemaElement: TypeAlias = CreateTable | CreateIndex | CreateSequence | CreateView | Grant
