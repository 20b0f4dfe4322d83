"""Convert SELECT, VALUES, UNION and so on from raw statements to query trees.

This module corresponds to PostgreSQL's analyze.c, FROM in parse_clause.c and WITH in parse_cte.c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, assert_never

from replctl.catalog.namespace import CatalogEnvironment
from replctl.errors import (
    FeatureNotSupported,
    SqlSyntaxError,
    TooManyColumns,
    UndefinedTable,
)
from replctl.expr import nodes
from replctl.expr.analyze import MAX_ROW_ENTRIES, Analyzer
from replctl.expr.analyze import OutputColumn as SubqueryColumn
from replctl.expr.collate import assign_collations, common_collation, window_collations
from replctl.expr.column_reference import expand_row, expand_star
from replctl.expr.context import ExprContext
from replctl.expr.error_location import expr_location, raw_location
from replctl.expr.sorting import check_equality, known_type
from replctl.expr.windows import window_clauses
from replctl.parser import ast
from replctl.query.column_name import column_name
from replctl.query.grouping import check_grouping
from replctl.query.open_relation import open_relation
from replctl.query.output_clause import (
    distinct_clause,
    group_by_clause,
    limit_clause,
    order_by_clause,
    with_tail,
)
from replctl.query.range_table import (
    FromScope,
    NamedColumn,
    RangeTableEntry,
    columns_of,
    merged_column,
    merged_scope,
    parent_of,
    relation_entry,
    renamed,
    scope_of_columns,
    using_column,
)
from replctl.query.recursion import (
    check_aggregates,
    check_columns,
    cte_columns,
    forward_reference,
    ordered_ctes,
)
from replctl.query.tree import (
    Alias,
    Cte,
    FromCte,
    FromFunction,
    FromNode,
    FromSubquery,
    FromTable,
    Join,
    OrderItem,
    Output,
    OutputColumn,
    Query,
    SetOperation,
    is_volatile,
    uses_own_columns,
    with_sorted_outputs,
)
from replctl.record import dataclass
from replctl.types import builtin

_UNKNOWN = "unknown"


@dataclass(frozen=True)
class _VisibleCte:
    """The columns of a WITH query; it is open while its recursive term is analysed."""

    columns: tuple[OutputColumn, ...]
    is_open: bool = False


class QueryAnalyzer:
    """Analyses the queries of one statement.

    Args:
        environment: the database, whose catalogs the analyzer reads.
        now: the time of literals such as `now`.
    """

    def __init__(self, environment: CatalogEnvironment, now: datetime | None = None) -> None:
        self.environment = environment
        self.now = now
        self._ctes: dict[str, _VisibleCte] = {}
        self._future_ctes: frozenset[str] = frozenset()
        self._last_varno = 0

    # -- queries

    def query(
        self,
        statement: ast.SelectStmt,
        parent: Analyzer | None = None,
        *,
        keep_unknown: bool = False,
        expose: Callable[[Sequence[OutputColumn]], None] | None = None,
    ) -> Query:
        """Return the tree of a SELECT.

        Args:
            parent: the analyzer of the surrounding query.
            keep_unknown: keep literals of unknown type, so that the caller decides their type.
            expose: gets the columns of the first side of a set operation before the second side is
                analysed.

        Raises:
            PostgresError: the query is wrong.
        """
        outer_ctes, outer_future = self._ctes, self._future_ctes
        try:
            ctes = self._with_clause(statement.with_clause, parent)
            _refuse(statement)
            if statement.set_op is not None:
                result = self._set_operation(statement, parent, expose)
            elif statement.values:
                result = self._values(statement, parent)
            else:
                result = self._select(statement, parent, keep_unknown)
        finally:
            self._ctes, self._future_ctes = outer_ctes, outer_future
        with_recursive = statement.with_clause is not None and statement.with_clause.is_recursive
        return replace(result, ctes=ctes, with_recursive=with_recursive)

    def analyzer(
        self,
        scope: FromScope,
        context: ExprContext,
        parent: Analyzer | None = None,
        windows: Sequence[ast.WindowDef] = (),
    ) -> Analyzer:
        """Return an analyzer of expressions that may contain subqueries."""
        return Analyzer(
            self.environment,
            scope,
            context,
            analyze_query=self.subquery,
            now=self.now,
            parent=parent,
            windows=windows,
        )

    def finished(self, expr: nodes.Expr) -> nodes.Expr:
        """Return an expression with the collations of its parts assigned."""
        return assign_collations(self.environment, expr)

    def subquery(
        self, statement: ast.SelectStmt, analyzer: Analyzer
    ) -> tuple[Query, Sequence[SubqueryColumn]]:
        query = self.query(statement, analyzer)
        return query, [SubqueryColumn(c.type, c.typmod, c.collation) for c in query.columns]

    # -- WITH

    def _with_clause(
        self, clause: ast.WithClause | None, parent: Analyzer | None
    ) -> tuple[Cte, ...]:
        if clause is None:
            return ()
        ctes = ordered_ctes(clause)
        self._future_ctes = self._future_ctes | {cte.name for cte, _ in ctes}
        return tuple(self._cte(cte, is_recursive, parent) for cte, is_recursive in ctes)

    def _cte(self, cte: ast.CommonTableExpr, is_recursive: bool, parent: Analyzer | None) -> Cte:
        """Return a WITH query, and let later queries read it."""
        assert isinstance(cte.query, ast.SelectStmt)
        base: list[OutputColumn] = []

        def expose(columns: Sequence[OutputColumn]) -> None:
            base[:] = cte_columns(cte, [_known(column) for column in columns])
            self._ctes = {**self._ctes, cte.name: _VisibleCte(tuple(base), is_open=True)}

        query = self.query(cte.query, parent, expose=expose if is_recursive else None)
        if is_recursive:
            check_columns(self.environment, cte.name, base, query)
        visible = _VisibleCte(cte_columns(cte, query.columns))
        self._ctes = {**self._ctes, cte.name: visible}
        return Cte(cte.name, query, is_recursive, cte.columns, cte.materialized)

    # -- VALUES and set operations

    def _values(self, statement: ast.SelectStmt, parent: Analyzer | None) -> Query:
        scope = FromScope(parent=_scope_of(parent))
        analyzer = self.analyzer(scope, ExprContext.VALUES, parent)
        rows = [tuple(analyzer.expr(item) for item in row) for row in statement.values]
        width = len(rows[0])
        for raw_row, row in zip(statement.values, rows, strict=True):
            if len(row) != width:
                raise SqlSyntaxError(
                    "VALUES lists must all be the same length", position=raw_location(raw_row[0])
                )
        columns = []
        for i in range(width):
            exprs, _type, _typmod = analyzer.common_type([row[i] for row in rows], "VALUES")
            columns.append([self.finished(expr) for expr in exprs])
        values = tuple(zip(*columns, strict=True))
        outputs = tuple(
            Output(
                f"column{i}",
                nodes.Var(
                    i,
                    column[0].type,
                    _shared_typmod(column),
                    common_collation(self.environment, column),
                    0,
                ),
            )
            for i, column in enumerate(columns, start=1)
        )
        result = Query(outputs, values=values)
        return with_tail(result, statement, analyzer)

    def _set_operation(
        self,
        statement: ast.SelectStmt,
        parent: Analyzer | None,
        expose: Callable[[Sequence[OutputColumn]], None] | None,
    ) -> Query:
        assert statement.left is not None
        assert statement.right is not None
        assert statement.set_op is not None
        left = self.query(statement.left, parent, keep_unknown=True)
        if expose is not None:
            expose(left.columns)
        right = self.query(statement.right, parent, keep_unknown=True)
        name = statement.set_op.upper()
        if len(left.columns) != len(right.columns):
            raise SqlSyntaxError(
                f"each {name} query must have the same number of columns",
                position=_first_position(statement.right),
            )
        analyzer = self.analyzer(
            FromScope(parent=_scope_of(parent)), ExprContext.SELECT_TARGET, parent
        )
        visible = [[o.expr for o in side.outputs if not o.is_junk] for side in (left, right)]
        pairs: list[list[nodes.Expr]] = []
        collations: list[str | None] = []
        needs_one = not statement.all or statement.set_op != "union"
        for pair in zip(*visible, strict=True):
            common, _type, _typmod = analyzer.common_type(pair, name)
            pairs.append([self.finished(known_type(analyzer.coercion, e)) for e in common])
            collations.append(common_collation(self.environment, pairs[-1], needs_one=needs_one))
            if needs_one:
                check_equality(analyzer.coercion, pairs[-1][0])
        left = self.with_outputs(left, [pair[0] for pair in pairs])
        right = self.with_outputs(right, [pair[1] for pair in pairs])
        outputs = []
        for i, (column, exprs) in enumerate(zip(left.columns, pairs, strict=True)):
            type_, typmod, pos = exprs[0].type, _shared_typmod(exprs), expr_location(exprs[0])
            var = nodes.Var(i + 1, type_, typmod, collations[i], 0, pos=pos)
            outputs.append(Output(column.name, var))
        operation = SetOperation(statement.set_op, statement.all, left, right)
        return with_tail(Query(tuple(outputs), set_operation=operation), statement, analyzer)

    def with_outputs(self, query: Query, exprs: Sequence[nodes.Expr]) -> Query:
        """Return a query whose visible columns are `exprs`, expressions over the old columns."""
        current = [output.expr for output in query.outputs if not output.is_junk]
        if list(exprs) == current:
            return query
        sorts = [query.outputs[item.output].expr for item in query.order_by]
        is_plain = not query.values and query.set_operation is None and query.distinct is None
        if is_plain and not is_volatile(self.environment, tuple(sorts)):
            return with_sorted_outputs(query, exprs)
        varno = self._new_varno()
        rebased = {
            before: nodes.Var(i, c.type, c.typmod, c.collation, varno)
            for i, (before, c) in enumerate(zip(current, query.columns, strict=True), start=1)
        }
        outputs = tuple(
            Output(column.name, nodes.transform(expr, lambda node: rebased.get(node)))
            for column, expr in zip(query.columns, exprs, strict=True)
        )
        return Query(outputs, (FromSubquery(varno, query),))

    # -- SELECT

    def _select(
        self, statement: ast.SelectStmt, parent: Analyzer | None, keep_unknown: bool
    ) -> Query:
        scope = FromScope(parent=_scope_of(parent))
        analyzer = self.analyzer(scope, ExprContext.SELECT_TARGET, parent, statement.windows)
        from_ = self.from_clause(statement.from_clause, analyzer)
        outputs = self.targets(statement.targets, analyzer)
        if not keep_unknown:
            outputs = [replace(o, expr=known_type(analyzer.coercion, o.expr)) for o in outputs]
        where = self._condition(statement.where, analyzer, ExprContext.WHERE, "WHERE")
        having = self._condition(statement.having, analyzer, ExprContext.HAVING, "HAVING")
        outputs, order_by = order_by_clause(statement, outputs, analyzer)
        group_by = group_by_clause(statement, outputs, analyzer)
        distinct = distinct_clause(statement, outputs, order_by, analyzer)
        limit = limit_clause(statement.limit, analyzer, ExprContext.LIMIT)
        offset = limit_clause(statement.offset, analyzer, ExprContext.OFFSET)
        windows = window_clauses(analyzer)  # even an unused window may have an aggregate
        query = Query(
            tuple(replace(output, expr=self.finished(output.expr)) for output in outputs),
            tuple(from_),
            where,
            tuple(self.finished(expr) for expr in group_by),
            having,
            bool(group_by) or having is not None or analyzer.has_aggregates,
            distinct,
            order_by=tuple(
                OrderItem(i, replace(key, expr=self.finished(key.expr))) for i, key in order_by
            ),
            limit=limit,
            offset=offset,
            windows=tuple(window_collations(self.environment, window) for window in windows),
        )
        if query.is_aggregated:
            query = check_grouping(query, analyzer.scope)
        if analyzer.has_aggregates:
            check_aggregates(query)
        return query

    def targets(self, raws: Sequence[ast.ResTarget], analyzer: Analyzer) -> list[Output]:
        """Return the output columns of a SELECT list, with * expanded."""
        result: list[Output] = []
        for raw in raws:
            value = raw.value
            assert value is not None
            if isinstance(value, ast.ColumnRef) and value.is_star:
                has_tables = isinstance(analyzer.scope, FromScope) and analyzer.scope.entries
                if len(value.fields) == 1 and not has_tables:
                    raise SqlSyntaxError(
                        "SELECT * with no tables specified is not valid", position=value.pos
                    )
                result += [Output(name, expr) for name, expr in expand_star(analyzer, value)]
            elif isinstance(value, ast.Indirection) and value.items[-1] == "*":
                result += [Output(name, expr) for name, expr in expand_row(analyzer, value)]
            else:
                result.append(Output(raw.name or column_name(value), analyzer.expr(value)))
        if len(result) > MAX_ROW_ENTRIES:
            raise TooManyColumns(f"target lists can have at most {MAX_ROW_ENTRIES} entries")
        return result

    def _condition(
        self,
        raw: ast.RawExpr | None,
        analyzer: Analyzer,
        context: ExprContext,
        construct: str,
    ) -> nodes.Expr | None:
        if raw is None:
            return None
        with analyzer.in_context(context):
            return self.finished(analyzer.boolean(raw, construct))

    def where(self, raw: ast.RawExpr | None, analyzer: Analyzer) -> nodes.Expr | None:
        """Return the condition of a WHERE clause."""
        return self._condition(raw, analyzer, ExprContext.WHERE, "WHERE")

    # -- FROM

    def from_clause(self, items: Sequence[ast.FromItem], analyzer: Analyzer) -> list[FromNode]:
        """Return the items of FROM or USING, and add their columns to the analyzer's scope."""
        result = []
        for item in items:
            node, scope = self._from_item(item, analyzer)
            result.append(node)
            current = analyzer.scope
            assert isinstance(current, FromScope)
            analyzer.scope = current.joined_with(scope)
        return result

    def _from_item(self, item: ast.FromItem, analyzer: Analyzer) -> tuple[FromNode, FromScope]:
        match item:
            case ast.RangeVar():
                return self._table(item, analyzer)
            case ast.RangeSubselect():
                return self._from_subselect(item, analyzer)
            case ast.RangeFunction():
                return self._from_function(item, analyzer)
            case ast.JoinExpr():
                return self._join(item, analyzer)
        assert_never(item)

    def _table(self, item: ast.RangeVar, analyzer: Analyzer) -> tuple[FromNode, FromScope]:
        varno = self._new_varno()
        alias = item.alias
        if item.schema is None and item.name in self._ctes:
            cte = self._ctes[item.name]
            outputs = cte.columns
            columns = columns_of(outputs, varno)
            scope = scope_of_columns(varno, columns, alias, item.name, analyzer)
            return FromCte(varno, item.name, outputs, _alias(alias), cte.is_open), scope
        try:
            relation = open_relation(self.environment, item, or_sequence=True)
        except UndefinedTable as error:
            if item.schema is None and item.name in self._future_ctes:
                raise forward_reference(error, item.name) from None
            raise
        entry = relation_entry(self.environment, relation, varno, alias)
        scope = FromScope((entry,), entry.columns, parent_of(analyzer))
        return FromTable(varno, relation, item.inherit, _alias(alias)), scope

    def _from_subselect(
        self, item: ast.RangeSubselect, analyzer: Analyzer
    ) -> tuple[FromNode, FromScope]:
        varno = self._new_varno()
        visible = analyzer.scope
        assert isinstance(visible, FromScope)
        if not item.is_lateral:
            analyzer.scope = FromScope(parent=visible.parent)
        try:
            with analyzer.in_context(ExprContext.FROM_SUBSELECT):
                query = self.query(item.query, analyzer)
        finally:
            analyzer.scope = visible
        columns = columns_of(query.columns, varno)
        scope = scope_of_columns(
            varno, columns, item.alias, "unnamed_subquery", analyzer, is_visible=False
        )
        return FromSubquery(varno, query, item.is_lateral, _alias(item.alias)), scope

    def _from_function(
        self, item: ast.RangeFunction, analyzer: Analyzer
    ) -> tuple[FromNode, FromScope]:
        if item.column_definitions:
            raise FeatureNotSupported(
                "column definition lists of functions in FROM are not supported", position=item.pos
            )
        call = item.function
        if isinstance(call, ast.FuncCall) and call.name == ("unnest",) and len(call.args) > 1:
            raise FeatureNotSupported(
                "unnest() of several arrays in FROM is not supported", position=item.pos
            )
        varno = self._new_varno()
        with analyzer.in_context(ExprContext.FROM_FUNCTION):
            function = self.finished(known_type(analyzer.coercion, analyzer.expr(item.function)))
        name = column_name(item.function)
        outputs = _function_columns(self.environment, function, name, item.alias)
        if item.with_ordinality:
            outputs = (*outputs, OutputColumn("ordinality", "int8"))
        columns = columns_of(outputs, varno)
        scope = scope_of_columns(varno, columns, item.alias, name, analyzer)
        shown = _alias(item.alias) or Alias(name)
        is_lateral = item.is_lateral or uses_own_columns(function)
        node = FromFunction(varno, function, outputs, item.with_ordinality, is_lateral, shown)
        return node, scope

    def _join(self, item: ast.JoinExpr, analyzer: Analyzer) -> tuple[FromNode, FromScope]:
        left, left_scope = self._from_item(item.left, analyzer)
        before = analyzer.scope
        assert isinstance(before, FromScope)
        analyzer.scope = before.joined_with(left_scope)  # for LATERAL on the right side
        right, right_scope = self._from_item(item.right, analyzer)
        kind = "inner" if item.kind == "cross" else item.kind
        using = item.using
        if item.is_natural:
            names = {name for name, _expr in right_scope.columns}
            using = tuple(name for name, _expr in left_scope.columns if name in names)
        merged: list[NamedColumn] = []
        computed: list[NamedColumn] = []
        conditions: list[nodes.Expr] = []
        for name in using:
            a = using_column(left_scope, name, "left", item.pos)
            b = using_column(right_scope, name, "right", item.pos)
            conditions.append(self._equality(a, b, analyzer, item.pos))
            column = merged_column(analyzer, a, b, kind)
            merged.append((name, self.finished(column)))
            if column is not a and column is not b:
                computed.append(merged[-1])
        scope = merged_scope(left_scope, right_scope, kind, merged)
        if item.on is not None:
            hidden = (*scope.hidden, *before.own_names)
            analyzer.scope = FromScope(scope.entries, scope.columns, before.parent, hidden)
            with analyzer.in_context(ExprContext.JOIN_ON):
                conditions.append(self.finished(analyzer.boolean(item.on, "JOIN/ON")))
        analyzer.scope = before
        on = _conjunction(conditions)
        if item.alias is not None:
            entry = RangeTableEntry(
                item.alias.name,
                self._new_varno(),
                renamed(scope.columns, item.alias.columns, item.alias.name, kind="join expression"),
            )
            scope = FromScope((entry,), entry.columns, before.parent, scope.own_names)
        return Join(kind, left, right, on, using, tuple(computed)), scope

    def _equality(
        self, left: nodes.Expr, right: nodes.Expr, analyzer: Analyzer, pos: int
    ) -> nodes.Expr:
        from replctl.expr.operators import make_operator

        return self.finished(make_operator(analyzer.coercion, ("=",), left, right, pos))

    def _new_varno(self) -> int:
        self._last_varno += 1
        return self._last_varno


