"""Print typed expressions as SQL text like pg_get_expr() (PostgreSQL's ruleutils.c)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, assert_never

from replctl.errors import FeatureNotSupported
from replctl.expr import nodes
from replctl.expr.cast_path import CastPaths
from replctl.expr.coerce import stripped_implicit
from replctl.expr.deparse_constant import constant, is_bare_under_cast
from replctl.expr.deparse_name import NamePrinter
from replctl.expr.deparse_sql_function import sql_template
from replctl.expr.environment import Environment
from replctl.expr.parentheses import is_simple
from replctl.expr.scope import RelationScope
from replctl.expr.type_facts import TypeFacts
from replctl.record import dataclass
from replctl.types.builtin import system_columns
from replctl.types.quote import quote_identifier

_CastNode = (
    nodes.FuncExpr
    | nodes.RelabelType
    | nodes.CoerceViaIO
    | nodes.ArrayCoerceExpr
    | nodes.CoerceToDomain
)
_CASE_INDENT = 4  # PRETTYINDENT_VAR

_INDENT_LIMIT = 40  # PRETTYINDENT_LIMIT


@dataclass(frozen=True)
class DeparseContext:
    """The context on which printed names depend.

    Args:
        environment: the catalog, which has the names and knows which of them need a schema.
        relation: the name before a whole row, or before each column if `is_qualified`.
        columns: the names of the relation's columns by attnum.
        deparse_query: prints the query of a SubLink with an indentation.
        variable: prints a column or a whole row, if there are several relations.
        is_pretty: print only necessary parentheses (PRETTYFLAG_PAREN).
        indent: the indentation of keywords on lines of their own.
    """

    environment: Environment
    relation: str = ""
    columns: Mapping[int, str] = field(default_factory=dict)
    is_qualified: bool = False
    deparse_query: Callable[[Any, int], str] | None = None
    variable: Callable[[nodes.Var], str] | None = None
    is_pretty: bool = False
    indent: int = 0

    @classmethod
    def of_relation(cls, environment: Environment, scope: RelationScope) -> DeparseContext:
        """Return the context for expressions over one relation: row filters, constraints."""
        columns = {column.attnum: column.name for column in scope.columns}
        return cls(environment, scope.name, columns)


def deparse(expr: nodes.Expr, context: DeparseContext) -> str:
    """Return SQL: `a = 5 AND b LIKE 'x%'` becomes `((a = 5) AND (b ~~ 'x%'::text))`."""
    return _printed(context, lambda printer: printer.expr(expr, False))


def deparse_output(expr: nodes.Expr, context: DeparseContext) -> str:
    """Return the SQL of a query's output column, including implicit casts."""
    return _printed(context, lambda printer: printer.top_level(expr))


def deparse_sort_key(key: nodes.SortKey, context: DeparseContext, column: str | None = None) -> str:
    """Return the SQL of an item of ORDER BY.

    Args:
        column: the number or name of a column, to print instead of the expression.
    """
    return _printed(context, lambda printer: printer.order.key(key, column))


def deparse_group_key(expr: nodes.Expr, context: DeparseContext) -> str:
    """Return the SQL of an item of GROUP BY or DISTINCT ON."""
    return _printed(context, lambda printer: printer.order.expr(expr))


def deparse_window(window: nodes.WindowClause, context: DeparseContext) -> str:
    """Return the SQL of an entry of WINDOW."""
    text = _printed(context, lambda printer: printer.calls.window(window))
    return f"{quote_identifier(window.name)} AS {text}"


def _printed(context: DeparseContext, put: Callable[[_Printer], None]) -> str:
    printer = _Printer(context)
    put(printer)
    return "".join(printer.parts)


