"""Print query trees as SQL text like pg_get_viewdef() (get_query_def() and similar functions in
ruleutils.c).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replctl.catalog.namespace import CatalogEnvironment
from replctl.expr import nodes
from replctl.expr.deparse import (
    DeparseContext,
    deparse,
    deparse_group_key,
    deparse_output,
    deparse_sort_key,
    deparse_window,
)
from replctl.query.source_names import (
    MERGED,
    Source,
    all_sources,
    leaves,
    reads_merged,
    with_sources,
    without_levels,
)
from replctl.query.tree import (
    FromCte,
    FromFunction,
    FromNode,
    FromSubquery,
    FromTable,
    Join,
    Output,
    Query,
    SetOperation,
)
from replctl.record import dataclass
from replctl.types.builtin import system_columns
from replctl.types.quote import quote_identifier

_INDENT = 8  # PRETTYINDENT_STD
_JOIN_INDENT = 4  # PRETTYINDENT_JOIN
_COLUMN_INDENT = 4  # PRETTYINDENT_VAR
_INDENT_LIMIT = 40  # PRETTYINDENT_LIMIT
_NAMELESS = "?column?"
_JOINS = {"inner": " JOIN ", "left": " LEFT JOIN ", "right": " RIGHT JOIN ", "full": " FULL JOIN "}


@dataclass(frozen=True)
class _Level:
    """A query's items of FROM, by varno; `parent` is the level of the surrounding query."""

    sources: dict[int, Source]
    parent: _Level | None = None

    def names(self) -> set[str]:
        above = set() if self.parent is None else self.parent.names()
        return above | {source.name for source in self.sources.values() if source.name}

    def merged_names(self) -> set[str]:
        """Return the names of merged columns of this level and of outer levels."""
        above = set() if self.parent is None else self.parent.merged_names()
        own = self.sources.get(MERGED)
        return above if own is None else above | {*own.columns.values()}

    def up(self, levels: int) -> _Level:
        level = self
        for _ in range(levels):
            assert level.parent is not None
            level = level.parent
        return level


def deparse_query(
    environment: CatalogEnvironment,
    query: Query,
    names: Sequence[str] | None = None,
    *,
    is_pretty: bool = False,
) -> str:
    """Return a query as SQL.

    Args:
        names: the names to print for the columns, if they differ from the query's.
        is_pretty: print only necessary parentheses.
    """
    printer = _QueryPrinter(environment, None, is_pretty, 0)
    printer.query(query, names, names_matter=True)
    return printer.text


def deparse_condition(
    environment: CatalogEnvironment, query: Query, *, is_pretty: bool = False
) -> str:
    """Return the only output column of a query over one table as SQL, without the query."""
    printer = _QueryPrinter(environment, None, is_pretty, 0)
    return printer.only_output(query)


def deparse_part(environment: CatalogEnvironment, query: Query, expr: nodes.Expr) -> str:
    """Return an expression of a query, or of one of its subqueries, as SQL.

    Each column has the name of its item of FROM as a prefix.
    """
    printer = _QueryPrinter(environment, None, is_pretty=True, indent=0)
    return printer.part(query, expr)


