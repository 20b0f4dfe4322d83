"""Print query trees as SQL text for SQLite or Spark: both share the clauses, while a dialect prints
expressions.

Every item of FROM has the name r<varno>, its columns have the names c1, c2, ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias, assert_never

from replctl.expr import nodes
from replctl.query.recursion import check_step
from replctl.query.tree import (
    Cte,
    FromCte,
    FromFunction,
    FromNode,
    FromSubquery,
    FromTable,
    Join,
    OrderItem,
    Output,
    Query,
    SetOperation,
    sorted_key,
)
from replctl.types import builtin
from replctl.types.function_kind import FunctionKind

#: The attnum of the system column tableoid, and the number of the column for it in a table's scan.
TABLEOID_ATTNUM = builtin.system_columns()["tableoid"][0]
TABLEOID = 0x7FFF

#: Writes a subquery without parentheses.
WriteQuery: TypeAlias = Callable[[Query], str]


class Dialect(Protocol):
    """The parts of SQL that engines write differently."""

    def table(self, item: FromTable, *, is_ordered: bool) -> str:
        """Return SQL of a relation's rows, with the columns c<attnum>.

        Args:
            is_ordered: include the columns by which `row_order` sorts.
        """

    def function(self, item: FromFunction, write: WriteQuery) -> str:
        """Return SQL of the rows of a function in FROM, with the columns c1, c2, ..."""

    def lateral(self, item: FromSubquery, query: str) -> str:
        """Return a subquery in FROM that uses columns of preceding items."""

    def expr(self, expr: nodes.Expr, write: WriteQuery) -> str:
        """Return an expression as an output column or a value of VALUES, in the stored form of its
        type.
        """

    def condition(self, expr: nodes.Expr, write: WriteQuery) -> str:
        """Return a condition of WHERE or HAVING, or of policies."""

    def join_condition(self, expr: nodes.Expr, write: WriteQuery) -> str:
        """Return a condition of ON."""

    def group_key(self, expr: nodes.Expr, write: WriteQuery) -> str:
        """Return a grouping key: it is the same for all equal values of an expression."""

    def recursive_side(self, query: Query, text: str) -> str:
        """Return the first side of a recursive UNION. `text` is the SQL of its query."""

    def check_recursive_step(self, query: Query) -> None:
        """Check that the engine can compute the second side of a recursive UNION.

        Raises:
            FeatureNotSupported: the engine cannot compute `query`.
        """

    def is_computed_once(self, query: Query) -> bool:
        """Return whether the engine computes each column of a subquery once per row, even if the
        outer query uses the column several times.
        """

    @property
    def has_all(self) -> bool:
        """Return whether the engine has INTERSECT ALL and EXCEPT ALL."""

    def is_shown_by_key(self, expr: nodes.Expr) -> bool:
        """Return whether a query that groups by the expression itself shows the values as they are
        stored.
        """

    def sort_key(
        self, key: nodes.SortKey, write: WriteQuery, source: nodes.SortKey | None = None
    ) -> str:
        """Return an ORDER BY item, with its direction.

        Args:
            source: the key over columns of FROM; None if only output columns can be used.
        """

    def row_order(self, query: Query) -> tuple[Sequence[str], Sequence[str]]:
        """Return further sort keys for rows that are equal by ORDER BY: the columns to select, and
        the items to add to ORDER BY.
        """

    def limit(self, limit: str | None, offset: str | None) -> str:
        """Return LIMIT and OFFSET."""

    def constants(self, rows: Sequence[Sequence[str]]) -> str:
        """Return SQL that lists rows of constants, with the columns c1, c2, ..."""


def column(var: nodes.Var) -> str:
    """Return the SQL name of a column, such as `r1.c2`."""
    return f"c{var.attnum}" if var.varno == 0 else f"r{var.varno}.c{var.attnum}"


class QueryWriter:
    """Writes queries in a dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def write(self, query: Query, *, is_outermost: bool = False) -> str:
        """Return SQL of a query; its visible columns have the names c1, c2, ...

        Args:
            is_outermost: the query's rows go to a client, so sort them in the order in which they
                were written.
        """
        text = self._body(query, is_outermost)
        return f"{self._ctes(query.ctes)}{text}"

    def _ctes(self, ctes: Sequence[Cte]) -> str:
        if not ctes:
            return ""
        shown = []
        for cte in ctes:
            columns = ", ".join(f"c{i}" for i in range(1, len(cte.query.columns) + 1))
            text = self._recursive(cte.query) if cte.is_recursive else self.write(cte.query)
            kept = "" if self._dialect.is_computed_once(cte.query) else "MATERIALIZED "
            shown.append(f"{_cte_name(cte.name)}({columns}) AS {kept}({text})")
        recursive = "RECURSIVE " if any(cte.is_recursive for cte in ctes) else ""
        return f"WITH {recursive}{', '.join(shown)} "

    def _recursive(self, query: Query) -> str:
        """Return a recursive UNION. Its sides have no parentheses, because the reference to the
        WITH query must not be in a subquery."""
        operation = query.set_operation
        assert operation is not None
        op = "UNION ALL" if operation.all else "UNION"
        left = self._dialect.recursive_side(operation.left, self.write(operation.left))
        right = operation.right
        if right.distinct == () and not operation.all:
            right = replace(right, distinct=None)  # UNION also removes duplicates
        check_step(right)
        self._dialect.check_recursive_step(right)
        return f"{self._ctes(query.ctes)}{left} {op} {self.write(right)}"

    def _body(self, query: Query, is_outermost: bool) -> str:
        dialect = self._dialect
        if query.set_operation is not None:
            base = self._set_operation(query, query.set_operation)
            if not (query.order_by or query.limit or query.offset):
                return base
            return f"SELECT * FROM ({base}) AS q{self._tail(query, ())}"
        if query.values:
            return self._values(query)
        if query.distinct:
            return self._distinct_on(query)
        if query.distinct == () and not self._is_plain(query):
            return self._distinct(query)
        query = self._with_shown_groups(query)
        query = _with_aggregate(query)
        extra, order = dialect.row_order(query) if is_outermost else ((), ())
        outputs = [
            f"{dialect.expr(output.expr, self.write)} AS c{i}"
            for i, output in enumerate(query.outputs, start=1)
        ]
        distinct = "" if query.distinct is None else "DISTINCT "
        selected = ", ".join([*outputs, *extra]) or "1 AS c0"
        text = f"SELECT {distinct}{selected}{self.source(query, is_ordered=bool(extra))}"
        text += self._tail(query, order, has_source=True)
        if any(output.is_junk for output in query.outputs) or extra:
            visible = [i for i, output in enumerate(query.outputs, start=1) if not output.is_junk]
            names = ", ".join(f"c{i}" for i in visible) or "1 AS c0"
            return f"SELECT {names} FROM ({text}) AS q"
        return text

    def _with_shown_groups(self, query: Query) -> Query:
        """Show any value of the group for expressions that the engine would not show as stored:
        `SELECT a FROM t GROUP BY a` becomes `SELECT any_value(a) FROM t GROUP BY a`.
        """
        keys = [expr for expr in query.group_by if not self._dialect.is_shown_by_key(expr)]
        if not keys:
            return query

        def shown(node: nodes.Node) -> nodes.Node | None:
            if node in keys:
                return _any_value(node)
            return node if isinstance(node, nodes.Aggref) and not node.levels_up else None

        outputs = tuple(
            replace(output, expr=nodes.transform(output.expr, shown)) for output in query.outputs
        )
        having = None if query.having is None else nodes.transform(query.having, shown)
        return replace(query, outputs=outputs, having=having)

    def _is_plain(self, query: Query) -> bool:
        """Return whether the rows of a query are equal only if they are stored identically, so
        the engine's own DISTINCT and set operations are correct.
        """
        return all(self._dialect.is_shown_by_key(var) for var in _output_vars(query))

    def _distinct(self, query: Query) -> str:
        """Return DISTINCT for values that may be equal although they are stored differently."""
        rows = self.write(replace(query, distinct=None, order_by=(), limit=None, offset=None))
        return f"{self._one_of_equals(query, rows)}{self._tail(query, ())}"

    def _one_of_equals(self, query: Query, rows: str) -> str:
        """Return SQL that keeps one row of each group of equal rows.

        Args:
            rows: SQL of the rows, with the columns of `query`.
        """
        keys = self._keys(query)
        shown = ", ".join(f"any_value(c{i}) AS c{i}" for i in range(1, len(keys) + 1))
        return f"SELECT * FROM (SELECT {shown} FROM ({rows}) AS q GROUP BY {', '.join(keys)}) AS q"

    def _keys(self, query: Query) -> list[str]:
        return [self._dialect.group_key(var, self.write) for var in _output_vars(query)]

    def _set_operation(self, query: Query, operation: SetOperation) -> str:
        """Return a set operation. If the engine lacks it, or compares values as they are stored,
        filter the numbered rows of both sides instead.
        """
        left, right = self._operand(operation.left), self._operand(operation.right)
        has_operation = self._dialect.has_all or not operation.all
        if (operation.op == "union" and operation.all) or (has_operation and self._is_plain(query)):
            op = operation.op.upper() + (" ALL" if operation.all else "")
            return f"{left} {op} {right}"
        if operation.op == "union":
            return self._one_of_equals(query, f"{left} UNION ALL {right}")
        keys = ", ".join(self._keys(query))
        names = [f"c{i}" for i in range(1, len(query.columns) + 1)]
        sides = f"SELECT *, 0 AS side FROM ({left}) UNION ALL SELECT *, 1 AS side FROM ({right})"
        numbered = (
            f"SELECT *, row_number() OVER (PARTITION BY {keys}, side ORDER BY {names[0]}) AS"
            f" copy, sum(side) OVER (PARTITION BY {keys}) AS others FROM ({sides}) AS q"
        )
        stays = _STAYS[operation.op, operation.all]
        return f"SELECT {', '.join(names)} FROM ({numbered}) AS q WHERE side = 0 AND {stays}"

    def source(self, query: Query, *, is_ordered: bool = False) -> str:
        """Return FROM, WHERE, GROUP BY and HAVING.

        Args:
            is_ordered: include the columns by which `row_order` sorts.  FROM must have one table.
        """
        dialect, text = self._dialect, ""
        if query.from_:
            first, *others = query.from_
            text = f" FROM {self._from(first, is_ordered=is_ordered)}"
            text += "".join(f" CROSS JOIN {self._from(item)}" for item in others)
        if query.where is not None:
            text += f" WHERE {dialect.condition(query.where, self.write)}"
        if query.group_by:
            keys = ", ".join(dialect.group_key(expr, self.write) for expr in query.group_by)
            text += f" GROUP BY {keys}"
        if query.having is not None:
            text += f" HAVING {dialect.condition(query.having, self.write)}"
        return text

    def _values(self, query: Query) -> str:
        base = self._rows(query.values)
        if not (query.order_by or query.limit or query.offset):
            return base
        return f"SELECT * FROM ({base}) AS q{self._tail(query, ())}"

    def _rows(self, values: Sequence[Sequence[nodes.Expr]]) -> str:
        if all(isinstance(expr, nodes.Const) for row in values for expr in row):
            dialect = self._dialect
            return dialect.constants([[dialect.expr(e, self.write) for e in row] for row in values])
        rows = []
        for row in values:
            items = (
                f"{self._dialect.expr(expr, self.write)} AS c{i}"
                for i, expr in enumerate(row, start=1)
            )
            rows.append(f"SELECT {', '.join(items)}")
        return " UNION ALL ".join(rows)

    def _distinct_on(self, query: Query) -> str:
        """Return DISTINCT ON: of equal rows, keep the first one by ORDER BY."""
        query = _with_aggregate(query)
        dialect = self._dialect
        outputs = ", ".join(
            f"{dialect.expr(output.expr, self.write)} AS c{i}"
            for i, output in enumerate(query.outputs, start=1)
        )
        keys = ", ".join(
            dialect.group_key(query.outputs[i].expr, self.write) for i in query.distinct or ()
        )
        sorts = [sorted_key(item.key, query.outputs[item.output].expr) for item in query.order_by]
        order = ", ".join(dialect.sort_key(key, self.write) for key in sorts)
        numbered = (
            f"SELECT {outputs}, row_number() OVER"
            f" (PARTITION BY {keys} ORDER BY {order or keys}) AS occurrence{self.source(query)}"
        )
        visible = [i for i, output in enumerate(query.outputs, start=1) if not output.is_junk]
        names = ", ".join(f"c{i}" for i in visible)
        return f"SELECT {names} FROM ({numbered}) AS q WHERE occurrence = 1{self._tail(query, ())}"

    def _operand(self, query: Query) -> str:
        """Return a side of a set operation with only its visible columns."""
        return f"SELECT * FROM ({self.write(query)}) AS q"

    def _tail(self, query: Query, row_order: Sequence[str], *, has_source: bool = False) -> str:
        """Return ORDER BY, LIMIT and OFFSET.

        Args:
            row_order: further items of ORDER BY.
            has_source: the columns of the query's own FROM can be used.
        """
        dialect = self._dialect
        keys = [self._order_item(query, item, has_source) for item in query.order_by]
        items = [*keys, *row_order]
        order = f" ORDER BY {', '.join(items)}" if items else ""
        limit = None if query.limit is None else dialect.expr(query.limit, self.write)
        offset = None if query.offset is None else dialect.expr(query.offset, self.write)
        return order + dialect.limit(limit, offset)

    def _order_item(self, query: Query, item: OrderItem, has_source: bool) -> str:
        """Return an item of ORDER BY for an output column."""
        expr = query.outputs[item.output].expr
        var = nodes.Var(
            item.output + 1, expr.type, nodes.typmod(expr), nodes.collation(expr), varno=0
        )
        source = sorted_key(item.key, expr) if has_source else None
        return self._dialect.sort_key(sorted_key(item.key, var), self.write, source)

    def _from(self, item: FromNode, *, is_ordered: bool = False) -> str:
        match item:
            case FromTable():
                rows = self._dialect.table(item, is_ordered=is_ordered)
                text, name = f"({rows})", f"r{item.varno}"
                if item.conditions:
                    tests = (self._dialect.condition(c, self.write) for c in item.conditions)
                    where = " AND ".join(f"({test})" for test in tests)
                    text = f"(SELECT {name}.* FROM {text} AS {name} WHERE {where})"
                return f"{text} AS {name}"
            case FromCte():
                return f"{_cte_name(item.name)} AS r{item.varno}"
            case FromSubquery():
                text = f"({self.write(item.query)})"
                if not self._dialect.is_computed_once(item.query):
                    text = _computed_once(text)
                if item.is_lateral:
                    text = self._dialect.lateral(item, text)
                return f"{text} AS r{item.varno}"
            case FromFunction():
                return f"{self._dialect.function(item, self.write)} AS r{item.varno}"
            case Join():
                left, right = self._from(item.left), self._from(item.right)
                on = "1 = 1"
                if item.on is not None:
                    on = self._dialect.join_condition(item.on, self.write)
                return f"({left} {item.kind.upper()} JOIN {right} ON {on})"
        assert_never(item)


