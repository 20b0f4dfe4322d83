"""Analysed queries, in which every name is resolved and every expression has a type (Query in
PostgreSQL's parsenodes.h).

`Var(attnum, varno=...)` is a column of the item of FROM with this varno.  A varno is unique within
a query level.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from replctl.catalog.pg_class import Relation
from replctl.catalog.relation_kind import RelKind
from replctl.expr import nodes
from replctl.expr.environment import Environment
from replctl.record import dataclass
from replctl.types.builtin import SystemRelation
from replctl.types.function_kind import Volatility


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column that a query returns."""

    name: str
    type: str
    typmod: int = -1
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class Alias:
    """The alias of an item of FROM; only the printing of queries needs it."""

    name: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FromTable:
    """A relation in FROM.

    Attributes:
        inherit: False for ONLY.
        conditions: conditions of policies. Engines check them before all other conditions.
        columns: attnums of the used columns; None for all columns.
    """

    varno: int
    relation: Relation | SystemRelation
    inherit: bool = True
    alias: Alias | None = None
    conditions: tuple[nodes.Expr, ...] = ()
    columns: frozenset[int] | None = None

    @property
    def is_view(self) -> bool:
        return isinstance(self.relation, Relation) and self.relation.kind == RelKind.VIEW

    @property
    def is_catalog(self) -> bool:
        """Return whether the relation is a catalog or a sequence, whose rows are in the catalog."""
        return isinstance(self.relation, SystemRelation) or self.relation.kind == RelKind.SEQUENCE


@dataclass(frozen=True, slots=True)
class FromSubquery:
    varno: int
    query: Query
    is_lateral: bool = False
    alias: Alias | None = None


@dataclass(frozen=True, slots=True)
class FromCte:
    """A WITH query in FROM, by its name."""

    varno: int
    name: str
    columns: tuple[OutputColumn, ...]
    alias: Alias | None = None
    is_recursive: bool = False  # read by its own recursive term


@dataclass(frozen=True, slots=True)
class FromFunction:
    """A function call in FROM. With `with_ordinality`, the last column numbers the rows.

    Attributes:
        others: further calls, each with one column. Their rows stand next to those of `function`;
            NULLs fill the shorter sets (ROWS FROM).
    """

    varno: int
    function: nodes.Expr
    columns: tuple[OutputColumn, ...]
    with_ordinality: bool = False
    is_lateral: bool = False
    alias: Alias | None = None
    others: tuple[nodes.Expr, ...] = ()

    @property
    def parts(self) -> tuple[FromFunction, ...]:
        """Return an item for each call."""
        if not self.others:
            return (self,)
        calls = zip((self.function, *self.others), self.columns, strict=True)
        return tuple(
            dataclasses.replace(self, function=call, columns=(column,), others=())
            for call, column in calls
        )


@dataclass(frozen=True, slots=True)
class Join:
    """A join.

    Attributes:
        on: the condition, including the comparisons of USING.
        using: the names of the columns of USING, for printing.
        merged: the columns of USING that are columns of neither side, for printing.
    """

    kind: Literal["inner", "left", "right", "full"]
    left: FromNode
    right: FromNode
    on: nodes.Expr | None
    using: tuple[str, ...] = ()
    merged: tuple[tuple[str, nodes.Expr], ...] = ()


FromNode: TypeAlias = FromTable | FromSubquery | FromCte | FromFunction | Join


@dataclass(frozen=True, slots=True)
class Output:
    """An output column. A column with `is_junk` is invisible, and only serves to sort."""

    name: str
    expr: nodes.Expr
    is_junk: bool = False


@dataclass(frozen=True, slots=True)
class OrderItem:
    """An item of ORDER BY; `output` is the index of its output column."""

    output: int
    key: nodes.SortKey


@dataclass(frozen=True, slots=True)
class Cte:
    name: str
    query: Query
    is_recursive: bool = False
    columns: tuple[str, ...] = ()  # explicit column names
    materialized: bool | None = None


