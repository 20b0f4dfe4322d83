"""Typed expressions (PostgreSQL's primnodes.h): analysis builds them from raw expressions, the
catalog stores them, deparse prints them, and engines translate them.

`type` is the name in the catalog (`int4`, `_text`) or, for a user-defined type, '@' and its OID.  A
typmod is PostgreSQL's (-1: none; varchar(5) has 9).  Every node is frozen and hashable.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias, Union

from replctl.record import dataclass
from replctl.relation_name import DomainName

CoercionForm: TypeAlias = Literal["call", "explicit", "implicit", "sql"]


@dataclass(frozen=True, slots=True)
class Node:
    pos: int = dataclasses.field(default=-1, kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Var(Node):
    """A column: `attnum` of range table entry `varno` (from 1) of the query `levels_up` levels out.

    An attnum of 0 means the whole row, a negative one a system column.
    """

    attnum: int
    type: str
    typmod: int = -1
    collation: str | None = None
    varno: int = 1
    levels_up: int = 0


@dataclass(frozen=True, slots=True)
class Const(Node):
    """A value in its type's canonical text (`t`, `1.50`, `{1,2}`); None for NULL."""

    type: str
    value: str | None
    typmod: int = -1
    collation: str | None = None


#: The Params for VALUE in the CHECK of a domain, and for the output column that ORDER BY sorts.
VALUE, SORTED = -1, -2


@dataclass(frozen=True, slots=True)
class Param(Node):
    """A placeholder.  Number 0 is the operand of a CASE or an element of an array that is cast;
    higher numbers are the columns of a subquery.  VALUE and SORTED are below 0.
    """

    number: int
    type: str
    typmod: int = -1
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class FuncExpr(Node):
    """A function call; `form` distinguishes casts from calls for printing (CoercionForm)."""

    function_oid: int
    name: str
    type: str
    args: tuple[Expr, ...]
    form: CoercionForm = "call"
    is_variadic: bool = False
    returns_set: bool = False
    collation: str | None = None
    input_collation: str | None = None


@dataclass(frozen=True, slots=True)
class NamedArgExpr(Node):
    """A named argument of a function call."""

    arg: Expr
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class OpExpr(Node):
    """An operator with one or two args; `function` is its implementation's name in pg_proc."""

    operator_oid: int
    name: str
    function: str
    type: str
    args: tuple[Expr, ...]
    collation: str | None = None
    input_collation: str | None = None


@dataclass(frozen=True, slots=True)
class DistinctExpr(Node):
    """`a IS DISTINCT FROM b`, with the operator `=` for these types."""

    operator_oid: int
    function: str
    args: tuple[Expr, Expr]
    input_collation: str | None = None
    type: str = "bool"


@dataclass(frozen=True, slots=True)
class NullIfExpr(Node):
    operator_oid: int
    function: str
    type: str
    args: tuple[Expr, Expr]
    collation: str | None = None
    input_collation: str | None = None


@dataclass(frozen=True, slots=True)
class ScalarArrayOpExpr(Node):
    """`arg operator ANY (array)`; ALL unless `use_or`."""

    operator_oid: int
    name: str
    function: str
    use_or: bool
    args: tuple[Expr, Expr]
    input_collation: str | None = None
    type: str = "bool"


@dataclass(frozen=True, slots=True)
class BoolExpr(Node):
    op: Literal["and", "or", "not"]
    args: tuple[Expr, ...]
    type: str = "bool"


@dataclass(frozen=True, slots=True)
class NullTest(Node):
    """A test for NULL; with `is_row`, it tests each field of the argument, which is a row."""

    arg: Expr
    is_null: bool
    is_row: bool = False
    type: str = "bool"


@dataclass(frozen=True, slots=True)
class BooleanTest(Node):
    arg: Expr
    test: Literal["true", "not true", "false", "not false", "unknown", "not unknown"]
    type: str = "bool"


@dataclass(frozen=True, slots=True)
class CaseWhen(Node):
    condition: Expr
    result: Expr


