"""Translate queries over tables to Spark SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from replctl.adt.fold import simplified
from replctl.adt.value_sets import VALUE_SETS
from replctl.catalog.pg_class import Relation
from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.functions.function_context import FunctionContext
from replctl.functions.session_value import session_value
from replctl.lake.table_read import relation_leaves
from replctl.query.catalog_part import with_answers
from replctl.query.early_call import rows_of
from replctl.query.membership import filter_sql, is_membership, membership_value
from replctl.query.query_rewrite import rewritten
from replctl.query.row_policy import POLICY_VARNO
from replctl.query.session_calls import check_no_calls
from replctl.query.sql import TABLEOID, TABLEOID_ATTNUM, QueryWriter, WriteQuery, column
from replctl.query.sqlite import evaluated_rows, run_query
from replctl.query.sqlite_value import canonical, canonical_form
from replctl.query.tree import FromFunction, FromSubquery, FromTable, Query, is_volatile, only_table
from replctl.query.view_catalog import catalog_columns, catalog_rows
from replctl.spark import (
    SparkQuery,
    SqlValue,
    Target,
    grouping_form,
    is_shown_by_form,
    literal,
    reading,
    scan,
    set_function_sql,
    sort_key,
    storage_type,
    stored_sql,
    to_sql,
    union_text,
    zipped_sets_sql,
)


def spark_sql(query: Query, context: FunctionContext) -> SparkQuery:
    """Return the query for Spark. Without ORDER BY, it returns a table's rows in the order in
    which they were written.

    Raises:
        FeatureNotSupported: a part of the query has no exact translation.
    """
    query = with_answers(query, context)
    dialect = LakeDialect(context)
    return reading(QueryWriter(dialect).write(query, is_outermost=True), *dialect.read)


def changing_query(
    context: FunctionContext,
    query: Query,
    rows: SparkQuery,
    conditions: tuple[nodes.Expr, ...] = (),
) -> tuple[Query, LakeDialect]:
    """Return the rewritten query of a statement that changes a table, and the dialect to print it.

    Args:
        rows: the query that replaces the changed table; its varno is POLICY_VARNO.
        conditions: the conditions of policies for the rows of this table.
    """
    query = rewritten(context, query, conditions={POLICY_VARNO: conditions})
    return with_answers(query, context), LakeDialect(context, {POLICY_VARNO: rows})


#: The largest LIMIT and OFFSET of Spark.
_MAX_ROWS = 2**31 - 1


class LakeDialect:
    """Writes Spark's SQL (query.sql.Dialect).

    Args:
        tables: queries that replace items of FROM, by varno.

    Attributes:
        read: the queries in the SQL that this dialect has written (`spark.reading`).
    """

    def __init__(
        self, context: FunctionContext, tables: Mapping[int, SparkQuery] | None = None
    ) -> None:
        self.context = context
        self._tables = tables or {}
        self.read: list[SparkQuery] = []

    # -- FROM

    def table(self, item: FromTable, *, is_ordered: bool) -> str:
        if item.varno in self._tables:
            self.read.append(self._tables[item.varno])
            return str(self._tables[item.varno])
        if item.is_catalog:
            return self._catalog(item)
        assert isinstance(item.relation, Relation)
        leaves = relation_leaves(
            self.context.catalog,
            item.relation,
            inherit=item.inherit,
            cluster=self.context.cluster,
        )
        self.context.read_tables.update(oid for oid, _source in leaves)
        scans = [scan(source.as_shown(), with_row_id=is_ordered) for _oid, source in leaves]
        self.read += scans
        parts = [
            f"SELECT *, {number} AS leaf, {oid}L AS c{TABLEOID} FROM ({scans[number]})"
            for number, (oid, _source) in enumerate(leaves)
        ]
        if not parts:  # a partitioned table without partitions
            nothing = [
                f"{literal(c.declared_type, c.typmod, None)} AS c{c.attnum}"
                for c in item.relation.columns
            ]
            nothing += ["0L AS row_version", "0L AS row_id", "0 AS leaf", f"0L AS c{TABLEOID}"]
            return f"SELECT {', '.join(nothing)} WHERE FALSE"
        return " UNION ALL ".join(parts)

    def _catalog(self, item: FromTable) -> str:
        """Return the rows of a system catalog as literals, with NULL in the columns not used."""
        environment = self.context.environment
        types = [
            type_ if item.columns is None or number in item.columns else None
            for number, (_name, type_) in enumerate(catalog_columns(item.relation), start=1)
        ]
        rows = [
            [
                type_ and canonical(environment, type_, value)
                for type_, value in zip(types, row, strict=True)
            ]
            for row in catalog_rows(self.context, item.relation)
        ]
        return _listed([type_ or "text" for type_ in types], rows)

    def function(self, item: FromFunction, write: WriteQuery) -> str:
        if item.others:
            return self._zipped(item, write)
        call = item.function
        texts = self._known_rows(item)
        if texts is not None:
            if item.with_ordinality:
                texts = [[*row, str(number)] for number, row in enumerate(texts, start=1)]
            return f"({_listed([column.type for column in item.columns], texts)})"
        if isinstance(call, nodes.FuncExpr) and call.returns_set:
            rows = set_function_sql(*self._set(call, write), with_ordinality=item.with_ordinality)
        else:
            ordinality = ", 1L AS c2" if item.with_ordinality else ""
            rows = f"{self.expr(call, write)} AS c1{ordinality}"
        return f"{'LATERAL ' if _uses_columns(call) else ''}(SELECT {rows})"

    def _known_rows(self, item: FromFunction) -> list[list[str | None]] | None:
        """Return the rows of a call that has run before the query, or that has constant arguments
        and that Spark does not have; None for other calls.
        """
        call = item.function
        if not isinstance(call, nodes.FuncExpr):
            return None
        if call in self.context.evaluated:
            return evaluated_rows(self.context, item)
        source = self.context.environment.function(call.function_oid).source
        uses_rows = any(isinstance(node, nodes.Var | nodes.SubLink) for node in nodes.walk(call))
        if source not in VALUE_SETS or uses_rows:
            return None
        return run_query(rows_of(item), self.context, form=canonical_form)

    def _zipped(self, item: FromFunction, write: WriteQuery) -> str:
        """Return the rows of several calls next to each other."""
        calls = [part.function for part in item.parts]
        sets = []
        for call in calls:
            assert isinstance(call, nodes.FuncExpr)
            if call in self.context.evaluated:
                raise FeatureNotSupported(
                    f"function {call.name} next to another set-returning function is not supported"
                )
            sets.append(self._set(call, write))
        is_lateral = any(map(_uses_columns, calls))
        return f"{'LATERAL ' if is_lateral else ''}(SELECT {zipped_sets_sql(sets)})"

    def _set(self, call: nodes.FuncExpr, write: WriteQuery) -> tuple[str, list[SqlValue]]:
        """Return the name of a set-returning function for Spark, and its arguments."""
        return call.name, [self.value(arg, write) for arg in call.args]

    def lateral(self, item: FromSubquery, query: str) -> str:
        return f"LATERAL {query}"

    # -- expressions

    def expr(self, expr: nodes.Expr, write: WriteQuery) -> str:
        return stored_sql(self.value(expr, write), expr.type, nodes.typmod(expr))

    def condition(self, expr: nodes.Expr, write: WriteQuery) -> str:
        simple = simplified(self._prepared(expr))
        return filter_sql(simple, lambda part: self.value(part, write), write, is_conjunct=True)

    def join_condition(self, expr: nodes.Expr, write: WriteQuery) -> str:
        simple = simplified(self._prepared(expr))
        return filter_sql(simple, lambda part: self.value(part, write), write, is_conjunct=False)

    def group_key(self, expr: nodes.Expr, write: WriteQuery) -> str:
        return grouping_form(self.value(expr, write))

    def recursive_side(self, query: Query, text: str) -> str:
        return f"SELECT * FROM ({text}) AS q"

    def check_recursive_step(self, query: Query) -> None:
        pass  # Spark itself refuses what it cannot compute

    def is_computed_once(self, query: Query) -> bool:
        return True  # Spark does not merge projections with nondeterministic expressions

    @property
    def has_all(self) -> bool:
        return True

    def is_shown_by_key(self, expr: nodes.Expr) -> bool:
        spark = storage_type(expr.type, nodes.typmod(expr))
        return is_shown_by_form(SqlValue("c", expr.type, spark))

    def sort_key(
        self, key: nodes.SortKey, write: WriteQuery, source: nodes.SortKey | None = None
    ) -> str:
        return sort_key(key, lambda expr: self.value(expr, write))

    def row_order(self, query: Query) -> tuple[Sequence[str], Sequence[str]]:
        table = only_table(query)
        if table is None:
            return (), ()
        names = ("leaf", "row_version", "row_id")
        return tuple(f"r{table.varno}.{name} AS q_{name}" for name in names), tuple(
            f"q_{name}" for name in names
        )

    def limit(self, limit: str | None, offset: str | None) -> str:
        """Return the clauses.  Spark counts with INT, even for the sum of both; it returns at most
        this many rows.
        """
        skipped = "0" if offset is None else f"least(coalesce({offset}, 0), {_MAX_ROWS})"
        shown = ""
        if limit is not None:  # least() ignores NULL, which means no limit
            shown = f" LIMIT CAST(least({limit}, {_MAX_ROWS} - {skipped}) AS INT)"
        return shown if offset is None else f"{shown} OFFSET CAST({skipped} AS INT)"

    def constants(self, rows: Sequence[Sequence[str]]) -> str:
        return _inline_table(rows)

    def value(self, expr: nodes.Expr, write: WriteQuery) -> SqlValue:
        return to_sql(self._prepared(expr), column, lambda sublink: self._sublink(sublink, write))

    def _prepared(self, expr: nodes.Expr) -> nodes.Expr:
        """Return an expression for Spark: tableoid becomes a column of the scan, and values of the
        session become constants.
        """

        def replaced(node: nodes.Node) -> nodes.Node | None:
            if isinstance(node, nodes.Var) and node.attnum == TABLEOID_ATTNUM:
                return replace(node, attnum=TABLEOID)
            check_no_calls(self.context.environment, node)
            return session_value(self.context, node)

        result: nodes.Expr = nodes.transform(expr, replaced)
        return result

    def _sublink(self, expr: nodes.SubLink, write: WriteQuery) -> SqlValue:
        match expr.kind:
            case "exists":
                return SqlValue(f"EXISTS ({write(expr.query)})", "bool", "BOOLEAN")
            case "expr":
                spark = storage_type(expr.type, expr.typmod)
                return SqlValue(f"({write(expr.query)})", expr.type, spark)
        if not is_membership(expr):
            raise FeatureNotSupported("this kind of subquery is not supported")
        if is_volatile(self.context.environment, expr):
            raise FeatureNotSupported(
                "IN (SELECT ...) with volatile functions inside an expression is not supported"
            )
        return membership_value(expr, lambda part: self.value(part, write), write)


def _uses_columns(call: nodes.Expr) -> bool:
    return any(isinstance(node, nodes.Var) for node in nodes.walk(call))


def _listed(types: Sequence[str], rows: Sequence[Sequence[str | None]]) -> str:
    """Return SQL that lists rows as literals."""
    if not rows:
        nothing = (f"{literal(t, -1, None)} AS c{i}" for i, t in enumerate(types, start=1))
        return f"SELECT {', '.join(nothing)} WHERE FALSE"
    return _inline_table(
        [[literal(t, -1, value) for t, value in zip(types, row, strict=True)] for row in rows]
    )


def _inline_table(rows: Sequence[Sequence[str]]) -> str:
    names = ", ".join(f"c{i}" for i in range(1, len(rows[0]) + 1))
    listed = (f"({', '.join(row)})" for row in rows)
    return f"SELECT * FROM VALUES {', '.join(listed)} AS v({names})"


def target_rows(target: Target) -> SparkQuery:
    """Return a query for all rows of a table to change, with the columns leaf, row_version, row_id,
    tableoid and c<attnum>."""
    parts = []
    for number, leaf in enumerate(target.leaves):
        rows = scan(leaf.source, with_row_id=True)
        text = f"SELECT {number} AS leaf, {leaf.relid}L AS c{TABLEOID}, * FROM ({rows})"
        parts.append(reading(text, rows))
    return union_text(parts)
