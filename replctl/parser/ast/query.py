"""Queries and changes of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from replctl.parser.ast.expression import Alias, RangeVar, RawExpr, SortBy, Subscript, WindowDef
from replctl.parser.ast.syntax_node import Node
from replctl.record import dataclass

if TYPE_CHECKING:
    from replctl.parser.ast import Statement
    from replctl.parser.ast.table import ColumnDef


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResTarget(Node):
    """An output column, `value [AS name]`; in SET and INSERT's column list, `name` is the
    column.
    """

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

    `distinct` is None without DISTINCT, () for plain DISTINCT, or the expressions of DISTINCT ON.
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
    """An INSERT; `query` is None for DEFAULT VALUES."""

    relation: RangeVar
    columns: tuple[ResTarget, ...]
    query: SelectStmt | None
    overriding: Literal["system", "user"] | None = None
    on_conflict: OnConflict | None = None
    returning: tuple[ResTarget, ...] = ()
    with_clause: WithClause | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assignment(Node):
    """`target = value`, or with `is_row` `(target, ...) = value`, whose value must be a row."""

    targets: tuple[ResTarget, ...]
    value: RawExpr
    is_row: bool = False


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
