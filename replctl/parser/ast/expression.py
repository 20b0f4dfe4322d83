"""Names, types and expressions, as written: no name in them is looked up yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from replctl.parser.ast.syntax_node import Node
from replctl.record import dataclass

if TYPE_CHECKING:
    from replctl.parser.ast.query import SelectStmt

# ---------------------------------------------------------------------------------------------
# Names and types


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RangeVar(Node):
    """The name of a relation: `catalog.schema.name`; `inherit` is False for ONLY."""

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
    """The name of a type: `names` as written or, for types that SQL spells with keywords,
    ('pg_catalog', name in the catalog).

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
    """`a.b.c`; for a trailing `*`, the last field is '*', and `is_star` is true."""

    fields: tuple[str, ...]
    is_star: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ParamRef(Node):
    number: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constant(Node):
    """A literal; `kind` decides the meaning of `value`.

    - integer: a value that fits int4, as text
    - float: any other number, as text without underscores
    - string: the text
    - bit: 'b0101' or 'x1f'
    - boolean: 'true' or 'false'
    - null: None
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
    """An operator or a similar construct (A_Expr).

    `name` is the operator's name, with the schema of OPERATOR(schema.op).  For `in` it is = or <>;
    for `like`, `ilike` and `similar` it is the operator that they stand for (~~, !~~, ~~*, !~~*, ~,
    !~).  `right` is a tuple for `in` and the kinds of BETWEEN.  `left` is None for a prefix
    operator.
    """

    kind: AExprKind
    name: tuple[str, ...]
    left: RawExpr | None
    right: RawExpr | tuple[RawExpr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoolExpr(Node):
    """AND or OR with two or more args, or NOT with one arg.

    A chain such as `a AND b AND c` is one node, unless parentheses group it from the right
    (makeAndExpr).
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
class XmlIsDocument(Node):
    arg: RawExpr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SortBy(Node):
    expr: RawExpr
    direction: Literal["default", "asc", "desc"] = "default"
    nulls: Literal["default", "first", "last"] = "default"
    using: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WindowDef(Node):
    """An OVER clause or an entry of WINDOW.

    Attributes:
        frame: the frame's text, with `{}` for each offset; '' for the default frame.
    """

    name: str | None = None
    ref_name: str | None = None
    partition_by: tuple[RawExpr, ...] = ()
    order_by: tuple[SortBy, ...] = ()
    frame: str = ""
    offsets: tuple[RawExpr, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NamedArg(Node):
    name: str
    arg: RawExpr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FuncCall(Node):
    """A function call; `format` is sql for a construct that SQL spells with keywords: SUBSTRING(x
    FROM y), x AT TIME ZONE y.
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
    """CURRENT_DATE and similar functions; `name` is the keyword in lower case."""

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
    """ARRAY[...]; a nested `[...]` is also an ArrayExpr."""

    elements: tuple[RawExpr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowExpr(Node):
    args: tuple[RawExpr, ...]
    is_explicit: bool  # ROW(...), not just (a, b)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Subscript(Node):
    """`[upper]`; `[lower:upper]` if `is_slice`."""

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
    """A subquery in an expression; `test` and `operator` belong to `test operator ANY/ALL (query)`.

    `test IN (query)` has the kind any and the operator ().
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
    """DEFAULT in the place of a value."""


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
    | XmlIsDocument
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
