"""Choose names for the items of FROM and for their columns in the text of a query
(set_deparse_for_query() in ruleutils.c).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from replctl.catalog.pg_class import Relation
from replctl.expr import nodes
from replctl.query.tree import (
    FromCte,
    FromFunction,
    FromNode,
    FromSubquery,
    FromTable,
    Join,
    Query,
    transform,
)
from replctl.record import dataclass

#: The varno of columns of JOIN ... USING that are columns of neither side.
MERGED = -1

#: An item of FROM that has a varno.
_Leaf: TypeAlias = FromTable | FromSubquery | FromFunction | FromCte


@dataclass(frozen=True)
class Source:
    """The name of an item of FROM, and the names of its columns by attnum, for references.

    Attributes:
        lists_columns: the item's text lists the names of its columns.
    """

    name: str
    columns: dict[int, str]
    lists_columns: bool = False


def with_sources(
    query: Query, outer_names: Collection[str] = (), reserved: Collection[str] = ()
) -> tuple[Query, dict[int, Source]]:
    """Return a query to print, and the names of the items of its FROM by varno.

    In the query, Vars of MERGED stand for merged columns, and the columns of USING have the names
    to print.

    Args:
        outer_names: the names of items of outer queries.
        reserved: names of merged columns of outer queries, which the query's columns must not hide.
    """
    names = _ColumnNames(query.from_, reserved)
    query = replace(query, from_=tuple(names.named(item) for item in query.from_))
    taken = {*outer_names}
    sources: dict[int, Source] = {}
    for item in sorted(leaves(query.from_), key=lambda item: item.varno):  # set_rtable_names
        name = _unique(_own_name(item), taken)
        taken.add(name)
        sources[item.varno] = names.source(item, name)
    query, sources[MERGED] = _with_merged_columns(query)
    return query, sources


def all_sources(query: Query) -> dict[int, Source]:
    """Return the items of FROM by varno, including those of subqueries, with their own names."""
    sources: dict[int, Source] = {}

    def note(item: Any) -> None:
        if isinstance(item, _Leaf):
            sources[item.varno] = Source(_own_name(item), _columns(item))

    transform(query, note)
    return sources


def reads_merged(query: Query) -> bool:
    """Return whether a subquery reads a merged column of an outer query."""
    found: list[nodes.Var] = []

    def note(node: Any) -> None:
        if isinstance(node, nodes.Var) and node.varno == MERGED:
            found.append(node)

    transform(query, note)
    return bool(found)


def leaves(items: Iterable[FromNode]) -> list[_Leaf]:
    """Return the items of FROM that have a varno."""
    found: list[_Leaf] = []
    for item in items:
        if isinstance(item, Join):
            found += leaves((item.left, item.right))
        else:
            found.append(item)
    return found


class _ColumnNames:
    """Chooses names of columns.  Both sides of USING have the same name for its columns.

    A merged column has no prefix.  If a query has a merged column that is a column of neither side,
    all names in USING are unique: other columns with the same name get another one.
    """

    def __init__(self, items: Sequence[FromNode], reserved: Collection[str]) -> None:
        self._is_unique = any(_merged_columns(item) for item in items)
        self._taken = {*reserved}
        self._given: dict[int, dict[int, str]] = {}  # varno -> attnum -> name
        self._above: dict[int, tuple[str, ...]] = {}  # varno -> names in USING of joins above it

    def named(self, item: FromNode, above: tuple[str, ...] = ()) -> FromNode:
        """Return an item with names for the columns of USING (set_using_names).

        Args:
            above: the names in USING of the joins above the item.
        """
        if not isinstance(item, Join):
            self._above[item.varno] = above
            return item
        names: dict[str, str] = {}
        for name, condition in zip(item.using, _conditions(item), strict=True):
            columns = [node for node in nodes.walk(condition) if isinstance(node, nodes.Var)]
            chosen = next(filter(None, map(self._name, columns)), None)
            if chosen is None:
                chosen = _unique(name, {*names.values(), *above, *self._taken})
                if self._is_unique:
                    self._taken.add(chosen)
            names[name] = chosen
            for column in columns:
                self._given.setdefault(column.varno, {})[column.attnum] = chosen
        below = (*above, *names.values())
        return replace(
            item,
            left=self.named(item.left, below),
            right=self.named(item.right, below),
            using=tuple(names.values()),
            merged=tuple((names[name], expr) for name, expr in item.merged),
        )

    def _name(self, column: nodes.Var) -> str | None:
        return self._given.get(column.varno, {}).get(column.attnum)

    def source(self, item: _Leaf, name: str) -> Source:
        """Return an item whose columns have names that differ (set_relation_column_names)."""
        given = self._given.get(item.varno, {})
        taken = {*self._above[item.varno], *self._taken, *given.values()}
        own = _columns(item)
        columns: dict[int, str] = {}
        for attnum, column in sorted(own.items()):
            columns[attnum] = given.get(attnum) or _unique(column, taken)
            taken.add(columns[attnum])
        lists_alias = item.alias is not None and bool(item.alias.columns)
        lists_columns = lists_alias or isinstance(item, FromFunction) or columns != own
        return Source(name, columns, lists_columns)


def _conditions(join: Join) -> Sequence[nodes.Expr]:
    """Return the comparisons of USING in the order of its columns."""
    if len(join.using) > 1:
        assert isinstance(join.on, nodes.BoolExpr)
        return join.on.args
    return () if not join.using or join.on is None else (join.on,)


def _unique(wanted: str, taken: Collection[str]) -> str:
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def _with_merged_columns(query: Query) -> tuple[Query, Source]:
    """Return a query in which Vars stand for the merged columns of its joins, and their names.
    PostgreSQL prints such a column as its name alone.
    """
    merged = [column for item in query.from_ for column in _merged_columns(item)]
    numbers = {expr: number for number, (_, expr) in enumerate(merged, start=1)}
    names = {number: name for number, (name, _) in enumerate(merged, start=1)}
    if not numbers:
        return query, Source("", names)

    def replaced(node: Any) -> Any:
        if isinstance(node, Join):
            return replace(
                node,
                left=transform(node.left, replaced),
                right=transform(node.right, replaced),
                on=node.on if node.using else transform(node.on, replaced),
            )
        if not isinstance(node, _COMPUTED):
            return None
        number = numbers.get(nodes.transform(node, without_levels))
        if number is None:
            return None
        inner = next(part for part in nodes.walk(node) if isinstance(part, nodes.Var))
        return nodes.Var(
            number,
            node.type,
            nodes.typmod(node),
            nodes.collation(node),
            MERGED,
            inner.levels_up,
        )

    return transform(query, replaced), Source("", names)


#: The nodes that merge columns: casts and COALESCE.
_COMPUTED = (
    nodes.FuncExpr
    | nodes.RelabelType
    | nodes.CoerceViaIO
    | nodes.ArrayCoerceExpr
    | nodes.CoerceToDomain
    | nodes.CoalesceExpr
)


def _merged_columns(item: FromNode) -> tuple[tuple[str, nodes.Expr], ...]:
    if not isinstance(item, Join):
        return ()
    return (*_merged_columns(item.left), *_merged_columns(item.right), *item.merged)


def without_levels(node: nodes.Node) -> nodes.Node | None:
    """Return a Var of an outer query as a Var of its own query; None for other nodes."""
    return replace(node, levels_up=0) if isinstance(node, nodes.Var) and node.levels_up else None


def _own_name(item: _Leaf) -> str:
    if item.alias is not None:
        return item.alias.name
    match item:
        case FromTable():
            return item.relation.name
        case FromCte():
            return item.name
    return "unnamed_subquery"


def _columns(item: _Leaf) -> dict[int, str]:
    if isinstance(item, FromTable):
        relation = item.relation
        if isinstance(relation, Relation):
            names = {column.attnum: column.name for column in relation.columns}
        else:
            names = {i: name for i, (name, _type) in enumerate(relation.columns, start=1)}
    else:
        columns = item.query.columns if isinstance(item, FromSubquery) else item.columns
        names = {i: column.name for i, column in enumerate(columns, start=1)}
    given = () if item.alias is None else item.alias.columns
    for attnum, name in zip(sorted(names), given, strict=False):
        names[attnum] = name
    return names