@dataclass(frozen=True, slots=True)
class SetOperation:
    op: Literal["union", "intersect", "except"]
    all: bool
    left: Query
    right: Query


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT, a VALUES list, or a set operation.

    Attributes:
        outputs: the output columns. In a set operation and a VALUES list, they are Vars of varno 0.
        from_: the items of FROM; the query joins them without a condition.
        distinct: None without DISTINCT; () for DISTINCT, else the indexes of the outputs in
            DISTINCT ON.
        values: rows of a VALUES list.
        windows: the WINDOW clause, for printing; each call with OVER has a copy of its window.
    """

    outputs: tuple[Output, ...]
    from_: tuple[FromNode, ...] = ()
    where: nodes.Expr | None = None
    group_by: tuple[nodes.Expr, ...] = ()
    having: nodes.Expr | None = None
    is_aggregated: bool = False
    distinct: tuple[int, ...] | None = None
    values: tuple[tuple[nodes.Expr, ...], ...] = ()
    set_operation: SetOperation | None = None
    order_by: tuple[OrderItem, ...] = ()
    limit: nodes.Expr | None = None
    offset: nodes.Expr | None = None
    ctes: tuple[Cte, ...] = ()
    with_recursive: bool = False  # written WITH RECURSIVE
    windows: tuple[nodes.WindowClause, ...] = ()

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        """Return the visible output columns."""
        return tuple(
            OutputColumn(
                output.name,
                output.expr.type,
                nodes.typmod(output.expr),
                nodes.collation(output.expr),
            )
            for output in self.outputs
            if not output.is_junk
        )

    def walk_levels(self, depth: int) -> Iterator[tuple[Any, int]]:
        """Yield the nodes of this query, whose depth is `depth` (see the function walk_levels)."""
        return walk_levels(self, depth)


def transform(value: Any, function: Callable[[Any], Any]) -> Any:
    """Return a copy of a query, or of a part of one, in which `function` replaces nodes, top down.

    `function` returns the replacement of a node, or None to keep the node and visit its parts. It
    does not visit relations.
    """
    return transform_levels(value, lambda node, _depth: function(node))


def transform_parts(value: Any, function: Callable[[Any], Any]) -> Any:
    """Return a copy of a node in which `function` replaces the nodes below it, top down."""
    return transform_level_parts(value, lambda node, _depth: function(node))


def transform_levels(value: Any, function: Callable[[Any, int], Any], depth: int = 0) -> Any:
    """Return a copy like `transform`, whose `function` also gets the depth of a node (see
    `walk_levels`).
    """
    if isinstance(value, tuple):
        return tuple(transform_levels(item, function, depth) for item in value)
    if not dataclasses.is_dataclass(value) or isinstance(value, Relation | SystemRelation):
        return value
    replacement = function(value, depth)
    return transform_level_parts(value, function, depth) if replacement is None else replacement


def transform_level_parts(value: Any, function: Callable[[Any, int], Any], depth: int = 0) -> Any:
    """Return a copy like `transform_parts`; the node `value` has this depth."""
    changes = {}
    for field in dataclasses.fields(value):
        before = getattr(value, field.name)
        after = transform_levels(before, function, depth + _is_deeper(value, field.name))
        if after is not before and after != before:
            changes[field.name] = after
    return dataclasses.replace(value, **changes) if changes else value


def _is_deeper(node: Any, field: str) -> bool:
    """Return whether a field has a subquery, which is one level deeper than its node."""
    return field == "query" and isinstance(node, FromSubquery | nodes.SubLink)


def with_output_keys(query: Query) -> Query:
    """Return a query whose ORDER BY items refer to its output columns by Param(SORTED)."""

    def replaced(node: Any) -> Any:
        if not isinstance(node, OrderItem):
            return None
        expr = node.key.expr
        sorted_ = nodes.Param(nodes.SORTED, expr.type, nodes.typmod(expr), nodes.collation(expr))
        return dataclasses.replace(node, key=dataclasses.replace(node.key, expr=sorted_))

    result: Query = transform(query, replaced)
    return result


def sorted_key(key: nodes.SortKey, column: nodes.Expr) -> nodes.SortKey:
    """Return the item `key` of ORDER BY with `column` as its column.

    If `key` sorts by an expression of its column, the result sorts by this expression of `column`.
    """

    def replaced(node: Any) -> Any:
        is_column = isinstance(node, nodes.Param) and node.number == nodes.SORTED
        return column if is_column else None

    computed = nodes.transform(key.expr, replaced)
    return dataclasses.replace(key, expr=column if computed == key.expr else computed)


def with_sorted_outputs(query: Query, exprs: Sequence[nodes.Expr]) -> Query:
    """Return a query with other visible columns and the same sort order."""
    visible = iter(exprs)
    outputs = [
        o if o.is_junk else dataclasses.replace(o, expr=next(visible)) for o in query.outputs
    ]
    order = []
    for item in query.order_by:
        before = query.outputs[item.output]
        if outputs[item.output].expr != before.expr:
            outputs.append(dataclasses.replace(before, is_junk=True))
            item = dataclasses.replace(item, output=len(outputs) - 1)
        order.append(item)
    return dataclasses.replace(query, outputs=tuple(outputs), order_by=tuple(order))


def is_volatile(environment: Environment, part: Any) -> bool:
    """Return whether any part of a query or an expression, including subqueries, is volatile
    (contain_volatile_functions).
    """
    found = False

    def note(node: Any) -> None:
        nonlocal found
        match node:
            case nodes.FuncExpr(function_oid=oid):
                found = found or environment.function(oid).volatility == Volatility.VOLATILE
            case nodes.OpExpr(operator_oid=oid):
                found = found or environment.operator(oid).volatility == Volatility.VOLATILE

    transform(part, note)
    return found


def tables_of(query: Query) -> Iterator[FromTable]:
    """Yield all relations in FROM, including those in subqueries."""
    for cte in query.ctes:
        yield from tables_of(cte.query)
    if query.set_operation is not None:
        yield from tables_of(query.set_operation.left)
        yield from tables_of(query.set_operation.right)
    for item in query.from_:
        yield from _tables_of_from(item)
    for expr in expressions_of(query):
        yield from _tables_of_expr(expr)


def functions_of(query: Query) -> Iterator[nodes.FuncExpr | nodes.SqlValueFunction]:
    """Yield all function calls in a query, including those in FROM and in subqueries."""
    for expr in _all_expressions(query):
        for node in nodes.walk(expr):
            if isinstance(node, nodes.FuncExpr | nodes.SqlValueFunction):
                yield node


def expressions_of(query: Query) -> Iterator[nodes.Expr]:
    """Yield the expressions of a query, without those in FROM and in subqueries."""
    yield from (output.expr for output in query.outputs)
    yield from (expr for row in query.values for expr in row)
    yield from query.group_by
    for expr in (query.where, query.having, query.limit, query.offset):
        if expr is not None:
            yield expr


def _all_expressions(query: Query) -> Iterator[nodes.Expr]:
    for inner in _subqueries(query):
        yield from _all_expressions(inner)
    yield from expressions_of(query)
    for item in query.from_:
        yield from _expressions_of_from(item)


def _subqueries(query: Query) -> Iterator[Query]:
    yield from (cte.query for cte in query.ctes)
    if query.set_operation is not None:
        yield from (query.set_operation.left, query.set_operation.right)
    for item in query.from_:
        yield from _subqueries_of_from(item)
    for expr in expressions_of(query):
        for node in nodes.walk(expr):
            if isinstance(node, nodes.SubLink):
                yield node.query


def _subqueries_of_from(item: FromNode) -> Iterator[Query]:
    if isinstance(item, Join):
        yield from _subqueries_of_from(item.left)
        yield from _subqueries_of_from(item.right)
    elif isinstance(item, FromSubquery):
        yield item.query


def _expressions_of_from(item: FromNode) -> Iterator[nodes.Expr]:
    if isinstance(item, Join):
        yield from _expressions_of_from(item.left)
        yield from _expressions_of_from(item.right)
        if item.on is not None:
            yield item.on
    elif isinstance(item, FromFunction):
        yield from (item.function, *item.others)
    elif isinstance(item, FromTable):
        yield from item.conditions


def _tables_of_from(item: FromNode) -> Iterator[FromTable]:
    match item:
        case FromTable(conditions=conditions):
            yield item
            for condition in conditions:
                yield from _tables_of_expr(condition)
        case FromSubquery(query=query):
            yield from tables_of(query)
        case Join(left=left, right=right):
            yield from _tables_of_from(left)
            yield from _tables_of_from(right)
            if item.on is not None:
                yield from _tables_of_expr(item.on)
        case FromFunction(function=first, others=others):
            for function in (first, *others):
                yield from _tables_of_expr(function)
        case FromCte():
            pass


def _tables_of_expr(expr: nodes.Expr) -> Iterator[FromTable]:
    for node in nodes.walk(expr):
        if isinstance(node, nodes.SubLink):
            yield from tables_of(node.query)


def is_recursive(query: Query) -> bool:
    """Return whether a query, or one of its subqueries, has a WITH query that reads itself."""
    return any(cte.is_recursive for cte in query.ctes) or any(map(is_recursive, _subqueries(query)))


def only_table(query: Query) -> FromTable | None:
    """Return the table of a query that returns the rows of one table, or rows that functions return
    for each of them. Such a query returns rows that are equal by ORDER BY in the order in which
    they were written. None for other queries.
    """
    item, *others = query.from_ or (None,)
    if (
        not isinstance(item, FromTable)
        or not all(isinstance(other, FromFunction) for other in others)
        or item.is_catalog
        or query.is_aggregated
        or query.distinct is not None
    ):
        return None
    walked = (node for output in query.outputs for node in nodes.walk(output.expr))
    return None if any(isinstance(node, nodes.WindowFunc) for node in walked) else item


def set_functions_of(query: Query) -> Iterator[FromFunction]:
    """Yield all functions in FROM, including those in subqueries."""
    for inner in _subqueries(query):
        yield from set_functions_of(inner)
    for item in query.from_:
        yield from _set_functions_of_from(item)


def _set_functions_of_from(item: FromNode) -> Iterator[FromFunction]:
    if isinstance(item, Join):
        yield from _set_functions_of_from(item.left)
        yield from _set_functions_of_from(item.right)
    elif isinstance(item, FromFunction):
        yield item


def lateral_subqueries(query: Query) -> frozenset[int]:
    """Return the varnos of LATERAL subqueries in FROM, at any depth."""
    found: set[int] = set()

    def note(part: Any) -> None:
        if isinstance(part, FromSubquery) and part.is_lateral:
            found.add(part.varno)

    transform(query, note)
    return frozenset(found)


def is_closed(query: Query) -> bool:
    """Return whether a query is independent of outer queries: it uses neither their columns nor
    their WITH queries.
    """

    def closed(part: Any, depth: int, names: frozenset[str]) -> bool:
        match part:
            case tuple():
                return all(closed(item, depth, names) for item in part)
            case FromSubquery():
                return closed(part.query, depth + 1, names)
            case nodes.SubLink():
                return closed(part.query, depth + 1, names) and closed(part.test, depth, names)
            case Query():
                names |= {cte.name for cte in part.ctes}
            case FromCte() if part.name not in names:
                return False
        if not dataclasses.is_dataclass(part) or isinstance(part, Relation | SystemRelation):
            return True
        if getattr(part, "levels_up", 0) >= depth:
            return False
        values = (getattr(part, field.name) for field in dataclasses.fields(part))
        return all(closed(value, depth, names) for value in values)

    return closed(query, 1, frozenset())


def uses_own_columns(expr: nodes.Expr) -> bool:
    """Return whether an expression, or a subquery in it, uses columns of the query to which the
    expression belongs (contain_vars_of_level).
    """
    return any(
        isinstance(node, nodes.Var) and node.levels_up == depth for node, depth in walk_levels(expr)
    )


def walk_levels(
    part: Any, depth: int = 0, is_entered: Callable[[Any, int], bool] = lambda _node, _depth: True
) -> Iterator[tuple[Any, int]]:
    """Yield the nodes of an expression or a query, including those in subqueries, parents first.

    A node with `levels_up` equal to its depth belongs to the query of `part`.

    Args:
        depth: the depth of `part`. Each subquery is one level deeper.
        is_entered: tells whether to visit the parts of a node at a depth.
    """
    if isinstance(part, tuple):
        for item in part:
            yield from walk_levels(item, depth, is_entered)
    if not dataclasses.is_dataclass(part) or isinstance(part, Relation | SystemRelation):
        return
    yield part, depth
    if not is_entered(part, depth):
        return
    for field in dataclasses.fields(part):
        inner_depth = depth + _is_deeper(part, field.name)
        yield from walk_levels(getattr(part, field.name), inner_depth, is_entered)