class _QueryPrinter:
    """Builds the SQL text; `_level` and `_indent` belong to the query being printed."""

    def __init__(
        self,
        environment: CatalogEnvironment,
        level: _Level | None,
        is_pretty: bool,
        indent: int,
    ) -> None:
        self.text = ""
        self._environment = environment
        self._level = level
        self._is_pretty = is_pretty
        self._indent = indent
        self._is_qualified = False

    # -- pieces

    def _put(self, text: str) -> None:
        self.text = (self.text.rstrip(" ") if text.startswith("\n") else self.text) + text

    def _new_line(self, word: str, before: int = 0, after: int = 0, plus: int = 0) -> None:
        """Append a keyword on a new line (appendContextKeyword)."""
        self._indent += before
        amount = max(self._indent, 0)
        if amount >= _INDENT_LIMIT:
            amount = (_INDENT_LIMIT + (amount - _INDENT_LIMIT) // (_INDENT // 2)) % _INDENT_LIMIT
        self._put("\n" + " " * (amount + plus) + word)
        self._indent = max(self._indent + after, 0)

    def _clause(self, word: str, plus: int = 0) -> None:
        self._new_line(word, -_INDENT, _INDENT, plus)

    @property
    def _context(self) -> DeparseContext:
        return DeparseContext(
            self._environment,
            deparse_query=self._subquery,
            variable=self._variable,
            is_pretty=self._is_pretty,
            indent=self._indent,
        )

    def _expr(self, expr: nodes.Expr) -> None:
        self._put(deparse(expr, self._context))

    def _variable(self, var: nodes.Var) -> str:
        assert self._level is not None
        source = self._level.up(var.levels_up).sources[var.varno]
        name = "*" if var.attnum == 0 else _column_name(source, var.attnum)
        if (self._is_qualified and var.varno != MERGED) or var.attnum == 0:
            return f"{quote_identifier(source.name)}.{name}"
        return name

    def _subquery(self, query: Query, indent: int) -> str:
        return self._nested(query, indent, self._level, names_matter=False)

    def _nested(
        self,
        query: Query,
        indent: int,
        level: _Level | None,
        *,
        names: Sequence[str] | None = None,
        names_matter: bool = True,
    ) -> str:
        printer = _QueryPrinter(self._environment, level, self._is_pretty, indent)
        printer.query(query, names, names_matter=names_matter)
        return printer.text

    # -- queries

    def query(self, query: Query, names: Sequence[str] | None, *, names_matter: bool) -> None:
        """Append a query and its clauses.

        Args:
            names: the names to print for the columns; None for the query's own.
            names_matter: the names of the columns are visible outside of the query.
        """
        parent = self._level
        outer_names = set() if parent is None else parent.names()
        reserved = parent.merged_names() if parent is not None and reads_merged(query) else ()
        query, sources = with_sources(query, outer_names, reserved)
        self._level = _Level(sources, parent)
        items = leaves(query.from_)
        is_alone = len(items) == 1 and not any(isinstance(item, Join) for item in query.from_)
        self._is_qualified = parent is not None or not is_alone
        start = self._indent
        self._ctes(query)
        if query.set_operation is not None:
            self._set_operation(query.set_operation, names, names_matter)
        else:
            self._select(query, names, names_matter)
        self._tail(query)
        self._indent = start

    def only_output(self, query: Query) -> str:
        """Return the only output column of a query as SQL."""
        self._level = _Level(with_sources(query)[1])
        self._expr(query.outputs[0].expr)
        return self.text

    def part(self, query: Query, expr: nodes.Expr) -> str:
        """Return an expression of a query, or of one of its subqueries, as SQL."""
        self._level = _Level(all_sources(query))
        self._is_qualified = True
        # One list also serves the columns of outer queries, because varnos are unique here.
        self._expr(nodes.transform(expr, without_levels))
        return self.text

    def _ctes(self, query: Query) -> None:
        ctes = query.ctes
        if not ctes:
            return
        self._indent += _INDENT
        self._put(" ")
        is_recursive = query.with_recursive or any(cte.is_recursive for cte in ctes)
        self._put("WITH RECURSIVE " if is_recursive else "WITH ")
        for number, cte in enumerate(ctes):
            self._put(", " if number else "")
            self._put(quote_identifier(cte.name) + _column_list(cte.columns))
            self._put(" AS ")
            if cte.materialized is not None:
                self._put("MATERIALIZED " if cte.materialized else "NOT MATERIALIZED ")
            self._put("(")
            self._new_line("")
            self._put(self._nested(cte.query, self._indent, self._level))
            self._new_line(")")
        self._indent -= _INDENT
        self._new_line("")

    def _set_operation(
        self, operation: SetOperation, names: Sequence[str] | None, names_matter: bool
    ) -> None:
        left, right = operation.left, operation.right
        deeper = _plain_operation(left)
        encloses = deeper is not None and (deeper.op, deeper.all) != (operation.op, operation.all)
        if encloses:
            self._put("(")
            self._new_line("", _INDENT)
        self._operand(left, names, names_matter)
        if encloses:
            self._new_line(") ", -_INDENT)
        else:
            self._new_line("")
        self._put(operation.op.upper() + (" ALL " if operation.all else " "))
        encloses = _plain_operation(right) is not None
        if encloses:
            self._put("(")
        self._new_line("", _INDENT if encloses else 0)
        self._operand(right, names, False)
        if encloses:
            self._indent -= _INDENT
            self._new_line(")")

    def _operand(self, query: Query, names: Sequence[str] | None, names_matter: bool) -> None:
        operation = _plain_operation(query)
        if operation is not None:
            self._set_operation(operation, names, names_matter)
            return
        needs_parens = bool(query.ctes or query.order_by or query.limit or query.offset)
        text = self._nested(
            query, self._indent, self._level, names=names, names_matter=names_matter
        )
        self._put(f"({text})" if needs_parens else text)

    def _select(self, query: Query, names: Sequence[str] | None, names_matter: bool) -> None:
        self._indent += _INDENT
        self._put(" ")
        if query.values:
            self._values_query(query, names)
            return
        self._put("SELECT")
        if query.distinct == ():
            self._put(" DISTINCT")
        elif query.distinct:
            keys = [deparse_group_key(query.outputs[i].expr, self._context) for i in query.distinct]
            self._put(f" DISTINCT ON ({', '.join(keys)})")
        visible = [output for output in query.outputs if not output.is_junk]
        self._targets(visible, names, names_matter)
        self._from_clause(query.from_)
        if query.where is not None:
            self._clause(" WHERE ", 1)
            self._expr(query.where)
        if query.group_by:
            self._clause(" GROUP BY ", 1)
            self._put(", ".join(deparse_group_key(k, self._context) for k in query.group_by))
        if query.having is not None:
            self._clause(" HAVING ")
            self._expr(query.having)
        if query.windows:
            self._clause(" WINDOW ", 1)
            windows = (deparse_window(window, self._context) for window in query.windows)
            self._put(", ".join(windows))

    def _values_query(self, query: Query, names: Sequence[str] | None) -> None:
        """Append VALUES, or a SELECT from it if its columns have other names."""
        own = [output.name for output in query.outputs if not output.is_junk]
        if names is None or list(names) == own:
            self._put(self._values(query))
            return
        columns = [
            self._values_column(name) + ("" if name == given else f" AS {quote_identifier(given)}")
            for name, given in zip(own, names, strict=True)
        ]
        separator = ",\n" + " " * (self._indent - _INDENT + _COLUMN_INDENT)
        self._put(f"SELECT {separator.join(columns)}")
        self._clause(" FROM ", 2)
        self._put(f'({self._values(query)}) "*VALUES*"')

    def _values(self, query: Query) -> str:
        rows = (",".join(deparse_output(e, self._context) for e in row) for row in query.values)
        return "VALUES " + ", ".join(f"({row})" for row in rows)

    def _targets(
        self, outputs: Sequence[Output], names: Sequence[str] | None, names_matter: bool
    ) -> None:
        for number, output in enumerate(outputs):
            text = deparse_output(output.expr, self._context)
            shown = None if names_matter else _NAMELESS
            if isinstance(output.expr, nodes.Var) and output.expr.attnum > 0:
                assert self._level is not None
                source = self._level.up(output.expr.levels_up).sources[output.expr.varno]
                shown = source.columns[output.expr.attnum]
            name = output.name if names is None else names[number]
            if shown != name:
                text += f" AS {quote_identifier(name)}"
            self._put(", " if number else " ")
            if number and not text.startswith("\n"):
                self._clause("", _COLUMN_INDENT)
            self._put(text)

    def _tail(self, query: Query) -> None:
        if query.order_by:
            self._clause(" ORDER BY ", 1)
            items = [
                deparse_sort_key(
                    replace(item.key, expr=query.outputs[item.output].expr),
                    self._context,
                    self._sorted_column(query, item.output),
                )
                for item in query.order_by
            ]
            self._put(", ".join(items))
        if query.offset is not None:
            self._clause(" OFFSET ")
            self._expr(query.offset)
        if query.limit is not None:
            self._clause(" LIMIT ")
            self._expr(query.limit)

    def _sorted_column(self, query: Query, number: int) -> str | None:
        """Return the column of a set operation or of VALUES by which rows are sorted; None for
        other queries, which are sorted by expressions.
        """
        if query.values:
            return self._values_column(query.outputs[number].name)
        return None if query.set_operation is None else str(number + 1)

    def _values_column(self, name: str) -> str:
        """Return a column of VALUES, which only a query in another one qualifies."""
        assert self._level is not None
        qualifier = "" if self._level.parent is None else '"*VALUES*".'
        return f"{qualifier}{quote_identifier(name)}"

    # -- FROM

    def _from_clause(self, items: Sequence[FromNode]) -> None:
        for number, item in enumerate(items):
            if number == 0:
                self._clause(" FROM ", 2)
            else:
                self._put(", ")
                self._clause("", _COLUMN_INDENT)
            self._from(item)

    def _from(self, item: FromNode) -> None:
        if isinstance(item, Join):
            self._join(item)
            return
        assert self._level is not None
        source = self._level.sources[item.varno]
        shown = f" {quote_identifier(source.name)}"
        listed = _column_list(list(source.columns.values())) if source.lists_columns else ""
        match item:
            case FromTable():
                name = self._environment.relation_name(item.relation.oid) or ""
                self._put(f"{'' if item.inherit else 'ONLY '}{name}")
                has_alias = item.alias is not None or source.name != item.relation.name
                self._put(f"{shown}{listed}" if has_alias or listed else "")
            case FromSubquery():
                lateral = "LATERAL " if item.is_lateral else ""
                text = self._nested(item.query, self._indent, self._level)
                self._put(f"{lateral}({text}){shown}{listed}")
            case FromFunction():
                lateral = "LATERAL " if item.is_lateral else ""
                ordinality = " WITH ORDINALITY" if item.with_ordinality else ""
                call = deparse(item.function, self._context)
                self._put(f"{lateral}{call}{ordinality}{shown}{listed}")
            case FromCte():
                self._put(quote_identifier(item.name))
                has_alias = item.alias is not None or source.name != item.name
                self._put(f"{shown}{listed}" if has_alias or listed else "")

    def _join(self, join: Join) -> None:
        self._put("" if self._is_pretty else "(")
        self._from(join.left)
        if join.kind == "inner" and join.on is None:
            self._new_line(" CROSS JOIN ", -_INDENT, _INDENT, _JOIN_INDENT)
        else:
            self._new_line(_JOINS[join.kind], -_INDENT, _INDENT, _JOIN_INDENT)
        encloses = self._is_pretty and isinstance(join.right, Join)
        self._put("(" if encloses else "")
        self._from(join.right)
        self._put(")" if encloses else "")
        if join.using:
            self._put(f" USING {_column_list(join.using)}")
        elif join.on is not None:
            condition = deparse(join.on, self._context)
            self._put(f" ON {condition}" if self._is_pretty else f" ON ({condition})")
        elif join.kind != "inner":
            self._put(" ON TRUE")
        self._put("" if self._is_pretty else ")")


def _plain_operation(query: Query) -> SetOperation | None:
    """Return the set operation of a query that has no WITH, ORDER BY, LIMIT or OFFSET; None for
    other queries.  If such a query is an operand of another set operation, PostgreSQL does not
    make it a subquery.
    """
    is_own = query.ctes or query.order_by or query.limit or query.offset
    return None if is_own else query.set_operation


def _column_list(names: Sequence[str]) -> str:
    return f"({', '.join(map(quote_identifier, names))})" if names else ""


def _column_name(source: Source, attnum: int) -> str:
    if attnum < 0:
        return next(name for name, (number, _) in system_columns().items() if number == attnum)
    return quote_identifier(source.columns[attnum])