class _Printer:
    """Builds the text of an expression.

    Methods print implicit casts only if their argument `implicit` is true: where the casts
    determine which operator or function is meant.
    """

    def __init__(self, context: DeparseContext) -> None:
        self.parts: list[str] = []
        self._context = context
        self.environment = context.environment
        self.names = NamePrinter(CastPaths(context.environment))
        self.is_pretty = context.is_pretty
        self._indent = context.indent
        self.order = _OrderPrinter(self)
        self.calls = _CallPrinter(self)

    def expr(self, expr: nodes.Expr, implicit: bool) -> None:
        put = self.parts.append
        match expr:
            case nodes.Var():
                self._variable(expr, top_level=False)
            case nodes.Const():
                put(constant(self.environment, expr))
            case nodes.Param():
                named = {0: "CASE_TEST_EXPR", nodes.VALUE: "VALUE"}
                put(named.get(expr.number) or f"${expr.number}")
            case nodes.FuncExpr():
                self.calls.function(expr, implicit)
            case nodes.NamedArgExpr():
                put(f"{quote_identifier(expr.name)} => ")
                self.expr(expr.arg, implicit)
            case nodes.OpExpr():
                self._operator(expr)
            case nodes.DistinctExpr():
                left, right = expr.args
                self._enclosed("{} IS DISTINCT FROM {}", expr, left, right, implicit=True)
            case nodes.NullIfExpr():
                self._call("NULLIF", expr.args)
            case nodes.ScalarArrayOpExpr():
                self._array_operator(expr)
            case nodes.BoolExpr():
                self._boolean(expr)
            case nodes.NullTest():
                self._null_test(expr)
            case nodes.BooleanTest():
                self._enclosed(f"{{}} IS {expr.test.upper()}", expr, expr.arg)
            case nodes.CaseExpr():
                self._case(expr)
            case nodes.CoalesceExpr():
                self._call("COALESCE", expr.args)
            case nodes.MinMaxExpr():
                self._call(expr.op.upper(), expr.args)
            case nodes.SqlValueFunction():
                precision = f"({expr.typmod})" if expr.typmod >= 0 else ""
                put(expr.name.upper() + precision)
            case nodes.ArrayExpr():
                put("ARRAY[")
                self.exprs(expr.elements, True)
                put("]" if expr.elements else f"]::{self._type(expr.type, -1)}")
            case nodes.RowExpr():
                put("ROW(")
                self._top_level_list(expr.args)
                put(f")::{self._type(expr.type, -1)}" if expr.form == "explicit" else ")")
            case nodes.RowCompareExpr():
                put("(ROW(")
                self._top_level_list(expr.left)
                put(f") {self.names.row_operator(expr)} ROW(")
                self._top_level_list(expr.right)
                put("))")
            case nodes.RelabelType() | nodes.ArrayCoerceExpr() | nodes.CoerceToDomain():
                self.cast(expr, expr.arg, expr.typmod, implicit=implicit)
            case nodes.CoerceViaIO():
                self.cast(expr, expr.arg, -1, implicit=implicit)
            case nodes.CollateExpr():
                name = quote_identifier(expr.collation)
                self._enclosed(f"{{}} COLLATE {name}", expr, expr.arg, implicit=implicit)
            case nodes.SubscriptingRef():
                self._subscripting(expr, implicit)
            case nodes.FieldSelect():
                is_bare = isinstance(expr.arg, nodes.SubscriptingRef | nodes.FieldSelect)
                self.in_parens(expr.arg, not is_bare, True)
                put(f".{quote_identifier(self._field_name(expr))}")
            case nodes.JsonValueExpr():
                self.expr(expr.raw, False)
            case nodes.JsonIsPredicate():
                item = "" if expr.item == "any" else f" {expr.item.upper()}"
                keys = " WITH UNIQUE KEYS" if expr.unique_keys else ""
                self._enclosed(f"{{}} IS JSON{item}{keys}", expr, expr.arg, implicit=True)
            case nodes.XmlIsDocument():
                self.in_parens(expr.arg, self.is_pretty, True)
                put(" IS DOCUMENT")
            case nodes.Aggref():
                self.calls.aggregate(expr)
            case nodes.GroupingFunc():
                self._call("GROUPING", expr.args)
            case nodes.WindowFunc():
                self.calls.window_function(expr)
            case nodes.SubLink():
                self._sublink(expr)
            case nodes.SetToDefault():
                put("DEFAULT")
            case _:
                assert_never(expr)

    # -- pieces

    def exprs(self, exprs: Sequence[nodes.Expr], implicit: bool) -> None:
        for i, expr in enumerate(exprs):
            if i:
                self.parts.append(", ")
            self.expr(expr, implicit)

    def top_level(self, expr: nodes.Expr) -> None:
        """Append an expression that no other expression encloses, such as an output column."""
        if isinstance(expr, nodes.Var):
            self._variable(expr, top_level=True)
        else:
            self.expr(expr, True)

    def _top_level_list(self, exprs: Sequence[nodes.Expr]) -> None:
        """Append the fields of ROW(..).  A whole row shows its type, because `t.*` alone means its
        columns.
        """
        for i, expr in enumerate(exprs):
            if i:
                self.parts.append(", ")
            self.top_level(expr)

    def _call(self, name: str, args: Sequence[nodes.Expr]) -> None:
        self.parts.append(f"{name}(")
        self.exprs(args, True)
        self.parts.append(")")

    def template(self, template: str, *exprs: nodes.Expr, implicit: bool = False) -> None:
        """Append a template such as `({} AT TIME ZONE {})`, with expressions for the braces."""
        first, *rest = template.split("{}")
        self.parts.append(first)
        for expr, text in zip(exprs, rest, strict=True):
            self.expr(expr, implicit)
            self.parts.append(text)

    def _enclosed(
        self, template: str, parent: nodes.Expr, *exprs: nodes.Expr, implicit: bool = False
    ) -> None:
        """Append the template in parentheses.  Pretty output instead puts only operands in
        parentheses, if they need them.
        """
        if not self.is_pretty:
            self.template(f"({template})", *exprs, implicit=implicit)
            return
        first, *rest = template.split("{}")
        self.parts.append(first)
        for expr, text in zip(exprs, rest, strict=True):
            self.in_parens(expr, not is_simple(expr, parent), implicit)
            self.parts.append(text)

    def in_parens(self, expr: nodes.Expr, needed: bool, implicit: bool) -> None:
        if needed:
            self.parts.append("(")
        self.expr(expr, implicit)
        if needed:
            self.parts.append(")")

    def _type(self, name: str, typmod: int) -> str:
        return self.environment.format_type(name, typmod)

    def _variable(self, var: nodes.Var, *, top_level: bool) -> None:
        if self._context.variable is not None:
            self.parts.append(self._context.variable(var))
            if top_level and var.attnum == 0:
                self.parts.append(f"::{self._type(var.type, var.typmod)}")
            return
        if var.attnum > 0:
            name = quote_identifier(self._context.columns[var.attnum])
        elif var.attnum < 0:
            name = next(n for n, (attnum, _) in system_columns().items() if attnum == var.attnum)
        else:
            name = f"*::{self._type(var.type, var.typmod)}" if top_level else "*"
        if var.attnum == 0 or self._context.is_qualified:
            name = f"{quote_identifier(self._context.relation)}.{name}"
        self.parts.append(name)

    # -- operators

    def _operator(self, expr: nodes.OpExpr) -> None:
        name = self.names.operator(expr)
        if len(expr.args) == 1:
            self._enclosed(f"{name} {{}}", expr, *expr.args, implicit=True)
        else:
            self._enclosed(f"{{}} {name} {{}}", expr, *expr.args, implicit=True)

    def _array_operator(self, expr: nodes.ScalarArrayOpExpr) -> None:
        left, right = expr.args
        quantifier = "ANY" if expr.use_or else "ALL"
        self._in_place(left, expr, "" if self.is_pretty else "(")
        self.parts.append(f" {self.names.array_operator(expr)} {quantifier} (")
        self._in_place(right, expr)
        # Without a cast, a subquery here would mean ANY (SELECT ...), which compares with each row.
        if isinstance(right, nodes.SubLink) and right.kind == "expr":
            self.parts.append(f"::{self._type(right.type, nodes.typmod(right))}")
        self.parts.append(")" if self.is_pretty else "))")

    def _in_place(self, expr: nodes.Expr, parent: nodes.Expr, before: str = "") -> None:
        self.parts.append(before)
        self.in_parens(expr, self.is_pretty and not is_simple(expr, parent), True)

    def _boolean(self, expr: nodes.BoolExpr) -> None:
        if expr.op == "not":
            self._enclosed("NOT {}", expr, *expr.args)
            return
        separator = f" {expr.op.upper()} "
        self._enclosed(separator.join(["{}"] * len(expr.args)), expr, *expr.args)

    def _null_test(self, expr: nodes.NullTest) -> None:
        """Append a test for NULL.  If it tests a row as a whole, and not the row's fields, write IS
        DISTINCT FROM NULL.
        """
        is_row_type = self.names.types.is_row(expr.arg.type)
        if expr.is_row or not is_row_type:
            test = "IS NULL" if expr.is_null else "IS NOT NULL"
        else:
            test = "IS NOT DISTINCT FROM NULL" if expr.is_null else "IS DISTINCT FROM NULL"
        self._enclosed(f"{{}} {test}", expr, expr.arg, implicit=True)

    # -- casts

    def cast(self, expr: _CastNode, arg: nodes.Expr, typmod: int, *, implicit: bool) -> None:
        """Append the argument of a cast, and the type if the cast is shown.  In pretty output, the
        argument keeps the parentheses that a shown cast would need, except below a domain
        (get_rule_expr in ruleutils.c).
        """
        if expr.form == "implicit" and not implicit:
            is_domain = isinstance(expr, nodes.CoerceToDomain)
            needed = self.is_pretty and not is_domain and not is_simple(arg, expr)
            self.in_parens(arg, needed, False)
            return
        if isinstance(arg, nodes.Const) and is_bare_under_cast(arg, expr.type):
            self.parts.append(constant(self.environment, arg, show_type="never"))
        else:
            self.in_parens(arg, not (self.is_pretty and is_simple(arg, expr)), False)
        self.parts.append(f"::{self._type(expr.type, typmod)}")

    # -- the rest

    def _case(self, expr: nodes.CaseExpr) -> None:
        put = self.parts.append
        self._new_line("CASE")
        self._indent += _CASE_INDENT
        if expr.arg is not None:
            put(" ")
            self.expr(expr.arg, True)
        for when in expr.whens:
            self._new_line("WHEN ")
            self.expr(_case_value(when.condition) if expr.arg else when.condition, False)
            put(" THEN ")
            self.expr(when.result, True)
        self._new_line("ELSE ")
        self.expr(expr.default, True)
        self._indent -= _CASE_INDENT
        self._new_line("END")

    def _new_line(self, word: str) -> None:
        """Append a keyword on a new line, and remove blanks before the line break."""
        while self.parts:
            last = self.parts.pop().rstrip(" ")
            if last:
                self.parts.append(last)
                break
        indent = self._indent
        if indent >= _INDENT_LIMIT:
            # Indent deep nests less, and start again at the left (appendContextKeyword in
            # ruleutils.c).
            indent = (_INDENT_LIMIT + (indent - _INDENT_LIMIT) // 2) % _INDENT_LIMIT
        self.parts.append("\n" + " " * indent + word)

    def _field_name(self, expr: nodes.FieldSelect) -> str:
        """Return the name of a field, which may have been renamed since the analysis."""
        columns = TypeFacts(self.environment).columns(expr.arg.type)
        return expr.field_name if columns is None else columns[expr.field_number - 1].name

    def _subscripting(self, expr: nodes.SubscriptingRef, implicit: bool) -> None:
        is_bare = isinstance(expr.arg, nodes.Var | nodes.FieldSelect)
        self.in_parens(expr.arg, not is_bare, implicit)
        for i, upper in enumerate(expr.upper):
            self.parts.append("[")
            if expr.lower is not None:
                self._optional(expr.lower[i])
                self.parts.append(":")
            self._optional(upper)
            self.parts.append("]")

    def _optional(self, expr: nodes.Expr | None) -> None:
        if expr is not None:
            self.expr(expr, False)

    def _sublink(self, expr: nodes.SubLink) -> None:
        if self._context.deparse_query is None:
            raise FeatureNotSupported("subqueries cannot be printed here")
        query = self._context.deparse_query(expr.query, self._indent)
        put = self.parts.append
        put("ARRAY(" if expr.kind == "array" else "(")
        operator = "" if expr.test is None else self._sublink_test(expr.test)
        match expr.kind:
            case "exists":
                put(f"EXISTS ({query})")
            case "any":
                put(f" {'IN' if operator == '=' else f'{operator} ANY'} ({query})")
            case "all":
                put(f" {operator} ALL ({query})")
            case "row_compare":
                put(f" {operator} ({query})")
            case _:
                put(query)
        put(")")

    def _sublink_test(self, test: nodes.Expr) -> str:
        """Print the left-hand side of a comparison with a subquery; return the name of the first
        operator.
        """
        match test:
            case nodes.OpExpr(args=args):
                self.expr(args[0], True)
                return self.names.operator(test)
            case nodes.BoolExpr(args=args):
                pairs = [arg for arg in args if isinstance(arg, nodes.OpExpr)]
                self._call("", [pair.args[0] for pair in pairs])
                return self.names.operator(pairs[0])
            case nodes.RowCompareExpr(left=left):
                self._call("", left)
                return self.names.row_operator(test)
            case _:
                raise TypeError(f"no comparison with a subquery: {test}")


class _OrderPrinter:
    """Prints ORDER BY and its items."""

    def __init__(self, printer: _Printer) -> None:
        self._printer = printer

    def by(self, keys: Sequence[nodes.SortKey]) -> None:
        for i, key in enumerate(keys):
            if i:
                self._printer.parts.append(", ")
            self.key(key)

    def key(self, key: nodes.SortKey, column: str | None = None) -> None:
        """Append an item of ORDER BY; if `column` is given, print this instead."""
        if column is None:
            self.expr(key.expr)
        else:
            self._printer.parts.append(column)
        if key.using is not None:
            nulls = "FIRST" if key.nulls_first else "LAST"
            self._printer.parts.append(f" USING {key.using} NULLS {nulls}")
        elif key.descending:
            self._printer.parts.append(" DESC" if key.nulls_first else " DESC NULLS LAST")
        elif key.nulls_first:
            self._printer.parts.append(" NULLS FIRST")

    def expr(self, expr: nodes.Expr) -> None:
        """Append the expression of an item.  Show the type of a constant, because an integer alone
        means a column number.  Put a function call in parentheses.
        """
        if isinstance(expr, nodes.Const):
            self._printer.parts.append(
                constant(self._printer.environment, expr, show_type="always")
            )
        else:
            is_call = isinstance(expr, nodes.FuncExpr | nodes.Aggref | nodes.WindowFunc)
            is_column = isinstance(expr, nodes.Var)
            self._printer.in_parens(
                expr, is_call or (self._printer.is_pretty and not is_column), True
            )


class _CallPrinter:
    """Prints calls of functions, aggregates and window functions."""

    def __init__(self, printer: _Printer) -> None:
        self._printer = printer
        self._order = printer.order

    def function(self, expr: nodes.FuncExpr, implicit: bool) -> None:
        if expr.form in ("implicit", "explicit"):
            self._printer.cast(expr, expr.args[0], nodes.typmod(expr), implicit=implicit)
        elif expr.form == "sql" and self._sql_function(expr):
            return
        else:
            self._printer.parts.append(f"{self._printer.names.function(expr)}(")
            self._arguments(expr.args, expr.is_variadic)
            self._printer.parts.append(")")

    def _arguments(self, args: Sequence[nodes.Expr], is_variadic: bool) -> None:
        for i, arg in enumerate(args, 1):
            if i > 1:
                self._printer.parts.append(", ")
            if is_variadic and i == len(args):
                self._printer.parts.append("VARIADIC ")
            self._printer.expr(arg, True)

    def _sql_function(self, expr: nodes.FuncExpr) -> bool:
        """Print a function with its own SQL syntax; return False for other functions."""
        found = sql_template(expr)
        if found is None:
            return False
        template, args = found
        self._printer.template(template, *args)
        return True

    def aggregate(self, expr: nodes.Aggref) -> None:
        put = self._printer.parts.append
        put(f"{self._printer.names.aggregate(expr)}({'DISTINCT ' if expr.is_distinct else ''}")
        if expr.within_group:
            self._printer.exprs(expr.direct_args, True)
            put(") WITHIN GROUP (ORDER BY ")
            self._order.by(expr.order_by)
        else:
            if expr.is_star:
                put("*")
            self._arguments(expr.args, expr.is_variadic)
            if expr.order_by:
                put(" ORDER BY ")
                self._order.by(expr.order_by)
        if expr.filter is not None:
            put(") FILTER (WHERE ")
            self._printer.expr(expr.filter, False)
        put(")")

    def window_function(self, expr: nodes.WindowFunc) -> None:
        put = self._printer.parts.append
        put(f"{self._printer.names.window_function(expr)}(")
        if expr.is_star:
            put("*")
        self._printer.exprs(expr.args, True)
        if expr.filter is not None:
            put(") FILTER (WHERE ")
            self._printer.expr(expr.filter, False)
        put(") OVER ")
        if expr.window is not None:
            put(quote_identifier(expr.window))
            return
        self.window(expr)

    def window(self, spec: nodes.WindowFunc | nodes.WindowClause) -> None:
        """Append a window in parentheses, without the clauses that it copies from its base."""
        put = self._printer.parts.append
        put("(")
        separator = ""
        if spec.base is not None:
            put(quote_identifier(spec.base))
            separator = " "
        elif spec.partition_by:
            put("PARTITION BY ")
            for i, item in enumerate(spec.partition_by):
                if i:
                    put(", ")
                self._order.expr(item)
            separator = " "
        if spec.order_by and not spec.copies_order:
            put(f"{separator}ORDER BY ")
            self._order.by(spec.order_by)
            separator = " "
        if spec.frame:
            first, *others = spec.frame.split("{}") if spec.offsets else (spec.frame,)
            put(separator + first)
            for offset, text in zip(spec.offsets, others, strict=True):
                self._printer.expr(offset, False)
                put(text)
        put(")")


def _case_value(condition: nodes.Expr) -> nodes.Expr:
    """Return the value in a CASE's condition: `CASE_TEST_EXPR = value` becomes value."""
    if (
        isinstance(condition, nodes.OpExpr)
        and len(condition.args) == 2
        and isinstance(stripped_implicit(condition.args[0]), nodes.Param)
    ):
        return condition.args[1]
    return condition