@dataclass(frozen=True, slots=True)
class CaseExpr(Node):
    """A CASE; if it has an `arg`, its conditions are `Param(0) = value`."""

    type: str
    arg: Expr | None
    whens: tuple[CaseWhen, ...]
    default: Expr
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class CoalesceExpr(Node):
    """COALESCE(...); with `is_merged`, a column of FULL JOIN ... USING."""

    type: str
    args: tuple[Expr, ...]
    collation: str | None = None
    is_merged: bool = False


@dataclass(frozen=True, slots=True)
class MinMaxExpr(Node):
    op: Literal["greatest", "least"]
    type: str
    args: tuple[Expr, ...]
    collation: str | None = None
    input_collation: str | None = None


@dataclass(frozen=True, slots=True)
class SqlValueFunction(Node):
    """CURRENT_DATE and similar functions; `name` is the keyword in lower case."""

    name: str
    type: str
    typmod: int = -1
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class ArrayExpr(Node):
    type: str
    element_type: str
    elements: tuple[Expr, ...]
    is_multidimensional: bool = False
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class RowExpr(Node):
    args: tuple[Expr, ...]
    form: CoercionForm = "call"  # call: ROW(...), implicit: (a, b)
    type: str = "record"


@dataclass(frozen=True, slots=True)
class RowCompareExpr(Node):
    """`ROW(..) name ROW(..)`; the name is <, <=, >, >= or a similar operator such as ~<~ or *<."""

    name: str
    operator_oids: tuple[int, ...]
    functions: tuple[str, ...]
    left: tuple[Expr, ...]
    right: tuple[Expr, ...]
    input_collations: tuple[str | None, ...] = ()
    type: str = "bool"


@dataclass(frozen=True, slots=True)
class RelabelType(Node):
    """A cast between binary-compatible types."""

    arg: Expr
    type: str
    typmod: int = -1
    form: CoercionForm = "implicit"
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class CoerceViaIO(Node):
    """A cast with an output and an input function.  `enum` has the name and labels of an enum."""

    arg: Expr
    type: str
    form: CoercionForm = "implicit"
    collation: str | None = None
    enum: tuple[str, tuple[str, ...]] | None = None


@dataclass(frozen=True, slots=True)
class ArrayCoerceExpr(Node):
    """A cast of an array element by element; `element` is the cast of Param(0)."""

    arg: Expr
    element: Expr
    type: str
    typmod: int = -1
    form: CoercionForm = "implicit"
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class DomainCheck(Node):
    """A CHECK of a domain; Param(VALUE) is the value."""

    name: str
    condition: Expr


@dataclass(frozen=True, slots=True)
class CoerceToDomain(Node):
    """A value of the base type, checked and labelled as a value of the domain `type`.

    In expressions for engines (user_type.py), `type` is the base type, and the node has the checks.
    """

    arg: Expr
    type: str
    typmod: int = -1
    form: CoercionForm = "implicit"
    collation: str | None = None
    domain: DomainName | None = None
    not_null: bool = False
    checks: tuple[DomainCheck, ...] = ()


@dataclass(frozen=True, slots=True)
class CollateExpr(Node):
    arg: Expr
    collation: str
    type: str = "text"


@dataclass(frozen=True, slots=True)
class SubscriptingRef(Node):
    """`arg[upper]`; if `lower` is not None, `arg[lower:upper]` (omitted bounds are None).  If
    `assigned` is not None, the node is the whole `arg` in which this part has that value."""

    arg: Expr
    type: str
    upper: tuple[Expr | None, ...]
    lower: tuple[Expr | None, ...] | None = None
    typmod: int = -1
    collation: str | None = None
    assigned: Expr | None = None


@dataclass(frozen=True, slots=True)
class FieldSelect(Node):
    arg: Expr
    field_number: int
    field_name: str
    type: str
    typmod: int = -1
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class JsonValueExpr(Node):
    """A JSON document given as bytea: `raw` as written, `formatted` as text."""

    raw: Expr
    formatted: Expr
    type: str


