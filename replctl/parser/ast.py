"""The syntax tree: what a statement says, before any name in it is looked up.

Nodes are PostgreSQL's (parsenodes.h), frozen, and carry `pos`: the 0-based offset in the statement
that an error about them points at, as chosen by PostgreSQL's grammar (gram.y).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    """What all nodes have; that they are equal is said here once, since every class costs
    start-up time.

    Fields that do not count, such as positions, are keyword-only.
    """

    pos: int = field(default=-1, kw_only=True)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash((type(self), _values(self)))

    def __repr__(self) -> str:
        names: tuple[str, ...] = self.__match_args__
        fields = zip(names, _values(self), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in fields)})"


def _values(node: object) -> tuple[object, ...]:
    names: tuple[str, ...] = getattr(node, "__match_args__", ())
    return tuple(getattr(node, name) for name in names)


# ---------------------------------------------------------------------------------------------
# Names and types


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RangeVar(Node):
    """A relation by name: `catalog.schema.name`; `inherit` is False for ONLY."""

    name: str
    schema: str | None = None
    catalog: str | None = None
    inherit: bool = True
    alias: Alias | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Alias(Node):
    name: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TypeName(Node):
    """`names` as written or, for SQL's own spellings, ('pg_catalog', catalog name).

    `modifiers` are the expressions in parentheses; `array_bounds` has -1 for `[]`.
    """

    names: tuple[str, ...]
    modifiers: tuple[RawExpr, ...] = ()
    array_bounds: tuple[int, ...] = ()
    is_setof: bool = False


# ---------------------------------------------------------------------------------------------
# Raw expressions


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ColumnRef(Node):
    """`a.b.c`; a trailing `*` is the field '*' with `is_star`."""

    fields: tuple[str, ...]
    is_star: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ParamRef(Node):
    number: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constant(Node):
    """A literal: kind says what `value` is.

    integer: a value that fits int4, as text; float: any other number, as text without underscores;
    string: the text; bit: 'b0101' or 'x1f'; boolean: 'true' or 'false'; null: None.
    """

    kind: Literal["integer", "float", "string", "bit", "boolean", "null"]
    value: str | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TypeCast(Node):
    """CAST(arg AS type), arg::type or type 'literal'."""

    arg: RawExpr
    type_name: TypeName


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CollateClause(Node):
    arg: RawExpr
    name: tuple[str, ...]


AExprKind: TypeAlias = Literal[
    "op", "op_any", "op_all", "distinct", "not_distinct", "nullif", "in", "like", "ilike",
    "similar",
    "between", "not_between", "between_symmetric", "not_between_symmetric",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AExpr(Node):
    """An operator or an operator-like construct (A_Expr).

    `name` is the operator's name, qualified by OPERATOR(schema.op); for `in` it is = or <>, for
    `like`,
    `ilike`, `similar` the operator that they stand for (~~, !~~, ~~*, !~~*, ~, !~).  `right` is
    a tuple
    for `in` and the betweens.  `left` is None for a prefix operator.
    """

    kind: AExprKind
    name: tuple[str, ...]
    left: RawExpr | None
    right: RawExpr | tuple[RawExpr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoolExpr(Node):
    """AND and OR take two or more args (a left-deep chain is flattened, as in makeAndExpr), NOT
    one.
    """

    op: Literal["and", "or", "not"]
    args: tuple[RawExpr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NullTest(Node):
    arg: RawExpr
    is_null: bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BooleanTest(Node):
    arg: RawExpr
    test: Literal["true", "not true", "false", "not false", "unknown", "not unknown"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JsonIsPredicate(Node):
    arg: RawExpr
    item: Literal["any", "object", "array", "scalar"]
    unique_keys: bool = False
    is_not: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SortBy(Node):
    expr: RawExpr
    direction: Literal["default", "asc", "desc"] = "default"
    nulls: Literal["default", "first", "last"] = "default"
    using: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WindowDef(Node):
    """An OVER clause or an entry of WINDOW; `frame` is its text, '' for the default frame."""

    name: str | None = None
    ref_name: str | None = None
    partition_by: tuple[RawExpr, ...] = ()
    order_by: tuple[SortBy, ...] = ()
    frame: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NamedArg(Node):
    name: str
    arg: RawExpr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FuncCall(Node):
    """`format` sql is a construct that SQL spells with keywords: SUBSTRING(x FROM y), x AT TIME
    ZONE y.
    """

    name: tuple[str, ...]
    args: tuple[RawExpr | NamedArg, ...]
    is_star: bool = False
    is_distinct: bool = False
    is_variadic: bool = False
    order_by: tuple[SortBy, ...] = ()
    within_group: bool = False
    filter: RawExpr | None = None
    over: WindowDef | None = None
    format: Literal["call", "sql"] = "call"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SqlValueFunction(Node):
    """CURRENT_DATE and its like; `name` is the keyword in lower case."""

    name: str
    precision: int = -1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CaseWhen(Node):
    condition: RawExpr
    result: RawExpr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CaseExpr(Node):
    arg: RawExpr | None
    whens: tuple[CaseWhen, ...]
    default: RawExpr | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CoalesceExpr(Node):
    args: tuple[RawExpr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MinMaxExpr(Node):
    op: Literal["greatest", "least"]
    args: tuple[RawExpr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ArrayExpr(Node):
    """ARRAY[...]; a nested `[...]` inside it is an ArrayExpr too."""

    elements: tuple[RawExpr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowExpr(Node):
    args: tuple[RawExpr, ...]
    is_explicit: bool  # ROW(...), not just (a, b)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Subscript(Node):
    """`[upper]` or, when `is_slice`, `[lower:upper]`."""

    lower: RawExpr | None
    upper: RawExpr | None
    is_slice: bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Indirection(Node):
    """`arg[1].field.*`: each item is a Subscript, a field name, or '*'."""

    arg: RawExpr
    items: tuple[Subscript | str, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SubLink(Node):
    """A subquery in an expression: `test` and `operator` belong to `test operator ANY/ALL (query)`.

    `test IN (query)` is kind any with operator ().
    """

    kind: Literal["exists", "all", "any", "expr", "array"]
    query: SelectStmt
    test: RawExpr | None = None
    operator: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GroupingFunc(Node):
    args: tuple[RawExpr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SetToDefault(Node):
    """DEFAULT where a value may stand."""


RawExpr: TypeAlias = (
    ColumnRef
    | ParamRef
    | Constant
    | TypeCast
    | CollateClause
    | AExpr
    | BoolExpr
    | NullTest
    | BooleanTest
    | JsonIsPredicate
    | FuncCall
    | SqlValueFunction
    | CaseExpr
    | CoalesceExpr
    | MinMaxExpr
    | ArrayExpr
    | RowExpr
    | Indirection
    | SubLink
    | GroupingFunc
    | SetToDefault
)


# ---------------------------------------------------------------------------------------------
# Queries


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResTarget(Node):
    """An output column, `value [AS name]`; in SET and INSERT's column list `name` is the column."""

    value: RawExpr | None
    name: str | None = None
    indirection: tuple[Subscript | str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RangeSubselect(Node):
    query: SelectStmt
    alias: Alias | None
    is_lateral: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RangeFunction(Node):
    function: RawExpr
    alias: Alias | None
    is_lateral: bool = False
    with_ordinality: bool = False
    column_definitions: tuple[ColumnDef, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JoinExpr(Node):
    kind: Literal["inner", "left", "right", "full", "cross"]
    left: FromItem
    right: FromItem
    is_natural: bool = False
    using: tuple[str, ...] = ()
    on: RawExpr | None = None
    alias: Alias | None = None


FromItem: TypeAlias = RangeVar | RangeSubselect | RangeFunction | JoinExpr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CommonTableExpr(Node):
    name: str
    columns: tuple[str, ...]
    query: Statement
    materialized: bool | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WithClause(Node):
    ctes: tuple[CommonTableExpr, ...]
    is_recursive: bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GroupingSet(Node):
    kind: Literal["empty", "rollup", "cube", "sets"]
    content: tuple[RawExpr | GroupingSet, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SelectStmt(Node):
    """A SELECT, a VALUES list (`values`), or a set operation (`set_op`, `left`, `right`).

    `distinct` is None without DISTINCT, () for plain DISTINCT, else DISTINCT ON's expressions.
    """

    targets: tuple[ResTarget, ...] = ()
    distinct: tuple[RawExpr, ...] | None = None
    into: RangeVar | None = None
    from_clause: tuple[FromItem, ...] = ()
    where: RawExpr | None = None
    group_by: tuple[RawExpr | GroupingSet, ...] = ()
    group_distinct: bool = False
    having: RawExpr | None = None
    windows: tuple[WindowDef, ...] = ()
    values: tuple[tuple[RawExpr, ...], ...] = ()
    set_op: Literal["union", "intersect", "except"] | None = None
    all: bool = False
    left: SelectStmt | None = None
    right: SelectStmt | None = None
    order_by: tuple[SortBy, ...] = ()
    limit: RawExpr | None = None
    offset: RawExpr | None = None
    with_ties: bool = False
    locking: str = ""
    with_clause: WithClause | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OnConflict(Node):
    action: Literal["nothing", "update"]
    targets: tuple[RawExpr, ...] = ()
    constraint: str | None = None
    assignments: tuple[Assignment, ...] = ()
    where: RawExpr | None = None
    target_where: RawExpr | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Insert(Node):
    """`query` is None for DEFAULT VALUES."""

    relation: RangeVar
    columns: tuple[ResTarget, ...]
    query: SelectStmt | None
    overriding: Literal["system", "user"] | None = None
    on_conflict: OnConflict | None = None
    returning: tuple[ResTarget, ...] = ()
    with_clause: WithClause | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assignment(Node):
    """`targets = value`; more than one target for (a, b) = (..)."""

    targets: tuple[ResTarget, ...]
    value: RawExpr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Update(Node):
    relation: RangeVar
    assignments: tuple[Assignment, ...]
    from_clause: tuple[FromItem, ...] = ()
    where: RawExpr | None = None
    returning: tuple[ResTarget, ...] = ()
    with_clause: WithClause | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Delete(Node):
    relation: RangeVar
    using: tuple[FromItem, ...] = ()
    where: RawExpr | None = None
    returning: tuple[ResTarget, ...] = ()
    with_clause: WithClause | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Truncate(Node):
    relations: tuple[RangeVar, ...]
    restart_identity: bool = False
    cascade: bool = False


# ---------------------------------------------------------------------------------------------
# Options


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DefElem(Node):
    """`name = value` in a WITH list; value None where only the name stands.

    A value that was written as a name or keyword (publish = insert, slot_name = NONE) is a string
    with `is_name`; a number or string literal is its text.
    """

    name: str
    value: str | None
    is_name: bool = False


# ---------------------------------------------------------------------------------------------
# Publications and subscriptions


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PublicationTable(Node):
    relation: RangeVar
    columns: tuple[str, ...] | None = None
    where: RawExpr | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PublicationSchema(Node):
    """A schema by name, or CURRENT_SCHEMA (name None)."""

    name: str | None


PublicationObject: TypeAlias = PublicationTable | PublicationSchema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreatePublication(Node):
    name: str
    objects: tuple[PublicationObject, ...] = ()
    for_all_tables: bool = False
    options: tuple[DefElem, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterPublication(Node):
    """SET (options), or ADD/SET/DROP of objects."""

    name: str
    action: Literal["options", "add", "set", "drop"]
    objects: tuple[PublicationObject, ...] = ()
    options: tuple[DefElem, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateSubscription(Node):
    name: str
    conninfo: str
    publications: tuple[str, ...]
    options: tuple[DefElem, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterSubscription(Node):
    name: str
    action: Literal[
        "options", "connection", "refresh", "add_publication", "set_publication",
        "drop_publication", "enable", "disable", "skip",
    ]  # fmt: skip
    conninfo: str | None = None
    publications: tuple[str, ...] = ()
    options: tuple[DefElem, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DropSubscription(Node):
    name: str
    missing_ok: bool = False
    behavior: Literal["restrict", "cascade"] = "restrict"


# ---------------------------------------------------------------------------------------------
# Tables


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constraint(Node):
    """A constraint of a column or of a table; `columns` is () for a column's own."""

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
    """A column of CREATE TABLE; `type_name` is None in PARTITION OF's list of column options."""

    name: str
    type_name: TypeName | None
    constraints: tuple[Constraint, ...] = ()
    collation: tuple[str, ...] = ()
    storage: str | None = None
    compression: str | None = None


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
    """FOR VALUES ... or DEFAULT; MINVALUE and MAXVALUE stand as ColumnRefs, as in gram.y."""

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
    """One action of ALTER TABLE; which fields are set depends on `kind`."""

    kind: Literal[
        "add_column", "drop_column", "alter_type", "set_default", "drop_default", "set_not_null",
        "drop_not_null", "add_constraint", "drop_constraint", "validate_constraint",
        "replica_identity", "attach_partition", "detach_partition", "inherit", "no_inherit",
        "owner_to", "set_options", "reset_options", "set_storage", "set_statistics",
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
    relation: RangeVar
    commands: tuple[AlterTableCmd, ...]
    missing_ok: bool = False


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
    including: tuple[str, ...] = ()
    nulls_not_distinct: bool = False
    where: RawExpr | None = None
    if_not_exists: bool = False
    concurrently: bool = False
    options: tuple[DefElem, ...] = ()
    tablespace: str | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateSequence(Node):
    relation: RangeVar
    options: tuple[DefElem, ...] = ()
    if_not_exists: bool = False


# ---------------------------------------------------------------------------------------------
# Other objects

ObjectType: TypeAlias = Literal[
    "table", "view", "materialized view", "index", "sequence", "schema", "database", "publication",
    "subscription", "type", "function", "operator", "role", "column", "constraint", "domain",
    "foreign table",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CreateSchema(Node):
    name: str | None
    if_not_exists: bool = False
    authorization: str | None = None


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
class CreateOperator(Node):
    """CREATE OPERATOR name (...): argument types and function stand apart from `options`."""

    names: tuple[str, ...]
    function: tuple[str, ...]
    left: TypeName | None
    right: TypeName | None
    options: tuple[DefElem, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Drop(Node):
    """DROP of objects whose name says it all; each name is a tuple of its parts."""

    object_type: ObjectType
    names: tuple[tuple[str, ...], ...]
    missing_ok: bool = False
    behavior: Literal["restrict", "cascade"] = "restrict"
    arguments: tuple[tuple[FunctionParameter, ...] | None, ...] = ()  # of functions, if given
    concurrently: bool = False
    name_positions: tuple[int, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rename(Node):
    """ALTER ... RENAME TO; for a column or constraint `sub_name` is its old name."""

    object_type: ObjectType
    name: tuple[str, ...]
    new_name: str
    sub_name: str | None = None
    missing_ok: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterOwner(Node):
    object_type: ObjectType
    name: tuple[str, ...]
    new_owner: str
    missing_ok: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlterObjectSchema(Node):
    object_type: ObjectType
    name: tuple[str, ...]
    new_schema: str
    missing_ok: bool = False


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
    """SET name TO values (() for DEFAULT), or RESET (`reset`); name 'all' for RESET ALL."""

    name: str
    values: tuple[str, ...] = ()
    is_local: bool = False
    reset: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VariableShow(Node):
    name: str


#: What is neither a query nor a change of rows.
UtilityStatement: TypeAlias = (
    CreatePublication
    | AlterPublication
    | CreateSubscription
    | AlterSubscription
    | DropSubscription
    | CreateTable
    | CreateTableAs
    | AlterTable
    | CreateIndex
    | CreateSequence
    | CreateSchema
    | CreateDatabase
    | DropDatabase
    | CreateEnum
    | CreateFunction
    | CreateOperator
    | Drop
    | Rename
    | AlterOwner
    | AlterObjectSchema
    | TransactionStmt
    | VariableSet
)
Statement: TypeAlias = (
    SelectStmt | Insert | Update | Delete | Truncate | VariableShow | UtilityStatement
)