#: Conditions for the rows of the left side that stay: `copy` numbers equal rows, and `others` is
#: the number of equal rows of the right side.
_STAYS = {
    ("intersect", False): "copy = 1 AND others > 0",
    ("intersect", True): "copy <= others",
    ("except", False): "copy = 1 AND others = 0",
    ("except", True): "copy > others",
}


def _output_vars(query: Query) -> list[nodes.Var]:
    """Return references to the visible columns of a query's result, c1, c2, ..."""
    return [
        nodes.Var(i, column.type, column.typmod, column.collation, varno=0)
        for i, column in enumerate(query.columns, start=1)
    ]


def _computed_once(subquery: str) -> str:
    """Wrap a subquery so that SQLite computes each of its columns once per row.  Because of LIMIT
    SQLite does not flatten it (restriction 19 of flattenSubquery in select.c); because it is a CTE,
    SQLite omits none of its columns.
    """
    return f"(WITH kept AS (SELECT * FROM {subquery} AS q LIMIT -1) SELECT * FROM kept WHERE 1)"


def _with_aggregate(query: Query) -> Query:
    """Add an invisible count(*) to an aggregated query without GROUP BY whose SELECT list has no
    aggregate: SQLite requires one there.
    """
    shown = (node for output in query.outputs for node in nodes.walk(output.expr))
    has_own = any(isinstance(node, nodes.Aggref) and not node.levels_up for node in shown)
    if not query.is_aggregated or query.group_by or has_own:
        return query
    count = nodes.Aggref(0, "count", "int8", (), is_star=True)
    return replace(query, outputs=(*query.outputs, Output("count", count, is_junk=True)))


def _any_value(expr: Any) -> nodes.Aggref:
    """Return `any_value(expr)`"""
    function = next(f for f in builtin.functions()["any_value"] if f.kind == FunctionKind.AGGREGATE)
    return nodes.Aggref(
        function.oid, function.name, expr.type, (expr,), collation=nodes.collation(expr)
    )


def _cte_name(name: str) -> str:
    """Return a name for a WITH query that both engines accept, whatever its name in the query."""
    return "w_" + name.encode().hex()