@dataclass(frozen=True, slots=True)
class JsonIsPredicate(Node):
    arg: Expr
    item: Literal["any", "object", "array", "scalar"]
    unique_keys: bool = False
    type: str = "bool"


@dataclass(frozen=True, slots=True)
class XmlIsDocument(Node):
    arg: Expr
    type: str = "bool"


@dataclass(frozen=True, slots=True)
class SortKey(Node):
    """An ORDER BY item: `expr`, sorted by `<` or `>` of its type or by the operator after USING."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = False
    using: str | None = None


@dataclass(frozen=True, slots=True)
class Aggref(Node):
    """A call of an aggregate; `is_star` for count(*).

    With `within_group` it is an ordered-set aggregate: `direct_args` are the arguments in its
    parentheses, `args` and `order_by` the columns of WITHIN GROUP (ORDER BY ...).
    """

    function_oid: int
    name: str
    type: str
    args: tuple[Expr, ...]
    direct_args: tuple[Expr, ...] = ()
    order_by: tuple[SortKey, ...] = ()
    is_distinct: bool = False
    is_star: bool = False
    is_variadic: bool = False
    within_group: bool = False
    filter: Expr | None = None
    levels_up: int = 0
    collation: str | None = None
    input_collation: str | None = None


@dataclass(frozen=True, slots=True)
class GroupingFunc(Node):
    """GROUPING(...): a bit mask of the `args` that the current grouping set does not contain."""

    args: tuple[Expr, ...]
    levels_up: int = 0
    type: str = "int4"


@dataclass(frozen=True, slots=True)
class WindowFunc(Node):
    """A call with OVER; `window` is a name in the WINDOW clause, or None for (PARTITION BY ...).
    The other parts of the window are those of WindowClause.
    """

    function_oid: int
    name: str
    type: str
    args: tuple[Expr, ...]
    window: str | None = None
    partition_by: tuple[Expr, ...] = ()
    order_by: tuple[SortKey, ...] = ()
    frame: str = ""
    is_star: bool = False
    is_aggregate: bool = False
    is_variadic: bool = False
    filter: Expr | None = None
    collation: str | None = None
    input_collation: str | None = None
    offsets: tuple[Expr, ...] = ()
    base: str | None = None
    copies_order: bool = False


@dataclass(frozen=True, slots=True)
class WindowClause(Node):
    """An entry of WINDOW.  `frame` is text with `{}` for each offset, or '' for the default."""

    name: str
    partition_by: tuple[Expr, ...] = ()
    order_by: tuple[SortKey, ...] = ()
    frame: str = ""
    offsets: tuple[Expr, ...] = ()
    base: str | None = None  # the window that the entry extends
    copies_order: bool = False  # ORDER BY is that of `base`


@dataclass(frozen=True, slots=True)
class SubLink(Node):
    """A subquery; only `replctl.query` knows the type of `query`.

    For the kinds any, all and row_compare, `test` compares the left-hand values with the query's
    output columns, which are Param(1), Param(2) ...
    """

    kind: Literal["exists", "all", "any", "row_compare", "expr", "array"]
    query: Any
    type: str
    test: Expr | None = None
    typmod: int = -1
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class SetToDefault(Node):
    """DEFAULT in INSERT and UPDATE, until the column's default replaces it."""

    type: str
    typmod: int = -1
    collation: str | None = None


Expr: TypeAlias = Union[  # noqa: UP007  (the classes are named before they are all defined)
    Var,
    Const,
    Param,
    FuncExpr,
    NamedArgExpr,
    OpExpr,
    DistinctExpr,
    NullIfExpr,
    ScalarArrayOpExpr,
    BoolExpr,
    NullTest,
    BooleanTest,
    CaseExpr,
    CoalesceExpr,
    MinMaxExpr,
    SqlValueFunction,
    ArrayExpr,
    RowExpr,
    RowCompareExpr,
    RelabelType,
    CoerceViaIO,
    ArrayCoerceExpr,
    CoerceToDomain,
    CollateExpr,
    SubscriptingRef,
    FieldSelect,
    JsonValueExpr,
    JsonIsPredicate,
    XmlIsDocument,
    Aggref,
    GroupingFunc,
    WindowFunc,
    SubLink,
    SetToDefault,
]