def _refuse(statement: ast.SelectStmt) -> None:
    if statement.into is not None:
        raise FeatureNotSupported("SELECT INTO is not supported")
    if statement.locking:
        raise FeatureNotSupported("SELECT ... FOR UPDATE and FOR SHARE are not supported")
    if statement.with_ties:
        raise FeatureNotSupported("FETCH ... WITH TIES is not supported")
    if any(isinstance(item, ast.GroupingSet) for item in statement.group_by):
        raise FeatureNotSupported("GROUPING SETS, ROLLUP and CUBE are not supported")


def _function_columns(
    environment: CatalogEnvironment, function: nodes.Expr, name: str, alias: ast.Alias | None
) -> tuple[OutputColumn, ...]:
    """Return the columns of a function in FROM: its OUT arguments, or else one column with the
    name of the function or of its alias."""
    if isinstance(function, nodes.FuncExpr):
        declared = environment.function(function.function_oid).columns
        if declared:
            return tuple(OutputColumn(column, type_) for column, type_ in declared)
    shown = name if alias is None else alias.name
    typmod, collation = nodes.typmod(function), nodes.collation(function)
    return (OutputColumn(shown, function.type, typmod, collation),)


def _alias(raw: ast.Alias | None) -> Alias | None:
    return None if raw is None else Alias(raw.name, raw.columns)


def _known(column: OutputColumn) -> OutputColumn:
    """Return a column; a literal whose type is unknown becomes text."""
    if column.type != _UNKNOWN:
        return column
    collation = column.collation or builtin.types()["text"].collation
    return replace(column, type="text", collation=collation)


def _scope_of(parent: Analyzer | None) -> FromScope | None:
    if parent is None:
        return None
    scope: Any = parent.scope
    return scope if isinstance(scope, FromScope) else None


def _shared_typmod(exprs: Sequence[nodes.Expr]) -> int:
    typmods = {nodes.typmod(expr) for expr in exprs}
    return typmods.pop() if len(typmods) == 1 else -1


def _conjunction(conditions: Sequence[nodes.Expr]) -> nodes.Expr | None:
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else nodes.BoolExpr("and", tuple(conditions))


def _first_position(statement: ast.SelectStmt) -> int:
    while statement.left is not None:
        statement = statement.left
    if statement.targets and statement.targets[0].value is not None:
        return raw_location(statement.targets[0].value)
    return -1