def typmod(expr: Expr) -> int:
    """Return the type modifier of an expression's value; -1 if there is none (exprTypmod)."""
    match expr:
        case CaseExpr(type=type_, whens=whens, default=default):
            return _common_typmod(type_, [when.result for when in whens] + [default])
        case CoalesceExpr(type=type_, args=args) | MinMaxExpr(type=type_, args=args):
            return _common_typmod(type_, list(args))
        case ArrayExpr(elements=elements) if elements:
            type_ = expr.type if expr.is_multidimensional else expr.element_type
            return _common_typmod(type_, list(elements))
        case NullIfExpr(args=args):
            return typmod(args[0])
        case CollateExpr(arg=arg) | NamedArgExpr(arg=arg):
            return typmod(arg)
        case FuncExpr():
            return _length_coercion_typmod(expr)
        case _:
            return getattr(expr, "typmod", -1)


def collation(expr: Expr) -> str | None:
    """Return the collation of an expression's value (exprCollation in nodeFuncs.c)."""
    match expr:
        case NamedArgExpr(arg=arg) | JsonValueExpr(formatted=arg):
            return collation(arg)
        case _:
            return getattr(expr, "collation", None)


def field_names(node: Node) -> tuple[str, ...]:
    """Return the names of a node's fields."""
    return _FIELD_NAMES[type(node)]


def children(node: Node) -> Iterator[Any]:
    """Yield the expressions directly under `node`, in the order of PostgreSQL's tree walker."""
    for name in field_names(node):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from (child for child in value if isinstance(child, Node))


def walk(node: Node) -> Iterator[Any]:
    """Yield `node` and all expressions below it, parents first, except those in subqueries."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(list(children(current))))


def transform(node: Any, function: Callable[[Any], Any]) -> Any:
    """Return a copy of `node` in which the results of `function` replace nodes, from the top down.

    `function` returns None to keep a node; transform then continues with its children.
    """
    replacement = function(node)
    if replacement is not None:
        return replacement
    changes = {}
    for item in dataclasses.fields(node):
        value = getattr(node, item.name)
        if isinstance(value, Node):
            new: Any = transform(value, function)
        elif isinstance(value, tuple):
            new = tuple(transform(v, function) if isinstance(v, Node) else v for v in value)
        else:
            continue
        if new != value:
            changes[item.name] = new
    return dataclasses.replace(node, **changes) if changes else node


def renumber(expr: Expr, attnums: Mapping[int, int]) -> Expr:
    """Return an expression with other column numbers; `attnums` maps old numbers to new ones."""

    def renumbered(node: Any) -> Any:
        if isinstance(node, Var) and node.attnum > 0:
            return dataclasses.replace(node, attnum=attnums[node.attnum])
        return None

    result: Expr = transform(expr, renumbered)
    return result


def _common_typmod(type_: str, exprs: list[Expr]) -> int:
    typmods = {typmod(expr) if expr.type == type_ else -1 for expr in exprs}
    return typmods.pop() if len(typmods) == 1 else -1


def _length_coercion_typmod(expr: FuncExpr) -> int:
    """Return the typmod that a length coercion function applies: its second argument, an int4."""
    if expr.form not in ("explicit", "implicit") or len(expr.args) not in (2, 3):
        return -1
    second = expr.args[1]
    if isinstance(second, Const) and second.type == "int4" and second.value is not None:
        return int(second.value)
    return -1


#: The field names of each kind of node.
_FIELD_NAMES = {
    node_class: tuple(item.name for item in dataclasses.fields(node_class))
    for node_class in Node.__subclasses__()
}
